"""How the blocks of an answer lie on its page: pictures and tables to the left, words beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from passhat.fast_dataclass import dataclass
from passhat.reporters.blocks import (
    Bar,
    Block,
    Judged,
    Marks,
    Picture,
    Section,
    Shares,
    Steps,
    Table,
)

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure

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
    drawn = table.columns_of(Bar)
    kept = [i for i in range(len(table.header)) if i not in drawn]
    return sum(2 + max(_cell_width(row[i]) for row in [table.header, *table.cells]) for i in kept)


def _cell_width(cell: object) -> int:
    return len(cell.sequence if isinstance(cell, Marks) else str(cell))
