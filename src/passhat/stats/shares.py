"""A share of runs with its interval."""

from __future__ import annotations

from passhat.defaults import CONFIDENCE
from passhat.stats.estimate import Estimate
from passhat.stats.proportions import proportion_interval


def share_estimate(count: int, total: int, *, confidence: float = CONFIDENCE) -> Estimate:
    """`count` of `total` runs, with Wilson's interval.

    >>> found = share_estimate(3, 10)
    >>> round(found.interval.low, 3), round(found.interval.high, 3)
    (0.108, 0.603)
    """
    return Estimate(
        value=count / total,
        interval=proportion_interval(count, total, confidence=confidence),
        method="Wilson",
        confidence=confidence,
        runs=total,
    )
