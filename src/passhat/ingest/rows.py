"""Sheets out of CSV, TSV, JSON, JSON Lines and Parquet: cells by column, rows by number."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.fast_dataclass import dataclass
from passhat.ingest.document import Document
from passhat.ingest.parquet import parquet_columns, parquet_names
from passhat.messages import few, plural, short, short_value
from passhat.records.column_names import USUAL, find_columns, has_column
from passhat.records.outcome_words import outcome_of

SCHEMA = "passhat.trials/1"
"""What the first line of passhat's own JSON Lines says."""

_VERDICTS = ("passed", "score")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sheet:
    """Cells by column, and for each row the number by which its file's owner would find it.

    `separator` is what parts the cells, where they are written as text.
    """

    columns: Mapping[str, Sequence[Any]]
    numbers: Sequence[int]
    separator: str | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def has(self, column: str) -> bool:
        """Whether there is such a column, or one that a dotted path begins with."""
        return has_column(self.columns, column)

    def cells(self, column: str) -> Sequence[Any]:
        """The cells of a column, or at a dotted path into nested objects; None where absent."""
        if column in self.columns:
            return self.columns[column]
        first, *rest = column.split(".")
        return [_inside(cell, rest) for cell in self.columns.get(first, [None] * len(self))]


def column_names(document: Document) -> list[str]:
    """The names of the columns, for detection and for messages; empty where there are none."""
    if document.kind == "text":
        try:
            return [name.strip() for name in next(csv_lines(document), (1, []))[1]]
        except ReadError:
            return []
    if document.kind == "parquet":
        return parquet_names(document)
    if document.kind in ("lines", "array"):
        return [] if is_own_file(document) else list(document.first)
    if document.kind == "json":
        found = _inner_list(document)
        return list(found[1]) if found else list(document.first)
    return []


def is_own_file(document: Document) -> bool:
    """Whether the first line says that passhat wrote the file."""
    schema = document.first.get("schema")
    return schema is not None and bytes(schema) == f'"{SCHEMA}"'.encode()


def csv_lines(document: Document) -> Iterator[tuple[int, list[str]]]:
    """Each line with its number, the header first; all must have as many cells as it has."""
    reader = _csv_reader(document)
    width = 0
    try:
        for cells in reader:
            if cells:
                width = width or len(cells)
                if len(cells) != width:
                    raise _ragged(document, reader.line_num, len(cells), width)
                yield reader.line_num, cells
    except (csv.Error, UnicodeDecodeError) as error:
        where = f"{document.name}, line {reader.line_num}"
        raise ReadError(f"{where}: not valid CSV in UTF-8 ({error})") from error


def sheet_of(document: Document) -> Sheet:
    """All cells of a table, by column."""
    if document.kind == "text":
        return _csv_sheet(document)
    if document.kind == "parquet":
        columns = parquet_columns(document)
        return Sheet(columns=columns, numbers=range(len(next(iter(columns.values()), ()))))
    if document.kind == "lines":
        numbered = [pair for pair in document.lines(Row) if pair[1].get("schema") != SCHEMA]
        return _sheet_of_rows([row for _, row in numbered], [line for line, _ in numbered])
    rows = _json_rows(document)
    return _sheet_of_rows(rows, range(len(rows)))


def raw_rows(document: Document) -> Iterator[Mapping[str, msgspec.Raw]]:
    """The rows of a JSON array or of JSON Lines one at a time, their cells not decoded yet."""
    shape = dict[str, msgspec.Raw]
    if document.kind == "array":
        yield from document.entries(shape)
        return
    header = f'"{SCHEMA}"'.encode()
    for _, row in document.lines(shape):
        if bytes(row.get("schema", b"")) != header:
            yield row


def _inside(cell: Any, path: Sequence[str]) -> Any:
    for key in path:
        cell = cell.get(key) if isinstance(cell, Mapping) else None
    return cell


def _sheet_of_rows(rows: Sequence[Row], numbers: Sequence[int]) -> Sheet:
    names = dict.fromkeys(name for row in rows for name in row)
    return Sheet(columns={name: [row.get(name) for row in rows] for name in names}, numbers=numbers)


def _csv_sheet(document: Document) -> Sheet:
    (_, header), *lines = list(csv_lines(document)) or [(1, [])]
    names = [name.strip() for name in header]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ReadError(f"{document.name}, line 1: the column {few(twice)} occurs twice")
    columns = zip(*(cells for _, cells in lines), strict=True) if lines else ([] for _ in names)
    numbers = [number for number, _ in lines]
    by_name = dict(zip(names, columns, strict=True))
    return Sheet(columns=by_name, numbers=numbers, separator=_separator(document))


def _csv_reader(document: Document) -> Any:
    encoding = "utf-16" if document.data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    text = io.TextIOWrapper(io.BytesIO(document.data), encoding=encoding, newline="")
    csv.field_size_limit(2**31 - 1)  # a transcript may stand in a cell; the file is bounded
    return csv.reader(text, delimiter=_separator(document))


def separator_of(header: bytes) -> str:
    """What occurs most in the header of a table: a comma, a tab or a semicolon."""
    return max((b",", b"\t", b";"), key=header.count).decode()


def _separator(document: Document) -> str:
    return separator_of(document.data.partition(b"\n")[0])


def _ragged(document: Document, line: int, cells: int, columns: int) -> ReadError:
    return ReadError(
        f"{document.name}, line {line}: has {plural(cells, 'cell')} where the header has {columns}"
    )


def _json_rows(document: Document) -> list[Row]:
    if document.kind == "array":
        return document.decode(list[dict[str, Any]])
    found = _inner_list(document)
    if found is None:
        return [document.decode(dict[str, Any])]
    whole = document.decode(dict[str, Any])
    shared = {key: value for key, value in whole.items() if not isinstance(value, (list, dict))}
    rows = whole[found[0]]
    for odd in (row for row in rows if not isinstance(row, dict)):
        raise ReadError(
            f'{document.name}: "{short(found[0])}" must hold objects only, but has '
            f"{short_value(odd)}"
        )
    return [{**shared, **row} for row in rows]


def _inner_list(document: Document) -> tuple[str, Mapping[str, Any]] | None:
    """The one list of rows inside an object, such as {"agent": ..., "runs": [{...}]}.

    None where there is none, and where the object itself is the row: a run with its messages.
    """
    found = []
    for key, raw in document.first.items():
        text = bytes(raw).lstrip()
        if text.startswith(b"[") and text[1:64].lstrip().startswith(b"{"):
            found.append(key)
    if len(found) != 1:
        return None
    try:
        entries = msgspec.json.decode(document.first[found[0]], type=list[msgspec.Raw])
        first = msgspec.json.decode(entries[0], type=dict[str, Any])
        if _is_row(document, found[0], first):
            return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document.decode(dict[str, Any])  # says what is wrong, and in which line
        return None
    return found[0], {**document.first, **first}


def _is_row(document: Document, key: str, entry: Mapping[str, Any]) -> bool:
    """Whether an object is one run itself, and its list is about something within that run."""
    own = [
        name
        for name, raw in document.first.items()
        if not bytes(memoryview(raw)[:1]).startswith((b"[", b"{"))
    ]
    outer, inner = find_columns(own, USUAL), find_columns(entry, USUAL)
    if "task" not in outer or outer.keys().isdisjoint(_VERDICTS):
        return False
    if inner.keys().isdisjoint(_VERDICTS):
        return True
    told = document.first[outer["passed"]] if "passed" in outer else b"null"
    verdict = msgspec.json.decode(told)
    if not isinstance(verdict, (bool, str)) or outcome_of(verdict) is None:
        return False  # a count or a rate of the runs in the list
    task = msgspec.json.decode(document.first[outer["task"]])
    if "task" in inner and entry[inner["task"]] != task:
        return False
    raise ReadError(
        f"{document.name}: says itself how {short_value(task)} ended "
        f'("{short(outer["passed"])}": {short_value(verdict)}) and has more verdicts on it in '
        f'"{short(key)}"; give that list as a file of its own if each entry is a run, or leave it '
        "out if the file is one run"
    )
