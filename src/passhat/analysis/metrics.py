"""The suite's numbers, each in both scopes: mean score, pass^k, pass@k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from passhat.analysis.evidence import Evidence
from passhat.analysis.report import Metric
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Scope, Unavailable
from passhat.stats.score_mean import score_estimate
from passhat.stats.suite_mean import suite_estimates


def measure_metrics(
    evidence: Evidence, ks: Sequence[int], *, confidence: float
) -> dict[str, Metric]:
    """mean_score, then pass^k and pass@k for each k."""
    hats = _pass_metrics(evidence, "^", ks, confidence)
    ats = _pass_metrics(evidence, "@", [k for k in ks if k > 1], confidence)
    # Of one attempt, all is any.
    both = [replace(hats[0], name="pass@1")] if 1 in ks else []
    found = (_mean_score(evidence, confidence), *hats, *both, *ats)
    return {metric.name: metric for metric in found}


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


def _pass_metrics(
    evidence: Evidence, sign: str, ks: Sequence[int], confidence: float
) -> list[Metric]:
    names = [f"pass{sign}{k}" for k in ks]
    if not evidence.tasks:
        none = [Unavailable(f"{name} needs a run; no task has one") for name in names]
        return [
            Metric(name=name, this_suite=reason, tasks_like_these=reason)
            for name, reason in zip(names, none, strict=True)
        ]
    counts = evidence.runs, evidence.passes
    found = suite_estimates(*counts, metric=f"pass{sign}k", ks=ks, confidence=confidence)
    return [
        Metric(name=name, this_suite=this_suite, tasks_like_these=tasks_like_these)
        for name, (this_suite, tasks_like_these) in zip(names, found, strict=True)
    ]
