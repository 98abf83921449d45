"""One-sided bounds on a fixed number of runs, each at the error rate it guards against.

A gate's PASS needs the bound that a wrong PASS would have to beat. So the two ends come from two
intervals: one at 1 - 2 alpha, whose near end is missed with chance alpha, and one at 1 - 2 beta.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from passhat.analysis.gates.demands import Gate, NumberDemand
from passhat.analysis.gates.verdict import Word
from passhat.analysis.reports.evidence import Evidence
from passhat.analysis.reports.measure import measure
from passhat.analysis.reports.metrics import measure_metrics
from passhat.analysis.reports.subject import Subject
from passhat.analysis.reports.targets import Target
from passhat.messages import plural
from passhat.stats.estimate import THIS_SUITE, Estimate, Interval, Number, Unavailable, hull
from passhat.stats.paired import SETTLING_POWER
from passhat.stats.proportions import proportion_interval
from passhat.stats.special import ndtri
from passhat.stats.suite_mean import score_estimate, suite_estimate
from passhat.stats.usage import quantile_estimate

_MOST_RUNS = 10_000_000


def one_sided(gate: Gate, subject: Subject) -> Number:
    """The number a gate demands, with a lower and an upper bound at the gate's own error rates."""
    demand = gate.demand
    assert isinstance(demand, NumberDemand)
    # the end that a PASS rests on is missed with chance alpha, the other with chance beta
    errors = (gate.alpha, gate.beta) if demand.upward else (gate.beta, gate.alpha)
    found = {error: _estimate(gate, demand.target, subject, 1 - 2 * error) for error in {*errors}}
    low, high = (found[error] for error in errors)
    if not isinstance(low, Estimate) or not isinstance(high, Estimate):
        return low
    if low.interval is None or high.interval is None:
        return replace(low, interval=None)
    interval = Interval(min(low.interval.low, low.value), max(high.interval.high, high.value))
    return replace(
        low,
        interval=interval,
        method=f"{low.method}; each end one-sided",
        confidence=1 - max(errors),
    )


def word_of(demand: NumberDemand, interval: Interval) -> Word:
    """PASS when the whole interval meets the demand, FAIL when none of it does."""
    met = demand.met_by(interval.low), demand.met_by(interval.high)
    return "PASS" if all(met) else "UNDECIDED" if any(met) else "FAIL"


def runs_to_settle(gate: Gate, estimate: Estimate) -> int | None:
    """Further runs that settle an undecided gate four times in five, if the rate is what was seen.

    Bounds close in with the root of the number of runs; if nothing varied, with the number. The
    chance is that of `compare` and `plan`, so that all three name the same number of runs.
    """
    demand = gate.demand
    assert isinstance(demand, NumberDemand)
    interval, runs = estimate.interval, estimate.runs
    gap = abs(estimate.value - demand.threshold)
    if interval is None or not runs or gap == 0 or estimate.scope != THIS_SUITE:
        return None
    upper = demand.upward != demand.met_by(estimate.value)
    distance = interval.high - estimate.value if upper else estimate.value - interval.low
    constant = estimate.value in (0.0, 1.0)
    error = gate.alpha if upper != demand.upward else gate.beta
    growth = distance / gap if constant else (reached_often(error) * distance / gap) ** 2
    more = max(1, ceil(runs * (growth - 1)))
    return more if more <= _MOST_RUNS else None


def reached_often(error: float) -> float:
    """How much shorter than the gap the arm of a one-sided bound must be to settle it 4 in 5 times.

    With an arm of just the gap it is settled half of the time.
    """
    return 1 + float(ndtri(SETTLING_POWER)) / float(ndtri(1 - error))


def _estimate(gate: Gate, target: Target, subject: Subject, confidence: float) -> Number:
    if target.is_metric:
        return _metric(gate, target, subject, confidence)
    if target.name == "error_rate" or target.tool:
        return _share_of_trials(target, subject, confidence)
    if target.quantile:
        return _quantile(target.quantile, subject, confidence)
    return _any_target(gate, target, subject, confidence)


def _metric(gate: Gate, target: Target, subject: Subject, confidence: float) -> Number:
    evidence = subject.evidence
    if not evidence.tasks:
        return Unavailable(f"{target} needs a run; no task has one")
    # Without partial credit the mean score is pass^1, by the same interval as in a report.
    power = target.attempts or (("pass^k", 1) if evidence.all_or_nothing else None)
    grouped: dict[str, Any] = {"family": evidence.family, "weight": evidence.weight}
    if power is None:
        sums = evidence.runs, evidence.score_total, evidence.score_squares
        found = score_estimate(*sums, scope=gate.scope, confidence=confidence, **grouped)
    else:
        metric, k = power
        counts = evidence.runs, evidence.passes
        found = suite_estimate(
            *counts, metric=metric, k=k, scope=gate.scope, confidence=confidence, **grouped
        )
    found = _including_groups(found, gate, target, subject, confidence)
    if isinstance(found, Unavailable) or gate.scope != THIS_SUITE:
        return found
    if len(evidence.tasks) == 1 and power:
        found = _one_task(found, evidence, power, confidence)
    return _with_unknown_tasks(found, found.excluded_tasks + len(evidence.without))


def _including_groups(
    found: Number, gate: Gate, target: Target, subject: Subject, confidence: float
) -> Number:
    """No narrower than a report of the same trials, which includes what moved runs together."""
    if isinstance(found, Unavailable) or not subject.groupings:
        return found
    _, k = target.attempts or ("", 1)
    metrics = measure_metrics(
        subject.evidence, (k,), confidence=confidence, groupings=subject.groupings
    )
    wider = metrics[target.name].within(gate.scope)
    if isinstance(wider, Unavailable) or found.interval is None or wider.interval is None:
        return found
    interval = hull(found.interval, wider.interval)
    return replace(found, interval=interval, method=wider.method, notes=wider.notes)


def _one_task(
    found: Estimate, evidence: Evidence, power: tuple[str, int], confidence: float
) -> Estimate:
    """One task needs no approximation: Clopper-Pearson, its ends to the power k."""
    runs, passes = int(evidence.runs[0]), int(evidence.passes[0])
    p = proportion_interval(passes, runs, method="clopper-pearson", confidence=confidence)
    metric, k = power
    if metric == "pass^k":
        interval = Interval(p.low**k, p.high**k)
    else:
        interval = Interval(1 - (1 - p.low) ** k, 1 - (1 - p.high) ** k)
    return replace(found, interval=interval, method="one task: Clopper-Pearson, exact")


def _with_unknown_tasks(found: Estimate, unknown: int) -> Estimate:
    """Tasks with too few runs may have any value: the bounds of the suite allow for it."""
    if not unknown or found.interval is None:
        return found
    known = found.tasks or 0
    share = known / (known + unknown)
    low, high = found.interval.low * share, found.interval.high * share + 1 - share
    unsure = plural(unknown, "task")
    note = f"{unsure} with too few runs may have any value: the bounds allow for it"
    return replace(found, interval=Interval(low, high), notes=(*found.notes, note))


def _share_of_trials(target: Target, subject: Subject, confidence: float) -> Number:
    """A share of all trials, by Clopper-Pearson.

    Tasks with different rates make the count less spread than one coin would (Hoeffding 1956), so
    with the same runs for every task the bounds err on the wide side.
    """
    tool = target.tool
    runs = subject.tally.trials
    if tool is None:
        count = int(subject.tally.errored.sum())
    elif subject.trials is None:
        return Unavailable("which tools were called needs the trials themselves")
    else:
        count = int(np.count_nonzero(subject.trials.has_word("tools", tool)))
    if not runs:
        return Unavailable(f"{target} needs a trial")
    return Estimate(
        value=count / runs,
        interval=proportion_interval(count, runs, method="clopper-pearson", confidence=confidence),
        method="Clopper-Pearson over all trials",
        confidence=confidence,
        scope=THIS_SUITE,
        tasks=len(subject.tally.tasks),
        runs=runs,
    )


def _quantile(quantile: tuple[str, float], subject: Subject, confidence: float) -> Number:
    feature, share = quantile
    if subject.trials is None or feature not in subject.trials.features:
        return Unavailable(f"no trial recorded its {feature}")
    return quantile_estimate(subject.trials.features[feature], share, confidence=confidence)


def _any_target(gate: Gate, target: Target, subject: Subject, confidence: float) -> Number:
    """Any other number, as the report has it; a bare one has no interval."""
    report = measure(
        [subject.tally] if subject.trials is None else subject.trials,
        ks=None if target.k is None else (target.k,),
        confidence=confidence,
        errors=subject.errors,
        bars=subject.bars,
    )
    found = target.value_in(report.systems[0], gate.scope)
    if not isinstance(found, float):
        return found
    return Estimate(value=found, interval=None, method="as described", confidence=gate.confidence)
