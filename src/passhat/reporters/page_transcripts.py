"""What a page shows of transcripts: as many as it has room for, those that tell most first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from passhat.analysis.reports.report import Report
from passhat.analysis.reports.tasks import TaskRow
from passhat.messages import plural
from passhat.records import Outcome
from passhat.records.clean_texts import CleanTexts, clean_text
from passhat.records.natural_order import natural_key
from passhat.records.transcript import CUT, TranscriptKey, Transcripts, cut_text
from passhat.reporters.transcript_text import read_kept
from passhat.stats.arguments import whole_number

if TYPE_CHECKING:
    from passhat.records import Trials

MOST_ROWS = 5_000
"""Tasks in the table of a page; the lowest ones, where there are more."""

SHORTEST = 2_000
"""Bytes to which transcripts are cut, at the shortest, so that more of them fit."""

_MARKUP = 160  # bytes that the page takes for each, beside its words
_LETTERS = {"P": Outcome.PASSED, "F": Outcome.FAILED, "E": Outcome.ERRORED}

# A flaky task is why somebody opens a transcript; one that always passes has least to tell.
_INTEREST = {"flaky": 0, "undecided": 1, "broken": 2, "solid": 3}

LETTERS: Mapping[Outcome | None, str] = {outcome: letter for letter, outcome in _LETTERS.items()}
"""The letter of each outcome in the sequence of a task's runs."""

Outcomes = Mapping[TranscriptKey, Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLimits:
    """How many bytes of a page may be transcripts, all together and each; longer ones are cut.

    >>> PageLimits(max_bytes=50_000_000).max_transcript
    100000
    """

    max_bytes: int = 7_500_000  # a page of 8 MB opens at once, and can be sent as an attachment
    max_transcript: int = 100_000

    def __post_init__(self) -> None:
        for limit in fields(self):
            whole_number(limit.name, getattr(self, limit.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTranscripts:
    """The transcripts of a page, readable and cut after `cut_at` bytes; `left_out` did not fit.

    `turns` are those that came as turns, which a page can show as cards.
    """

    texts: Transcripts
    cut_at: int
    left_out: int
    turns: frozenset[TranscriptKey] = frozenset()
    limits: PageLimits = field(default_factory=PageLimits)

    @property
    def cut(self) -> bool:
        """Whether any of them was cut."""
        return any(CUT in text[-60:] for text in self.texts.values())

    @property
    def cut_note(self) -> str | None:
        """What to say of those that were cut."""
        if not self.cut:
            return None
        return (
            f"Long transcripts are cut after {self.cut_at:,} bytes; `passhat view` shows more of "
            "them."
        )

    @property
    def left_out_note(self) -> str | None:
        """What to say of those that did not fit."""
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
    """The transcripts that a page of this report has room for; `trials` tell which of them failed.

    One of each outcome of each task comes before a second one, flaky tasks before others, and what
    did not pass before what did. Nothing is left out while something less wanted is kept.
    """
    limits = limits or PageLimits()
    systems = {system.name for system in report.systems}
    asked = [key for key in transcripts if key[0] in systems]
    wanted = _most_wanted_first(report, asked, trials) if asked else []
    fair = limits.max_bytes // max(1, len(wanted)) - _MARKUP
    longest = min(limits.max_transcript, max(SHORTEST, fair))
    kept: dict[TranscriptKey, str] = {}
    turns: set[TranscriptKey] = set()
    room = limits.max_bytes
    for key in wanted:
        text, in_turns = _start_of(transcripts, key, longest)
        room -= _MARKUP + _size(text)
        if room < 0:
            break
        kept[key] = text
        if in_turns:
            turns.add(key)
    return PageTranscripts(
        texts={key: kept[key] for key in asked if key in kept},
        cut_at=longest,
        left_out=len(asked) - len(kept),
        turns=frozenset(turns),
        limits=limits,
    )


def outcomes_of(report: Report, keys: Sequence[TranscriptKey], trials: Trials | None) -> Outcomes:
    """How the runs of these transcripts ended, as far as trials or the report tell."""
    if trials is not None:
        return _outcomes(trials)
    rows = {(s.name, row.name): (0, row) for s in report.systems for row in s.tasks}
    return _from_rows(rows, [key for key in keys if key[:2] in rows])


def page_rows(tasks: Sequence[TaskRow]) -> list[TaskRow]:
    """The lowest rates first, and of one rate by name as people sort names."""
    return sorted(tasks, key=lambda row: (row.rate.value, natural_key(row.name)))[:MOST_ROWS]


def embedded(text: str) -> str:
    r"""A text as JSON that cannot end the script element it stands in.

    >>> print(embedded("<b> é"))
    "\u003cb\u003e é"
    """
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


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


def _start_of(transcripts: Transcripts, key: TranscriptKey, limit: int) -> tuple[str, bool]:
    """A transcript as the page holds it, and whether it came as turns.

    Of another tool's log only what is shown is searched for keys: that takes a while.
    """
    if not isinstance(transcripts, CleanTexts):
        whole, in_turns = read_kept(transcripts[key])
        return _cut(whole, limit), in_turns
    whole, in_turns = read_kept(transcripts.kept(key))
    return clean_text(_cut(whole, limit)), in_turns


def _cut(text: str, limit: int) -> str:
    """At most `limit` bytes of a text as the page holds them, and how much more there was."""
    head = text[:limit]  # no character takes less than a byte
    if _size(head) <= limit:
        return cut_text(text, limit)
    held = embedded(head)[1:].encode()[:limit].decode(errors="ignore")
    while held:
        try:
            return cut_text(text, len(json.loads(f'"{held}"')))
        except ValueError:  # it ends inside an escape
            held = held[:-1]
    return cut_text(text, 0)


def _size(text: str) -> int:
    return len(embedded(text).encode()) - 2
