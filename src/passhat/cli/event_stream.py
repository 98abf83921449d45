"""What happens in a run, as NDJSON: one line for each event, written while the run lasts.

The lines keep to `passhat schema events`. They are for programs that watch a run: the other formats
are written when it is over.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO, TypedDict, get_args, get_type_hints

import click

if TYPE_CHECKING:
    from passhat.analysis.gates.run_answer import RunAnswer
    from passhat.journeys.run_events import RunEvent

SCHEMA: Literal["passhat.events/1"] = "passhat.events/1"
ENDING = ".ndjson"
_OWN = ("event", "time", "schema")
"""What a line has beside the fields of its event."""


class OpenedEvent(TypedDict):
    """A run is about to begin: what it may run at most, and its key in the store."""

    event: Literal["run_opened"]
    time: str
    schema: Literal["passhat.events/1"]
    suite: str
    size: str
    source: str
    run: str | None


class StartedEvent(TypedDict):
    """Trials begin: how many are planned, how many are there already, how many run at once."""

    event: Literal["run_started"]
    time: str
    planned: int
    kept: int
    concurrency: int


class TrialStartedEvent(TypedDict):
    """One trial begins."""

    event: Literal["trial_started"]
    time: str
    system: str
    task: str
    trial: int


class TrialFinishedEvent(TypedDict):
    """One trial has ended and is kept; null where something is not known."""

    event: Literal["trial_finished"]
    time: str
    system: str
    task: str
    trial: int
    outcome: Literal["passed", "failed", "errored"]
    score: float | None
    seed: int | None
    tokens_in: float | None
    tokens_out: float | None
    tokens: float | None
    cost: float | None
    seconds: float | None
    turns: float | None
    tool_calls: float | None
    tools: list[str]
    level: str | None
    tags: list[str]
    family: str | None
    weight: float | None
    error: str | None
    started: str | None


class RetryEvent(TypedDict):
    """A provider was busy and is asked again after `wait` seconds."""

    event: Literal["retry"]
    time: str
    system: str
    attempt: int
    wait: float
    reason: str


class PausedEvent(TypedDict):
    """Many trials failed one after another: nothing starts for `wait` seconds."""

    event: Literal["paused"]
    time: str
    wait: float


class BudgetEvent(TypedDict):
    """A budget is spent: no new trial starts."""

    event: Literal["budget_hit"]
    time: str
    limit: str
    spent: str


class WorkersEvent(TypedDict):
    """Workers came or went; `hands` is how many trials they run at once."""

    event: Literal["workers_changed"]
    time: str
    workers: int
    hands: int


class StoppingEvent(TypedDict):
    """A signal stops the run; trials under way have `grace` seconds."""

    event: Literal["stopping"]
    time: str
    signal: int
    grace: float


class FinishedEvent(TypedDict):
    """No trial runs any more."""

    event: Literal["run_finished"]
    time: str
    ending: Literal["finished", "settled", "budget", "interrupted"]
    done: int
    undone: int
    seconds: float


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


EventObject = (
    OpenedEvent
    | StartedEvent
    | TrialStartedEvent
    | TrialFinishedEvent
    | RetryEvent
    | PausedEvent
    | BudgetEvent
    | WorkersEvent
    | StoppingEvent
    | FinishedEvent
    | VerdictEvent
    | AnswerEvent
)


_LINES: dict[str, type] = {
    "RunOpened": OpenedEvent,
    "RunStarted": StartedEvent,
    "TrialStarted": TrialStartedEvent,
    "TrialFinished": TrialFinishedEvent,
    "Retry": RetryEvent,
    "Paused": PausedEvent,
    "BudgetHit": BudgetEvent,
    "WorkersChanged": WorkersEvent,
    "StopRequested": StoppingEvent,
    "RunFinished": FinishedEvent,
}
"""The line of each event of a run; its fields have the names of the event's."""


class EventStream:
    """Writes events to files and to standard output, each line complete when it is written.

    A place that cannot be written to any more (a full disk, a closed pipe) is left out from then
    on: it must not end a run that is being paid for. `broken` says which.
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
    yield from get_args(EventObject)


def _event_facts(event: RunEvent) -> dict[str, Any]:
    """What a line says about an event: the fields of its type, read off the event."""
    line = _LINES[type(event).__name__]
    names = [name for name in line.__annotations__ if name not in _OWN]
    inside = {TrialFinishedEvent: "trial", TrialStartedEvent: "ticket"}.get(line)
    about = getattr(event, inside) if inside else event
    facts = {name: getattr(about, name) for name in names}
    if line is TrialFinishedEvent:
        facts["outcome"] = facts["outcome"].name.lower()
    (kind,) = get_args(get_type_hints(line)["event"])
    schema = {"schema": SCHEMA} if line is OpenedEvent else {}
    return {"event": kind, **schema, **facts}
