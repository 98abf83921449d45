"""Bars: a column for each kind with its count, and one bar cut into parts."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.dataclass import dataclass
from passhat.drawing.figure import WIDTH, Figure, across, element, label, number, rounded

COLUMN_HEIGHT, COLUMN_LEFT, TOP, BOTTOM = 170, 8, 28, 40
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

LETTER, GAP = 8, 12
TEXT_WIDTH = 50
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
    names = [f"{part.name} {part.share * 100:.0f}%" for part in parts]
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
        free = places[-1] + LETTER * len(name) + GAP
        at += part.share * (width - 2 * BAR_LEFT)
    limit = float(width - BAR_LEFT + GAP)
    for i in reversed(range(len(places))):
        places[i] = max(float(BAR_LEFT), min(places[i], limit - GAP - LETTER * len(names[i])))
        limit = places[i]
    return places
