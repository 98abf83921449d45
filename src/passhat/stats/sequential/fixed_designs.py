"""The fixed number of runs that a sequential gate is measured against, and Wald's lower bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from passhat.arguments import probability
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts
from passhat.stats.sequential.verdicts import error_rates
from passhat.stats.special import bdtr, bdtrc

# Numbers of runs tried at a time, and the largest tried.
_CHUNK = 1024
_MOST_RUNS = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedDesign:
    """`runs` runs, PASS with at least `passes_needed`; its exact errors at p0 and at p1."""

    runs: int
    passes_needed: int
    wrong_pass: float
    wrong_fail: float


@lru_cache(maxsize=2048)
def fixed_design(p0: float, p1: float, alpha: float = 0.05, beta: float = 0.05) -> FixedDesign:
    """The smallest number of runs whose exact binomial test keeps both error rates.

    >>> fixed_design(0.8, 0.9).runs
    135
    """
    first = ceil(max(wald_lower_bounds(p0, p1, alpha, beta)))
    for start in range(max(1, first), _MOST_RUNS, _CHUNK):
        runs = np.arange(start, start + _CHUNK)
        needed = _critical_passes(runs, p0, alpha)
        wrong_fail = bdtr(needed - 1.0, runs, p1)
        found = np.flatnonzero((needed <= runs) & (wrong_fail <= beta))
        if found.size:
            count, passes = int(runs[found[0]]), int(needed[found[0]])
            return FixedDesign(
                runs=count,
                passes_needed=passes,
                wrong_pass=float(bdtrc(passes - 1.0, count, p0)),
                wrong_fail=float(bdtr(passes - 1.0, count, p1)),
            )
    raise ArgumentError("p1 - p0", f"needs more than {_MOST_RUNS} runs to tell apart", p1 - p0)


def wald_lower_bounds(
    p0: float, p1: float, alpha: float = 0.05, beta: float = 0.05
) -> tuple[float, float]:
    """The fewest runs that any test with these error rates can need on average.

    One bound for a true rate of p0, one for a true rate of p1 (Wald 1947, section 3.6).

    >>> [round(bound, 1) for bound in wald_lower_bounds(0.8, 0.9)]
    [59.7, 72.2]
    """
    two_rates(p0, p1)
    error_rates(alpha, beta)
    up, down = log(p1 / p0), log((1 - p0) / (1 - p1))
    to_fail, to_pass = log((1 - alpha) / beta), log((1 - beta) / alpha)
    at_p0 = ((1 - alpha) * to_fail - alpha * to_pass) / ((1 - p0) * down - p0 * up)
    at_p1 = ((1 - beta) * to_pass - beta * to_fail) / (p1 * up - (1 - p1) * down)
    return at_p0, at_p1


def two_rates(p0: float, p1: float, *, names: tuple[str, str] = ("p0", "p1")) -> None:
    """Check a rate that must FAIL and a higher rate that must PASS."""
    probability(names[0], p0, open_ends=True)
    probability(names[1], p1, open_ends=True)
    if not p0 < p1:
        raise ArgumentError(names[1], f"must be above {names[0]} = {p0}", p1)


def fewest_passes(runs: Counts, enough: Callable[[Counts], NDArray[np.bool_]]) -> Counts:
    """For each number of runs the fewest passes that are enough; runs + 1 if none are.

    >>> fewest_passes(np.array([3, 3, 3]), lambda passes: passes >= [0, 2, 5]).tolist()
    [0, 2, 4]
    """
    low, high = np.full_like(runs, -1), runs + 1
    while (high - low > 1).any():
        # If the search has ended at 0, half of -1 + 0 is -1.
        middle = np.maximum((low + high) // 2, 0)
        holds = enough(middle)
        low, high = np.where(holds, low, middle), np.where(holds, middle, high)
    return high


def _critical_passes(runs: Counts, p0: float, alpha: float) -> Counts:
    """For each number of runs the fewest passes that a rate p0 reaches with chance <= alpha."""
    return fewest_passes(runs, lambda passes: bdtrc(passes - 1.0, runs, p0) <= alpha)
