"""Two systems aligned by task, and their mean difference with its error in either scope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from passhat.errors import ArgumentError
from passhat.stats.arguments import Floats, score_array
from passhat.stats.dirichlet_mean import (
    lower_quantile,
    lower_ratio_quantile,
    lower_ratio_tail,
    lower_tail,
)
from passhat.stats.estimate import THIS_SUITE, Interval, Scope
from passhat.stats.population_mean import TaskGroups
from passhat.stats.special import ndtr, ndtri, stdtr, stdtrit
from passhat.stats.task_sums import Mask, TaskSums

_SAME = 1e-12
# The share of a task that was not seen in a difference. With 1/2 the interval covers 0.98 where
# one side breaks 5 to 10 % of the tasks (T 8 to 45); with 3/4 it covers 0.99, and eight tasks
# of which seven favour one side and none the other would be left undecided.
_UNSEEN = 0.5
_SMALLEST = np.finfo(float).tiny
# With one run a task, the spread between tasks stands in for the spread within; below this many
# such tasks that is too noisy, and the largest variance a score in [0, 1] can have is taken.
_SPREAD_TASKS = 10
_LARGEST_VARIANCE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Both sides on their shared tasks; `sums` is None where only values were handed in.

    `group` has the families and weights of those tasks, where any were given.
    """

    means: tuple[Floats, Floats]
    sums: tuple[TaskSums, TaskSums] | None
    excluded: tuple[int, ...]
    group: TaskGroups | None = None

    @property
    def differences(self) -> Floats:
        return self.means[0] - self.means[1]

    @property
    def run_noise(self) -> Floats:
        """The variance of each task's difference when its runs are drawn again."""
        assert self.sums is not None
        left, right = self.sums
        return left.variances / left.runs + right.variances / right.runs

    @property
    def single(self) -> Mask:
        """Which tasks have a side with one run, whose spread cannot be seen."""
        assert self.sums is not None
        return np.asarray(np.minimum(self.sums[0].runs, self.sums[1].runs) == 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A difference with its standard error; no spread at all is a case of its own."""

    value: float
    error: float
    freedom: float
    method: str
    tasks: int

    def interval(self, alpha: float) -> Interval:
        if self.error == 0:
            # Were tasks with another difference as common as 1 - q, T tasks without one would
            # be seen with chance q^T = alpha / 2; those tasks may differ by as much as 1.
            q = (alpha / 2) ** (1 / self.tasks)
            centre, half = q * self.value, 1 - q
        else:
            centre, half = self.value, self.quantile(1 - alpha / 2) * self.error
        return Interval(max(-1.0, centre - half), min(1.0, centre + half))

    def quantile(self, level: float) -> float:
        if np.isinf(self.freedom):
            return float(ndtri(level))
        return float(stdtrit(self.freedom, level))

    def p_value(self) -> float:
        """The level at which the interval just holds 0; never 0 itself, which no data shows."""
        if self.error == 0:
            return float(max(_SMALLEST, min(1.0, 2 * (1 + abs(self.value)) ** -float(self.tasks))))
        ratio = -abs(self.value) / self.error
        tail = ndtr(ratio) if np.isinf(self.freedom) else stdtr(self.freedom, ratio)
        return float(max(_SMALLEST, 2 * tail))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledFit(Fit):
    """The mean difference of tasks, or families, that were drawn from others like them.

    The interval is that of `dirichlet_mean`, so it is coherent: a failure of one side never moves
    an end in its favour. The part of a task that was not seen is one that only the other side
    passes, as often as it passes those that were seen.
    """

    sums: Floats
    sizes: Floats
    means: tuple[float, float]

    def interval(self, alpha: float) -> Interval:
        low = self._lower(self.sums, -self.means[1], alpha / 2)
        high = -self._lower(-self.sums, -self.means[0], alpha / 2)
        return Interval(min(low, self.value), max(high, self.value))

    def p_value(self) -> float:
        if self.value == 0:
            return 1.0
        sums, unseen = (
            (self.sums, -self.means[1]) if self.value > 0 else (-self.sums, -self.means[0])
        )
        if self._equal:
            tail = lower_tail(
                sums / self.sizes, np.ones(sums.size), 0.0, unseen=unseen, share=_UNSEEN
            )
        else:
            tail = lower_ratio_tail(sums, self.sizes, 0.0, unseen=unseen, share=_UNSEEN)
        return float(max(_SMALLEST, 2 * float(tail)))

    def _lower(self, sums: Floats, unseen: float, tail: float) -> float:
        if not self._equal:
            return float(lower_ratio_quantile(sums, self.sizes, tail, unseen=unseen, share=_UNSEEN))
        values, tasks = np.unique(sums / self.sizes, return_counts=True)
        return float(lower_quantile(values, tasks, tail, unseen=unseen, share=_UNSEEN))

    @property
    def _equal(self) -> bool:
        return bool(np.ptp(self.sizes) == 0)


def aligned(
    a: TaskSums | ArrayLike, b: TaskSums | ArrayLike, scope: Scope, group: TaskGroups | None = None
) -> Pair:
    """Both sides on the tasks that have a result from each."""
    if isinstance(a, TaskSums) != isinstance(b, TaskSums):
        came = (type(a).__name__, type(b).__name__)
        raise ArgumentError("a and b", "must both be TaskSums or both be values per task", came)
    if isinstance(a, TaskSums) and isinstance(b, TaskSums):
        _same_length(a.runs.size, b.runs.size)
        kept = (a.runs > 0) & (b.runs > 0)
        left, right = a.taken(kept), b.taken(kept)
        missing = tuple(np.flatnonzero(~kept).tolist())
        shared = None if group is None else group.taken(kept)
        return Pair(
            means=(left.means, right.means), sums=(left, right), excluded=missing, group=shared
        )
    if scope == THIS_SUITE:
        rule = f'must be TaskSums for "{THIS_SUITE}": a value per task does not show its run noise'
        raise ArgumentError("a and b", rule, "values per task")
    one, other = _task_values("a", a), _task_values("b", b)
    _same_length(one.size, other.size)
    kept = np.isfinite(one) & np.isfinite(other)
    missing = tuple(np.flatnonzero(~kept).tolist())
    shared = None if group is None else group.taken(kept)
    return Pair(means=(one[kept], other[kept]), sums=None, excluded=missing, group=shared)


def population_fit(pair: Pair, *, by_family: bool = True) -> Fit:
    """The tasks, or their families, are a sample: what varies is the difference between them."""
    sums, sizes = family_sums(pair, by_family=by_family)
    total = float(sizes.sum())
    value = float(sums.sum()) / total
    residuals = sums - value * sizes
    error = float(np.sqrt((residuals**2).sum() * sums.size / max(sums.size - 1, 1))) / total
    constant = bool(np.ptp(sums / sizes) < _SAME)
    weight = np.ones(pair.differences.size) if pair.group is None else pair.group.weight
    # Half a task is added to how often a side passes, so that one that never did may yet.
    left, right = (
        (float((side * weight).sum() / weight.sum()) * sums.size + 0.5) / (sums.size + 1)
        for side in pair.means
    )
    unit = "tasks" if sums.size == pair.differences.size else "families"
    return SampledFit(
        value=value,
        error=0.0 if constant else error,
        freedom=sums.size - 1,
        method=f"paired, Dirichlet weights over {unit}",
        tasks=pair.differences.size,
        sums=sums,
        sizes=sizes,
        means=(left, right),
    )


def family_sums(pair: Pair, *, by_family: bool = True) -> tuple[Floats, Floats]:
    """The summed difference and the size of each family; of each task where there are none."""
    d = pair.differences
    if pair.group is None:
        return d, np.ones(d.size)
    group = pair.group
    codes = group.family if by_family else np.arange(d.size)
    sums, sizes = (np.bincount(codes, part * group.weight) for part in (d, np.ones(d.size)))
    return np.asarray(sums, np.float64), np.asarray(sizes, np.float64)


def suite_fit(pair: Pair) -> Fit:
    """Only runs are random: the tasks' own run noise, plus one deviation not yet seen.

    The unbiased variances sum to 0 where every task is constant, which is luck as often as
    certainty; so one more run that differs from the rest is added to each side.
    """
    assert pair.sums is not None
    single = pair.single
    tasks = single.size
    variance = float(pair.run_noise[~single].sum())
    freedom, method = np.inf, "stratified by task, run noise"
    if single.any():
        variance += _single_run_variance(pair, single)
        method = "stratified by task, largest run noise"
        if single.sum() >= _SPREAD_TASKS:
            freedom, method = float(single.sum() - 1), "stratified by task, spread of single runs"
    unseen = sum(float(np.mean(1.0 / side.runs.astype(float) ** 2)) for side in pair.sums)
    return Fit(
        value=float(pair.differences.mean()),
        error=(variance + unseen) ** 0.5 / tasks,
        freedom=freedom,
        method=method,
        tasks=tasks,
    )


def _task_values(name: str, values: ArrayLike | TaskSums) -> Floats:
    array = np.atleast_1d(np.asarray(values, dtype=float))
    if array.ndim > 1:
        raise ArgumentError(name, "must have one value per task (one dimension)", array.shape)
    score_array(name, array[~np.isnan(array)])
    return array


def _same_length(left: int, right: int) -> None:
    if left != right:
        raise ArgumentError("a and b", "must be aligned, an entry per task", (left, right))


def _single_run_variance(pair: Pair, single: Mask) -> float:
    assert pair.sums is not None
    if single.sum() >= _SPREAD_TASKS:
        # In expectation this is the run noise plus the spread of the true differences: too wide.
        return float(pair.differences[single].var(ddof=1) * single.sum())
    left, right = (side.runs[single].astype(float) for side in pair.sums)
    return float((_LARGEST_VARIANCE * (1 / left + 1 / right)).sum())
