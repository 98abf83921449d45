"""The suite's numbers in both scopes (mean score, pass^k, pass@k), and what errors change."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passhat.analysis.reports.evidence import Evidence, gather
from passhat.analysis.reports.grouped_metrics import RunGroups, include_groups
from passhat.analysis.reports.parts import ErrorSplit, Metric
from passhat.analysis.reports.provenance import ReportOptions
from passhat.arguments import KS
from passhat.dataclass import replace
from passhat.records import ErrorPolicy, Outcome, Tally, Trials
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Number,
    Scope,
    Unavailable,
    no_narrower,
    rising,
)
from passhat.stats.proportions import share_estimate
from passhat.stats.suite_mean import score_estimate, suite_estimates

_NOT_ASKED = Unavailable("only this suite was asked for")
UNNAMED = "unnamed"


def usual_ks(evidence: Evidence) -> tuple[int, ...]:
    """Those of the k that people quote which the runs allow."""
    return tuple(k for k in KS if k <= max(1, evidence.typical_runs))


def measure_metrics(
    evidence: Evidence,
    ks: Sequence[int],
    *,
    confidence: float,
    groupings: Sequence[RunGroups] = (),
    this_suite_only: bool = False,
) -> dict[str, Metric]:
    """mean_score, then pass^k and pass@k for each k; `groupings` are what moved runs together.

    `this_suite_only` saves the time that intervals for tasks like these take.
    """
    scopes = (THIS_SUITE,) if this_suite_only else (THIS_SUITE, TASKS_LIKE_THESE)

    def included(sign: str, some: Sequence[int]) -> list[Metric]:
        return include_groups(_pass_metrics(evidence, sign, some, scopes, confidence), groupings)

    # The usual k take part whether asked for or not: no number depends on which others are shown.
    every = sorted({*ks, *usual_ks(evidence)})
    hats, ats = included("^", every), included("@", [k for k in every if k > 1])
    # pass^3 <= pass^2 <= pass^1 = pass@1 <= pass@2 <= pass@3: one chain, and so are the intervals.
    chain = {metric.name: metric for metric in _in_order([*reversed(hats), *ats])}
    # Of one attempt, all is any.
    chain["pass@1"] = replace(chain["pass^1"], name="pass@1")
    asked = [chain[f"pass{sign}{k}"] for sign in "^@" for k in ks]
    # Without partial credit the mean score is the pass rate: one number, so one interval.
    mean = (
        replace(chain["pass^1"], name="mean_score")
        if evidence.tasks and evidence.all_or_nothing
        else include_groups([_mean_score(evidence, scopes, confidence)], groupings)[0]
    )
    return {metric.name: _nested(metric) for metric in (mean, *asked)}


def split_errors(
    tally: Tally, trials: Trials | None, ks: Sequence[int], options: ReportOptions
) -> ErrorSplit:
    """How many trials errored, of which kinds, and what the other policy would say."""
    count = int(tally.errored.sum())
    other: ErrorPolicy = "exclude" if options.errors == "fail" else "fail"
    level = options.confidence
    return ErrorSplit(
        policy=options.errors,
        count=count,
        rate=share_estimate(
            count,
            tally.trials,
            method="Wilson over all trials",
            confidence=level,
            scope=THIS_SUITE,
            tasks=len(tally.tasks),
        ),
        kinds={} if trials is None or not count else _kinds(trials),
        otherwise=measure_metrics(gather(tally, other), ks, confidence=level) if count else {},
    )


def _in_order(metrics: Sequence[Metric]) -> list[Metric]:
    suite = rising([metric.this_suite for metric in metrics])
    alike = rising([metric.tasks_like_these for metric in metrics])
    return [
        replace(metric, this_suite=this_suite, tasks_like_these=tasks_like_these)
        for metric, this_suite, tasks_like_these in zip(metrics, suite, alike, strict=True)
    ]


def _nested(metric: Metric) -> Metric:
    wider = no_narrower(metric.tasks_like_these, metric.this_suite)
    return replace(metric, tasks_like_these=wider)


def _mean_score(evidence: Evidence, scopes: Sequence[Scope], confidence: float) -> Metric:
    if not evidence.tasks:
        return _metric("mean_score", [Unavailable("mean_score needs a run; no task has one")] * 2)
    found = [
        score_estimate(
            evidence.runs,
            evidence.score_total,
            evidence.score_squares,
            scope=scope,
            confidence=confidence,
            family=evidence.family,
            weight=evidence.weight,
        )
        for scope in scopes
    ]
    return _metric("mean_score", found)


def _pass_metrics(
    evidence: Evidence, sign: str, ks: Sequence[int], scopes: Sequence[Scope], confidence: float
) -> list[Metric]:
    names = [f"pass{sign}{k}" for k in ks]
    if not evidence.tasks:
        none = [Unavailable(f"{name} needs a run; no task has one") for name in names]
        return [_metric(name, [reason] * 2) for name, reason in zip(names, none, strict=True)]
    found = suite_estimates(
        evidence.runs,
        evidence.passes,
        metric=f"pass{sign}k",
        ks=ks,
        scopes=scopes,
        confidence=confidence,
        family=evidence.family,
        weight=evidence.weight,
    )
    return [_metric(name, numbers) for name, numbers in zip(names, found, strict=True)]


def _metric(name: str, numbers: Sequence[Number]) -> Metric:
    """A metric from its number for this suite and, if it was asked for, for tasks like these."""
    return Metric(name=name, this_suite=numbers[0], tasks_like_these=[*numbers, _NOT_ASKED][1])


def _kinds(trials: Trials) -> dict[str, int]:
    """Errors by kind, the most frequent first."""
    errored = trials.outcome == Outcome.ERRORED
    if trials.error is None:
        return {UNNAMED: int(np.count_nonzero(errored))}
    names = [*trials.error.names, UNNAMED]
    codes = trials.error.codes[errored]
    counts = np.bincount(np.where(codes < 0, len(names) - 1, codes), minlength=len(names))
    order = sorted(range(len(names)), key=lambda i: (-counts[i], names[i]))
    return {names[i]: int(counts[i]) for i in order if counts[i]}
