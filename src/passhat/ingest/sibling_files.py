"""Files beside a result file that belong to it, and turns made of them.

Nothing outside its folder is opened, and nothing once the transcript has no room left.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from passhat.errors import ReadError
from passhat.ingest.document import Document, Value, decode, read_file
from passhat.records.secrets import beginning
from passhat.records.transcript import Turn, cut_mark, cut_text, spoken_room, turn_size

_MARKS = 150  # characters that names and marks of a cut take, at most


def sibling_bytes(document: Document, *names: str) -> bytes | None:
    """The content of a file below the folder of a result file, if it is there.

    `names` may come from the result file itself, and a link may lead anywhere: what resolves to
    a place outside the folder is treated as absent.
    """
    path = sibling_file(document, *names)
    return None if path is None else read_file(path, document.limits)


def sibling_decoded(
    document: Document, shape: type[Value], *names: str
) -> tuple[Value | None, str]:
    """The same as JSON, and what is wrong with it: a run that was killed leaves it half written.

    The results do not depend on it, so an error in it is returned instead of raised.
    """
    found = sibling_bytes(document, *names)
    if found is None:
        return None, ""
    try:
        return decode(f"{document.name}, {'/'.join(names)}", found, shape), ""
    except ReadError as error:
        return None, str(error)


def sibling_text(document: Document, *names: str, most: int) -> str:
    """The first `most` characters as text, with word of the rest; nothing if there is no file.

    The rest stays unread: a terminal may have filled a disk.
    """
    path = sibling_file(document, *names)
    if path is None:
        return ""
    document.limits.check_size(str(path), size := path.stat().st_size)
    with path.open("rb") as stream:
        read = stream.read(4 * most)  # no character of UTF-8 is longer than four bytes
    text = read.decode("utf-8", errors="replace").strip()
    if size <= len(read):
        return cut_text(text, most)
    kept = beginning(text, most).rstrip()
    return f"{kept} {cut_mark(max(1, size - len(kept.encode())), 'byte')}"


def sibling_names(document: Document, *names: str, keep: Callable[[str], bool]) -> list[str]:
    """The names in a folder below that of a result file, refused if there are too many.

    They are in no order: sort them by what they mean.
    """
    folder = sibling_path(document, *names)
    if folder is None or not folder.is_dir():
        return []
    found: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if keep(entry.name):
                found.append(entry.name)
                document.limits.check_members(str(folder), len(found))
    return found


def sibling_file(document: Document, *names: str) -> Path | None:
    """A file below the folder of a result file, if there is one."""
    path = sibling_path(document, *names)
    return path if path is not None and path.is_file() else None


def sibling_path(document: Document, *names: str) -> Path | None:
    """A place below the folder of a result file; None if it would be anywhere else."""
    if document.path is None or any("\0" in name for name in names):
        return None
    folder = document.path.parent.resolve()
    try:
        path = folder.joinpath(*names).resolve()
    except (OSError, RuntimeError):  # a loop of links, or a name too long to be one
        return None
    return path if path.is_relative_to(folder) and os.access(path, os.R_OK) else None


def end_room(limit: int) -> int:
    """How many characters one check or answer may have beside any number of turns."""
    return max(1, limit - spoken_room(limit) - _MARKS)


class FileTurns:
    """What files say after an opening turn, one turn a file.

    Files that no longer fit are counted and not opened. The whole is never cut again, so the
    counts in the marks stay true.
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
        """The opening and all that fitted; nothing if no file says anything."""
        if not self._turns and not self._closed:
            return ()
        rest = Turn(role="passhat", text=cut_mark(self._closed, "message"))
        return (self._opening, *self._turns, *([rest] if self._closed else []))
