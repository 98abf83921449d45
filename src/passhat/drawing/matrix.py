"""A cell for each pair of a row and a column, the darker the more: tasks by systems."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.drawing.figure import (
    WIDTH,
    Datum,
    Figure,
    Names,
    element,
    label,
    number,
    rounded,
    shorten,
)

TOP, ROW, GAP = 34, 22, 1
LEVELS = ("l1", "l2", "l3", "l4")
"""The classes of shares above 0: one hue, ever darker; 0 is the empty ground."""
_SHADES = " ░▒▓█"
_TEXT_WIDTH = 60


def matrix(
    names: Sequence[str],
    shares: Sequence[Sequence[float | None]],
    *,
    title: str,
    finding: str,
    x_label: str,
    width: int = WIDTH,
    columns_named: Sequence[str] = (),
) -> Figure:
    """Rows of shares from 0 to 1 as cells; None leaves a dash. Columns get narrower as they grow.

    >>> matrix(["a"], [[0.0, 1.0]], title="t", finding="f", x_label="task").text.splitlines()[1]
    'a                         █'
    """
    room = Names.of(names)
    width = max(width, WIDTH) + room.more
    columns = max((len(row) for row in shares), default=0)
    cell = (width - room.width - 16) / max(columns, 1)
    height = TOP + ROW * len(names) + 30
    body = label(x_label, room.width, 14) + "".join(
        element(
            "g",
            label(name, room.width - 10, TOP + ROW * i + 15, "end", most=room.letters)
            + _cells(shares[i], room.width, TOP + ROW * i, cell),
        )
        for i, name in enumerate(names)
    )
    body += _legend(room.width, height - 10)
    text = "\n".join([title, *(_text_row(n, row) for n, row in zip(names, shares, strict=True))])
    return Figure(
        title=title,
        finding=finding,
        width=width,
        height=height,
        body=body,
        text=text,
        rows=_data(names, shares, columns_named),
    )


def _data(
    names: Sequence[str], shares: Sequence[Sequence[float | None]], columns: Sequence[str]
) -> tuple[tuple[Datum, ...], ...]:
    """A row for each column of the picture, where columns have names."""
    cells = zip(*shares, strict=True)
    rows = (
        (name, *map(rounded, column)) for name, column in zip(columns, cells, strict=bool(columns))
    )
    return (("", *names), *rows) if columns else ()


def _cells(row: Sequence[float | None], left: float, top: float, cell: float) -> str:
    """The cells of a row, one path for each level, so that many stay small."""
    parts = [element("path", d=_box(left, top, cell * len(row)), class_="l0")]
    for level, name in enumerate(LEVELS, 1):
        places = [i for i, share in enumerate(row) if share is not None and _level(share) == level]
        if places:
            drawn = "".join(_box(left + cell * i, top, cell) for i in places)
            parts.append(element("path", d=drawn, class_=name))
    missing = "".join(
        f"M{number(left + cell * i + cell / 4)} {number(top + ROW / 2)}h{number(cell / 2)}"
        for i, share in enumerate(row)
        if share is None
    )
    return "".join(parts) + (element("path", d=missing, class_="axis") if missing else "")


def _box(x: float, y: float, width: float) -> str:
    inner = max(width - (GAP if width > 4 else 0), 0.5)
    return f"M{number(x)} {number(y + 2)}h{number(inner)}v{ROW - 4}h-{number(inner)}z"


def _level(share: float) -> int:
    """0 for none, 4 for all, and two levels between."""
    if share <= 0 or share >= 1:
        return 4 * (share >= 1)
    return 1 + (share >= 1 / 3) + (share >= 2 / 3)


def _legend(left: float, y: float) -> str:
    names = ("no run passed", "some", "", "", "all")
    parts, x = [], left
    for level, name in zip(("l0", *LEVELS), names, strict=True):
        parts.append(element("path", d=f"M{number(x)} {number(y - 10)}h12v11h-12z", class_=level))
        parts.append(label(name, x + 16, y, "soft"))
        x += (26 if name else 14) + 6.8 * len(name)
    return "".join(parts)


def _text_row(name: str, row: Sequence[float | None]) -> str:
    shown = "".join("-" if s is None else _SHADES[_level(s)] for s in row[:_TEXT_WIDTH])
    return f"{shorten(name, 24):<24} {shown}".rstrip()
