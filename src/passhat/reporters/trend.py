"""Trends over history, as text, Markdown, JSON and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from passhat.analysis.comparing.trends import SystemTrend, TaskTurn, TrendPoint, Turn
from passhat.reporters.ink import Ink
from passhat.reporters.json_report import to_json
from passhat.reporters.numbers import percent, points, span
from passhat.reporters.safe_text import pad, safe_text, wrap
from passhat.stats.diverging import Divergence
from passhat.stats.trend import ChangePoint, Changes, Direction

SCHEMA: Literal["passhat.trend/1"] = "passhat.trend/1"


class RateObject(TypedDict):
    """A rate at one moment, with its interval."""

    value: float
    low: float | None
    high: float | None


class PointObject(TypedDict):
    """The rates at one moment; `carried` names tasks whose last counts stand in."""

    run: str
    label: str
    started: str
    tasks: int
    runs: int
    carried: list[str]
    metrics: dict[str, RateObject]


class ChangeObject(TypedDict):
    """A change of the rate at `position`, and its size with an interval."""

    position: int
    direction: Direction
    before: float
    after: float
    low: float
    high: float


class ChangesObject(TypedDict):
    """The changes of one metric, found with a known chance of a false alarm."""

    false_alarm: float
    horizon: int
    method: str
    points: list[ChangeObject]


class TurnObject(TypedDict):
    """A task whose label changed, at the first run that showed the new one."""

    task: str
    turn: Turn
    before: str
    after: str
    run: str


class SystemObject(TypedDict):
    """One system over history, its oldest run first."""

    name: str
    k: int
    sentences: list[str]
    points: list[PointObject]
    changes: dict[str, ChangesObject]
    diverging: bool
    turns: list[TurnObject]


class TrendObject(TypedDict):
    """How reliability moved over history."""

    schema: Literal["passhat.trend/1"]
    systems: list[SystemObject]


def render_terminal(trends: Sequence[SystemTrend], ink: Ink | None = None) -> str:
    """Each system: what changed in words, then the moments one by one, then the picture."""
    ink = ink or Ink()
    lines: list[str] = []
    for trend in trends:
        for sentence in sentences(trend):
            lines += [ink.style(line, "bold") for line in wrap(sentence, ink.width)]
        lines += ["", *_table(trend, ink), "", *trend.plot().text.split("\n")[1:], ""]
    return ink.finish(lines)


def render_markdown(trends: Sequence[SystemTrend]) -> str:
    """The same as tables."""
    lines: list[str] = []
    for trend in trends:
        head = " | ".join(f"{name} | this suite" for name in trend.metrics)
        lines += [f"## {_cell(trend.name)}", "", *(f"- {s}" for s in sentences(trend)), ""]
        lines += [
            f"| run | tasks | runs | {head} |",
            "|---|" + "---|" * (2 + 2 * len(trend.metrics)),
        ]
        for point in trend.points:
            numbers = " | ".join(
                f"{percent(e.value, digits=1)} | {span(e.interval)}" for e in point.metrics.values()
            )
            lines.append(f"| {_cell(point.label)} | {point.tasks} | {point.runs} | {numbers} |")
        lines.append("")
    return "\n".join(lines)


def render_json(trends: Sequence[SystemTrend]) -> str:
    """Schema "passhat.trend/1", numbers unrounded."""
    found: TrendObject = {
        "schema": SCHEMA,
        "systems": [_system_object(trend) for trend in trends],
    }
    return to_json(found)


def render_svg(trends: Sequence[SystemTrend]) -> str:
    """The picture of the first system."""
    return trends[0].plot().svg(standalone=True)


def sentences(trend: SystemTrend) -> list[str]:
    """What happened, the most alarming first."""
    told = []
    if isinstance(trend.divergence, Divergence) and trend.divergence.diverging:
        told.append(
            f"Warning, {trend.divergence.name}: {safe_text(trend.name)} can do more and can be "
            f"depended on less (pass@{trend.k} {_signed(trend.divergence.rise.value)}, "
            f"pass^{trend.k} {_signed(trend.divergence.fall.value)} points)."
        )
    for name, changes in trend.changes.items():
        told += [_change(name, change, trend.points) for change in changes.points]
    told += [_turn(turn) for turn in trend.turns]
    return told or [_no_change(trend)]


def _no_change(trend: SystemTrend) -> str:
    name, count = safe_text(trend.name), len(trend.points)
    if count == 1:
        return f"{name}: one run so far; a change takes two to be seen."
    rate = percent(next(iter(trend.changes.values())).false_alarm)
    return f"{name}: no change over {count} runs (a false alarm has a chance of {rate})."


def _change(name: str, change: ChangePoint, moments: Sequence[TrendPoint]) -> str:
    where = safe_text(moments[change.position].label)
    return (
        f"{name} went {change.direction} at {where}: from {percent(change.before)} to "
        f"{percent(change.after)} ({_signed(change.interval.low)} to "
        f"{_signed(change.interval.high)} points)."
    )


def _turn(turn: TaskTurn) -> str:
    return f"{safe_text(turn.task)} {turn.turn} at {safe_text(turn.label)} (was {turn.before})."


def _table(trend: SystemTrend, ink: Ink) -> list[str]:
    """One line a run; what was carried forward is said under the table, where it cannot be cut."""
    room = max(12, ink.width - 15 - 23 * len(trend.metrics))
    heads = "".join(f"{name:>8} {'this suite':<14}" for name in trend.metrics)
    lines = [ink.style(f"  {pad('run', min(room, 26))}{'tasks':>6}{'runs':>7}{heads}", "dim")]
    for point in trend.points:
        cells = "".join(
            f"{points(e.value, digits=1):>8} {span(e.interval):<14}" for e in point.metrics.values()
        )
        tasks = f"{point.tasks}{'*' if point.carried else ''}"
        name = pad(point.label, min(room, 26))
        lines.append(f"  {name}{tasks:>6}{point.runs:>7}{cells}")
    if any(point.carried for point in trend.points):
        told = "* not all tasks were run: the last result of the others is carried forward"
        lines += ["  " + line for line in wrap(told, ink.width - 2)]
    return lines


def _system_object(trend: SystemTrend) -> SystemObject:
    return {
        "name": trend.name,
        "k": trend.k,
        "sentences": sentences(trend),
        "points": [_point_object(point) for point in trend.points],
        "changes": {name: _changes_object(changes) for name, changes in trend.changes.items()},
        "diverging": isinstance(trend.divergence, Divergence) and trend.divergence.diverging,
        "turns": [
            {"task": t.task, "turn": t.turn, "before": t.before, "after": t.after, "run": t.key}
            for t in trend.turns
        ],
    }


def _point_object(point: TrendPoint) -> PointObject:
    return {
        "run": point.key,
        "label": point.label,
        "started": point.started,
        "tasks": point.tasks,
        "runs": point.runs,
        "carried": list(point.carried),
        "metrics": {
            name: {
                "value": e.value,
                "low": e.interval.low if e.interval else None,
                "high": e.interval.high if e.interval else None,
            }
            for name, e in point.metrics.items()
        },
    }


def _changes_object(changes: Changes) -> ChangesObject:
    return {
        "false_alarm": changes.false_alarm,
        "horizon": changes.horizon,
        "method": changes.method,
        "points": [
            {
                "position": p.position,
                "direction": p.direction,
                "before": p.before,
                "after": p.after,
                "low": p.interval.low,
                "high": p.interval.high,
            }
            for p in changes.points
        ],
    }


def _signed(share: float) -> str:
    return f"{100 * share:+.0f}"


def _cell(text: str) -> str:
    return safe_text(text).replace("|", "\\|").replace("<", "&lt;")
