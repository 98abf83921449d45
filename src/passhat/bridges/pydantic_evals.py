"""pydantic-evals: its reports as trials, and reliability as an analysis of a report.

dataset = Dataset(cases=[...], evaluators=[...], report_evaluators=[Reliability(k=3)])
report = dataset.evaluate_sync(task, repeat=10)
passhat.report(trials_of_report(report))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_evals.evaluators import ReportEvaluator, ReportEvaluatorContext
from pydantic_evals.reporting.analyses import ScalarResult

from passhat.analysis.reports.measure import measure
from passhat.errors import InputError
from passhat.records import Outcome, Trial, Trials
from passhat.stats.estimate import Estimate


def trials_of_report(report: Any, *, system: str | None = None) -> Trials:
    """The cases of an EvaluationReport as trials, in their order; `system` is by default its name.

    A case passes when all of its assertions hold. A case that raised, or whose evaluator raised, is
    an errored trial. A case without an assertion says nothing about passing, and is an error.
    """
    records = [_trial(case, system or report.name) for case in report.cases]
    records += [
        {"system": system or report.name, "task": _name(case), "error": case.error_message}
        for case in report.failures
    ]
    return Trials.from_records(_numbered(records))


@dataclass
class Reliability(ReportEvaluator):  # type: ignore[misc,unused-ignore]
    """pass^k of the cases, with its interval in the description; needs `repeat` of at least k."""

    k: int = 3

    def evaluate(self, ctx: ReportEvaluatorContext) -> ScalarResult:
        """The number, as pydantic-evals prints and keeps it."""
        system = measure(trials_of_report(ctx.report), ks=(self.k,)).system()
        number = system.pass_hat(self.k).this_suite
        if not isinstance(number, Estimate) or number.interval is None:
            reason = getattr(number, "reason", "no interval")
            return ScalarResult(title=f"pass^{self.k}", value=float("nan"), description=reason)
        low, high = number.interval.low, number.interval.high
        return ScalarResult(
            title=f"pass^{self.k}",
            value=number.value,
            description=f"{100 * number.confidence:g}% interval {low:.3f} to {high:.3f} (passhat)",
        )


def _trial(case: Any, system: str) -> dict[str, Any]:
    base = {"system": system, "task": _name(case), "seconds": case.task_duration}
    if case.evaluator_failures:
        return {**base, "error": case.evaluator_failures[0].error_message}
    if not case.assertions:
        raise InputError(
            f"the case {case.name!r} has no assertion, so it neither passed nor failed: add an "
            "evaluator that returns a bool"
        )
    passed = all(assertion.value for assertion in case.assertions.values())
    return {**base, "outcome": Outcome.PASSED if passed else Outcome.FAILED}


def _name(case: Any) -> str:
    return str(case.source_case_name or case.name)


def _numbered(records: list[dict[str, Any]]) -> list[Trial]:
    """Trials with the number of each among those of its task."""
    counts: dict[str, int] = {}
    trials = []
    for record in records:
        number = counts.get(record["task"], 0)
        counts[record["task"]] = number + 1
        outcome = record.pop("outcome", Outcome.ERRORED)
        trials.append(Trial(trial=number, outcome=outcome, **record))
    return trials
