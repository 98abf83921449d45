"""How wide the intervals of a report will be: at the mean, noise and spread that are expected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.mean_intervals import SuiteSize, suite_bounds
from passhat.stats.population_mean import population_bounds

# Tasks as they would be drawn from a beta of that mean and spread: its quantiles.
_LEVELS = (np.arange(64) + 0.5) / 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Mean pass rate, variance of a single run, and the share of it between tasks."""

    rate: float
    variance: float
    icc: float


def expected_half_widths(
    expected: Expected, *, tasks: int, runs: int, confidence: float
) -> tuple[float, float]:
    """Half the width that a report will print for this suite and for tasks like these, about.

    Near 0 and 1 that is more than the normal approximation says: few failures are expected, and
    an interval must allow for those that were not seen.

    >>> often = Expected(rate=0.99, variance=0.0099, icc=0.4)
    >>> widths = expected_half_widths(often, tasks=20, runs=3, confidence=0.95)
    >>> [round(width, 3) for width in widths]
    [0.037, 0.079]
    """
    mean, luck = np.array(expected.rate), expected.variance * (1 - expected.icc) / runs
    between = np.array(expected.variance * expected.icc + luck)
    size = SuiteSize(tasks=np.array(float(tasks)), runs=np.array(float(tasks * runs)))
    suite = suite_bounds(
        mean, np.array(luck / tasks), size=size, model=mean, k=1, confidence=confidence
    )
    likes = population_bounds(
        _typical_values(expected.rate, float(between)),
        np.full(_LEVELS.size, tasks / _LEVELS.size),
        confidence,
    )
    here, there = (float(high - low) / 2 for low, high in (suite, likes))
    return here, max(here, there)


def _typical_values(rate: float, variance: float) -> Floats:
    """Task means of a beta with this mean and variance; at the ends of [0, 1] where it has none."""
    room = rate * (1 - rate)
    size = room / variance - 1 if variance > 0 else np.inf
    if room <= 0 or np.isinf(size):
        return np.full(_LEVELS.size, rate)
    if size <= 0:
        return (rate >= 1 - _LEVELS).astype(np.float64)
    values = special.betaincinv(rate * size, (1 - rate) * size, _LEVELS)
    return np.asarray(np.clip(values + rate - values.mean(), 0.0, 1.0))
