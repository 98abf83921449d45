"""Errored trials apart from failures, with every metric as it would be under the other policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passhat.analysis.reports.evidence import gather
from passhat.analysis.reports.metrics import measure_metrics
from passhat.analysis.reports.parts import ErrorSplit
from passhat.analysis.reports.provenance import ReportOptions
from passhat.records import ErrorPolicy, Outcome, Tally, Trials
from passhat.stats.estimate import THIS_SUITE, Estimate
from passhat.stats.proportions import proportion_interval

UNNAMED = "unnamed"


def split_errors(
    tally: Tally, trials: Trials | None, ks: Sequence[int], options: ReportOptions
) -> ErrorSplit:
    """How many trials errored, of which kinds, and what the other policy would say."""
    count, runs = int(tally.errored.sum()), tally.trials
    other: ErrorPolicy = "exclude" if options.errors == "fail" else "fail"
    level = options.confidence
    return ErrorSplit(
        policy=options.errors,
        count=count,
        rate=Estimate(
            value=count / runs,
            interval=proportion_interval(count, runs, confidence=level),
            method="Wilson over all trials",
            confidence=level,
            scope=THIS_SUITE,
            tasks=len(tally.tasks),
            runs=runs,
        ),
        kinds={} if trials is None or not count else _kinds(trials),
        otherwise=measure_metrics(gather(tally, other), ks, confidence=level) if count else {},
    )


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
