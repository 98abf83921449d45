"""How much of the width for tasks like these comes from runs, and how much from tasks."""

from __future__ import annotations

from math import exp, sqrt
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE
from passhat.dataclass import short_dataclass
from passhat.errors import ArgumentError
from passhat.stats import special
from passhat.stats.arguments import Floats, confidence_level
from passhat.stats.estimate import Interval, Unavailable
from passhat.stats.population_mean import Families, TaskGroups, grouping
from passhat.stats.task_sums import TaskSums

Unit = Literal["tasks", "families"]
Purchase = Literal["runs", "tasks", "families", "undecided"]


@short_dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSources:
    """Where the variance of a mean over tasks like these comes from, and what would reduce it.

    `from_runs` is the share that more runs of the same tasks would reduce, with its interval; the
    rest needs new tasks (or families of them: `unit`). The width goes with the root of the
    variance. `break_even` is the price of a new task, in runs, up to which new tasks reduce the
    width more per dollar than runs do; None if runs would reduce nothing.
    """

    from_runs: float
    interval: Interval | None
    unit: Unit
    units: int
    runs: float
    break_even: float | None
    confidence: float
    method: str = "variance of the mean split, linearised over tasks"

    @property
    def from_tasks(self) -> float:
        """The share that only new tasks (or families) would reduce."""
        return 1 - self.from_runs

    @property
    def twice_the_runs(self) -> float:
        """The width with twice the runs of every task, as a share of the width now."""
        return sqrt(1 - self.from_runs / 2)

    @property
    def twice_the_tasks(self) -> float:
        """The width with twice as many tasks (or families), as a share of the width now."""
        return sqrt(0.5)

    @property
    def buy(self) -> Purchase:
        """What causes more than half of the variance, where the interval shows that.

        At half, a new task pays if it costs no more than the runs that it will get.
        """
        if self.interval is None or (self.interval.low <= 0.5 < self.interval.high):
            return "undecided"
        return "runs" if self.from_runs > 0.5 else self.unit


def noise_sources(
    scores: TaskSums,
    minus: TaskSums | None = None,
    *,
    family: Families | None = None,
    weight: ArrayLike | None = None,
    confidence: float = CONFIDENCE,
) -> NoiseSources | Unavailable:
    """Split the variance of a mean over tasks like these into runs and tasks.

    With `minus`, that of the difference of two systems on the same tasks. A task's runs
    contribute their sample variance over their number; a task with a single run gets the mean
    variance of the others. Families count from eight on, as in the interval itself.

    >>> found = noise_sources(TaskSums.of_passes([4] * 6, [4, 4, 3, 2, 1, 0]))
    >>> round(found.from_runs, 2), round(found.break_even, 1)
    (0.21, 15.2)
    >>> noise_sources(TaskSums.of_passes([1, 1], [1, 0])).reason
    'one run per task cannot tell runs from tasks: run each task at least twice'
    """
    level = confidence_level(confidence)
    sides = [scores] if minus is None else [scores, minus]
    if len({side.runs.size for side in sides}) > 1:
        sizes = tuple(side.runs.size for side in sides)
        raise ArgumentError("minus", "must have the same tasks as scores", sizes)
    kept = np.all([side.runs > 0 for side in sides], axis=0)
    group = grouping(family, weight, kept.size)
    sides = [side.taken(kept) for side in sides]
    if kept.sum() < 2:
        return Unavailable(f"variance between tasks needs at least 2 tasks, there is {kept.sum()}")
    if any((side.runs < 2).all() for side in sides):
        reason = "one run per task cannot tell runs from tasks: run each task at least twice"
        return Unavailable(reason)
    values = sides[0].means - (sides[1].means if minus is not None else 0.0)
    luck = np.sum([_luck(side) for side in sides], axis=0)
    runs = 1 / float(np.mean([(1 / side.runs).mean() for side in sides]))
    return _split(values, luck, runs, None if group is None else group.taken(kept), level)


def _luck(side: TaskSums) -> Floats:
    """The variance that runs give each task's mean."""
    several = side.runs > 1
    variance = np.where(several, side.variances, side.variances[several].mean())
    return np.asarray(variance / side.runs)


def _split(
    values: Floats, luck: Floats, runs: float, group: TaskGroups | None, confidence: float
) -> NoiseSources | Unavailable:
    tasks = values.size
    weight = np.ones(tasks) if group is None else group.weight
    by_family = group is not None and group.many_families
    unit = group.family if group is not None and by_family else np.arange(tasks)
    apart = weight * (values - np.average(values, weights=weight))
    squares: Floats = np.bincount(unit, apart).astype(np.float64) ** 2
    noise: Floats = np.bincount(unit, weight**2 * luck).astype(np.float64)
    units = squares.size
    seen, by_runs = float(squares.sum()) * units / (units - 1), float(noise.sum())
    if seen == by_runs == 0:
        return Unavailable("there is no variance to split: every run scored the same")
    share = 1.0 if by_runs >= seen else by_runs / seen
    price = runs * tasks / units * (1 - share)  # of a new unit, in runs; Cochran (1977), 10.6
    return NoiseSources(
        from_runs=share,
        interval=_share_interval(squares, noise, by_runs, seen, confidence),
        unit="families" if by_family else "tasks",
        units=units,
        runs=runs,
        break_even=price / share if share > 0 else None,
        confidence=confidence,
    )


def _share_interval(
    squares: Floats, noise: Floats, by_runs: float, seen: float, confidence: float
) -> Interval | None:
    """The interval of the share, by linearising its logarithm over units; None without variance."""
    if by_runs == 0 or seen == 0:
        return None
    units = squares.size
    influence = noise / noise.sum() - squares / squares.sum()
    error = sqrt(float((influence**2).sum()) * units / (units - 1))
    reach = float(special.stdtrit(units - 1, (1 + confidence) / 2)) * error
    ratio = by_runs / seen
    return Interval(min(1.0, ratio * exp(-reach)), min(1.0, ratio * exp(reach)))
