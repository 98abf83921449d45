"""Coherent bounds for the mean pass^k of the tasks that were run: only runs are random.

Each task's pass^k gets a distribution, the distributions are added up, and a low quantile of the
mean bounds it from below; what is missing to 1 is bounded likewise, for the upper end. A task's
distribution for the lower end moves to the left with every failure that is added, that for the
upper end to the right with every pass (`scaled_betas`). No count shows a failure that did not
happen yet, so the mean is multiplied by the distribution of runs without a failure, which failures
never shorten. So one more failure raises no lower end. Nor may it change how the distributions are
added up: the lattice depends on the number of tasks and on k alone (`lattice_steps`), and where a
task outgrows the tables an end is held to the one before (`_held_to_tabled_runs`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import factorial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from passhat.dataclass import dataclass, replace
from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.numerics import find_root_within
from passhat.stats.passk import share_of_passing_subsets, shares_of_passing_subsets
from passhat.stats.proportions import Bounds
from passhat.stats.sufficient_statistics import Cells, cached

# One pass more than was seen, and half of one to be safe: how high the rate of a task that did not
# always pass may lie, which says how much a further pass of it would add to pass^k.
_UNSEEN_PASSES = 1.5
# A secant that moves an end by less than the first figure, where the normal quantile of its chance
# is right to the second, leaves it where it is to nine digits; halving goes on to the third.
_CLOSE, _NEAR, _TIGHT, _MOST_SECANTS = 1e-7, 1e-4, 1e-10, 80
# Confidence distributions are summed of so few tasks, on so many steps: 2,048 points at most.
_FEW_SUMMED, _CONFIDENCE_STEPS = 15, 128
# Keeps logarithms and roots finite; no chance or variance that matters is as small.
_TINY = 1e-300
# Brackets of the root in ln(rho - 1): the usual one is tried first, the wide one always holds it.
_USUAL_RHO = (-4.0, 5.0)
_RHO_RANGE = (-12.0, 40.0)


class ShrunkDistribution:
    """The distributions of X U^(1/groups), a row each: X at `places`, U uniform.

    U^(1/groups) is how low a rate may lie after so many groups of runs without a failure. The
    chance of at most x is the mean of min(1, x / X)^groups. With `steps`, the distance from each
    place to the next, X is smooth, and each of its chances is spread evenly over one step.
    """

    def __init__(self, places: Floats, chances: Floats, steps: Floats | None = None) -> None:
        self._edges = None
        if steps is None:
            positive = places > 0
            self._log_places = np.log(np.where(positive, places, 1.0))
            self._chances = np.where(positive, chances, 0.0)
            self._chance_of_zero = (chances - self._chances).sum(axis=-1)
        else:
            # Summed by parts: how much the density falls at each edge between two places.
            step, none = steps[:, None], np.zeros((len(places), 1))
            self._edges = np.concatenate((places[:, :1] - step, places), axis=1) + step / 2
            self._log_places = np.log(np.maximum(self._edges, _TINY))
            self._chances = -np.diff(chances, prepend=none, append=none) / step
            self._chance_of_zero = none[:, 0]
        self._mean = np.vecdot(places, chances)
        square = np.vecdot(places**2, chances) - self._mean**2
        self._deviation = np.sqrt(np.maximum(square, 0.0))

    def chance(self, x: Floats, groups: Floats, rows: Places) -> Floats:
        """The chance of at most x in each of these rows."""
        short = np.log(x)[:, None] - self._log_places[rows]
        short = np.minimum(short, 0.0, out=short)
        if self._edges is not None:
            # By the integral of min(1, x / X)^groups up to each edge; a constant would add nothing.
            beyond = np.where(np.abs(groups - 1) < _CLOSE, _CLOSE, groups - 1)
            short *= beyond[:, None]
            short = np.exp(short, out=short)
            short *= (x / beyond)[:, None]
            below = self._edges[rows]
            below = np.minimum(below, x[:, None], out=below)
            below -= short
            return np.asarray(np.vecdot(self._chances[rows], below))
        short *= groups[:, None]
        shrunk = np.vecdot(self._chances[rows], np.exp(short, out=short))
        return np.asarray(self._chance_of_zero[rows] + shrunk)

    def quantile(
        self,
        tail: Floats,
        groups: Callable[[Floats, Places], Floats],
        least: Floats | None = None,
        beside: Floats | None = None,
    ) -> Floats:
        """The `tail` quantiles, where the groups depend on the quantile itself and fall with it.

        It is 0 if 0 has at least that chance, and the `least` of each row where that is larger. By
        secants, as x lies almost on a line against the normal quantile of its chance. Every row
        ends where it would end alone. With `beside` it is only right on which side of that a
        quantile lies, which takes one step.
        """
        result, most = np.zeros(tail.size), groups(self._mean, np.arange(tail.size))
        rows = np.flatnonzero((most > 0) & (self._chance_of_zero < tail))
        if least is not None:
            result = least.copy()
            # A quantile that lies below its least need not be found.
            some = rows[least[rows] > 0]
            below = self.chance(least[some], groups(least[some], some), some) >= tail[some]
            below |= least[some] >= self._mean[some]
            rows = rows[~np.isin(rows, some[below])]
        tail, mean, deviation = tail[rows], self._mean[rows], self._deviation[rows]
        goal = special.ndtri(tail)
        x = mean * np.minimum(tail ** (1 / most[rows]), 1.0)
        x = np.where(mean + goal * deviation > 0, np.minimum(x, mean + goal * deviation), x)
        x = x if beside is None else np.clip(beside[rows], _TINY, mean)
        low, high = np.zeros(rows.size), mean
        x_before = miss_before = np.full(rows.size, np.nan)
        for _ in range(_MOST_SECANTS):
            size = groups(x, rows)
            chance = np.clip(self.chance(x, size, rows), _TINY, 1 - 1e-16)
            miss = goal - special.ndtri(chance)
            low, high = np.where(miss > 0, x, low), np.where(miss < 0, x, high)
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = (x - x_before) / (miss_before - miss)
            # The first step: as if normal, or as if runs without a failure were all there is.
            start = np.where(deviation > 0, x + miss * deviation, x * (tail / chance) ** (1 / size))
            closer = np.where(np.isfinite(slope), x + miss * slope, start)
            # Of a few points the chance rises in steps, and a secant may lead nowhere.
            good = (closer > low) & (closer < high) & ~(np.abs(miss) > np.abs(miss_before) / 2)
            closer = np.where(good, closer, (low + high) / 2)
            result[rows] = closer
            open_ = (np.abs(closer - x) > np.where(good, _CLOSE, _TIGHT)) | (np.abs(miss) > _NEAR)
            open_ &= high - low > _TIGHT
            if beside is not None or not open_.any():
                break
            x_before, miss_before, x, low, high, rows, tail, goal, deviation = (
                part[open_] for part in (x, miss, closer, low, high, rows, tail, goal, deviation)
            )
        return result


BOTH = (False, True)
"""The ends of an interval: whether it is the upper one."""


def suite_bounds(
    cells: Cells,
    ks: Sequence[int],
    confidence: Floats | float,
    ends: Sequence[bool] = BOTH,
    beside: float | None = None,
    *,
    drawn: bool = False,
) -> Bounds:
    """The intervals for the mean pass^k of these tasks, k along the last axis.

    Every task has at least k runs, for every k. `confidence` may differ from suite to suite: it
    is broadcast against the result. An end that is not asked for takes no time, and lies outside.
    With `beside`, ends are only right on which side of that they lie. Suites that are `drawn` for a
    plan are added up on a lattice as coarse as their runs allow: 400 of 20 tasks take half as long,
    and no end moves by more than 0.001. A further run may make it finer, so none is reported.
    """
    tail = (1 - confidence) / 2
    asked = _Asked(tail, ends, beside, drawn)
    own = _bounds_of_powers(cells, ks, asked)
    low, high = _bounds_of_lower_powers(cells, ks, own, asked)
    values = shares_of_cells(cells, tuple(ks))
    means = cells.tasks @ values.T / cells.task_count[..., None]
    bounds = np.minimum(low, means), np.maximum(high, means)
    bounds = _held_to_tabled_runs(cells, ks, bounds, asked)
    bounds = _opened_to_alike_tasks(cells, ks, bounds, asked)
    return _opened_to_one_task(cells, ks, values, bounds, tail)


class _Asked(NamedTuple):
    """Which ends are asked for, at which tail, on which side of what they lie; and of what."""

    tail: Floats | float
    ends: Sequence[bool]
    beside: float | None
    drawn: bool


def _held_to_tabled_runs(cells: Cells, ks: Sequence[int], bounds: Bounds, asked: _Asked) -> Bounds:
    """The bounds, held to those before a task outgrew the tables, as sums are finer beyond.

    Without that they may show more than a failure takes away, or less than a pass adds. A lower end
    is opened to that without the failures beyond `TABLED_RUNS`. Where only tasks that always passed
    are as long, it is at least that without their passes beyond. Upper ends are mirrored.
    """
    if asked.drawn or cells.n.max() <= TABLED_RUNS or max(ks) > TABLED_RUNS:
        return bounds
    runs, ends, held = np.minimum(cells.n, TABLED_RUNS), list(bounds), cells.tasks > 0
    for upper in asked.ends:
        kept = cells.n - cells.c if upper else cells.c
        mixed = np.asarray((held & (kept < cells.n) & (cells.n > TABLED_RUNS)).any(axis=-1))
        beyond = np.asarray((held & (kept > TABLED_RUNS)).any(axis=-1))
        if (mixed & beyond).all():
            continue
        kept = np.minimum(kept, TABLED_RUNS)
        shorter = Cells(n=runs, c=runs - kept if upper else kept, tasks=cells.tasks)
        own = suite_bounds(shorter, ks, 1 - 2 * asked.tail, (upper,), asked.beside)[upper]
        inner, outer = (f(ends[upper], own) for f in (np.maximum, np.minimum)[:: 1 - 2 * upper])
        mixed, beyond = mixed[..., None], beyond[..., None]
        ends[upper] = np.where(mixed, np.where(beyond, ends[upper], outer), inner)
    return ends[0], ends[1]


def _bounds_of_powers(cells: Cells, ks: Sequence[int], asked: _Asked) -> Bounds:
    """Bounds by confidence distributions of few tasks, by shares of few runs, and by sums."""
    low, high = _bounds_of_few_tasks(cells, ks, asked)
    shape = low.shape
    few = [place for place, k in enumerate(ks) if cells.n.min() <= 2 * k]
    if few:
        tails = np.broadcast_to(asked.tail, shape)[..., few]
        shares = _bounds_of_shares(cells, [ks[place] for place in few], tails)
        fewest = np.where(cells.tasks > 0, cells.n, np.inf).min(axis=-1)
        may = fewest[..., None] <= 2 * np.array(ks)[few]
        low[..., few] = np.maximum(low[..., few], np.where(may, shares[0], 0.0))
        high[..., few] = np.minimum(high[..., few], np.where(may, shares[1], 1.0))
    useful, values = dict[End, NDArray[np.bool_]](), shares_of_cells(cells, tuple(ks))
    for place, k in enumerate(ks):
        for upper in asked.ends:
            # The mean of a sum, outside which its end lies, may be no better than the shares.
            value = _completed_value(cells, End(k, upper)) if place in few else values[place]
            mean = cells.mean(value)
            better = mean < high[..., place] if upper else mean > low[..., place]
            if better.any():
                useful[End(k, upper)] = better
    return _bounds_of_sums(cells, ks, asked, useful, (low, high)) if useful else (low, high)


def _bounds_of_few_tasks(cells: Cells, ks: Sequence[int], asked: _Asked) -> Bounds:
    """Bounds by the sums of the confidence distributions of Clopper and Pearson, of few tasks.

    Of one task they are exact. Of several they are safe, as each lies beyond the rate that was seen
    by up to one run, and the errors add up; so of many tasks they are wide. A power of a rate that
    is spread out is larger than that of its mean, which is safe for an upper end. The lower end is
    a power of that for the mean rate (Jensen).
    """
    shape = *cells.tasks.shape[:-1], len(ks)
    low, high = np.zeros(shape), np.ones(shape)
    few = cells.task_count <= _FEW_SUMMED
    if not few.any():
        return low, high
    tails, count = np.broadcast_to(asked.tail, shape), cells.task_count[..., None]
    if False in asked.ends:
        below = _confidence_sums(cells, End(1, upper=False))[..., None, :]
        low = np.where(few[..., None], _quantiles(below, tails) / count, 0.0) ** np.array(ks)
    for place, k in enumerate(ks) if True in asked.ends else ():
        below = _confidence_sums(cells, End(k, upper=True))
        end = _quantiles(below, 1 - tails[..., place]) / cells.task_count
        high[..., place] = np.where(few, np.minimum(end, 1.0), 1.0)
    return low, high


@cached
def _confidence_sums(cells: Cells, end: End) -> Floats:
    """The chances that the summed pass^k of each suite lies below the middles of lattice steps."""
    rates = ((np.arange(_CONFIDENCE_STEPS) + 0.5) / _CONFIDENCE_STEPS) ** (1 / end.k)
    below = np.zeros((cells.n.size, _CONFIDENCE_STEPS + 2))
    # At each rate the chance of at least so many passes: how far the confidence in it goes. Of none
    # it is 1, so that a lower end is 0; of one more than the runs it is 0.
    least, runs = (cells.c + end.upper)[:, None], cells.n.astype(np.int64)[:, None]
    below[:, 1:-1] = special.bdtrc(least - 1, runs, rates)
    below[:, -1] = 1.0
    most = int(np.minimum(cells.task_count, _FEW_SUMMED).max())
    size = 1 << (most * _CONFIDENCE_STEPS).bit_length()
    spectrum = np.fft.rfft(np.diff(below, axis=1), size, axis=-1)
    # Task by task; where a suite has no more of them, times 1.
    spectrum = np.concatenate((spectrum, np.ones((1, spectrum.shape[-1]))))
    tasks_so_far = cells.tasks.cumsum(axis=-1)
    product = np.ones(1)
    for task in range(most):
        product = product * spectrum[(tasks_so_far <= task).sum(axis=-1)]
    return np.asarray(np.fft.irfft(product, size, axis=-1).clip(0.0).cumsum(axis=-1))


def _quantiles(below: Floats, chance: Floats) -> Floats:
    """Where a sum lies below with this chance, in tasks; straight between the steps."""
    place = (below < chance[..., None]).sum(axis=-1, keepdims=True)
    place = np.minimum(place, below.shape[-1] - 1)
    upper = np.take_along_axis(below, place, axis=-1)
    lower = np.where(place > 0, np.take_along_axis(below, np.maximum(place - 1, 0), axis=-1), 0.0)
    part = (chance[..., None] - lower) / np.maximum(upper - lower, _TINY)
    return np.asarray(
        ((place + np.clip(part, 0.0, 1.0) - 0.5) / _CONFIDENCE_STEPS)[..., 0].clip(0.0)
    )


def _bounds_of_lower_powers(
    cells: Cells, ks: Sequence[int], bounds: Bounds, asked: _Asked
) -> Bounds:
    """The bounds, or those by Jensen: (mean p^j)^(k/j) <= mean p^k <= mean p^j with j = k // 2.

    Tasks with too few runs to show the spread of p^k show that of p^j.
    """
    low, high = (bound.copy() for bound in bounds)
    for place, k in enumerate(ks):
        j = k // 2
        if not j:
            continue
        own_low, own_high = (bound[..., place] for bound in bounds)
        mean = cells.tasks @ shares_of_cells(cells, (j,))[0] / cells.task_count
        # No bound for p^j lies inside its mean.
        better = mean ** (k / j) > own_low, mean < own_high
        places = None if asked.beside is None else (asked.beside ** (j / k), asked.beside)
        for upper in asked.ends:
            may = np.asarray(better[upper])
            if not may.any():
                continue
            if j in ks and places is None:
                end = bounds[upper][..., ks.index(j)][may]
            else:
                rows = np.atleast_2d(cells.tasks)[np.atleast_1d(may)]
                some = Cells(n=cells.n, c=cells.c, tasks=rows)
                tails = np.atleast_1d(np.broadcast_to(asked.tail, low.shape)[..., place][may])
                lower = _Asked(tails[:, None], (upper,), places and places[upper], asked.drawn)
                end = _bounds_of_powers(some, (j,), lower)[upper][:, 0]
            if upper:
                high[may, place] = np.minimum(own_high[may], end)
            else:
                low[may, place] = np.maximum(own_low[may], end ** (k / j))
    return low, high


def _opened_to_alike_tasks(
    cells: Cells, ks: Sequence[int], bounds: Bounds, asked: _Asked
) -> Bounds:
    """The bounds, opened to those of Clopper and Pearson for the trials of all tasks together.

    Where tasks are alike and few of them failed, the spread that was seen leaves out how many more
    might have failed. A task that failed is one failure here, however often it failed: so the ends
    are exact where tasks are alike, and lie beyond the others where tasks differ. For a lower end
    each k passes of a task may count as one trial, too, whose rate is pass^k itself: where most
    tasks fail, a power of the rate of all would be too low.
    """
    ends, powers, failures = list(bounds), np.array(ks, dtype=np.float64), cells.n - cells.c

    def end(seen: Floats, other: Floats) -> Floats:
        """The lower end of the rate of what was seen so often, beside so many of the other kind."""
        some = seen > 0
        rates = special.betaincinv(np.where(some, seen, 1.0), other + 1, asked.tail)
        return np.where(some, rates, 0.0)

    if False in asked.ends:
        counts = (cells.c >= powers[:, None]).astype(np.float64)
        passes = cells.tasks @ (counts * cells.c).T
        failed = (cells.tasks @ (failures > 0))[..., None]
        # A failed trial is a part of its group only, which counts as a whole: by half the others
        # fewer groups the end is what the power of the rate is, to the second order.
        halves = cells.tasks @ (counts * (failures > 0)).T * (powers - 1) / 2
        groups = passes**2 / np.maximum(passes + halves, 1.0) / powers
        ends[0] = np.minimum(
            ends[0], np.maximum(end(passes, failed) ** powers, end(groups, failed))
        )
    if True in asked.ends:
        passed, failed = (cells.tasks @ kind for kind in (cells.c > 0, failures))
        ends[1] = np.maximum(ends[1], (1 - end(failed[..., None], passed[..., None])) ** powers)
    return ends[0], ends[1]


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
    values: Floats, tasks: Floats, weight: Floats, unseen: Floats, tail: Floats | float
) -> Floats:
    """The `tail` quantile of sum G Y / (sum G + G_0), with Y = 1 with the chance of each value.

    G has the distribution Gamma(weight) for each task, and G_0 that of `unseen` for what no task
    has shown. The last axis runs over distinct values, the others over questions, each with its
    weight. By the saddle point: for a ratio rho of its two factors, all else follows in closed
    form.
    """
    target = special.ndtri(1 - np.asarray(tail))
    held, count = np.vecdot(tasks, values), tasks.sum(axis=-1)
    some = (held > 0) & ((held < count) | (unseen > 0))
    values = np.where(some[..., None], values, 0.5)
    missing = 1 - values

    def at(log: Floats) -> tuple[Floats, Floats]:
        rho = 1 + np.exp(log)
        # Beyond e^700 a float overflows; the tilt is 0 long before.
        odds = np.exp(np.minimum(weight * np.log(rho), 700.0))
        tilted = values / (values + missing * odds[..., None])
        passing = np.vecdot(tasks, tilted)
        ones, rest = weight * passing, weight * (count - passing) + unseen
        theta = ones / (ones + rest * rho)
        s = (rho - 1) / (1 - theta + rho * theta)
        up, down = 1 + s * (1 - theta), 1 - s * theta
        passed, failed = up**-weight, np.exp(np.minimum(-weight * np.log(down), 700.0))
        mixed = values * passed[..., None] + missing * failed[..., None]
        cumulant = np.vecdot(tasks, np.log(np.maximum(mixed, _TINY))) - unseen * np.log(down)
        root = np.sqrt(np.maximum(-2 * cumulant, _TINY))
        one, zero = (1 - theta) / up, theta / down
        jump = np.vecdot(tasks, tilted * (1 - tilted)) * (weight * (one + zero)) ** 2
        spread = s * np.sqrt(jump + ones * one**2 + rest * zero**2)
        return theta, root + np.log(np.maximum(spread, _TINY) / root) / root

    def beyond(minus_log: Floats) -> Floats:
        return np.where(some, at(-minus_log)[1] - target, 0.0)

    usual, range_ = ((-end[1], -end[0]) for end in (_USUAL_RHO, _RHO_RANGE))
    theta = at(-find_root_within(beyond, some.shape, usual, range_))[0]
    return np.where(some, theta, held > 0)


def _bounds_of_shares(cells: Cells, ks: Sequence[int], tail: Floats | float) -> Bounds:
    """Bounds where some tasks have fewer than 2k runs, each k along the last axis.

    pass^k is known for each task, its spread only for all together. With n = k runs a task's
    pass^k is seen as 0 or 1, once. Of T such tasks the share that passed is bounded as a proportion
    is, by Beta(S, T - S): a Dirichlet weight for each task. With more runs a task shows more, so
    the weights vary less: Gamma(n / (2k - n)) in place of Gamma(1). Tasks that ran differently
    often share the harmonic mean of these.
    """
    values = shares_of_passing_subsets(cells.n, cells.c, ks)
    tasks = cells.tasks[..., None, :]
    mean = (tasks * values).sum(axis=-1) / cells.task_count[..., None]
    twice = 2 * np.array(ks)[:, None]
    # Both ends at once: the upper end is 1 minus the lower end of what is missing to 1. A failure
    # that is added must not narrow the weights for the lower end, so passes are the runs there, and
    # no value says how much its task counts. For the upper end a pass counts as far as it shows.
    failures = np.broadcast_to(cells.n - cells.c, values.shape)
    passes = np.broadcast_to(cells.c, values.shape)
    shape = 2, *(1,) * (cells.tasks.ndim - 1), *values.shape
    sides = np.stack((values, 1 - values)).reshape(shape)
    runs = np.stack((passes, failures + passes * values)).reshape(shape)
    spread = twice / np.clip(runs, twice / 2, twice - 1) - 1
    seen = np.where(sides > 0, tasks, 0.0)
    held, spreads = seen.sum(axis=-1), np.vecdot(seen, spread)
    weight = np.where(held > 0, held, 1.0) / np.where(held > 0, spreads, 1.0)
    # One more task that passes is allowed for at the upper end, as Clopper and Pearson do. For the
    # lower one, tasks that are alike have a bound of their own (`_opened_to_alike_tasks`). But for
    # k = 1 both ends are alike, and exact by what no run has shown where all runs ended alike.
    single, differ = np.array(ks) == 1, np.vecdot(tasks, sides) < cells.task_count[..., None]
    unseen = np.stack((single & differ[0], ~single | differ[1])).astype(np.float64)
    quantiles = _few_runs_quantile(sides, tasks, weight, unseen, tail)
    ends, means = quantiles.ravel(), np.stack((mean, 1 - mean)).ravel()
    tails = np.broadcast_to(tail, quantiles.shape).ravel()
    surprised = ShrunkDistribution(means[:, None], np.ones((means.size, 1))).quantile(
        tails, _Unseen.of(cells, ks, tails).groups
    )
    low, missing = np.minimum(ends, surprised).reshape(quantiles.shape)
    return low, 1 - missing


def _bounds_of_sums(
    cells: Cells,
    ks: Sequence[int],
    asked: _Asked,
    useful: Mapping[End, NDArray[np.bool_]],
    known: Bounds,
) -> Bounds:
    """The bounds, or those by the sums of the tasks' distributions, and by an unseen failure.

    An end that is not `useful` is the known one. Each k is along the last axis.
    """
    shape = 2, *cells.tasks.shape[:-1], len(ks)
    tails, beside = np.broadcast_to(asked.tail, shape).ravel(), None
    if asked.beside is not None:
        beside = np.repeat((asked.beside, 1 - asked.beside), tails.size // 2)
    unseen = _Unseen.of(cells, ks, tails)
    result = np.stack((known[0], 1 - known[1])).ravel()
    # The distributions of a suite or two are kept, for other tails as well.
    few = cells.tasks.size <= 2 * cells.n.size
    parts = np.stack([part.ravel() | few for part in useful.values()])
    for rows, means in _mean_distributions(
        cells, tuple(ks), tuple(useful), parts.tobytes(), asked.drawn
    ):
        result[rows] = means.quantile(
            tails[rows],
            unseen.taken(rows).groups,
            result[rows],
            None if beside is None else beside[rows],
        )
    low, missing = result.reshape(shape)
    return low, 1 - missing


@cached
def _mean_distributions(
    cells: Cells, ks: tuple[int, ...], ends: tuple[End, ...], useful: bytes, drawn: bool
) -> list[tuple[Places, ShrunkDistribution]]:
    """The distributions of the mean, with the place of each by side, suite and k.

    Only those that are `useful`: whether each end of each suite is, as bytes.
    """
    tasks = cells.task_count.reshape(-1)
    sides = np.array([end.upper for end in ends], np.intp)
    powers = np.array([ks.index(end.k) for end in ends])
    distributions = []
    some = np.frombuffer(useful, dtype=bool).reshape(len(ends), -1)
    for sums in _sums(cells, ends, some, drawn=drawn):
        upper, k = sides[sums.end], powers[sums.end]
        # Mirrored: what is missing to 1.
        sign, count = 1 - 2 * upper, tasks[sums.suite]
        shares, steps = upper[:, None] + (sign / count)[:, None] * sums.positions, None
        if sums.smooth:
            steps = sign * sums.step / count
        else:
            shares = np.clip(shares, 0.0, 1.0, out=shares)
        places = (upper * tasks.size + sums.suite) * len(ks) + k
        distributions.append((places, ShrunkDistribution(shares, sums.chances, steps)))
    return distributions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Unseen:
    """How many groups of k runs are evidence against an outcome that was not seen.

    The first half of the rows: against failures, for the lower end; then against passes, for the
    upper one. If no run failed, the groups are the runs over k. A failure must not add to the
    evidence against failures, so the runs are not counted: the passes are, and divided by the rate
    of passes that the mean in question leaves to their tasks. Passes are mirrored.
    """

    mirrored: NDArray[np.bool_]
    numbers: Floats
    """A column for each row: 1 / k; the outcomes; the share of tasks with pass^k above 0 (mirrored,
    below 1); the size of a group, in runs; and the rate of the outcome at the end itself."""

    @classmethod
    def of(cls, cells: Cells, ks: Sequence[int], tails: Floats) -> _Unseen:
        tasks, powers = cells.tasks, np.array(ks, dtype=np.float64)
        total, failures = cells.task_count[..., None], cells.n - cells.c
        above = (cells.c >= powers[:, None]).astype(np.float64)
        # A pass of a task that mostly fails adds little to pass^k, about k p^(k-1) / n, so groups
        # are larger there: p^(k-1) is taken halfway between its mean and its largest.
        reach = np.minimum(1.0, (cells.c + _UNSEEN_PASSES) / cells.n) ** (powers[:, None] - 1)
        largest = np.where(tasks[..., None, :] > 0, reach, 0.0).max(axis=-1)
        halfway = (tasks @ reach.T / total + largest) / 2
        outcomes, held, size = np.empty((3, 2, *halfway.shape))
        outcomes[0], outcomes[1] = tasks @ (above * cells.c).T, (tasks @ failures)[..., None]
        held[0], held[1] = tasks @ above.T, (tasks @ (failures > 0))[..., None]
        size[0], size[1] = powers, powers * halfway
        some = outcomes > 0
        share = np.where(some, held / total, 1.0)
        # Without an outcome of the other kind the rate is 1 at the end itself.
        rate = tails.reshape(size.shape) ** (size / np.where(some, outcomes, 1.0))
        roots, rate = np.broadcast_to(1 / powers, size.shape), np.maximum(rate, _TINY)
        numbers = np.stack((roots, outcomes, share, size, rate)).reshape(5, -1)
        return cls(mirrored=np.arange(rate.size) >= rate.size // 2, numbers=numbers)

    def taken(self, rows: Places) -> _Unseen:
        return _Unseen(mirrored=self.mirrored[rows], numbers=self.numbers[:, rows])

    def groups(self, x: Floats, rows: Places) -> Floats:
        """The groups if the mean (mirrored: what is missing to 1) is x, in some of all rows."""
        root, outcomes, share, size, at_end = self.numbers[:, rows]
        part = np.minimum(x / share, 1.0)
        passing = np.minimum(part / at_end, 1.0) ** root
        failing = np.minimum((1 - (1 - part) ** root) / at_end, 1.0)
        rate = np.where(self.mirrored[rows], failing, passing)
        return np.asarray(outcomes / np.maximum(size * rate, _TINY))


def _sums(
    cells: Cells, ends: Sequence[End], useful: NDArray[np.bool_], *, drawn: bool
) -> list[SumDistribution]:
    """The distributions of the summed pass^k, those on as many points together."""
    by_width = defaultdict[tuple[int, bool], list[SumDistribution]](list)
    for total in _lattice_sums(cells, ends, useful, drawn=drawn):
        by_width[max(total.chances.shape[-1], _POINTS), total.smooth].append(total)
    return [_side_by_side(alike, smooth=smooth) for (_, smooth), alike in by_width.items()]


def _side_by_side(parts: Sequence[SumDistribution], *, smooth: bool) -> SumDistribution:
    """All of them, a row each; where one has fewer points than another, with chances of 0."""
    rows = np.cumsum([0, *(part.suite.size for part in parts)])
    positions, chances = np.zeros((2, rows[-1], max(part.chances.shape[-1] for part in parts)))
    for part, start, end in zip(parts, rows[:-1], rows[1:], strict=True):
        here = slice(start, end), slice(part.chances.shape[-1])
        positions[here], chances[here] = part.positions, part.chances
    return SumDistribution(
        suite=np.concatenate([part.suite for part in parts]),
        end=np.concatenate([part.end for part in parts]),
        positions=positions,
        chances=chances,
        step=np.concatenate([part.step for part in parts]),
        smooth=smooth,
    )


def _lattice_sums(
    cells: Cells, ends: Sequence[End], useful: NDArray[np.bool_], *, drawn: bool
) -> Iterator[SumDistribution]:
    """The sums for these ends, all on the same lattice together."""
    rows = cells.tasks.reshape(-1, cells.n.size)
    count, longest = cells.task_count.ravel(), int(cells.n.max())
    runs = longest if drawn else None if longest > TABLED_RUNS else TABLED_RUNS
    steps = np.stack([lattice_steps(count, runs, end.k) for end in ends])
    for lattice in sorted(set(steps.ravel().tolist())):
        asked = (steps == lattice) & useful
        some, suites = (np.flatnonzero(asked.any(axis=axis)) for axis in (1, 0))
        if not some.size:
            continue
        alike = Cells(n=cells.n, c=cells.c, tasks=rows[suites])
        asked, those = asked[np.ix_(some, suites)], [ends[place] for place in some.tolist()]
        for total in sums_of_tasks(alike, those, lattice, asked, drawn=drawn):
            yield replace(total, suite=suites[total.suite], end=some[total.end])


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
# Distributions on a few points have frequencies that never die away: all steps of the window are
# used for them up to this length, and the last frequencies are tapered beyond it. Of hundreds of
# suites that were drawn such windows would fill the memory.
_LONGEST, _LONGEST_DRAWN = 1 << 17, 1 << 15
# From so many times the points on, a transform of the whole period takes longer than a convolution
# (three times as long at 8,192 points, nine times at 16,384), which is made of multiples of this
# unit so that its length has small factors only.
_LONG_PERIOD, _FFT_UNIT = 8, 128
# exp(-12.5) = 4e-6 at the last frequency: the ringing of a sharp cut is gone.
_TAPER = 12.5
TABLED_RUNS = 128
"""Tables of every count of passes are kept up to so many runs; they serve pass@k too."""
# A transform of chances is right to about this.
_ROUNDING = 1e-15
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


class End(NamedTuple):
    """An end of the interval for the mean pass^k."""

    k: int
    upper: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumDistribution:
    """Distributions of sums, a row each: `chances` of `positions`, a `step` apart.

    Row i is about the suite at the place `suite[i]` and the end at the place `end[i]`. A `smooth`
    sum has a density, of which each chance is what lies within half a step of its position.
    """

    suite: Places
    end: Places
    positions: Floats
    chances: Floats
    step: Floats
    smooth: bool


def sums_of_tasks(
    cells: Cells,
    ends: Sequence[End],
    steps: int,
    useful: NDArray[np.bool_] | None = None,
    *,
    drawn: bool = False,
) -> list[SumDistribution]:
    """The distributions of the summed pass^k of tasks, on so many steps.

    Each suite gets the distribution that it would get alone. All ends are computed together,
    because most of the time of a single one is the overhead of numpy calls; those of a suite that
    are not `useful` are left out.
    """
    rows = cells.tasks.reshape(-1, cells.n.size)
    longest = rows.sum(axis=-1) * steps + 1
    if cells.n.max() > TABLED_RUNS:
        cells = _with_value(cells, ends)
        rows = cells.tasks.reshape(-1, cells.n.size)
    bulk, long = None, bool(cells.n.max() > TABLED_RUNS)
    if long or (cells.lengths.size > 1 and cells.n.size > _MANY_CELLS * len(rows)):
        cumulants = (_exact_cumulants if long else _lattice_like_cumulants)(cells, ends, steps)
        bulk, rows, kept = _near_normal_part(cells, ends, cumulants)
        cells = cells.taken(kept)
    moments = [
        part @ _of_cells(cells, end, steps, _moments)
        for end, part in zip(ends, _by_end(rows, ends), strict=True)
    ]
    centre, variance = np.moveaxis(np.stack(moments), -1, 0)
    if bulk is not None:
        centre, variance = centre + bulk[1], variance + bulk[2]
    # A power of two, so that the tables of one report serve all its questions.
    window = np.maximum(np.minimum(longest, _WINDOW * np.sqrt(variance)), _POINTS)
    periods = (2 ** np.ceil(np.log2(window))).astype(np.int64)
    sums = list[SumDistribution]()
    for period in set(periods.ravel().tolist()):
        end, suite = np.nonzero((periods == period) & (useful is None or useful))
        if not end.size:
            continue
        asked = _Sums(
            cells=cells,
            rows=rows,
            bulk=bulk,
            ends=ends,
            steps=steps,
            most_points=_LONGEST_DRAWN if drawn else _LONGEST,
            end=end,
            suite=suite,
        )
        sums += _sums_over(asked, period, centre[end, suite], longest[suite])
    return sums


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sums:
    """Which sums are asked for: of the suite and of the k at each of these places.

    `rows` are the tasks in each of the cells, by suite, and by end where they differ; the cumulants
    of all others together are in `bulk`, by order, end and suite.
    """

    cells: Cells
    rows: Floats
    bulk: Floats | None
    ends: Sequence[End]
    steps: int
    most_points: int
    end: Places
    suite: Places

    def taken(self, kept: Places) -> _Sums:
        return replace(self, end=self.end[kept], suite=self.suite[kept])

    def log_spectrum(self, period: int, points: int = _POINTS) -> tuple[Floats, Floats]:
        """Ln of the characteristic function of each sum at the lowest frequencies of the period.

        Its real part and its imaginary part.
        """
        logs, rows = np.empty((self.end.size, 2, points // 2 + 1)), _by_end(self.rows, self.ends)
        for place in set(self.end.tolist()):
            here, end = self.end == place, self.ends[place]
            table = _of_cells(self.cells, end, self.steps, _log_spectrum, period, points)
            logs[here] = np.tensordot(rows[place][self.suite[here]], table, 1)
        size, angle = logs[:, 0], logs[:, 1]
        if self.bulk is not None:
            frequencies = np.arange(points // 2 + 1.0) * (2 * np.pi / period)
            log = _log_characteristic(self.bulk[:, self.end, self.suite], frequencies)
            size, angle = size + log.real, angle - log.imag
        return size, angle


def _near_normal_part(
    cells: Cells, ends: Sequence[End], cumulants: Floats
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The cumulants of what is close to normal in each sum, and the tasks that are not part of it.

    Those that lean most are left out until the sum of the others is normal to eight digits. The
    tasks left are those of the cells in the last array, by end and suite.
    """
    rows = cells.tasks.reshape(-1, cells.n.size)
    # Close to 2k runs a task has chances of 0 and 1, and sums of those need not be smooth.
    smooth = np.stack([_are_long(cells.n, end.k) for end in ends])[:, None]
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
    return bulk, left[..., kept], kept


def _exact_cumulants(cells: Cells, ends: Sequence[End], steps: int) -> Floats:
    """The cumulants of each cell's distribution in steps of the lattice, by order, end and cell."""
    means, cumulants = _cumulants(cells, ends)
    cumulants *= (float(steps) ** np.arange(_ORDER + 1))[:, None, None]
    cumulants[1] = means * steps
    return cumulants


def _lattice_like_cumulants(cells: Cells, ends: Sequence[End], steps: int) -> Floats:
    """The same of what the distributions become on the lattice."""
    return np.stack([_cell_cumulants(cells, end, steps) for end in ends], axis=1)


def _cell_cumulants(cells: Cells, end: End, steps: int) -> Floats:
    """The cumulants of each cell's distribution in steps of the lattice, by order from 0 on.

    Most betas are smooth, and theirs have a closed form: a table of chances takes twenty times as
    long. To split a smooth density between neighbours adds two uniform variables to it.
    """
    betas = scaled_betas(cells.n, cells.c, (end,))
    a, b, scale, varies = betas.a[0], betas.b[0], betas.scale[0], betas.varies[0]
    smooth = varies & _are_long(cells.n, end.k) & (np.minimum(a, b) >= _SMOOTH_SHAPE)
    smooth[smooth] = _is_smooth(a[smooth], b[smooth], scale[smooth], steps)
    smooth |= ~varies
    cumulants = np.empty((_ORDER + 1, cells.n.size))
    if smooth.any():
        means, others = _cumulants(cells.taken(smooth), (end,))
        result = others[:, 0] * (float(steps) ** np.arange(_ORDER + 1))[:, None]
        result[1] = means[0] * steps
        cumulants[:, smooth] = result + np.multiply.outer(_OF_SPLITTING, varies[smooth])
    if not smooth.all():
        cumulants[:, ~smooth] = _of_cells(cells.taken(~smooth), end, steps, _lattice_cumulants).T
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
    """The distributions of sums with one period: on all its points where they are needed."""
    left, points = np.arange(asked.end.size), _POINTS
    while left.size:
        some = asked.taken(left)
        size, angle = some.log_spectrum(period, points)
        alive = np.exp(size[:, -8:].max(axis=-1)) > _DEAD
        more = alive & (points < period <= asked.most_points)
        kept = np.flatnonzero(~more)
        if kept.size:
            places = left[kept]
            start = np.where(longest[places] <= period, 0.0, centre[places] - period / 2)
            first = np.ceil(start * (points / period)).astype(np.intp)
            spectrum = _spectrum(size[kept], angle[kept], first)
            smooth = points < period
            if smooth:
                # What the chances are once they are spread over a step is to have this spectrum.
                turns = np.arange(spectrum.shape[-1]) / points
                taper = np.exp(-_TAPER * (2 * turns) ** 2)
                spectrum = spectrum / np.sinc(turns)
                spectrum = np.where(alive[kept, None], spectrum * taper, spectrum)
            step = period / points / asked.steps
            positions, laid = _laid(np.fft.irfft(spectrum, points, axis=-1), first, step)
            yield SumDistribution(
                suite=some.suite[kept],
                end=some.end[kept],
                positions=positions,
                chances=laid,
                step=np.full(kept.size, step),
                smooth=smooth,
            )
        # Between these a sum of few points may fall silent and rise again.
        left, points = left[more], period


def _spectrum(size: Floats, angle: Floats, first: Places) -> Complex:
    """The transforms of chances from the first point on, to the last frequency that is not 0."""
    points = 2 * (size.shape[-1] - 1)
    live = slice(np.flatnonzero((size > -_REACH).any(axis=0))[-1] + 1)
    # To begin at another point is to turn each frequency; without whole turns, which is exact.
    turns = np.multiply.outer(first, np.arange(live.stop)) & (points - 1)
    angle = angle[:, live] + turns * (2 * np.pi / points)
    # By the tangent of half the angle: numpy takes eight times as long for a sine and a cosine.
    tangent = np.tan(angle / 2)
    part = np.exp(size[:, live]) / (1 + tangent**2)
    return np.asarray(part * (1 - tangent**2) + 2j * part * tangent)


def _laid(chances: Floats, first: Places, step: float) -> tuple[Floats, Floats]:
    """Positions and chances of the points from the first on, which are a step apart.

    At both sides, points at which there is no more than the rounding of the transform are left out:
    all that follows takes as long as there are points.
    """
    chances = np.maximum(chances, 0.0)
    chances /= chances.sum(axis=-1, keepdims=True)
    live, points = chances > _ROUNDING, chances.shape[-1]
    begin, end = live.argmax(axis=-1), points - live[:, ::-1].argmax(axis=-1)
    width = (end - begin).max()
    begin = np.minimum(begin, points - width)
    # Slices are copied more quickly than places are looked up.
    kept = [row[start : start + width] for row, start in zip(chances, begin.tolist(), strict=True)]
    return ((first + begin)[:, None] + np.arange(width)) * step, np.stack(kept)


def _by_end(rows: Floats, ends: Sequence[End]) -> Floats:
    """The tasks in each of the cells, by end and suite; most often they are alike for all ends."""
    return np.broadcast_to(rows, (len(ends), *rows.shape[-2:]))


def _of_cells(cells: Cells, end: End, steps: int, read: _Read, *more: int) -> Floats:
    """What `read` finds in the distribution of every cell, a row for each."""
    if not cells.n.size:
        return read(np.zeros((0, steps + 1)), *more)
    lengths = np.minimum(cells.lengths, TABLED_RUNS) + 1
    if lengths.size > 1 and (cells.n.size > _MANY_CELLS or 2 * cells.n.size < lengths.sum()):
        # A table for each length takes a call for each, and leaves most rows unused.
        return read(_pmfs_of_cells(cells.n.tobytes(), cells.c.tobytes(), end, steps), *more)
    parts = []
    for runs in cells.lengths.tolist():
        passes = cells.c[cells.n == runs]
        if runs > TABLED_RUNS:
            parts.append(_table(read, int(runs), tuple(passes.tolist()), end, steps, *more))
            continue
        table = _table(read, int(runs), None, end, steps, *more)
        # Mirrored cells come in the reverse order.
        whole = passes.size == len(table) and bool((np.diff(passes) > 0).all())
        parts.append(table if whole else table[passes.astype(np.intp)])
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _with_value(cells: Cells, ends: Sequence[End]) -> Cells:
    """The cells whose pass^k is not 0 (the others add nothing); one cell where all are 0."""
    value = share_of_passing_subsets(cells.n, cells.c, min(end.k for end in ends))
    # Of a task with few runs the missing ones may count as passes.
    kept = (value > NO_VALUE) | (cells.n < 2 * max(end.k for end in ends))
    kept[0] |= not kept.any()
    return cells.taken(kept)


@lru_cache(maxsize=16)
def _pmfs_of_cells(n: bytes, c: bytes, end: End, steps: int) -> Floats:
    return task_pmfs(np.frombuffer(n), np.frombuffer(c), end, steps)


@lru_cache(maxsize=256)
def _pmf_table(n: int, passes: tuple[float, ...] | None, end: End, steps: int) -> Floats:
    c = np.arange(n + 1.0) if passes is None else np.array(passes)
    return task_pmfs(np.full(c.size, float(n)), c, end, steps)


_Read = Callable[..., Floats]
"""Finds something in distributions, a row for each."""


@lru_cache(maxsize=384)
def _table(
    read: _Read, n: int, passes: tuple[float, ...] | None, end: End, steps: int, *more: int
) -> Floats:
    return read(_pmf_table(n, passes, end, steps), *more)


def _moments(pmfs: Floats) -> Floats:
    """The mean and the variance of each distribution, in steps of the lattice."""
    places = np.arange(float(pmfs.shape[-1]))
    means = pmfs @ places
    return np.stack((means, np.maximum(pmfs @ places**2 - means**2, 0.0)), axis=-1)


def _lattice_cumulants(pmfs: Floats) -> Floats:
    """The cumulants of each distribution in steps of the lattice, by order from 0 on."""
    steps = pmfs.shape[-1] - 1
    # About the middle, so that powers of the distance stay small.
    powers = np.linspace(-0.5, 0.5, steps + 1)[:, None] ** np.arange(_ORDER + 1)
    cumulants = _cumulants_of_moments((pmfs @ powers).T / _FACTORIALS[:, None])
    cumulants[1] += 0.5
    unit = float(steps) ** np.arange(_ORDER + 1)
    return np.asarray(cumulants.T * (_FACTORIALS[[0, *range(_ORDER)]] * unit))


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


def _log_spectrum(pmfs: Floats, period: int, points: int) -> Floats:
    """Ln of the characteristic functions: its real part and its imaginary part."""
    count = points // 2 + 1
    if pmfs.shape[-1] > period:
        # Wound up: a transform would leave out what lies beyond the period.
        turns = -(-pmfs.shape[-1] // period)
        pmfs = np.pad(pmfs, ((0, 0), (0, turns * period - pmfs.shape[-1])))
        pmfs = pmfs.reshape(len(pmfs), turns, period).sum(axis=1)
    if period < _LONG_PERIOD * points:
        spectrum = np.fft.rfft(pmfs, period, axis=-1)[:, :count]
    else:
        spectrum = _lowest_frequencies(pmfs, period, count)
    # Separately: numpy's logarithm of complex numbers takes ten times as long.
    square = spectrum.real**2 + spectrum.imag**2
    log = np.log(np.maximum(square, _NOTHING)) / 2
    return np.stack((log, np.arctan2(spectrum.imag, spectrum.real)), axis=1)


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


def _cumulants(cells: Cells, ends: Sequence[End]) -> tuple[Floats, Floats]:
    """The mean of each cell's distribution for each end, and its cumulants from the second on."""
    betas = scaled_betas(cells.n, cells.c, ends)
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


# The distribution of each task's pass^k given its runs.

# Splitting a value between two points of the lattice adds up to a sixth of a squared step to
# its variance; four steps to the standard deviation of the tightest distribution, one failure in n
# runs, keep that at 1 %. Longer tasks than those of a table take up to `_LONG_STEPS`, if
# they are not added up by their cumulants.
_STEPS_PER_DEVIATION = 4

_FEWEST_STEPS, _MOST_STEPS, _LONG_STEPS, _FEW_TASKS = 64, 512, 2048, 7
NO_VALUE = 1e-12
"""A pass^k below this is 0 to every digit that is ever shown."""

# Beyond this exponent a tail is below e^-40, less than the rounding of a float.
_REACH = 40.0
# With so many times k runs a task has little chance of a pass^k of 0 or 1.
_LONG_RUNS = 3
# A beta with this first shape is 0 or 1, to every digit.
_NO_SHAPE = 1e-10
# Later than after so many times k passes no distribution has to wait for those after it.
_UNORDERED_RUNS = 4
# Gauss and Legendre's integral over one step of the lattice, by four nodes. A density with this
# standard deviation, in steps, is integrated to 1e-11 so many steps from 0 and its end, where a
# beta may have infinite derivatives. The values of so many densities fit into the cache of a core.
_SMOOTH_DEVIATION, _EDGE_STEPS = 3.0, 12
# From these shapes on a beta leaves its ends so smoothly that its sums over the lattice are
# integrals, to the digits that are kept.
_SMOOTH_SHAPE = 3.0
_ROWS_AT_ONCE = 64
_GAUSS_NODES = (-0.8611363115940526, -0.3399810435848563, 0.3399810435848563, 0.8611363115940526)
_GAUSS_WEIGHTS = (0.3478548451374538, 0.6521451548625461, 0.6521451548625461, 0.3478548451374538)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaledBetas:
    """pass^k as scale * Beta(a, b) where it `varies`, else as `value`; a row for each end.

    Of an upper end the scale is negative, and pass^k is 1 + scale * Beta(a, b).
    """

    value: Floats
    varies: NDArray[np.bool_]
    a: Floats
    b: Floats
    scale: Floats


def lattice_steps(tasks: Floats, runs: int | None, k: int) -> NDArray[np.intp]:
    """Into how many steps [0, 1] is divided for suites of so many tasks, of up to so many runs.

    A finer lattice spreads the distributions less. So it must not depend on the runs that a suite
    has, or one more failure could raise a lower end: what is reported takes `TABLED_RUNS`, or none
    where a task has more.
    """
    if runs is None:
        return np.full(tasks.shape, max(_MOST_STEPS, _LONG_STEPS // k), dtype=np.intp)
    wanted = np.where(tasks <= _FEW_TASKS, _MOST_STEPS, _STEPS_PER_DEVIATION * runs / k)
    steps = np.clip(wanted, _FEWEST_STEPS, _MOST_STEPS)
    power = 2.0 ** np.ceil(np.log2(steps))
    return np.asarray(np.where(steps <= 0.75 * power, 0.75 * power, power), dtype=np.intp)


def _are_long(n: Floats, k: int) -> NDArray[np.bool_]:
    return np.asarray(n >= _LONG_RUNS * k)


def scaled_betas(n: Floats, c: Floats, ends: Sequence[End]) -> ScaledBetas:
    """The distributions of pass^k after c passes in n runs.

    With 2k runs, mean and variance are those that the counts say without bias:
    f = C(c, k) / C(n, k) and f^2 - C(c, 2k) / C(n, 2k). With fewer, the missing ones are taken to
    fail (for the upper end: to pass), which says whether pass^k varies at all; how it is then
    distributed is said by `task_pmfs`.

    Beta(a, b) moves to the left where a falls or b rises, and so it does times a smaller scale.
    Mean and variance leave one of the three free. It is chosen such that with every failure (upper
    end: with every pass) that is added all of them move in that direction, or stay. Where a pass
    becomes a failure the distributions are in order where it counts: near the end in question.
    """
    parts = [(_upper_shapes if end.upper else _lower_shapes)(c, n - c, end.k) for end in ends]
    value, varies, a, b, scale = (np.stack(part) for part in zip(*parts, strict=True))
    return ScaledBetas(value=value, varies=varies, a=a, b=b, scale=scale)


Shapes = tuple[Floats, NDArray[np.bool_], Floats, Floats, Floats]
"""Mean pass^k, whether it varies, a, b, and the scale."""


def _lower_shapes(c: Floats, f: Floats, k: int) -> Shapes:
    """For the lower end: a never rises along the failures after so many passes."""
    f = np.maximum(f, 2.0 * k - c)
    value, relative = _power(c, f, k)
    varies = (f > 0) & (value > NO_VALUE)
    a = _first_shape(value, relative)
    # From the first failure on it may fall, and not so slowly that the scale would rise.
    first = np.maximum(1.0, 2 * k - c)
    later = varies & (f > first)
    if later.any():
        passes, failures = c[later], f[later]
        start = _first_shape(*_power(passes, first[later], k))
        limit = _limit(*_power(passes, failures - 1, k), value[later], relative[later])
        a[later] = np.minimum(a[later], np.minimum(start, limit))
    # With fewer than 2k passes pass^k is 0 or twice its mean.
    return value, varies, *_shapes(value, relative, np.where(c < 2 * k, 0.0, a), varies)


def _upper_shapes(c: Floats, f: Floats, k: int) -> Shapes:
    """For the upper end: a of what is missing to 1 never rises along the passes."""
    c = np.maximum(c, 2.0 * k - f)
    missing, relative = _missing_power(c, f, k)
    varies = (missing > 0) & (1 - missing > NO_VALUE)
    a = np.zeros(c.shape)
    tabled = varies & (c + f <= TABLED_RUNS)
    if tabled.any():
        places = f[tabled].astype(np.intp), c[tabled].astype(np.intp)
        rows, most = int(places[0].max()), max(int(places[1].max()), _UNORDERED_RUNS * k)
        table = _upper_first_shapes(k, 1 << rows.bit_length(), 1 << most.bit_length())
        a[tabled] = table[places]
    long = varies & ~tabled
    if long.any():
        a[long] = _least_first_shape(c[long], f[long], k)
    a, b, scale = _shapes(missing, relative, a, varies)
    return 1 - missing, varies, a, b, -scale


@lru_cache(maxsize=64)
def _upper_first_shapes(k: int, rows: int, size: int) -> Floats:
    """The first shape of the missing part for so many failures (rows) and passes (columns)."""
    f, c = np.meshgrid(np.arange(float(rows)), np.arange(float(size)), indexing="ij")
    missing, relative = _missing_power(np.maximum(c, 2 * k - f), f, k)
    varies = (missing > 0) & (1 - missing > NO_VALUE) & (c + f >= 2 * k)
    missing, relative = np.where(varies, missing, 0.5), np.where(varies, relative, 1.0)
    a = np.where(varies, _first_shape(missing, relative), np.inf)
    limit = _limit(missing[:, :-1], relative[:, :-1], missing[:, 1:], relative[:, 1:])
    a[:, 1:] = np.where(varies[:, :-1], np.minimum(a[:, 1:], limit), a[:, 1:])
    a = np.minimum.accumulate(a, axis=1)
    # While passes are few the second shape that belongs to a would fall with them: a stays below
    # what the second shape of one pass more allows.
    second = np.full(rows, np.inf)
    for passes in range(_UNORDERED_RUNS * k - 1, k - 1, -1):
        here, known = varies[:, passes], np.isfinite(second)
        e, b = relative[:, passes], np.where(known, second, 0.0)
        root = (np.sqrt((e * (1 + b)) ** 2 + 4 * e * b) - e * (1 + b)) / (2 * e)
        a[:, passes] = np.where(known, np.minimum(a[:, passes], root), a[:, passes])
        second[here] = _second_shape(a[here, passes], e[here])
    return a


def _least_first_shape(c: Floats, f: Floats, k: int) -> Floats:
    """As in the table, in whose rows it falls first and then rises: by halving where it turns."""
    first = np.maximum(float(k), 2 * k - f)

    def at(passes: Floats) -> Floats:
        here = _missing_power(passes, f, k)
        before = _missing_power(np.maximum(passes - 1, first), f, k)
        limit = np.where(passes > first, _limit(*before, *here), np.inf)
        return np.minimum(_first_shape(*here), limit)

    low, high = first, c
    while (low < high).any():
        middle = np.floor((low + high) / 2)
        rises = at(middle) <= at(np.minimum(middle + 1, c))
        low, high = (
            np.where(rises, low, np.minimum(middle + 1, high)),
            np.where(rises, middle, high),
        )
    return at(low)


def _power(c: Floats, f: Floats, k: int) -> tuple[Floats, Floats]:
    """The mean of pass^k, and its variance in squares of that (1 if the mean is 0)."""
    value, twice = (share_of_passing_subsets(c + f, c, power) for power in (k, 2 * k))
    return value, 1 - twice / np.where(value > NO_VALUE, value, 1.0) ** 2


def _missing_power(c: Floats, f: Floats, k: int) -> tuple[Floats, Floats]:
    """The mean of 1 - pass^k, and its variance in squares of that."""
    value, relative = _power(c, f, k)
    missing = 1 - value
    return missing, relative * (value / np.where(missing > 0, missing, 1.0)) ** 2


def _first_shape(mean: Floats, relative: Floats) -> Floats:
    """The first shape of the beta with this mean and variance, and the scale 1."""
    return np.maximum((1 - mean) / np.where(relative > 0, relative, 1.0) - mean, 0.0)


def _second_shape(a: Floats, relative: Floats) -> Floats:
    return a * relative * (1 + a) / (1 - a * relative)


def _limit(mean: Floats, relative: Floats, next_mean: Floats, next_relative: Floats) -> Floats:
    """The largest first shape with which the scale does not rise from one to the next."""
    square, next_square = mean * (1 + relative), next_mean * (1 + next_relative)
    slope = square * next_relative - next_square * relative
    return np.where(slope > 0, (square - next_square) / np.where(slope > 0, slope, 1.0), np.inf)


def _shapes(
    mean: Floats, relative: Floats, a: Floats, varies: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats]:
    """Both shapes and the scale; what does not vary is a beta of some shape times 0."""
    a = np.where(varies, np.maximum(a, _NO_SHAPE), 0.5)
    relative = np.where(varies, relative, 1.0)
    scale = np.minimum(mean * (1 + relative) / (1 - a * relative), 1.0)
    return a, np.where(varies, _second_shape(a, relative), 0.5), np.where(varies, scale, 0.0)


def _completed(n: Floats, c: Floats, end: End) -> Floats:
    """The chances of each count of passes in 2k runs, after c passes in n < 2k; a row for each.

    The runs that are missing are drawn from Polya's urn, run by run. An urn of c - k + 1 passes and
    n - c failures leaves the mean of C(c, k) / C(n, k) as it is. One failure is added for the lower
    end, and one pass for the upper one, as Clopper and Pearson do. What a further run shows is one
    of the two that were possible before it, so that no pass makes a task worse.
    """
    passes = np.arange(2.0 * end.k + 1)
    chances = (passes == c[:, None]).astype(np.float64)
    for runs in range(int(n.min()), 2 * end.k):
        passing = np.maximum(passes - end.k + 1 + end.upper, 0.0)
        failing = np.maximum(runs - passes, 0.0) + (not end.upper)
        moved = chances * passing / np.maximum(passing + failing, 1.0)
        moved[n > runs] = 0.0
        chances -= moved
        chances[:, 1:] += moved[:, :-1]
    return np.asarray(chances)


def _completed_value(cells: Cells, end: End) -> Floats:
    """The mean pass^k of each cell's distribution."""
    short, runs = cells.n < 2 * end.k, np.maximum(cells.n, 2.0 * end.k)
    value = share_of_passing_subsets(runs, cells.c, end.k)
    if short.any():
        whole = np.arange(2.0 * end.k + 1)
        shares = share_of_passing_subsets(np.full(whole.size, 2.0 * end.k), whole, end.k)
        value[short] = _completed(cells.n[short], cells.c[short], end) @ shares
    return value


def task_pmfs(n: Floats, c: Floats, end: End, steps: int) -> Floats:
    """Chances of pass^k being 0, 1/steps, ... 1 after c passes in n runs; a row for each."""
    short = n < 2 * end.k
    if short.any():
        whole = np.arange(2.0 * end.k + 1)
        completed = task_pmfs(np.full(whole.size, 2.0 * end.k), whole, end, steps)
        pmfs = np.empty((n.size, steps + 1))
        pmfs[short] = _completed(n[short], c[short], end) @ completed
        if not short.all():
            pmfs[~short] = task_pmfs(n[~short], c[~short], end, steps)
        return pmfs
    betas = scaled_betas(n, c, (end,))
    a, b, scale, varies = betas.a[0], betas.b[0], np.abs(betas.scale[0]), betas.varies[0]
    pmfs = np.empty((n.size, steps + 1))
    points = np.arange(steps + 2) / steps
    pmfs[~varies] = _split(np.maximum(points - betas.value[0, ~varies, None], 0.0), steps)
    # By scale, so that few rows are computed further than they reach.
    order = np.argsort(np.where(varies, scale, np.inf), kind="stable")[: varies.sum()]
    for rows in np.array_split(order, order.size // _ROWS_AT_ONCE + 1):
        laid = _beta_pmfs(a[rows], b[rows], scale[rows], steps)
        pmfs[rows] = laid[:, ::-1] if end.upper else laid
    return pmfs


def _is_smooth(a: Floats, b: Floats, scale: Floats, steps: int) -> NDArray[np.bool_]:
    """Whether the density of scale * Beta(a, b) varies little over a step of the lattice."""
    variance = a * b / (a + b) ** 2 / (a + b + 1) * scale**2
    return np.asarray(variance * steps**2 >= _SMOOTH_DEVIATION**2)


def _beta_pmfs(a: Floats, b: Floats, scale: Floats, steps: int) -> Floats:
    """The chances of scale * Beta(a, b) on the lattice: integrals of its density if that is smooth.

    An incomplete beta function takes as long as fifty values of the density.
    """
    columns = np.arange(steps + 2)
    last = np.floor(scale * steps)[:, None]
    smooth = _is_smooth(a, b, scale, steps)
    inner = smooth[:, None] & (columns >= _EDGE_STEPS) & (columns <= last - _EDGE_STEPS)
    edge = ~inner
    # A chance of one point takes the shortfalls of three.
    edge[:, 1:] |= ~inner[:, :-1]
    edge[:, :-1] |= ~inner[:, 1:]
    pmfs = _split(_expected_shortfall((a, b), scale, columns / steps, edge), steps)
    if inner.any():
        rows = np.flatnonzero(inner.any(axis=1))
        reach = int(last[rows].max())
        smooth_pmfs = _smooth_pmfs(a[rows], b[rows], scale[rows], steps, reach)
        here = rows, slice(reach + 1)
        pmfs[here] = np.where(inner[here], smooth_pmfs, pmfs[here])
    return pmfs


def _smooth_pmfs(a: Floats, b: Floats, scale: Floats, steps: int, reach: int) -> Floats:
    """Integrals of the density over each of the steps it reaches, between the points next to it."""
    x, weights = _nodes(steps)
    places = np.minimum(np.multiply.outer(1 / scale, x[: reach * len(weights)]), 1 - 1e-16)
    log_density = np.log1p(-places)
    log_density *= (b - 1)[:, None]
    places = np.log(places, out=places)
    places *= (a - 1)[:, None]
    log_density += places
    log_density -= (special.betaln(a, b) + np.log(scale))[:, None]
    density = np.exp(log_density, out=log_density).reshape(-1, len(weights))
    ends = (density @ weights).reshape(a.size, reach, 2)
    pmfs = np.zeros((a.size, reach + 1))
    pmfs[:, :-1] += ends[..., 0]
    pmfs[:, 1:] += ends[..., 1]
    return pmfs


@lru_cache(maxsize=4)
def _nodes(steps: int) -> tuple[Floats, Floats]:
    """The nodes of every step, and what each adds to both its ends."""
    places = (1 + np.array(_GAUSS_NODES)) / 2
    x = ((np.arange(steps)[:, None] + places) / steps).ravel()
    weights = np.array(_GAUSS_WEIGHTS) / 2 / steps
    return x, np.stack((weights * (1 - places), weights * places), axis=-1)


def _expected_shortfall(
    shapes: tuple[Floats, Floats], scale: Floats, points: Floats, asked: NDArray[np.bool_]
) -> Floats:
    """E max(x - s X, 0) for X from Beta(a, b), where it is asked for."""
    a, b = (shape[:, None] for shape in shapes)
    mean, factor = a / (a + b), scale[:, None]
    x = points / factor
    short = np.maximum(x - mean, 0.0)
    # Beyond its reach X lies on one side of x, to every digit.
    below, above = mean - _reach(b, a), mean + _reach(a, b)
    rows, columns = np.nonzero(asked & (x < 1) & (x > below) & (x < above))
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
