"""A cell a run: which attempts at which task passed, failed or errored."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.dataclass import dataclass
from passhat.drawing.figure import WIDTH, Figure, Names, element, label, number, text_names

TOP, CELL, ROW = 34, 14, 16
MOST_COLUMNS = 60
KINDS = {"P": ("a", "passed"), "F": ("b", "failed"), "E": ("n", "errored")}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRow:
    """A task and its runs in order, written as P, F and E (a space if none was run)."""

    name: str
    cells: str


def cell_grid(
    rows: Sequence[CellRow],
    *,
    title: str,
    finding: str,
    column_label: str = "run",
    groups: Sequence[tuple[int, str]] = (),
) -> Figure:
    """Rows of cells: filled where passed, hollow where failed, crossed where errored.

    `groups` names stretches of columns by their first column, for example seeds.
    """
    columns = min(max((len(row.cells) for row in rows), default=0), MOST_COLUMNS)
    names = Names.of([row.name for row in rows])
    left = names.width
    width = max(left + CELL * columns + 24, WIDTH)
    height = TOP + ROW * len(rows) + 28
    body = (
        label(column_label, left, 12)
        + _column_names(columns, groups, left)
        + "".join(
            element(
                "g",
                label(
                    row.name,
                    left - 10,
                    TOP + ROW * i + 11,
                    "end",
                    shown=names.shown[row.name],
                ),
                data_row=row.name,
            )
            for i, row in enumerate(rows)
        )
        + "".join(_cells(rows, kind, columns, left) for kind in KINDS)
        + _legend(height - 8, left)
    )
    named = zip(text_names([row.name for row in rows]), rows, strict=True)
    text = "\n".join(
        [f"{title}  (● passed, ○ failed, × errored)", *(_text_row(*pair) for pair in named)]
    )
    return Figure(title=title, finding=finding, width=width, height=height, body=body, text=text)


def _column_names(columns: int, groups: Sequence[tuple[int, str]], left: int) -> str:
    """Names that have room; every group's beginning is marked all the same."""
    named = groups or [(i, str(i + 1)) for i in range(columns) if i == 0 or (i + 1) % 5 == 0]
    parts, free = [], 0.0
    for i, name in named:
        at = left + CELL * i
        if i >= columns:
            break
        if groups:
            parts.append(element("path", d=f"M{at} {TOP - 6}v4", class_="axis"))
        if at >= free:
            parts.append(label(name, at + CELL / 2, TOP - 8, "soft mid", most=8))
            free = at + 7 * min(len(name), 8) + CELL / 2
    return "".join(parts)


def _cells(rows: Sequence[CellRow], kind: str, columns: int, left: int) -> str:
    """All cells of one kind as a single path: a page with many runs stays small."""
    places = [
        (left + CELL * j + 1, TOP + ROW * i + 1)
        for i, row in enumerate(rows)
        for j, cell in enumerate(row.cells[:columns])
        if cell == kind
    ]
    if not places:
        return ""
    return element("path", d="".join(_shape(kind, x, y) for x, y in places), class_=_class(kind))


def _shape(kind: str, x: float, y: float) -> str:
    if kind == "E":
        return f"M{number(x + 2)} {number(y + 2)}l8 8m0-8l-8 8"
    size = 12 if kind == "P" else 9
    off = 0 if kind == "P" else 1.5
    return f"M{number(x + off)} {number(y + off)}h{size}v{size}h-{size}z"


def _class(kind: str) -> str:
    return f"{KINDS[kind][0]} {'fill' if kind == 'P' else 'open thin'}"


def _legend(y: float, left: int) -> str:
    parts, x = [], float(left)
    for kind, (_, name) in KINDS.items():
        parts.append(element("path", d=_shape(kind, x, y - 11), class_=_class(kind)))
        parts.append(label(name, x + 18, y, "soft"))
        x += 80
    return "".join(parts)


def _text_row(name: str, row: CellRow) -> str:
    marks = row.cells[:MOST_COLUMNS].translate(str.maketrans("PFE", "●○×"))
    return f"{name} {marks}"
