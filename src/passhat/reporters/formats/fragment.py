"""Answers as a piece of HTML for a notebook cell, or for a page of your own.

A notebook puts this text into its page as it is, so everything from data is escaped, nothing loads
from elsewhere, and there is no script, no class and no style sheet that could touch the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from passhat.drawing.figure import LIGHT
from passhat.reporters import blocks as part
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions
from passhat.reporters.safe_text import safe_text

MOST_ROWS = 60
"""Rows of a table that a cell shows; `to_frame()` and the page have them all."""

_BOX = "max-width:72em;line-height:1.45"
_SOFT = "opacity:.75"
_COLOURS = {"PASS": LIGHT["a"], "FAIL": LIGHT["b"], "UNDECIDED": LIGHT["e"]}
"""Contrast 4.5 : 1 on white; the word is printed too, so colour is never the only sign."""


def render(kind: AnswerKind, answer: Any, options: DisplayOptions) -> str:
    """The answer, then its first figure."""
    written = [text for block in kind.worded_blocks(answer, options) for text in _block(block)]
    figures = {} if kind.figures is None else kind.figures(answer)
    drawn = [f"<div>{figure.svg(standalone=True)}</div>" for figure in list(figures.values())[:1]]
    return f'<div style="{_BOX}">' + "\n".join([*written, *drawn]) + "</div>\n"


def _block(block: part.Block) -> Iterator[str]:
    match block:
        case part.Headline():
            yield f"<p><strong>{_text(block.text)}</strong></p>"
        case part.Section():
            note = f' <span style="{_SOFT}">{_text(block.note)}</span>' if block.note else ""
            yield f"<p><strong>{_text(block.title)}</strong>{note}</p>"
        case part.Paragraph():
            label = f"<strong>{_text(block.label)}.</strong> " if block.label else ""
            yield f"<p>{label}{_text(block.text)}</p>"
        case part.Line():
            detail = f" {_text(block.detail)}" if block.detail else ""
            yield f"<p><code>{_text(block.text)}</code>{detail}</p>"
        case part.Judged():
            yield _judged(block)
        case part.Steps():
            items = "".join(f"<li>{_step(step)}</li>" for step in block.steps)
            yield f"<p><strong>{_text(block.title)}</strong></p><ol>{items}</ol>"
        case part.Table():
            yield _table(block)
        case part.Shares() | part.Picture():
            return  # the figure below shows it


def _judged(block: part.Judged) -> str:
    word = f'<strong style="color:{_COLOURS[block.word]}">{block.word}</strong>'
    details = "".join(f'<br><span style="{_SOFT}">{_text(one)}</span>' for one in block.details)
    return f"<p>{word} {_text(block.sentence)}{details}</p>"


def _step(step: part.NextStep) -> str:
    command = f": <code>{_text(step.command)}</code>" if step.command else ""
    return _text(step.text) + command


def _table(table: part.Table) -> str:
    kept = table.written_columns
    head = "".join(_cell("th", table.header[i], left=i in table.left) for i in kept)
    rows = [_row(table, row, kept) for row in table.rows[:MOST_ROWS]]
    more = len(table.rows) - MOST_ROWS
    rest = f'<p style="{_SOFT}">and {more:,} more rows: to_frame()</p>' if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{rest}"


def _row(
    table: part.Table, row: tuple[part.Cell, ...] | part.HeadingRow, kept: Sequence[int]
) -> str:
    if isinstance(row, part.HeadingRow):
        style = f"text-align:left;{_SOFT}"
        return f'<tr><th colspan="{len(kept)}" style="{style}">{_text(row.text)}</th></tr>'
    cells = (_cell("td", row[i], left=i in table.left) for i in kept)
    return f"<tr>{''.join(cells)}</tr>"


def _cell(tag: str, cell: part.Cell, *, left: bool) -> str:
    return f'<{tag} style="text-align:{"left" if left else "right"}">{_text(str(cell))}</{tag}>'


def _text(text: str) -> str:
    return escape(safe_text(text))
