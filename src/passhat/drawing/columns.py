"""A column chart: how many there are of each kind."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.dataclass import dataclass
from passhat.drawing.figure import WIDTH, Figure, across, element, label

HEIGHT, LEFT, TOP, BOTTOM = 170, 8, 28, 40
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
    step = (WIDTH - 2 * LEFT) / max(len(columns), 1)
    floor = HEIGHT - BOTTOM
    parts = []
    for i, column in enumerate(columns):
        left, tall = LEFT + step * i, (floor - TOP) * column.count / most
        middle = left + step / 2
        if column.count:
            x, wide = left + _GAP / 2, step - _GAP
            area = element("rect", x=x, y=floor - tall, width=wide, height=tall, class_="area")
            parts.append(element("g", area, class_=column.colour))
        parts.append(label(f"{column.count:,}", middle, floor - tall - 6, "strong mid"))
        parts.append(label(column.name, middle, floor + 15, "soft mid"))
    parts.append(across(LEFT, WIDTH - LEFT, floor, "axis"))
    parts.append(label(x_label, WIDTH / 2, HEIGHT - 6, "mid"))
    wide = max((len(column.name) for column in columns), default=0)
    bars = [
        f"{column.name:<{wide}} {'█' * round(_TEXT_WIDTH * column.count / most)} {column.count}"
        for column in columns
    ]
    return Figure(
        title=title,
        finding=finding,
        width=WIDTH,
        height=HEIGHT,
        body="".join(parts),
        text="\n".join([title, *bars]),
        rows=((x_label, "count"), *((column.name, column.count) for column in columns)),
    )
