"""Which transcripts a page shows: as many as fit, the most interesting first."""

from __future__ import annotations

import base64
import json
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields
from itertools import chain
from typing import TYPE_CHECKING

from passhat.analysis.reports.report import Report, TaskRow
from passhat.arguments import whole_number
from passhat.dataclass import dataclass
from passhat.messages import plural
from passhat.records import Outcome
from passhat.records.transcript import CUT, CleanTexts, Transcript, TranscriptKey, Transcripts
from passhat.records.trial import natural_key
from passhat.reporters.transcript_cards import transcript_page
from passhat.reporters.transcript_text import is_in_turns

if TYPE_CHECKING:
    from passhat.records import Trials

MOST_ROWS = 5_000
"""Tasks in the table of a page; the lowest ones, if there are more."""

LONG_TABLE = 300
"""Tasks from which a browser lays out only the rows that are in sight."""

SHORTEST = 2_000
"""Characters to which transcripts are cut, at the shortest, so that more of them fit."""

WRITTEN_SHARE = 4
"""One part in so many of the room is for transcripts that are written out.

They can be read without JavaScript. The others are packed, which takes a fifth of the room.
"""

MOST_WRITTEN = 1_000_000
"""Bytes of transcripts that are written out, at most: more would delay the first paint."""

_BLOCK = 200_000  # bytes that are packed together: opened in a moment, and packed well
_MARKUP = 160  # bytes that the page takes for each, beside its words
_LETTERS = {"P": Outcome.PASSED, "F": Outcome.FAILED, "E": Outcome.ERRORED}

# Readers open transcripts of flaky tasks first; those of tasks that always pass last.
_INTEREST = {"flaky": 0, "undecided": 1, "broken": 2, "solid": 3}

LETTERS: Mapping[Outcome | None, str] = {outcome: letter for letter, outcome in _LETTERS.items()}
"""The letter of each outcome in the sequence of a task's runs."""

Outcomes = Mapping[TranscriptKey, Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLimits:
    """How much of a page may be transcripts: its bytes, the text they unpack to, and each one.

    `max_transcript` is in characters; longer ones are cut.

    >>> PageLimits(max_bytes=50_000_000).max_transcript
    100000
    """

    max_bytes: int = 7_500_000  # a page of 8 MB opens at once, and can be sent as an attachment
    max_text: int = 24_000_000  # what a browser holds beside the page without being noticed
    max_transcript: int = 100_000

    def __post_init__(self) -> None:
        for limit in fields(self):
            whole_number(limit.name, getattr(self, limit.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTranscripts:
    """The transcripts of a page as HTML, cut after `cut_at` characters; `left_out` did not fit.

    `written` are in the page as they are. The others are in `blocks`, packed (deflate, base64);
    `places` says in which block, and where in it.
    """

    texts: Mapping[TranscriptKey, str]
    cut_at: int
    left_out: int
    written: frozenset[TranscriptKey] = frozenset()
    blocks: tuple[str, ...] = ()
    places: Mapping[TranscriptKey, tuple[int, int]] = field(default_factory=dict)
    limits: PageLimits = field(default_factory=PageLimits)

    @property
    def cut_note(self) -> str | None:
        """A note on the transcripts that were cut, if any."""
        if not any(CUT in text for text in self.texts.values()):
            return None
        return (
            f"Long transcripts are cut after {self.cut_at:,} characters; `passhat view` shows more "
            "of them."
        )

    @property
    def left_out_note(self) -> str | None:
        """A note on the transcripts that did not fit, if any."""
        if not self.left_out:
            return None
        every = self.left_out + len(self.texts)
        return (
            f"Of {plural(every, 'transcript')} this page leaves out {self.left_out:,}, so that it "
            f"can be opened: it has {self.limits.max_bytes:,} bytes for them. Failures of flaky "
            "tasks are kept first. `passhat view` shows them all; from Python, fit_transcripts "
            "takes other limits."
        )


def fit_transcripts(
    report: Report,
    transcripts: Transcripts,
    *,
    trials: Trials | None = None,
    limits: PageLimits | None = None,
) -> PageTranscripts:
    """The transcripts that fit on the page of this report; `trials` say which of them failed.

    One of each outcome of each task comes before a second one, flaky tasks before others, and what
    did not pass before what did. None is left out while a less interesting one is kept.
    """
    limits = limits or PageLimits()
    systems = {system.name for system in report.systems}
    asked = [key for key in transcripts if key[0] in systems]
    wanted = _most_wanted_first(report, asked, trials) if asked else []
    longest = min(limits.max_transcript, max(SHORTEST, limits.max_text // max(1, len(wanted))))
    pages = ((key, _page_of(transcripts, key, longest)) for key in wanted)
    room = min(limits.max_bytes // WRITTEN_SHARE, MOST_WRITTEN)
    written, first = _written_out(pages, room)
    rest = _Packer(room=limits.max_bytes - room, text=limits.max_text)
    rest.fill(chain(first, pages))
    kept = written | rest.kept
    return PageTranscripts(
        texts={key: kept[key] for key in asked if key in kept},
        cut_at=longest,
        left_out=len(asked) - len(kept),
        written=frozenset(written),
        blocks=tuple(rest.blocks),
        places=rest.places,
        limits=limits,
    )


def _page_of(transcripts: Transcripts, key: TranscriptKey, longest: int) -> str:
    """One transcript as HTML.

    Of another tool's log only what is shown is searched for keys: that takes a while.
    """
    if not isinstance(transcripts, CleanTexts):
        return transcript_page(transcripts[key], longest)
    kept = transcripts.kept(key)
    if len(kept) <= 2 * longest or not is_in_turns(kept):
        return transcript_page(transcripts[key], longest)
    cut = Transcript.from_json(kept).cut(longest).to_json()
    # It is cut already: what its marks add must not have it cut again.
    return transcript_page(CleanTexts({key: cut})[key], 2 * longest)


_Pages = Iterator[tuple[TranscriptKey, str]]


def _written_out(pages: _Pages, room: int) -> tuple[dict[TranscriptKey, str], _Pages]:
    """The first pages, as long as there is room; and the one that had none any more."""
    written: dict[TranscriptKey, str] = {}
    for key, text in pages:
        room -= _MARKUP + len(text.encode())
        if room < 0:
            return written, iter([(key, text)])
        written[key] = text
    return written, iter(())


@dataclass(slots=True)
class _Packer:
    """Pages in packed blocks, as many as there is room for."""

    room: int
    text: int
    kept: dict[TranscriptKey, str] = field(default_factory=dict)
    blocks: list[str] = field(default_factory=list)
    places: dict[TranscriptKey, tuple[int, int]] = field(default_factory=dict)

    def fill(self, pages: _Pages) -> None:
        """Take pages until the next one finds no room."""
        block: list[tuple[TranscriptKey, str]] = []
        size = 0
        for key, page in pages:
            length = len(page.encode())
            if length > self.text:
                break
            self.text -= length
            block.append((key, page))
            size += length
            if size >= _BLOCK:
                if not self._add(block):
                    return
                block, size = [], 0
        self._add(block)

    def _add(self, block: Sequence[tuple[TranscriptKey, str]]) -> bool:
        """Whether all of a block had room; else as much of its beginning as has."""
        fits, (packed, size) = len(block), _packed(block)
        if size > self.room:
            sizes = range(1, len(block))
            fits = bisect_right(sizes, self.room, key=lambda n: _packed(block[:n])[1])
            packed, size = _packed(block[:fits])
        if fits:
            self.room -= size
            for place, (key, page) in enumerate(block[:fits]):
                self.places[key] = (len(self.blocks), place)
                self.kept[key] = page
            self.blocks.append(packed)
        return fits == len(block)


def _packed(block: Sequence[tuple[TranscriptKey, str]]) -> tuple[str, int]:
    """A block as text, and the bytes that it takes with the markup of its pages."""
    if not block:
        return "", 0
    words = json.dumps([page for _, page in block], ensure_ascii=False)
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)  # raw, as browsers unpack it
    packed = base64.b64encode(deflate.compress(words.encode()) + deflate.flush()).decode()
    return packed, len(packed) + 4 + _MARKUP * len(block)


def outcomes_of(report: Report, keys: Sequence[TranscriptKey], trials: Trials | None) -> Outcomes:
    """How the runs of these transcripts ended, as far as the trials or the report show it."""
    if trials is not None:
        return _outcomes(trials)
    rows = {(s.name, row.name): (0, row) for s in report.systems for row in s.tasks}
    return _from_rows(rows, [key for key in keys if key[:2] in rows])


def page_rows(tasks: Sequence[TaskRow]) -> list[TaskRow]:
    """The lowest rates first, and of one rate by name as people sort names."""
    return sorted(tasks, key=lambda row: (row.rate.value, natural_key(row.name)))[:MOST_ROWS]


def _most_wanted_first(
    report: Report, asked: Iterable[TranscriptKey], trials: Trials | None
) -> list[TranscriptKey]:
    rows = {
        (system.name, row.name): (place, row)
        for system in report.systems
        for place, row in enumerate(page_rows(system.tasks))
    }
    listed = [key for key in asked if key[:2] in rows]
    outcomes = _outcomes(trials) if trials is not None else _from_rows(rows, listed)
    seen: set[tuple[str, str, Outcome | None]] = set()
    ranks: dict[TranscriptKey, tuple[bool, int, bool, int]] = {}
    for key in listed:
        place, row = rows[key[:2]]
        outcome = outcomes.get(key)
        kind = (*key[:2], outcome)
        passed = outcome is Outcome.PASSED
        ranks[key] = (kind in seen, _INTEREST[row.label], passed, place)
        seen.add(kind)
    return sorted(listed, key=ranks.__getitem__)


def _outcomes(trials: Trials) -> Outcomes:
    by_code = tuple(Outcome)
    columns = (trials.system.texts(), trials.task.texts(), trials.trial.tolist())
    keys = zip(*columns, trials.outcome.tolist(), strict=True)
    return {(s or "", task or "", trial): by_code[code] for s, task, trial, code in keys}


def _from_rows(
    rows: Mapping[tuple[str, str], tuple[int, TaskRow]], keys: Iterable[TranscriptKey]
) -> Outcomes:
    """By the sequences of the report, where every run of a task has a transcript."""
    numbers: dict[tuple[str, str], list[int]] = {}
    for system, task, trial in keys:
        numbers.setdefault((system, task), []).append(trial)
    found: dict[TranscriptKey, Outcome] = {}
    for task_key, trials in numbers.items():
        sequence = rows[task_key][1].sequence or ""
        if len(sequence) == len(trials):
            for trial, letter in zip(sorted(trials), sequence, strict=True):
                found[*task_key, trial] = _LETTERS[letter]
    return found
