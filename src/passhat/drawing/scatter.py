"""Points with intervals in both directions: what reliability costs."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.drawing.figure import (
    WIDTH,
    Figure,
    across,
    down,
    element,
    escape,
    label,
    number,
    rounded,
)
from passhat.drawing.lines import y_axis
from passhat.drawing.scale import Kind, Scale, spread
from passhat.fast_dataclass import dataclass

HEIGHT = 300
LEFT, RIGHT, TOP, BOTTOM = 60, 24, 34, 46
_LETTER, _MOST_LETTERS = 7.2, 24
_LOG_FROM = 4  # the cheap points of a wider range would lie on one another


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
    """Named points on two axes, joined where no other point has more for less.

    Points on that front have a colour and are named first; others where a name covers no other.
    """
    x = _x_scale(points, width)
    y_low, y_high = y_range or spread([v for p in points for v in (p.y, *(p.y_interval or ()))])
    y = Scale(low=y_low, high=y_high, start=HEIGHT - BOTTOM, stop=TOP, kind=y_kind)
    best = front(points)
    order = sorted(points, key=lambda point: point not in best)
    names = _name_places([(point, x(point.x), y(point.y)) for point in order], x)
    body = (
        _frame(x, y, x_label, y_label)
        + _front_line(best, x, y)
        + "".join(
            _point(point, "a" if point in best else "n", x, y, names.get(point.name))
            for point in reversed(order)
        )
    )
    lines = [f"{p.name}: {x_label} {p.x:.4g}, {y_label} {y.show(p.y)}" for p in points]
    return Figure(
        title=title,
        finding=finding,
        width=width,
        height=HEIGHT,
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
    found: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, -point.y)):
        if not found or point.y > found[-1].y:
            found.append(point)
    return found


def _front_line(best: Sequence[Point], x: Scale, y: Scale) -> str:
    if len(best) < 2:
        return ""
    line = "M" + "L".join(f"{number(x(p.x))} {number(y(p.y))}" for p in best)
    return element("path", d=line, class_="axis dash")


def _name_places(
    points: Sequence[tuple[Point, float, float]], x: Scale
) -> dict[str, tuple[float, float, str]]:
    """Where each name goes without covering a point or a name; those without room get none."""
    taken = [(at_x - 5, at_y - 5, at_x + 5, at_y + 5) for _, at_x, at_y in points]
    found: dict[str, tuple[float, float, str]] = {}
    for point, at_x, at_y in points:
        width = _LETTER * min(len(point.name), _MOST_LETTERS)
        # Names lean inwards where they can: there is no margin for them.
        sides = ["key end", "key"] if at_x > (x.start + x.stop) / 2 else ["key", "key end"]
        for kind, drop in ((kind, drop) for drop in (-7, 15, -20, 28) for kind in sides):
            left = at_x + 9 if kind == "key" else at_x - 9 - width
            box = (left, at_y + drop - 11, left + width, at_y + drop + 3)
            inside = x.start <= box[0] and box[2] <= x.stop + RIGHT - 4
            if inside and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                found[point.name] = (at_x + (9 if kind == "key" else -9), at_y + drop, kind)
                break
    return found


def _overlap(
    one: tuple[float, float, float, float], other: tuple[float, float, float, float]
) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _frame(x: Scale, y: Scale, x_label: str, y_label: str) -> str:
    parts = [y_axis(x, y, y_label)]
    parts += [label(x.show(tick), x(tick), y.start + 16, "soft mid") for tick in x.ticks()]
    parts.append(label(x_label, (x.start + x.stop) / 2, HEIGHT - 8, "mid"))
    return "".join(parts)


def _point(
    point: Point, colour: str, x: Scale, y: Scale, place: tuple[float, float, str] | None
) -> str:
    at_x, at_y = x(point.x), y(point.y)
    parts = [element("title", escape(point.name))]
    if point.x_interval:
        parts.append(across(x(point.x_interval[0]), x(point.x_interval[1]), at_y, "thin"))
    if point.y_interval:
        parts.append(down(at_x, y(point.y_interval[0]), y(point.y_interval[1]), "thin"))
    kind = "ring" if colour == "a" else "hollow"
    parts.append(element("circle", cx=at_x, cy=at_y, r=5, class_=kind))
    if place is not None:
        look = place[2] if colour == "a" else place[2].replace("key", "soft")
        parts.append(label(point.name, place[0], place[1], f"{look} halo", most=_MOST_LETTERS))
    return element("g", "".join(parts), class_=colour)
