"""Cells by row and column: the share of each task by system, or every run of each task."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice, repeat
from textwrap import wrap

from passhat.dataclass import dataclass
from passhat.drawing.figure import (
    LETTER,
    WIDTH,
    Datum,
    Figure,
    Names,
    element,
    label,
    number,
    rounded,
    text_names,
)
from passhat.messages import percent, points

TOP, ROW, GAP = 34, 22, 1
LEVELS = ("l1", "l2", "l3", "l4")
"""The classes of shares above 0, in one hue from light to dark; 0 is the empty ground."""
_SHADES = " ░▒▓█"
_TEXT_WIDTH = 60
_GROUP_GAP = 6
_LINE, _SMALL_LETTER = 18, 6.8  # lines below the picture; a letter of one that is not shrunk
_TALL_ROW = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnGroup:
    """Neighbouring columns that belong together, and what they have in common."""

    name: str
    columns: int


def matrix(
    names: Sequence[str],
    shares: Sequence[Sequence[float | None]],
    *,
    title: str,
    finding: str,
    x_label: str,
    width: int = WIDTH,
    columns_named: Sequence[str] = (),
    groups: Sequence[ColumnGroup] = (),
    errored: Sequence[Sequence[bool]] = (),
    on_telephone: bool = False,
) -> Figure:
    """Rows of shares from 0 to 1 as cells; None leaves a dash. Columns get narrower as they grow.

    Cells that are `errored` are grey: no trial of theirs got as far as failing. `groups` are set
    apart under a letter each, and what they have in common is written below, in short lines if it
    is drawn for a telephone, which shrinks it.

    >>> matrix(["a"], [[0.0, 1.0]], title="t", finding="f", x_label="task").text.splitlines()[1]
    'a                         █'
    """
    room, letter = Names.of(names), _SMALL_LETTER
    narrow = None
    if (width := max(width, WIDTH) + room.more) > WIDTH:
        narrow = _by_group(names, shares, groups, title, finding) if groups else None
    elif groups and not on_telephone:
        narrow = matrix(
            names, shares, title=title, finding=finding, x_label=x_label, groups=groups,
            errored=errored, on_telephone=True,
        )  # fmt: skip
    else:
        room, letter = Names.broken(names), LETTER
    places, cell = _places(shares, groups, room.width, width - 16)
    notes = _notes(groups, int((width - 48) / letter))
    height = TOP + ROW * len(names) + 30 + _LINE * len(notes) + 6 * bool(notes)
    above = label(x_label, room.width, 14) + _letters(groups, places, cell)
    body = (element("g", above, class_="grouped") if groups else above) + "".join(
        element(
            "g",
            label(name, room.width - 10, TOP + ROW * i + 15, "end", shown=room.shown[name])
            + _cells(shares[i], places, TOP + ROW * i, cell, errored[i] if errored else ()),
            data_of=name,
        )
        for i, name in enumerate(names)
    )
    body += _legend(
        room.width, TOP + ROW * len(names) + 20, width, letter, errored=any(map(any, errored))
    )
    if columns_named:
        # Where the cells are, for keys that walk through them.
        sizes = [group.columns for group in groups] or [len(columns_named)]
        # The width has more digits than a place: a thousand columns add up.
        at = [number(room.width), f"{cell:.5g}", *map(str, (_GROUP_GAP, TOP, ROW, *sizes))]
        # What each share reads as: a page has no rounding of its own.
        known = sorted({share for share in chain(*shares) if share is not None})
        words = " ".join({f"{rounded(share):g}={percent(share)}": None for share in known})
        body += element(
            "path", d="M0 0", class_="level", data_columns=" ".join(at), data_words=words
        )
    if notes:
        body += element("g", _written_notes(notes, TOP + ROW * len(names) + 30), class_="grouped")
    rows = zip(text_names(names), shares, strict=True)
    text = [title, *(_text_row(name, row) for name, row in rows)]
    text += [f"{letter:2} {note}" for letter, note in notes]
    return Figure(
        title=title,
        finding=finding,
        width=width,
        height=height,
        body=body,
        text="\n".join(text),
        rows=_data(names, shares, columns_named),
        narrow=narrow,
    )


def _by_group(
    names: Sequence[str],
    shares: Sequence[Sequence[float | None]],
    groups: Sequence[ColumnGroup],
    title: str,
    finding: str,
) -> Figure:
    """The same with one column for each group: the mean of its cells, written out."""
    room = Names.broken(names)
    tall = _TALL_ROW if room.two_lines else ROW
    cell = (WIDTH - 4 - room.width) / len(groups)
    notes = _notes(groups, int((WIDTH - 48) / LETTER))
    parts = [label("mean pass rate in %, by group of tasks", 8, 14)]
    for i, _ in enumerate(groups):
        parts.append(label(_letter(i), room.width + cell * (i + 0.5), TOP - 4, "strong mid"))
    boxes: dict[str, list[str]] = {}
    written = []
    for i, (name, row) in enumerate(zip(names, shares, strict=True)):
        top = TOP + tall * i
        parts.append(room.label(name, top + tall / 2))
        for j, mean in enumerate(_group_means(row, groups)):
            left, level = room.width + cell * j, 0 if mean is None else _level(mean)
            box = f"M{number(left)} {number(top + 1)}h{number(cell - 2)}v{tall - 2}h{2 - cell:.1f}z"
            boxes.setdefault(("l0", *LEVELS)[level], []).append(box)
            shown = points(mean)
            look = f"mid on{level}" if level > 2 else "mid"
            written.append(label(shown, left + cell / 2 - 1, top + tall / 2 + 4, look))
    parts += [element("path", d="".join(drawn), class_=level) for level, drawn in boxes.items()]
    parts += written
    end = TOP + tall * len(names) + 6
    return Figure(
        title=title,
        finding=finding,
        width=WIDTH,
        height=end + _LINE * len(notes) + 6,
        body="".join(parts) + _written_notes(notes, end),
        text="",
    )


def _group_means(row: Sequence[float | None], groups: Sequence[ColumnGroup]) -> list[float | None]:
    shares = iter(row)
    every = ([s for s in islice(shares, group.columns) if s is not None] for group in groups)
    return [sum(known) / len(known) if known else None for known in every]


def _places(
    shares: Sequence[Sequence[float | None]],
    groups: Sequence[ColumnGroup],
    left: float,
    right: float,
) -> tuple[list[float], float]:
    """Where each column begins, and how wide it is."""
    columns = max((len(row) for row in shares), default=0)
    cell = (right - left - _GROUP_GAP * max(len(groups) - 1, 0)) / max(columns, 1)
    before = [i for i, group in enumerate(groups) for _ in range(group.columns)] or [0] * columns
    return [left + cell * i + _GROUP_GAP * before[i] for i in range(columns)], cell


def _letters(groups: Sequence[ColumnGroup], places: Sequence[float], cell: float) -> str:
    """The letter of each group above its columns."""
    parts, first = [], 0
    for i, group in enumerate(groups):
        middle = (places[first] + places[first + group.columns - 1] + cell) / 2
        parts.append(label(_letter(i), middle, TOP - 4, "strong mid"))
        first += group.columns
    return "".join(parts)


def _notes(groups: Sequence[ColumnGroup], most: int) -> list[tuple[str, str]]:
    """The lines below the picture: a letter and its sentence, broken if it is too long."""
    return [
        (_letter(i) if first else "", line)
        for i, group in enumerate(groups)
        for first, line in zip(chain([True], repeat(False)), wrap(group.name, most), strict=False)
    ]


def _written_notes(notes: Sequence[tuple[str, str]], top: float) -> str:
    return "".join(
        (label(letter, 12, top + _LINE * (i + 1) - 4, "strong") if letter else "")
        + label(note, 32, top + _LINE * (i + 1) - 4)
        for i, (letter, note) in enumerate(notes)
    )


def _letter(place: int) -> str:
    return chr(ord("A") + place)


def _data(
    names: Sequence[str], shares: Sequence[Sequence[float | None]], columns: Sequence[str]
) -> tuple[tuple[Datum, ...], ...]:
    """A row for each column of the picture, where columns have names."""
    cells = zip(*shares, strict=True)
    rows = (
        (name, *map(rounded, column)) for name, column in zip(columns, cells, strict=bool(columns))
    )
    return (("", *names), *rows) if columns else ()


def _cells(
    row: Sequence[float | None],
    lefts: Sequence[float],
    top: float,
    cell: float,
    errored: Sequence[bool] = (),
) -> str:
    """The cells of a row, one path for each level, so that many stay small.

    Each is a piece of a line as thick as the row is high: half of what its four sides would take.
    """
    middle, inner = number(top + ROW / 2), number(_inner(cell))
    ground = "".join(
        _box(start, top, stop - start + cell) for start, stop in _stretches(lefts, cell)
    )
    parts = [element("path", d=ground, class_="l0")]
    for level in range(1, len(LEVELS) + 1):
        places = [i for i, share in enumerate(row) if share is not None and _level(share) == level]
        if places:
            drawn = "".join(f"M{number(lefts[i])} {middle}h{inner}" for i in places)
            parts.append(element("path", d=drawn, class_=f"cells s{level}"))
    if any(errored):
        drawn = "".join(_box(lefts[i], top, cell) for i, is_error in enumerate(errored) if is_error)
        parts.append(element("path", d=drawn, class_="n faded"))
    missing = "".join(
        f"M{number(lefts[i] + cell / 4)} {number(top + ROW / 2)}h{number(cell / 2)}"
        for i, share in enumerate(row)
        if share is None
    )
    return "".join(parts) + (element("path", d=missing, class_="axis") if missing else "")


def _stretches(lefts: Sequence[float], cell: float) -> list[tuple[float, float]]:
    """The first and the last column of each stretch without a gap."""
    stretches: list[tuple[float, float]] = []
    for left in lefts:
        if stretches and left - stretches[-1][1] < cell + _GROUP_GAP / 2:
            stretches[-1] = (stretches[-1][0], left)
        else:
            stretches.append((left, left))
    return stretches


def _inner(width: float) -> float:
    return max(width - (GAP if width > 4 else 0), 0.5)


def _box(x: float, y: float, width: float) -> str:
    inner = _inner(width)
    return f"M{number(x)} {number(y + 2)}h{number(inner)}v{ROW - 4}h-{number(inner)}z"


def _level(share: float) -> int:
    """0 for none, 4 for all, and two levels between."""
    if share <= 0 or share >= 1:
        return 4 * (share >= 1)
    return 1 + (share >= 1 / 3) + (share >= 2 / 3)


def _legend(x: float, y: float, width: float, letter: float, *, errored: bool = False) -> str:
    """What the shades mean, from `x` on, or as far before it as the width asks for."""
    names = ["no trial passed", "some", "", "", "all"]
    levels = ["l0", *LEVELS]
    if errored:
        names, levels = [*names, "all errored"], [*levels, "n faded"]
    steps = [(26 if name else 14) + letter * len(name) for name in names]
    x = min(x, width - sum(steps))
    parts = []
    for level, name, step in zip(levels, names, steps, strict=True):
        parts.append(element("path", d=f"M{number(x)} {number(y - 10)}h12v11h-12z", class_=level))
        parts.append(label(name, x + 16, y, "soft"))
        x += step
    return "".join(parts)


def _text_row(name: str, row: Sequence[float | None]) -> str:
    shown = "".join("-" if s is None else _SHADES[_level(s)] for s in row[:_TEXT_WIDTH])
    return f"{name} {shown}".rstrip()


# A cell a run: which attempts at which task passed, failed or errored.

GRID_TOP, CELL, GRID_ROW = 34, 14, 16

MOST_COLUMNS = 60
KINDS = {"P": ("a", "passed"), "F": ("b", "failed"), "E": ("n", "errored")}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRow:
    """A task and its runs in order, written as P, F and E (a space if none was run)."""

    name: str
    cells: str


def cell_grid(rows: Sequence[CellRow], *, title: str, finding: str) -> Figure:
    """Rows of cells: filled where passed, hollow where failed, crossed where errored."""
    columns = min(max((len(row.cells) for row in rows), default=0), MOST_COLUMNS)
    names = Names.of([row.name for row in rows])
    left = names.width
    width = max(left + CELL * columns + 24, WIDTH)
    height = GRID_TOP + GRID_ROW * len(rows) + 28
    body = (
        label("run", left, 12)
        + _column_names(columns, left)
        + "".join(
            element(
                "g",
                label(
                    row.name,
                    left - 10,
                    GRID_TOP + GRID_ROW * i + 11,
                    "end",
                    shown=names.shown[row.name],
                ),
                data_row=row.name,
            )
            for i, row in enumerate(rows)
        )
        + "".join(_grid_cells(rows, kind, columns, left) for kind in KINDS)
        + _grid_legend(height - 8, left)
    )
    named = zip(text_names([row.name for row in rows]), rows, strict=True)
    marks = str.maketrans("PFE", "●○×")
    lines = [f"{name} {row.cells[:MOST_COLUMNS].translate(marks)}" for name, row in named]
    text = "\n".join([f"{title}  (● passed, ○ failed, × errored)", *lines])
    return Figure(title=title, finding=finding, width=width, height=height, body=body, text=text)


def _column_names(columns: int, left: int) -> str:
    """The numbers of the first column and of every fifth."""
    return "".join(
        label(str(i + 1), left + CELL * i + CELL / 2, GRID_TOP - 8, "soft mid")
        for i in range(columns)
        if i == 0 or (i + 1) % 5 == 0
    )


def _grid_cells(rows: Sequence[CellRow], kind: str, columns: int, left: int) -> str:
    """All cells of one kind as a single path: a page with many runs stays small."""
    places = [
        (left + CELL * j + 1, GRID_TOP + GRID_ROW * i + 1)
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


def _grid_legend(y: float, left: int) -> str:
    parts, x = [], float(left)
    for kind, (_, name) in KINDS.items():
        parts.append(element("path", d=_shape(kind, x, y - 11), class_=_class(kind)))
        parts.append(label(name, x + 18, y, "soft"))
        x += 80
    return "".join(parts)
