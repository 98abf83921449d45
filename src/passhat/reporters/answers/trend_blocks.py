"""The sentences of a trend, and its runs one by one."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.analysis.comparing.trends import SystemTrend, TaskTurn, TrendPoint
from passhat.reporters.blocks import Table
from passhat.reporters.numbers import percent, points, signed_points, span
from passhat.reporters.safe_text import safe_text
from passhat.stats.trend import ChangePoint, DivergingTrend


def sentences(trend: SystemTrend, *, turns: bool = True) -> list[str]:
    """What happened, the most alarming first; without `turns`, not task by task."""
    told = []
    if isinstance(trend.divergence, DivergingTrend) and trend.divergence.diverging:
        told.append(
            f"Warning, {trend.divergence.name}: {safe_text(trend.name)} can do more and can be "
            f"depended on less (pass@{trend.k} {signed_points(trend.divergence.rise.value)}, "
            f"pass^{trend.k} {signed_points(trend.divergence.fall.value)} points)."
        )
    for name, changes in trend.changes.items():
        told += [_change(name, change, trend.points) for change in changes.points]
    told += [_turn(turn) for turn in trend.turns if turns]
    return told or [_no_change(trend)]


def _no_change(trend: SystemTrend) -> str:
    name, count = safe_text(trend.name), len(trend.points)
    if count == 1:
        return f"{name}: one run so far; a change takes two to be seen."
    rate = percent(next(iter(trend.changes.values())).false_alarm)
    return f"{name}: no change shown over {count} runs (a false alarm has a chance of {rate})."


def _change(name: str, change: ChangePoint, moments: Sequence[TrendPoint]) -> str:
    where = safe_text(moments[change.position].label)
    return (
        f"{name} went {change.direction} at {where}: from {percent(change.before)} to "
        f"{percent(change.after)} ({signed_points(change.interval.low)} to "
        f"{signed_points(change.interval.high)} points)."
    )


def _turn(turn: TaskTurn) -> str:
    return f"{safe_text(turn.task)} {turn.turn} at {safe_text(turn.label)} (was {turn.before})."


def runs_table(trend: SystemTrend) -> Table:
    """The runs one by one, the oldest first."""
    heads = [head for name in trend.metrics for head in (name, "this suite")]
    scopes = [5 + 2 * i for i in range(len(trend.metrics))]
    return Table(
        header=("run", "date", "tasks", "runs", *heads),
        rows=tuple(_row(point) for point in trend.points),
        left=(0, 1, *scopes),
        spare=(1,),
    )


def _row(point: TrendPoint) -> tuple[str, ...]:
    numbers = [
        cell
        for estimate in point.metrics.values()
        for cell in (points(estimate.value, digits=1), span(estimate.interval))
    ]
    tasks = f"{point.tasks}{'*' if point.carried else ''}"
    return safe_text(point.label), point.started[:10], tasks, f"{point.runs:,}", *numbers
