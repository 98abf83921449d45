"""Turns out of text files beside a result, opened only while the transcript has room."""

from __future__ import annotations

from dataclasses import replace

from passhat.ingest.document import Document
from passhat.ingest.sibling_files import sibling_file, sibling_text
from passhat.records.transcript import Turn, cut_mark, cut_text, spoken_room, turn_size

_MARKS = 150  # characters that names and marks of a cut take, at most


def end_room(limit: int) -> int:
    """How many characters one check or answer may have beside any number of turns."""
    return max(1, limit - spoken_room(limit) - _MARKS)


class FileTurns:
    """What files say after an opening turn, one turn a file.

    Files that no longer fit are counted and stay closed. All together is never cut again, so that
    what the marks say of the rest is true.
    """

    def __init__(self, document: Document, opening: Turn) -> None:
        room = spoken_room(document.limits.max_transcript) - _MARKS
        self._document = document
        self._opening = replace(opening, text=cut_text(opening.text, max(1, room // 2)))
        self._room = room - turn_size(self._opening)
        self._turns: list[Turn] = []
        self._closed = 0

    def add(self, role: str, *names: str) -> None:
        """A turn of what this file says, if it is there and says anything."""
        room = self._room - turn_size(Turn(role=role))
        if room <= 0:
            self._closed += sibling_file(self._document, *names) is not None
        elif text := sibling_text(self._document, *names, most=room):
            turn = Turn(role=role, text=text)
            self._turns.append(turn)
            self._room -= turn_size(turn)

    def turns(self) -> tuple[Turn, ...]:
        """The opening and all that fitted; nothing where no file says anything."""
        if not self._turns and not self._closed:
            return ()
        rest = Turn(role="passhat", text=cut_mark(self._closed, "message"))
        return (self._opening, *self._turns, *([rest] if self._closed else []))
