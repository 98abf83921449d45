"""What a statistic returns: a number with its interval, or the reason why there is none."""

from __future__ import annotations

from typing import Literal

from passhat.dataclass import dataclass, short_dataclass
from passhat.errors import ArgumentError

Scope = Literal["this suite", "tasks like these"]

THIS_SUITE: Scope = "this suite"
TASKS_LIKE_THESE: Scope = "tasks like these"

FEW_TASKS = 5
"""Numbers over fewer tasks carry a note."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval [low, high].

    >>> Interval(0.25, 0.75).width
    0.5
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ArgumentError("interval", "must have low <= high", (self.low, self.high))

    @property
    def width(self) -> float:
        """How far the ends are apart."""
        return self.high - self.low

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its interval, the method behind both, and the tasks and runs they come from.

    `interval` is None if only the number is known: `notes` says why. If tasks come in too few
    families to speak for others, `interval` is for tasks of these families and `family_interval`
    for families like these.
    """

    value: float
    interval: Interval | None
    method: str
    confidence: float
    scope: Scope | None = None
    tasks: int | None = None
    runs: int | None = None
    excluded_tasks: int = 0
    seed: int | None = None
    notes: tuple[str, ...] = ()
    families: int | None = None
    family_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The reason why a number is not known. False in a condition, so `if estimate:` reads well."""

    reason: str

    def __bool__(self) -> bool:
        return False


Number = Estimate | Unavailable
"""A number with its interval, or the reason why there is none."""
