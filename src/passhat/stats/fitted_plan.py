"""A plan that agrees with a report: at the runs there are, both give the same width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import expm1, log, log1p, sqrt
from typing import Any

import numpy as np

from passhat.dataclass import dataclass
from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.estimate import Interval, Unavailable
from passhat.stats.mean_intervals import wilson_suite_bounds
from passhat.stats.population_mean import population_bounds
from passhat.stats.power import SuitePlan, plan_suite, round_up

WIDEST = 0.5
"""A share is known to plus or minus half without any run."""

GUESSED_ICC = 0.5
"""Before any run: half of the outcome is the task's, half is luck."""

UNKNOWN = Interval(0.0, 1.0)
"""The interval of an ICC of which nothing is known."""
# Of scores in [0, 1]; scores that did not vary at all were too few to show their variance.
_LEAST_VARIANCE, _LARGEST_VARIANCE = 1e-4, 0.25
# Typical tasks of a beta with that mean and spread: 64 of its quantiles.
_LEVELS = (np.arange(64) + 0.5) / 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The variance of a single run's score, the share of it between tasks, and its interval.

    There is no interval where that share is a guess, as after one run, or on one task.
    """

    variance: float
    icc: float
    icc_interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A design that was run, its spread, and half the widths that a report prints for it."""

    tasks: int
    runs: int
    spread: Spread
    this_suite: float | None
    tasks_like_these: float | None

    constant: bool = False
    """Whether every run passed, or every one failed."""

    rate: float | None = None
    """The mean, if it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Widths:
    """Half-widths at any number of runs (or tasks), equal to the one seen at `count` of them.

    An interval is wider than the normal approximation, as it allows for not knowing the spread;
    with few runs of one task it may be narrower. The difference falls with the count itself, the
    rest with its square root: Student's quantile, for one, exceeds the normal one by about one
    part in the degrees of freedom.
    """

    normal: float
    seen: float
    count: int

    @classmethod
    def through(cls, seen: float | None, *, now: float, normal: float, count: int) -> _Widths:
        """Widths through the one seen; another spread changes both parts by the same factor."""
        if seen is None:
            return cls(normal=normal, seen=normal, count=count)
        return cls(normal=normal, seen=normal * seen / now if now else seen, count=count)

    def width(self, count: float) -> float:
        share = self.count / count
        if share >= 1:
            return self.seen * sqrt(share)
        return self.normal * sqrt(share) + (self.seen - self.normal) * share

    def needed(self, target: float) -> float:
        """The count whose width is `target`: a quadratic equation in the root of the share."""
        if self.seen <= target:
            return self.count * (self.seen / target) ** 2
        excess = self.seen - self.normal
        root = 2 * target / (self.normal + sqrt(self.normal**2 + 4 * excess * target))
        return self.count / root**2


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExactWidths:
    """Half-widths of 1 - tail^(1/n), the exact bound while every run ends alike."""

    tail: float

    def width(self, count: float) -> float:
        return -expm1(log(self.tail) / count) / 2

    def needed(self, target: float) -> float:
        return log(self.tail) / log1p(-2 * target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Mean pass rate, variance of a single run, and the share of it between tasks."""

    rate: float
    variance: float
    icc: float


def seen_spread(
    *, variance: float, icc: float, icc_interval: Interval | None, tasks: int, runs: int
) -> Spread:
    """The spread of so many runs; where few tasks ran twice, the share of luck is a guess."""
    spread = Spread(variance=bounded_variance(variance), icc=icc, icc_interval=icc_interval)
    if icc_interval is not None:
        return spread
    if runs < 2 * tasks:
        return replace(spread, icc=GUESSED_ICC)
    return replace(spread, icc_interval=UNKNOWN)


def bounded_variance(variance: float) -> float:
    """The variance of a single run's score, no smaller and no larger than it can be."""
    return min(_LARGEST_VARIANCE, max(variance, _LEAST_VARIANCE))


def plan_from(
    seen: Seen,
    spread: Spread,
    *,
    tasks: int,
    runs: int,
    half_width: float,
    cost_ratio: float | None = None,
    confidence: float,
) -> SuitePlan:
    """`plan_suite` of a spread, with widths that go through those that were seen."""
    rough = partial(
        _rough_plan, half_width=half_width, cost_ratio=cost_ratio, confidence=confidence
    )
    plan = rough(tasks, runs, spread)
    here = _suite_widths(seen, spread, rough, confidence)
    there = _Widths.through(
        seen.tasks_like_these,
        now=rough(seen.tasks, seen.runs, seen.spread).tasks_like_these,
        normal=rough(seen.tasks, runs, spread).tasks_like_these,
        count=seen.tasks,
    )
    # For tasks like these, runs change the width by the same factor as in the approximation.
    factor = there.width(tasks) / plan.tasks_like_these
    widest = factor * rough(tasks, seen.runs, spread).tasks_like_these
    known = spread.icc_interval or UNKNOWN
    least = 0.0 if seen.rate is None else _least_width(seen.rate, tasks, confidence)
    floors = [
        # The share of the variance of a task's mean that no further run takes away.
        max(least, min(WIDEST, widest) * sqrt(icc / (icc + (1 - icc) / seen.runs)))
        for icc in (known.low, known.high)
    ]
    target = min(half_width / factor, 0.499)
    needed = rough(tasks, runs, spread, half_width=target).runs_tasks_like_these
    # Tasks like these never take fewer runs than this suite does.
    own = here.needed(half_width)
    own_runs = max(1, round_up(own / tasks))
    if isinstance(needed, int):
        needed = max(needed, own_runs)
    return replace(
        plan,
        this_suite=min(WIDEST, here.width(tasks * runs)),
        tasks_like_these=min(WIDEST, max(there.width(tasks), here.width(tasks * runs), least)),
        floor=min(WIDEST, max(least, factor * plan.floor)),
        runs_this_suite=own_runs,
        runs_tasks_like_these=_promised(needed, floors, half_width, tasks, known),
        tasks_needed=max(2, round_up(max(there.needed(half_width), own / runs))),
        method=f"{plan.method}, through the intervals of {seen.tasks} x {seen.runs}",
    )


def expected_half_widths(
    expected: Expected, *, tasks: int, runs: int, confidence: float
) -> tuple[float, float]:
    """About half the width that a report will print for this suite and for tasks like these.

    Near 0 and 1 that is more than the normal approximation says: few failures are expected, and
    an interval must allow for those that were not seen.

    >>> often = Expected(rate=0.99, variance=0.0099, icc=0.4)
    >>> widths = expected_half_widths(often, tasks=20, runs=3, confidence=0.95)
    >>> [round(width, 3) for width in widths]
    [0.037, 0.079]
    """
    mean, luck = np.array(expected.rate), expected.variance * (1 - expected.icc) / runs
    between = np.array(expected.variance * expected.icc + luck)
    suite = wilson_suite_bounds(
        mean, np.array(luck / tasks), tasks=tasks, runs=tasks * runs, confidence=confidence
    )
    likes = population_bounds(
        _typical_values(expected.rate, float(between)),
        np.full(_LEVELS.size, tasks / _LEVELS.size),
        confidence,
    )
    here, there = (float(high - low) / 2 for low, high in (suite, likes))
    return here, max(here, there)


def _rough_plan(tasks: int, runs: int, spread: Spread, **options: Any) -> SuitePlan:
    """The normal approximation for a spread."""
    return plan_suite(tasks=tasks, runs=runs, variance=spread.variance, icc=spread.icc, **options)


def _suite_widths(
    seen: Seen, spread: Spread, rough: Callable[..., SuitePlan], confidence: float
) -> _Widths | _ExactWidths:
    """The half-widths for this suite; where the share of luck is a guess, all spread is luck."""
    if seen.constant and seen.spread == spread:
        return _ExactWidths(tail=(1 - confidence) / 2)
    guessed = seen.spread.icc_interval is None
    luck, seen_luck = (replace(of, icc=0.0) if guessed else of for of in (spread, seen.spread))
    return _Widths.through(
        seen.this_suite,
        now=rough(seen.tasks, seen.runs, seen_luck).this_suite,
        normal=rough(seen.tasks, seen.runs, luck).this_suite,
        count=seen.tasks * seen.runs,
    )


def _least_width(rate: float, tasks: int, confidence: float) -> float:
    """Half the interval for tasks like these after endless runs of tasks that are all alike.

    Part of a task was not seen, and that part may never pass.
    """
    low, high = population_bounds(np.array([rate]), np.array([float(tasks)]), confidence)
    return float(high - low) / 2


def _promised(
    needed: int | Unavailable | None,
    floors: list[float],
    half_width: float,
    tasks: int,
    icc: Interval,
) -> int | Unavailable:
    """The runs needed, or why none can be promised: the floor may lie above the target."""
    low, high = floors
    these = "this task" if tasks == 1 else f"these {tasks:,} tasks"
    if high < half_width and isinstance(needed, int):
        return needed
    if low >= half_width:
        # Rounded down: a width that is reached already must not be called out of reach.
        reach = f"below ±{int(100 * low)} points for tasks like these"
        return Unavailable(f"no number of runs on {these} gets {reach}")
    if round(100 * low) == 0:  # a range that starts at 0 would say nothing
        return Unavailable(
            f"whether more runs of {these} are enough for tasks like these is not known"
        )
    bounds = f"ICC {icc.low:.2f} to {icc.high:.2f}"
    floor = f"between ±{100 * low:.0f} and ±{100 * high:.0f} points ({bounds})"
    return Unavailable(f"for tasks like these, more runs of {these} stop helping somewhere {floor}")


def _typical_values(rate: float, variance: float) -> Floats:
    """Task means of a beta with this mean and variance; at the ends of [0, 1] if it has none."""
    room = rate * (1 - rate)
    size = room / variance - 1 if variance > 0 else np.inf
    if room <= 0 or np.isinf(size):
        return np.full(_LEVELS.size, rate)
    if size <= 0:
        return (rate >= 1 - _LEVELS).astype(np.float64)
    values = special.betaincinv(rate * size, (1 - rate) * size, _LEVELS)
    return np.asarray(np.clip(values + rate - values.mean(), 0.0, 1.0))
