"""The suite's numbers, each in both scopes: mean score, pass^k, pass@k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from passhat.analysis.evidence import Evidence
from passhat.analysis.report import Metric
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Scope, Unavailable
from passhat.stats.score_mean import score_estimate
from passhat.stats.suite_mean import suite_estimate


def measure_metrics(
    evidence: Evidence, ks: Sequence[int], *, confidence: float
) -> dict[str, Metric]:
    """mean_score, then pass^k and pass@k for each k."""
    hats = [_pass_metric(evidence, "^", k, confidence) for k in ks]
    # Of one attempt, all is any.
    ats = [
        replace(hat, name="pass@1") if k == 1 else _pass_metric(evidence, "@", k, confidence)
        for k, hat in zip(ks, hats, strict=True)
    ]
    return {metric.name: metric for metric in (_mean_score(evidence, confidence), *hats, *ats)}


def _mean_score(evidence: Evidence, confidence: float) -> Metric:
    def within(scope: Scope) -> Estimate | Unavailable:
        if not evidence.tasks:
            return Unavailable("mean_score needs a run; no task has one")
        return score_estimate(
            evidence.runs,
            evidence.score_total,
            evidence.score_squares,
            scope=scope,
            confidence=confidence,
        )

    return Metric(
        name="mean_score",
        this_suite=within(THIS_SUITE),
        tasks_like_these=within(TASKS_LIKE_THESE),
    )


def _pass_metric(evidence: Evidence, sign: str, k: int, confidence: float) -> Metric:
    name = f"pass{sign}{k}"

    def within(scope: Scope) -> Estimate | Unavailable:
        if not evidence.tasks:
            return Unavailable(f"{name} needs a run; no task has one")
        return suite_estimate(
            evidence.runs,
            evidence.passes,
            metric=f"pass{sign}k",
            k=k,
            scope=scope,
            confidence=confidence,
        )

    return Metric(
        name=name, this_suite=within(THIS_SUITE), tasks_like_these=within(TASKS_LIKE_THESE)
    )
