"""How the blocks of an answer lie on its page: pictures and tables to the left, words beside."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from passhat.dataclass import dataclass
from passhat.messages import safe_text
from passhat.reporters.blocks import Block, Judged, Picture, Section, Shares, Steps, Table

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure

_FIRST_CLAUSE = re.compile(r": |\. (?=[A-Z])")
_HYPHENED = re.compile(r"((?<!\S)[^\s-]\S{0,10}-\S{1,16}(?!\S))")

WIDEST = 76
"""Characters of a table up to which it fits into seven of the page's twelve columns."""


@dataclass(slots=True, kw_only=True)
class PagePart:
    """A stretch of a page under one heading: two columns, and what is too wide for either."""

    title: str = ""
    note: str = ""
    figures: list[tuple[str, Figure]] = field(default_factory=list)
    left: list[Block] = field(default_factory=list)
    right: list[Block] = field(default_factory=list)
    below: list[Table] = field(default_factory=list)

    @property
    def words(self) -> list[Block]:
        """The sentences of the right column, which share a pane."""
        return [block for block in self.right if not isinstance(block, Steps)]

    @property
    def steps(self) -> list[Steps]:
        """Lists of things to do, a pane each."""
        return [block for block in self.right if isinstance(block, Steps)]


def lay_out(blocks: Sequence[Block], figures: Mapping[str, Figure] | None = None) -> list[PagePart]:
    """The parts of a page in order; `figures` are in the first, and pictures stay where they are.

    >>> from passhat.reporters.blocks import Paragraph
    >>> [part.title for part in lay_out([Paragraph("a", "b"), Section("Next"), Paragraph("", "c")])]
    ['', 'Next']
    """
    parts = [PagePart(figures=list((figures or {}).items()))]
    for block in blocks:
        if isinstance(block, Section):
            parts.append(PagePart(title=block.title, note=block.note))
        else:
            _place(block, parts[-1])
    return [part for part in parts if part.figures or part.left or part.right or part.below]


def _place(block: Block, part: PagePart) -> None:
    if isinstance(block, Picture):
        part.figures.append(("", block.figure))
    elif isinstance(block, Table):
        part.below.append(block) if _width(block) > WIDEST else part.left.append(block)
    elif isinstance(block, Judged):
        part.left.append(block)
    elif not isinstance(block, Shares):
        part.right.append(block)


def _width(table: Table) -> int:
    """How many characters a line of a table takes; bars are left to the pictures."""
    rows = [table.header, *table.cells]
    return sum(2 + max(len(str(row[i])) for row in rows) for i in table.written_columns)


def headline_parts(sentence: str) -> list[tuple[str, str]]:
    """A headline in pieces, each with its class: its first clause, and what that rests on.

    >>> headline_parts("You can depend on o3: it succeeds.")
    [('', 'You can depend on o3'), ('colon', ': '), ('lead', 'it succeeds.')]
    """
    shown = whole_units(safe_text(sentence))
    end = _FIRST_CLAUSE.search(shown)
    first, rest = (shown, "") if end is None else (shown[: end.start()], shown[end.end() :])
    # A short name with hyphens is kept on one line: a heading has few words in each.
    pieces = enumerate(_HYPHENED.split(first))
    parts = [("whole-name" if i % 2 else "", piece) for i, piece in pieces if piece]
    return [*parts, ("colon", end[0]), ("lead", rest)] if end and rest else [*parts]


def whole_units(text: str) -> str:
    """Text in which no line ends between a number and its per cent sign."""
    return text.replace(" %", "\N{NO-BREAK SPACE}%")
