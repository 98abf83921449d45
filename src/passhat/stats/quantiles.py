"""Quantiles of what trials took (time, cost, tokens), with intervals free of a distribution."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, probability
from passhat.stats import special
from passhat.stats.arguments import Floats, confidence_level, float_array
from passhat.stats.estimate import THIS_SUITE, Estimate, Interval, Unavailable


def quantile_estimate(
    values: ArrayLike, share: float, *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """The value below which `share` of the trials fall, with its order-statistics interval.

    Thompson (1936): the ranks between which a binomial count falls. It supposes independent
    draws; with the same runs for every task it errs on the wide side.

    >>> answer = quantile_estimate(range(1, 101), 0.5)
    >>> answer.value, answer.interval
    (50.5, Interval(low=40.0, high=61.0))
    """
    level = confidence_level(confidence)
    target = probability("share", share, open_ends=True)
    known = float_array("values", values).ravel()
    known = np.sort(known[~np.isnan(known)])
    if known.size == 0:
        return Unavailable("no trial recorded it")
    low, high = _ranks(known.size, target, (1 - level) / 2)
    enough = low >= 1 and high <= known.size
    return Estimate(
        value=_between(known, target),
        interval=Interval(float(known[low - 1]), float(known[high - 1])) if enough else None,
        method="order statistics",
        confidence=level,
        scope=THIS_SUITE,
        runs=int(known.size),
        notes=() if enough else (f"{known.size} trials are too few for an interval",),
    )


def _between(ordered: Floats, share: float) -> float:
    """The quantile between the two nearest values: np.quantile of one number, much faster."""
    place = share * (ordered.size - 1)
    below = int(place)
    above = min(below + 1, ordered.size - 1)
    return float(ordered[below] + (place - below) * (ordered[above] - ordered[below]))


def _ranks(size: int, share: float, tail: float) -> tuple[int, int]:
    """Ranks l < u with P(B < l) <= tail and P(B >= u) <= tail, B binomial(size, share)."""
    ranks = range(size + 2)
    low = bisect_right(ranks, tail, key=lambda rank: _below(rank, size, share)) - 1
    high = bisect_left(ranks, True, key=lambda rank: 1 - _below(rank, size, share) <= tail)
    return low, high


def _below(rank: int, size: int, share: float) -> float:
    """P(B < rank)."""
    if rank <= 0:
        return 0.0
    return 1.0 if rank > size else float(special.bdtr(rank - 1, size, share))
