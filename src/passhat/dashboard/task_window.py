"""A long table of tasks a page at a time: found, sorted and cut before it is sent."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.reports.report import LABELS, TaskRow, TaskTable
from passhat.dataclass import dataclass
from passhat.records.trial import natural_key

ROWS_A_PAGE = 200
LONGEST_NUMBER = 9
SORTS = ("task", "label", "passed", "rate", "interval", "score")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What a reader asked to see of a table."""

    text: str = ""
    label: str = ""
    sort: str = "rate"
    down: bool = False
    page: int = 1

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Choice:
        """From an address; what makes no sense there counts as not said."""
        sort, label, page = query.get("sort", ""), query.get("label", ""), query.get("page", "")
        return cls(
            text=query.get("q", ""),
            label=label if label in LABELS else "",
            sort=sort if sort in SORTS else "rate",
            down=query.get("down") == "1",
            page=page_number(page),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The rows to show, and how many there are behind them."""

    rows: list[TaskRow]
    found: int
    page: int
    pages: int


def page_number(text: str | None) -> int:
    """A page from an address: at least 1, and no larger than a table could have.

    >>> page_number("7"), page_number("-1"), page_number("x")
    (7, 1, 1)
    """
    sensible = text and text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
    return max(1, int(text)) if text and sensible else 1


def look(table: TaskTable, choice: Choice) -> Window:
    """The part of a table that was asked for."""
    kept = np.ones(len(table), dtype=bool)
    if choice.text:
        wanted = choice.text.lower()
        kept &= np.fromiter((wanted in name.lower() for name in table.names), bool, len(table))
    if choice.label:
        kept &= table.labels == LABELS.index(choice.label)
    places = np.flatnonzero(kept)
    order = places[np.lexsort((_name_ranks(table)[places], _key(table, choice.sort)[places]))]
    if choice.down:
        order = order[::-1]
    pages = max(1, -(-len(order) // ROWS_A_PAGE))
    page = min(choice.page, pages)
    shown = order[(page - 1) * ROWS_A_PAGE : page * ROWS_A_PAGE]
    return Window(rows=[table[int(i)] for i in shown], found=len(order), page=page, pages=pages)


def _key(table: TaskTable, sort: str) -> NDArray[np.float64]:
    if sort == "task":
        return _name_ranks(table)
    columns = {
        "label": table.labels,
        "passed": table.passed,
        "rate": table.rate,
        "interval": table.high - table.low,
        "score": table.mean_score,
    }
    return np.asarray(columns[sort], dtype=np.float64)


def _name_ranks(table: TaskTable) -> NDArray[np.float64]:
    ranks = np.empty(len(table))
    order = sorted(range(len(table)), key=lambda i: natural_key(table.names[i]))
    ranks[order] = np.arange(len(table))
    return ranks
