"""What a run shows: its events, then its answer and its exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO, TypedDict, get_args, get_type_hints

import click

from passhat.cli.exit_codes import ExitCode
from passhat.cli.output import baseline_tile, fitted_transcripts, in_shell, writes_page
from passhat.cli.progress import Progress
from passhat.errors import RunInterrupted, StoreError

if TYPE_CHECKING:
    from passhat.analysis.gates.run_answer import RunAnswer
    from passhat.cli.output import Output
    from passhat.journeys.run_request import OnRunEvent, RunEvent
    from passhat.reporters.answers.comparison import ChangeTile

MOST_REASONS = 3
"""Reasons for failures that are printed when a file has them all."""

_EXIT_CODES = {
    "passed": ExitCode.PASS,
    "failed": ExitCode.FAIL,
    "undecided": ExitCode.UNDECIDED,
    "incomplete": ExitCode.INCOMPLETE,
}


def show_run(
    start: Callable[[OnRunEvent], RunAnswer],
    output: Output,
    *,
    html: str | None = None,
    by_run: bool = False,
    resumed: bool = False,
    store: Path | str | None = None,
    tell_reviewers: Callable[[RunAnswer], bool] | None = None,
) -> ExitCode:
    """Start a run, show its progress and its answer, and return the exit code.

    `html` is a page to write beside what `output` asks for; with `by_run` test cases are single
    runs. Files of events are written during the run; a `resumed` run appends to them.
    `store` is the address of the store with its password, which an answer does not have.
    `tell_reviewers` is called with the answer of a run that was not interrupted, and returns
    whether the change is shown to be worse than its baseline.
    """
    output.check("run")
    live = [path for path in output.paths_out if path.endswith(ENDING)]
    printed = output.format == "ndjson"
    places = _places(output, html)
    for place in places:
        place.check("run")
    with EventStream(live, printed=printed, append=resumed) as stream:
        code = _show(start, output, places, stream, by_run, store, tell_reviewers)
    for path in live:
        output.say(f"wrote {path}")
    for name in stream.broken:
        output.say(f"{name} could not be written to: its last events are missing")
    return code


def _show(
    start: Callable[[OnRunEvent], RunAnswer],
    output: Output,
    places: list[Output],
    stream: EventStream,
    by_run: bool,
    store: Path | str | None,
    tell_reviewers: Callable[[RunAnswer], bool] | None,
) -> ExitCode:
    try:
        with Progress(quiet=output.quiet) as progress:

            def on_event(event: RunEvent) -> None:
                stream(event)
                progress(_in_shell(event))

            answer = replace(start(on_event), by_run=by_run)
    except RunInterrupted as interrupted:
        output.say(str(interrupted))
        if interrupted.resume:
            output.say(f"resume with: {interrupted.resume}")
        return ExitCode(128 + interrupted.signal)
    page: dict[str, Any] = {}
    if answer.transcripts is not None:
        page = fitted_transcripts(answer.report, answer.trials, answer.transcripts, output)
    if any(map(writes_page, places)):
        page["change"] = _change(answer, store, output)
    for place in places:
        place.write(answer, **page)
    for line in _remarks(answer, output):
        output.say(line)
    worse = tell_reviewers is not None and tell_reviewers(answer)
    code = exit_code(answer)
    code = ExitCode.FAIL if worse and code in (ExitCode.PASS, ExitCode.UNDECIDED) else code
    stream.end(answer, code)
    return code


def _in_shell(event: RunEvent) -> RunEvent:
    """The event with its words for a shell, if it has any."""
    from passhat.journeys.run_request import RunOpened

    return replace(event, source=in_shell(event.source)) if isinstance(event, RunOpened) else event


def _change(answer: RunAnswer, store: Path | str | None, output: Output) -> ChangeTile | None:
    """The change against the baseline of the suite, for the page of a stored run."""
    if answer.store is None or answer.run is None or len(answer.report.systems) != 1:
        return None
    from passhat.journeys import Results
    from passhat.journeys.stored_runs import change_of_results

    stored = Results(paths=(str(store or answer.store),), run=answer.run)
    try:
        return baseline_tile(change_of_results(stored))
    except StoreError as error:
        output.say(f"the page does not say what changed since the run before: {error}")
        return None


def exit_code(answer: RunAnswer) -> ExitCode:
    """0 passed, 1 a demand failed, 3 not completed, 4 undecided, 128 and more: a signal."""
    if answer.signal is not None:
        return ExitCode(128 + answer.signal)
    return _EXIT_CODES[answer.outcome]


def _places(output: Output, html: str | None) -> list[Output]:
    """Where the answer goes when the run is over: what was asked for, and the page beside it."""
    files = tuple(path for path in output.paths_out if not path.endswith(ENDING))
    printed = None if output.format == "ndjson" else output.format
    asked = replace(output, paths_out=files, format=printed)
    places = [] if output.format == "ndjson" and not files else [asked]
    if html is not None:
        places.append(replace(output, paths_out=(html,), format=None, option="--html"))
    return places


def _remarks(answer: RunAnswer, output: Output) -> Iterator[str]:
    """Why the run ends as it does; in full if the report is not on the terminal."""
    hidden = not output.shows_text
    yield from (v.sentence for v in answer.judged if hidden or v.word != "PASS")
    yield from (floor.line for floor in answer.floors if hidden or not floor.passed)
    if answer.why_not_passed:
        yield answer.why_not_passed
        if hidden:
            from passhat.reporters.answers.run import failure_lines

            for line in failure_lines(answer, most=MOST_REASONS):
                yield f"  {in_shell(line)}"
    if hidden and answer.undone:
        yield answer.undone


# The events of a run as NDJSON, written during the run for programs that watch it.

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

    `passhat schema events` describes the lines.
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
