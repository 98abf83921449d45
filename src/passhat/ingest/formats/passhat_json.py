"""Answers that passhat wrote with `report --json` and `run --json`, and the events of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from typing import Annotated, Any, Literal, get_type_hints

import msgspec

from passhat.arguments import CONFIDENCE
from passhat.errors import ReadError
from passhat.ingest.document import Document, decode
from passhat.ingest.readers import Reading, TrialTable
from passhat.messages import short, short_value
from passhat.records import Outcome, Trial, trial
from passhat.records.columns import ColumnMap

READING = Reading(
    format="passhat report",
    versions="JSON of passhat report and passhat run; events of passhat run (NDJSON)",
    system="name of the agent",
    task="name of the task",
    run="order of the letters in sequence",
    outcome="P, F or E in sequence; counts if there is none",
    derived=True,
)

_EVENTS = b'"passhat.events/1"'
_SCHEMAS = (b'"passhat.report/1"', b'"passhat.run/1"', _EVENTS)
_LETTERS = {"P": Outcome.PASSED, "F": Outcome.FAILED, "E": Outcome.ERRORED}
_CLOSE = 1e-9
"""Two means of the same counts differ by less, in whatever order they were added up."""

# Counts beyond this cannot come from runs, and would not fit into the arithmetic.
Count = Annotated[int, msgspec.Meta(ge=0, le=10**12)]


class SavedTask(msgspec.Struct):
    """One task of a saved report."""

    name: str
    passed: Count
    failed: Count
    errored: Count
    rate: float | None = None
    mean_score: float | None = None
    sequence: str | None = None


class _Value(msgspec.Struct):
    value: float | None = None


class SavedSystem(msgspec.Struct):
    """One system of a saved report, as far as its runs can be read back."""

    name: str
    task_table: list[SavedTask]
    errors: int = 0
    metrics: dict[str, _Value] = {}
    seeds: dict[str, Any] = {}
    features: dict[str, Any] = {}
    tools: dict[str, Any] = {}
    levels: dict[str, Any] = {}
    tags: dict[str, Any] = {}


class _Options(msgspec.Struct):
    errors: str = "fail"
    confidence: float = CONFIDENCE


class _Source(msgspec.Struct):
    ended: trial.Ended | None = None


class _Provenance(msgspec.Struct):
    sources: list[_Source] = []
    options: _Options = msgspec.field(default_factory=_Options)


class SavedReport(msgspec.Struct):
    """A report as `passhat report --json` writes it."""

    systems: list[SavedSystem]
    notes: list[str] = []
    provenance: _Provenance = msgspec.field(default_factory=_Provenance)

    @property
    def tasks(self) -> Iterator[tuple[SavedSystem, SavedTask]]:
        """Every task of every system."""
        return ((system, task) for system in self.systems for task in system.task_table)

    @property
    def ended(self) -> trial.Ended | None:
        """How its trials ended; older versions said it in a note."""
        ends = (source.ended for source in self.provenance.sources)
        return trial.first_ended(ends) or trial.noted_end(self.notes)

    @property
    def counts_only(self) -> bool:
        """Whether the order of runs is missing, as in reports on big tables."""
        return any(task.sequence is None for _, task in self.tasks)


class _SavedRun(msgspec.Struct):
    report: SavedReport


class _Event(msgspec.Struct):
    event: str
    at_most: bool = False
    planned: int = 0
    kept: int = 0


def recognises(document: Document) -> bool:
    """Whether its schema is a report's, a run's or that of the events of a run."""
    schema = document.first.get("schema")
    return schema is not None and bytes(schema) in _SCHEMAS


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """The runs of each task in their order."""
    if bytes(document.first.get("schema", b"")) == _EVENTS:
        return _read_events(document)
    report = saved_report(document)
    if report.counts_only:
        raise ReadError(
            f"{document.name}: holds how many trials of each task passed, but not their order; "
            "`passhat report` and `read_tallies` can use such counts, all else needs what the "
            "report was made from"
        )
    rows = [
        {"system": system.name, "task": task.name, "trial": number, "outcome": _LETTERS[letter]}
        for system, task in report.tasks
        for number, letter in enumerate(task.sequence or "")
    ]
    return TrialTable.of_rows(
        rows,
        entry="run",
        notes=saved_notes(report),
        ended=report.ended,
        read_as={"outcome": "P, F or E in sequence"},
        left_out=left_out_parts(report),
    )


def _read_events(document: Document) -> TrialTable:
    """The trials that finished, line by line; other events hold none."""
    rows, ended, shape = [], False, _finished_trial()
    notes = list[str]()
    planned = kept = 0
    by_gates = False
    for number, line in document.lines(msgspec.Raw):
        where = f"{document.name}, line {number}"
        event = decode(where, line, _Event)
        ended = event.event == "answer"
        by_gates = by_gates or event.at_most
        planned, kept = event.planned or planned, event.kept or kept
        if event.event == "trial_finished":
            row = msgspec.structs.asdict(decode(where, line, shape))
            rows.append({**row, "outcome": Outcome[row["outcome"].upper()], "line": number})
    if not ended:
        notes.append("the run had not ended: trials that ran later are missing")
    facts = {"run": "trial", "outcome": "outcome of each trial_finished"}
    early = ended and kept + len(rows) < planned
    how: trial.Ended | None = ("early" if early else "by gates") if by_gates else None
    return TrialTable.of_rows(rows, notes=notes, read_as=facts, ended=how)


def _finished_trial() -> type[msgspec.Struct]:
    """The type of a line `trial_finished`: the fields of a Trial, with its outcome as a word."""
    words = {"trial": Count, "outcome": Literal["passed", "failed", "errored"]}
    kinds = get_type_hints(Trial) | words
    return msgspec.defstruct(
        "FinishedTrial",
        [
            (field.name, kinds[field.name], *(() if field.default is MISSING else (field.default,)))
            for field in fields(Trial)
        ],
    )


def saved_report(document: Document) -> SavedReport:
    """The report in a file, checked: what a sequence shows must be what was counted."""
    whole_run = document.has("report")
    report = document.decode(_SavedRun).report if whole_run else document.decode(SavedReport)
    seen: set[tuple[str, str]] = set()
    for system, task in report.tasks:
        where = f'{document.name}, system "{short(system.name)}", task "{short(task.name)}"'
        if (system.name, task.name) in seen:
            raise ReadError(f"{where}: occurs twice")
        seen.add((system.name, task.name))
        if task.sequence is not None:
            _check_sequence(where, task, task.sequence)
    return report


def saved_notes(report: SavedReport) -> list[str]:
    """What to know before comparing with the saved numbers."""
    notes = []
    options = report.provenance.options
    asked = [f"`errors={short(options.errors)!r}`"] if options.errors != "fail" else []
    asked += [f"`confidence={options.confidence:g}`"] if options.confidence != CONFIDENCE else []
    if asked:
        notes.append(
            f"the saved report was made with {' '.join(asked)}: pass the same for its numbers"
        )
    lost = sum(system.errors for system in report.systems)
    lost -= sum(task.errored for _, task in report.tasks)
    if lost > 0:
        notes.append(f"{lost:,} errored trials of tasks that the saved report left out are missing")
    if weighted := [system.name for system in report.systems if _is_weighted(system)]:
        notes.append(
            f'the saved pass@1 of "{short(weighted[0])}" is no plain mean over its tasks: their '
            "weights or families are not in the file, so these numbers differ from the saved ones"
        )
    return notes


def left_out_parts(report: SavedReport) -> list[str]:
    """What the trials had, as the report shows, and its JSON does not hold run by run."""
    systems = report.systems
    held = {
        "scores": any(_is_scored(task) for _, task in report.tasks),
        "seeds": any(system.seeds.get("means") for system in systems),
        "tools": any(system.tools for system in systems),
        "levels": any(system.levels for system in systems),
        "tags": any(system.tags for system in systems),
        "texts of errors": any(task.errored for _, task in report.tasks),
    }
    features = dict.fromkeys(name for system in systems for name in system.features)
    parts = [*(name for name, there in held.items() if there), *map(short, features)]
    return [", ".join(parts)] if parts else []


def _check_sequence(where: str, task: SavedTask, sequence: str) -> None:
    if odd := set(sequence) - _LETTERS.keys():
        shown = short_value(min(odd))
        raise ReadError(f"{where}, sequence: must be written in P, F and E, got {shown}")
    counted = task.passed, task.failed, task.errored
    counts = tuple(map(sequence.count, _LETTERS))
    if counts != counted:
        raise ReadError(
            f"{where}: its sequence has {_counted(counts)}, but it counts {_counted(counted)}; "
            "was the file edited?"
        )


def _counted(counts: Sequence[int]) -> str:
    return f"{counts[0]:,} passed, {counts[1]:,} failed and {counts[2]:,} errored"


def _is_scored(task: SavedTask) -> bool:
    """Whether the task's mean score is not merely its share of passes."""
    if task.rate is None or task.mean_score is None:
        return False
    return abs(task.rate - task.mean_score) > _CLOSE


def _is_weighted(system: SavedSystem) -> bool:
    rates = [task.rate for task in system.task_table if task.rate is not None]
    saved = system.metrics.get("pass^1", _Value()).value
    return bool(rates) and saved is not None and abs(sum(rates) / len(rates) - saved) > _CLOSE
