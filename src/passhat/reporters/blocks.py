"""An answer as a list of blocks, which a terminal and Markdown show each in its own way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from passhat.reporters.advice import Step
from passhat.reporters.ink import Ink
from passhat.reporters.safe_text import display_width, safe_text, shorten, shorten_apart, wrap
from passhat.reporters.text_bars import interval_bar
from passhat.stats.estimate import Interval

LABEL_WIDTH = 10
WIDEST_BAR = 60
NARROWEST_BAR = 11

_INDENT = "  "
_GAP = "  "
_HANGING = "   "
_SHORTEST_NAME = 8
_WANTED_NAME = 60
"""Names have their room up to here before bars and columns that may go."""


@dataclass(frozen=True, slots=True)
class Headline:
    """The answer in one sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence behind a short label."""

    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A value between its intervals, on the scale of its column; nothing in Markdown."""

    value: float | None
    inner: Interval | None = None
    outer: Interval | None = None


Cell = str | Bar


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a header; the first column is text and to the left, the others to the right.

    `scale` is the range of the column of bars, if there is one, with its two ends as text. The
    columns in `spare` give way where a name would have to be cut on a terminal, as bars do.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left: tuple[int, ...] = (0,)
    spare: tuple[int, ...] = ()
    scale: tuple[float, float] = (0.0, 1.0)
    ends: tuple[str, str] = ("0", "100")


@dataclass(frozen=True, slots=True)
class Steps:
    """What to do next, numbered."""

    title: str
    steps: tuple[Step, ...]


Block = Headline | Paragraph | Table | Steps


def blocks_text(blocks: Sequence[Block], ink: Ink | None = None) -> str:
    """Blocks for a terminal, as one text."""
    ink = ink or Ink()
    return ink.finish(blocks_lines(blocks, ink))


def blocks_lines(blocks: Sequence[Block], ink: Ink) -> list[str]:
    """Blocks in lines, with a blank line between them; paragraphs stay together."""
    lines: list[str] = []
    for i, block in enumerate(blocks):
        alike = i > 0 and isinstance(block, Paragraph) and isinstance(blocks[i - 1], Paragraph)
        if i and not alike:
            lines.append("")
        lines += block_lines(block, ink)
    return lines


def block_lines(block: Block, ink: Ink) -> list[str]:
    """One block in lines of at most the terminal's width."""
    if isinstance(block, Headline):
        return [ink.style(line, "bold") for line in wrap(block.text, ink.width)]
    if isinstance(block, Paragraph):
        return _paragraph_lines(block, ink)
    if isinstance(block, Steps):
        return _step_lines(block, ink)
    return _table_lines(block, ink)


def blocks_markdown(blocks: Sequence[Block]) -> str:
    """Blocks as Markdown; everything from data is escaped."""
    parts: list[str] = []
    for block in blocks:
        if isinstance(block, Headline):
            parts.append(f"**{escape_markdown(block.text)}**")
        elif isinstance(block, Paragraph):
            parts.append(f"**{block.label}.** {escape_markdown(block.text)}")
        elif isinstance(block, Steps):
            items = (f"{i}. {_markdown_step(step)}" for i, step in enumerate(block.steps, 1))
            parts.append("\n".join([f"**{block.title}**", "", *items]))
        else:
            parts.append(_markdown_table(block))
    return "\n\n".join(parts) + "\n"


def escape_markdown(text: str) -> str:
    r"""Safe text in which Markdown and HTML mean nothing.

    >>> escape_markdown("a|b <b>*x*</b>")
    'a\\|b &lt;b&gt;\\*x\\*&lt;/b&gt;'
    """
    shown = safe_text(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark in "\\`*_[]|~#!":
        shown = shown.replace(mark, "\\" + mark)
    return shown


def code_span(text: str) -> str:
    """Safe text as code, in which nothing needs escaping: the fence is longer than what it holds.

    >>> code_span("passhat gate 'my`log.csv'")
    "`` passhat gate 'my`log.csv' ``"
    """
    shown = safe_text(text)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence, room = "`" * (longest + 1), " " * bool(longest)
    return f"{fence}{room}{shown}{room}{fence}"


def _markdown_step(step: Step) -> str:
    text = escape_markdown(step.text)
    return f"{text}: {code_span(step.command)}" if step.command else text


def _paragraph_lines(block: Paragraph, ink: Ink) -> list[str]:
    first, *rest = wrap(block.text, ink.width - LABEL_WIDTH)
    hanging = " " * LABEL_WIDTH
    label = ink.style(f"{block.label:<{LABEL_WIDTH}}", "bold")
    return [label + first, *(hanging + line for line in rest)]


def _step_lines(block: Steps, ink: Ink) -> list[str]:
    lines = [ink.style(block.title, "bold")]
    for i, step in enumerate(block.steps, 1):
        lines += [_INDENT + line for line in _step(i, step, ink.width - len(_INDENT))]
    return lines


def _step(i: int, step: Step, width: int) -> list[str]:
    """One step in lines; a command stands whole on one, however long, so that it can be copied."""
    if not step.command:
        return wrap(f"{i}. {step.text}", width, indent=_HANGING)
    lines = wrap(f"{i}. {step.text}:", width, indent=_HANGING)
    if len(lines) == 1 and display_width(f"{lines[0]} {step.command}") <= width:
        return [f"{lines[0]} {step.command}"]
    return [*lines, _HANGING + step.command]


def _table_lines(table: Table, ink: Ink) -> list[str]:
    table = _eased(table, ink.width)
    widths = _column_widths(table, ink.width)
    header = _line(table, [_header_cell(table, i, widths[i]) for i in range(len(widths))], widths)
    lines = [ink.style(header.rstrip(), "dim")]
    names = shorten_apart([str(row[0]) for row in table.rows], widths[0])
    for name, row in zip(names, table.rows, strict=True):
        rest = zip(row[1:], widths[1:], strict=True)
        cells = [name, *(_drawn(table, cell, width, ink) for cell, width in rest)]
        lines.append(_line(table, cells, widths))
    return lines


def _eased(table: Table, width: int) -> Table:
    """The table without what is too much beside its names: the bars, then the spare columns."""
    for columns in (_bar_columns(table), table.spare):
        widths = _column_widths(table, width)
        crowded = _full_width(widths) > width or widths[0] < min(_name_width(table), _WANTED_NAME)
        if crowded and columns:
            table = _without(table, columns)
    return table


def _column_widths(table: Table, width: int) -> list[int]:
    """Text columns as wide as their text, the first one shortened, bars with what is left."""
    widths = []
    for i, title in enumerate(table.header):
        texts = [safe_text(row[i]) for row in table.rows if isinstance(row[i], str)]  # type: ignore[arg-type]  # filtered
        widths.append(max(display_width(text) for text in (title, *texts)))
    bars = _bar_columns(table)
    for i in bars:
        widths[i] = NARROWEST_BAR
    others = len(_INDENT) + len(_GAP) * (len(widths) - 1) + sum(widths[1:])
    widths[0] = max(_SHORTEST_NAME, min(widths[0], width - others))
    spare = max(0, width - others - widths[0])
    for i in bars:
        widths[i] = min(WIDEST_BAR, NARROWEST_BAR + spare // len(bars))
    return widths


def _name_width(table: Table) -> int:
    names = (table.header[0], *(safe_text(str(row[0])) for row in table.rows))
    return max(map(display_width, names))


def _bar_columns(table: Table) -> list[int]:
    columns = range(len(table.header))
    return [i for i in columns if any(isinstance(row[i], Bar) for row in table.rows)]


def _full_width(widths: Sequence[int]) -> int:
    return len(_INDENT) + len(_GAP) * (len(widths) - 1) + sum(widths)


def _without(table: Table, columns: Sequence[int]) -> Table:
    kept = [i for i in range(len(table.header)) if i not in columns]
    return replace(
        table,
        header=tuple(table.header[i] for i in kept),
        rows=tuple(tuple(row[i] for i in kept) for row in table.rows),
        left=tuple(kept.index(i) for i in table.left if i in kept),
        spare=tuple(kept.index(i) for i in table.spare if i in kept),
    )


def _header_cell(table: Table, i: int, width: int) -> str:
    if any(isinstance(row[i], Bar) for row in table.rows):
        low, high = table.ends
        return low + high.rjust(width - len(low))
    return table.header[i]


def _drawn(table: Table, cell: Cell, width: int, ink: Ink) -> str:
    if isinstance(cell, str):
        return shorten(cell, width)
    low, high = table.scale
    bar = interval_bar(
        cell.value, cell.inner, cell.outer, width=width, pen=ink.pen, low=low, high=high
    )
    return ink.style(bar, "cyan")


def _line(table: Table, cells: Sequence[str], widths: Sequence[int]) -> str:
    def placed(i: int) -> str:
        if "\x1b" in cells[i] or display_width(cells[i]) >= widths[i]:
            return cells[i]
        room = " " * (widths[i] - display_width(cells[i]))
        return cells[i] + room if i in table.left else room + cells[i]

    return _INDENT + _GAP.join(placed(i) for i in range(len(widths)))


def _markdown_table(table: Table) -> str:
    kept = [
        i for i in range(len(table.header)) if not any(isinstance(r[i], Bar) for r in table.rows)
    ]

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    rows = [line([escape_markdown(str(row[i])) for i in kept]) for row in table.rows]
    rule = line([":--" if i in table.left else "--:" for i in kept])
    return "\n".join([line([escape_markdown(table.header[i]) for i in kept]), rule, *rows])
