"""Bars and intervals drawn with characters, in Unicode or in plain ASCII."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.dataclass import dataclass
from passhat.stats.estimate import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Pen:
    """The characters to draw with."""

    point: str
    inner: str
    outer: str
    ground: str
    blocks: tuple[str, ...]
    passed: str
    failed: str
    errored: str


UNICODE = Pen(
    point="●", inner="━", outer="─", ground="·", blocks=("█", "▒", "░", "·"),
    passed="●", failed="○", errored="×",
)  # fmt: skip
ASCII = Pen(
    point="o", inner="=", outer="-", ground=".", blocks=("#", "+", "-", "."),
    passed="+", failed="-", errored="!",
)  # fmt: skip


def interval_bar(
    value: float | None,
    inner: Interval | None,
    outer: Interval | None,
    *,
    width: int,
    pen: Pen = UNICODE,
    low: float = 0.0,
    high: float = 1.0,
) -> str:
    """A value on a scale from `low` to `high`, between its narrow and its wide interval.

    >>> interval_bar(0.5, Interval(0.4, 0.6), Interval(0.2, 0.8), width=21)
    '····────━━●━━────····'
    """
    if width < 1:
        return ""
    cells = [pen.ground] * width

    def place(x: float) -> int:
        return min(width - 1, max(0, round((x - low) / (high - low) * (width - 1))))

    for interval, mark in ((outer, pen.outer), (inner, pen.inner)):
        if interval is not None:
            for cell in range(place(interval.low), place(interval.high) + 1):
                cells[cell] = mark
    if value is not None:
        cells[place(value)] = pen.point
    return "".join(cells)


def stacked_bar(counts: Sequence[int], *, width: int, pen: Pen = UNICODE) -> list[str]:
    """Pieces of one bar, as long as their counts; whatever is not zero gets a cell.

    >>> stacked_bar([6, 3, 1], width=10)
    ['██████', '▒▒▒', '░']
    """
    total = sum(counts)
    if total == 0 or width <= 0:
        return ["" for _ in counts]
    cells = [max(1, int(width * count / total)) if count else 0 for count in counts]
    while sum(cells) != width:
        step = 1 if sum(cells) < width else -1
        off = [
            (count / total * width - cell) * step if count and cell + step > 0 else float("-inf")
            for count, cell in zip(counts, cells, strict=True)
        ]
        cells[off.index(max(off))] += step
    return [pen.blocks[i % len(pen.blocks)] * cell for i, cell in enumerate(cells)]


def run_marks(sequence: str, *, pen: Pen = UNICODE) -> str:
    """Runs in order, a mark each.

    >>> run_marks("PPFE")
    '●●○×'
    """
    return sequence.translate(str.maketrans("PFE", pen.passed + pen.failed + pen.errored))
