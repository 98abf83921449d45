"""Whether a streak can be depended on: the line that every reporter draws."""

from __future__ import annotations

from passhat.analysis.reports.parts import Metric
from passhat.reporters.numbers import interval_of

DEPENDABLE = 0.9
"""The line the opening sentence draws: k successes in a row at least nine times in ten."""


def is_dependable(streak: Metric) -> bool:
    """Whether the whole interval lies above the line."""
    bounds = interval_of(streak.this_suite)
    return bounds is not None and bounds.low >= DEPENDABLE


def is_refuted(streak: Metric) -> bool:
    """Whether the whole interval lies below the line."""
    bounds = interval_of(streak.this_suite)
    return bounds is not None and bounds.high < DEPENDABLE
