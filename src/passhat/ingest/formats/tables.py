"""Plain tables: CSV, TSV, JSON, JSON Lines and Parquet with one trial a row.

Any tool's export can be read this way once its columns are named; passhat's own files too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from passhat.ingest.rows import Row, column_names, is_own_file, rows_of
from passhat.records import Outcome


def recognises(document: Document) -> bool:
    """Whether the usual names of columns say the task and the outcome."""
    return _recognises(document, ColumnMap())


def read(document: Document, mapping: ColumnMap) -> Table:
    """The rows of a table; the columns by the user's choice, then by their usual names."""
    names, rows = rows_of(document)
    found = find_columns(names, mapping)
    pass_if = parse_pass_if(mapping.pass_if) if mapping.pass_if else ()
    _check_columns(document, names, found, mapping, pass_if)
    numbers = [line for line, _ in rows]
    cells = {
        meaning: [_lookup(row, column) for _, row in rows] for meaning, column in found.items()
    }
    table = Table(columns={}, entry=_entry(document), numbers=numbers)
    columns: dict[str, Sequence[Any]] = {
        meaning: values for meaning, values in cells.items() if meaning not in ("passed", "error")
    }
    columns["task"] = _tasks(found["task"], rows)
    errors = [error_text(cell) for cell in cells.get("error", [None] * len(rows))]
    columns["error"] = errors
    if pass_if:
        columns["outcome"] = _judge(document, table, pass_if, found, rows, errors)
    else:
        columns["outcome"] = _outcomes(document, table, found, cells, errors)
    for name in ("tags", "tools"):
        if name in columns:
            split = found[name].lower() in ("tags", "tools")
            columns[name] = [_words(cell, split) for cell in columns[name]]
    if milliseconds(found.get("seconds", "")):
        columns["seconds"] = [number(cell) / 1000 for cell in columns["seconds"]]
    for name in ("level", "started"):
        if name in columns:
            columns[name] = [None if is_missing(cell) else str(cell) for cell in columns[name]]
    return Table(
        columns=columns,
        notes=_notes(found, pass_if),
        entry=table.entry,
        numbers=numbers,
        judged=True,
    )


READER = Reader(
    name="table",
    recognises=recognises,
    read=read,
    describes="CSV, TSV, JSON, JSON Lines or Parquet with one trial a row",
)


def _recognises(document: Document, mapping: ColumnMap) -> bool:
    return is_own_file(document) or is_table(column_names(document), mapping)


def _check_columns(
    document: Document,
    names: Sequence[str],
    found: Mapping[str, str],
    mapping: ColumnMap,
    pass_if: Sequence[Comparison],
) -> None:
    chosen = mapping.chosen()
    for meaning, column in chosen.items():
        parts = column.split(",") if meaning == "task" and column not in names else [column]
        for part in parts:
            if part.strip() not in names and part.strip().split(".")[0] not in names:
                raise missing_column(document.name, f"--{meaning}", part.strip(), names)
    if "task" not in found:
        raise ReadError(
            f"{document.name}: no column says which task a row is about; it has {listed(names)}. "
            "Name one with --task"
        )
    if not pass_if and "passed" not in found and "score" not in found:
        raise ReadError(
            f"{document.name}: no column says how a trial ended; it has {listed(names)}. Name one "
            "with --pass, or with --score, or say what passes with --pass-if"
        )


def _entry(document: Document) -> str:
    return {"text": "line", "lines": "line", "parquet": "row"}.get(document.kind, "entry")


def _lookup(row: Row, column: str) -> Any:
    """A cell by its column, or by a dotted path into nested objects."""
    if column in row:
        return row[column]
    value: Any = row
    for key in column.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def _tasks(column: str, rows: Sequence[tuple[int, Row]]) -> list[Any]:
    if "," not in column or (rows and column in rows[0][1]):
        return [_lookup(row, column) for _, row in rows]
    parts = [part.strip() for part in column.split(",")]
    return ["/".join(str(_lookup(row, part)) for part in parts) for _, row in rows]


def _outcomes(
    document: Document,
    table: Table,
    found: Mapping[str, str],
    cells: Mapping[str, Sequence[Any]],
    errors: Sequence[str | None],
) -> list[Outcome]:
    meaning = "passed" if "passed" in found else "score"
    values = cells[meaning]
    outcomes: list[Outcome] = []
    for row, (value, error) in enumerate(zip(values, errors, strict=True)):
        outcome = _outcome(meaning, value)
        # A broken trial may still have passed its check: then it passed.
        if error is not None and outcome is not Outcome.PASSED:
            outcome = Outcome.ERRORED
        if outcome is None:
            raise _no_outcome(document, table, found[meaning], values, row)
        outcomes.append(outcome)
    return outcomes


def _outcome(meaning: str, value: Any) -> Outcome | None:
    if is_missing(value):
        return None
    if meaning == "passed":
        return outcome_of(value)
    try:
        return Outcome(number(value) >= 1)
    except ValueError:
        return None


def _no_outcome(
    document: Document, table: Table, column: str, values: Sequence[Any], row: int
) -> ReadError:
    where = f'{document.name}, {table.where(row)}, column "{column}"'
    if is_missing(values[row]):
        return ReadError(
            f'{where}: no outcome; write "error" for a trial that broke, or leave its row out'
        )
    return ReadError(
        f"{where}: {values[row]!r} does not say whether the trial passed. The column holds "
        f"{seen(values)}; say what passes with --pass-if '{column}==...'"
    )


def _judge(
    document: Document,
    table: Table,
    tests: Sequence[Comparison],
    found: Mapping[str, str],
    rows: Sequence[tuple[int, Row]],
    errors: Sequence[str | None],
) -> list[Outcome]:
    outcomes = []
    for index, ((_, row), error) in enumerate(zip(rows, errors, strict=True)):
        cells = [_lookup(row, found.get(test.column, test.column)) for test in tests]
        if any(is_missing(cell) for cell in cells):
            if error is None:
                names = listed(test.column for test in tests)
                where = f"{document.name}, {table.where(index)}"
                raise ReadError(f"{where}: --pass-if needs {names}, which is empty or absent here")
            outcomes.append(Outcome.ERRORED)
            continue
        try:
            passed = all(test.holds(cell) for test, cell in zip(tests, cells, strict=True))
        except ValueError as fault:
            where = f"{document.name}, {table.where(index)}"
            raise ReadError(f"{where}: --pass-if compares with a number, but {fault}") from None
        outcomes.append(Outcome.PASSED if passed else _failed_or_errored(error))
    return outcomes


def _failed_or_errored(error: str | None) -> Outcome:
    return Outcome.FAILED if error is None else Outcome.ERRORED


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


def _notes(found: Mapping[str, str], pass_if: Sequence[Comparison]) -> tuple[str, ...]:
    if pass_if or "passed" in found:
        return ()
    return (f'no column says pass or fail: a "{found["score"]}" of 1 passes (or use --pass-if)',)
