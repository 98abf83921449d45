"""The tasks that passed and failed over the last runs."""

from __future__ import annotations

from typing import Literal, TypedDict

from passhat.analysis.comparing.trends import FlakyTask, FlakyTasks
from passhat.messages import plural
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Records
from passhat.reporters.blocks import Bar, Block, Headline, Paragraph, Table
from passhat.reporters.data import plain, shaped
from passhat.reporters.numbers import end_cells, percent, span
from passhat.reporters.safe_text import safe_text

SCHEMA: Literal["passhat.flaky/1"] = "passhat.flaky/1"
MOST_MARKS = 30
"""Runs that are shown for a task: the newest."""


class FlakyObject(TypedDict):
    """The tasks that passed and failed over some runs."""

    schema: Literal["passhat.flaky/1"]
    runs: int
    tasks_seen: int
    confidence: float
    tasks: list[FlakyTask]


def flaky_blocks(found: FlakyTasks, options: DisplayOptions) -> list[Block]:
    """One row a task, flaky ones first."""
    of_all = f"{len(found.tasks):,} of {plural(found.tasks_seen, 'task')}"
    head = f"{of_all} passed and failed over {plural(found.runs, 'run')}."
    if not found.tasks:
        return [Headline(head)]
    several = len({one.system for one in found.tasks}) > 1
    header = (
        "task",
        *(("agent",) if several else ()),
        "label",
        "passed",
        "rate",
        "interval",
        "",
        "runs",
    )
    rows = tuple(_cells(one, several=several) for one in found.tasks)
    return [
        Headline(head),
        Table(
            header=header,
            rows=rows,
            left=tuple(i for i, name in enumerate(header) if name in _LEFT),
        ),
        Paragraph("Runs", "Oldest first: P all passed, F all failed, ~ some of each, . not run."),
    ]


_LEFT = ("task", "agent", "label", "interval", "runs")


def _cells(one: FlakyTask, *, several: bool) -> tuple[str | Bar, ...]:
    agent = (safe_text(one.system),) if several else ()
    return (
        safe_text(one.task),
        *agent,
        one.label,
        f"{one.passed:,}/{one.trials:,}",
        percent(one.rate),
        span(one.interval, digits=0),
        Bar(value=one.rate, inner=one.interval),
        one.marks[-MOST_MARKS:],
    )


def _rows(found: FlakyTasks) -> Records:
    return [
        {
            **{name: value for name, value in plain(one).items() if name != "interval"},
            **end_cells("", one.interval),
        }
        for one in found.tasks
    ]


KIND = AnswerKind(
    name="flaky",
    blocks=flaky_blocks,
    data=lambda found: shaped(found, FlakyObject, schema=SCHEMA),
    rows=_rows,
    title=lambda found: plural(len(found.tasks), "flaky task"),
)
