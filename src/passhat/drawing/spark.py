"""A line no taller than a word: how a number moved."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.drawing.figure import Figure, element, number
from passhat.drawing.scale import Scale

WIDTH, HEIGHT, EDGE = 120, 28, 4
_BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], *, title: str, finding: str) -> Figure:
    """Shares from 0 to 1 in order, the last one marked.

    >>> sparkline([0.0, 0.5, 1.0], title="t", finding="f").text
    '▁▅█'
    """
    x = Scale(low=0, high=max(len(values) - 1, 1), start=EDGE, stop=WIDTH - EDGE)
    y = Scale(low=0, high=1, start=HEIGHT - EDGE, stop=EDGE)
    places = [f"{number(x(i))} {number(y(value))}" for i, value in enumerate(values)]
    floor = element("path", d=f"M{EDGE} {HEIGHT - EDGE}H{WIDTH - EDGE}", class_="rule")
    line = element("path", d="M" + "L".join(places), class_="line") if len(places) > 1 else ""
    ends = zip(values[-1:], (len(values) - 1,), strict=False)
    dot = "".join(element("circle", cx=x(i), cy=y(v), r=3, class_="fill") for v, i in ends)
    return Figure(
        title=title,
        finding=finding,
        width=WIDTH,
        height=HEIGHT,
        body=floor + element("g", line + dot, class_="a"),
        text="".join(_BLOCKS[round(min(max(v, 0.0), 1.0) * 7)] for v in values),
    )
