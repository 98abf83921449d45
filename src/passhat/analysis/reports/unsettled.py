"""What the trials do not decide, and how many more runs would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from passhat.analysis.reports import parts
from passhat.analysis.reports.dependence import Disturbance, disturbance_advice
from passhat.analysis.reports.evidence import Evidence
from passhat.messages import capitalised, plural, points
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Scope, Unavailable
from passhat.stats.proportions import lower_bound, upper_bound

if TYPE_CHECKING:
    from passhat.stats.sample_size import ObservedDesign, Spread, SuitePlan

HALF_WIDTH = 0.05
"""A mean is settled when it is known to five points either way."""

MOST_RUNS = 10_000
"""Beyond this many more runs of a task, nothing is promised."""

WORTH_RUNNING = 200
"""Beyond this many more runs, reading a task's failures pays more than running it."""

SENSIBLE_RUNS = 1_000
"""Beyond this many more runs, the number is not printed: few would pay for them."""


def list_unsettled(
    evidence: Evidence,
    table: parts.TaskTable,
    bars: Sequence[parts.BarCount],
    variance: Callable[[], parts.VarianceSplit | Unavailable],
    mean: parts.Metric,
    *,
    confidence: float,
    disturbances: Sequence[Disturbance] = (),
    moved_by: Callable[[], Sequence[str]] = tuple,
) -> tuple[parts.Unsettled, ...]:
    """Tasks without a label, bars neither cleared nor missed, a mean known too loosely.

    If runs were not independent, more of them are not promised to settle anything: where seeds or
    days moved the suite (`moved_by`), only more of those do.
    """
    if np.array_equal(table.errored, evidence.runs):
        return ()  # nothing was measured, and more of the same would not help
    if disturbances:
        return tuple(
            parts.Unsettled(
                what=f"disturbance, {disturbance.kind}",
                tasks=(),
                more_runs=None,
                advice=disturbance_advice(disturbance),
            )
            for disturbance in disturbances
        )
    questions = [_repeats(evidence)]
    questions += [_bar(evidence, bar, confidence) for bar in bars]
    if levels := moved_by():
        questions += [_more_levels(mean, name) for name in levels]
    elif isinstance(split := variance(), parts.VarianceSplit):
        questions += _width(evidence, split, mean, confidence)
    if evidence.typical_runs > 1:
        questions.append(_labels(table))
    return tuple(question for question in questions if question is not None)


def runs_until(counts: tuple[int, int], k: int, bar: float, confidence: float) -> int | None:
    """More runs, at the observed rate, until pass^k is certified above or below its bar.

    >>> runs_until((10, 10), 1, 0.9, 0.95)
    19
    """
    runs, passes = counts
    rate = passes / runs
    more = np.unique(np.geomspace(1, MOST_RUNS, 400).astype(np.int64))
    for total in runs + more:
        expected = round(rate * total)
        low = lower_bound(expected, total, confidence=confidence) ** k
        high = upper_bound(expected, total, confidence=confidence) ** k
        if low >= bar or high < bar:
            return int(total - runs)
    return None


def _repeats(evidence: Evidence) -> parts.Unsettled | None:
    if not evidence.tasks or evidence.typical_runs > 1:
        return None
    once = int(np.count_nonzero(evidence.runs == 1))
    why = f"{plural(once, 'task')} ran only once, which cannot tell skill from luck"
    if once == len(evidence.tasks):
        why = "one trial cannot tell skill from luck"
    advice = f"Run every task at least 5 times: {why}."
    return parts.Unsettled(what="luck", tasks=(), more_runs=4, advice=advice)


def _labels(table: parts.TaskTable) -> parts.Unsettled | None:
    tasks = table.names_labelled("undecided")
    if not tasks:
        return None
    open_ = table.labels == parts.LABELS.index("undecided")
    more = _middle([need or None for need in table.more_runs[open_].tolist()])
    failed = bool((table.passed[open_] < table.runs[open_]).any())
    advice = _label_advice(len(tasks), more, failed)
    return parts.Unsettled(what="labels", tasks=tasks, more_runs=more, advice=advice)


def _label_advice(count: int, more: int | None, failed: bool) -> str:
    tasks = plural(count, "task has", "tasks have")
    start = f"{tasks} too few trials to be called solid, flaky or broken"
    if more is None:
        those = {1: "1 task lies", 2: "Both undecided tasks lie"}.get(
            count, f"Most of the {count:,} undecided tasks lie"
        )
        it = "it" if count == 1 else "them"
        return (
            f"{those} so close to a border between labels that more trials would not decide {it}."
        )
    if more > WORTH_RUNNING:
        return f"{start}; {_hopeless(count, more, 'a border between labels', failed)}."
    return f"{start}: {more:,} more {_enough(count)}."


def _middle(needs: Sequence[int | None]) -> int | None:
    """What settles half of them; None if no number settles so many."""
    known = sorted(need for need in needs if need is not None)
    half = (len(needs) - 1) // 2
    return known[half] if half < len(known) else None


def _enough(count: int) -> str:
    if count == 1:
        return "would decide it at the current pass rate"
    some = "one" if count == 2 else "half"
    return f"each would decide {some} of them at the current pass rates"


def _hopeless(count: int, more: int, border: str, failed: bool) -> str:
    each = {1: "it lies", 2: "both lie"}.get(count, "most lie")
    times = f"{more:,} more trials" + ("" if count == 1 else " each")
    reason = f"{each} so close to {border} that it would take {times}"
    if more > SENSIBLE_RUNS:
        reason = f"{each} so close to {border} that no sensible number of trials would decide "
        reason += "it" if count == 1 else "them"
    return f"{reason}: look at the failures instead" if failed else reason


def _bar(evidence: Evidence, bar: parts.BarCount, confidence: float) -> parts.Unsettled | None:
    if not bar.undetermined:
        return None
    index = {name: i for i, name in enumerate(evidence.tasks)}
    needs = [
        runs_until(
            (int(evidence.runs[index[name]]), int(evidence.passes[index[name]])),
            bar.k,
            bar.bars[name],
            confidence,
        )
        for name in bar.undetermined
    ]
    more = _middle(needs)
    count = len(bar.undetermined)
    tasks = plural(count, "task has", "tasks have")
    advice = f"{tasks} a pass^{bar.k} that neither clears nor misses its bar for sure"
    if more is None:
        advice += "."
    elif more > WORTH_RUNNING:
        rows = [index[name] for name in bar.undetermined]
        failed = bool((evidence.passes[rows] < evidence.runs[rows]).any())
        advice += f"; {_hopeless(count, more, 'its bar', failed)}."
    else:
        advice += f": {more:,} more trials {_enough(count)}."
    return parts.Unsettled(
        what=f"bars, pass^{bar.k}", tasks=bar.undetermined, more_runs=more, advice=advice
    )


def _more_levels(mean: parts.Metric, name: str) -> parts.Unsettled | None:
    if mean.interval is None or mean.interval.width <= 2 * HALF_WIDTH:
        return None
    now = f"now ±{50 * mean.interval.width:.1f}"
    advice = f"More {name}s narrow the mean of these tasks ({now}), not more trials at these."
    return parts.Unsettled(what="mean_score, this suite", tasks=(), more_runs=None, advice=advice)


def _width(
    evidence: Evidence, variance: parts.VarianceSplit, mean: parts.Metric, confidence: float
) -> list[parts.Unsettled | None]:
    """What the mean's own intervals lack: "now" is half the width that the report prints."""
    from passhat.stats.sample_size import observed_variance, plan_from

    icc = variance.icc
    spread = observed_variance(
        variance=variance.between_tasks + variance.within_tasks,
        icc=1 - variance.luck_share,
        icc_interval=icc.interval if isinstance(icc, Estimate) else None,
        tasks=len(evidence.tasks),
        runs=int(evidence.runs.sum()),
    )
    seen = seen_design(evidence, spread, mean)
    plan = plan_from(
        seen, spread, tasks=seen.tasks, runs=seen.runs, half_width=HALF_WIDTH, confidence=confidence
    )
    return [_suite_width(plan), _population_width(plan)]


def _suite_width(plan: SuitePlan) -> parts.Unsettled | None:
    needed = plan.runs_this_suite
    if needed is None or needed <= plan.runs:
        return None
    more = needed - plan.runs
    goal, now = "the mean of these tasks to ±5 points", f"now ±{points(plan.this_suite, digits=1)}"
    times = "once more" if more == 1 else f"{more:,} more times"
    # As in the table of a plan: what its first sentence promises takes more.
    advice = f"Run every task {times} to know {goal} ({now}; typically enough)."
    if more > SENSIBLE_RUNS:
        advice = f"No sensible number of trials would bring {goal} ({now})."
    return parts.Unsettled(what="mean_score, this suite", tasks=(), more_runs=more, advice=advice)


def _population_width(plan: SuitePlan) -> parts.Unsettled | None:
    needed = plan.runs_tasks_like_these
    if plan.tasks_like_these <= HALF_WIDTH or plan.tasks_needed is None or needed is None:
        return None
    tasks = f"{plural(plan.tasks_needed - plan.tasks, 'more task')} would"
    now = f"(now ±{points(plan.tasks_like_these, digits=1)})"
    if isinstance(needed, Unavailable):
        more = None
        floor = capitalised(needed.reason)
        advice = f"{floor}; about {tasks} typically get to ±5 {now}."
    elif needed - plan.runs > SENSIBLE_RUNS:
        more = needed - plan.runs
        reach = "gets to ±5 points for similar tasks"
        advice = f"No sensible number of trials {reach} {now}; about {tasks}."
    else:
        more = needed - plan.runs
        runs = f"{plural(more, 'more trial')} of every task"
        start = f"It takes {runs} to get to ±5 points for similar tasks"
        advice = f"{start} {now}; {tasks} do as well."
    return parts.Unsettled(
        what="mean_score, tasks like these", tasks=(), more_runs=more, advice=advice
    )


def seen_design(evidence: Evidence, spread: Spread, mean: parts.Metric) -> ObservedDesign:
    """The design that was run, and half the width of the intervals of its mean."""
    from passhat.stats.sample_size import ObservedDesign

    return ObservedDesign(
        tasks=len(evidence.tasks),
        runs=evidence.typical_runs,
        spread=spread,
        this_suite=half_width(mean, THIS_SUITE),
        tasks_like_these=half_width(mean, TASKS_LIKE_THESE),
        constant=bool((evidence.score_total == 0).all())
        or bool((evidence.score_total == evidence.runs).all()),
        rate=mean.value,
    )


def half_width(metric: parts.Metric, scope: Scope) -> float | None:
    """Half the width of the interval that a report prints; None if it prints none."""
    number = metric.within(scope)
    if not isinstance(number, Estimate) or number.interval is None:
        return None
    return number.interval.width / 2
