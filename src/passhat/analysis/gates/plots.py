"""Pictures of verdicts: how the evidence grew to its boundary, or the bounds of each task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from passhat.analysis.gates.gate import ThresholdRequirement, Verdict, percentage
from passhat.analysis.gates.gate_plan import GatePlan
from passhat.drawing import Figure, Guide, IntervalRow, Marker, Series, interval_rows, line_chart
from passhat.drawing.lines import Column, column_chart
from passhat.messages import plural
from passhat.records.trial import natural_key
from passhat.stats.estimate import Estimate, Unavailable

_MOST_POINTS = 400
_MOST_ROWS = 60
_MOST_COLUMNS = 12


def evidence_figure(verdict: Verdict) -> Figure | Unavailable:
    """The picture of a verdict: the path of its evidence, or its bounds and those of each task."""
    if verdict.steps:
        return _path(verdict)
    if isinstance(verdict.estimate, Estimate) and verdict.estimate.interval is not None:
        return _bounds(verdict, verdict.estimate)
    return Unavailable("there is nothing to draw: the verdict has neither steps nor bounds")


def plan_figure(plan: GatePlan) -> Figure:
    """Expected runs over the truths, beside the fixed design with the same error rates."""
    rows = sorted(plan.rows, key=lambda row: row.truth)
    truths = [row.truth for row in rows]
    fixed = plan.fixed_runs
    dearest = max(plan.rows, key=lambda row: row.expected_runs)
    return line_chart(
        [
            Series(name="expected trials", x=truths, y=[row.expected_runs for row in rows]),
            Series(name="19 of 20 end by", x=truths, y=[row.runs_95 for row in rows]),
        ],
        title=f"{plan.gate.require} takes most trials, {dearest.expected_runs:,.0f} on average, "
        f"where the truth is {percentage(dearest.truth)}",
        finding=plan_finding(plan),
        x_label="if this is the truth",
        x_kind="percent",
        y_label="trials",
        y_range=(0.0, max(row.runs_95 for row in rows) * 1.05),
        guides=[Guide(name=f"fixed design: {fixed:,}", y=float(fixed))]
        if fixed is not None and fixed <= max(row.runs_95 for row in rows)
        else [],
    )


def plan_finding(plan: GatePlan) -> str:
    """What the gate costs, in one sentence."""
    low, high = min(row.expected_runs for row in plan.rows), plan.worst_runs
    text = f"{plan.gate.require} takes {low:,.0f} to {high:,.0f} trials on average"
    text += f", never more than {plan.max_runs:,}"
    if plan.fixed_runs is not None:
        text += f"; a fixed design with the same error rates takes {plan.fixed_runs:,}"
    return f"{text}."


def _path(verdict: Verdict) -> Figure:
    """The log evidence for a PASS and for a FAIL, draw by draw, and the boundaries."""
    steps = verdict.steps
    every = max(1, -(-len(steps) // _MOST_POINTS))
    kept = [step for step in steps if (len(steps) - step.number) % every == 0]
    numbers = [float(step.number) for step in kept]
    last = steps[-1]
    guides = [Guide(name="PASS / FAIL at this height", y=last.pass_boundary)]
    if abs(last.pass_boundary - last.fail_boundary) > 1e-9:
        guides = [
            Guide(name="PASS", y=last.pass_boundary),
            Guide(name="FAIL", y=last.fail_boundary),
        ]
    return line_chart(
        [
            Series(name="for PASS", x=numbers, y=[s.log_pass for s in kept], dots=False),
            Series(name="for FAIL", x=numbers, y=[s.log_fail for s in kept], dots=False),
        ],
        title=f"{_whose(verdict)}: {verdict.status} after {last.number:,} steps",
        finding=verdict.sentence,
        x_label="steps",
        y_label="log evidence",
        guides=guides,
        markers=[Marker(name=verdict.status, x=float(last.number))],
    )


def _bounds(verdict: Verdict, estimate: Estimate) -> Figure:
    """The bounds on the number demanded, and on a metric what each task adds to it."""
    demand = verdict.gate.demand
    interval = estimate.interval
    assert interval is not None, "the caller looked"
    number = demand if isinstance(demand, ThresholdRequirement) else None
    limit = number.threshold if number else -float(getattr(demand, "margin", 0.0))
    share = number is not None and number.target.is_share
    ends = [interval.low, interval.high, estimate.value, limit]
    room = 0.1 * (max(ends) - min(ends)) or 1.0
    rows = [
        IntervalRow(
            name="all tasks",
            value=estimate.value,
            low=interval.low,
            high=interval.high,
            bar=limit,
            note=verdict.status,
        )
    ]
    tasks = _task_rows(verdict)
    many = len(tasks) > _MOST_ROWS
    cut = f" (the {_MOST_ROWS} lowest of {len(tasks):,} tasks)" if many else ""
    return interval_rows(
        [*rows, *tasks[:_MOST_ROWS]],
        title=f"{_whose(verdict)}: {verdict.status}{cut}",
        finding=verdict.sentence,
        x_label=number.target.name if number else "difference",
        x_range=(0.0, 1.0) if share else (min(ends) - room, max(ends) + room),
        x_kind="percent" if share or not number else "number",
    )


def _task_rows(verdict: Verdict) -> list[IntervalRow]:
    demand = verdict.gate.demand
    if not isinstance(demand, ThresholdRequirement) or not demand.target.is_metric:
        return []
    known = [(task.value, task) for task in verdict.tasks if task.value is not None]
    mixed = any(0 < task.passed < task.runs for task in verdict.tasks)
    if mixed and all(value in (0.0, 1.0) for value, _ in known):
        return []  # as many trials as k: `tasks_figure` counts them
    return [
        IntervalRow(name=task.task, value=value, colour="n", note=f"{task.passed}/{task.runs}")
        for value, task in sorted(known, key=lambda pair: (pair[0], natural_key(pair[1].task)))
    ]


def tasks_figure(verdict: Verdict) -> Figure | Unavailable:
    """How many tasks passed none, some and all of their trials: where a demand is missed."""
    runs = {task.runs for task in verdict.tasks}
    most = max(runs, default=0)
    if len(runs) != 1 or not 2 <= most <= _MOST_COLUMNS or len(verdict.tasks) < most:
        return Unavailable("tasks are counted where all have the same trials, and not too many")
    counts = Counter(task.passed for task in verdict.tasks)
    colours = {0: "b", most: "a"}
    short = len(verdict.tasks) - counts[most]
    return column_chart(
        [
            Column(
                name=f"{passed} of {most}", count=counts[passed], colour=colours.get(passed, "e")
            )
            for passed in range(most + 1)
        ],
        title=f"{short:,} of {plural(len(verdict.tasks), 'task')} did not pass every trial",
        finding=f"Tasks by how many of {most} trials passed.",
        x_label="trials passed",
    )


def gates_figure(verdicts: Sequence[Verdict]) -> Figure | Unavailable:
    """Every gate on a share in one picture: its value and bounds, and the line it has to reach."""
    rows = [row for verdict in verdicts if (row := _gate_row(verdict)) is not None]
    if not rows:
        return Unavailable("no gate is on a share with bounds")
    words = [row.note for row in rows]
    met = words.count("PASS")
    others = ", ".join(f"{words.count(word)} {word}" for word in ("FAIL", "UNDECIDED"))
    return interval_rows(
        rows,
        title=f"{met} of {plural(len(rows), 'gate')} met" if met else f"No gate is met: {others}",
        finding="Each value with its one-sided bounds; the upright stroke is what is demanded.",
        x_label="share",
        x_range=(0.0, 1.0),
        x_kind="percent",
    )


def _gate_row(verdict: Verdict) -> IntervalRow | None:
    demand, estimate = verdict.gate.demand, verdict.estimate
    if not isinstance(demand, ThresholdRequirement) or not demand.target.is_share:
        return None
    if not isinstance(estimate, Estimate) or estimate.interval is None:
        return None
    return IntervalRow(
        name=_whose(verdict),
        value=estimate.value,
        low=estimate.interval.low,
        high=estimate.interval.high,
        bar=demand.threshold,
        colour={"PASS": "a", "FAIL": "b"}.get(verdict.status, "e"),
        note=verdict.status,
    )


def _whose(verdict: Verdict) -> str:
    return f"{verdict.system}: {verdict.demand}" if verdict.system else verdict.demand
