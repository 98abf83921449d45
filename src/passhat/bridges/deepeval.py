"""deepeval: the results of `evaluate` as trials.

results = evaluate(test_cases * 10, metrics)  # each case ten times
passhat.report(trials_of_results(results))
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from passhat.records import Outcome, Trial, Trials


def trials_of_results(results: Any, *, system: str = "deepeval") -> Trials:
    """The test results of an EvaluationResult as trials, in their order.

    Results with the same name, or the same input where deepeval made up the name, are runs of one
    task. A test passes when deepeval calls it a success; a metric that raised makes it errored.
    """
    counts: Counter[str] = Counter()
    trials = []
    for result in results.test_results:
        task = _task(result)
        trials.append(_trial(result, system=system, task=task, number=counts[task]))
        counts[task] += 1
    return Trials.from_records(trials)


def _task(result: Any) -> str:
    """The name of a result's task; deepeval calls cases without a name test_case_0 and so on."""
    name = str(result.name or "")
    made_up = not name or name.startswith("test_case_")
    return str(result.input) if made_up and result.input else name


def _trial(result: Any, *, system: str, task: str, number: int) -> Trial:
    metrics = result.metrics_data or []
    errors = [metric.error for metric in metrics if metric.error]
    scores = [metric.score for metric in metrics if metric.score is not None]
    outcome = Outcome.PASSED if result.success else Outcome.FAILED
    return Trial(
        system=system,
        task=task,
        trial=number,
        outcome=Outcome.ERRORED if errors else outcome,
        score=min(1.0, max(0.0, min(scores))) if scores and not errors else None,
        error=errors[0] if errors else None,
    )
