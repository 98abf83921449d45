"""One bar cut into parts: where a whole comes from."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.dataclass import dataclass
from passhat.drawing.figure import WIDTH, Figure, element, label, number, rounded

HEIGHT, LEFT = 84, 8
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
    pieces, at = [], float(LEFT)
    names = [f"{part.name} {part.share * 100:.0f} %" for part in parts]
    places = _name_places(parts, names, width)
    for i, part in enumerate(parts):
        length = part.share * (width - 2 * LEFT)
        colour = _COLOURS[i % 5]
        box = element("rect", x=at, y=12.0, width=max(length - 2, 0.0), height=24.0, class_="area")
        name = label(names[i], places[i], 66, "key")
        pieces.append(element("g", box + name, class_=colour))
        at += length
    if edge is not None:
        first, last = (LEFT + share * (width - 2 * LEFT) for share in edge)
        line = f"M{number(first)} 40v8m0-4H{number(last)}m0-4v8"
        pieces.append(element("path", d=line, class_="axis"))
    bar = "".join("█▓▒░ "[i % 5] * round(p.share * TEXT_WIDTH) for i, p in enumerate(parts))
    legend = "   ".join(f"{'█▓▒░ '[i % 5]} {name}" for i, name in enumerate(names))
    return Figure(
        title=title,
        finding=finding,
        width=width,
        height=HEIGHT,
        body="".join(pieces),
        text="\n".join([title, bar, legend]),
        rows=(("part", "share"), *((part.name, rounded(part.share)) for part in parts)),
    )


def _name_places(parts: Sequence[NamedShare], names: Sequence[str], width: int) -> list[float]:
    """Each name under its part, as far as its neighbours and the edge leave room."""
    places, at, free = [], float(LEFT), float(LEFT)
    for part, name in zip(parts, names, strict=True):
        places.append(max(at, free))
        free = places[-1] + LETTER * len(name) + GAP
        at += part.share * (width - 2 * LEFT)
    limit = float(width - LEFT + GAP)
    for i in reversed(range(len(places))):
        places[i] = max(float(LEFT), min(places[i], limit - GAP - LETTER * len(names[i])))
        limit = places[i]
    return places
