"""What money and minutes buy, what a run takes of them, and what a run will cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import floor

import numpy as np

from passhat.arguments import CONFIDENCE, instance, whole_number
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.records import Tally, Trials
from passhat.stats.arguments import Floats, confidence_level
from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.sample_size import SuitePlan

Design = Callable[[int, int], SuitePlan]
"""What so many tasks and runs of each show."""

_MOST_BOUGHT = 1e12
FEWEST_TRIALS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Limits in money and minutes, and what one run takes of each."""

    max_cost: float | None = None
    cost_per_run: float | None = None
    max_minutes: float | None = None
    seconds_per_run: float | None = None
    at_once: int = 1

    def __post_init__(self) -> None:
        whole_number("at_once", self.at_once)
        for name in ("max_cost", "cost_per_run", "max_minutes", "seconds_per_run"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ArgumentError(name, "must be a number above 0", value)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPlan:
    """What a limit buys: whole runs of every task, and the half-widths they give."""

    limit: float
    unit: str
    per_run: float
    runs_in_all: int
    design: SuitePlan | Unavailable


def priced(spending: Spending, tally: Tally | None) -> Spending:
    """What a run takes, from the trials if the user did not say."""
    instance("spending", spending, Spending, "must be Spending(...)")
    if tally is None:
        return spending
    features = tally.features

    def seen(name: str, given: float | None) -> float | None:
        if given is not None or name not in features or not features[name].count.any():
            return given
        mean = float(features[name].total.sum() / features[name].count.sum())
        return mean if mean > 0 else None

    return replace(
        spending,
        cost_per_run=seen("cost", spending.cost_per_run),
        seconds_per_run=seen("seconds", spending.seconds_per_run),
    )


def budgets(design: Design, tasks: int, spending: Spending) -> tuple[BudgetPlan, ...]:
    """What each limit buys, shared equally by the tasks."""
    bought = []
    if spending.max_cost is not None:
        if spending.cost_per_run is None:
            raise ArgumentError("cost_per_run", "must be given with `max_cost`", None)
        bought.append(_budget(design, tasks, spending.max_cost, spending.cost_per_run, "money"))
    if spending.max_minutes is not None:
        if spending.seconds_per_run is None:
            raise ArgumentError("seconds_per_run", "must be given with `max_minutes`", None)
        minutes = spending.seconds_per_run / 60 / spending.at_once
        bought.append(_budget(design, tasks, spending.max_minutes, minutes, "minutes"))
    return tuple(bought)


def expected_cost(
    trials: Trials, planned: Mapping[tuple[str, str], int], *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """The cost of so many runs of each (system, task), with the range the next bill falls in.

    The range is a prediction interval: it holds both what is not known of the mean cost of a task
    and the luck of the runs still to be made.

    >>> past = Trials.from_columns(task=["a"] * 4, passed=[True] * 4, cost=[0.1, 0.1, 0.2, 0.2])
    >>> round(expected_cost(past, {("system", "a"): 10}).value, 3)
    1.5
    """
    from passhat.stats.special import ndtri

    costs = trials.features.get("cost")
    if costs is None:
        return Unavailable("no earlier trial recorded its cost")
    total, variance, seen = 0.0, 0.0, 0
    for (system, task), runs in planned.items():
        known = _known(trials, costs, system, task)
        if len(known) < FEWEST_TRIALS:
            return Unavailable(f"fewer than {FEWEST_TRIALS} earlier trials of {task} by {system}")
        spread = float(known.var(ddof=1))
        total += runs * float(known.mean())
        variance += spread * (runs + runs**2 / len(known))
        seen += len(known)
    reach = float(ndtri((1 + confidence_level(confidence)) / 2)) * variance**0.5
    return Estimate(
        value=total,
        interval=Interval(max(0.0, total - reach), total + reach),
        method="normal prediction interval over earlier trials",
        confidence=confidence,
        runs=seen,
    )


def _budget(design: Design, tasks: int, limit: float, per_run: float, unit: str) -> BudgetPlan:
    if limit / per_run > _MOST_BOUGHT:
        rule = f"must buy at most {_MOST_BOUGHT:.0e} trials at {per_run:g} each"
        raise ArgumentError("max_cost" if unit == "money" else "max_minutes", rule, limit)
    in_all = floor(limit / per_run * (1 + 1e-12))
    per_task = in_all // tasks
    return BudgetPlan(
        limit=limit,
        unit=unit,
        per_run=per_run,
        runs_in_all=in_all,
        design=(
            design(tasks, per_task)
            if per_task
            else Unavailable(f"{in_all:,} trials do not reach all {tasks:,} tasks once")
        ),
    )


def _known(trials: Trials, costs: Floats, system: str, task: str) -> Floats:
    if system not in trials.systems or task not in trials.tasks:
        return costs[:0]
    rows = trials.system.codes == trials.system.code(system)
    rows &= trials.task.codes == trials.task.code(task)
    return np.asarray(costs[rows & ~np.isnan(costs)])
