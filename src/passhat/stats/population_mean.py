"""Coherent bounds for the mean over tasks like these: tasks, or their families, are a sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural
from passhat.stats.arguments import Floats, float_array
from passhat.stats.dirichlet_mean import lower_quantile, lower_ratio_quantile
from passhat.stats.proportions import Bounds

Families = Sequence[object] | NDArray[Any]
"""A label for each task."""

FEWEST_FAMILIES = 8
"""Below this many families an interval over families says little (0.53 wide for five)."""

# More distinct values than this are rounded to as many: it moves no bound by more than 1/32768.
_MOST_DISTINCT = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskGroups:
    """The family of each task by position, and how much each task weighs."""

    family: NDArray[np.intp]
    weight: Floats

    @property
    def families(self) -> int:
        return int(self.family.max(initial=-1)) + 1

    @property
    def effective(self) -> float:
        """How many equally large families would tell as much: Kish's (sum)^2 / sum of squares.

        >>> one = TaskGroups(family=np.array([0, 0, 1]), weight=np.ones(3))
        >>> round(one.effective, 2)
        1.8
        """
        sizes = np.bincount(self.family, self.weight)
        return float(sizes.sum() ** 2 / (sizes**2).sum())

    @property
    def repeats(self) -> bool:
        """Whether any family has more than one task."""
        return self.families < self.family.size

    @property
    def many_families(self) -> bool:
        """Whether there are families, enough of them to be what was sampled."""
        return self.repeats and self.families >= FEWEST_FAMILIES

    @property
    def few_families(self) -> bool:
        """Whether there are families, too few of them to say anything about others."""
        return self.repeats and self.families < FEWEST_FAMILIES

    def alone(self) -> TaskGroups:
        """The same weights, with every task in a family by itself."""
        return TaskGroups(family=np.arange(self.family.size), weight=self.weight)

    def taken(self, kept: NDArray[np.bool_]) -> TaskGroups:
        """The families and weights of some of the tasks."""
        _, family = np.unique(self.family[kept], return_inverse=True)
        return TaskGroups(family=family, weight=self.weight[kept])


def grouping(family: Families | None, weight: ArrayLike | None, tasks: int) -> TaskGroups | None:
    """Checked labels and weights, one per task; None if neither makes a difference.

    A task whose label is None, nan or empty is a family by itself.
    """
    if family is None and weight is None:
        return None
    codes = np.arange(tasks) if family is None else _family_codes(family, tasks)
    sizes = np.ones(tasks) if weight is None else _weights(weight, tasks)
    families = np.unique(codes).size
    # One family for all makes no difference, nor do families of one task, unless weights differ.
    if families == 1:
        codes, families = np.arange(tasks), tasks
    if families == tasks and (tasks == 0 or np.ptp(sizes) == 0):
        return None
    return TaskGroups(family=codes, weight=sizes)


def few_families_note(group: TaskGroups | None) -> tuple[str, ...]:
    """What an interval over tasks means where they come from too few families; else nothing."""
    if group is None or not group.few_families:
        return ()
    families = plural(group.families, "family", "families")
    return (f"for tasks like these, from these {families}: too few to speak for other families",)


def population_bounds(values: Floats, tasks: Floats, confidence: float) -> Bounds:
    """The interval for the mean of values that so many tasks each have, along the last axis."""
    tail = (1 - confidence) / 2
    # Both ends at once: the upper end is 1 minus the lower end of what is missing to 1.
    both = np.broadcast_arrays(values, tasks)[0]
    low, missing = lower_quantile(np.stack((both, 1 - both)), tasks, tail)
    mean = (values * tasks).sum(axis=-1) / tasks.sum(axis=-1)
    return np.minimum(low, mean), np.maximum(1 - missing, mean)


def task_value_bounds(values: Floats, confidence: float) -> Bounds:
    """The same for one value a task, whatever their number."""
    distinct, tasks = np.unique(values, return_counts=True)
    if distinct.size > _MOST_DISTINCT:
        distinct, tasks = np.unique(np.round(values * _MOST_DISTINCT), return_counts=True)
        distinct = distinct / _MOST_DISTINCT
    return population_bounds(distinct, tasks.astype(np.float64), confidence)


def family_bounds(values: Floats, group: TaskGroups, confidence: float) -> Bounds:
    """The interval for the mean over families like these, of weighted values, one per task.

    `values` may have leading axes: questions about the same tasks.
    """
    tail, sizes = (1 - confidence) / 2, np.bincount(group.family, group.weight)
    sums = _family_sums(values, group)
    low = lower_ratio_quantile(sums, sizes, tail)
    high = 1 - lower_ratio_quantile(sizes - sums, sizes, tail)
    mean = sums.sum(axis=-1) / sizes.sum()
    return np.minimum(low, mean), np.maximum(high, mean)


def _family_sums(values: Floats, group: TaskGroups) -> Floats:
    order = np.argsort(group.family, kind="stable")
    starts = np.searchsorted(group.family[order], np.arange(group.families))
    weighted = (values * group.weight)[..., order]
    return np.asarray(np.add.reduceat(weighted, starts, axis=-1))


def _family_codes(family: Families, tasks: int) -> NDArray[np.intp]:
    labels = np.asarray(family, dtype=object)
    if labels.shape != (tasks,):
        raise ArgumentError("family", f"must have one label per task, {tasks}", labels.shape)
    codes: dict[object, int] = {}
    found = [
        codes.setdefault(("", place) if _unnamed(label) else label, len(codes))
        for place, label in enumerate(labels.tolist())
    ]
    return np.array(found, dtype=np.intp)


def _unnamed(label: object) -> bool:
    return label is None or label == "" or label != label  # nan is no label


def _weights(weight: ArrayLike, tasks: int) -> Floats:
    sizes = float_array("weight", weight, "must be numbers, one per task")
    if sizes.shape != (tasks,):
        raise ArgumentError("weight", f"must have one number per task, {tasks}", sizes.shape)
    bad = ~(np.isfinite(sizes) & (sizes > 0))
    if bad.any():
        raise ArgumentError("weight", "must be finite and above 0", float(sizes[bad][0]))
    return sizes
