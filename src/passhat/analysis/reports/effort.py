"""What trials took, by how they ended, what goes with passing, and what a success costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.reports.parts import ResourceUse
from passhat.records import FEATURES, ErrorPolicy, FeatureSums, Outcome, Tally
from passhat.stats.estimate import Number, Unavailable
from passhat.stats.passk import pass_hat_k
from passhat.stats.quantiles import quantile_estimate
from passhat.stats.ratios import (
    OutcomeSums,
    association_with_passing,
    difference_of_ratios,
    ratio_of_totals,
)

Values = Mapping[str, NDArray[np.float64]]

# What is paid for; nobody asks for the turns per success.
_SPENT = ("tokens", "tokens_in", "tokens_out", "cost", "seconds")


def measure_effort(
    tally: Tally, values: Values, *, ks: Sequence[int], errors: ErrorPolicy, confidence: float
) -> dict[str, ResourceUse]:
    """The features that trials recorded; `values` holds their rows, where there are rows."""
    return {
        name: _feature(name, tally, values.get(name), ks, errors, confidence)
        for name in FEATURES
        if name in tally.features and tally.features[name].count.any()
    }


def _feature(
    name: str,
    tally: Tally,
    values: NDArray[np.float64] | None,
    ks: Sequence[int],
    errors: ErrorPolicy,
    confidence: float,
) -> ResourceUse:
    sums = tally.features[name]
    per_trial = _taken(sums, errors)
    spent = name in _SPENT
    return ResourceUse(
        name=name,
        trials=int(sums.count.sum()),
        mean=_mean(*per_trial, f"mean {name}", confidence),
        passed=_of_outcome(sums, Outcome.PASSED, name, confidence),
        failed=_of_outcome(sums, Outcome.FAILED, name, confidence),
        errored=_of_outcome(sums, Outcome.ERRORED, name, confidence),
        difference=_difference(sums, confidence),
        association=association_with_passing(_outcome_sums(sums), confidence=confidence),
        median=_quantile(values, 0.5, confidence),
        p95=_quantile(values, 0.95, confidence),
        per_success=(
            _per_success(name, tally, per_trial, errors, confidence)
            if spent
            else Unavailable(f"{name} are not paid for")
        ),
        per_streak=(
            {k: _per_streak(name, tally, per_trial, k, errors, confidence) for k in ks}
            if spent
            else {}
        ),
    )


def _taken(sums: FeatureSums, errors: ErrorPolicy) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Count and total per task, over the trials that the policy counts as runs."""
    kept = slice(None) if errors == "fail" else slice(0, Outcome.ERRORED)
    return sums.count[kept].sum(axis=0), sums.total[kept].sum(axis=0)


def _mean(
    count: NDArray[np.int64], total: NDArray[np.float64], what: str, confidence: float
) -> Number:
    known = count > 0
    if not known.any():
        return Unavailable(f"{what}: no trial recorded it")
    return ratio_of_totals(total[known], count[known], what=what, confidence=confidence)


def _of_outcome(sums: FeatureSums, outcome: Outcome, name: str, confidence: float) -> Number:
    what = f"{name} of {outcome.name.lower()} trials"
    return _mean(sums.count[outcome], sums.total[outcome], what, confidence)


def _difference(sums: FeatureSums, confidence: float) -> Number:
    return difference_of_ratios(
        sums.total[Outcome.PASSED],
        sums.count[Outcome.PASSED],
        sums.total[Outcome.FAILED],
        sums.count[Outcome.FAILED],
        confidence=confidence,
    )


def _outcome_sums(sums: FeatureSums) -> OutcomeSums:
    return OutcomeSums(
        passed_count=sums.count[Outcome.PASSED],
        failed_count=sums.count[Outcome.FAILED],
        passed_total=sums.total[Outcome.PASSED],
        failed_total=sums.total[Outcome.FAILED],
        squares=sums.squares[Outcome.PASSED] + sums.squares[Outcome.FAILED],
    )


def _quantile(values: NDArray[np.float64] | None, share: float, confidence: float) -> Number:
    if values is None:
        return Unavailable("quantiles need the trials themselves; only their counts were read")
    return quantile_estimate(values, share, confidence=confidence)


def _per_success(
    name: str,
    tally: Tally,
    per_trial: tuple[NDArray[np.int64], NDArray[np.float64]],
    errors: ErrorPolicy,
    confidence: float,
) -> Number:
    """All that was spent, over all successes; silent trials count as their task's mean."""
    count, total = per_trial
    known = count > 0
    what = f"{name} per success"
    if not known.any():
        return Unavailable(f"{what}: no trial that counts recorded it")
    spent = total[known] / count[known] * tally.runs(errors)[known]
    return ratio_of_totals(spent, tally.passed[known], what=what, confidence=confidence)


def _per_streak(
    name: str,
    tally: Tally,
    per_trial: tuple[NDArray[np.int64], NDArray[np.float64]],
    k: int,
    errors: ErrorPolicy,
    confidence: float,
) -> Number:
    """K runs of a task cost k times one, and pass^k of such blocks succeed throughout."""
    count, total = per_trial
    runs = tally.runs(errors)
    usable = (count > 0) & (runs >= k)
    what = f"{name} per {k} successes in a row"
    if not usable.any():
        return Unavailable(f"{what} needs {k} runs of a task; none has them")
    blocks = k * total[usable] / count[usable]
    succeeding = pass_hat_k(runs[usable], tally.passed[usable], k)
    return ratio_of_totals(blocks, succeeding, what=what, confidence=confidence)
