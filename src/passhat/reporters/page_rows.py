"""The tasks that a page lists, in its order."""

from __future__ import annotations

from collections.abc import Sequence

from passhat.analysis.reports.tasks import TaskRow
from passhat.records.natural_order import natural_key

MOST_ROWS = 5_000
"""Tasks in the table of a page; the lowest ones, where there are more."""


def page_rows(tasks: Sequence[TaskRow]) -> list[TaskRow]:
    """The lowest rates first, and of one rate by name as people sort names."""
    return sorted(tasks, key=lambda row: (row.rate.value, natural_key(row.name)))[:MOST_ROWS]
