"""Blocks as text for a terminal: wrapped to its width, in its colours and characters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from os.path import commonprefix
from typing import Any

from passhat.messages import CUT
from passhat.reporters.answer import (
    SCREEN_WIDTH,
    Answer,
    Bar,
    Block,
    Cell,
    DisplayOptions,
    HeadingRow,
    Headline,
    Hints,
    Judged,
    Line,
    Marks,
    NextStep,
    Paragraph,
    Picture,
    Remark,
    Section,
    Shares,
    Steps,
    Table,
)
from passhat.reporters.formatting import (
    UNICODE,
    CharacterSet,
    TerminalStyle,
    display_width,
    interval_bar,
    run_marks,
    safe_text,
    shorten,
    shorten_apart,
    stacked_bar,
    wrap,
)

LABEL_WIDTH = 10
WIDEST_BAR, NARROWEST_BAR = 60, 11
FEWEST_MARKS = 4

COLOURS = {
    "solid": "green", "flaky": "magenta", "broken": "red", "undecided": "dim",
    "PASS": "green", "FAIL": "red", "UNDECIDED": "magenta", "ERROR": "red",
}  # fmt: skip
"""Words that have a colour wherever they fill a cell."""

_INDENT = "  "
_GAP = "  "
_HANGING = "   "
_HINT_GAP = "    "
_SHORTEST_NAME = 8
_SEAM = re.compile(r"[ _/.:-]")
_SHELL_WORDS = re.compile(r"""(?:--?[\w-]+ )?(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+""")
"""A word of a command, quoted or not; an option with its value."""
_CONTINUED = " \\"
_TELLING = 5
"""Letters that the end of a name needs to stand for it."""
_WANTED_NAME, _WANTED_TEXT = 60, 12
"""Names, and other texts that may be cut, have their room up to here before bars are drawn."""


def render(answer: Answer[Any], options: DisplayOptions) -> str:
    """The answer as text; without a style it is 80 columns wide and has no colour."""
    ink = options.ink or TerminalStyle()
    return blocks_text(answer.all_blocks(replace(options, ink=ink, line_count=line_count)), ink)


def line_count(blocks: Sequence[Block]) -> int:
    """How many lines blocks take on a terminal of 80 columns."""
    return blocks_text(blocks, TerminalStyle(width=SCREEN_WIDTH)).count("\n")


def blocks_text(blocks: Sequence[Block], ink: TerminalStyle | None = None) -> str:
    """Blocks as one text, with a blank line between them; paragraphs stay together."""
    ink = ink or TerminalStyle()
    lines: list[str] = []
    for i, block in enumerate(blocks):
        if i and not _stays_with(blocks[i - 1], block):
            lines.append("")
        lines += _block_lines(block, ink)
    return ink.finish(lines)


def _stays_with(before: Block, block: Block) -> bool:
    if isinstance(block, Remark | Hints):
        return not block.apart
    if isinstance(block, Paragraph):
        # A sentence without a label belongs to the block before it.
        return not block.label or isinstance(before, Paragraph | Shares)
    if isinstance(block, Shares):
        return True
    if isinstance(block, Table) and isinstance(before, Shares):
        return True
    return isinstance(block, Line) and isinstance(before, Line | Table)


def _block_lines(block: Block, ink: TerminalStyle) -> list[str]:  # one line a block
    match block:
        case Headline():
            return [ink.style(line, "bold") for line in wrap(block.text, ink.width)]
        case Section():
            return _section_lines(block, ink)
        case Paragraph():
            return _paragraph_lines(block, ink)
        case Remark():
            numbered = re.match(r"\d+\. ", block.text)
            return wrap(block.text, ink.width, indent=" " * len(numbered[0]) if numbered else "")
        case Hints():
            return _hint_lines(block, ink)
        case Line():
            # One line, whatever the width: other programs read it.
            details = wrap(block.detail, ink.width - 2) if block.detail else []
            return [safe_text(block.text), *(ink.style(_INDENT + line, "dim") for line in details)]
        case Judged():
            return _judged_lines(block, ink)
        case Steps():
            return _step_lines(block, ink)
        case Shares():
            return [" " * LABEL_WIDTH + line for line in _share_lines(block, ink)]
        case Picture():
            return [_INDENT + safe_text(line) for line in block.figure.text.split("\n")]
        case Table():
            return _table_lines(block, ink)


def _section_lines(block: Section, ink: TerminalStyle) -> list[str]:
    if display_width(block.title) + 2 + display_width(block.note) <= ink.width:
        return [f"{ink.style(block.title, 'bold')}{_GAP}{block.note}"]
    return [ink.style(block.title, "bold"), *wrap(block.note, ink.width)]


def _paragraph_lines(block: Paragraph, ink: TerminalStyle) -> list[str]:
    if not block.label:
        return [ink.style(_INDENT + line, "dim") for line in wrap(block.text, ink.width - 2)]
    lines = [" " * LABEL_WIDTH + line for line in wrap(block.text, ink.width - LABEL_WIDTH)]
    if display_width(block.label) >= LABEL_WIDTH:  # the name of a factor may be long
        return [ink.style(block.label, "bold"), *lines]
    label = ink.style(f"{block.label:<{LABEL_WIDTH}}", "bold")
    return [label + lines[0][LABEL_WIDTH:], *lines[1:]]


def _judged_lines(block: Judged, ink: TerminalStyle) -> list[str]:
    hanging = " " * len(block.word) + _GAP
    first, *rest = wrap(block.sentence, ink.width - len(hanging))
    word = ink.style(block.word, "bold", COLOURS[block.word])
    lines = [f"{word}{_GAP}{first}", *(hanging + line for line in rest)]
    for detail in block.details:
        lines += [hanging + line for line in _detail_lines(detail, ink.width - len(hanging))]
    return lines


def _detail_lines(detail: str | NextStep, width: int) -> list[str]:
    if isinstance(detail, NextStep) and detail.command:
        return _command_lines(f"{detail.text}: ", detail.command, width)
    return wrap(str(detail), width)


def _hint_lines(block: Hints, ink: TerminalStyle) -> list[str]:
    """Each command on a line, and two where both have room."""
    beside = _HINT_GAP.join(map(str, block.steps))
    if display_width(beside) <= ink.width:
        return [beside]
    return [line for step in block.steps for line in _detail_lines(step, ink.width)]


def _command_lines(start: str, command: str, width: int) -> list[str]:
    r"""A command in lines that can be copied: a shell joins those that end in a backslash.

    >>> _command_lines("Why: ", "passhat why 'my results.jsonl' --only gpt-5", 38)
    ["Why: passhat why 'my results.jsonl' \\", '  --only gpt-5']
    """
    first, *rest = _SHELL_WORDS.findall(command)
    lines = [start + first]
    for i, word in enumerate(rest, 1):
        room = width - (len(_CONTINUED) if i < len(rest) else 0)
        if display_width(f"{lines[-1]} {word}") <= room:
            lines[-1] += f" {word}"
        else:
            lines[-1] += _CONTINUED
            lines.append(_INDENT + word)
    return lines


def _step_lines(block: Steps, ink: TerminalStyle) -> list[str]:
    lines = [ink.style(block.title, "bold")]
    for i, step in enumerate(block.steps, 1):
        wrapped = _step(f"{i}. {step.text}", step.command, ink.width - len(_INDENT))
        lines += [_INDENT + line for line in wrapped]
    return lines


def _step(text: str, command: str, width: int) -> list[str]:
    """One step in lines, its command behind it where there is room."""
    if not command:
        return wrap(text, width, indent=_HANGING)
    lines = wrap(f"{text}:", width, indent=_HANGING)
    if len(lines) == 1 and display_width(f"{lines[0]} {command}") <= width:
        return [f"{lines[0]} {command}"]
    return [*lines, *(_HANGING + line for line in _command_lines("", command, width - 3))]


def _share_lines(block: Shares, ink: TerminalStyle) -> list[str]:
    """The bar, and what its pieces mean, beside it or below."""
    width = min(40, max(10, ink.width - 60))
    pieces = stacked_bar([count for _, count in block.counts], width=width, pen=ink.pen)
    parts = [(piece, name) for piece, (name, _) in zip(pieces, block.counts, strict=True) if piece]
    drawn = "".join(ink.style(piece, COLOURS[name]) for piece, name in parts)
    meaning = _GAP.join(f"{ink.style(piece[0], COLOURS[name])} {name}" for piece, name in parts)
    plain = _GAP.join(f"{piece[0]} {name}" for piece, name in parts)
    beside = LABEL_WIDTH + sum(map(len, pieces)) + 2 + len(plain) <= ink.width
    return [f"{drawn}{_GAP}{meaning}"] if beside else [drawn, meaning]


def _table_lines(table: Table, ink: TerminalStyle) -> list[str]:
    table, wanted = _eased(table, ink.width)
    widths = _column_widths(table, wanted, ink.width)
    fit = next((i for i in range(len(widths), 2, -1) if _full_width(widths[:i]) <= ink.width), 2)
    if fit >= len(widths):
        return _fitting_lines(table, widths, ink)
    here = _table_lines(_without(table, range(fit, len(widths))), ink)
    # What has no room continues below, beside the first column again, if it says anything.
    empty = [i for i in range(fit, len(widths)) if all(row[i] == "" for row in table.cells)]
    below = _without(table, [*range(1, fit), *empty])
    return [*here, "", *_table_lines(below, ink)] if len(below.header) > 1 else here


def _fitting_lines(table: Table, widths: Sequence[int], ink: TerminalStyle) -> list[str]:
    heads = [_header_cell(table, i, widths[i], ink) for i in range(len(widths))]
    for (i, _), head in zip(table.cut, _cut_headings(table, widths), strict=True):
        heads[i] = head
    header = _line(table, heads, widths).rstrip()
    lines = [ink.style(header, "dim")] if header else []
    texts = [safe_text(str(row[0])) for row in table.cells]
    names = iter(texts if 0 in table.wrapped else shorten_apart(texts, widths[0]))
    apart = _cut_apart(table, widths)
    for row in table.rows:
        if isinstance(row, HeadingRow):
            lines.append(ink.style(_INDENT + safe_text(row.text), "dim"))
            continue
        cells = [next(names)]
        for i in range(1, len(row)):
            if _runs_on(table, row, i):
                room = ink.width - _full_width(widths[:i]) - len(_GAP)
                cells.append(shorten(str(row[i]), room))
                break
            text = apart.get((i, safe_text(str(row[i]))), row[i])
            cells.append(_drawn(table, text, widths[i], ink))
        lines += _row_lines(table, row, cells, widths)
    return lines


def _row_lines(
    table: Table, row: Sequence[Cell], cells: list[str], widths: Sequence[int]
) -> list[str]:
    """A row on one line, and what is left of its sentences on those that follow."""
    rest: dict[int, list[str]] = {}
    for i in table.wrapped:
        cells[i], *rest[i] = wrap(safe_text(str(row[i])), widths[i]) or [""]
    lines = [_line(table, cells, widths)]
    for at in range(max(map(len, rest.values()), default=0)):
        more = [rest[i][at] if at < len(rest.get(i, ())) else "" for i in range(len(cells))]
        lines.append(_line(table, more, widths).rstrip())
    return lines


def _cut_apart(table: Table, widths: Sequence[int]) -> dict[tuple[int, str], str]:
    """Texts of other columns than the first that would look alike once cut."""
    cuts = {}
    for i, _ in table.cut:
        rows = [row for row in table.cells if i and not _runs_on(table, row, i)]
        texts = list(dict.fromkeys(safe_text(str(row[i])) for row in rows))
        if len({shorten(text, widths[i]) for text in texts}) < len(texts):
            for text, cut in zip(texts, shorten_apart(texts, widths[i]), strict=True):
                cuts[i, text] = cut
    return cuts


def _eased(table: Table, width: int) -> tuple[Table, list[int]]:
    """The table without the bars, marks and spare columns that leave no room for its names.

    With it comes the width that each column wants.
    """
    wanted = _wanted_widths(table)
    while _is_crowded(table, wanted, width):
        columns = table.columns_of(Bar) or table.columns_of(Marks) or table.spare[:1]
        if not columns:
            break
        table = _without(table, columns)
        wanted = [width for i, width in enumerate(wanted) if i not in columns]
    return table, wanted


def _is_crowded(table: Table, wanted: Sequence[int], width: int) -> bool:
    widths = _column_widths(table, wanted, width)
    if _full_width(widths) > width or widths[0] < min(wanted[0], _WANTED_NAME):
        return True
    texts = {i: min(wanted[i], _WANTED_TEXT) for i, _ in table.cut}
    texts |= {i: wanted[i] for i in table.columns_of(Marks)}
    return bool(table.columns_of(Bar)) and any(widths[i] < least for i, least in texts.items())


def _column_widths(table: Table, wanted: Sequence[int], width: int) -> list[int]:
    """What each column needs; names, marks, texts that may be cut and bars share what is left."""
    marks, bars = table.columns_of(Marks), table.columns_of(Bar)
    widths = list(wanted)
    for columns, least in ([0], _SHORTEST_NAME), (marks, FEWEST_MARKS), (bars, NARROWEST_BAR):
        for i in columns:
            widths[i] = min(wanted[i], least)
    for i, least in table.cut:
        widths[i] = min(wanted[i], least)
    for columns in ([0], marks, [i for i, _ in table.cut], bars):
        _widen(widths, columns, wanted, width - _full_width(widths))
    return widths


def _widen(widths: list[int], columns: Sequence[int], wanted: Sequence[int], room: int) -> None:
    """Share room between columns, the narrowest first, up to what each wants."""
    for _ in range(room):
        short = [i for i in columns if widths[i] < wanted[i]]
        if not short:
            return
        widths[min(short, key=widths.__getitem__)] += 1


def _wanted_widths(table: Table) -> list[int]:
    """The width of the longest text of each column; of bars, as much as is worth having."""
    wanted = []
    for i, title in enumerate(table.header):
        cells = [str(row[i]) for row in table.cells if not _runs_on(table, row, i)]
        wanted.append(max(map(display_width, [title, *map(safe_text, cells)])))
    for i in table.columns_of(Bar):
        wanted[i] = WIDEST_BAR
    if table.columns_of(Marks) == [len(wanted) - 1]:
        wanted[-1] = max(wanted[-1], len(_meaning_of_marks(UNICODE)))
    return wanted


def _runs_on(table: Table, row: Sequence[Cell], i: int) -> bool:
    """Whether a text that may be cut has the rest of its line, as nothing stands behind it."""
    last = i + 1 == len(row)
    return i in dict(table.cut) and row[i] != "" and not last and not any(row[i + 1 :])


def _full_width(widths: Sequence[int]) -> int:
    return len(_INDENT) + len(_GAP) * (len(widths) - 1) + sum(widths)


def _without(table: Table, columns: Sequence[int]) -> Table:
    kept = [i for i in range(len(table.header)) if i not in columns]
    return replace(
        table,
        header=tuple(table.header[i] for i in kept),
        rows=tuple(
            row if isinstance(row, HeadingRow) else tuple(row[i] for i in kept)
            for row in table.rows
        ),
        left=tuple(kept.index(i) for i in table.left if i in kept),
        cut=tuple((kept.index(i), least) for i, least in table.cut if i in kept),
        spare=tuple(kept.index(i) for i in table.spare if i in kept),
        wrapped=tuple(kept.index(i) for i in table.wrapped if i in kept),
    )


def _cut_headings(table: Table, widths: Sequence[int]) -> list[str]:
    """The headings that may be shortened, never so that two of them look alike."""
    names = [table.header[i] for i, _ in table.cut]
    narrowest = min((widths[i] for i, _ in table.cut), default=0)
    fits = all(display_width(table.header[i]) <= widths[i] for i, _ in table.cut)
    return names if fits else _endings(names, narrowest) or shorten_apart(names, narrowest)


def _endings(names: Sequence[str], width: int) -> list[str]:
    """How long names end that begin alike, where the ends fit: their beginnings tell nothing.

    >>> _endings(["support-agent-2026-10-01", "support-agent-2026-11-01"], 9)
    ['…10-01', '…11-01']
    """
    shown = [safe_text(name) for name in names]
    alike = commonprefix(shown)  # noqa: RUF071  letter by letter is what is meant
    if len(shown) < 2 or len(alike) < width // 2:
        return []
    starts = [seam.end() for seam in _SEAM.finditer(alike)]
    fitting = [at for at in starts if all(display_width(name[at:]) < width for name in shown)]
    endings = [name[min(fitting) :] for name in shown] if fitting else []
    return (
        [CUT + ending for ending in endings]
        if min(map(len, endings), default=0) >= _TELLING
        else []
    )


def _header_cell(table: Table, i: int, width: int, ink: TerminalStyle) -> str:
    if i in table.columns_of(Bar):
        low, high = table.ends
        return low + high.rjust(width - len(low))
    if i in table.columns_of(Marks):
        meaning = _meaning_of_marks(ink.pen)
        return meaning if len(meaning) <= width else table.header[i][:width]
    return shorten(table.header[i], width)


def _meaning_of_marks(pen: CharacterSet) -> str:
    """What the marks of runs mean, above them where there is room."""
    return f"{pen.passed} passed  {pen.failed} failed  {pen.errored} errored"


def _drawn(table: Table, cell: Cell, width: int, ink: TerminalStyle) -> str:
    if isinstance(cell, str):
        shown = shorten(cell, width)
        return ink.style(shown.ljust(width), COLOURS[shown]) if shown in COLOURS else shown
    if isinstance(cell, Marks):
        drawn = run_marks(cell.sequence, pen=ink.pen)
        return drawn if len(drawn) <= width else f"{drawn[: width - 1]}…"
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

    return _INDENT + _GAP.join(placed(i) for i in range(len(cells)))
