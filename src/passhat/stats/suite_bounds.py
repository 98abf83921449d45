"""Coherent bounds for the mean pass^k of the tasks that were run: only runs are random.

Each task's pass^k gets a distribution that moves to the right with every pass (task_pmfs), the
distributions are added up, and a low quantile of the mean bounds it from below. No count shows a
failure that did not happen yet, so the mean is multiplied by the distribution of runs without a
failure. All parts move in the same direction with a pass, so a failure never improves a bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import factorial

import numpy as np
from numpy.typing import NDArray

from passhat.dataclass import dataclass, replace
from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.numerics import find_root_within
from passhat.stats.passk import share_of_passing_subsets, shares_of_passing_subsets
from passhat.stats.population_bounds import UNSEEN
from passhat.stats.proportions import Bounds
from passhat.stats.sufficient_statistics import Cells, cached

# One pass more than was seen, and half of one to be safe: how high the rate of a task that did not
# always pass may lie, which says how much a further pass of it would add to pass^k.
_UNSEEN_PASSES = 1.5
# Where good tasks ran 4 times and poor ones 40 times, intervals covered .83 as long as every run
# counted, and .95 with this limit; suites of 3 to 10 runs a task hardly feel it.
_MORE_THAN_TYPICAL = 1.5
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


class ShrunkDistribution:
    """The distribution of X U^(1/groups): X at `places`, ascending on the last axis, U uniform.

    U^(1/groups) is how low a rate may lie after so many groups of runs without a failure. The
    chance of at most x is the mean of min(1, x / X)^groups. Between two places that is a constant
    plus a multiple of x^groups, so every quantile has a closed form.
    """

    def __init__(self, places: Floats, chances: Floats, groups: Floats) -> None:
        at_zero = places <= 0
        self._chance_of_zero = (chances * at_zero).sum(axis=-1)
        self._groups = groups
        self._size = np.where(groups > 0, groups, 1.0)[..., None]
        # In place: a plan has hundreds of distributions, and new arrays would take longer than the
        # numbers.
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
        """The `tail` quantile; 0 if 0 has at least that chance."""
        tail = np.broadcast_to(tail, self._groups.shape)[..., None]
        # The chance rises along the places: first among some of them, then between two of those.
        some = np.arange(0, self._last + 1, _STRIDE)
        start = _STRIDE * np.maximum(self._below(some, tail) - 1, 0)
        near = np.minimum(start + np.arange(_STRIDE), self._last)
        place = np.minimum(start + self._below(near, tail), self._last)
        before = self._before.reshape(-1)[self._rows + place]
        with np.errstate(over="ignore"):
            power = (np.log(np.maximum(tail - before, _TINY)) - self._from(place)) / self._size
            quantile = np.minimum(np.exp(power[..., 0]), 1.0)
        nothing = (self._groups <= 0) | (self._chance_of_zero >= tail[..., 0])
        return np.where(nothing, 0.0, quantile)

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
    low, high = (np.empty((*cells.tasks.shape[:-1], len(helpers))) for _ in range(2))
    fewest, most = cells.n.min(), cells.n.max()
    kinds = [0 if fewest >= 2 * k else 1 if most < 2 * k else 2 for k in helpers]
    for kind, bounds in enumerate(
        (_bounds_of_long_tasks, _bounds_of_short_tasks, _bounds_of_mixed_tasks)
    ):
        places = [place for place, each in enumerate(kinds) if each == kind]
        if places:
            own = bounds(cells, [helpers[place] for place in places], tail)
            low[..., places], high[..., places] = own
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
    low, high = np.minimum(low[..., asked], means), np.maximum(high[..., asked], means)
    return _opened_to_one_task(cells, ks, values, (low, high), tail)


def _opened_to_one_task(
    cells: Cells, ks: Sequence[int], values: Floats, bounds: Bounds, tail: Floats | float
) -> Bounds:
    """The bounds, opened to what the exact bound of one task allows while the others stay.

    Where one task carries the number, few passes make its value and the variance that they show
    small together. The ends of Clopper and Pearson need no variance, and move with every run in the
    direction of its outcome: an interval that is opened to them remains coherent.
    """
    low, high = bounds
    tasks, held = cells.task_count[..., None], cells.tasks[..., None, :] > 0
    mean = cells.tasks @ values.T / tasks
    powers, tails = np.array(ks)[:, None], np.asarray(tail)[..., None]

    def widest(reach: Floats, room: Floats, *, upper: int) -> Floats:
        """How far the one task with the widest bound moves the mean, if further than `room`."""
        # No task moves the sum by more than its `reach`: most suites need no exact bound at all.
        may = np.where(held, reach, 0.0) > (room * tasks)[..., None]
        if not may.any():
            return np.zeros(1)
        some = may.reshape(-1, cells.n.size).any(axis=0)
        passes, failures = cells.c[some] + upper, (cells.n - cells.c)[some] + 1 - upper
        end = np.asarray(special.betaincinv(passes, failures, np.abs(upper - tails)), np.float64)
        # Of few runs the unbiased value may lie beyond the bound: then it moves nothing.
        moved = (end**powers - values[:, some]) * (2 * upper - 1)
        return np.asarray(np.where(held[..., some], moved, 0.0).max(axis=-1).clip(0.0) / tasks)

    fall = widest(values, mean - low, upper=0)
    rise = widest(1 - values, high - mean, upper=1)
    return np.minimum(low, mean - fall), np.maximum(high, mean + rise)


@cached
def shares_of_cells(cells: Cells, ks: tuple[int, ...]) -> Floats:
    """pass^k of each cell, a row for each k; every scope and confidence needs it."""
    return shares_of_passing_subsets(cells.n, cells.c, ks)


def _few_runs_quantile(
    values: Floats, tasks: Floats, weight: Floats, tail: Floats | float
) -> Floats:
    """The `tail` quantile of sum G Y / (sum G + G_0), with Y = 1 with the chance of each value.

    G has the distribution Gamma(weight) for each task, and G_0 that of 3/4 for a task that was not
    seen. The last axis runs over distinct values, the others over questions, each with its weight.
    By the saddle point: for a ratio rho of its two factors, all else follows in closed form.
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
    theta = at(-find_root_within(beyond, some.shape, usual, range_))[0]
    return np.where(some, theta, 0.0)


def _helper(cells: Cells, k: int) -> int:
    """The largest j for which every task has 2j runs, if it has not 2k; 0 for none."""
    fewest = int(cells.n.min())
    return fewest // 2 if fewest < 2 * k else 0


def _bounds_of_mixed_tasks(cells: Cells, ks: Sequence[int], tail: Floats | float) -> Bounds:
    """Bounds where some tasks have fewer than 2k runs: those share one distribution.

    Tasks with more runs may join them, or be bounded by their own distributions at the same level;
    or every task gets its own, as if the runs that are missing to 2k had failed (for the upper end:
    passed), which is never better than what they would show. The best of the bounds is taken.
    """
    low, high = _bounds_of_short_tasks(cells, ks, tail)
    for place, k in enumerate(ks):
        if k > 1:  # a single run, padded, would say more here than it does in a comparison
            enough = np.maximum(cells.n, 2.0 * k)
            failed, passed = (
                _bounds_of_long_tasks(Cells(n=enough, c=passes, tasks=cells.tasks), (k,), tail)
                for passes in (cells.c, cells.c + enough - cells.n)
            )
            low[..., place] = np.maximum(low[..., place], failed[0][..., 0])
            high[..., place] = np.minimum(high[..., place], passed[1][..., 0])
        short = cells.n < 2 * k
        rest, these = cells.taken(~short), cells.taken(short)
        ends = _bounds_of_long_tasks(rest, (k,), tail), _bounds_of_short_tasks(these, (k,), tail)
        share = these.task_count / cells.task_count
        lower, upper = (
            (1 - share) * first[..., 0] + share * other[..., 0]
            for first, other in zip(*ends, strict=True)
        )
        low[..., place] = np.maximum(low[..., place], lower)
        high[..., place] = np.minimum(high[..., place], upper)
    return low, high


def _bounds_of_short_tasks(cells: Cells, ks: Sequence[int], tail: Floats | float) -> Bounds:
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
    quantiles = _few_runs_quantile(sides, tasks, weight, tail)
    fewer, more = _unseen_groups(cells, ks)
    with np.errstate(divide="ignore"):
        low = np.minimum(quantiles[0], mean * tail ** (1 / fewer))
        high = np.maximum(1 - quantiles[1], 1 - (1 - mean) * tail ** (1 / more))
    return low, high


def _bounds_of_long_tasks(cells: Cells, ks: Sequence[int], tail: Floats | float) -> Bounds:
    """Every task has 2k runs or more: the sum of their distributions, and an unseen failure."""
    shape = *cells.tasks.shape[:-1], len(ks)
    tails = np.broadcast_to(tail, shape).reshape(-1, len(ks))
    low, high = np.empty((2, *tails.shape))
    for at, both_sides in _mean_distributions(cells, tuple(ks)):
        lower, missing = both_sides.quantile(tails[at])
        low[at], high[at] = lower, 1 - missing
    return low.reshape(shape), high.reshape(shape)


@cached
def _mean_distributions(
    cells: Cells, ks: tuple[int, ...]
) -> list[tuple[tuple[Places, Places], ShrunkDistribution]]:
    """The distributions of the mean pass^k and of 1 minus it, with the suite and k of each."""
    unseen = [part.reshape(-1, len(ks)) for part in _unseen_groups(cells, ks)]
    tasks = cells.task_count.reshape(-1)
    means = []
    for sums in _sums(cells, ks):
        at = sums.suite, sums.k
        shares = np.clip(sums.positions / tasks[sums.suite][:, None], 0.0, 1.0)
        sides = np.stack((shares, 1 - shares[:, ::-1]))
        chances = np.stack((sums.chances, sums.chances[:, ::-1]))
        groups = np.stack([part[at] for part in unseen])
        means.append((at, ShrunkDistribution(sides, chances, groups)))
    return means


def _sums(cells: Cells, ks: Sequence[int]) -> list[SumDistribution]:
    """The distributions of the summed pass^k, those on as many points together."""
    sums, places = list[SumDistribution](), list(range(len(ks)))
    if cells.n.max() > TABLED_RUNS:
        sums, places = sums_of_long_tasks(cells, ks)
    by_steps = defaultdict[int, list[int]](list)
    for place in places:
        by_steps[lattice_steps(cells.n, ks[place])].append(place)
    for steps, some in by_steps.items():
        tabled = sums_of_tasks(cells, [ks[place] for place in some], steps)
        sums += (replace(total, k=np.array(some)[total.k]) for total in tabled)
    by_points = defaultdict[int, list[SumDistribution]](list)
    for total in sums:
        by_points[total.chances.shape[-1]].append(total)
    return [
        SumDistribution(
            suite=np.concatenate([part.suite for part in alike]),
            k=np.concatenate([part.k for part in alike]),
            positions=np.concatenate([part.positions for part in alike]),
            chances=np.concatenate([part.chances for part in alike]),
        )
        for alike in by_points.values()
    ]


def _unseen_groups(cells: Cells, ks: Sequence[int]) -> Bounds:
    """How many groups of k runs are evidence against an unseen failure, and an unseen pass.

    Runs count for the first if pass^k is above 0, and for the second if it is below 1. A
    pass of a task that mostly fails adds little to pass^k, about k p^(k-1) / n, so groups are
    larger there: p^(k-1) is taken halfway between its mean and its largest.

    The runs of a task say little of a task with fewer: no task counts for much more than is typical
    (the harmonic mean, which the short ones decide).
    """
    n, c = cells.n, cells.c
    typical = cells.task_count / (cells.tasks @ (1 / n))
    runs = cells.tasks * np.minimum(n, _MORE_THAN_TYPICAL * typical[..., None])
    fewer, more = [], []
    for k in ks:
        fewer.append(runs @ (c >= k).astype(np.float64) / k)
        reach = np.minimum(1.0, (c + _UNSEEN_PASSES) / n) ** (k - 1)
        largest = np.where(cells.tasks > 0, reach, 0.0).max(axis=-1)
        halfway = np.maximum((cells.mean(reach) + largest) / 2, _TINY)
        more.append(runs @ (c < n).astype(np.float64) / (k * halfway))
    return np.stack(fewer, axis=-1), np.stack(more, axis=-1)


# The distribution of the summed pass^k of tasks, at the same cost for any number of tasks.
#
# The characteristic functions of the tasks' distributions are multiplied, and the product is turned
# back into chances over a window outside which there is next to none. Tasks with hundreds of runs
# have hundreds of different counts, and a table of each one's distribution would take seconds;
# their sum is so close to normal that twelve cumulants, which add up over tasks, give it to eight
# digits.

Complex = NDArray[np.complex128]

Places = NDArray[np.intp]
# Points at which the distribution of the sum is given, unless distributions on few points need all
# of them.
_POINTS = 1024
# A window of so many standard deviations leaves less than 1e-20 outside.
_WINDOW = 20.0
# Frequencies this small add nothing that eight digits show.
_DEAD = 1e-8
# Distributions on a few points have frequencies that never die away: the whole lattice is used for
# them up to this length, and the last frequencies are tapered beyond it.
_LONGEST = 1 << 15
# From so many times the points on, a transform of the whole period takes longer than a convolution
# (three times as long at 8,192 points, nine times at 16,384), which is made of multiples of this
# unit so that its length has small factors only.
_LONG_PERIOD, _FFT_UNIT = 8, 128
# exp(-12.5) = 4e-6 at the last frequency: the ringing of a sharp cut is gone.
_TAPER = 12.5
TABLED_RUNS = 128
"""Tables of every count of passes are kept up to so many runs; they serve pass@k too."""
# Keeps a logarithm finite; e^-690 is far below any chance that counts.
_NOTHING = 1e-300
# Cumulants used; `_NEGLIGIBLE` checks that those beyond would not matter.
_ORDER = 12
# The characteristic function is below 1e-15 from here on, in standard deviations.
_LAST_FREQUENCY = 8.5
# Cumulants beyond the last do not matter where that adds at most this much to any chance.
_NEGLIGIBLE = 1e-8
# Tasks that ran differently often have hundreds of different counts, too: from so many to a suite
# on, most of them are summed by their cumulants.
_MANY_CELLS = 64
# Betas whose cumulants are computed at once: what that takes stays in the cache of a core.
_AT_ONCE = 4096
_FACTORIALS = np.array([float(factorial(order)) for order in range(_ORDER + 1)])
# The cumulants of two uniform variables of width 1 together: twice Bernoulli's B_r / r.
_OF_SPLITTING = np.zeros(_ORDER + 1)
_OF_SPLITTING[2::2] = 1 / 6, -1 / 60, 1 / 126, -1 / 120, 1 / 66, -691 / 16380
# The largest of t^12 exp(-t^2 / 2).
_PEAK = (_ORDER / np.e) ** (_ORDER / 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumDistribution:
    """Distributions of sums, a row each: `chances` of `positions`, which rise along the last axis.

    Row i is about the suite at the place `suite[i]` and the k at the place `k[i]`.
    """

    suite: Places
    k: Places
    positions: Floats
    chances: Floats


def sums_of_tasks(cells: Cells, ks: Sequence[int], steps: int) -> list[SumDistribution]:
    """The distributions of the summed pass^k of tasks with 2k runs or more, on so many steps.

    Each suite gets the distribution that it would get alone. All k are computed together, because
    most of the time of a single one is the overhead of numpy calls.
    """
    rows = cells.tasks.reshape(-1, cells.n.size)
    longest = rows.sum(axis=-1) * steps + 1
    if cells.n.max() > TABLED_RUNS:
        cells = _with_value(cells, min(ks))
        rows = cells.tasks.reshape(-1, cells.n.size)
    bulk = None
    if cells.lengths.size > 1 and cells.n.size > _MANY_CELLS * len(rows):
        bulk, rows, kept = _near_normal_part(cells, ks, steps)
        cells = cells.taken(kept)
    means, variances = _per_cell(cells, ks, steps, _moments)
    centre, variance = (np.matmul(rows, part[..., None])[..., 0] for part in (means, variances))
    if bulk is not None:
        centre, variance = centre + bulk[1], variance + bulk[2]
    # A power of two, so that the tables of one report serve all its questions.
    window = np.maximum(np.minimum(longest, _WINDOW * np.sqrt(variance)), _POINTS)
    periods = (2 ** np.ceil(np.log2(window))).astype(np.int64)
    sums = list[SumDistribution]()
    for period in set(periods.ravel().tolist()):
        k, suite = np.nonzero(periods == period)
        asked = _Sums(cells=cells, rows=rows, bulk=bulk, ks=ks, steps=steps, k=k, suite=suite)
        sums += _sums_over(asked, period, centre[k, suite], longest[suite])
    return sums


def sums_of_long_tasks(cells: Cells, ks: Sequence[int]) -> tuple[list[SumDistribution], list[int]]:
    """The distributions of the summed pass^k by cumulants, and the k too far from normal, by place.

    All k are computed together: with hundreds of different counts that takes a fifth of the time.
    """
    places = [place for place, k in enumerate(ks) if betas_in_order(cells.n, k).all()]
    if not places:
        return [], list(range(len(ks)))
    means, cumulants = _cumulants(cells, [ks[place] for place in places])
    rows = cells.tasks.reshape(-1, cells.n.size)
    centre = rows @ means.T
    totals = rows @ cumulants.reshape(-1, cells.n.size).T
    totals = np.moveaxis(totals.reshape(len(rows), _ORDER + 1, len(places)), 1, 0)
    deviation = np.sqrt(totals[2])
    scale = np.where(deviation > 0, deviation, 1.0)
    terms = np.stack([t / scale**order / _FACTORIALS[order] for order, t in enumerate(totals)])
    normal = (deviation > 0) & (np.abs(terms[-2:]) * _PEAK <= _NEGLIGIBLE).all(axis=0)
    near = np.flatnonzero(normal.all(axis=0))
    taken = [places[place] for place in near.tolist()]
    rest = [place for place in range(len(ks)) if place not in taken]
    if not taken:
        return [], rest
    positions, chances = _from_spectrum(terms[..., near], centre[:, near], deviation[:, near])
    sums = SumDistribution(
        suite=np.repeat(np.arange(len(rows)), len(taken)),
        k=np.tile(taken, len(rows)),
        positions=positions.reshape(-1, _POINTS),
        chances=chances.reshape(-1, _POINTS),
    )
    return [sums], rest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sums:
    """Which sums are asked for: of the suite and of the k at each of these places.

    `rows` are the tasks in each of the cells, by suite, and by k where they differ; the cumulants
    of all others together are in `bulk`, by order, k and suite.
    """

    cells: Cells
    rows: Floats
    bulk: Floats | None
    ks: Sequence[int]
    steps: int
    k: Places
    suite: Places

    def taken(self, kept: Places) -> _Sums:
        return replace(self, k=self.k[kept], suite=self.suite[kept])

    def spectrum(self, period: int, points: int = _POINTS) -> Complex:
        """The characteristic function of each sum at the lowest frequencies of the period."""
        places, row = np.unique(self.k, return_inverse=True)
        rows = self.rows if self.rows.ndim == 2 else self.rows[places]
        ks = [self.ks[place] for place in places.tolist()]
        tables = _per_cell(self.cells, ks, self.steps, _log_spectrum, period, points)
        size, angle = (np.matmul(rows, table)[row, self.suite] for table in tables)
        log = size + 1j * angle
        if self.bulk is not None:
            frequencies = np.arange(points // 2 + 1.0) * (2 * np.pi / period)
            log += _log_characteristic(self.bulk[:, self.k, self.suite], frequencies).conj()
        return np.asarray(np.exp(log))


def _near_normal_part(
    cells: Cells, ks: Sequence[int], steps: int
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The cumulants of what is close to normal in each sum, and the tasks that are not part of it.

    Those that lean most are left out until the sum of the others is normal to eight digits. The
    tasks left are those of the cells in the last array, by k and suite.
    """
    cumulants = np.stack([_cell_cumulants(cells, k, steps) for k in ks], axis=1)
    rows = cells.tasks.reshape(-1, cells.n.size)
    # Close to 2k runs a task has chances of 0 and 1, and sums of those need not be smooth.
    smooth = np.stack([betas_in_order(cells.n, k) for k in ks])[:, None]
    order = np.argsort(np.abs(cumulants[-1]), axis=-1)[:, None]
    tasks = np.take_along_axis(np.where(smooth, rows, 0.0), order, axis=-1)
    variance, *last = (
        np.cumsum(tasks * np.take_along_axis(np.abs(part)[:, None], order, axis=-1), axis=-1)
        for part in (cumulants[2], *cumulants[-2:])
    )
    normal = np.asarray(variance > 0)
    for power, part in zip((_ORDER - 1, _ORDER), last, strict=True):
        normal &= part * _PEAK <= _NEGLIGIBLE * _FACTORIALS[power] * variance ** (power / 2)
    places = np.arange(cells.n.size)
    many = np.where(normal, places + 1, 0).max(axis=-1, keepdims=True)
    inside = np.empty(normal.shape, dtype=bool)
    np.put_along_axis(inside, np.broadcast_to(order, inside.shape), places < many, axis=-1)
    inside &= smooth
    bulk = np.matmul(np.where(inside, rows, 0.0), cumulants[..., None])[..., 0]
    left = np.where(inside, 0.0, rows)
    kept = np.asarray(left.any(axis=(0, 1)))
    kept[0] |= not kept.any()
    return bulk, left[..., kept], kept


def _cell_cumulants(cells: Cells, k: int, steps: int) -> Floats:
    """The cumulants of each cell's distribution in steps of the lattice, by order from 0 on.

    Most betas are smooth, and theirs have a closed form: a table of chances takes twenty times as
    long. To split a smooth density between neighbours adds two uniform variables to it.
    """
    betas = scaled_betas(cells.n, cells.c, (k,))
    a, b, varies = betas.a[0], betas.b[0], betas.varies[0]
    smooth = varies & (betas.scale[0] == 1) & betas_in_order(cells.n, k)
    smooth &= np.minimum(a, b) >= _SMOOTH_SHAPE
    smooth[smooth] = _is_smooth(a[smooth], b[smooth], steps)
    smooth |= ~varies
    cumulants = np.empty((_ORDER + 1, cells.n.size))
    if smooth.any():
        means, others = _cumulants(cells.taken(smooth), (k,))
        result = others[:, 0] * (float(steps) ** np.arange(_ORDER + 1))[:, None]
        result[1] = means[0] * steps
        cumulants[:, smooth] = result + np.multiply.outer(_OF_SPLITTING, varies[smooth])
    if not smooth.all():
        rest = _of_one_k(cells.taken(~smooth), k, steps, _lattice_cumulants)
        cumulants[:, ~smooth] = np.stack(rest)
    return cumulants


def _log_characteristic(cumulants: Floats, frequencies: Floats) -> Complex:
    """Ln of the characteristic functions of sums close to normal; -inf where those are 0."""
    deviation = np.sqrt(cumulants[2])
    scale = np.where(deviation > 0, deviation, 1.0)
    angle = frequencies * deviation[:, None]
    log = np.zeros(angle.shape, dtype=np.complex128)
    for order in range(_ORDER, 1, -1):
        log = 1j * angle * log + (cumulants[order] / scale**order / _FACTORIALS[order])[:, None]
    log = (1j * angle) ** 2 * log + 1j * frequencies * cumulants[1][:, None]
    return np.where(angle > _LAST_FREQUENCY, -np.inf, log)


def _sums_over(
    asked: _Sums, period: int, centre: Floats, longest: Floats
) -> Iterator[SumDistribution]:
    """The distributions of sums with one period; whole lattices of one length go together."""
    spectrum = asked.spectrum(period)
    alive = (np.abs(spectrum[:, -8:]).max(axis=-1) > _DEAD) & (period > _POINTS)
    lattice = np.zeros(len(alive), dtype=np.int64)
    if alive.any():
        lattice = (2 ** np.ceil(np.log2(longest))).astype(np.int64)
        taper = np.exp(-_TAPER * np.linspace(0, 1, spectrum.shape[-1]) ** 2)
        spectrum = np.where((alive & (lattice > _LONGEST))[:, None], spectrum * taper, spectrum)
        lattice = np.where(alive & (lattice <= _LONGEST), lattice, 0)
    for length in set(lattice.tolist()):
        kept = np.flatnonzero(lattice == length)
        some, whole, points = asked.taken(kept), length or period, length or _POINTS
        spectrum_of_kept = some.spectrum(whole, points) if length else spectrum[kept]
        chances = np.maximum(np.fft.irfft(spectrum_of_kept, points, axis=-1), 0.0)
        start = np.where(longest[kept] <= whole, 0.0, centre[kept] - whole / 2)
        positions, laid = _unrolled(chances, start=start, period=whole, unit=asked.steps)
        yield SumDistribution(suite=some.suite, k=some.k, positions=positions, chances=laid)


def _unrolled(
    chances: Floats, *, start: Floats, period: Floats | float, unit: float
) -> tuple[Floats, Floats]:
    """Positions and chances on a line, of points that repeat after a period, cut open at `start`.

    Positions are in multiples of `unit`.
    """
    points = chances.shape[-1]
    step = np.asarray(period)[..., None] / points
    first = np.ceil(start[..., None] / step).astype(np.intp)
    places = first + np.arange(points)
    # The points are a power of two, so their remainder is a mask of bits.
    laid = np.take_along_axis(chances, places & (points - 1), axis=-1)
    return places * (step / unit), laid / laid.sum(axis=-1, keepdims=True)


def _per_cell(  # type: ignore[no-untyped-def]
    cells: Cells, ks: Sequence[int], steps: int, read, *more: int
):
    """The columns that `read` finds in the distributions of every cell; k first."""
    tables = zip(*(_of_one_k(cells, k, steps, read, *more) for k in ks), strict=True)
    return tuple(columns[0][None] if len(ks) == 1 else np.stack(columns) for columns in tables)


def _of_one_k(  # type: ignore[no-untyped-def]
    cells: Cells, k: int, steps: int, read, *more: int
):
    lengths = np.minimum(cells.lengths, TABLED_RUNS) + 1
    if lengths.size > 1 and (cells.n.size > _MANY_CELLS or 2 * cells.n.size < lengths.sum()):
        # A table for each length takes a call for each, and leaves most rows unused.
        return read(_pmfs_of_cells(cells.n.tobytes(), cells.c.tobytes(), k, steps), *more)
    parts = []
    for runs in cells.lengths.tolist():
        rows = cells.n == runs
        if runs <= TABLED_RUNS:
            passes = cells.c[rows].astype(np.intp)
            table = _table(read, int(runs), None, k, steps, *more)
            parts.append(tuple(column[passes] for column in table))
        else:
            parts.append(_table(read, int(runs), tuple(cells.c[rows].tolist()), k, steps, *more))
    if len(parts) == 1:
        return parts[0]
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def _with_value(cells: Cells, k: int) -> Cells:
    """The cells whose pass^k is not 0 (the others add nothing); one cell where all are 0."""
    kept = share_of_passing_subsets(cells.n, cells.c, k) > NO_VALUE
    kept[0] |= not kept.any()
    return cells.taken(kept)


@lru_cache(maxsize=16)
def _pmfs_of_cells(n: bytes, c: bytes, k: int, steps: int) -> Floats:
    return task_pmfs(np.frombuffer(n), np.frombuffer(c), k, steps)


@lru_cache(maxsize=256)
def _pmf_table(n: int, passes: tuple[float, ...] | None, k: int, steps: int) -> Floats:
    c = np.arange(n + 1.0) if passes is None else np.array(passes)
    return task_pmfs(np.full(c.size, float(n)), c, k, steps)


@lru_cache(maxsize=384)
def _table(  # type: ignore[no-untyped-def]
    read, n: int, passes: tuple[float, ...] | None, k: int, steps: int, *more: int
):
    return read(_pmf_table(n, passes, k, steps), *more)


def _moments(pmfs: Floats) -> tuple[Floats, Floats]:
    """The mean and the variance of each distribution, in steps of the lattice."""
    places = np.arange(float(pmfs.shape[-1]))
    means = pmfs @ places
    return means, np.maximum(pmfs @ places**2 - means**2, 0.0)


def _lattice_cumulants(pmfs: Floats) -> tuple[Floats, ...]:
    """The cumulants of each distribution in steps of the lattice, by order from 0 on."""
    steps = pmfs.shape[-1] - 1
    # About the middle, so that powers of the distance stay small.
    powers = np.linspace(-0.5, 0.5, steps + 1)[:, None] ** np.arange(_ORDER + 1)
    cumulants = _cumulants_of_moments((pmfs @ powers).T / _FACTORIALS[:, None])
    cumulants[1] += 0.5
    unit = float(steps) ** np.arange(_ORDER + 1)
    return tuple(cumulants * (_FACTORIALS[[0, *range(_ORDER)]] * unit)[:, None])


def _cumulants_of_moments(moments: Floats) -> Floats:
    """Cumulants, each over (order - 1)!, of moments over their factorials; an order to a row.

    Divided so, each cumulant is a moment less a sum of products of those before, without binomials.
    """
    cumulants = np.zeros(moments.shape)
    for r in range(1, len(moments)):
        cumulants[r] = r * moments[r] - np.einsum(
            "jc,jc->c", cumulants[1:r], moments[r - 1 : 0 : -1]
        )
    return cumulants


def _log_spectrum(pmfs: Floats, period: int, points: int) -> tuple[Floats, Floats]:
    """Ln of the characteristic functions: its real part and its imaginary part."""
    count = points // 2 + 1
    if period < _LONG_PERIOD * points:
        spectrum = np.fft.rfft(pmfs, period, axis=-1)[:, :count]
    else:
        spectrum = _lowest_frequencies(pmfs, period, count)
    # Separately: numpy's logarithm of complex numbers takes ten times as long.
    square = spectrum.real**2 + spectrum.imag**2
    return np.log(np.maximum(square, _NOTHING)) / 2, np.arctan2(spectrum.imag, spectrum.real)


def _lowest_frequencies(pmfs: Floats, period: int, count: int) -> Complex:
    """The first frequencies of the transform over a period, of which few points are not 0.

    With nj = (n^2 + j^2 - (j - n)^2) / 2 it is a convolution, as long as the points and the
    frequencies together (Bluestein 1970).
    """
    chirp, kernel = _chirp(pmfs.shape[-1], period, count)
    product = np.fft.fft(pmfs * chirp[: pmfs.shape[-1]], kernel.size, axis=-1)
    product *= kernel
    return np.asarray(np.fft.ifft(product, axis=-1)[:, :count] * chirp[:count])


@lru_cache(maxsize=32)
def _chirp(width: int, period: int, count: int) -> tuple[Complex, Complex]:
    """exp(-i pi n^2 / period), and the transform of its inverse for every j - n."""
    size = -(-(width + count - 1) // _FFT_UNIT) * _FFT_UNIT
    # Whole turns are taken off while the squares are integers, and so exact.
    turns = np.arange(max(width, count), dtype=np.int64) ** 2 % (2 * period)
    chirp = np.exp(-1j * np.pi / period * turns)
    inverse = np.zeros(size, dtype=np.complex128)
    inverse[:count] = chirp[:count].conj()
    inverse[size - width + 1 :] = chirp[width - 1 : 0 : -1].conj()
    return chirp, np.fft.fft(inverse)


def _from_spectrum(terms: Floats, centre: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """The distributions from their cumulants, in standard deviations, each in its window."""
    period = _WINDOW * deviation
    last = int(_LAST_FREQUENCY * _WINDOW / (2 * np.pi))
    frequencies = 2 * np.pi / period[..., None] * np.arange(last + 1)
    angle = frequencies * deviation[..., None]
    log = np.zeros(angle.shape, dtype=np.complex128)
    for order in range(_ORDER, 1, -1):
        log = 1j * angle * log + terms[order][..., None]
    log = (1j * angle) ** 2 * log + 1j * frequencies * centre[..., None]
    # irfft reads its input as the transform with the opposite sign of the angle.
    chances = np.maximum(np.fft.irfft(np.conj(np.exp(log)), _POINTS, axis=-1), 0.0)
    return _unrolled(chances, start=centre - period / 2, period=period, unit=1.0)


def _cumulants(cells: Cells, ks: Sequence[int]) -> tuple[Floats, Floats]:
    """The mean of each cell's distribution for each k, and its cumulants from the second on."""
    betas = scaled_betas(cells.n, cells.c, ks)
    shapes = betas.a.ravel(), betas.b.ravel(), betas.scale.ravel()
    cumulants = np.zeros((_ORDER + 1, betas.value.size))
    for start in range(0, betas.value.size, _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        _cumulants_of_betas(cumulants[:, some], *(part[some] for part in shapes))
    cumulants *= _FACTORIALS[[0, *range(_ORDER)], None]
    return betas.value, cumulants.reshape(_ORDER + 1, *betas.value.shape)


def _cumulants_of_betas(cumulants: Floats, a: Floats, b: Floats, scale: Floats) -> None:
    """Fill in the cumulants of scale * Beta(a, b) from the second on, each over (order - 1)!."""
    size = a + b
    mean = a / size
    product, lean = mean * (1 - mean) * scale**2, (1 - 2 * mean) * scale
    moments = np.zeros((_ORDER + 1, a.size))
    moments[0] = 1.0
    for r in range(1, _ORDER):
        # Integrating (x - mean)^r x (1 - x) f by parts gives each central moment from two before.
        inner = product * moments[r - 1] + r * lean * moments[r]
        moments[r + 1] = inner / ((r + 1) * (size + r))
    cumulants[:] = _cumulants_of_moments(moments)


# The distribution of each task's pass^k given its runs; it moves to the right with every pass.

# Splitting a value between two points of the lattice adds up to a sixth of a squared step to
# its variance; four steps to the standard deviation of the tightest distribution, one failure in n
# runs, keep that at 1 %.
_STEPS_PER_DEVIATION = 4

_FEWEST_STEPS, _MOST_STEPS = 64, 512
NO_VALUE = 1e-12
"""A pass^k below this is 0 to every digit that is ever shown."""

# Beyond this exponent a tail is below e^-40, less than the rounding of a float.
_REACH = 40.0
# From so many times k runs on, betas of these means and variances are in order.
_BETAS_IN_ORDER = 3
# Gauss and Legendre's integral over one step of the lattice, by four nodes. A density with this
# standard deviation, in steps, is integrated to 1e-11 so many steps from 0 and 1, where a beta may
# have infinite derivatives. The values of so many densities fit into the cache of a core.
_SMOOTH_DEVIATION, _EDGE_STEPS = 3.0, 12
# From these shapes on a beta leaves 0 and 1 so smoothly that its sums over the lattice are
# integrals, to the digits that are kept.
_SMOOTH_SHAPE = 3.0
_ROWS_AT_ONCE = 256
_GAUSS_NODES = (-0.8611363115940526, -0.3399810435848563, 0.3399810435848563, 0.8611363115940526)
_GAUSS_WEIGHTS = (0.3478548451374538, 0.6521451548625461, 0.6521451548625461, 0.3478548451374538)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaledBetas:
    """pass^k as scale * Beta(a, b) where it `varies`, else as `value`; a row for each k."""

    value: Floats
    varies: NDArray[np.bool_]
    a: Floats
    b: Floats
    scale: Floats


def lattice_steps(n: Floats, k: int) -> int:
    """Into how many steps [0, 1] is divided for tasks of so many runs: a power of two."""
    wanted = np.clip(_STEPS_PER_DEVIATION * n.max() / k, _FEWEST_STEPS, _MOST_STEPS)
    return int(2 ** np.ceil(np.log2(wanted)))


def task_pmfs(n: Floats, c: Floats, k: int, steps: int) -> Floats:
    """Chances of pass^k being 0, 1/steps, ... 1 after c passes in n >= 2k runs; a row for each.

    Mean and variance are those that the counts say without bias: f = C(c, k) / C(n, k) and
    f^2 - C(c, 2k) / C(n, 2k). A row with more passes lies to the right of one with fewer, at
    every chance, and so does whatever only adds and mixes rows.
    """
    pmfs = np.empty((n.size, steps + 1))
    close = ~betas_in_order(n, k)
    pmfs[~close] = _beta_pmfs(n[~close], c[~close], k, steps)
    for runs in set(n[close].tolist()):
        rows = n == runs
        pmfs[rows] = _chained_pmfs(int(runs), k, steps)[c[rows].astype(np.intp)]
    return pmfs


def scaled_betas(n: Floats, c: Floats, ks: Sequence[int]) -> ScaledBetas:
    """Betas; with fewer than 2k - 1 passes, where the variance is f^2, that of 2k - 1 scaled."""
    value = shares_of_passing_subsets(n, c, ks)
    twice = shares_of_passing_subsets(n, c, [2 * k for k in ks])
    top = value.copy()
    for row, k in enumerate(ks):
        few = (c >= k) & (c < 2 * k - 1)
        if few.any():
            top[row, few] = share_of_passing_subsets(n[few], np.full(few.sum(), 2.0 * k - 1), k)
    varies = (c < n) & (c >= np.array(ks)[:, None]) & (top > NO_VALUE)
    # What does not vary is a beta of some shape times 0.
    most = np.where(varies, top, 0.5)
    relative = np.where(varies, 1 - twice / most / most, 0.5)
    first = (1 - most) / relative - most
    second = first * (1 - most) / most
    scale = np.where(varies, value / most, 0.0)
    return ScaledBetas(value=value, varies=varies, a=first, b=second, scale=scale)


def betas_in_order(n: Floats, k: int) -> NDArray[np.bool_]:
    """Where so many runs make `scaled_betas` move to the right with every pass."""
    return np.asarray(n >= _BETAS_IN_ORDER * k)


def _beta_pmfs(n: Floats, c: Floats, k: int, steps: int) -> Floats:
    betas = scaled_betas(n, c, (k,))
    a, b, scale, varies = betas.a[0], betas.b[0], betas.scale[0], betas.varies[0]
    smooth = varies & (scale == 1) & _is_smooth(a, b, steps)
    pmfs = np.empty((n.size, steps + 1))
    points = np.arange(steps + 2) / steps
    below = np.maximum(points - betas.value[0, ~smooth, None], 0.0)
    rest = varies & ~smooth
    below[rest[~smooth]] = _expected_shortfall((a[rest], b[rest]), scale[rest], points)
    pmfs[~smooth] = _split(below, steps)
    for rows in np.array_split(np.flatnonzero(smooth), smooth.sum() // _ROWS_AT_ONCE + 1):
        pmfs[rows] = _smooth_pmfs(a[rows], b[rows], steps)
    return pmfs


def _is_smooth(a: Floats, b: Floats, steps: int) -> NDArray[np.bool_]:
    """Whether the density of Beta(a, b) varies little over a step of the lattice."""
    variance = a * b / (a + b) ** 2 / (a + b + 1)
    return np.asarray(variance * steps**2 >= _SMOOTH_DEVIATION**2)


def _smooth_pmfs(a: Floats, b: Floats, steps: int) -> Floats:
    """Beta(a, b) on the lattice, by integrals of its density but for the steps next to 0 and 1.

    An incomplete beta function takes as long as fifty values of the density.
    """
    pmfs = np.empty((a.size, steps + 1))
    points, ones = np.arange(steps + 2) / steps, np.ones(a.size)
    first, last = points[: _EDGE_STEPS + 1], points[-_EDGE_STEPS - 3 :]
    pmfs[:, :_EDGE_STEPS] = _split(_expected_shortfall((a, b), ones, first), steps)
    pmfs[:, -_EDGE_STEPS - 1 :] = _split(_expected_shortfall((a, b), ones, last), steps)[:, 1:]
    logs, log_rest, weights = _inner_nodes(steps)
    log_density = np.multiply.outer(a - 1, logs)
    log_density += np.multiply.outer(b - 1, log_rest)
    log_density -= special.betaln(a, b)[:, None]
    density = np.exp(log_density, out=log_density).reshape(-1, len(weights))
    ends = (density @ weights).reshape(a.size, steps - 2 * _EDGE_STEPS + 1, 2)
    pmfs[:, _EDGE_STEPS : -_EDGE_STEPS - 1] = ends[:, :-1, 1] + ends[:, 1:, 0]
    return pmfs


@lru_cache(maxsize=4)
def _inner_nodes(steps: int) -> tuple[Floats, Floats, Floats]:
    """Ln x and ln(1 - x) at the nodes of every step inside, and what each adds to both its ends."""
    starts = np.arange(_EDGE_STEPS - 1, steps - _EDGE_STEPS)
    places = (1 + np.array(_GAUSS_NODES)) / 2
    x = ((starts[:, None] + places) / steps).ravel()
    weights = np.array(_GAUSS_WEIGHTS) / 2 / steps
    return np.log(x), np.log1p(-x), np.stack((weights * (1 - places), weights * places), axis=-1)


@lru_cache(maxsize=64)
def _chained_pmfs(n: int, k: int, steps: int) -> Floats:
    """Distributions for every count of passes where n is close to 2k, and betas would cross.

    From one failure downward, the distribution with one pass fewer is that with one pass more,
    times a share: the mean share, or else 1 or 0 with that mean, mixed so that the second moment is
    right.
    """
    passes = np.arange(n + 1.0)
    runs = np.full(n + 1, float(n))
    value = share_of_passing_subsets(runs, passes, k)
    square = 2 * value**2 - share_of_passing_subsets(runs, passes, 2 * k)
    pmfs = np.zeros((n + 1, steps + 1))
    pmfs[n, steps], pmfs[:k, 0] = 1.0, 1.0
    spread = square[n - 1] - value[n - 1] ** 2
    size = value[n - 1] * (1 - value[n - 1]) / spread - 1
    if size > 1e-9:
        shapes = (np.array([value[n - 1] * size]), np.array([(1 - value[n - 1]) * size]))
        points = np.arange(steps + 2) / steps
        pmfs[n - 1] = _split(_expected_shortfall(shapes, np.ones(1), points), steps)[0]
    else:
        pmfs[n - 1, [0, steps]] = 1 - value[n - 1], value[n - 1]
    for length in range(n - 2, k - 1, -1):
        if value[length] < NO_VALUE:
            pmfs[length, 0] = 1.0
            continue
        share = value[length] / value[length + 1]
        moment = square[length] / square[length + 1]
        thinned = float(np.clip((moment - share**2) / (share - share**2), 0.0, 1.0))
        pmfs[length] = (1 - thinned) * _scaled(pmfs[length + 1], share)
        pmfs[length] += thinned * share * pmfs[length + 1]
        pmfs[length, 0] += thinned * (1 - share)
    return pmfs


def _scaled(pmf: Floats, share: float) -> Floats:
    """The distribution of a share of the variable, each value split between its neighbours."""
    places = np.arange(pmf.size) * share
    left = np.minimum(places.astype(np.intp), pmf.size - 2)
    right = (places - left) * pmf
    scaled = np.bincount(left, pmf - right, pmf.size)
    scaled[1:] += np.bincount(left, right, pmf.size)[:-1]
    return np.asarray(scaled)


def _expected_shortfall(shapes: tuple[Floats, Floats], scale: Floats, points: Floats) -> Floats:
    """E max(x - s X, 0) for X from Beta(a, b)."""
    a, b = (shape[:, None] for shape in shapes)
    mean, factor = a / (a + b), scale[:, None]
    x = points / factor
    short = np.maximum(x - mean, 0.0)
    # Beyond its reach X lies on one side of x, to every digit.
    below, above = mean - _reach(b, a), mean + _reach(a, b)
    rows, columns = np.nonzero((x < 1) & (x > below) & (x < above))
    inside, first, second = x[rows, columns], shapes[0][rows], shapes[1][rows]
    # By parts; the term in place of a second incomplete beta function is I(a) - I(a + 1).
    log_term = special.xlogy(first, inside) + special.xlog1py(second, -inside)
    term = mean[rows, 0] * np.exp(log_term - special.betaln(first, second)) / first
    short[rows, columns] = (inside - mean[rows, 0]) * special.betainc(first, second, inside) + term
    return np.asarray(factor * short)


def _reach(a: Floats, b: Floats) -> Floats:
    """How far above its mean Beta(a, b) reaches: Bernstein's inequality at exp(-_REACH)."""
    mean = a / (a + b)
    variance = mean * (1 - mean) / (a + b + 1)
    heavy = _REACH * variance / mean
    return np.asarray(heavy + np.sqrt(heavy**2 + 2 * _REACH * variance))


def _split(below: Floats, steps: float) -> Floats:
    """Chances on the lattice with the same mean: each value is split between neighbours."""
    before = np.concatenate((np.zeros((len(below), 1)), below[:, :-2]), axis=1)
    chances = steps * (below[:, 1:] - 2 * below[:, :-1] + before)
    return np.maximum(chances, 0.0)
