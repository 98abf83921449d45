"""Numbers, intervals, names and terminal styles as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from passhat.dataclass import dataclass
from passhat.messages import display_width as display_width
from passhat.messages import metric_label as metric_label
from passhat.messages import percent as percent
from passhat.messages import plural
from passhat.messages import points as points
from passhat.messages import safe_lines as safe_lines
from passhat.messages import safe_text as safe_text
from passhat.messages import shorten as shorten
from passhat.messages import shorten_apart as shorten_apart
from passhat.messages import signed_points as signed_points
from passhat.messages import without_commands as without_commands

if TYPE_CHECKING:
    from passhat.analysis.comparing.comparison import Difference
    from passhat.analysis.reports.parts import Metric
    from passhat.stats.estimate import Estimate, Interval, Unavailable
    from passhat.stats.paired import PairedDifference

# The eight named colours follow the reader's theme, light or dark; yellow and the bright ones
# vanish on a white background and are not used.
_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "magenta": "35", "cyan": "36"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalStyle:
    """Where text goes: how wide it may be, whether in colour, and with which characters."""

    width: int = 80
    color: bool = False
    unicode: bool = True

    @property
    def pen(self) -> CharacterSet:
        """The characters that pictures are drawn with: Unicode or ASCII."""
        return UNICODE if self.unicode else ASCII

    def style(self, text: str, *names: str) -> str:
        r"""`text` in a style; plain if there is no colour.

        >>> TerminalStyle(color=True).style("ok", "bold", "green")
        '\x1b[1;32mok\x1b[0m'
        """
        if not (self.color and text and names):
            return text
        return f"\x1b[{';'.join(_CODES[name] for name in names)}m{text}\x1b[0m"

    def finish(self, lines: list[str]) -> str:
        """The lines as one text, trimmed, in characters that the terminal has."""
        text = "\n".join(line.rstrip() for line in lines) + "\n"
        return text if self.unicode else _plain(text)


def _plain(text: str) -> str:
    for fancy, plain in (("×", "x"), ("±", "+-"), ("…", "~")):
        text = text.replace(fancy, plain)
    return text.encode("ascii", "backslashreplace").decode("ascii")


# Bars and intervals drawn with characters, in Unicode or in plain ASCII.


@dataclass(frozen=True, slots=True, kw_only=True)
class CharacterSet:
    """The characters to draw with."""

    point: str
    inner: str
    outer: str
    ground: str
    blocks: tuple[str, ...]
    passed: str
    failed: str
    errored: str


UNICODE = CharacterSet(
    point="●", inner="━", outer="─", ground="·", blocks=("█", "▒", "░", "·"),
    passed="●", failed="○", errored="×",
)  # fmt: skip
ASCII = CharacterSet(
    point="o", inner="=", outer="-", ground=".", blocks=("#", "+", "-", "."),
    passed="+", failed="-", errored="!",
)  # fmt: skip


def interval_bar(
    value: float | None,
    inner: Interval | None,
    outer: Interval | None,
    *,
    width: int,
    pen: CharacterSet = UNICODE,
    low: float = 0.0,
    high: float = 1.0,
) -> str:
    """A value on a scale from `low` to `high`, between its narrow and its wide interval.

    >>> from passhat.stats.estimate import Interval
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


def stacked_bar(counts: Sequence[int], *, width: int, pen: CharacterSet = UNICODE) -> list[str]:
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


def run_marks(sequence: str, *, pen: CharacterSet = UNICODE) -> str:
    """Runs in order, a mark each.

    >>> run_marks("PPFE")
    '●●○×'
    """
    return sequence.translate(str.maketrans("PFE", pen.passed + pen.failed + pen.errored))


# Numbers as people read them.

_UNGROUPED_FROM = 1e15  # larger numbers in groups of three digits are hard to read


def percent_range(interval: Interval | None, *, digits: int = 0) -> str:
    """An interval in words.

    >>> from passhat.stats.estimate import Interval
    >>> percent_range(Interval(0.153, 0.268)), percent_range(Interval(0.749, 0.751))
    ('15 to 27%', '75%')
    """
    if interval is None:
        return "no interval"
    low, high = points(interval.low, digits=digits), points(interval.high, digits=digits)
    return f"{low}%" if low == high else f"{low} to {high}%"


def span(interval: Interval | None, *, digits: int = 1) -> str:
    """An interval in a column of percentages.

    >>> from passhat.stats.estimate import Interval
    >>> span(Interval(0.153, 1.0))
    '[15.3, 100]'
    """
    if interval is None:
        return ""
    return f"[{points(interval.low, digits=digits)}, {points(interval.high, digits=digits)}]"


def signed_span(interval: Interval | None, *, digits: int = 1) -> str:
    """An interval of a difference in a column of points.

    >>> from passhat.stats.estimate import Interval
    >>> signed_span(Interval(-0.004, 0.123))
    '[-0.4, +12.3]'
    """
    if interval is None:
        return ""
    ends = (signed_points(end, digits=digits) for end in (interval.low, interval.high))
    return f"[{', '.join(ends)}]"


def amount(value: float | None) -> str:
    """A quantity to three figures, thousands grouped.

    >>> amount(18400.2), amount(0.03456), amount(7.0), amount(0), amount(None)
    ('18,400', '0.0346', '7', '0', '-')
    >>> amount(3.21e20)
    '3.21e+20'
    """
    if not value:
        return "-" if value is None else "0"
    if abs(value) >= _UNGROUPED_FROM:
        return f"{value:.3g}"
    if abs(value) >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    text = f"{value:.3g}"
    return f"{float(text):.10f}".rstrip("0").rstrip(".") if "e" in text else text


def file_size(size: int) -> str:
    """The size of a file: bytes, kB or MB.

    >>> file_size(82), file_size(12_345), file_size(1_234_567)
    ('82 bytes', '12.3 kB', '1.23 MB')
    """
    if size < 1000:
        return plural(size, "byte")
    return f"{amount(size / 1e3)} kB" if size < 1e6 else f"{amount(size / 1e6)} MB"


def value_of(number: Estimate | Unavailable) -> float | None:
    """The number, if there is one."""
    return number.value if number else None


def interval_of(number: Estimate | PairedDifference | Unavailable) -> Interval | None:
    """Its interval, if there is one."""
    return number.interval if number else None


def both_intervals(metric: Metric | Difference | None) -> tuple[Interval | None, Interval | None]:
    """The interval for this suite, and the one for tasks like these."""
    if metric is None:
        return None, None
    return interval_of(metric.this_suite), interval_of(metric.tasks_like_these)


def decimals(interval: Interval | None) -> str:
    """The interval of a correlation behind its value, or nothing.

    >>> from passhat.stats.estimate import Interval
    >>> decimals(Interval(-0.123, 0.5))
    ' [-0.12, 0.50]'
    """
    return "" if interval is None else f" [{interval.low:.2f}, {interval.high:.2f}]"


def end_cells(name: str, interval: Interval | None) -> dict[str, float | None]:
    """Both ends of an interval as two cells of a row of numbers.

    >>> from passhat.stats.estimate import Interval
    >>> end_cells("rate", Interval(0.25, 0.5)), end_cells("", None)
    ({'rate_low': 0.25, 'rate_high': 0.5}, {'low': None, 'high': None})
    """
    start = f"{name}_" if name else ""
    return {f"{start}{end}": getattr(interval, end, None) for end in ("low", "high")}


def scope_cells(metric: Metric | Difference) -> dict[str, float | None]:
    """The ends of the intervals of both scopes as four cells of a row of numbers."""
    here, there = both_intervals(metric)
    return end_cells("this_suite", here) | end_cells("tasks_like_these", there)


# Text from data, made safe to show: no control of the terminal, no reordering, bounded width.

LONGEST_NAME = 60
"""Columns of a name from data in a sentence or a table."""


def short(name: str) -> str:
    """A name from data, safe and of bounded width; its end is as telling as its beginning."""
    return shorten_apart([name], LONGEST_NAME)[0]


def pad(text: str, width: int) -> str:
    """`text` cut and filled to exactly `width` columns.

    >>> pad("ab", 4) + "|"
    'ab  |'
    """
    shown = shorten(text, width)
    return shown + " " * (width - display_width(shown))


def wrap(text: str, width: int, *, indent: str = "") -> list[str]:
    """`text` made safe, in lines of at most `width` columns, the later ones indented.

    >>> wrap("one two three", 9, indent="  ")
    ['one two', '  three']
    """
    lines: list[str] = []
    line = ""
    for word in safe_text(text).split():
        start = indent if lines else ""
        longer = f"{line} {word}" if line else start + word
        if line and display_width(longer) > width:
            lines.append(line)
            longer = indent + word
        line = longer
    return [*lines, line]
