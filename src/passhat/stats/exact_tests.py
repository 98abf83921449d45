"""Exact tests: Boschloo's of two pass rates, and of a property against failing, task by task."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from passhat.dataclass import dataclass
from passhat.stats.arguments import Counts, Floats
from passhat.stats.hypergeometric import log_choose, log_probability, upper_tail
from passhat.stats.special import bdtr, xlog1py, xlogy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

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
class StratifiedLaw:
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


def stratified_law(strata: Iterable[Stratum]) -> StratifiedLaw:
    """The law of the number of failing runs with a property, summed over strata.

    Given how many runs of a stratum fail and how many have the property, the number that do both
    is hypergeometric (Fisher 1935); the law of a sum of independent counts is the convolution of
    their laws. One stratum gives Fisher's exact test with a doubled tail.

    >>> round(stratified_law([(8, 4, 4)]).p_of(4), 6)
    0.028571
    """
    kinds = sorted(strata)
    fewest = sum(max(0, having + failing - runs) for runs, having, failing in kinds)
    # If all or none have the property, or all or none fail, the count cannot vary.
    varying = tuple(s for s in kinds if 0 < s[1] < s[0] and 0 < s[2] < s[0])
    chance, p = _chances(varying)
    return StratifiedLaw(fewest=fewest, chance=chance, p=p)


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
    law_a = np.exp(log_choose(n_a, passes) + logs)
    below_b = np.zeros((n_b + 2, _RATES.size))
    below_b[1:] = bdtr(np.arange(n_b + 1)[:, None], n_b, _RATES)
    total = np.zeros((len(edges), _RATES.size))
    for c_a, law in enumerate(law_a):
        total += law * below_b[edges[:, c_a]]
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


# The features of one log divide its runs in few ways: most laws are needed many times.
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
