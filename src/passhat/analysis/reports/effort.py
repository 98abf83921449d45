"""What trials took, by how they ended, what goes with passing, and what a success costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.reports.parts import ResourceUse
from passhat.dataclass import dataclass
from passhat.records import FEATURES, ErrorPolicy, FeatureSums, Outcome, Tally
from passhat.stats.arguments import Counts, Floats
from passhat.stats.estimate import Number, Unavailable
from passhat.stats.passk import pass_hat_k
from passhat.stats.usage import (
    OutcomeSums,
    association_with_passing,
    difference_of_ratios,
    quantile_estimate,
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
        name: _measure(
            _Feature(name=name, tally=tally, errors=errors, confidence=confidence),
            values.get(name),
            ks,
        )
        for name in FEATURES
        if name in tally.features and tally.features[name].count.any()
    }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Feature:
    """One feature of the trials of a system, and how its numbers are stated."""

    name: str
    tally: Tally
    errors: ErrorPolicy
    confidence: float

    @property
    def sums(self) -> FeatureSums:
        return self.tally.features[self.name]

    @property
    def per_task(self) -> tuple[Counts, Floats]:
        """Count and total per task, over the trials that the policy counts as runs."""
        kept = slice(None) if self.errors == "fail" else slice(0, Outcome.ERRORED)
        return self.sums.count[kept].sum(axis=0), self.sums.total[kept].sum(axis=0)

    def mean(self, count: Counts, total: Floats, what: str) -> Number:
        known = count > 0
        if not known.any():
            return Unavailable(f"{what}: no trial recorded it")
        return ratio_of_totals(total[known], count[known], what=what, confidence=self.confidence)

    def of_outcome(self, outcome: Outcome) -> Number:
        what = f"{self.name} of {outcome.name.lower()} trials"
        return self.mean(self.sums.count[outcome], self.sums.total[outcome], what)

    def difference(self) -> Number:
        return difference_of_ratios(
            self.sums.total[Outcome.PASSED],
            self.sums.count[Outcome.PASSED],
            self.sums.total[Outcome.FAILED],
            self.sums.count[Outcome.FAILED],
            confidence=self.confidence,
        )

    def association(self) -> Number:
        count, total, squares = self.sums.count, self.sums.total, self.sums.squares
        sums = OutcomeSums(
            passed_count=count[Outcome.PASSED],
            failed_count=count[Outcome.FAILED],
            passed_total=total[Outcome.PASSED],
            failed_total=total[Outcome.FAILED],
            squares=squares[Outcome.PASSED] + squares[Outcome.FAILED],
        )
        return association_with_passing(sums, confidence=self.confidence)

    def quantile(self, values: Floats | None, share: float) -> Number:
        if values is None:
            return Unavailable("quantiles need the trials themselves; only their counts were read")
        return quantile_estimate(values, share, confidence=self.confidence)

    def per_success(self) -> Number:
        """All that was spent, over all successes; silent trials count as their task's mean."""
        count, total = self.per_task
        known = count > 0
        what = f"{self.name} per success"
        if not known.any():
            return Unavailable(f"{what}: no trial that counts recorded it")
        spent = total[known] / count[known] * self.tally.runs(self.errors)[known]
        passed = self.tally.passed[known]
        return ratio_of_totals(spent, passed, what=what, confidence=self.confidence)

    def per_streak(self, k: int) -> Number:
        """K runs of a task cost k times one, and pass^k of such blocks succeed throughout."""
        count, total = self.per_task
        runs = self.tally.runs(self.errors)
        usable = (count > 0) & (runs >= k)
        what = f"{self.name} per {k} successes in a row"
        if not usable.any():
            return Unavailable(f"{what} needs {k} runs of a task; none has them")
        blocks = k * total[usable] / count[usable]
        succeeding = pass_hat_k(runs[usable], self.tally.passed[usable], k)
        return ratio_of_totals(blocks, succeeding, what=what, confidence=self.confidence)


def _measure(feature: _Feature, values: Floats | None, ks: Sequence[int]) -> ResourceUse:
    name, spent = feature.name, feature.name in _SPENT
    return ResourceUse(
        name=name,
        trials=int(feature.sums.count.sum()),
        mean=feature.mean(*feature.per_task, f"mean {name}"),
        passed=feature.of_outcome(Outcome.PASSED),
        failed=feature.of_outcome(Outcome.FAILED),
        errored=feature.of_outcome(Outcome.ERRORED),
        difference=feature.difference(),
        association=feature.association(),
        median=feature.quantile(values, 0.5),
        p95=feature.quantile(values, 0.95),
        per_success=feature.per_success() if spent else Unavailable(f"{name} are not paid for"),
        per_streak={k: feature.per_streak(k) for k in ks} if spent else {},
    )
