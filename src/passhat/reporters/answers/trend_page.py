"""What the page of a trend shows: the newest change, its picture, and the tasks that moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from passhat.analysis.comparing.trends import SystemTrend, TaskMove, TaskTurn, TrendPoint
from passhat.dataclass import dataclass
from passhat.messages import plural
from passhat.reporters.answer_kind import DisplayOptions, Facts
from passhat.reporters.blocks import Chip, Table
from passhat.reporters.numbers import percent, points, signed_points, span
from passhat.reporters.safe_text import safe_text, short
from passhat.stats.trend import ChangePoint, DivergingTrend

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure

MOST_MOVED = 10
"""Tasks that moved which are seen without opening a fold."""

_FAR = 0.15
"""A move that is worth counting: 15 points, about what 20 runs before and after can show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendView:
    """One system: its sentences, picture, moved tasks, changed labels, and runs with their keys."""

    name: str
    title: str
    sentences: tuple[str, ...]
    figure: Figure | None
    moved: tuple[TaskMove, ...]
    turns: Table | None
    runs: Table
    keys: tuple[str, ...]


def trend_page(trends: Sequence[SystemTrend], options: DisplayOptions) -> Mapping[str, Any]:
    """The values of the template; the system that changed last comes first."""
    ordered = _newest_change_first(trends)
    return {
        "subject": "trend",
        "headline": headline(ordered),
        "systems": [_view(trend) for trend in ordered],
        "most_moved": MOST_MOVED,
    }


def headline(trends: Sequence[SystemTrend]) -> str:
    """The newest change of pass^k in one sentence."""
    trend = _newest_change_first(trends)[0]
    change = trend.newest_change
    if change is None:
        runs = max(len(one.points) for one in trends)
        if runs == 1:
            return "One run so far: a change takes two to be seen."
        return f"No change of reliability shown over {runs} runs."
    word = "less" if change.direction == "down" else "more"
    return (
        f"{short(trend.name)} became {word} dependable on {trend.day(change)}: "
        f"{_streak(trend)} went from {percent(change.before)} to {percent(change.after)}."
    )


def chip(trends: Sequence[SystemTrend]) -> Chip:
    """The newest change in three words."""
    trend = _newest_change_first(trends)[0]
    change = trend.newest_change
    if change is None:
        runs = max(len(one.points) for one in trends)
        return Chip("One run" if runs == 1 else "No change shown", "none")
    fell = change.direction == "down"
    return Chip(f"{'Fell' if fell else 'Rose'} on {trend.day(change)}", "bad" if fell else "good")


def facts(trends: Sequence[SystemTrend]) -> Facts:
    """The newest run, the size of the newest change, and how many tasks moved far."""
    trend = _newest_change_first(trends)[0]
    last, name = trend.points[-1], trend.metrics[0]
    now = last.metrics[name]
    whose = f"{safe_text(trend.name)}, " if len(trends) > 1 else ""
    found = [
        (
            percent(now.value),
            f"{whose}{_streak(trend)} in the newest run, {last.started[:10]}, {span(now.interval)}",
        )
    ]
    if (change := trend.newest_change) is not None:
        size = f"{signed_points(change.interval.low)} to {signed_points(change.interval.high)}"
        found.append((f"{size} points", f"change of {name}, {safe_text(trend.name)}"))
        far = sum(abs(one.moved) >= _FAR for one in trend.moved)
        found.append((f"{far} of {len(trend.moved)}", "tasks moved by 15 points or more"))
    return found


def _newest_change_first(trends: Sequence[SystemTrend]) -> list[SystemTrend]:
    def place(trend: SystemTrend) -> str:
        change = trend.newest_change
        return "" if change is None else trend.points[change.position].started

    return sorted(trends, key=place, reverse=True)


def _view(trend: SystemTrend) -> TrendView:
    change = trend.newest_change
    return TrendView(
        name=safe_text(trend.name),
        title=_moved_title(trend, change),
        sentences=tuple(
            sentence
            for sentence in sentences(trend, turns=False)
            if len(trend.points) > 1 and (change or not trend.turns)
        ),
        figure=trend.plot() if len(trend.points) > 1 else None,
        moved=trend.moved,
        turns=_turns_table(trend.turns),
        runs=runs_table(trend),
        keys=tuple(point.key for point in trend.points),
    )


def _moved_title(trend: SystemTrend, change: ChangePoint | None) -> str:
    if change is None:
        return ""
    word = "fall" if change.direction == "down" else "rise"
    far = sum(abs(one.moved) >= _FAR for one in trend.moved)
    return f"The {word} is in {plural(far, 'task')}" if far else f"The {word} is spread thin"


def _turns_table(turns: Sequence[TaskTurn]) -> Table | None:
    """Tasks whose label changed, the newest first; those that got worse before others."""
    if not turns:
        return None
    newest = sorted(enumerate(turns), key=lambda pair: (-pair[0], pair[1].turn == "got fixed"))
    rows = tuple((one.task, one.turn, one.before, one.after, one.label) for _, one in newest)
    return Table(header=("task", "turn", "was", "is", "run"), rows=rows, left=(0, 1, 2, 3, 4))


def _streak(trend: SystemTrend) -> str:
    return "one attempt" if trend.k == 1 else f"{trend.k} in a row (pass^{trend.k})"


def sentences(trend: SystemTrend, *, turns: bool = True) -> list[str]:
    """What happened, the most alarming first; without `turns`, not task by task."""
    texts = []
    if isinstance(trend.divergence, DivergingTrend) and trend.divergence.diverging:
        texts.append(
            f"Warning, {trend.divergence.name}: {safe_text(trend.name)} can do more and can be "
            f"depended on less (pass@{trend.k} {signed_points(trend.divergence.rise.value)}, "
            f"pass^{trend.k} {signed_points(trend.divergence.fall.value)} points)."
        )
    for name, changes in trend.changes.items():
        texts += [_change(name, change, trend.points) for change in changes.points]
    texts += [_turn(turn) for turn in trend.turns if turns]
    return texts or [_no_change(trend)]


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
