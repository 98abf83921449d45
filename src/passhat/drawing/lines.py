"""Lines with bands over a shared axis, columns, stacked bars, and the scales of every picture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from passhat.dataclass import dataclass
from passhat.drawing.figure import (
    BOLD,
    LETTER,
    LETTER_WIDTH,
    WIDTH,
    Datum,
    Figure,
    across,
    down,
    element,
    label,
    number,
    rounded,
)
from passhat.messages import percent, shorten_apart

HEIGHT = 290
RIGHT, EDGE, TOP, BOTTOM = 84, 14, 32, 44
COLOURS = "abcde"
DASHES = ("", "dash", "dot", "", "dash")
TEXT_HEIGHT, TEXT_WIDTH = 12, 50

_SPARK_WIDTH, _SPARK_HEIGHT, _SPARK_EDGE = 120, 28, 4
_BLOCKS = "▁▂▃▄▅▆▇█"

_MOST_LETTERS, _NAME_HEIGHT = 20, 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A line, with a band where `low` and `high` are given; beyond `model_from` it is dotted.

    `colour` is one of "abcden"; without it, the line's place decides. A `faint` line is thin, grey
    and without dots.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    model_from: float | None = None
    dots: bool = True
    colour: str | None = None
    faint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Guide:
    """A level that matters: a threshold, a boundary."""

    name: str
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A level that held from one place on the x axis to another."""

    name: str
    y: float
    start: float
    stop: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A place on the x axis where something happened."""

    name: str
    x: float


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    finding: str,
    x_label: str,
    y_label: str,
    y_range: tuple[float, float] | None = None,
    y_kind: Kind = "number",
    x_names: Sequence[str] | None = None,
    guides: Sequence[Guide] = (),
    markers: Sequence[Marker] = (),
    levels: Sequence[Level] = (),
    x_notes: Sequence[str] | None = None,
    x_range: tuple[float, float] | None = None,
    x_kind: Kind = "number",
    width: int = WIDTH,
    height: int = HEIGHT,
) -> Figure:
    """Lines over a shared x axis, named at their right ends, if no name covers another.

    Names stand in the picture where there is room beside the lines, which then take its whole
    width. `x_notes` are written below `x_names`.
    """
    height = max(height, TOP + round(1.4 * _NAME_HEIGHT) * len(series) + BOTTOM)
    y_scale = _y_scale(series, guides, y_range, y_kind, height)
    # A per cent sign is as wide as two letters.
    left = 6 + round(LETTER * (1 + max(len(y_scale.show(tick)) for tick in y_scale.ticks())))
    x_scale = _x_scale(series, x_range, x_kind, left, width - EDGE)
    ticks = [*(name for _, name in _x_ticks(x_scale, x_names, x_notes or ())), *(x_notes or ())]
    # The last of them stands half beyond the end of the axis.
    edge = max(EDGE, 4 + round(LETTER * min(12, max(map(len, ticks), default=0)) / 2))
    x_scale = _x_scale(series, x_range, x_kind, left, width - edge)
    inside = _named_inside(series, x_scale, y_scale)
    if len(inside) < len(series) or guides or levels or _reach(markers, inside, x_scale) > width:
        right = max(edge, _room_for_names(series))
        x_scale = _x_scale(series, x_range, x_kind, left, width - right)
        if (beyond := _reach(markers, {}, x_scale) + LETTER - width) > 0:
            x_scale = _x_scale(series, x_range, x_kind, left, width - right - beyond)
        inside = _named_inside(series, x_scale, y_scale, at_the_end=False)
    height += _NAME_HEIGHT if x_notes else 0
    body = (
        _frame(x_scale, y_scale, x_label, y_label, x_names, x_notes)
        + "".join(_guide(guide, series, x_scale, y_scale) for guide in guides)
        + "".join(_marker(marker, i, series, x_scale, y_scale) for i, marker in enumerate(markers))
        + "".join(_line(s, i, x_scale, y_scale) for i, s in enumerate(series))
        + "".join(_level(level, x_scale, y_scale) for level in levels)
        + _names(series, inside, x_scale, y_scale)
    )
    first, last = _end_names(x_scale, x_names, x_notes)
    axis = f"{first} {x_label.center(TEXT_WIDTH - len(first) - len(last) - 2)} {last}"
    return Figure(
        title=title,
        finding=finding,
        width=width,
        height=height,
        body=body,
        text=_text(series, title, y_scale, x_scale, guides, axis),
        rows=_data(series, x_label, x_names),
    )


def _data(
    series: Sequence[Series], x_label: str, x_names: Sequence[str] | None
) -> tuple[tuple[Datum, ...], ...]:
    """A row for each point of each line."""
    rows: list[tuple[Datum, ...]] = [("line", x_label, "value", "low", "high")]
    for line in series:
        none = [None] * len(line.x)
        for x, y, low, high in zip(
            line.x, line.y, line.low or none, line.high or none, strict=True
        ):
            at: Datum = x_names[int(x)] if x_names else rounded(x)
            rows.append((line.name, at, rounded(y), rounded(low), rounded(high)))
    return tuple(rows)


def _x_scale(
    series: Sequence[Series],
    ends: tuple[float, float] | None,
    kind: Kind,
    start: float,
    stop: float,
) -> Scale:
    xs = [x for s in series for x in s.x] or [0.0, 1.0]
    low, high = ends or (min(xs), max(xs))
    return Scale(low=low, high=high, start=start, stop=stop, kind=kind)


def _y_scale(
    series: Sequence[Series],
    guides: Sequence[Guide],
    ends: tuple[float, float] | None,
    kind: Kind,
    height: int,
) -> Scale:
    values = [y for s in series for part in (s.y, s.low, s.high) if part for y in part]
    low, high = ends or spread(values + [guide.y for guide in guides])
    return Scale(low=low, high=high, start=height - BOTTOM, stop=TOP, kind=kind)


def _frame(
    x: Scale,
    y: Scale,
    x_label: str,
    y_label: str,
    x_names: Sequence[str] | None,
    x_notes: Sequence[str] | None,
) -> str:
    parts = [y_axis(x, y, y_label)]
    for tick, name in _x_ticks(x, x_names, x_notes or ()):
        parts.append(label(name, x(tick), y.start + 20, "soft mid", most=12))
        if x_notes:
            parts.append(label(x_notes[int(tick)], x(tick), y.start + 37, "soft mid", most=12))
    # A page finds the place of a value by the ends of the axis.
    line, ends = f"M{number(x.start)} {number(y.start)}H{number(x.stop)}", f"{x.low:g} {x.high:g}"
    parts.append(element("path", d=line, class_="axis", data_axis=f"{ends} {x.kind}"))
    below = BOTTOM - 8 + (_NAME_HEIGHT if x_notes else 0)
    parts.append(label(x_label, (x.start + x.stop) / 2, y.start + below, "mid"))
    return "".join(parts)


def y_axis(x: Scale, y: Scale, y_label: str) -> str:
    """The levels of a y axis, each with its number, and what they are."""
    parts = [label(y_label, 8, 14)]
    for tick in y.ticks():
        parts.append(across(x.start, x.stop, y(tick), "rule"))
        parts.append(label(y.show(tick), x.start - 6, y(tick) + 4, "soft end"))
    return "".join(parts)


def _x_ticks(
    x: Scale, names: Sequence[str] | None, notes: Sequence[str]
) -> list[tuple[float, str]]:
    if names is None:
        whole = [tick for tick in x.ticks(9) if tick == int(tick)] if x.kind == "number" else []
        return [(tick, x.show(tick)) for tick in whole or x.ticks(6)]
    letters = min(12, max(map(len, (*names, *notes)))) + 1
    room = int((x.stop - x.start) / (LETTER * letters))
    step = max(1, math.ceil(len(names) / max(room, 1)))
    return [(float(i), names[i]) for i in range(0, len(names), step)]


def _guide(guide: Guide, series: Sequence[Series], x: Scale, y: Scale) -> str:
    """A dashed level, named at the end that the lines keep clear of."""
    at, room = y(guide.y), 12 + LETTER_WIDTH * len(guide.name)
    left, right = (
        min((_distance(line, at - _NAME_HEIGHT / 2, *span, x, y) for line in series), default=0.0)
        for span in ((x.start, x.start + room), (x.stop - room, x.stop))
    )
    line = across(x.start, x.stop, at, "n line dash")
    if left >= min(right, _NAME_HEIGHT):
        return line + label(guide.name, x.start + 6, at - 4, "soft")
    return line + label(guide.name, x.stop - 6, at - 4, "soft end")


def _distance(line: Series, at: float, start: float, stop: float, x: Scale, y: Scale) -> float:
    """How far a line stays from a height, in pixels, between two places; 0 where it crosses it."""
    nearest = math.inf
    points = [(x(along), y(value)) for along, value in zip(line.x, line.y, strict=True)]
    for (x1, y1), (x2, y2) in pairwise(points):
        first, last = max(x1, start), min(x2, stop)
        if first <= last:
            ends = [
                y1 + (y2 - y1) * (place - x1) / ((x2 - x1) or 1.0) - at for place in (first, last)
            ]
            crosses = min(ends) <= 0 <= max(ends)
            nearest = min(nearest, 0.0 if crosses else min(map(abs, ends)))
    return nearest


def _level(level: Level, x: Scale, y: Scale) -> str:
    left, right, at = x(level.start), x(level.stop), y(level.y)
    line = across(left, right, at, "level")
    return line + label(level.name, (left + right) / 2, at - 6, "strong mid")


def _marker(marker: Marker, index: int, series: Sequence[Series], x: Scale, y: Scale) -> str:
    """Names are in three rows, to cover neither each other nor lines, nor bands if they can."""
    at = x(marker.x)
    rows = range(TOP + 16 + _NAME_HEIGHT * (index % 3), int(y.start) - 4, 3 * _NAME_HEIGHT)
    lines, bands = _lines_beside(marker, series, x, y), _bands_beside(marker, series, x, y)
    clear = (
        row
        for taken in ([*lines, *bands], lines)
        for row in rows
        if all(low > row + 4 or high < row - 15 for low, high in taken)
    )
    line = down(at, TOP, y.start, "n thin dot")
    return line + label(marker.name, at + 7, next(clear, rows[0]), "soft halo")


def _beside(marker: Marker, x: Scale) -> tuple[float, float]:
    """From where to where, to the right, the name of a marker reaches."""
    return x(marker.x), x(marker.x) + 7 + LETTER * len(marker.name)


def _bands_beside(
    marker: Marker, series: Sequence[Series], x: Scale, y: Scale
) -> list[tuple[float, float]]:
    """From where to where, downwards, bands pass beside a marker."""
    first, last = _beside(marker, x)
    return [
        (y(high), y(low))
        for line in series
        for a, low, high in zip(line.x, line.low or (), line.high or (), strict=False)
        if first <= x(a) <= last
    ]


def _lines_beside(
    marker: Marker, series: Sequence[Series], x: Scale, y: Scale
) -> list[tuple[float, float]]:
    """From where to where, downwards, lines and their names pass beside a marker."""
    first, last = _beside(marker, x)
    spans = []
    for line in series:
        points = [(x(a), y(b)) for a, b in zip(line.x, line.y, strict=True)]
        if points and (last > x.stop + 10 or math.isclose(points[-1][0], x(marker.x))):
            spans.append((points[-1][1] - 8, points[-1][1] + 8))  # its name, at the end
        for (left, top), (right, bottom) in pairwise(points):
            ends = [max(first, left), min(last, right)]
            if ends[0] < ends[1]:
                slope = (bottom - top) / (right - left)
                heights = [top + slope * (end - left) for end in ends]
                spans.append((min(heights), max(heights)))
    return spans


def _line(series: Series, index: int, x: Scale, y: Scale) -> str:
    colour = _colour(series, index)
    points = list(zip(series.x, series.y, strict=True))
    edge = series.model_from if series.model_from is not None else math.inf
    solid = [point for point in points if point[0] <= edge]
    model = [point for point in points if point[0] >= edge] if series.model_from else []
    parts = []
    if series.low is not None and series.high is not None:
        upper = list(zip(series.x, series.high, strict=True))
        lower = list(zip(series.x, series.low, strict=True))[::-1]
        parts.append(element("path", d=_path(upper + lower, x, y) + "Z", class_="band"))
    # Lines differ in dash as well as in colour; faint ones are a background to the others.
    dash = "thin" if series.faint else DASHES[index % 5]
    parts.append(element("path", d=_path(solid, x, y), class_=f"line {dash}".strip()))
    if len(model) > 1:
        parts.append(element("path", d=_path(model, x, y), class_="line dot"))
    if series.dots and not series.faint and len(points) <= 60:
        kind = "ring" if index % 2 == 0 else "open"
        dots = (element("circle", cx=x(a), cy=y(b), r=3.5) for a, b in solid)
        parts.append(element("g", "".join(dots), class_=kind))
    return element("g", "".join(parts), class_=colour, data_of=series.name)


def _colour(series: Series, index: int) -> str:
    return "n" if series.faint else series.colour or COLOURS[index % len(COLOURS)]


def _path(points: Sequence[tuple[float, float]], x: Scale, y: Scale) -> str:
    return "M" + "L".join(f"{number(x(a))} {number(y(b))}" for a, b in points) if points else "M0 0"


def _room_for_names(series: Sequence[Series]) -> int:
    """How much of the width the longest name takes, within reason."""
    letters = min(max((len(line.name) for line in series), default=0), _MOST_LETTERS)
    return max(RIGHT, 2 * _NAME_HEIGHT + round(BOLD * letters))


def _names(series: Sequence[Series], inside: Mapping[int, _NamePlace], x: Scale, y: Scale) -> str:
    """Each name at the end of its line; one that had to move aside is joined to it."""
    ends = sorted((y(s.y[-1]), i) for i, s in enumerate(series) if len(s.y) and i not in inside)
    places = _kept_apart([at for at, _ in ends], y.start)
    left = x.stop + (10 if all(map(math.isclose, places, (at for at, _ in ends))) else 24)
    shown = shorten_apart([line.name for line in series], _MOST_LETTERS)
    parts = []
    for (at, i), place in zip(ends, places, strict=True):
        look = "soft" if series[i].faint else "key"
        text = label(series[i].name, left, place + 4, look, shown=shown[i])
        if left - x.stop > 10:
            line = f"M{number(x.stop + 5)} {number(at)}L{number(left - 4)} {number(place)}"
            text = element("path", d=line, class_="rule") + text
        kind = _colour(series[i], i)
        parts.append(element("g", text, class_=kind, data_of=series[i].name))
    for i, name in inside.items():
        look = f"key halo{' end' * name.at_the_end}"
        at = name.stop if name.at_the_end else name.start
        text = label(series[i].name, at, name.y + 4, look, shown=shown[i])
        parts.append(element("g", text, class_=_colour(series[i], i), data_of=series[i].name))
    return "".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamePlace:
    """Where the name of a line stands among the lines: from where to where, and how high."""

    start: float
    stop: float
    y: float
    at_the_end: bool


def _named_inside(
    series: Sequence[Series], x: Scale, y: Scale, *, at_the_end: bool = True
) -> dict[int, _NamePlace]:
    """Where lines are named among the lines, if nothing else is there.

    A line that ends before the axis does is named behind its end, and `at_the_end` of the axis one
    is named above it or below.
    """
    inside: dict[int, _NamePlace] = {}
    for i, line in enumerate(series):
        if line.faint or not len(line.x):
            continue
        end, at = x(line.x[-1]), y(line.y[-1])
        wide = BOLD * min(len(line.name), _MOST_LETTERS)
        behind = _NamePlace(start=end + 10, stop=end + 10 + wide, y=at, at_the_end=False)
        beside = [
            _NamePlace(start=x.stop - wide, stop=x.stop, y=height, at_the_end=True)
            for height in (at - _NAME_HEIGHT, at + _NAME_HEIGHT, at - 1.6 * _NAME_HEIGHT)
        ]
        others = [other for j, other in enumerate(series) if j != i]
        if behind.stop < x.stop and _is_clear(behind, others, inside.values(), x, y):
            inside[i] = behind
        elif at_the_end:
            clear = (spot for spot in beside if _is_clear(spot, series, inside.values(), x, y))
            if (place := next(clear, None)) is not None:
                inside[i] = place
    return inside


def _is_clear(
    place: _NamePlace,
    lines: Sequence[Series],
    names: Iterable[_NamePlace],
    x: Scale,
    y: Scale,
) -> bool:
    """Whether no line and no other name comes near, nor the floor."""
    room = _NAME_HEIGHT * (0.65 if place.at_the_end else 1.0)
    return (
        (not place.at_the_end or y.stop <= place.y <= y.start - _NAME_HEIGHT / 2)
        and all(_distance(line, place.y, place.start, place.stop, x, y) > room for line in lines)
        and all(
            abs(name.y - place.y) > _NAME_HEIGHT
            or name.start > place.stop
            or name.stop < place.start
            for name in names
        )
    )


def _reach(markers: Sequence[Marker], inside: Mapping[int, _NamePlace], x: Scale) -> float:
    """How far to the right names of markers reach; beyond all where they meet one of a line."""
    ends = [_beside(marker, x) for marker in markers]
    meets = any(
        name.at_the_end and stop > name.start for _, stop in ends for name in inside.values()
    )
    return math.inf if meets else max((stop for _, stop in ends), default=0.0)


def _kept_apart(places: Sequence[float], lowest: float) -> list[float]:
    """Ascending places moved down until no two touch, then up until none is below the lowest."""
    apart: list[float] = []
    for place in places:
        apart.append(max(place, apart[-1] + _NAME_HEIGHT) if apart else place)
    for i in reversed(range(len(apart))):
        apart[i] = min(apart[i], lowest - _NAME_HEIGHT * (len(apart) - 1 - i))
    return apart


def _end_names(
    x: Scale, names: Sequence[str] | None, notes: Sequence[str] | None
) -> tuple[str, str]:
    """What the two ends of the x axis are called: by name and note, else by number."""
    if not names:
        return x.show_end(x.low), x.show_end(x.high)
    full = [" ".join(pair) for pair in zip(names, notes, strict=True)] if notes else names
    return full[0], full[-1]


def _text(
    series: Sequence[Series], title: str, y: Scale, x: Scale, guides: Sequence[Guide], axis: str
) -> str:
    rows = [[" "] * TEXT_WIDTH for _ in range(TEXT_HEIGHT)]
    column = Scale(low=x.low, high=x.high, start=0, stop=TEXT_WIDTH - 1, kind=x.kind)
    row = Scale(low=y.low, high=y.high, start=TEXT_HEIGHT - 1, stop=0, kind=y.kind)
    for guide in guides:
        rows[round(row(guide.y))] = ["-"] * TEXT_WIDTH
    for i, s in enumerate(series):
        for a, b in zip(s.x, s.y, strict=True):
            rows[round(row(b))][round(column(a))] = "ox+*#"[i % 5]
    names = "   ".join(f"{'ox+*#'[i % 5]} {s.name}" for i, s in enumerate(series))
    width = max(len(y.show_end(y.low)), len(y.show_end(y.high)))
    margin = {0: y.show_end(y.high), TEXT_HEIGHT - 1: y.show_end(y.low)}
    lines = [f"{margin.get(i, ''):>{width}} |{''.join(r).rstrip()}" for i, r in enumerate(rows)]
    rule = " " * width + " +" + "-" * TEXT_WIDTH
    return "\n".join([title, names, *lines, rule, " " * (width + 2) + axis])


def sparkline(values: Sequence[float], *, title: str, finding: str) -> Figure:
    """Shares from 0 to 1 in order, the last one marked.

    >>> sparkline([0.0, 0.5, 1.0], title="t", finding="f").text
    '▁▅█'
    """
    x = Scale(
        low=0, high=max(len(values) - 1, 1), start=_SPARK_EDGE, stop=_SPARK_WIDTH - _SPARK_EDGE
    )
    y = Scale(low=0, high=1, start=_SPARK_HEIGHT - _SPARK_EDGE, stop=_SPARK_EDGE)
    places = [f"{number(x(i))} {number(y(value))}" for i, value in enumerate(values)]
    floor = across(x.start, x.stop, y.start, "rule")
    line = element("path", d="M" + "L".join(places), class_="line") if len(places) > 1 else ""
    ends = zip(values[-1:], (len(values) - 1,), strict=False)
    dot = "".join(element("circle", cx=x(i), cy=y(v), r=3, class_="fill") for v, i in ends)
    return Figure(
        title=title,
        finding=finding,
        width=_SPARK_WIDTH,
        height=_SPARK_HEIGHT,
        body=floor + element("g", line + dot, class_="a"),
        text="".join(_BLOCKS[round(min(max(v, 0.0), 1.0) * 7)] for v in values),
    )


# From values to places on an axis, and the ticks a person expects there.

Kind = Literal["number", "whole", "percent", "log", "doublings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Maps [low, high] to [start, stop].

    >>> Scale(low=0, high=1, start=10, stop=110)(0.5)
    60.0
    """

    low: float
    high: float
    start: float
    stop: float
    kind: Kind = "number"

    def __call__(self, value: float) -> float:
        low, high, at = self._place(self.low), self._place(self.high), self._place(value)
        share = (at - low) / (high - low) if high > low else 0.5
        return self.start + min(max(share, 0.0), 1.0) * (self.stop - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values inside the range, at most about `most` of them."""
        if self.high <= self.low:
            return [self.low]
        if self.kind == "doublings":
            return [2.0**n for n in range(math.floor(math.log2(self.high)) + 1) if 2**n >= self.low]
        if self.kind == "log":
            first, last = math.floor(math.log10(self.low)), math.floor(math.log10(self.high))
            decades = [10.0**d for d in range(first, last + 1) if self.low <= 10.0**d <= self.high]
            if len(decades) > 2:
                return decades
            # Within two decades, powers of ten are too few.
            finer = [m * 10.0**d for d in range(first, last + 1) for m in (1, 2, 5)]
            if len(kept := [at for at in finer if self.low <= at <= self.high]) > 1:
                return kept
        step = (self.high - self.low) / max(most - 1, 1)
        power = 10.0 ** math.floor(math.log10(step))
        step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= step * 0.999)
        if self.kind == "whole":
            step = max(1.0, 5.0 if step == 2.5 else step)  # there is no half of a rank
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        ticks = [i * step for i in range(first, last + 1)]
        # Ranks begin at 1, whatever the step.
        return [1.0, *ticks] if self.kind == "whole" and self.low <= 1 < ticks[0] else ticks

    def show(self, value: float) -> str:
        """A tick's text."""
        if self.kind == "percent":
            return f"{value * 100:.4g}%"
        if abs(value) >= 1e6:
            return f"{value / 1e6:.6g} M"
        return f"{0.0 if abs(value) < 1e-12 else value:,.6g}"

    def show_end(self, value: float) -> str:
        """The text of an end of the axis, which need not be round."""
        if self.kind == "percent" or abs(value) < 100:
            return self.show(float(f"{value:.3g}"))
        return f"{value:,.0f}"

    def _place(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self.kind in ("log", "doublings") else value


def spread(values: list[float], *, pad: float = 0.05) -> tuple[float, float]:
    """The range of values with some air around it; never empty."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    air = (high - low) * pad or abs(high) * pad or 0.5
    return low - air, high + air


COLUMN_HEIGHT, COLUMN_LEFT = 150, 8
_GAP = 8
_TEXT_WIDTH = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """How many there are of a kind; `colour` is one of "abcden"."""

    name: str
    count: int
    colour: str = "a"


def column_chart(columns: Sequence[Column], *, title: str, finding: str, x_label: str) -> Figure:
    """A column for each kind with its count above it and its name below.

    >>> print(column_chart([Column(name="0", count=1)], title="t", finding="f", x_label="x"))
    t
    0 ██████████████████████████████ 1
    """
    most = max((column.count for column in columns), default=0) or 1
    step = (WIDTH - 2 * COLUMN_LEFT) / max(len(columns), 1)
    floor = COLUMN_HEIGHT - BOTTOM
    parts = []
    for i, column in enumerate(columns):
        left, tall = COLUMN_LEFT + step * i, (floor - TOP) * column.count / most
        middle = left + step / 2
        if column.count:
            x, wide = left + _GAP / 2, step - _GAP
            area = element("rect", x=x, y=floor - tall, width=wide, height=tall, class_="area")
            parts.append(element("g", area, class_=column.colour))
        parts.append(label(f"{column.count:,}", middle, floor - tall - 6, "strong mid"))
        parts.append(label(column.name, middle, floor + 15, "soft mid"))
    parts.append(across(COLUMN_LEFT, WIDTH - COLUMN_LEFT, floor, "axis"))
    parts.append(label(x_label, WIDTH / 2, COLUMN_HEIGHT - 6, "mid"))
    wide = max((len(column.name) for column in columns), default=0)
    bars = [
        f"{column.name:<{wide}} {'█' * round(_TEXT_WIDTH * column.count / most)} {column.count}"
        for column in columns
    ]
    return Figure(
        title=title,
        finding=finding,
        width=WIDTH,
        height=COLUMN_HEIGHT,
        body="".join(parts),
        text="\n".join([title, *bars]),
        rows=((x_label, "count"), *((column.name, column.count) for column in columns)),
    )


# One bar cut into parts: where a whole comes from.

BAR_HEIGHT, BAR_LEFT = 84, 8

GAP = 12
_COLOURS = "necda"
"""Grey and ochre first: blue and vermilion mean passed and failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedShare:
    """A share of the whole and what it is."""

    name: str
    share: float


def stacked_bar(
    parts: Sequence[NamedShare],
    *,
    title: str,
    finding: str,
    edge: tuple[float, float] | None = None,
    width: int = WIDTH,
) -> Figure:
    """A bar whose parts are named beneath it; `edge` is where the first of them may truly end."""
    pieces, at = [], float(BAR_LEFT)
    names = [f"{part.name} {percent(part.share)}" for part in parts]
    places = _name_places(parts, names, width)
    for i, part in enumerate(parts):
        length = part.share * (width - 2 * BAR_LEFT)
        colour = _COLOURS[i % 5]
        box = element("rect", x=at, y=12.0, width=max(length - 2, 0.0), height=24.0, class_="area")
        name = label(names[i], places[i], 66, "key")
        pieces.append(element("g", box + name, class_=colour))
        at += length
    if edge is not None:
        first, last = (BAR_LEFT + share * (width - 2 * BAR_LEFT) for share in edge)
        line = f"M{number(first)} 40v8m0-4H{number(last)}m0-4v8"
        pieces.append(element("path", d=line, class_="axis"))
    bar = "".join("█▓▒░ "[i % 5] * round(p.share * TEXT_WIDTH) for i, p in enumerate(parts))
    legend = "   ".join(f"{'█▓▒░ '[i % 5]} {name}" for i, name in enumerate(names))
    return Figure(
        title=title,
        finding=finding,
        width=width,
        height=BAR_HEIGHT,
        body="".join(pieces),
        text="\n".join([title, bar, legend]),
        rows=(("part", "share"), *((part.name, rounded(part.share)) for part in parts)),
    )


def _name_places(parts: Sequence[NamedShare], names: Sequence[str], width: int) -> list[float]:
    """Each name under its part, as far as its neighbours and the edge leave room."""
    places, at, free = [], float(BAR_LEFT), float(BAR_LEFT)
    for part, name in zip(parts, names, strict=True):
        places.append(max(at, free))
        free = places[-1] + BOLD * len(name) + GAP
        at += part.share * (width - 2 * BAR_LEFT)
    limit = float(width - BAR_LEFT + GAP)
    for i in reversed(range(len(places))):
        places[i] = max(float(BAR_LEFT), min(places[i], limit - GAP - BOLD * len(names[i])))
        limit = places[i]
    return places
