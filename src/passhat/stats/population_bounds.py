"""Coherent bounds for the mean over similar tasks: tasks, or their families, are a sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural
from passhat.stats import special
from passhat.stats.arguments import Floats, float_array
from passhat.stats.estimate import TASKS_LIKE_THESE, Estimate, Interval
from passhat.stats.numerics import find_root_within
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
    return (f"for similar tasks, from these {families}: too few to speak for other families",)


def weight_notes(group: TaskGroups) -> tuple[str, ...]:
    """How many equal tasks the weighted ones amount to, if they are not equal."""
    if np.ptp(group.weight) == 0:
        return ()
    tasks = plural(group.family.size, "weighted task")
    return (f"{tasks}, as good as {group.alone().effective:.1f} equal ones",)


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
    sizes = np.bincount(group.family, group.weight)
    order = np.argsort(group.family, kind="stable")
    starts = np.searchsorted(group.family[order], np.arange(group.families))
    sums = np.add.reduceat((values * group.weight)[..., order], starts, axis=-1)
    return ratio_bounds(sums, sizes, confidence)


def ratio_bounds(sums: ArrayLike, sizes: ArrayLike, confidence: float) -> Bounds:
    """The interval for the mean of values in [0, 1], from the sum and the size of each unit.

    A unit (a family, a task) is what was sampled; a larger one counts for more.
    """
    total, size = (np.asarray(totals, dtype=np.float64) for totals in (sums, sizes))
    tail, mean = (1 - confidence) / 2, total.sum(axis=-1) / size.sum()
    low = lower_ratio_quantile(total, size, tail)
    high = 1 - lower_ratio_quantile(size - total, size, tail)
    return np.minimum(low, mean), np.maximum(high, mean)


def ratio_estimate(
    sums: ArrayLike, sizes: ArrayLike, *, confidence: float, method: str, runs: int | None = None
) -> Estimate:
    """That mean over similar tasks, with the interval of `ratio_bounds`: each unit is a task."""
    total, size = (np.asarray(totals, dtype=np.float64) for totals in (sums, sizes))
    low, high = ratio_bounds(total, size, confidence)
    return Estimate(
        value=float(total.sum() / size.sum()),
        interval=Interval(float(low), float(high)),
        method=method,
        confidence=confidence,
        scope=TASKS_LIKE_THESE,
        tasks=int(size.size),
        runs=runs,
    )


def _family_codes(family: Families, tasks: int) -> NDArray[np.intp]:
    labels = np.asarray(family, dtype=object)
    if labels.shape != (tasks,):
        raise ArgumentError("family", f"must have one label per task, {tasks}", labels.shape)
    names = labels.tolist()
    if any(map(_unnamed, dict.fromkeys(names))):
        names = [("", place) if _unnamed(name) else name for place, name in enumerate(names)]
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    return np.array([codes[name] for name in names], dtype=np.intp)


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


# Low quantiles of a mean with random weights: bounds for a population that tasks were drawn from.
#
# Gaffke (2005): give each task's value a weight drawn from a Dirichlet distribution, and one value
# that was not seen, the worst there can be, a share of a task. A low quantile of the weighted mean
# bounds the population's mean from below. The weights do not depend on the values, so a larger
# value can only raise the bound: one more failure never makes it better.
#
# With values of 0 and 1 only, the distribution is Beta(s, T - s + 3/4) for s ones among T; with a
# whole unseen task it would be the bound of Clopper and Pearson.

UNSEEN = 0.75
"""The share of a task (or family) that was not seen and is taken at its worst.

By simulation: a whole one covers more than is promised and is 5 % wider; with 0.6 coverage falls to
0.92. Computed exactly for tasks that are all or nothing, 3/4 covers at least 0.936 for every T from
3 to 500 (bench/calibrate/coverage.py)."""

# The range of ln nu (for families of -ln t): below it the quantile is the smallest value, above it
# the mean, to nine digits.
_NU_RANGE = (-40.0, 16.0)
# Its usual range: a closer bracket saves a third of the steps.
_USUAL_NU = (-4.0, 5.0)
# Keeps logarithms and quotients finite; no variance that matters is as small.
_TINY = 1e-300
# With many distinct values the search begins on this many, which is enough for a first guess.
_FEW_POINTS = 32
# From so many families on the first guess is made from joined ones.
_MANY_FAMILIES = 512
# Up to this length OpenBLAS adds up products by one thread.
_LONGEST_DOT = 10_000
# From so many roots on, those that were found are worth setting aside.
_MANY_ROOTS = 64
# Newton's method for families: the first step stays clear of the pole; a dozen steps reach the last
# digits from anywhere, and four from the previous solution.
_NEAR_POLE, _MOST_NEWTON, _CLOSE = 0.999, 40, 1e-13


def lower_quantile(
    values: ArrayLike,
    tasks: ArrayLike,
    tail: float,
    *,
    unseen: ArrayLike = 0.0,
    share: float = UNSEEN,
) -> Floats:
    """The `tail` quantile of the Dirichlet mean of `values`, each the value of so many `tasks`.

    The last axis runs over distinct values, the others over independent questions. `unseen` is
    the value of the part of a task that was not seen (a `share` of one). Found from the
    saddle point (Lugannani and Rice 1980, in the form of Barndorff-Nielsen), within 0.005 of
    the exact quantile from two tasks on; the cost does not depend on how many tasks there are.

    >>> float(lower_quantile([0.0, 1.0], [1, 19], 0.025).round(2))  # 19 of 20 tasks
    0.77
    """
    return _quantile(_DirichletMean(values, tasks, unseen, share), tail)


def lower_ratio_quantile(
    sums: ArrayLike,
    sizes: ArrayLike,
    tail: float,
    *,
    unseen: ArrayLike = 0.0,
    share: float = UNSEEN,
) -> Floats:
    """The same for families (or weighted tasks): each has a sum, a size and one weight.

    A quantile of sum W S / sum W N, with W drawn from Exp(1) for each family and from
    Gamma(3/4) for one that was not seen. That one is as large as the family of a task picked at
    random: sum N^2 / sum N. Families of size 1 give `lower_quantile`.

    >>> one_by_one = lower_ratio_quantile([0.0, 0.5, 1.0], [1, 1, 1], 0.025)
    >>> bool(np.isclose(one_by_one, lower_quantile([0.0, 0.5, 1.0], [1, 1, 1], 0.025)))
    True
    """
    return _quantile(_DirichletRatio(sums, sizes, unseen, share), tail)


def lower_ratio_tail(
    sums: ArrayLike, sizes: ArrayLike, at: float, *, unseen: ArrayLike = 0.0, share: float = UNSEEN
) -> Floats:
    """`lower_tail` for families: the chance that the ratio is at most `at`."""
    return _chance_below(_DirichletRatio(sums, sizes, unseen, share), at)


def lower_tail(
    values: ArrayLike,
    tasks: ArrayLike,
    at: float,
    *,
    unseen: ArrayLike = 0.0,
    share: float = UNSEEN,
) -> Floats:
    """The chance that the Dirichlet mean is at most `at`: the tail whose quantile that is.

    Above the centre of the distribution it is given as 1/2: no bound lies there.

    >>> bound = float(lower_quantile([0.0, 1.0], [1, 19], 0.025))
    >>> float(lower_tail([0.0, 1.0], [1, 19], bound).round(6))
    0.025
    """
    return _chance_below(_DirichletMean(values, tasks, unseen, share), at)


class _DirichletMean:
    """A weighted mean of values on [0, 1] after scaling, with a Gamma weight for each."""

    def __init__(
        self, values: ArrayLike, tasks: ArrayLike, unseen: ArrayLike, share: float
    ) -> None:
        points, counts = np.broadcast_arrays(
            np.asarray(values, np.float64), np.asarray(tasks, np.float64)
        )
        last = np.broadcast_to(np.asarray(unseen, np.float64), points.shape[:-1])[..., None]
        points = np.concatenate((points, last), axis=-1)
        # A value that no task has must neither count nor set the scale.
        held = np.concatenate((counts > 0, np.ones_like(last, dtype=bool)), axis=-1)
        points = np.where(held, points, last)
        self.least = points.min(axis=-1)
        self.reach = points.max(axis=-1) - self.least
        scale = np.where(self.reach > 0, self.reach, 1.0)
        self.points = (points - self.least[..., None]) / scale[..., None]
        self.weights = np.concatenate((counts, np.full_like(last, share)), axis=-1)
        self.centre = _dot(self.weights, self.points) / self.weights.sum(axis=-1)
        # The last nu of each root, with its answer; no nu is nan.
        self._nu: Floats = np.full(self.reach.shape, np.nan)
        self._root: Floats = np.zeros(self.reach.shape)

    def solve(self, falling: Callable[[_DirichletMean, Floats], Floats]) -> Floats:
        """The nu at which a function of the distribution and it falls through 0."""

        def of_log(dist: _DirichletMean) -> Callable[[Floats], Floats]:
            return lambda log: np.where(self.reach > 0, falling(dist, np.exp(log)), 0.0)

        rough = of_log(self._coarse()) if self.points.shape[-1] > 2 * _FEW_POINTS else None
        shape = self.reach.shape
        log_nu = find_root_within(of_log(self), shape, _USUAL_NU, _NU_RANGE, roughly=rough)
        return np.exp(log_nu)

    def _coarse(self) -> _DirichletMean:
        """Nearly the same on fewer points, neighbours joined; the unseen one stays alone."""
        dist = copy(self)
        starts = np.linspace(0, self.points.shape[-1] - 1, _FEW_POINTS + 1).astype(np.intp)
        dist.weights = np.add.reduceat(self.weights, starts, axis=-1)
        held = np.add.reduceat(self.weights * self.points, starts, axis=-1)
        dist.points = held / np.maximum(dist.weights, _TINY)
        return dist

    def mean(self, nu: Floats) -> Floats:
        """The point at which nu is the saddle point: from 0 for small nu to the centre."""
        return _saddle_mean(self.weights, self.points, nu)

    def signed_root(self, nu: Floats) -> Floats:
        """How many standard deviations that point lies below the centre: r* of the saddle point.

        A search asks again for the roots that it has found already: if they are most of many,
        only those of a new nu are computed.
        """
        nu = np.asarray(nu)
        if nu.shape != self._nu.shape or nu.size < _MANY_ROOTS:
            return _root_at(self.weights, self.points, nu)
        new = nu != self._nu
        if 2 * np.count_nonzero(new) > new.size:
            self._root = _root_at(self.weights, self.points, nu)
        else:
            self._root = self._root.copy()
            self._root[new] = _root_at(self.weights[new], self.points[new], nu[new])
        self._nu = nu
        return self._root


def _dot(a: Floats, b: Floats) -> Floats:
    """The sums of products along the last axis, by one thread.

    OpenBLAS starts threads for longer vectors, and they take more CPU than the sums do.
    """
    length = a.shape[-1]
    if length <= _LONGEST_DOT:
        return np.asarray(np.vecdot(a, b))
    parts = (slice(start, start + _LONGEST_DOT) for start in range(0, length, _LONGEST_DOT))
    return np.asarray(sum(np.vecdot(a[..., part], b[..., part]) for part in parts))


def _saddle_mean(weights: Floats, points: Floats, nu: Floats) -> Floats:
    weight = weights / (points + nu[..., None])
    return np.asarray(_dot(weight, points) / weight.sum(axis=-1))


def _root_at(weights: Floats, points: Floats, nu: Floats) -> Floats:
    mean = _saddle_mean(weights, points, nu)[..., None]
    return _signed_root(weights, (points - mean) / (nu[..., None] + mean))


class _DirichletRatio:
    """A ratio of sums with a Gamma weight for each family, scaled so that it lies in [0, 1]."""

    def __init__(self, sums: ArrayLike, sizes: ArrayLike, unseen: ArrayLike, share: float) -> None:
        totals, counts = np.broadcast_arrays(
            np.asarray(sums, np.float64), np.asarray(sizes, np.float64)
        )
        extra = (counts**2).sum(axis=-1) / counts.sum(axis=-1)
        last = np.broadcast_to(np.asarray(unseen, np.float64), extra.shape)
        counts = np.concatenate((counts, extra[..., None]), axis=-1)
        totals = np.concatenate((totals, (last * extra)[..., None]), axis=-1)
        means = totals / counts
        self.least = means.min(axis=-1)
        self.reach = means.max(axis=-1) - self.least
        scale = np.where(self.reach > 0, self.reach, 1.0)
        largest = counts.max(axis=-1, keepdims=True)
        self.sizes = counts / largest
        self.means = (means - self.least[..., None]) / scale[..., None]
        self.sums = self.means * self.sizes
        self.weights = np.ones(counts.shape)
        self.weights[..., -1] = share
        self._total = counts.shape[-1] - 1 + share
        self.inverses, self.ratios = 1 / self.sizes, self.weights / self.sizes
        # The last t of each root, with its eta and mean; no t is nan.
        self._t: Floats = np.full(self.reach.shape, np.nan)
        self._eta: Floats = np.zeros(self.reach.shape)
        self._mean: Floats = np.zeros(self.reach.shape)
        self.centre = (self.weights * self.sums).sum(axis=-1) / (self.weights * self.sizes).sum(
            axis=-1
        )

    def solve(self, isotonic: Callable[[_DirichletRatio, Floats], Floats]) -> Floats:
        """The t at which a function of the distribution and it rises through 0."""

        def of_log(dist: _DirichletRatio) -> Callable[[Floats], Floats]:
            return lambda log: isotonic(dist, np.exp(-log))

        rough = of_log(self._coarse()) if self.sums.shape[-1] > _MANY_FAMILIES else None
        shape = self.reach.shape
        return np.exp(-find_root_within(of_log(self), shape, _USUAL_NU, _NU_RANGE, roughly=rough))

    def _coarse(self) -> _DirichletRatio:
        """Nearly the same for fewer families, those alike joined; the unseen one stays alone.

        Alike are those that lie as far from the centre, in the sums that its variance adds up.
        """
        dist = copy(self)
        families = self.sums.shape[-1] - 1
        apart = self.sums - self.centre[..., None] * self.sizes
        order = np.argsort(apart[..., :families], axis=-1)
        order = np.concatenate((order, np.full_like(order[..., :1], families)), axis=-1)
        starts = np.linspace(0, families, _FEW_POINTS + 1).astype(np.intp)

        def joined(values: Floats) -> Floats:
            return np.add.reduceat(np.take_along_axis(values, order, axis=-1), starts, axis=-1)

        dist.weights = joined(self.weights)
        dist.sums, dist.sizes = (
            joined(self.weights * part) / dist.weights for part in (self.sums, self.sizes)
        )
        dist.means = dist.sums / dist.sizes
        dist.inverses, dist.ratios = 1 / dist.sizes, dist.weights / dist.sizes
        return dist

    def mean(self, t: Floats) -> Floats:
        """The point at which t is the saddle point: from the centre for small t to 0."""
        return self._shift(t) / t

    def signed_root(self, t: Floats) -> Floats:
        """How many standard deviations that point lies below the centre: r* of the saddle point."""
        shift = self._shift(t)[..., None]
        return _signed_root(self.weights, t[..., None] * self.sums - shift * self.sizes)

    def _shift(self, t: Floats) -> Floats:
        """The eta at which the weights of q = 1 + t S - eta N average to 1: sum H/q = sum H.

        A search asks again for the roots that it has found already: only those of a new t are
        computed, from the last mean on.
        """
        t = np.asarray(t)
        if t.shape != self._t.shape:
            poles = self.inverses + t[..., None] * self.means
            return _balanced(poles, self.ratios, self._total, t * self._mean)
        new = t != self._t
        if new.any():
            poles = self.inverses[new] + t[new][..., None] * self.means[new]
            self._eta = self._eta.copy()
            self._eta[new] = _balanced(
                poles, self.ratios[new], self._total, t[new] * self._mean[new]
            )
            self._t, self._mean = t, np.asarray(self._eta / t)
        return self._eta


def _balanced(poles: Floats, ratios: Floats, total: float, start: Floats) -> Floats:
    """The eta below all poles at which the sum of ratio / (pole - eta) is `total`.

    By Newton's method on the inverse of that sum, which is concave in eta and nearly straight up to
    the first pole: from the first step on it converges from above. Roots that have converged are
    set aside when they are half of those left.
    """
    ratios = np.broadcast_to(ratios, poles.shape)
    first = poles.min(axis=-1)
    eta = np.minimum(start, _NEAR_POLE * first)
    roots, left = np.empty(eta.shape), np.ones(eta.shape, dtype=bool)
    for _ in range(_MOST_NEWTON):
        # In place: with many pairs of systems these tables are what a ranking takes its time for.
        inverse = poles - eta[..., None]
        np.maximum(inverse, _TINY, out=inverse)
        np.reciprocal(inverse, out=inverse)
        held = _dot(ratios, inverse)
        inverse *= inverse
        step = held * (1 - held / total) / _dot(ratios, inverse)
        new = np.clip(eta + step, 0.0, (eta + first) / 2)
        moved = np.abs(new - eta)
        eta = np.where(np.isfinite(new), new, eta / 2)
        still = ~(moved <= _CLOSE * (1 + eta))
        if not still.any():
            break
        if 2 * np.count_nonzero(still) <= still.size:
            roots[left] = eta.ravel()
            left[left] = still.ravel()
            poles, ratios, eta, first = poles[still], ratios[still], eta[still], first[still]
    roots[left] = eta.ravel()
    return roots


def _signed_root(weights: Floats, apart: Floats) -> Floats:
    """r* = r + ln(q / r) / r of Barndorff-Nielsen (1986), from the terms of the cumulant."""
    # The sum of weight * apart / (1 + apart) is 0. Taken off term by term, none is negative.
    reduced = apart / (1 + apart)
    square = 2 * _dot(weights, np.log1p(apart) - reduced)
    root = np.sqrt(np.maximum(square, _TINY))
    spread = np.sqrt(_dot(weights, reduced**2))
    return np.asarray(root + np.log(np.maximum(spread, _TINY) / root) / root)


def _quantile(dist: _DirichletMean | _DirichletRatio, tail: float) -> Floats:
    target = float(special.ndtri(1 - tail))
    nu = dist.solve(lambda dist, x: dist.signed_root(x) - target)
    return np.asarray(dist.least + dist.reach * dist.mean(nu))


def _chance_below(dist: _DirichletMean | _DirichletRatio, at: float) -> Floats:
    wanted = (at - dist.least) / np.where(dist.reach > 0, dist.reach, 1.0)
    root = dist.signed_root(dist.solve(lambda dist, x: wanted - dist.mean(x)))
    chance = np.where(wanted >= dist.centre, 0.5, special.ndtr(-root))
    nothing = (wanted < 0) | ((wanted == 0) & (dist.reach > 0))
    return np.asarray(np.where(nothing, 0.0, np.minimum(chance, 0.5)))
