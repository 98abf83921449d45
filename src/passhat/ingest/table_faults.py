"""How a table was read, and the errors of those that hold no trials or say two things."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from passhat.errors import ReadError
from passhat.ingest.rows import Sheet
from passhat.ingest.written_numbers import comma_fault
from passhat.messages import few, short, short_value
from passhat.records.columns import (
    ColumnCondition,
    ColumnMap,
    Conflict,
    aggregate_column,
    is_missing,
    seen,
)

_NO_WORD = 'no outcome; write "error" for a trial that broke, or leave its row out'
_NO_NUMBER = (
    'no outcome; say what broke a trial in a column "error" (or one that `error` names), or leave '
    "its row out"
)


def table_facts(found: Mapping[str, str], mapping: ColumnMap) -> dict[str, str]:
    """Which column became what, and what replaces columns that are missing."""
    named = {meaning: f'column "{short(column)}"' for meaning, column in found.items()}
    outcome = named.pop("passed", "")
    if not outcome:
        outcome = f'a "{short(found["score"])}" of 1 passes' if "score" in found else ""
    run = named.pop("trial", "order of rows")
    first = {"system": "file name", "task": "", "run": run, "outcome": outcome}
    return {**first, "score": "", "family": "", "started": "", **named}


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


def no_outcome(
    name: str,
    where: str,
    row: int,
    found: Mapping[str, str],
    sheet: Sheet,
    tests: Sequence[ColumnCondition],
) -> ReadError:
    """The error of a row that does not say how its trial ended."""
    usual = found.get("passed") or found.get("score", "")
    columns = [found.get(test.column, test.column) for test in tests] or [usual]
    for column in columns:
        cell = sheet.cells(column)[row]
        nothing = _NO_WORD if column == found.get("passed") else _NO_NUMBER
        fault = nothing if is_missing(cell) else comma_fault(cell)
        if fault:
            return ReadError(f'{name}, {where}, column "{short(column)}": {fault}')
    if tests:
        shown = few(
            f"{short(column)} is {short_value(sheet.cells(column)[row])}" for column in columns
        )
        return ReadError(f"{name}, {where}: `pass_if` compares with a number, but {shown}")
    cells, called = sheet.cells(usual), short(usual)
    if isinstance(cells[row], Mapping) and cells[row]:
        field = short(next(iter(cells[row])))
        return ReadError(
            f'{name}, {where}, column "{called}": holds objects; name the field inside that says '
            f"whether the trial passed, such as `passed='{called}.{field}'`"
        )
    return ReadError(
        f'{name}, {where}, column "{called}": {short_value(cells[row])} does not say whether the '
        f"trial passed. The column holds {seen(cells)}; say what passes with "
        f"`pass_if='{called}==...'`"
    )
