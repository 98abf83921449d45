"""Values with intervals: a row each (forests, differences, ranks), or points on two axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

from passhat.dataclass import dataclass, replace
from passhat.drawing.figure import (
    BOLD,
    LETTER,
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
from passhat.drawing.lines import Kind, Scale, spread, y_axis
from passhat.messages import shorten_apart

TOP, ROW, TALL_ROW = 42, 22, 32
TEXT_WIDTH = 30
_TIE = 8  # the distance between the lines of two tie groups
_LEAST_PLOT = 140
"""Room for the intervals below which notes are given in brief."""
_NOTE_LETTERS, _NOTE_LETTER, _CAPITAL, _FEWEST_NOTE = 15, 8.9, 11.9, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalRow:
    """One row: a name, a value with its interval; `other` draws a dumbbell, `bar` a demand.

    `inner` is a narrower interval, drawn thick: this suite, inside tasks like these. `others` are
    named values to see it among. `brief` is a note for pictures that have little room.
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
    brief: str = ""
    others: Sequence[tuple[str, float]] = ()


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
    drawn, stop = rows, width - room - _note_room(rows)
    if stop - names.width < _LEAST_PLOT and all(row.brief for row in rows):
        drawn = [replace(row, note=row.brief) for row in rows]
        stop = width - room - _note_room(drawn)
    x = Scale(low=low, high=high, start=names.width, stop=stop, kind=x_kind)
    body = (
        _frame(x, height, x_label, zero)
        + "".join(_row(row, y, x, names) for row, y in zip(drawn, middles, strict=True))
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
    room = max(int((x.stop - x.start) / (5 * LETTER)), 3 if x.stop - x.start > 12 * LETTER else 0)
    for tick in x.ticks(min(room, 7 if x.kind == "whole" else 5)):
        parts.append(down(x(tick), TOP - 6, bottom, "rule"))
        parts.append(label(x.show(tick), x(tick), TOP - 10, "soft mid"))
    if zero is not None:
        parts.append(down(x(zero), TOP - 6, bottom, "axis"))
    return "".join(parts)


def _row(row: IntervalRow, y: float, x: Scale, names: Names) -> str:
    parts = []
    if row.low is not None and row.high is not None:
        parts.append(across(x(row.low), x(row.high), y, "thin"))
    if row.inner is not None:
        left, right = map(x, row.inner)
        parts += [across(left, right, y, kind) for kind in ("thick", "inner")]
    for name, value in row.others:
        tip = element("title", escape(f"{name}: {x.show(value)}"))
        parts.append(element("circle", tip, cx=x(value), cy=y, r=3.5, class_="hollow"))
    if row.other is not None:
        parts.append(across(x(row.other), x(row.value), y, "thin dot"))
        parts.append(element("circle", cx=x(row.other), cy=y, r=3.5, class_="open"))
    if row.bar is not None:
        parts.append(element("path", d=f"M{number(x(row.bar))} {number(y - 6)}v12", class_="axis"))
    parts.append(element("circle", cx=x(row.value), cy=y, r=4.5, class_="ring"))
    at = x.stop + 10
    note = label(row.note, at, y + 4, "soft", most=_NOTE_LETTERS) if row.note else ""
    drawn = element("g", "".join(parts), class_=row.colour)
    return element("g", drawn + names.label(row.name, y) + note, data_of=row.name)


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


# Points with intervals in both directions: what reliability costs.

HEIGHT, TALL = 300, 380

_MANY = 6  # more points than this get a taller picture, with room for their names
LEFT, RIGHT, SCATTER_TOP, BOTTOM = 60, 24, 34, 46
_MOST_LETTERS = 24
_NEAR = 20  # up to here a name is plainly that of the point beside it
_CROSSED = 16  # how much farther away a name goes to keep off one line of an interval
# Where names are tried: so far aside of their point, and so far below it.
_ASIDES = (9, 24, 44, 70, 100, 140, 180, 220, 260)
_DROPS = (4, *(drop for step in range(42) for drop in (-7 - 7 * step, 15 + 7 * step)))
_LOG_FROM = 4  # the cheap points of a wider range would lie on one another


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A named point; either interval may be missing."""

    name: str
    x: float
    y: float
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None


Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a name begins (`side` 1) or ends (-1), and how far it is from its point."""

    x: float
    y: float
    side: int
    distance: float

    def box(self, wide: float) -> Box:
        """What a name of this width covers here."""
        left = self.x if self.side > 0 else self.x - wide
        return left, self.y - 14, left + wide, self.y + 4

    def dots_from(self, at_x: float, at_y: float) -> list[Box]:
        """The line that joins a name to its point, as small boxes; none if it is near."""
        if self.distance <= _NEAR:
            return []
        away_x, away_y = self.x - at_x, self.y - 4 - at_y
        steps = max(2, round(max(abs(away_x), abs(away_y)) / 8))
        shares = (i / steps for i in range(1, steps))
        middles = ((at_x + share * away_x, at_y + share * away_y) for share in shares)
        return [
            (a - 1, b - 1, a + 1, b + 1) for a, b in middles if abs(a - at_x) + abs(b - at_y) > 8
        ]


def scatter(
    points: Sequence[Point],
    *,
    title: str,
    finding: str,
    x_label: str,
    y_label: str,
    y_range: tuple[float, float] | None = None,
    y_kind: Kind = "number",
    width: int = WIDTH,
) -> Figure:
    """Named points on two axes, joined if no other point has more for less.

    Points on that front have a colour and are named first; others wherever there is room.
    """
    x = _x_scale(points, width)
    y_low, y_high = y_range or spread([v for p in points for v in (p.y, *(p.y_interval or ()))])
    height = TALL if len(points) > _MANY else HEIGHT
    y = Scale(low=y_low, high=y_high, start=height - BOTTOM, stop=SCATTER_TOP, kind=y_kind)
    best = front(points)
    order = sorted(points, key=lambda point: (point not in best, -point.x))
    names = _name_places(order, best, x, y)
    called = shorten_apart([point.name for point in order], _MOST_LETTERS)
    body = (
        _scatter_frame(x, y, x_label, y_label)
        + _front_line(best, x, y)
        + "".join(_joined(point, x, y, names.get(point.name)) for point in order)
        + "".join(_point(point, _colour(point, best), x, y) for point in reversed(order))
        + "".join(
            _name(point, shown, _colour(point, best), names.get(point.name))
            for point, shown in zip(order, called, strict=True)
        )
    )
    lines = [f"{p.name}: {x_label} {p.x:.4g}, {y_label} {y.show(p.y)}" for p in points]
    return Figure(
        title=title,
        finding=finding,
        width=width,
        height=height,
        body=body,
        text="\n".join([title, *lines]),
        rows=(("name", x_label, y_label), *((p.name, rounded(p.x), rounded(p.y)) for p in points)),
    )


def _x_scale(points: Sequence[Point], width: int) -> Scale:
    """From 0 or a little below the least; logarithmic where the largest is many times the least."""
    values = [v for p in points for v in (p.x, *(p.x_interval or ()))]
    low, high = spread(values)
    least = min(p.x for p in points) if points else 0.0
    if least > 0 and max(p.x for p in points) / least > _LOG_FROM:
        kept = [max(v, least / 2) for v in values]
        return Scale(
            low=min(kept) / 1.2, high=max(kept) * 1.2, start=LEFT, stop=width - RIGHT, kind="log"
        )
    return Scale(low=max(low, 0.0), high=high, start=LEFT, stop=width - RIGHT)


def front(points: Sequence[Point]) -> list[Point]:
    """The points that no other beats: nothing is as cheap and higher, or as high and cheaper.

    >>> cheap, dear = Point(name="cheap", x=1, y=0.5), Point(name="dear", x=2, y=0.4)
    >>> [point.name for point in front([dear, cheap])]
    ['cheap']
    """
    frontier: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, -point.y)):
        if not frontier or point.y > frontier[-1].y:
            frontier.append(point)
    return frontier


def _front_line(best: Sequence[Point], x: Scale, y: Scale) -> str:
    if len(best) < 2:
        return ""
    line = "M" + "L".join(f"{number(x(p.x))} {number(y(p.y))}" for p in best)
    return element("path", d=line, class_="axis dash")


def _name_places(
    points: Sequence[Point], best: Sequence[Point], x: Scale, y: Scale
) -> dict[str, Place]:
    """Where each name goes without covering a point or a name; those without room get none.

    If it can, a name also keeps off the intervals; one that had to move aside is joined to its
    point.
    """
    centres = [(x(point.x), y(point.y)) for point in points]
    taken = [(at_x - 5, at_y - 5, at_x + 5, at_y + 5) for at_x, at_y in centres]
    lines = [line for point in points for line in _interval_lines(point, x, y)]
    places: dict[str, Place] = {}
    for point, (at_x, at_y) in zip(points, centres, strict=True):
        letter = BOLD if point in best else LETTER
        wide = letter * min(len(point.name), _MOST_LETTERS)
        chosen, least = None, math.inf
        for place in _places_around(at_x, at_y, x):
            if place.distance >= least:
                break
            box = place.box(wide)
            if not (x.start <= box[0] and box[2] <= x.stop + RIGHT - 4):
                continue
            if not y.stop - 14 <= box[1] <= box[3] <= y.start:
                continue
            if any(_overlap(box, other) for other in taken):
                continue
            crossed = sum(_overlap(box, line) for line in lines)
            join = place.dots_from(at_x, at_y)
            crossed += 3 * sum(any(_overlap(dot, other) for dot in join) for other in taken)
            if (cost := place.distance + _CROSSED * crossed) < least:
                chosen, least = place, cost
        if chosen is not None:
            lines += chosen.dots_from(at_x, at_y)
            taken.append(chosen.box(wide))
            places[point.name] = chosen
    return places


def _places_around(at_x: float, at_y: float, x: Scale) -> Iterator[Place]:
    """Places for a name beside a point, the nearest first."""
    # Names lean inwards where they can: there is no margin for them.
    inwards = -1 if at_x > (x.start + x.stop) / 2 else 1
    for distance, turn, aside, drop in _offsets():
        side = inwards * turn
        yield Place(x=at_x + side * aside, y=at_y + drop, side=side, distance=distance)


@cache
def _offsets() -> list[tuple[int, int, int, int]]:
    """How far a name may be from its point: in all, on which side, aside and down."""
    offsets = [
        (aside + abs(drop - 4), turn, aside, drop)
        for drop in _DROPS
        for aside in _ASIDES
        for turn in (1, -1)
    ]
    return sorted(offsets, key=lambda offset: (offset[0], -offset[1]))


def _interval_lines(point: Point, x: Scale, y: Scale) -> list[Box]:
    at_x, at_y = x(point.x), y(point.y)
    lines = []
    if point.x_interval:
        lines.append((x(point.x_interval[0]), at_y - 1, x(point.x_interval[1]), at_y + 1))
    if point.y_interval:
        lines.append((at_x - 1, y(point.y_interval[1]), at_x + 1, y(point.y_interval[0])))
    return lines


def _overlap(box: Box, other: Box) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]


def _scatter_frame(x: Scale, y: Scale, x_label: str, y_label: str) -> str:
    parts = [y_axis(x, y, y_label)]
    parts += [label(x.show(tick), x(tick), y.start + 16, "soft mid") for tick in x.ticks()]
    parts.append(label(x_label, (x.start + x.stop) / 2, y.start + BOTTOM - 8, "mid"))
    return "".join(parts)


def _colour(point: Point, best: Sequence[Point]) -> str:
    return "a" if point in best else "n"


def _point(point: Point, colour: str, x: Scale, y: Scale) -> str:
    at_x, at_y = x(point.x), y(point.y)
    parts = [element("title", escape(point.name))]
    if point.x_interval:
        parts.append(across(x(point.x_interval[0]), x(point.x_interval[1]), at_y, "thin"))
    if point.y_interval:
        parts.append(down(at_x, y(point.y_interval[0]), y(point.y_interval[1]), "thin"))
    kind = "ring" if colour == "a" else "hollow"
    parts.append(element("circle", cx=at_x, cy=at_y, r=5, class_=kind))
    return element("g", "".join(parts), class_=colour)


def _joined(point: Point, x: Scale, y: Scale, place: Place | None) -> str:
    """The line from a point to a name that had to move aside."""
    if place is None or place.distance <= _NEAR:
        return ""
    end = f"{number(place.x - 3 * place.side)} {number(place.y - 4)}"
    return element("path", d=f"M{number(x(point.x))} {number(y(point.y))}L{end}", class_="axis dot")


def _name(point: Point, shown: str, colour: str, place: Place | None) -> str:
    if place is None:
        return ""
    look = f"{'key' if colour == 'a' else 'soft'}{' end' if place.side < 0 else ''} halo"
    text = label(point.name, place.x, place.y, look, shown=shown)
    return element("g", text, class_=colour)
