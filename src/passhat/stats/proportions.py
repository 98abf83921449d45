"""Intervals for one proportion: the pass rate p after c passes in n runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, confidence_level, whole_number
from passhat.stats import special
from passhat.stats.arguments import Counts, Floats, one_of, trial_counts
from passhat.stats.estimate import Estimate, Interval, Scope

# Sixty halvings of [0, 1] reach the spacing of floats.
_BISECTIONS = 60

Bounds = tuple[Floats, Floats]


def proportion_interval(
    c: int, n: int, *, method: str = "wilson", confidence: float = CONFIDENCE
) -> Interval:
    """The interval for p after c passes in n runs; [0, 1] without a run.

    Methods: wilson, clopper-pearson, jeffreys, mid-p, agresti-coull, wald.

    >>> proportion_interval(16, 20, method="wald")
    Interval(low=0.62469..., high=0.97530...)
    """
    runs, passes = whole_number("n", n, least=0), whole_number("c", c, least=0)
    return interval_at(proportion_bounds(passes, runs, method=method, confidence=confidence))


def proportion_bounds(
    c: ArrayLike, n: ArrayLike, *, method: str = "wilson", confidence: float = CONFIDENCE
) -> Bounds:
    """`proportion_interval` for a table of tasks: arrays of low and high ends.

    >>> low, high = proportion_bounds([0, 5], [5, 5])
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.566], [0.434, 1.0])
    """
    runs, passes = trial_counts(n, c)
    formula = _FORMULAS[one_of("method", method, tuple(_FORMULAS))]
    tail = (1 - confidence_level(confidence)) / 2
    low, high = formula(passes, np.maximum(runs, 1), tail)
    unseen = runs == 0
    return np.where(unseen, 0.0, np.clip(low, 0, 1)), np.where(unseen, 1.0, np.clip(high, 0, 1))


def lower_bound(c: ArrayLike, n: ArrayLike, *, confidence: float = CONFIDENCE) -> Floats:
    """The one-sided Clopper-Pearson lower bound for p: exact, so it can certify.

    >>> round(float(lower_bound(59, 59)), 4)
    0.9505
    """
    runs, passes = trial_counts(n, c)
    return _exact_lower(passes, runs, 1 - confidence_level(confidence))


def upper_bound(c: ArrayLike, n: ArrayLike, *, confidence: float = CONFIDENCE) -> Floats:
    """The one-sided Clopper-Pearson upper bound for p.

    >>> round(float(upper_bound(0, 59)), 4)
    0.0495
    """
    runs, passes = trial_counts(n, c)
    return np.asarray(1 - _exact_lower(runs - passes, runs, 1 - confidence_level(confidence)))


def interval_at(bounds: Bounds, place: int | tuple[()] = ()) -> Interval:
    """One pair of bounds as an interval: the only one, or that at a place.

    >>> interval_at((np.array([0.2, 0.3]), np.array([0.4, 0.6])), 1)
    Interval(low=0.3, high=0.6)
    """
    return Interval(float(bounds[0][place]), float(bounds[1][place]))


def wilson_bounds(share: Floats, n: Floats, quantile: Floats | float) -> Bounds:
    """Wilson (1927) for a share of an effective number of runs n, which need not be whole."""
    square = np.asarray(quantile) ** 2
    middle = (share + square / (2 * n)) / (1 + square / n)
    spread = np.sqrt(square / n * (share * (1 - share) + square / (4 * n))) / (1 + square / n)
    # At 0 and 1 the formula gives exactly 0 and 1, but for rounding.
    low = np.where(share <= 0, 0.0, np.maximum(middle - spread, 0.0))
    high = np.where(share >= 1, 1.0, np.minimum(middle + spread, 1.0))
    return low, high


def share_estimate(
    count: int,
    total: int,
    *,
    method: str = "Wilson",
    confidence: float = CONFIDENCE,
    scope: Scope | None = None,
    tasks: int | None = None,
) -> Estimate:
    """`count` of `total` runs, with Wilson's interval.

    >>> share = share_estimate(3, 10)
    >>> round(share.interval.low, 3), round(share.interval.high, 3)
    (0.108, 0.603)
    """
    return Estimate(
        value=count / total,
        interval=proportion_interval(count, total, confidence=confidence),
        method=method,
        confidence=confidence,
        scope=scope,
        tasks=tasks,
        runs=total,
    )


def _wilson(c: Counts, n: Counts, tail: float) -> Bounds:
    return wilson_bounds(c / n, n.astype(np.float64), special.ndtri(1 - tail))


def _clopper_pearson(c: Counts, n: Counts, tail: float) -> Bounds:
    return _exact_lower(c, n, tail), 1 - _exact_lower(n - c, n, tail)


def _exact_lower(c: Counts, n: Counts, tail: float) -> Floats:
    inner = special.betaincinv(np.maximum(c, 1), n - np.minimum(c, n) + 1, tail)
    return np.asarray(np.where(c == 0, 0.0, inner))


def _jeffreys(c: Counts, n: Counts, tail: float) -> Bounds:
    # With the ends opened as in Brown, Cai and DasGupta (2001), so that c/n lies inside.
    low = special.betaincinv(c + 0.5, n - c + 0.5, tail)
    high = special.betainccinv(c + 0.5, n - c + 0.5, tail)
    return np.where(c == 0, 0.0, low), np.where(c == n, 1.0, high)


def _mid_p(c: Counts, n: Counts, tail: float) -> Bounds:
    return _mid_p_lower(c, n, tail), 1 - _mid_p_lower(n - c, n, tail)


def _mid_p_lower(c: Counts, n: Counts, tail: float) -> Floats:
    """Where P(X > c) + P(X = c) / 2 reaches the tail; it lies between Clopper-Pearson and c/n."""
    low, high = _exact_lower(c, n, tail), c / n
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        above = special.betainc(np.maximum(c, 1), n - c + 1, middle)
        strictly = np.where(c == n, 0.0, special.betainc(c + 1, np.maximum(n - c, 1), middle))
        short = (above + strictly) / 2 < tail
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return np.asarray(np.where(c == 0, 0.0, (low + high) / 2))


def _agresti_coull(c: Counts, n: Counts, tail: float) -> Bounds:
    z = special.ndtri(1 - tail)
    runs = n + z**2
    return _around((c + z**2 / 2) / runs, runs, z)


def _wald(c: Counts, n: Counts, tail: float) -> Bounds:
    return _around(c / n, n.astype(np.float64), special.ndtri(1 - tail))


def _around(share: Floats, n: Floats, z: float) -> Bounds:
    spread = z * np.sqrt(share * (1 - share) / n)
    return share - spread, share + spread


_FORMULAS: dict[str, Callable[[Counts, Counts, float], Bounds]] = {
    "wilson": _wilson,
    "clopper-pearson": _clopper_pearson,
    "jeffreys": _jeffreys,
    "mid-p": _mid_p,
    "agresti-coull": _agresti_coull,
    "wald": _wald,
}
