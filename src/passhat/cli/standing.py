"""How a run stands while it goes on: what is done, how it went, what it cost, how long it takes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passhat.runner.events import Event


@dataclass(slots=True, kw_only=True)
class Standing:
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

    def take(self, event: Event) -> None:
        """Count one event."""
        from passhat.records import Outcome
        from passhat.runner import events

        match event:
            case events.TrialFinished():
                trial = event.trial
                self.done += 1
                self.running -= 1
                self.passed += trial.outcome is Outcome.PASSED
                self.errored += trial.outcome is Outcome.ERRORED
                self.cost += trial.cost or 0.0
                self.tokens += int(trial.tokens or (trial.tokens_in or 0) + (trial.tokens_out or 0))
                self.busy = ""
            case events.TrialStarted():
                self.running += 1
            case events.RunStarted():
                self.planned, self.kept, self.done = event.planned, event.kept, event.kept
                self.begun = time.monotonic()
            case events.Retry():
                self.busy = f"{event.system} is busy: asked again in {event.wait:.0f} s"
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
        told = [self._rate()]
        if self.errored:
            told.append(f"{self.errored:,} errored")
        told.append(self.spent)
        told.append(self.busy or self._remaining(time.monotonic() - self.begun))
        return [text for text in told if text]

    @property
    def spent(self) -> str:
        """Money where there is a price, else tokens."""
        if self.cost:
            return f"${self.cost:,.4f}" if self.cost < 1 else f"${self.cost:,.2f}"
        return f"{self.tokens:,} tokens" if self.tokens else ""

    def _rate(self) -> str:
        if not self.done:
            return ""
        from passhat.reporters.numbers import percent, span
        from passhat.stats.sequential import confidence_sequence

        # Somebody watches it, and may stop when they like it: it holds at every look at once. In
        # full rounds over unequal tasks the passes vary less than the binomial that it is made for.
        interval = confidence_sequence(self.done, self.passed)
        return f"passed {percent(self.passed / self.done)} {span(interval, digits=0)}"

    def _remaining(self, elapsed: float) -> str:
        new = self.done - self.kept
        if not new or self.done >= self.planned:
            return ""
        seconds = elapsed / new * (self.planned - self.done)
        return f"{'at most' if self.most else 'about'} {duration(seconds)} left"


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
