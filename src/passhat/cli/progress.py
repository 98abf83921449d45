"""Progress of a run: a bar on a terminal or in a notebook, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, Self

import click

from passhat.dataclass import dataclass
from passhat.messages import plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from passhat.journeys.run_request import RunEvent

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
    running: int = 0
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
                self.running -= 1
                self.passed += trial.outcome is Outcome.PASSED
                self.errored += trial.outcome is Outcome.ERRORED
                self.cost += trial.cost or 0.0
                self.tokens += int(trial.tokens or (trial.tokens_in or 0) + (trial.tokens_out or 0))
                self.busy = ""
            case schedule.TrialStarted():
                self.running += 1
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
    def left(self) -> int:
        return max(0, self.planned - self.done - self.running)

    @property
    def counts(self) -> str:
        """`24/60 trials, 8 running, 28 left`."""
        left = f"{'at most ' if self.most else ''}{self.left:,} left"
        return f"{self.done:,}/{self.planned:,} trials, {self.running} running, {left}"

    def details(self) -> list[str]:
        """The pass rate with its moving interval, the errors, the cost, and the time to go."""
        parts = [self._rate()]
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

    def _rate(self) -> str:
        if not self.done:
            return ""
        from passhat.reporters.formatting import percent, span
        from passhat.stats.sequential import confidence_sequence

        # A person watches it and may stop at any moment, so the interval must hold at every look.
        # It assumes binomial passes; those of full rounds over unequal tasks vary less.
        interval = confidence_sequence(self.done, self.passed)
        return f"passed {percent(self.passed / self.done)} {span(interval, digits=0)}"

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
            self._display.stop()

    def __call__(self, event: RunEvent) -> None:
        from passhat.journeys.run_request import RunOpened
        from passhat.runner.schedule import RunFinished

        self.run.take(event)
        if self._display is None:
            return
        if isinstance(event, RunOpened):  # not before: a refused request needs no bar
            self._display.start()
        self._display.show(event)
        for text in _announcements(event):
            self._display.say(text)
        if isinstance(event, RunFinished):
            self._display.stop()


class _Plain:
    """A line at every tenth of the run, not too often and not too rarely."""

    def __init__(self, run: RunProgress) -> None:
        self._run = run
        self._said = time.monotonic()
        self._step = 0

    def start(self) -> None:
        """Nothing to set up."""

    def stop(self) -> None:
        """Nothing to take down."""

    def show(self, event: RunEvent) -> None:
        run, now = self._run, time.monotonic()
        since = now - self._said
        if since < SECONDS_BETWEEN_LINES:
            return
        step = run.done * STEPS // max(1, run.planned)
        if step > self._step or since >= MOST_SECONDS_WITHOUT_LINE:
            self._said, self._step = now, step
            self.say("; ".join([run.counts, *run.details()]))

    def say(self, text: str) -> None:
        from passhat.reporters.formatting import safe_text

        with suppress(OSError):  # a run that is paid for does not depend on who reads its progress
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
        self._said = ""

    def start(self) -> None:
        from IPython.display import display

        self._handle = display(self, display_id=True)

    def stop(self) -> None:
        self._redraw()

    def show(self, event: RunEvent) -> None:
        if time.monotonic() - self._drawn >= 1 / REDRAWS_PER_SECOND:
            self._redraw()

    def say(self, text: str) -> None:
        self._said = text
        self._redraw()

    def _redraw(self) -> None:
        if self._handle is not None:
            self._drawn = time.monotonic()
            self._handle.update(self)

    def __repr__(self) -> str:
        from passhat.reporters.formatting import safe_text

        parts = [self._run.counts, *self._run.details(), self._said]
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
        case schedule.StopRequested():
            yield f"stopping: {event.grace:g} s for trials under way. Ctrl-C again quits now."
        case schedule.RunFinished():
            yield f"{plural(event.done, 'trial')} in {duration(event.seconds)}"
