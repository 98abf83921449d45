"""How a table was read, and the errors of those that hold no trials or say two things."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from passhat.errors import ReadError
from passhat.messages import short, short_value
from passhat.records.column_names import ColumnMap
from passhat.records.table_meanings import Conflict, aggregate_column


def table_facts(found: Mapping[str, str], mapping: ColumnMap) -> dict[str, str]:
    """Which column became what, and what replaces columns that are missing."""
    named = {meaning: f'column "{short(column)}"' for meaning, column in found.items()}
    outcome = named.pop("passed", "")
    if not outcome:
        outcome = f'a "{short(found["score"])}" of 1 passes' if "score" in found else ""
    first = {
        "system": named.pop("system", "file name"),
        "task": named.pop("task"),
        "run": named.pop("trial", "order of rows"),
        "outcome": outcome,
        "score": named.pop("score", ""),
        "family": named.pop("family", ""),
        "started": named.pop("started", ""),
    }
    return first | named


def aggregates(
    name: str,
    columns: Collection[str],
    found: Mapping[str, str],
    mapping: ColumnMap,
    cells: Callable[[str], Sequence[Any]],
) -> ReadError | None:
    """The error of a table that has one row for all runs of a task."""
    column = aggregate_column(columns, found, mapping, cells)
    if column is None:
        return None
    return ReadError(
        f'{name}: holds one row for all runs of a task (column "{short(column)}"), not trials; '
        "give the file that has a row for each run (TraceLens: trials.json), or name the columns "
        "with `task` and `passed` if each row is one run"
    )


def conflicting(where: str, conflict: Conflict) -> ReadError:
    """The error of two columns that disagree on how a trial ended."""
    one, two = conflict.columns
    first, second = map(short_value, conflict.cells)
    return ReadError(
        f'{where}: the columns "{short(one)}" ({first}) and "{short(two)}" ({second}) disagree on '
        f"whether the trial passed; choose one with `passed={short(one)!r}` or "
        f"`passed={short(two)!r}`"
    )
