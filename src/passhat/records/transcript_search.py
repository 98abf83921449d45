"""Finding a text in transcripts, and showing it with the words around it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from passhat.dataclass import Displayed, dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural, quoted, short_repr
from passhat.records.clean_texts import clean_text
from passhat.records.transcript import Transcript, TranscriptKey
from passhat.records.trial import Outcome

AROUND = 60
"""Characters shown on each side of a text that was found: one or two lines of a terminal."""

MOST_OF_A_TASK = 3
"""Failures of a task that are shown where all are too many: one may be chance, three show whether
they are alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTranscript:
    """The transcript of one trial as it is kept; `outcome` is None if it is not known."""

    key: TranscriptKey
    outcome: Outcome | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Where in a transcript a text was found, and the words around it on one line."""

    where: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptMatch:
    """A trial whose transcript has a text, and the words around it.

    `number` counts the runs of its task from 1, as reports and `passhat diff` do; None if the
    dataset does not say where its log begins.
    """

    run: str
    system: str
    task: str
    trial: int
    number: int | None = None
    outcome: Outcome | None
    excerpt: Excerpt


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptMatches(Displayed):
    """The first trials whose transcripts have a text, out of `read` transcripts.

    `more` says that the search ended at its limit, before everything was read.
    """

    wanted: str
    matches: tuple[TranscriptMatch, ...]
    read: int
    more: bool = False

    def __repr__(self) -> str:
        found = plural(len(self.matches), "trial")
        head = f"TranscriptMatches of {quoted(self.wanted)}"
        return short_repr(head, found, f"{self.read:,} transcripts read", see=".matches")


class TextSearch:
    """Looks for one text, in any case, in one transcript after another.

    >>> search = TextSearch("refund")
    >>> search.find('{"messages": [{"role": "user", "text": "A REFUND, please"}]}')
    Excerpt(where='user', text='A REFUND, please')
    """

    def __init__(self, wanted: str) -> None:
        if not wanted.strip():
            raise ArgumentError("text", "must be some words to look for", wanted)
        self._pattern = re.compile(re.escape(wanted), re.IGNORECASE)
        escaped = json.dumps(wanted, ensure_ascii=False)[1:-1]
        self._as_kept = (wanted.lower(), escaped.lower())

    def find(self, kept: str) -> Excerpt | None:
        """The first place where the text occurs in a kept transcript."""
        # Most transcripts do not hold it. Looking at the JSON as a whole tells that ten times
        # faster than reading it, except where letters are written as \uXXXX.
        lowered = kept.lower()
        if "\\u" not in lowered and not any(form in lowered for form in self._as_kept):
            return None
        for where, text in _parts(Transcript.from_json(kept)):
            # Keys are taken out first: a search must neither show nor confirm one.
            cleaned = clean_text(text)
            if found := self._pattern.search(cleaned):
                return Excerpt(where=where, text=_around(cleaned, *found.span()))
        return None


def _parts(transcript: Transcript) -> Iterator[tuple[str, str]]:
    """Every text of a transcript, and whose it is."""
    for turn in transcript.messages:
        yield (f"{turn.role} {turn.name}".strip(), turn.text)
        for call in turn.calls:
            yield f"call of {call.name}", call.name
            yield f"call of {call.name}", call.arguments
    yield "answer", transcript.answer
    yield "error", transcript.error
    for check in transcript.checks:
        yield f"check {check.target}".strip(), check.message
    yield "standard error", transcript.stderr
    yield "stop reason", transcript.stop_reason


def _around(text: str, start: int, end: int) -> str:
    """The found text with some words on each side, on one line."""
    first, last = max(0, start - AROUND), min(len(text), max(end, start + 1) + AROUND)
    last = min(last, first + 4 * AROUND)  # a long text that was looked for is not shown whole
    shown = " ".join(text[first:last].split())
    return f"{'…' if first else ''}{shown}{'…' if last < len(text) else ''}"
