"""Coherent bounds for the mean pass^k of the tasks that were run: only runs are random.

Each task's pass^k gets a law that moves to the right with every pass (task_laws), the laws are
added up, and a low quantile of the mean bounds it from below. No count shows a failure that did not
happen yet, so the mean is multiplied by the law of runs without a failure. All parts move in the
same direction with a pass, so a failure never improves a bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from passhat.dataclass import replace
from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells, remembered
from passhat.stats.dirichlet_mean import UNSEEN
from passhat.stats.passk import shares_of_passing_subsets
from passhat.stats.proportions import Bounds
from passhat.stats.roots import crossing_within
from passhat.stats.sum_laws import TABLED_RUNS, Places, SumLaws, sums_of_long_tasks, sums_of_tasks
from passhat.stats.task_laws import lattice_steps

# One pass more than was seen, and half of one to be safe: how high the rate of a task that did not
# always pass may lie, which says how much a further pass of it would add to pass^k.
_UNSEEN_PASSES = 1.5
# Keeps logarithms and roots finite; no chance or variance that matters is as small.
_TINY = 1e-300
# Terms within so many powers of e of one another are summed as they are: a float reaches from
# e^-708 to e^709, and chances below e^-46 are the rounding of the others.
_ONE_SCALE = 1300.0
_TOP_OF_SCALE = 690.0
# The place of a quantile is looked for among every so many places, then among those between two:
# of a thousand chances 64 are computed.
_STRIDE = 32
# Brackets of the root in ln(rho - 1): the usual one is tried first, the wide one always holds it.
_USUAL_RHO = (-4.0, 5.0)
_RHO_RANGE = (-12.0, 40.0)


class ShrunkLaw:
    """The law of X U^(1/groups), with X at `places`, which rise along the last axis, U uniform.

    U^(1/groups) is how low a rate may lie after so many groups of runs without a failure. The
    chance of at most x is the mean of min(1, x / X)^groups. Between two places that is a constant
    plus a multiple of x^groups, so every quantile has a closed form.
    """

    def __init__(self, places: Floats, chances: Floats, groups: Floats) -> None:
        at_zero = places <= 0
        self._chance_of_zero = (chances * at_zero).sum(axis=-1)
        self._groups = groups
        self._size = np.where(groups > 0, groups, 1.0)[..., None]
        # In place: a plan has hundreds of laws, and new arrays would take longer than the numbers.
        scaled, terms = np.where(at_zero, 1.0, places), np.where(at_zero, 0.0, chances)
        scaled = np.log(scaled, out=scaled)
        scaled *= self._size
        with np.errstate(divide="ignore"):
            terms = np.log(terms, out=terms)
        terms -= scaled
        self._shift, self._sums = _sums_from_end(terms, reach=float(np.ptp(scaled, axis=-1).max()))
        scaled[at_zero] = -np.inf
        self._scaled, self._before = scaled, np.cumsum(chances, axis=-1) - chances
        self._last = places.shape[-1] - 1
        self._rows = np.arange(0, places.size, places.shape[-1]).reshape(self._size.shape)

    def quantile(self, tail: Floats | float) -> Floats:
        """The `tail` quantile of the law; 0 if the law has at least that chance at 0."""
        tail = np.broadcast_to(tail, self._groups.shape)[..., None]
        # The chance rises along the places: first among some of them, then between two of those.
        some = np.arange(0, self._last + 1, _STRIDE)
        start = _STRIDE * np.maximum(self._below(some, tail) - 1, 0)
        near = np.minimum(start + np.arange(_STRIDE), self._last)
        place = np.minimum(start + self._below(near, tail), self._last)
        before = self._before.reshape(-1)[self._rows + place]
        with np.errstate(over="ignore"):
            power = (np.log(np.maximum(tail - before, _TINY)) - self._from(place)) / self._size
            found = np.minimum(np.exp(power[..., 0]), 1.0)
        nothing = (self._groups <= 0) | (self._chance_of_zero >= tail[..., 0])
        return np.where(nothing, 0.0, found)

    def _below(self, places: Places, tail: Floats) -> Places:
        """At how many of these places the chance of at most X is below the tail."""
        at = self._rows + places
        scaled, before = self._scaled.reshape(-1)[at], self._before.reshape(-1)[at]
        reached = before + np.exp(scaled + self._from(places))
        return np.asarray((reached < tail).sum(axis=-1, keepdims=True))

    def _from(self, places: Places) -> Floats:
        """From each place on: ln of the sum of chance / X^groups."""
        sums = self._sums.reshape(-1)[self._rows + (self._last - places)]
        if self._shift is None:
            return np.asarray(sums)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(sums) + self._shift)


def _sums_from_end(terms: Floats, *, reach: float) -> tuple[Floats | None, Floats]:
    """Sums of exp(term) from the last place on, of terms that `reach` so far; they are replaced.

    With a shift the sums are those of exp(term - shift); without one they are logarithms.
    """
    if reach > _ONE_SCALE:
        return None, np.logaddexp.accumulate(terms[..., ::-1], axis=-1)
    # If there is no chance at all every term is -inf, and so must the sums be.
    largest = np.maximum(terms.max(axis=-1, keepdims=True), -_ONE_SCALE)
    shift = largest - _TOP_OF_SCALE
    terms -= shift
    return shift, np.cumsum(np.exp(terms, out=terms)[..., ::-1], axis=-1)


def suite_bounds(cells: Cells, ks: Sequence[int], confidence: Floats | float) -> Bounds:
    """The intervals for the mean pass^k of these tasks, k along the last axis.

    Every task has at least k runs, for every k. `confidence` may differ from suite to suite: it
    is broadcast against the result.
    """
    tail = (1 - confidence) / 2
    helpers = sorted({*ks, *(_helper(cells, k) for k in ks)} - {0})
    low, high = _own_bounds(cells, helpers, tail)
    for place, k in enumerate(helpers):
        j = _helper(cells, k)
        if j:
            # Tasks with too few runs to show the spread of p^k show that of p^j, and by Jensen
            # (mean p^j)^(k/j) <= mean p^k <= mean p^j.
            lower, upper = (ends[..., helpers.index(j)] for ends in (low, high))
            low[..., place] = np.maximum(low[..., place], lower ** (k / j))
            high[..., place] = np.minimum(high[..., place], upper)
    values = shares_of_cells(cells, tuple(ks))
    means = cells.tasks @ values.T / cells.task_count[..., None]
    asked = [helpers.index(k) for k in ks]
    return np.minimum(low[..., asked], means), np.maximum(high[..., asked], means)


@remembered
def shares_of_cells(cells: Cells, ks: tuple[int, ...]) -> Floats:
    """pass^k of each cell, a row for each k; every scope and confidence needs it."""
    return shares_of_passing_subsets(cells.n, cells.c, ks)


def _few_runs_quantile(
    values: Floats, tasks: Floats, weight: Floats, tail: Floats | float
) -> Floats:
    """The `tail` quantile of sum G Y / (sum G + G_0), with Y = 1 with the chance of each value.

    G has the law Gamma(weight) for each task, and G_0 that of 3/4 for a task that was not seen.
    The last axis runs over distinct values, the others over questions, each with its weight. By
    the saddle point: for a ratio rho of its two factors, all else follows in closed form.
    """
    target = special.ndtri(1 - np.asarray(tail))
    some = np.vecdot(tasks, values) > 0
    missing, count = 1 - values, tasks.sum(axis=-1)

    def at(log: Floats) -> tuple[Floats, Floats]:
        rho = 1 + np.exp(log)
        # Beyond e^700 a float overflows; the tilt is 0 long before.
        odds = np.exp(np.minimum(weight * np.log(rho), 700.0))
        tilted = values / (values + missing * odds[..., None])
        held = np.vecdot(tasks, tilted)
        ones = weight * held
        rest = weight * (count - held) + UNSEEN
        theta = ones / (ones + rest * rho)
        s = (rho - 1) / (1 - theta + rho * theta)
        up, down = 1 + s * (1 - theta), 1 - s * theta
        mixed = values * (up**-weight)[..., None] + missing * (down**-weight)[..., None]
        cumulant = np.vecdot(tasks, np.log(np.maximum(mixed, _TINY))) - UNSEEN * np.log(down)
        root = np.sqrt(np.maximum(-2 * cumulant, _TINY))
        one, zero = (1 - theta) / up, theta / down
        jump = np.vecdot(tasks, tilted * (1 - tilted)) * (weight * (one + zero)) ** 2
        spread = s * np.sqrt(jump + ones * one**2 + rest * zero**2)
        return theta, root + np.log(np.maximum(spread, _TINY) / root) / root

    def beyond(minus_log: Floats) -> Floats:
        return np.where(some, at(-minus_log)[1] - target, 0.0)

    usual, range_ = ((-end[1], -end[0]) for end in (_USUAL_RHO, _RHO_RANGE))
    theta = at(-crossing_within(beyond, some.shape, usual, range_))[0]
    return np.where(some, theta, 0.0)


def _helper(cells: Cells, k: int) -> int:
    """The largest j for which every task has 2j runs, if it has not 2k; 0 for none."""
    fewest = int(cells.n.min())
    return fewest // 2 if fewest < 2 * k else 0


def _own_bounds(cells: Cells, ks: Sequence[int], tail: Floats | float) -> Bounds:
    low, high = (np.empty((*cells.tasks.shape[:-1], len(ks))) for _ in range(2))
    fewest, most = cells.n.min(), cells.n.max()
    kinds = [0 if fewest >= 2 * k else 1 if most < 2 * k else 2 for k in ks]
    for kind, bounds in enumerate((_bounds_of_laws, _bounds_together, _bounds_of_both)):
        places = [place for place, one in enumerate(kinds) if one == kind]
        if places:
            found = bounds(cells, [ks[place] for place in places], tail)
            low[..., places], high[..., places] = found
    return low, high


def _bounds_of_both(cells: Cells, ks: Sequence[int], tail: Floats | float) -> Bounds:
    """Bounds where some tasks have fewer than 2k runs: those have one law together, not one each.

    Tasks with more runs may join them, or be bounded by their own laws at the same level: the
    better of the two bounds is taken.
    """
    low, high = _bounds_together(cells, ks, tail)
    for place, k in enumerate(ks):
        short = cells.n < 2 * k
        rest, these = cells.taken(~short), cells.taken(short)
        ends = _bounds_of_laws(rest, (k,), tail), _bounds_together(these, (k,), tail)
        share = these.task_count / cells.task_count
        lower, upper = (
            (1 - share) * one[..., 0] + share * other[..., 0]
            for one, other in zip(*ends, strict=True)
        )
        low[..., place] = np.maximum(low[..., place], lower)
        high[..., place] = np.minimum(high[..., place], upper)
    return low, high


def _bounds_together(cells: Cells, ks: Sequence[int], tail: Floats | float) -> Bounds:
    """Bounds of tasks with fewer than 2k runs, each k along the last axis.

    pass^k is known for each task, its spread only for all together. With n = k runs a task's
    pass^k is seen as 0 or 1, once. Of T such tasks the share that passed is bounded as a proportion
    is, by Beta(S, T - S): a Dirichlet weight for each task. With more runs a task shows more, so
    the weights vary less: Gamma(n / (2k - n)) in place of Gamma(1).
    """
    values = shares_of_passing_subsets(cells.n, cells.c, ks)
    tasks = cells.tasks[..., None, :]
    mean = (tasks * values).sum(axis=-1) / cells.task_count[..., None]
    runs = np.minimum(cells.n, 2 * np.array(ks)[:, None] - 1)
    weight = (runs / (2 * np.array(ks)[:, None] - runs)).min(axis=-1)
    # Both ends at once: the upper end is 1 minus the lower end of what is missing to 1.
    sides = np.stack((values, 1 - values)).reshape(2, *(1,) * (cells.tasks.ndim - 1), *values.shape)
    found = _few_runs_quantile(sides, tasks, weight, tail)
    fewer, more = _unseen_groups(cells, ks)
    with np.errstate(divide="ignore"):
        low = np.minimum(found[0], mean * tail ** (1 / fewer))
        high = np.maximum(1 - found[1], 1 - (1 - mean) * tail ** (1 / more))
    return low, high


def _bounds_of_laws(cells: Cells, ks: Sequence[int], tail: Floats | float) -> Bounds:
    """Every task has at least 2k runs: the sum of their laws, and a failure not yet seen."""
    shape = *cells.tasks.shape[:-1], len(ks)
    tails = np.broadcast_to(tail, shape).reshape(-1, len(ks))
    low, high = np.empty((2, *tails.shape))
    for at, law in _laws_of_means(cells, tuple(ks)):
        found = law.quantile(tails[at])
        low[at], high[at] = found[0], 1 - found[1]
    return low.reshape(shape), high.reshape(shape)


@remembered
def _laws_of_means(
    cells: Cells, ks: tuple[int, ...]
) -> list[tuple[tuple[Places, Places], ShrunkLaw]]:
    """The laws of the mean pass^k and of what it lacks to 1, with the suite and k of each."""
    unseen = [part.reshape(-1, len(ks)) for part in _unseen_groups(cells, ks)]
    tasks = cells.task_count.reshape(-1)
    found = []
    for laws in _sums(cells, ks):
        at = laws.suite, laws.k
        shares = np.clip(laws.positions / tasks[laws.suite][:, None], 0.0, 1.0)
        sides = np.stack((shares, 1 - shares[:, ::-1]))
        both = np.stack((laws.chances, laws.chances[:, ::-1]))
        groups = np.stack([part[at] for part in unseen])
        found.append((at, ShrunkLaw(sides, both, groups)))
    return found


def _sums(cells: Cells, ks: Sequence[int]) -> list[SumLaws]:
    """The laws of the summed pass^k, those on as many points together."""
    found, places = list[SumLaws](), list(range(len(ks)))
    if cells.n.max() > TABLED_RUNS:
        found, places = sums_of_long_tasks(cells, ks)
    by_steps = defaultdict[int, list[int]](list)
    for place in places:
        by_steps[lattice_steps(cells.n, ks[place])].append(place)
    for steps, some in by_steps.items():
        laws = sums_of_tasks(cells, [ks[place] for place in some], steps)
        found += (replace(one, k=np.array(some)[one.k]) for one in laws)
    by_points = defaultdict[int, list[SumLaws]](list)
    for one in found:
        by_points[one.chances.shape[-1]].append(one)
    return [_joined(some) for some in by_points.values()]


def _joined(laws: Sequence[SumLaws]) -> SumLaws:
    return SumLaws(
        suite=np.concatenate([one.suite for one in laws]),
        k=np.concatenate([one.k for one in laws]),
        positions=np.concatenate([one.positions for one in laws]),
        chances=np.concatenate([one.chances for one in laws]),
    )


def _unseen_groups(cells: Cells, ks: Sequence[int]) -> Bounds:
    """`_unseen` for each k, along the last axis."""
    found = zip(*(_unseen(cells, k) for k in ks), strict=True)
    fewer, more = (np.stack(groups, axis=-1) for groups in found)
    return fewer, more


def _unseen(cells: Cells, k: int) -> tuple[Floats, Floats]:
    """How many groups of k runs are evidence against an unseen failure, and an unseen pass.

    Runs count for the first if pass^k is above 0, and for the second if it is below 1. A
    pass of a task that mostly fails adds little to pass^k, about k p^(k-1) / n, so groups are
    larger there: p^(k-1) is taken halfway between its mean and its largest.
    """
    n, c, tasks = cells.n, cells.c, cells.tasks
    fewer = tasks @ (n * (c >= k)) / k
    reach = np.minimum(1.0, (c + _UNSEEN_PASSES) / n) ** (k - 1)
    largest = np.where(tasks > 0, reach, 0.0).max(axis=-1)
    halfway = (cells.mean(reach) + largest) / 2
    return fewer, tasks @ (n * (c < n)) / (k * halfway)
