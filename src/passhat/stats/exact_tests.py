"""Exact tests: Boschloo's of two pass rates, and of a property against failing, task by task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Literal

import numpy as np

from passhat.dataclass import dataclass
from passhat.stats.arguments import Counts, Floats
from passhat.stats.numerics import distinct_rows, log_choose, log_probability, upper_tail
from passhat.stats.special import bdtr, ndtr, xlog1py, xlogy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Places = NDArray[np.intp]

# Above this many runs of a task the maximisation costs more than it gains: Fisher's p, which is
# never smaller, is used.
LARGEST_TABLE = 2_000
# The common pass rate is sin^2(t / 2): on t, every binomial is about equally wide.
_GRID = np.linspace(0, np.pi, 513)
_RATES = np.sin(_GRID / 2) ** 2
# The height of a peak between grid points comes from the quartic through five of them.
_NEIGHBOURS = np.arange(-2, 3)
_OFFSETS = np.linspace(-1, 1, 65)
_QUARTIC = np.linalg.solve(
    np.vander(_NEIGHBOURS, increasing=True).T, np.vander(_OFFSETS, 5, increasing=True).T
)
# Peaks this much below the highest on the grid may still be the highest between its points.
_CONTENDERS = 0.99
# P-values of equal tables differ by rounding: those this close are ties.
_TIES = 1 + 1e-9
_SMALLEST = np.finfo(float).tiny
Stratum = tuple[int, int, int]
"""Runs, runs with the property, and failing runs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratifiedDistribution:
    """How many failing runs have a property, if chance alone decides which runs fail.

    `p[i]` is the two-sided p of `fewest + i` failing runs with it: the smaller tail, doubled.
    """

    fewest: int
    chance: Floats
    p: Floats

    @property
    def smallest_p(self) -> float:
        """The smallest p that any division into passing and failing could give."""
        return float(self.p.min())

    def p_of(self, failing_with: int) -> float:
        """Two-sided p of this many failing runs with the property."""
        return float(self.p[failing_with - self.fewest])


def boschloo_greater(n_a: ArrayLike, c_a: ArrayLike, n_b: ArrayLike, c_b: ArrayLike) -> Floats:
    """P-values of "a passes more often than b", exact whatever the common pass rate is.

    Boschloo (1970): Fisher's p as the statistic, its chance maximised over the nuisance rate;
    uniformly more powerful than Fisher's test.

    >>> boschloo_greater([5, 3], [5, 3], [5, 3], [0, 0]).round(6).tolist()
    [0.000977, 0.015625]
    """
    tables = np.broadcast_arrays(*(np.asarray(x, dtype=np.int64) for x in (n_a, c_a, n_b, c_b)))
    rows = np.stack([t.ravel() for t in tables], axis=1)
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    p = np.empty(len(distinct))
    designs, design = np.unique(distinct[:, [0, 2]], axis=0, return_inverse=True)
    for j, (runs_a, runs_b) in enumerate(designs.tolist()):
        here = design.ravel() == j
        p[here] = _one_design(runs_a, distinct[here, 1], runs_b, distinct[here, 3])
    return np.maximum(p, _SMALLEST)[which.ravel()].reshape(tables[0].shape)


def stratified_distribution(strata: Iterable[Stratum]) -> StratifiedDistribution:
    """The distribution of the number of failing runs with a property, summed over strata.

    Given how many runs of a stratum fail and how many have the property, the number that do both
    is hypergeometric (Fisher 1935); the distribution of a sum of independent counts is the
    convolution of their distributions. One stratum gives Fisher's exact test with a doubled tail.

    >>> round(stratified_distribution([(8, 4, 4)]).p_of(4), 6)
    0.028571
    """
    kinds = sorted(strata)
    fewest = sum(max(0, having + failing - runs) for runs, having, failing in kinds)
    # If all or none have the property, or all or none fail, the count cannot vary.
    varying = tuple(s for s in kinds if 0 < s[1] < s[0] and 0 < s[2] < s[0])
    chance, p = _chances(varying)
    return StratifiedDistribution(fewest=fewest, chance=chance, p=p)


def _one_design(n_a: int, c_a: Counts, n_b: int, c_b: Counts) -> Floats:
    if n_a + n_b > LARGEST_TABLE or min(n_a, n_b) == 0:
        return upper_tail(c_a, n_a, n_b, c_a + c_b)
    fisher = _fisher_table(n_a, n_b)
    observed = fisher[c_a, c_b]
    # Fisher's p rises with c_b, so each row of the critical region is c_b < edge.
    edges = np.stack([np.searchsorted(row, observed * _TIES, side="right") for row in fisher])
    chances = _region_chances(edges.T, n_a, n_b)
    return np.minimum(_highest(chances), observed)


def _fisher_table(n_a: int, n_b: int) -> Floats:
    """Fisher's one-sided p of every table: each is its own chance plus the next one's p."""
    a, b = np.arange(n_a + 1)[:, None], np.arange(n_b + 1)
    table = np.exp(log_choose(n_a, a) + log_choose(n_b, b) - log_choose(n_a + n_b, a + b))
    for row in range(n_a - 1, -1, -1):
        table[row, 1:] += table[row + 1, :-1]
    return table


def _region_chances(edges: Counts, n_a: int, n_b: int) -> Floats:
    """P(c_b < edge[c_a]) for each region (a row of edges), at each common pass rate."""
    passes = np.arange(n_a + 1)[:, None]
    logs = xlogy(passes, _RATES) + xlog1py(n_a - passes, -_RATES)
    pmf_a = np.exp(log_choose(n_a, passes) + logs)
    below_b = np.zeros((n_b + 2, _RATES.size))
    below_b[1:] = bdtr(np.arange(n_b + 1)[:, None], n_b, _RATES)
    total = np.zeros((len(edges), _RATES.size))
    for c_a, pmf in enumerate(pmf_a):
        total += pmf * below_b[edges[:, c_a]]
    return total


def _highest(chances: Floats) -> Floats:
    """The maximum of each row as a smooth function of t, even about both ends."""
    best: Floats = chances.max(axis=1)
    wide = np.pad(chances, ((0, 0), (2, 2)), mode="reflect")
    peaks = (chances >= wide[:, 1:-3]) & (chances >= wide[:, 3:-1])
    rows, at = np.nonzero(peaks & (chances >= _CONTENDERS * best[:, None]))
    around = wide[rows[:, None], at[:, None] + 2 + _NEIGHBOURS]
    np.maximum.at(best, rows, (around @ _QUARTIC).max(axis=1))
    return np.minimum(best, 1.0)


# The features of one log divide its runs in few ways: most distributions are needed many times.
@lru_cache(maxsize=4096)
def _chances(strata: tuple[Stratum, ...]) -> tuple[Floats, Floats]:
    chance = np.ones(1)
    for stratum in strata:
        chance = np.convolve(chance, _hypergeometric(*stratum))
    up, down = np.cumsum(chance), np.cumsum(chance[::-1])[::-1]
    return chance, np.minimum(1.0, 2 * np.minimum(up, down))


@lru_cache(maxsize=4096)
def _hypergeometric(runs: int, having: int, failing: int) -> Floats:
    x = np.arange(max(0, having + failing - runs), min(having, failing) + 1)
    return np.exp(log_probability(x, having, runs - having, failing))


# Exact tests of one task at a time, each with the p-values it can take if nothing changed.
#
# If the systems do not differ on a task, chance alone decides which of its results belong to
# which system: that gives each test its p-value, and the distribution of that p-value. Passes have
# few values (Fisher's exact test); scores are permuted.

Alternative = Literal["two-sided", "less", "greater"]

# Differences closer than this are the same: sums of the same scores in another order.
_TIE = 1e-9
# Up to so many divisions of the runs (8 against 8) all are enumerated; beyond, some are drawn.
_MOST_DIVISIONS = 20_000
# Draws for every task, and for those whose p is small after them: a correction for many tasks needs
# p-values far below 1 / 1,000.
_FIRST_LOOK, _CLOSE_LOOK = 999, 49_999
_WORTH_A_CLOSE_LOOK = 0.02
# Divisions times tasks whose p-values are kept: bounds the memory.
_MOST_KEPT = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class NullDistributions:
    """The distribution of each test's p-value if nothing changed.

    `kind[i]` says which of the `attainable` lists test i has: the p-values that it can take,
    ascending. A p-value of at most x has the chance x, for every x in the list. None is a
    distribution without gaps.

    >>> nulls = NullDistributions(kind=np.array([0, 1]), attainable=(np.array([0.1, 1.0]), None))
    >>> nulls.chance(0, np.array([0.05, 0.3])).tolist(), nulls.chance(1, np.array([0.3])).tolist()
    ([0.0, 0.1], [0.3])
    """

    kind: Counts
    attainable: tuple[Floats | None, ...]

    def chance(self, kind: int, p: Floats) -> Floats:
        """The chance that a test of this kind has a p-value of at most each of these."""
        reached = self.attainable[kind]
        if reached is None:
            return np.minimum(p, 1.0)
        steps = np.concatenate(([0.0], reached))
        return steps[np.searchsorted(reached, p * (1 + _TIE), side="right")]


def pass_tests(
    n_a: Counts, c_a: Counts, n_b: Counts, c_b: Counts, alternative: Alternative = "two-sided"
) -> tuple[Floats, NullDistributions]:
    """Fisher's exact p of every task, by the difference of two pass rates, and its distributions.

    >>> p, nulls = pass_tests(*(np.array([x]) for x in (4, 4, 4, 0)))
    >>> p.round(4).tolist(), nulls.attainable[0].round(4).tolist()
    ([0.0286], [0.0286, 0.4857, 1.0])
    """
    rows = np.column_stack((n_a, n_b, c_a + c_b))
    kinds, kind = np.unique(rows, axis=0, return_inverse=True)
    p, nulls = np.ones(len(rows)), list[Floats | None]()
    for j, (runs_a, runs_b, passes) in enumerate(kinds.tolist()):
        members = np.flatnonzero(kind.ravel() == j)
        fewest = max(0, passes - runs_b)
        x = np.arange(fewest, min(runs_a, passes) + 1)
        chance = np.exp(log_probability(x, runs_a, runs_b, passes))
        gap = x / max(runs_a, 1) - (passes - x) / max(runs_b, 1)
        values = _tail_chances(gap, chance, alternative)
        p[members] = values[c_a[members] - fewest]
        nulls.append(_distinct(values))
    return p, NullDistributions(kind.ravel().astype(np.int64), tuple(nulls))


def score_tests(
    a: Sequence[Floats],
    b: Sequence[Floats],
    alternative: Alternative = "two-sided",
    *,
    ranks: bool = False,
    rng: np.random.Generator,
) -> tuple[Floats, NullDistributions]:
    """The permutation p of every task's mean scores, and its distributions.

    With `ranks`, scores are replaced by their ranks in the task: Wilcoxon's rank-sum test.
    """
    p = np.ones(len(a))
    kind, nulls = np.arange(len(a)), list[Floats | None]([None] * len(a))
    shapes = [(len(x), len(y)) for x, y in zip(a, b, strict=True)]
    for shape in sorted(set(shapes)):
        if min(shape) == 0:
            continue
        members = [i for i, own in enumerate(shapes) if own == shape]
        pooled = np.array([np.concatenate((a[i], b[i])) for i in members])
        values = _midranks(pooled) if ranks else pooled
        if comb(sum(shape), shape[0]) <= _MOST_DIVISIONS:
            p[members], exact = _enumerated(values, shape, alternative)
            for i, pmf in zip(members, exact, strict=True):
                nulls[i] = pmf
        else:
            p[members] = _drawn(values, shape, alternative, rng)
    return p, NullDistributions(kind, tuple(nulls))


def _tail_chances(gap: Floats, chance: Floats, alternative: Alternative) -> Floats:
    """The chance of a difference at least as far out as each."""
    reach = _reach(gap, alternative)
    order = np.argsort(-reach, kind="stable")
    total = np.cumsum(chance[order])
    # Ties share the chance of all of them: the last place that is not closer.
    last = np.searchsorted(-reach[order], -reach + _TIE, side="right") - 1
    return np.minimum(total[last], 1.0)


def _reach(gap: Floats, alternative: Alternative) -> Floats:
    if alternative == "two-sided":
        return np.abs(gap)
    return gap if alternative == "greater" else -gap


def _distinct(values: Floats) -> Floats:
    ordered = np.sort(values)
    new = np.concatenate(([True], np.diff(ordered) > _TIE * ordered[1:]))
    return ordered[new]


def _enumerated(
    pooled: Floats, shape: tuple[int, int], alternative: Alternative
) -> tuple[Floats, list[Floats | None]]:
    """Exact p-values over all divisions of the runs; their distributions where there is room."""
    sides = np.zeros((comb(sum(shape), shape[0]), sum(shape)))
    places = np.array(list(combinations(range(sum(shape)), shape[0])))
    np.put_along_axis(sides, places, 1.0, axis=1)
    equal = np.full(len(sides), 1 / len(sides))
    room = sides.shape[0] * len(pooled) <= _MOST_KEPT
    p, nulls = np.empty(len(pooled)), list[Floats | None]()
    for i, scores in enumerate(pooled):
        gaps = _gaps(sides, scores, shape)  # the first division is the one that was seen
        if room:
            tails = _tail_chances(gaps, equal, alternative)
            p[i] = tails[0]
            nulls.append(_distinct(tails))
        else:
            reach = _reach(gaps, alternative)
            p[i] = float((reach >= reach[0] - _TIE).mean())
            nulls.append(None)
    return p, nulls


def _drawn(
    pooled: Floats, shape: tuple[int, int], alternative: Alternative, rng: np.random.Generator
) -> Floats:
    """Monte Carlo p-values: a first look at every task, a closer one if it is worth it."""
    p = _drawn_once(pooled, shape, alternative, _FIRST_LOOK, rng)
    close = np.flatnonzero(p <= _WORTH_A_CLOSE_LOOK)
    if close.size:
        p[close] = _drawn_once(pooled[close], shape, alternative, _CLOSE_LOOK, rng)
    return p


def _drawn_once(
    pooled: Floats,
    shape: tuple[int, int],
    alternative: Alternative,
    draws: int,
    rng: np.random.Generator,
) -> Floats:
    sides = np.zeros((draws + 1, sum(shape)))
    sides[0, : shape[0]] = 1.0
    places = np.argsort(rng.random((draws, sum(shape))), axis=1)[:, : shape[0]]
    np.put_along_axis(sides[1:], places, 1.0, axis=1)
    p = np.empty(len(pooled))
    for i, scores in enumerate(pooled):
        reach = _reach(_gaps(sides, scores, shape), alternative)
        p[i] = float((reach >= reach[0] - _TIE).mean())
    return p


def _gaps(sides: Floats, scores: Floats, shape: tuple[int, int]) -> Floats:
    first = sides @ scores
    return np.asarray(first / shape[0] - (scores.sum() - first) / shape[1])


def _midranks(pooled: Floats) -> Floats:
    """The rank of each score in its row, ties sharing the middle of their ranks."""
    below = (pooled[:, :, None] > pooled[:, None, :]).sum(axis=2)
    tied = (pooled[:, :, None] == pooled[:, None, :]).sum(axis=2)
    return np.asarray(below + (tied + 1) / 2)


# Exact p-values for two systems on the same tasks: sign flips, and passes divided by chance.

# With the observed one, p is a multiple of 1 / 10,000.
MONTE_CARLO_FLIPS = 9_999

# Differences that are multiples of 1/d for some d up to here are summed exactly, on a lattice.
_LARGEST_DENOMINATOR = 2_520
_MOST_SIZES = 2_000
# Beyond this much work (distinct sizes times lattice points) signs are enumerated or drawn.
_LATTICE_WORK = 20_000_000
# Up to so many tasks of each size, adding them up one by one is faster than a Fourier sum.
_TASKS_OF_A_SIZE = 30
# Up to so many tasks all signs are enumerated; with more they are drawn, up to so many signs (2,000
# tasks in one comparison); beyond that the sum is close to normal.
_ENUMERATED_TASKS = 14
_MOST_SIGNS = 20_000_000
# Numbers held at once: 8 MB.
_CHUNK = 1_000_000
# From so many pairs to a size on, it saves time to look for those that ask the same.
_FEW_PAIRS = 10
# Keeps logarithms finite; its powers are 0.
_LEAST_COSINE = 1e-300
# With more runs in all, the passes of one side are normal to every digit shown.
_EXACT_RUNS = 40_000
# A Fourier sum cannot tell a smaller probability from zero, so no smaller one is reported.
_FOURIER_NOISE = 1e-13


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactP:
    """A p-value, how it was found, and whether random draws took part."""

    p_value: float
    method: str
    random: bool = False


def sign_flip_test(differences: Floats, rng: np.random.Generator) -> ExactP:
    """How often the mean is as far from 0 when each task's sign is a coin toss (Fisher, 1935).

    Two-sided, mid-p: sums that tie with the observed one count half.

    >>> sign_flip_test(np.array([0.2, 0.4, 0.2, 0.6]), np.random.default_rng(0)).p_value
    0.0625
    """
    table = np.column_stack((differences, np.zeros(differences.size)))
    tested = sign_flip_tests(table, (np.array([0]), np.array([1])), rng)
    return ExactP(p_value=float(tested.p_values[0]), method=tested.method, random=tested.random)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExactPs:
    """The p-values of many pairs, found in one way."""

    p_values: Floats
    method: str
    random: bool = False


def sign_flip_tests(
    table: Floats,
    pairs: tuple[Places, Places],
    rng: np.random.Generator,
    *,
    draws: int = MONTE_CARLO_FLIPS,
    mid: bool = True,
) -> ExactPs:
    """`sign_flip_test` of pairs of columns, with the same signs for all of them.

    Without `mid` a tie counts whole, and the test never errs more often than it says.

    A flipped sum is as large as the observed one where the flipped tasks sum to at most 0. So one
    more failure of the better side never makes its p-value smaller, also where signs are drawn, as
    long as they are the same ones.
    """
    first, second = pairs
    steps, name = _common_steps(table), "sign-flip mid-p" if mid else "sign-flip p"
    if steps is not None:
        whole = steps[:, first] - steps[:, second]
        sizes = np.unique(np.abs(whole[whole != 0]))
        reach = int(np.abs(whole).sum(axis=0).max(initial=0))
        if whole.size and sizes.size * 2 * reach * first.size <= _LATTICE_WORK:
            few = first.size == 1 and len(table) <= _TASKS_OF_A_SIZE * sizes.size
            tails = _added_tails if few else _lattice_tails
            p = tails(whole, sizes, reach, mid=mid)
            return ExactPs(p_values=_above_noise(p), method=name)
    tasks = len(table)
    if tasks <= _ENUMERATED_TASKS:
        signs = ((np.arange(2**tasks)[:, None] >> np.arange(tasks)) & 1).astype(np.float64)
        p = np.minimum(1.0, _flipped_tails(table, pairs, [signs], mid=mid) / 2**tasks)
        return ExactPs(p_values=p, method=name)
    if tasks * draws <= _MOST_SIGNS:
        # The observed signs are one of the draws.
        beyond = _flipped_tails(table, pairs, _drawn_signs(tasks, draws, rng), mid=mid)
        p = np.minimum(1.0, ((0.5 if mid else 1.0) + beyond) / (1 + draws))
        return ExactPs(p_values=p, method=f"{name}, {draws} draws", random=True)
    gaps = table[:, first] - table[:, second]
    z = np.abs(gaps.sum(axis=0)) / np.sqrt(np.maximum((gaps**2).sum(axis=0), _TIE**2))
    return ExactPs(p_values=2 * ndtr(-z), method="sign-flip, normal limit")


def divided_passes_test(n_a: Counts, c_a: Counts, n_b: Counts, c_b: Counts) -> ExactP:
    """Whether chance alone would divide each task's passes between the systems like this.

    The conditional (Cochran-Mantel-Haenszel) exact test, two-sided, mid-p; with one run of each
    task on each side it is McNemar's mid-p test.

    >>> one, none = np.ones(6, dtype=int), np.zeros(6, dtype=int)
    >>> round(divided_passes_test(one, one, one, none).p_value, 9)
    0.015625
    """
    name = "McNemar mid-p" if max(n_a.max(), n_b.max()) == 1 else "CMH mid-p"
    cells, tasks = _strata(n_a, n_b, c_a + c_b)
    if int((n_a + n_b).sum()) > _EXACT_RUNS:
        p = _normal_division(cells, tasks, int(c_a.sum()))
        return ExactP(p_value=p, method=f"{name}, normal limit")
    return ExactP(p_value=_divided_tail(cells, tasks, int(c_a.sum())), method=name)


def _common_steps(table: Floats) -> Counts | None:
    """The table in whole multiples of a common unit, or None if there is no coarse unit."""
    sizes = np.unique(np.round(np.abs(table[np.abs(table) > _TIE]), 12))
    if sizes.size > _MOST_SIZES:
        return None
    for first in range(1, _LARGEST_DENOMINATOR + 1, 120):
        denominators = np.arange(first, first + 120)
        scaled = denominators[:, None] * sizes
        whole = np.abs(scaled - np.round(scaled)).max(axis=1, initial=0) < _TIE
        if whole.any():
            return np.asarray(np.rint(table * denominators[whole.argmax()]), dtype=np.int64)
    return None


def _added_tails(whole: Counts, sizes: Counts, reach: int, *, mid: bool) -> Floats:
    """`_lattice_tails` of one column, from the distribution of the sum of its positive steps."""
    pmf = np.ones(1)
    for step in np.sort(np.abs(whole[:, 0])).tolist():
        wider = np.zeros(pmf.size + step)
        wider[: pmf.size] = pmf / 2
        wider[step:] += pmf / 2
        pmf = wider
    # The sum is as far below 0 as the observed one when the positive steps sum to this.
    low = (reach - abs(int(whole.sum()))) // 2
    tied = pmf[low] if mid else 2 * pmf[low]
    return np.array([min(1.0, 2 * float(pmf[:low].sum()) + float(tied))])


def _lattice_tails(whole: Counts, sizes: Counts, reach: int, *, mid: bool) -> Floats:
    """P(|sum of +-steps| >= |observed sum|) of each column; a tie counts half if `mid`.

    From the characteristic function, a product of cosines. Over |x| < m the sum of exp(i x angle)
    is sin((m - 1/2) angle) / sin(angle / 2); with half of both ends sin(m angle) / tan(angle / 2).
    """
    observed = np.abs(whole.sum(axis=0))
    tasks = np.stack([(np.abs(whole) == size).sum(axis=0) for size in sizes] or [observed * 0])
    angles = 2 * np.pi * np.arange(1, reach + 1) / (2 * reach + 1)
    cosines = np.cos(angles * (sizes if sizes.size else np.zeros(1))[:, None])
    logs, odd = np.log(np.maximum(np.abs(cosines), _LEAST_COSINE)), (cosines < 0).astype(float)
    kernel, less = (2 / np.tan(angles / 2), 0.0) if mid else (2 / np.sin(angles / 2), 0.5)
    # Of many pairs few differ in more than their order of tasks.
    kinds, places = np.arange(observed.size), np.arange(observed.size)
    if observed.size > _FEW_PAIRS * sizes.size:
        kinds, places = distinct_rows(np.column_stack((observed, tasks.T)))
    inside = np.empty(kinds.size)
    step = max(1, _CHUNK // max(1, reach))
    for start in range(0, kinds.size, step):
        part = slice(start, start + step)
        counts = tasks[:, kinds[part]].T.astype(float)
        pmf = np.exp(counts @ logs) * (1 - 2 * ((counts @ odd) % 2))
        held = observed[kinds[part]] - less
        waves = np.sin(held[:, None] * angles)
        inside[part] = (2 * held + (pmf * waves) @ kernel) / (2 * reach + 1)
    return np.where(observed == 0, 1.0, 1.0 - inside[places])


def _drawn_signs(tasks: int, draws: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Signs in chunks, each of which is gone with the next: fresh memory costs more than they."""
    step = min(draws, max(1, _CHUNK // tasks))
    kept = np.empty((step, tasks))
    for start in range(0, draws, step):
        signs = kept[: draws - start]
        signs[:] = rng.integers(0, 2, size=signs.shape, dtype=np.int8)
        yield signs


def _flipped_tails(
    table: Floats, pairs: tuple[Places, Places], signs: Iterable[Floats], *, mid: bool
) -> Floats:
    """How often sums with some signs flipped (1 in `signs`) are as far out, on both sides."""
    total = table.sum(axis=0)
    behind = total[pairs[0]] < total[pairs[1]]
    ahead, other = np.where(behind, pairs[::-1], pairs)
    beyond = np.zeros(ahead.size)
    for chosen in signs:
        sums = np.ascontiguousarray((chosen @ table).T)
        for i, (first, second) in enumerate(zip(ahead.tolist(), other.tolist(), strict=True)):
            flipped = sums[first] - sums[second]
            reached = np.count_nonzero(flipped <= _TIE)
            beyond[i] += reached + (np.count_nonzero(flipped < -_TIE) if mid else reached)
    return np.where(np.abs(total[ahead] - total[other]) <= _TIE, np.inf, beyond)


def _strata(n_a: Counts, n_b: Counts, passes: Counts) -> tuple[Counts, Counts]:
    """The distinct (n_a, n_b, passes), a row each, and how many tasks have them."""
    designs, design = np.unique(n_a * (n_b.max() + 1) + n_b, return_inverse=True)
    keys, tasks = np.unique(design * (passes.max() + 1) + passes, return_counts=True)
    design, passes = np.divmod(keys, passes.max() + 1)
    left, right = np.divmod(designs[design], n_b.max() + 1)
    return np.column_stack((left, right, passes)), tasks


def _divided_tail(cells: Counts, tasks: Counts, observed: int) -> float:
    """Two-sided mid-p of side a's passes: distributions of strata, convolved by FFT."""
    n_a, n_b, passes = cells.T
    low, high = np.maximum(0, passes - n_b), np.minimum(n_a, passes)
    points = int(tasks @ (high - low)) + 1
    spectrum = np.ones(points // 2 + 1, dtype=complex)
    for cell, count, first, last in zip(cells, tasks, low, high, strict=True):
        pmf = np.exp(log_probability(np.arange(first, last + 1), *cell))
        spectrum *= np.fft.rfft(pmf, points) ** count
    chances = np.maximum(np.fft.irfft(spectrum, points), 0.0)
    at = observed - int(tasks @ low)
    below, above = chances[:at].sum(), chances[at + 1 :].sum()
    p = 2 * min(below, above) + chances[at]
    return float(_above_noise(p))


def _normal_division(cells: Counts, tasks: Counts, observed: int) -> float:
    n_a, n_b, passes = cells.T.astype(float)
    total = n_a + n_b
    mean = n_a * passes / total
    variance = mean * (n_b / total) * (total - passes) / np.maximum(total - 1, 1)
    spread = float(np.sqrt(tasks @ variance))
    gap = abs(observed - float(tasks @ mean))
    return float(2 * ndtr(-gap / spread)) if spread > 0 else 1.0


def _above_noise(p: Floats) -> Floats:
    """Tails found by Fourier sums, never smaller than their rounding error."""
    return np.clip(p, _FOURIER_NOISE, 1.0)
