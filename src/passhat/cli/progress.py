"""Progress on standard error: a moving bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import click

from passhat.cli.standing import Standing, duration
from passhat.messages import plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from passhat.runner.events import Event

REDRAWS_PER_SECOND = 5
SECONDS_BETWEEN_LINES = 5.0
MOST_SECONDS_WITHOUT_LINE = 30.0
WIDEST_BAR = 60
STEPS = 10
"""Lines about the progress of a run that nobody watches."""


class Progress:
    """Hears the events of a run and shows how it stands. Used in `with`, called with events."""

    def __init__(self, standing: Standing | None = None, *, quiet: bool = False) -> None:
        self.standing = standing or Standing()
        self._display: _Plain | _Moving | None = None
        if not quiet:
            self._display = _Moving(self.standing) if _watched() else _Plain(self.standing)

    def __enter__(self) -> Self:
        if self._display is not None:
            self._display.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._display is not None:
            self._display.stop()

    def __call__(self, event: Event) -> None:
        self.standing.take(event)
        if self._display is None:
            return
        self._display.show(event)
        if text := _announcement(event):
            self._display.say(text)


class _Plain:
    """A line at every tenth of the run, not too often and not too rarely."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        self._said = time.monotonic()
        self._step = 0

    def start(self) -> None:
        """Nothing to set up."""

    def stop(self) -> None:
        """Nothing to take down."""

    def show(self, event: Event) -> None:
        standing, now = self._standing, time.monotonic()
        since = now - self._said
        if since < SECONDS_BETWEEN_LINES:
            return
        step = standing.done * STEPS // max(1, standing.planned)
        if step > self._step or since >= MOST_SECONDS_WITHOUT_LINE:
            self._said, self._step = now, step
            self.say("; ".join([standing.counts, *standing.details()]))

    def say(self, text: str) -> None:
        from passhat.reporters.safe_text import safe_text

        click.echo(safe_text(text), err=True)


class _Moving:
    """A bar with two lines of facts, redrawn a few times a second and gone at the end."""

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
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

    def show(self, event: Event) -> None:
        """The bar redraws itself."""

    def say(self, text: str) -> None:
        from rich.text import Text

        from passhat.reporters.safe_text import safe_text

        assert self._console is not None
        self._console.print(Text(safe_text(text)))

    def _draw(self) -> Any:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        from passhat.reporters.safe_text import safe_text

        standing = self._standing
        facts = " · ".join(standing.details())
        # Not to the last column: the ^C that a terminal echoes there would wrap.
        assert self._console is not None
        width = min(WIDEST_BAR, self._console.width - 4)
        drawn = Table.grid()
        drawn.add_row(ProgressBar(max(1, standing.planned), standing.done, width=width))
        drawn.add_row(Text(standing.counts, style="bold", no_wrap=True, overflow="ellipsis"))
        drawn.add_row(Text(safe_text(facts), no_wrap=True, overflow="ellipsis"))
        return drawn


def _watched() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _announcement(event: Event) -> str:
    """What is worth a line of its own."""
    from passhat.runner import events

    match event:
        case events.RunStarted(kept=kept) if kept:
            return f"going on: {kept:,} of {event.planned:,} trials are there already"
        case events.BudgetHit():
            return f"{event.limit} is reached ({event.spent}): nothing new is started"
        case events.Stopping():
            wait = f"{event.grace:g} s for trials under way"
            return f"stopping: {wait}; once more ends it at once"
        case events.RunFinished():
            return f"{plural(event.done, 'trial')} in {duration(event.seconds)}"
        case _:
            return ""
