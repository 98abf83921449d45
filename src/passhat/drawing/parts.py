"""One bar cut into parts: where a whole comes from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from passhat.drawing.figure import Figure, element, label

WIDTH, HEIGHT, LEFT = 640, 74, 8
TEXT_WIDTH = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A share of the whole and what it is."""

    name: str
    share: float


def stacked_bar(parts: Sequence[Part], *, title: str, finding: str, width: int = WIDTH) -> Figure:
    """A bar whose parts are named beneath it."""
    pieces, at = [], float(LEFT)
    for i, part in enumerate(parts):
        length = part.share * (width - 2 * LEFT)
        colour = "abcde"[i % 5]
        box = element("rect", x=at, y=12.0, width=max(length - 2, 0.0), height=24.0, class_="fill")
        name = label(f"{part.name} {part.share * 100:.0f} %", at, 54, "key")
        pieces.append(element("g", box + name, class_=colour))
        at += length
    bar = "".join("█▓▒░ "[i % 5] * round(p.share * TEXT_WIDTH) for i, p in enumerate(parts))
    names = "   ".join(
        f"{'█▓▒░ '[i % 5]} {part.name} {part.share * 100:.0f} %" for i, part in enumerate(parts)
    )
    return Figure(
        title=title,
        finding=finding,
        width=width,
        height=HEIGHT,
        body="".join(pieces),
        text="\n".join([title, bar, names]),
    )
