"""What money and minutes buy: limits, what a run takes of them, and the designs in reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import floor

from passhat.errors import ArgumentError
from passhat.records import Tally
from passhat.stats.arguments import whole_number
from passhat.stats.estimate import Unavailable
from passhat.stats.power import SuitePlan

Design = Callable[[int, int], SuitePlan]
"""What so many tasks and runs of each show."""

_MOST_BOUGHT = 1e12


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
    """What a run takes, from the trials where the user did not say."""
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
    found = []
    if spending.max_cost is not None:
        if spending.cost_per_run is None:
            raise ArgumentError("cost_per_run", "must be given with `max_cost`", None)
        found.append(_budget(design, tasks, spending.max_cost, spending.cost_per_run, "money"))
    if spending.max_minutes is not None:
        if spending.seconds_per_run is None:
            raise ArgumentError("seconds_per_run", "must be given with `max_minutes`", None)
        minutes = spending.seconds_per_run / 60 / spending.at_once
        found.append(_budget(design, tasks, spending.max_minutes, minutes, "minutes"))
    return tuple(found)


def _budget(design: Design, tasks: int, limit: float, per_run: float, unit: str) -> BudgetPlan:
    if limit / per_run > _MOST_BOUGHT:
        rule = f"must buy at most {_MOST_BOUGHT:.0e} runs at {per_run:g} each"
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
            else Unavailable(f"{in_all:,} runs do not reach all {tasks:,} tasks once")
        ),
    )
