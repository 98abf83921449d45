"""Plain tables: CSV, TSV, JSON, JSON Lines and Parquet with one trial a row.

Any tool's export can be read this way once its columns are named; passhat's own files too.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from passhat.errors import MissingExtra, ReadError
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
from passhat.records import Outcome

SCHEMA = "passhat.trials/1"

Row = dict[str, Any]


def recognises(document: Document) -> bool:
    """Whether the usual names of columns say the task and the outcome."""
    return _recognises(document, ColumnMap())


def read(document: Document, mapping: ColumnMap) -> Table:
    """The rows of a table; the columns by the user's choice, then by their usual names."""
    names, rows = _rows(document)
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


def recognises_with(mapping: ColumnMap) -> Callable[[Document], bool]:
    """Whether the user's choice of columns makes a table of it."""
    return lambda document: _recognises(document, mapping)


READER = Reader(
    name="table",
    recognises=recognises,
    read=read,
    describes="CSV, TSV, JSON, JSON Lines or Parquet with one trial a row",
)


def column_names(document: Document) -> list[str]:
    """The names of the columns, for detection and for messages; empty where there are none."""
    if document.kind == "text":
        try:
            return next(_csv_reader(document), [])
        except (csv.Error, UnicodeDecodeError):
            return []
    if document.kind == "parquet":
        return list(_parquet_columns(document))
    if document.kind in ("lines", "array"):
        return list(document.first) if not _is_header(document.first) else []
    if document.kind == "json":
        found = _inner_list(document)
        return list(found[1]) if found else list(document.first)
    return []


def _recognises(document: Document, mapping: ColumnMap) -> bool:
    if document.kind == "lines" and _is_header(document.first):
        return True
    return is_table(column_names(document), mapping)


def _is_header(first: Mapping[str, msgspec.Raw]) -> bool:
    return bytes(first.get("schema", b"")) == f'"{SCHEMA}"'.encode()


def _rows(document: Document) -> tuple[list[str], list[tuple[int, Row]]]:
    """The names of the columns, and each row with its number."""
    if document.kind == "text":
        return _csv_rows(document)
    if document.kind == "lines":
        rows = [
            (line, row)
            for line, row in document.lines(dict[str, Any])
            if row.get("schema") != SCHEMA
        ]
    elif document.kind == "parquet":
        columns = _parquet(document)
        rows = [
            (index, dict(zip(columns, cells, strict=True)))
            for index, cells in enumerate(zip(*columns.values(), strict=True))
        ]
        return list(columns), rows
    else:
        rows = list(enumerate(_json_rows(document)))
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    return names, rows


def _csv_reader(document: Document) -> Iterator[list[str]]:
    encoding = "utf-16" if document.data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    text = io.TextIOWrapper(io.BytesIO(document.data), encoding=encoding, newline="")
    header = document.data.partition(b"\n")[0]
    # The separator that occurs most in the header: a comma, a tab or a semicolon.
    separator = max((b",", b"\t", b";"), key=header.count).decode()
    csv.field_size_limit(2**31 - 1)  # a transcript may stand in a cell; the file is bounded
    return csv.reader(text, delimiter=separator)


def _csv_rows(document: Document) -> tuple[list[str], list[tuple[int, Row]]]:
    reader: Any = _csv_reader(document)
    rows: list[tuple[int, Row]] = []
    try:
        names = [name.strip() for name in next(reader)]
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise ReadError(f"{document.name}, line 1: the column {listed(twice)} occurs twice")
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(names):
                raise ReadError(
                    f"{document.name}, line {reader.line_num}: has {len(cells)} cells where the "
                    f"header has {len(names)} columns"
                )
            rows.append((reader.line_num, dict(zip(names, cells, strict=True))))
    except (csv.Error, UnicodeDecodeError) as error:
        where = f"{document.name}, line {reader.line_num}"
        raise ReadError(f"{where}: not valid CSV in UTF-8 ({error})") from error
    return names, rows


def _json_rows(document: Document) -> list[Row]:
    if document.kind == "array":
        return document.decode(list[dict[str, Any]])
    found = _inner_list(document)
    if found is None:
        return [document.decode(dict[str, Any])]
    whole = document.decode(dict[str, Any])
    shared = {key: value for key, value in whole.items() if not isinstance(value, (list, dict))}
    return [{**shared, **row} for row in whole[found[0]]]


def _inner_list(document: Document) -> tuple[str, Mapping[str, Any]] | None:
    """The one list of objects inside an object, such as {"agent": ..., "runs": [{...}]}."""
    found = []
    for key, raw in document.first.items():
        text = bytes(raw).lstrip()
        if text.startswith(b"[") and text[1:64].lstrip().startswith(b"{"):
            found.append(key)
    if len(found) != 1:
        return None
    entries = msgspec.json.decode(document.first[found[0]], type=list[msgspec.Raw])
    try:
        first = msgspec.json.decode(entries[0], type=dict[str, Any])
    except msgspec.DecodeError:
        return None
    return found[0], {**document.first, **first}


def _parquet_columns(document: Document) -> Sequence[str]:
    return list(_polars().read_parquet_schema(document.stream()))


def _parquet(document: Document) -> dict[str, list[Any]]:
    polars = _polars()
    try:
        return dict(polars.read_parquet(document.stream()).to_dict(as_series=False))
    except polars.exceptions.PolarsError as error:
        raise ReadError(f"{document.name}: not a valid Parquet file ({error})") from error


def _polars() -> Any:
    try:
        import polars
    except ImportError:
        raise MissingExtra("reading Parquet", "frames") from None
    return polars


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
