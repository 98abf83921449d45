"""How wide the intervals of a report will be: at the mean, noise and spread that are expected."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat.stats.mean_intervals import SuiteSize, population_bounds, suite_bounds


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
    [0.037, 0.072]
    """
    mean, luck = np.array(expected.rate), expected.variance * (1 - expected.icc) / runs
    between = np.array(expected.variance * expected.icc + luck)
    size = SuiteSize(tasks=np.array(float(tasks)), runs=np.array(float(tasks * runs)))
    suite = suite_bounds(
        mean, np.array(luck / tasks), size=size, model=mean, k=1, confidence=confidence
    )
    likes = population_bounds(mean, between, size=size, model=between, confidence=confidence)
    here, there = (float(high - low) / 2 for low, high in (suite, likes))
    return here, max(here, there)
