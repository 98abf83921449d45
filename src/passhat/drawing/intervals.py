"""A row a thing, each with its value and interval: forests, differences, ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from passhat.dataclass import dataclass
from passhat.drawing.figure import (
    WIDTH,
    Datum,
    Figure,
    Names,
    across,
    down,
    element,
    escape,
    label,
    number,
    rounded,
    text_names,
)
from passhat.drawing.scale import Kind, Scale

TOP, ROW, TALL_ROW = 42, 22, 30
TEXT_WIDTH = 30
_TIE = 10  # the distance between the lines of two tie groups
_NOTE_LETTERS, _NOTE_LETTER, _CAPITAL, _FEWEST_NOTE = 15, 7.5, 10, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRow:
    """One row: a name, a value with its interval; `other` draws a dumbbell, `bar` a demand.

    `inner` is a narrower interval, drawn thick: this suite, inside tasks like these.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    inner: tuple[float, float] | None = None
    bar: float | None = None
    other: float | None = None
    colour: str = "a"
    note: str = ""


def interval_rows(
    rows: Sequence[IntervalRow],
    *,
    title: str,
    finding: str,
    x_label: str,
    x_range: tuple[float, float],
    x_kind: Kind = "number",
    zero: float | None = None,
    ties: Sequence[Sequence[int]] = (),
    width: int = WIDTH,
) -> Figure:
    """Intervals under each other on one axis.

    `zero` draws the line of no difference. Each of `ties` is a group of rows, joined by a line with
    a dot at each of them, dashed past rows that do not belong to it.
    """
    names = Names.broken([row.name for row in rows])
    tall = TALL_ROW if names.two_lines else ROW
    middles = [TOP + tall * (i + 0.5) for i in range(len(rows))]
    height = TOP + tall * len(rows) + 24
    room = _TIE * len(ties)
    low, high = x_range
    stop = width - room - _note_room(rows)
    x = Scale(low=low, high=high, start=names.width, stop=stop, kind=x_kind)
    body = (
        _frame(x, height, x_label, zero)
        + "".join(_row(row, y, x, names) for row, y in zip(rows, middles, strict=True))
        + "".join(
            _tie(group, width - room + _TIE * i, tall, middles) for i, group in enumerate(ties)
        )
    )
    named = zip(text_names([row.name for row in rows]), rows, strict=True)
    return Figure(
        title=title,
        finding=finding,
        width=width,
        height=height,
        body=body,
        text="\n".join([title, *(_text_row(*pair, x) for pair in named)]),
        rows=_data(rows),
    )


def _note_room(rows: Sequence[IntervalRow]) -> float:
    """What the longest note beside a row takes, with a margin on both sides."""
    notes = [row.note[:_NOTE_LETTERS] for row in rows]
    widths = [sum(_CAPITAL if c.isupper() else _NOTE_LETTER for c in note) for note in notes]
    return 20 + max([_NOTE_LETTER * _FEWEST_NOTE, *widths])


def _data(rows: Sequence[IntervalRow]) -> tuple[tuple[Datum, ...], ...]:
    """The numbers of every row; columns that no row has are left out."""
    columns: dict[str, list[Datum]] = {
        "name": [row.name for row in rows],
        "value": [rounded(row.value) for row in rows],
        "other": [rounded(row.other) for row in rows],
        "low": [rounded(row.low) for row in rows],
        "high": [rounded(row.high) for row in rows],
        "inner low": [rounded(row.inner[0]) if row.inner else None for row in rows],
        "inner high": [rounded(row.inner[1]) if row.inner else None for row in rows],
        "demand": [rounded(row.bar) for row in rows],
    }
    kept = {name: cells for name, cells in columns.items() if any(c is not None for c in cells)}
    return (tuple(kept), *zip(*kept.values(), strict=True))


def _frame(x: Scale, height: int, x_label: str, zero: float | None) -> str:
    bottom = height - 24
    parts = [label(x_label, 8, 14)]
    for tick in x.ticks(7 if x.kind == "whole" else 5):
        parts.append(down(x(tick), TOP - 6, bottom, "rule"))
        parts.append(label(x.show(tick), x(tick), TOP - 10, "soft mid"))
    if zero is not None:
        parts.append(down(x(zero), TOP - 6, bottom, "axis"))
    return "".join(parts)


def _row(row: IntervalRow, y: float, x: Scale, names: Names) -> str:
    parts = [element("title", escape(f"{row.name}: {row.note}"))] if row.note else []
    if row.low is not None and row.high is not None:
        parts.append(across(x(row.low), x(row.high), y, "thin"))
    if row.inner is not None:
        left, right = map(x, row.inner)
        parts += [across(left, right, y, kind) for kind in ("thick", "inner")]
    if row.other is not None:
        parts.append(across(x(row.other), x(row.value), y, "thin dot"))
        parts.append(element("circle", cx=x(row.other), cy=y, r=3.5, class_="open"))
    if row.bar is not None:
        parts.append(element("path", d=f"M{number(x(row.bar))} {number(y - 6)}v12", class_="axis"))
    parts.append(element("circle", cx=x(row.value), cy=y, r=4.5, class_="ring"))
    at = x.stop + 10
    note = label(row.note, at, y + 4, "soft", most=_NOTE_LETTERS) if row.note else ""
    return element("g", "".join(parts), class_=row.colour) + names.label(row.name, y) + note


def _tie(group: Sequence[int], x: float, tall: int, middles: Sequence[float]) -> str:
    """A line down through the rows of a group, solid only between two of its members."""
    rows = sorted(group)
    parts = []
    for upper, lower in pairwise(middles[row] for row in rows):
        parts.append(down(x, upper, lower, "axis" if lower <= upper + tall else "axis dash"))
    dots = (element("circle", cx=x, cy=middles[i], r=3, class_="fill") for i in rows)
    return element("g", "".join([*parts, *dots]), class_="n")


def _text_row(name: str, row: IntervalRow, x: Scale) -> str:
    place = Scale(low=x.low, high=x.high, start=0, stop=TEXT_WIDTH - 1, kind=x.kind)
    cells = [" "] * TEXT_WIDTH
    if row.low is not None and row.high is not None:
        for i in range(math.floor(place(row.low)), math.ceil(place(row.high)) + 1):
            cells[min(i, TEXT_WIDTH - 1)] = "─"
    if row.bar is not None:
        cells[round(place(row.bar))] = "│"
    if row.other is not None:
        cells[round(place(row.other))] = "○"
    cells[round(place(row.value))] = "●"
    return f"{name} {''.join(cells)} {row.note}".rstrip()
