"""What a report prints of a suite, as a plan begins from it."""

from __future__ import annotations

from passhat.analysis.evidence import Evidence
from passhat.analysis.report import Metric
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Scope
from passhat.stats.fitted_plan import Seen, Spread


def seen_design(evidence: Evidence, spread: Spread, mean: Metric) -> Seen:
    """The design that was run, and half the width of the intervals of its mean."""
    return Seen(
        tasks=len(evidence.tasks),
        runs=evidence.typical_runs,
        spread=spread,
        this_suite=_half_width(mean, THIS_SUITE),
        tasks_like_these=_half_width(mean, TASKS_LIKE_THESE),
        constant=bool((evidence.score_total == 0).all())
        or bool((evidence.score_total == evidence.runs).all()),
    )


def _half_width(metric: Metric, scope: Scope) -> float | None:
    number = metric.within(scope)
    if not isinstance(number, Estimate) or number.interval is None:
        return None
    return number.interval.width / 2
