"""What a plan assumes of the agent: what the user gave, what was observed, or a cautious guess."""

from __future__ import annotations

from passhat.analysis.reports.evidence import Evidence
from passhat.analysis.reports.metrics import measure_metrics
from passhat.analysis.reports.unsettled import seen_design
from passhat.arguments import probability
from passhat.dataclass import short_dataclass
from passhat.stats.estimate import Interval, Unavailable
from passhat.stats.sample_size import (
    GUESSED_ICC,
    UNKNOWN,
    Seen,
    Spread,
    bounded_variance,
    seen_spread,
)
from passhat.stats.variance import icc, variance_components


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What the plan assumes: guessed before any run, measured where there are trials.

    `icc_interval` is how well the ICC is known, None if it was guessed and no wider than the
    number itself if it was given.
    `task_correlation` is how far two agents find the same tasks hard.
    """

    rate: float
    variance: float
    icc: float
    icc_interval: Interval | None
    task_correlation: float
    measured: bool
    rate_given: bool = False


def assume(
    evidence: Evidence | None,
    rate: float | None,
    correlation: float | None,
    task_correlation: float,
    confidence: float,
) -> Assumptions:
    """What the user gave, else what was observed, else the most cautious guess."""
    seen_rate, seen = _observed(evidence, confidence)
    mean = seen_rate if rate is None else probability("rate", rate)
    variance = seen.variance if rate is None else mean * (1 - mean)
    return Assumptions(
        rate=mean,
        variance=bounded_variance(variance),
        icc=seen.icc if correlation is None else probability("correlation", correlation),
        icc_interval=seen.icc_interval
        if correlation is None
        else Interval(correlation, correlation),
        task_correlation=probability("task_correlation", task_correlation),
        measured=evidence is not None and bool(evidence.tasks),
        rate_given=rate is not None,
    )


def _observed(evidence: Evidence | None, confidence: float) -> tuple[float, Spread]:
    """The mean and how single runs spread; a coin flip and an even split where unknown."""
    if evidence is None or not evidence.tasks:
        return 0.5, Spread(variance=0.25, icc=GUESSED_ICC, icc_interval=None)
    mean = float((evidence.score_total / evidence.runs).mean())
    sums = evidence.runs, evidence.score_total, evidence.score_squares
    split, share = variance_components(*sums), icc(*sums, confidence=confidence)
    if isinstance(split, Unavailable) or isinstance(share, Unavailable):
        # A rate at an end still varies: as if half a run had ended the other way.
        runs = int(evidence.runs.sum())
        rate = (mean * runs + 0.5) / (runs + 1)
        bounds = UNKNOWN if mean in (0, 1) else None
        luck = bounded_variance(rate * (1 - rate))
        return mean, Spread(variance=luck, icc=GUESSED_ICC, icc_interval=bounds)
    return mean, seen_spread(
        variance=split.total,
        icc=share.value,
        icc_interval=share.interval,
        tasks=len(evidence.tasks),
        runs=int(evidence.runs.sum()),
    )


def seen_before(evidence: Evidence | None, confidence: float) -> Seen | None:
    """What a report prints of these trials: a plan from them begins there."""
    if evidence is None or not evidence.tasks:
        return None
    _, spread = _observed(evidence, confidence)
    mean = measure_metrics(evidence, (1,), confidence=confidence)["mean_score"]
    return seen_design(evidence, spread, mean)
