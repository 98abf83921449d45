"""The events of a run as NDJSON: one line for each, written during the run.

`passhat schema events` describes the lines. They are for programs that watch a run; the other
formats are written when it is over.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO, TypedDict, get_args, get_type_hints

import click

if TYPE_CHECKING:
    from passhat.analysis.gates.run_answer import RunAnswer
    from passhat.journeys.run_request import RunEvent

SCHEMA: Literal["passhat.events/1"] = "passhat.events/1"
ENDING = ".ndjson"


_KINDS = {
    "RunOpened": "run_opened",
    "RunStarted": "run_started",
    "TrialStarted": "trial_started",
    "TrialFinished": "trial_finished",
    "Retry": "retry",
    "Paused": "paused",
    "BudgetHit": "budget_hit",
    "WorkersChanged": "workers_changed",
    "StopRequested": "stopping",
    "RunFinished": "run_finished",
}
"""The name of each event's line; the line has the fields of the event."""
_CHOSEN = {
    "run_opened": ("suite", "size", "source", "run", "at_most"),
    "trial_started": ("system", "task", "trial"),
}
"""The fields of lines that leave out some of their event's fields."""


class VerdictEvent(TypedDict):
    """The verdict of one gate on one system."""

    event: Literal["verdict"]
    time: str
    gate: str
    system: str
    verdict: Literal["PASS", "FAIL", "UNDECIDED"]
    sentence: str
    value: float | None
    low: float | None
    high: float | None


class AnswerEvent(TypedDict):
    """The last line of a run that was not interrupted: how it ended, and its exit code."""

    event: Literal["answer"]
    time: str
    outcome: Literal["passed", "failed", "undecided", "incomplete"]
    exit_code: int
    run: str | None


class EventStream:
    """Writes events to files and to standard output, one whole line at a time.

    A place that can no longer be written to (a full disk, a closed pipe) is dropped: it must not
    end a run that is being paid for. `broken` lists such places.
    """

    def __init__(self, paths: Sequence[str], *, printed: bool = False, append: bool = False):
        self.broken: list[str] = []
        self._files = ExitStack()
        self._places: dict[str, TextIO] = {"standard output": sys.stdout} if printed else {}
        for path in paths:
            self._places[path] = self._open(path, append=append)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def __call__(self, event: RunEvent) -> None:
        """Write one event of a run."""
        if self._places:
            self._write(_event_facts(event))

    def end(self, answer: RunAnswer, exit_code: int) -> None:
        """Write the verdicts and how the run ended."""
        for verdict in answer.judged:
            value = getattr(verdict.estimate, "value", None)
            interval = getattr(verdict.estimate, "interval", None)
            self._write({
                "event": "verdict",
                "gate": verdict.gate.label,
                "system": verdict.system,
                "verdict": verdict.word,
                "sentence": verdict.sentence,
                "value": value,
                "low": None if interval is None else interval.low,
                "high": None if interval is None else interval.high,
            })  # fmt: skip
        how = {"outcome": answer.outcome, "exit_code": exit_code, "run": answer.run}
        self._write({"event": "answer", **how})

    def _open(self, path: str, *, append: bool) -> TextIO:
        try:
            return self._files.enter_context(
                Path(path).open("a" if append else "w", encoding="utf-8")
            )
        except OSError as error:
            raise click.UsageError(f"-o {path}: {error.strerror or error}") from error

    def _write(self, facts: dict[str, Any]) -> None:
        stamped = {"event": facts.pop("event"), "time": datetime.now(UTC).isoformat(), **facts}
        line = json.dumps(stamped) + "\n"
        for name, place in list(self._places.items()):
            try:
                place.write(line)
                place.flush()
            except OSError:
                del self._places[name]
                self.broken.append(name)


def event_types() -> Iterator[type]:
    """The type of each line, for the schema."""
    from passhat.journeys.run_request import RunEvent
    from passhat.records import Ticket, Trial

    inside = {"trial_started": Ticket, "trial_finished": Trial}
    for event in get_args(RunEvent):
        kind = _KINDS[event.__name__]
        about = inside.get(kind, event)
        hints = get_type_hints(about)
        if "outcome" in hints:
            hints["outcome"] = Literal["passed", "failed", "errored"]
        own: dict[str, Any] = {"event": Literal[kind], "time": str}
        own |= {"schema": Literal["passhat.events/1"]} if kind == "run_opened" else {}
        make: Any = TypedDict  # type checkers allow no name that is computed
        line = make(event.__name__, own | {one: hints[one] for one in _field_names(kind, about)})
        line.__doc__ = event.__doc__
        yield line
    yield from (VerdictEvent, AnswerEvent)


def _event_facts(event: RunEvent) -> dict[str, Any]:
    """The content of a line: the fields of its event, or of the event's trial."""
    kind = _KINDS[type(event).__name__]
    inside = {"trial_started": "ticket", "trial_finished": "trial"}.get(kind)
    about = getattr(event, inside) if inside else event
    facts = {name: getattr(about, name) for name in _field_names(kind, about)}
    if kind == "trial_finished":
        facts["outcome"] = facts["outcome"].name.lower()
    return {"event": kind, **({"schema": SCHEMA} if kind == "run_opened" else {}), **facts}


def _field_names(kind: str, about: Any) -> Sequence[str]:
    return _CHOSEN.get(kind) or [one.name for one in fields(about)]
