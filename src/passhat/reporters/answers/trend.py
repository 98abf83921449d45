"""A trend: how reliability moved over the runs of a suite, and where it changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from passhat.analysis.comparing.trends import SystemTrend, TrendPoint, Turn
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Records
from passhat.reporters.answers.trend_page import (
    chip,
    facts,
    headline,
    runs_table,
    sentences,
    trend_page,
)
from passhat.reporters.blocks import Block, Headline, Paragraph, Picture, Section
from passhat.reporters.data import shaped
from passhat.reporters.numbers import end_cells
from passhat.reporters.safe_text import safe_text
from passhat.stats.trend import Changes, Direction, DivergingTrend

SCHEMA: Literal["passhat.trend/1"] = "passhat.trend/1"


class RateObject(TypedDict):
    """A rate at one moment, with its interval."""

    value: float
    low: float | None
    high: float | None


class PointObject(TypedDict):
    """The rates at one moment; `carried` names tasks whose earlier counts are used."""

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


class SystemTrendObject(TypedDict):
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
    systems: list[SystemTrendObject]


def trend_blocks(trends: Sequence[SystemTrend], options: DisplayOptions) -> list[Block]:
    """Each system: what changed in words, then the runs one by one, then the picture."""
    blocks: list[Block] = []
    for trend in trends:
        blocks += [Section(safe_text(trend.name))] if len(trends) > 1 else []
        blocks += [Headline(sentence) for sentence in sentences(trend)]
        blocks.append(runs_table(trend))
        if any(point.carried for point in trend.points):
            texts = "Not every task was run: the last result of the others is carried forward."
            blocks.append(Paragraph("Starred", f"* {texts}"))
        if len(trend.points) > 1:
            blocks.append(Picture(trend.plot()))
    return blocks


def trend_object(trends: Sequence[SystemTrend]) -> TrendObject:
    """Schema "passhat.trend/1"."""
    return {"schema": SCHEMA, "systems": [_system_object(trend) for trend in trends]}


def _system_object(trend: SystemTrend) -> SystemTrendObject:
    return {
        "name": trend.name,
        "k": trend.k,
        "sentences": sentences(trend),
        "points": [_point_object(point) for point in trend.points],
        "changes": {name: _changes_object(changes) for name, changes in trend.changes.items()},
        "diverging": isinstance(trend.divergence, DivergingTrend) and trend.divergence.diverging,
        "turns": [shaped(turn, TurnObject, run=turn.key) for turn in trend.turns],
    }


def _point_object(point: TrendPoint) -> PointObject:
    metrics = {
        name: {"value": one.value, **end_cells("", one.interval)}
        for name, one in point.metrics.items()
    }
    return shaped(point, PointObject, run=point.key, metrics=metrics)


def _changes_object(changes: Changes) -> ChangesObject:
    points = [
        shaped(point, ChangeObject, **end_cells("", point.interval)) for point in changes.points
    ]
    return shaped(changes, ChangesObject, points=points)


def _rows(trends: Sequence[SystemTrend]) -> Records:
    return [
        {
            "system": trend.name,
            "run": point.key,
            "started": point.started,
            "tasks": point.tasks,
            "runs": point.runs,
            "number": name,
            "value": estimate.value,
            **end_cells("this_suite", estimate.interval),
        }
        for trend in trends
        for point in trend.points
        for name, estimate in point.metrics.items()
    ]


def _title(trends: Sequence[SystemTrend]) -> str:
    return f"{chip(trends).words}: {headline(trends)}"


KIND = AnswerKind(
    name="trend",
    blocks=trend_blocks,
    data=trend_object,
    rows=_rows,
    figures=lambda trends: {trend.name: trend.plot() for trend in trends},
    title=_title,
    page=trend_page,
    template="trend.html",
    chip=chip,
    facts=facts,
    several=True,
)
