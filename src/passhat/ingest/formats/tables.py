"""Plain tables: CSV, TSV, JSON, JSON Lines and Parquet with one trial a row.

Any tool's export can be read this way once its columns are named; passhat's own files too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.columns import (
    ColumnMap,
    find_columns,
    is_table,
    listed,
    milliseconds,
    missing_column,
)
from passhat.ingest.document import Document
from passhat.ingest.outcomes import (
    Comparison,
    error_text,
    is_missing,
    number,
    outcome_of,
    parse_pass_if,
    seen,
)
from passhat.ingest.reader import Reader, Table
from passhat.ingest.rows import Sheet, column_names, is_own_file, sheet_of
from passhat.records import Outcome


def recognises(document: Document) -> bool:
    """Whether the usual names of columns say the task and the outcome."""
    return is_own_file(document) or is_table(column_names(document), ColumnMap())


def read(document: Document, mapping: ColumnMap) -> Table:
    """The rows of a table; the columns by the user's choice, then by their usual names."""
    sheet = sheet_of(document)
    found = find_columns(sheet.columns, mapping)
    tests = parse_pass_if(mapping.pass_if) if mapping.pass_if else ()
    _check_columns(document, sheet, found, mapping)
    table = Table(columns={}, entry=_entry(document), numbers=sheet.numbers)
    columns = {
        meaning: _typed(meaning, column, sheet.cells(column))
        for meaning, column in found.items()
        if meaning not in ("task", "passed")
    }
    columns["task"] = _tasks(found["task"], sheet)
    errors = columns.get("error", [None] * len(sheet))
    told = _judge(tests, found, sheet) if tests else _tell(found, sheet)
    columns["outcome"] = [
        _ending(outcome, error) for outcome, error in zip(told, errors, strict=True)
    ]
    if None in columns["outcome"]:
        row = columns["outcome"].index(None)
        raise _no_outcome(document.name, table.where(row), row, found, sheet, tests)
    return replace(table, columns=columns, notes=_notes(found, tests), judged=True)


READER = Reader(
    name="table",
    recognises=recognises,
    read=read,
    describes="CSV, TSV, JSON, JSON Lines or Parquet with one trial a row",
)


def _check_columns(
    document: Document, sheet: Sheet, found: Mapping[str, str], mapping: ColumnMap
) -> None:
    for meaning, column in mapping.chosen().items():
        joined = meaning == "task" and not sheet.has(column)
        for part in _parts(column) if joined else [column]:
            if not sheet.has(part):
                raise missing_column(document.name, meaning, part, sheet.columns)
    names = listed(sheet.columns)
    if "task" not in found:
        raise ReadError(
            f"{document.name}: no column says which task a row is about; it has {names}. Name one "
            "with --task"
        )
    if not mapping.pass_if and "passed" not in found and "score" not in found:
        raise ReadError(
            f"{document.name}: no column says how a trial ended; it has {names}. Name one with "
            "--pass, or with --score, or say what passes with --pass-if"
        )


def _entry(document: Document) -> str:
    return {"text": "line", "lines": "line", "parquet": "row"}.get(document.kind, "entry")


def _typed(meaning: str, column: str, cells: Sequence[Any]) -> list[Any]:
    """Cells as what they stand for; numbers are left to be checked with all others."""
    if meaning == "error":
        return [error_text(cell) for cell in cells]
    if meaning in ("tags", "tools"):
        split = column.lower() in ("tags", "tools")
        return [_words(cell, split) for cell in cells]
    if meaning in ("level", "started"):
        return [None if is_missing(cell) else str(cell) for cell in cells]
    if meaning == "seconds" and milliseconds(column):
        return [_thousandth(cell) for cell in cells]
    return list(cells)


def _thousandth(cell: Any) -> Any:
    try:
        return number(cell) / 1000
    except ValueError:
        return cell


def _words(cell: Any, split: bool) -> tuple[str, ...]:
    if is_missing(cell):
        return ()
    if isinstance(cell, str) and cell.startswith("["):
        try:
            cell = msgspec.json.decode(cell, type=list[str])
        except msgspec.DecodeError:
            return (cell,)
    if isinstance(cell, (list, tuple)):
        return tuple(str(word) for word in cell)
    words = str(cell).replace(";", ",").replace("|", ",").split(",") if split else [str(cell)]
    return tuple(word.strip() for word in words if word.strip())


def _tasks(column: str, sheet: Sheet) -> list[Any]:
    if sheet.has(column):
        return list(sheet.cells(column))
    parts = zip(*(sheet.cells(part) for part in _parts(column)), strict=True)
    return ["/".join(map(str, names)) for names in parts]


def _parts(column: str) -> list[str]:
    return [part.strip() for part in column.split(",")]


def _tell(found: Mapping[str, str], sheet: Sheet) -> list[Outcome | None]:
    """How each row ended by its own word, or by a score of 1; None where that says nothing."""
    if "passed" not in found:
        return [_by_score(cell) for cell in sheet.cells(found["score"])]
    cells = sheet.cells(found["passed"])
    try:
        known = {cell: None if is_missing(cell) else outcome_of(cell) for cell in set(cells)}
    except TypeError:  # a list or an object among the cells
        return [None if is_missing(cell) else outcome_of(cell) for cell in cells]
    return [known[cell] for cell in cells]


def _by_score(cell: Any) -> Outcome | None:
    try:
        return None if is_missing(cell) else Outcome(number(cell) >= 1)
    except ValueError:
        return None


def _judge(
    tests: Sequence[Comparison], found: Mapping[str, str], sheet: Sheet
) -> list[Outcome | None]:
    """Whether all comparisons hold in each row; None where a cell cannot be compared."""
    columns = [sheet.cells(found.get(test.column, test.column)) for test in tests]
    return [_holds(tests, cells) for cells in zip(*columns, strict=True)]


def _holds(tests: Sequence[Comparison], cells: Sequence[Any]) -> Outcome | None:
    try:
        if any(is_missing(cell) for cell in cells):
            return None
        return Outcome(all(test.holds(cell) for test, cell in zip(tests, cells, strict=True)))
    except ValueError:
        return None


def _ending(told: Outcome | None, error: str | None) -> Outcome | None:
    # A broken trial may still have passed its check: then it passed.
    return told if error is None or told is Outcome.PASSED else Outcome.ERRORED


def _no_outcome(
    name: str,
    where: str,
    row: int,
    found: Mapping[str, str],
    sheet: Sheet,
    tests: Sequence[Comparison],
) -> ReadError:
    if tests:
        columns = [found.get(test.column, test.column) for test in tests]
        shown = listed(f"{column} is {sheet.cells(column)[row]!r}" for column in columns)
        return ReadError(f"{name}, {where}: --pass-if cannot be told ({shown})")
    column = found.get("passed") or found["score"]
    cells = sheet.cells(column)
    if is_missing(cells[row]):
        return ReadError(
            f'{name}, {where}, column "{column}": no outcome; write "error" for a trial that '
            "broke, or leave its row out"
        )
    return ReadError(
        f'{name}, {where}, column "{column}": {cells[row]!r} does not say whether the trial '
        f"passed. The column holds {seen(cells)}; say what passes with --pass-if '{column}==...'"
    )


def _notes(found: Mapping[str, str], tests: Sequence[Comparison]) -> tuple[str, ...]:
    if tests or "passed" in found:
        return ()
    return (f'no column says pass or fail: a "{found["score"]}" of 1 passes (or use --pass-if)',)
