"""A plan that meets the intervals of a report: at the runs there are, both give the same width."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, sqrt

from passhat.analysis.evidence import Evidence
from passhat.analysis.report import Metric
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Scope,
    Unavailable,
)
from passhat.stats.power import SuitePlan, plan_suite

WIDEST = 0.5
"""A share is known to plus or minus half without any run."""

UNKNOWN = Interval(0.0, 1.0)
"""Where an ICC may lie of which nothing is known."""


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
    """A design that was run, its spread, and half the width of what a report prints of it."""

    tasks: int
    runs: int
    spread: Spread
    this_suite: float | None
    tasks_like_these: float | None

    @classmethod
    def of(cls, evidence: Evidence, spread: Spread, mean: Metric) -> Seen:
        return cls(
            tasks=len(evidence.tasks),
            runs=evidence.typical_runs,
            spread=spread,
            this_suite=_half_width(mean, THIS_SUITE),
            tasks_like_these=_half_width(mean, TASKS_LIKE_THESE),
        )


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

    def rough(count: int, times: int, of: Spread, target: float = half_width) -> SuitePlan:
        return plan_suite(
            tasks=count,
            runs=times,
            variance=of.variance,
            icc=of.icc,
            half_width=target,
            cost_ratio=cost_ratio,
            confidence=confidence,
        )

    now = rough(seen.tasks, seen.runs, seen.spread)
    plan = rough(tasks, runs, spread)
    here = _Widths.through(
        seen.this_suite, now.this_suite, rough(seen.tasks, seen.runs, spread).this_suite
    ).at(seen.tasks * seen.runs)
    if (
        seen.spread.icc_interval is None
    ):  # what is luck is not known: the whole width is taken for it
        here = replace(here, normal=here.seen)
    there = _Widths.through(
        seen.tasks_like_these,
        now.tasks_like_these,
        rough(seen.tasks, runs, spread).tasks_like_these,
    ).at(seen.tasks)
    # For tasks like these, runs change the width by the same factor as in the approximation.
    factor = there.width(tasks) / plan.tasks_like_these
    widest = factor * rough(tasks, seen.runs, spread).tasks_like_these
    known = spread.icc_interval or UNKNOWN
    floors = [
        min(WIDEST, widest) * sqrt(_skill_share(icc, seen.runs)) for icc in (known.low, known.high)
    ]
    needed = rough(tasks, runs, spread, min(half_width / factor, 0.499)).runs_tasks_like_these
    return replace(
        plan,
        this_suite=min(WIDEST, here.width(tasks * runs)),
        tasks_like_these=min(WIDEST, there.width(tasks)),
        floor=min(WIDEST, factor * plan.floor),
        runs_this_suite=max(1, _round_up(here.needed(half_width) / tasks)),
        runs_tasks_like_these=_promised(needed, floors, half_width, tasks, known),
        tasks_needed=max(2, _round_up(there.needed(half_width))),
        method=f"{plan.method}, through the intervals of {seen.tasks} x {seen.runs}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Widths:
    """Half-widths at any number of runs (or tasks), through what was seen at `count` of them.

    An interval is wider than the normal approximation, as it allows for not knowing the spread.
    The excess falls with the count itself, the rest with its square root: Student's quantile, for
    one, exceeds the normal one by a part in the degrees of freedom.
    """

    normal: float
    seen: float
    count: float = 1.0

    @classmethod
    def through(cls, seen: float | None, now: float, normal: float) -> _Widths:
        """Another spread than the one seen changes both parts by the same factor."""
        if seen is None:
            return cls(normal=normal, seen=normal)
        return cls(normal=normal, seen=normal * seen / now if now else seen)

    def at(self, count: int) -> _Widths:
        return replace(self, count=float(count))

    def width(self, count: float) -> float:
        share = self.count / count
        if share >= 1 or self.seen <= self.normal:
            return self.seen * sqrt(share)
        return self.normal * sqrt(share) + (self.seen - self.normal) * share

    def needed(self, target: float) -> float:
        """The count whose width is `target`: a quadratic equation in the root of the share."""
        if self.seen <= max(target, self.normal):
            return self.count * (self.seen / target) ** 2
        excess = self.seen - self.normal
        root = 2 * target / (self.normal + sqrt(self.normal**2 + 4 * excess * target))
        return self.count / root**2


def _half_width(metric: Metric, scope: Scope) -> float | None:
    number = metric.within(scope)
    if not isinstance(number, Estimate) or number.interval is None:
        return None
    return (number.interval.high - number.interval.low) / 2


def _skill_share(icc: float, runs: int) -> float:
    """The part of the variance of a task's mean that no further run takes away."""
    return icc / (icc + (1 - icc) / runs)


def _promised(
    needed: int | Unavailable | None,
    floors: list[float],
    half_width: float,
    tasks: int,
    icc: Interval,
) -> int | Unavailable:
    """Runs are promised only where the floor is below the target for all that is known of it."""
    low, high = floors
    these = "this task" if tasks == 1 else f"these {tasks:,} tasks"
    if high < half_width and isinstance(needed, int):
        return needed
    if low >= half_width:
        reach = f"below ±{100 * low:.0f} points for tasks like these"
        return Unavailable(f"no number of runs on {these} gets {reach}")
    bounds = f"ICC {icc.low:.2f} to {icc.high:.2f}"
    floor = f"between ±{100 * low:.0f} and ±{100 * high:.0f} points ({bounds})"
    return Unavailable(f"for tasks like these, more runs of {these} stop helping somewhere {floor}")


def _round_up(value: float) -> int:
    """The next whole number, where a hair of rounding error above one does not count."""
    return ceil(value - 1e-9 * max(1.0, value))
