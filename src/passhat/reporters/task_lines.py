"""The tasks of a report on a terminal, a line each."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.analysis.reports.tasks import Label, TaskRow
from passhat.reporters.blocks import LABEL_WIDTH
from passhat.reporters.ink import Ink
from passhat.reporters.numbers import span
from passhat.reporters.safe_text import display_width, safe_text, shorten_apart
from passhat.reporters.text_bars import run_marks

LABEL_COLORS: dict[Label, str] = {
    "solid": "green",
    "flaky": "magenta",
    "broken": "red",
    "too few runs": "dim",
}

_INDENT = "  "
_LABEL, _COUNTS, _INTERVAL = 12, 7, 11
"""Columns of what stands beside the name and the runs; the counts take more where they need it."""
_SHORTEST_NAME, _FEWEST_MARKS = 8, 4


def task_lines(rows: Sequence[TaskRow], ink: Ink) -> list[str]:
    """Name, label, counts, interval and runs, under what the marks of the runs mean.

    Names come first: the runs give way to them, and only then are they cut, never alike.
    """
    counts = [f"{row.passed}/{row.runs}" for row in rows]
    widest = max([_COUNTS, *map(len, counts)])
    beside = len(_INDENT) + 2 + _LABEL + 2 + widest + 1 + _INTERVAL + 3
    room = max(_SHORTEST_NAME, ink.width - beside)
    names = shorten_apart([row.name for row in rows], min(_widest(rows), room))
    width = max(map(display_width, names), default=0)
    marks = [_marks(row, room - width, ink) for row in rows]
    lines = [
        _task_line(row, name + " " * (width - display_width(name)), f"{count:<{widest}}", runs, ink)
        for row, name, count, runs in zip(rows, names, counts, marks, strict=True)
    ]
    return [*([_legend(ink)] if any(marks) else []), *lines]


def _widest(rows: Sequence[TaskRow]) -> int:
    return max((display_width(safe_text(row.name)) for row in rows), default=0)


def _marks(row: TaskRow, room: int, ink: Ink) -> str:
    """The runs in order, as many as there is room for."""
    if row.sequence is None or room < min(_FEWEST_MARKS, len(row.sequence)):
        return ""
    drawn = run_marks(row.sequence, pen=ink.pen)
    return drawn if len(drawn) <= room else f"{drawn[: room - 1]}…"


def _legend(ink: Ink) -> str:
    pen = ink.pen
    meaning = f"{pen.passed} passed  {pen.failed} failed  {pen.errored} errored"
    return " " * LABEL_WIDTH + ink.style(meaning, "dim")


def _task_line(row: TaskRow, name: str, counted: str, marks: str, ink: Ink) -> str:
    label = ink.style(f"{row.label:<{_LABEL}}", LABEL_COLORS[row.label])
    interval = f"{span(row.rate.interval, digits=0):<{_INTERVAL}}"
    return f"{_INDENT}{name}  {label}  {counted} {interval}   {marks}".rstrip()
