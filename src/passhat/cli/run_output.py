"""What a run shows: its progress and events, then its answer and its exit code."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO, TypedDict, get_args, get_type_hints

import click

from passhat.arguments import STORE
from passhat.cli.output import fitted_transcripts, in_shell
from passhat.dataclass import dataclass
from passhat.errors import ExitCode, RunError, RunInterrupted, StoreError
from passhat.messages import plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from passhat.analysis.comparing.trends import RunVerdict
    from passhat.analysis.gates.run_answer import RunAnswer
    from passhat.cli.output import Output
    from passhat.journeys.run_request import OnRunEvent, RunEvent

MOST_REASONS = 3
"""Reasons for failures that are printed when a file has them all."""

_EXIT_CODES = {
    "passed": ExitCode.PASS,
    "failed": ExitCode.FAIL,
    "undecided": ExitCode.UNDECIDED,
    "incomplete": ExitCode.INCOMPLETE,
}


def own_if_typed() -> None:
    """Let runs know that no other program is in this process, if a shell started it."""
    context = click.get_current_context(silent=True)
    if context is not None and getattr(context.find_root().command, "typed", False):
        from passhat.runner.processes import own_this_process

        own_this_process()


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
    own_if_typed()
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
    page["verdict"] = _verdict(answer, store, output)
    for place in places:
        try:
            place.write(answer, passed=exit_code(answer) is ExitCode.PASS, **page)
        except RunError as error:
            if answer.results is not None:
                error.add_note(f"its trials are stored: passhat report {answer.results} -o FILE")
            raise
    for line in _remarks(answer, output):
        output.say(line)
    worse = tell_reviewers is not None and tell_reviewers(answer)
    code = exit_code(answer)
    code = ExitCode.FAIL if worse and code in (ExitCode.PASS, ExitCode.UNDECIDED) else code
    stream.end(answer, code)
    if page["verdict"] is not None:
        from passhat.journeys.stored_runs import KEPT_IN_COLUMNS, keep_explanation

        assert answer.run is not None, "it has a verdict"
        trials = sum(system.design.trials for system in answer.report.systems)
        if trials >= KEPT_IN_COLUMNS:  # for fewer the store is not opened again
            keep_explanation(answer.run, store or answer.store or STORE)
    return code


def _in_shell(event: RunEvent) -> RunEvent:
    """The event with its words for a shell, if it has any."""
    from passhat.journeys.run_request import RunOpened

    return replace(event, source=in_shell(event.source)) if isinstance(event, RunOpened) else event


def _verdict(answer: RunAnswer, store: Path | str | None, output: Output) -> RunVerdict | None:
    """What is said of a stored run against those before it."""
    if answer.store is None or answer.run is None:
        return None
    from passhat.journeys.stored_runs import verdict_on_ended

    try:
        return verdict_on_ended(answer.run, store or answer.store)
    except StoreError as error:
        output.say(f"the run is not compared with those before it: {error}")
        return None


def exit_code(answer: RunAnswer) -> ExitCode:
    """0 passed, 1 a demand failed, 3 not completed, 4 undecided, 128 and more: a signal."""
    if answer.signal is not None:
        return ExitCode(128 + answer.signal)
    return _EXIT_CODES[answer.outcome]


def _places(output: Output, html: str | None) -> list[Output]:
    """Where the answer goes when the run is over: what was asked for, and the page beside it."""
    files = tuple(path for path in output.paths_out if not path.endswith(ENDING))
    streams = output.format == "ndjson"
    printed = None if streams else output.format
    asked = replace(output, paths_out=files, format=printed, judges=not streams)
    places = [] if streams and not files else [asked]
    if html is not None:
        page = replace(asked, paths_out=(html,), format=None, judges=False, option="--html")
        places.append(page)
    return places


def _remarks(answer: RunAnswer, output: Output) -> Iterator[str]:
    """Why the run ends as it does, if a program reads standard output."""
    if output.shows_text:
        return
    yield from (v.sentence for v in answer.judged)
    yield from (floor.line for floor in answer.floors)
    if answer.why_not_passed:
        from passhat.reporters.answers.run import failure_lines

        yield answer.why_not_passed
        for line in failure_lines(answer, most=MOST_REASONS):
            yield f"  {in_shell(line)}"
    if answer.undone:
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
    "FilesChanged": "files_changed",
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

    `passhat --schema events` describes the lines.
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
                "verdict": verdict.status,
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
        line = make(event.__name__, own | {name: hints[name] for name in _field_names(kind, about)})
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
    return _CHOSEN.get(kind) or [field.name for field in fields(about)]


# Progress of a run: a bar on a terminal or in a notebook, a line now and then elsewhere.

REDRAWS_PER_SECOND = 5

SHORTEST_PAUSE_SHOWN = 1.0
WIDEST_BAR = 60

# Without a terminal: a line at every tenth of the run, 5 to 30 seconds apart.
STEPS = 10
SECONDS_BETWEEN_LINES = 5.0
MOST_SECONDS_WITHOUT_LINE = 30.0


@dataclass(slots=True, kw_only=True)
class RunProgress:
    """Counts of a run in progress, fed by its events.

    `passed`, `errored`, `cost` and `tokens` may begin with those of an earlier start of the run.
    """

    passed: int = 0
    errored: int = 0
    cost: float = 0.0
    tokens: int = 0
    planned: int = 0
    kept: int = 0
    done: int = 0
    most: bool = False
    busy: str = ""
    begun: float = field(default_factory=time.monotonic)

    def take(self, event: RunEvent) -> None:
        """Count one event."""
        from passhat.journeys.run_request import RunOpened
        from passhat.records import Outcome
        from passhat.runner import schedule

        match event:
            case schedule.TrialFinished():
                trial = event.trial
                self.done += 1
                self.passed += trial.outcome is Outcome.PASSED
                self.errored += trial.outcome is Outcome.ERRORED
                self.cost += trial.cost or 0.0
                self.tokens += int(trial.tokens or (trial.tokens_in or 0) + (trial.tokens_out or 0))
                self.busy = ""
            case RunOpened():
                self.passed, self.errored = event.passed, event.errored
                self.most = event.at_most
            case schedule.RunStarted():
                self.planned, self.kept, self.done = event.planned, event.kept, event.kept
                self.begun = time.monotonic()
            case schedule.Retry():
                self.busy = f"{event.system} is busy: next try in {event.wait:.0f} s"
            case _:
                pass

    @property
    def counts(self) -> str:
        """`24/60 trials`."""
        if not self.planned:  # not known before the run starts
            return "starting"
        of = " of at most " if self.most else "/"
        return f"{self.done:,}{of}{self.planned:,} trials"

    def details(self) -> list[str]:
        """How many passed and errored, the cost, and the time to go.

        A rate that moves while somebody may stop the run invites stopping at a lucky moment.
        """
        parts = [f"{self.passed:,} passed" if self.done else ""]
        if self.errored:
            parts.append(f"{self.errored:,} errored")
        parts.append(self.spent)
        parts.append(self.busy or self._remaining(time.monotonic() - self.begun))
        return [text for text in parts if text]

    @property
    def spent(self) -> str:
        """The cost if prices are known, else tokens."""
        if self.cost:
            return f"${self.cost:,.4f}" if self.cost < 1 else f"${self.cost:,.2f}"
        return f"{self.tokens:,} tokens" if self.tokens else ""

    def _remaining(self, elapsed: float) -> str:
        new = self.done - self.kept
        if not new or self.done >= self.planned:
            return ""
        seconds = elapsed / new * (self.planned - self.done)
        return f"{'at most' if self.most else 'about'} {duration(seconds)} left"


class Progress:
    """Shows how far a run is: pass it to a run as `on_event`.

    It draws a bar on a terminal and in a notebook, and prints a line now and then elsewhere.
    Used in `with`, it also removes its bar when the run raises.
    """

    def __init__(self, run: RunProgress | None = None, *, quiet: bool = False) -> None:
        self.run = run or RunProgress()
        self._display = None if quiet else _fitting_display()(self.run)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._display is not None:
            with suppress(OSError):
                self._display.stop()

    def __call__(self, event: RunEvent) -> None:
        from passhat.journeys.run_request import RunOpened
        from passhat.runner.schedule import RunFinished

        self.run.take(event)
        if self._display is None:
            return
        # A run that is paid for does not depend on who reads this: a terminal may be closed.
        with suppress(OSError):
            if isinstance(event, RunOpened):  # not before: a refused request needs no bar
                self._display.start()
            self._display.show(event)
            # Where nothing was left to run, the trials took no time.
            idle = isinstance(event, RunFinished) and 0 < self.run.done == self.run.kept
            for text in () if idle else _announcements(event):
                self._display.say(text)
            if isinstance(event, RunFinished):
                self._display.stop()


class _Plain:
    """A line at every tenth of the run, not too often and not too rarely."""

    def __init__(self, run: RunProgress) -> None:
        self._run = run
        self._last = time.monotonic()
        self._step = 0

    def start(self) -> None:
        """Nothing to set up."""

    def stop(self) -> None:
        """Nothing to take down."""

    def show(self, event: RunEvent) -> None:
        run, now = self._run, time.monotonic()
        since = now - self._last
        if since < SECONDS_BETWEEN_LINES:
            return
        step = run.done * STEPS // max(1, run.planned)
        if step > self._step or since >= MOST_SECONDS_WITHOUT_LINE:
            self._last, self._step = now, step
            self.say("; ".join([run.counts, *run.details()]))

    def say(self, text: str) -> None:
        from passhat.reporters.formatting import safe_text

        click.echo(safe_text(text), err=True)


class _Moving:
    """A bar with two lines of facts, redrawn a few times a second and gone at the end."""

    def __init__(self, run: RunProgress) -> None:
        self._run = run
        self._console: Console | None = None
        self._live: Live | None = None

    def start(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False)
        self._live = Live(
            get_renderable=self._draw,
            console=self._console,
            refresh_per_second=REDRAWS_PER_SECOND,
            transient=True,
        )
        self._live.start()
        # A second Ctrl-C ends the process at once: it must not leave the cursor hidden.
        self._console.show_cursor(True)

    def stop(self) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, event: RunEvent) -> None:
        """The bar redraws itself."""

    def say(self, text: str) -> None:
        from rich.text import Text

        from passhat.reporters.formatting import safe_text

        assert self._console is not None
        self._console.print(Text(safe_text(text)))

    def _draw(self) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        from passhat.reporters.formatting import safe_text

        run = self._run
        facts = " · ".join(run.details())
        # Not to the last column: the ^C that a terminal echoes there would wrap.
        assert self._console is not None
        width = min(WIDEST_BAR, self._console.width - 4)
        drawn = Table.grid()
        drawn.add_row(ProgressBar(max(1, run.planned), run.done, width=width))
        drawn.add_row(Text(run.counts, style="bold", no_wrap=True, overflow="ellipsis"))
        drawn.add_row(Text(safe_text(facts), no_wrap=True, overflow="ellipsis"))
        return drawn


class _Notebook:
    """A bar below the cell, redrawn in place; it stays with its last state."""

    def __init__(self, run: RunProgress) -> None:
        self._run = run
        self._handle: Any = None
        self._drawn = 0.0
        self._line = ""

    def start(self) -> None:
        from IPython.display import display

        self._handle = display(self, display_id=True)

    def stop(self) -> None:
        self._redraw()

    def show(self, event: RunEvent) -> None:
        if time.monotonic() - self._drawn >= 1 / REDRAWS_PER_SECOND:
            self._redraw()

    def say(self, text: str) -> None:
        self._line = text
        self._redraw()

    def _redraw(self) -> None:
        if self._handle is not None:
            self._drawn = time.monotonic()
            self._handle.update(self)

    def __repr__(self) -> str:
        from passhat.reporters.formatting import safe_text

        parts = [self._run.counts, *self._run.details(), self._line]
        return safe_text(" · ".join(text for text in parts if text))

    def _repr_html_(self) -> str:
        from html import escape

        run = self._run
        bar = f'<progress style="width:24em" max="{max(1, run.planned)}" value="{run.done}">'
        return f"<div>{bar}</progress><br>{escape(repr(self))}</div>"


def duration(seconds: float) -> str:
    """Seconds as people say them.

    >>> duration(4.2), duration(75), duration(7300)
    ('4 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _fitting_display() -> type[_Plain | _Moving | _Notebook]:
    """A bar on a terminal, lines elsewhere."""
    if "ipykernel" in sys.modules:
        from IPython.core.getipython import get_ipython

        if hasattr(get_ipython(), "kernel"):
            return _Notebook
    watched = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return _Moving if watched else _Plain


def _announcements(event: RunEvent) -> Iterator[str]:
    """The events that get a line."""
    from passhat.journeys.run_request import RunOpened
    from passhat.runner import schedule

    match event:
        case RunOpened():
            if event.faults_off:
                yield "the suite's faults are off: --faults runs it with and without them"
            run = f"; run {event.run}" if event.run is not None else ""
            yield f"{event.suite}: {event.size}; {event.source}{run}"
            yield from filter(None, (event.passed_over, event.too_few))
        case schedule.RunStarted(kept=kept) if kept:
            yield f"resuming: {kept:,} of {event.planned:,} trials are already done"
        case schedule.WorkersChanged(workers=0):
            yield "no workers yet: start some with `passhat worker --store URL`"
        case schedule.WorkersChanged():
            yield f"{plural(event.workers, 'worker')}, {plural(event.hands, 'trial')} at a time"
        case schedule.Paused() if event.wait >= SHORTEST_PAUSE_SHOWN:
            yield (
                "many trials failed one after another: waiting "
                f"{duration(event.wait)} before the next, in case it is an outage"
            )
        case schedule.BudgetHit():
            yield f"{event.limit} is reached ({event.spent}): no new trial is started"
        case schedule.FilesChanged():
            yield (
                f"changed during the run, by an agent or by you: {', '.join(event.files)}. Every "
                "trial was judged by what was there before it; look before you run again"
            )
        case schedule.StopRequested():
            yield f"stopping: {event.grace:g} s for trials under way. Ctrl-C again quits now."
        case schedule.RunFinished():
            yield f"{plural(event.done, 'trial')} in {duration(event.seconds)}"
