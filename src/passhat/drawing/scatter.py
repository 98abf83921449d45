"""Points with intervals in both directions: what reliability costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from passhat.drawing.figure import WIDTH, Figure, element, label, number
from passhat.drawing.scale import Kind, Scale, spread

HEIGHT = 300
LEFT, RIGHT, TOP, BOTTOM = 60, 24, 34, 46


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A named point; either interval may be missing."""

    name: str
    x: float
    y: float
    x_interval: tuple[float, float] | None = None
    y_interval: tuple[float, float] | None = None


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
    """Named points on two axes."""
    low, high = spread([v for p in points for v in (p.x, *(p.x_interval or ()))])
    x = Scale(low=max(low, 0.0), high=high, start=LEFT, stop=width - RIGHT)
    y_low, y_high = y_range or spread([v for p in points for v in (p.y, *(p.y_interval or ()))])
    y = Scale(low=y_low, high=y_high, start=HEIGHT - BOTTOM, stop=TOP, kind=y_kind)
    body = _frame(x, y, x_label, y_label) + "".join(
        _point(point, "abcde"[i % 5], x, y) for i, point in enumerate(points)
    )
    lines = [f"{p.name}: {x_label} {p.x:.4g}, {y_label} {y.show(p.y)}" for p in points]
    return Figure(
        title=title,
        finding=finding,
        width=width,
        height=HEIGHT,
        body=body,
        text="\n".join([title, *lines]),
    )


def _frame(x: Scale, y: Scale, x_label: str, y_label: str) -> str:
    parts = []
    for tick in y.ticks():
        line = f"M{number(x.start)} {number(y(tick))}H{number(x.stop)}"
        parts.append(element("path", d=line, class_="rule"))
        parts.append(label(y.show(tick), x.start - 6, y(tick) + 4, "soft end"))
    parts += [label(x.show(tick), x(tick), y.start + 16, "soft mid") for tick in x.ticks()]
    parts.append(label(x_label, (x.start + x.stop) / 2, HEIGHT - 8, "mid"))
    parts.append(label(y_label, 8, 14))
    return "".join(parts)


def _point(point: Point, colour: str, x: Scale, y: Scale) -> str:
    at_x, at_y = x(point.x), y(point.y)
    parts = []
    if point.x_interval:
        line = f"M{number(x(point.x_interval[0]))} {number(at_y)}H{number(x(point.x_interval[1]))}"
        parts.append(element("path", d=line, class_="thin"))
    if point.y_interval:
        line = f"M{number(at_x)} {number(y(point.y_interval[0]))}V{number(y(point.y_interval[1]))}"
        parts.append(element("path", d=line, class_="thin"))
    parts.append(element("circle", cx=at_x, cy=at_y, r=4.5, class_="fill"))
    # Names lean inwards: there is no margin for them.
    outside = at_x > (x.start + x.stop) / 2
    at, kind = (at_x - 9, "key end") if outside else (at_x + 9, "key")
    parts.append(label(point.name, at, at_y - 7, kind, most=24))
    return element("g", "".join(parts), class_=colour)
