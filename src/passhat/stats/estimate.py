"""What a statistic returns, a number with its interval or the reason why there is none.

And intervals made from others: of a difference, a ratio, a row in order, a hull.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, groupby
from math import hypot, sqrt
from typing import Literal

from passhat.dataclass import dataclass, replace, result_dataclass
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


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its interval, the method behind both, and the tasks and runs they come from.

    `interval` is None if only the number is known: `notes` says why. If tasks come in too few
    families to speak for others, `interval` is for tasks of these families and `family_interval`
    for families like these. `by_labels` says that labels of people corrected it: its value, or the
    limits within which it lies, and nothing says where.
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
    by_labels: Literal["value", "limits"] | None = None


@dataclass(frozen=True, slots=True)
class Unavailable:
    """The reason why a number is not known. False in a condition, so `if estimate:` reads well."""

    reason: str

    def __bool__(self) -> Literal[False]:
        return False


Number = Estimate | Unavailable
"""A number with its interval, or the reason why there is none."""


# Intervals made from other intervals: of a difference, a ratio, a row in order, a hull.


def hull(first: Interval, second: Interval) -> Interval:
    """The smallest interval that holds both.

    >>> hull(Interval(0.2, 0.4), Interval(0.3, 0.7))
    Interval(low=0.2, high=0.7)
    """
    return Interval(min(first.low, second.low), max(first.high, second.high))


def error_level(confidence: float) -> float:
    """What is left of 1, as people write it: a p-value below it is shown.

    >>> error_level(0.95), error_level(0.9)
    (0.05, 0.1)
    """
    return round(1 - confidence, 12)


def to_zero(interval: Interval) -> Interval:
    """The interval, extended to 0: for a difference that a test does not tell from 0.

    >>> to_zero(Interval(0.1, 0.7))
    Interval(low=0.0, high=0.7)
    """
    return hull(interval, Interval(0.0, 0.0))


def at_least_as_wide(wider: Number, narrower: Number) -> Number:
    """`wider`, with an interval that holds that of `narrower` too.

    How a suite would do on similar tasks cannot be known better than how it does on its
    own tasks: the runs are as random, and the tasks are random too. Yet the spread between a few
    tasks may by luck be smaller than the noise of their runs, and its interval narrower.

    >>> from passhat.stats.estimate import Estimate
    >>> own = Estimate(value=0.5, interval=Interval(0.3, 0.7), method="", confidence=0.95)
    >>> like = Estimate(value=0.5, interval=Interval(0.4, 0.8), method="", confidence=0.95)
    >>> at_least_as_wide(like, own).interval
    Interval(low=0.3, high=0.8)
    """
    if isinstance(wider, Unavailable) or isinstance(narrower, Unavailable):
        return wider
    if wider.interval is None or narrower.interval is None:
        return wider
    widened = hull(wider.interval, narrower.interval)
    return wider if widened == wider.interval else replace(wider, interval=widened)


def isotonic(estimates: Sequence[Number]) -> list[Number]:
    """Estimates of numbers that cannot fall from one to the next, their ends tightened to agree.

    pass@10 is at least pass@5, so a lower bound of pass@5 is one of pass@10 too. Near k = n an
    interval by itself is far wider than those before it, because it depends on the last runs of few
    tasks. Using several intervals at once costs little coverage: docs/explanation/statistics.md,
    "In the order of k", says how much.

    Numbers over different tasks (some have too few runs for the larger k) need not be in order,
    and are not changed.

    >>> wide = Estimate(value=1.0, interval=Interval(0.5, 1.0), method="", confidence=0.95)
    >>> sure = Estimate(value=0.9, interval=Interval(0.8, 1.0), method="", confidence=0.95)
    >>> isotonic([sure, wide])[1].interval
    Interval(low=0.8, high=1.0)
    """
    ordered: list[Number] = []
    for comparable, group in groupby(estimates, key=_over):
        same = list(group)
        ordered += tightened(same) if comparable else same
    return ordered


def tightened(group: Sequence[Number]) -> list[Estimate]:
    """`isotonic` for estimates over the same tasks, each with an interval."""
    known = [
        (number, number.interval)
        for number in group
        if isinstance(number, Estimate) and number.interval is not None
    ]
    lows = accumulate((float(interval.low) for _, interval in known), max)
    highs = list(accumulate((float(interval.high) for _, interval in reversed(known)), min))[::-1]
    # Each value lies inside its own ends and values are in order: ends can cross by rounding only.
    ends = (Interval(low, max(high, low)) for low, high in zip(lows, highs, strict=True))
    return [
        number if own == interval else replace(number, interval=interval)
        for (number, own), interval in zip(known, ends, strict=True)
    ]


def independent_difference(a: Number, b: Number) -> Number:
    """The first minus the second, where the two are independent.

    The limits are recovered from those of each estimate (MOVER: Zou and Donner 2008), which keeps
    their skew.

    >>> a = Estimate(value=0.6, interval=Interval(0.5, 0.7), method="m", confidence=0.95)
    >>> b = Estimate(value=0.4, interval=Interval(0.3, 0.5), method="m", confidence=0.95)
    >>> answer = independent_difference(a, b)
    >>> round(answer.value, 3), round(answer.interval.low, 3), round(answer.interval.high, 3)
    (0.2, 0.059, 0.341)
    """
    if isinstance(a, Unavailable) or isinstance(b, Unavailable):
        return a if isinstance(a, Unavailable) else b
    if a.interval is None or b.interval is None:
        return Unavailable("a difference needs an interval on both sides")
    value = a.value - b.value
    low = value - hypot(a.value - a.interval.low, b.interval.high - b.value)
    high = value + hypot(a.interval.high - a.value, b.value - b.interval.low)
    return Estimate(
        value=value,
        interval=Interval(max(-1.0, low), min(1.0, high)),
        method=f"MOVER on {a.method}",
        confidence=a.confidence,
        scope=a.scope,
        tasks=a.tasks,
        runs=None if a.runs is None or b.runs is None else a.runs + b.runs,
    )


def ratio_of(numerator: Number, denominator: Number) -> Number:
    """The numerator over the denominator, for two rates estimated from different runs.

    The interval is made from those of the two rates, so it needs no variance and keeps their skew
    (MOVER-R: Donner and Zou, Statistical Methods in Medical Research 2012).

    >>> half = Estimate(value=0.4, interval=Interval(0.3, 0.5), method="given", confidence=0.95)
    >>> whole = Estimate(value=0.8, interval=Interval(0.7, 0.9), method="given", confidence=0.95)
    >>> ratio = ratio_of(half, whole)
    >>> round(ratio.value, 3), round(ratio.interval.low, 3), round(ratio.interval.high, 3)
    (0.5, 0.367, 0.649)
    """
    if isinstance(numerator, Unavailable) or isinstance(denominator, Unavailable):
        return numerator if isinstance(numerator, Unavailable) else denominator
    if denominator.value <= 0:
        return Unavailable("the rate to compare with is 0")
    if numerator.interval is None or denominator.interval is None:
        return Unavailable("a ratio needs the interval of both rates")
    return Estimate(
        value=numerator.value / denominator.value,
        interval=_mover(numerator, denominator, numerator.interval, denominator.interval),
        method="MOVER-R of two independent intervals",
        confidence=min(numerator.confidence, denominator.confidence),
        scope=numerator.scope,
        tasks=numerator.tasks,
        runs=(numerator.runs or 0) + (denominator.runs or 0) or None,
    )


def _over(number: Number) -> tuple[int | None, int] | None:
    """How many tasks it covers, of those with enough runs; None if it has no interval."""
    if isinstance(number, Unavailable) or number.interval is None:
        return None
    return number.tasks, number.excluded_tasks


def _mover(over: Estimate, under: Estimate, top: Interval, base: Interval) -> Interval | None:
    a, b = over.value, under.value
    # Both ends of the denominator must lie on its side of zero, or the ratio has no upper end.
    far, near = base.high * (2 * b - base.high), base.low * (2 * b - base.low)
    if far <= 0 or near <= 0:
        return None
    low = (a * b - sqrt(max(0.0, (a * b) ** 2 - top.low * (2 * a - top.low) * far))) / far
    high = (a * b + sqrt(max(0.0, (a * b) ** 2 - top.high * (2 * a - top.high) * near))) / near
    return Interval(max(0.0, low), high)
