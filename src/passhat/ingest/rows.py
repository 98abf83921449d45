"""Tables read from CSV, TSV, JSON, JSON Lines and Parquet: cells by column, rows by number."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import ReadError
from passhat.ingest.document import Document, decode
from passhat.ingest.nested_runs import RawRow, list_of_runs, rows_of_runs
from passhat.ingest.parquet import parquet_columns, parquet_names
from passhat.messages import few, plural, short, short_value
from passhat.records.columns import (
    TRANSCRIPTS,
    USUAL,
    VERDICTS,
    find_columns,
    has_column,
    outcome_of,
    usual_name,
)

SCHEMA = "passhat.trials/1"
"""What the first line of passhat's own JSON Lines says."""

_CHECKS = (
    *("tests", "test_results", "checks", "assertions", "criteria", "rubric", "graders"),
    *("evaluators", "evaluators_results", "steps", "turns"),
)
"""Names of lists whose entries are parts of one run, each with its own verdict."""

_BIG = 2**22
"""JSON of more than 4 MiB is decoded column by column: below, doing it row by row is faster."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sheet:
    """Cells by column, and for each row its line or place in the file.

    `separator` is what separates the cells of a CSV.
    """

    columns: Mapping[str, Sequence[Any] | _Undecoded]
    numbers: Sequence[int]
    separator: str | None = None

    def __len__(self) -> int:
        return len(self.numbers)

    def has(self, column: str) -> bool:
        """Whether there is such a column, or one that a dotted path begins with."""
        return has_column(self.columns, column)

    def cells(self, column: str) -> Sequence[Any]:
        """The cells of a column, or at a dotted path into nested objects; None if absent."""
        if column in self.columns:
            return _decoded(self.columns[column])
        first, *rest = column.split(".")
        cells = _decoded(self.columns.get(first, [None] * len(self)))
        return [_inside(cell, rest) for cell in cells]

    def rows(self, *columns: str) -> Iterator[Row]:
        """The cells of each row in these columns, by column; each column is decoded once."""
        for cells in zip(*map(self.cells, columns), strict=True):
            yield dict(zip(columns, cells, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Undecoded:
    """A column of a big file: its cells are decoded when they are needed, and not kept.

    For JSON their positions are kept; a CSV is read again.
    """

    document: Document
    column: str
    cells: Sequence[msgspec.Raw | None] | None = None

    def decoded(self) -> list[Any]:
        if self.cells is None:
            return list(cells_one_by_one(self.document, self.column))
        name = self.document.name
        return [None if raw is None else decode(name, raw, object) for raw in self.cells]


TOTALS = ("total", "totals", "grand total", "overall", "average")
"""What spreadsheets call a last row that sums up the others."""


def without_total(sheet: Sheet, task: str) -> tuple[Sheet, list[str]]:
    """A table without the last row that sums up the others, and the note that says so."""
    cells = [] if sheet.separator is None else sheet.cells(task)
    last = str(cells[-1]).strip() if len(cells) > 1 else ""
    if last.lower() not in TOTALS or last in map(str, cells[:-1]):
        return sheet, []
    columns = {name: _decoded(cells)[:-1] for name, cells in sheet.columns.items()}
    sheet = replace(sheet, columns=columns, numbers=sheet.numbers[:-1])
    return sheet, [f'the last row, "{last}", sums up the others and was left out']


def ends_in_total(document: Document) -> bool:
    """Whether the last line of a CSV may be such a row."""
    last = document.data[-400:].rstrip().rpartition(b"\n")[2].lower()
    return document.kind == "text" and any(word.encode() in last for word in TOTALS)


def column_names(document: Document) -> list[str]:
    """The names of the columns, for detection and for messages; empty if there are none."""
    if document.kind == "text":
        try:
            return _header(csv_lines(document))
        except ReadError:
            return []
    if document.kind == "parquet":
        return parquet_names(document)
    if is_own_file(document):
        return []
    if document.kind in ("lines", "array"):
        return list(_first_row(document))
    if document.kind == "json":
        return list({**document.first, **_first_row(document)})
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
    if lists_runs(document) or (len(document.data) > _BIG and _has_rows(document)):
        return _raw_sheet(document)
    if document.kind == "lines":
        numbered = [pair for pair in document.lines(Row) if pair[1].get("schema") != SCHEMA]
        return _sheet_of_rows([row for _, row in numbered], [line for line, _ in numbered])
    rows = _json_rows(document)
    return _sheet_of_rows(rows, range(len(rows)))


def row_names(document: Document) -> list[str]:
    """The names of all columns: in JSON, those of every row."""
    if not _has_rows(document):
        return column_names(document)
    shared = document.first if document.kind == "json" else ()
    inner = (name for _, row in _numbered_rows(document) for name in row)
    return list(dict.fromkeys((*shared, *inner)))


def cells_one_by_one(document: Document, column: str) -> Iterator[Any]:
    """The cells of a column, each decoded when it is needed.

    All transcripts of a log together take as much memory again as the log.
    """
    if document.kind == "text":
        lines = csv_lines(document)
        place = _header(lines).index(column)
        yield from (cells[place] for _, cells in lines)
    elif _has_rows(document):
        for _, row in _numbered_rows(document):
            first, *rest = [column] if column in row else column.split(".")
            raw = row.get(first)
            yield None if raw is None else _inside(decode(document.name, raw, object), rest)
    else:
        yield from sheet_of(document).cells(column)


def _has_rows(document: Document) -> bool:
    """Whether it is JSON with a list of rows, and not one row."""
    if document.kind == "json":
        return _inner_list(document) is not None
    return document.kind in ("lines", "array")


def _numbered_rows(document: Document) -> Iterator[tuple[int, RawRow]]:
    """The rows of JSON with their numbers, their cells not decoded yet; none of a single object.

    A row that lists runs is a row for each of them.
    """
    key = lists_runs(document)
    for number, row in _outer_rows(document):
        if key is None:
            yield number, row
        else:
            yield from ((number, run) for run in rows_of_runs(row, key))


def _outer_rows(document: Document) -> Iterator[tuple[int, RawRow]]:
    """The rows as the file has them, without the line that names passhat's schema."""
    shape = dict[str, msgspec.Raw]
    if document.kind == "array":
        yield from enumerate(document.entries(shape))
    elif document.kind == "json":
        found = _inner_list(document)
        yield from enumerate(document.entries(shape, found[0])) if found else ()
    else:
        header = f'"{SCHEMA}"'.encode()
        for number, row in document.lines(shape):
            if bytes(row.get("schema", b"")) != header:
                yield number, row


def lists_runs(document: Document) -> str | None:
    """The key under which each row lists the runs of its task, by the first row."""
    if document.kind not in ("json", "lines", "array"):
        return None
    return list_of_runs(_first_entry(document))


def _first_entry(document: Document) -> RawRow:
    """The first entry of the list of rows; empty if JSON is one object."""
    if document.kind != "json":
        return document.first
    found = _inner_list(document)
    return found[1] if found else {}


def _first_row(document: Document) -> RawRow:
    """The first row: the first run, where the entries list runs."""
    row = _first_entry(document)
    key = list_of_runs(row)
    return row if key is None else next(rows_of_runs(row, key))


def _raw_sheet(document: Document) -> Sheet:
    """A sheet whose columns are decoded one by one: most of a log is text that is seldom needed."""
    shared = _shared(document) if document.kind == "json" else {}
    numbered = list(_numbered_rows(document))
    rows = [{**shared, **row} if shared else row for _, row in numbered]
    numbers = [number for number, _ in numbered]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {
        name: _Undecoded(document=document, column=name, cells=[row.get(name) for row in rows])
        for name in names
    }
    return Sheet(columns=columns, numbers=numbers)


def _shared(document: Document) -> dict[str, msgspec.Raw]:
    """The fields of an object that apply to all rows in its list."""
    return {
        key: raw
        for key, raw in document.first.items()
        if not bytes(memoryview(raw)[:1]).startswith((b"[", b"{"))
    }


def _decoded(cells: Sequence[Any] | _Undecoded) -> Sequence[Any]:
    return cells.decoded() if isinstance(cells, _Undecoded) else cells


def _inside(cell: Any, path: Sequence[str]) -> Any:
    for key in path:
        cell = cell.get(key) if isinstance(cell, Mapping) else None
    return cell


def _sheet_of_rows(rows: Sequence[Row], numbers: Sequence[int]) -> Sheet:
    names = dict.fromkeys(name for row in rows for name in row)
    return Sheet(columns={name: [row.get(name) for row in rows] for name in names}, numbers=numbers)


def _csv_sheet(document: Document) -> Sheet:
    lines = csv_lines(document)
    names = _header(lines)
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ReadError(f"{document.name}, line 1: the column {few(twice)} occurs twice")
    big = len(document.data) > _BIG
    words = [name for name in names if usual_name(name) in TRANSCRIPTS] if big else []
    kept = [place for place, name in enumerate(names) if name not in words]
    rows = [(line, [cells[at] for at in kept] if words else cells) for line, cells in lines]
    columns = zip(*(cells for _, cells in rows), strict=True) if rows else ([] for _ in kept)
    by_name: dict[str, Any] = dict(zip([names[place] for place in kept], columns, strict=True))
    by_name |= {name: _Undecoded(document=document, column=name) for name in words}
    numbers = [line for line, _ in rows]
    return Sheet(columns=by_name, numbers=numbers, separator=_separator(document))


def _header(lines: Iterator[tuple[int, list[str]]]) -> list[str]:
    """The names in the first line, which is taken from the lines."""
    return [name.strip() for name in next(lines, (1, []))[1]]


def _csv_reader(document: Document) -> Any:
    encoding = "utf-16" if document.data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    text = io.TextIOWrapper(io.BytesIO(document.data), encoding=encoding, newline="")
    csv.field_size_limit(2**31 - 1)  # a cell may hold a transcript; the file's size is limited
    return csv.reader(text, delimiter=_separator(document))


def separator_of(header: bytes) -> str:
    """What occurs most in the header of a table: a comma, a tab or a semicolon."""
    return max((b",", b"\t", b";"), key=header.count).decode()


def _separator(document: Document) -> str:
    end = document.data.find(b"\n")  # splitting it there would copy the whole file
    return separator_of(document.data[:end] if end >= 0 else document.data)


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


def _inner_list(document: Document) -> tuple[str, RawRow] | None:
    """The one list of rows inside an object, such as {"agent": ..., "runs": [{...}]}.

    None if there is none, and if the object itself is the row: a run with its messages.
    """
    found = []
    for key, raw in document.first.items():
        text = bytes(memoryview(raw)[:64]).lstrip()
        if text.startswith(b"[") and text[1:].lstrip().startswith(b"{"):
            found.append(key)
    if len(found) != 1:
        return None
    try:
        entries = msgspec.json.decode(document.first[found[0]], type=list[msgspec.Raw])
        first = msgspec.json.decode(entries[0], type=dict[str, msgspec.Raw])
        if _is_row(document, found[0], first):
            return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document.decode(dict[str, Any])  # says what is wrong, and in which line
        return None
    return found[0], first


def _is_row(document: Document, key: str, entry: RawRow) -> bool:
    """Whether an object is one run itself, and its list is about something within that run."""
    outer, inner = find_columns(_shared(document), USUAL), find_columns(entry, USUAL)
    if "task" not in outer or outer.keys().isdisjoint(VERDICTS):
        return False
    if inner.keys().isdisjoint(VERDICTS) or usual_name(key) in _CHECKS:
        return True
    verdict = msgspec.json.decode(document.first[outer["passed"]] if "passed" in outer else b"null")
    if not isinstance(verdict, (bool, str)) or outcome_of(verdict) is None:
        return False  # a count or a rate of the runs in the list
    task = msgspec.json.decode(document.first[outer["task"]])
    if "task" in inner and msgspec.json.decode(entry[inner["task"]]) != task:
        return False
    raise ReadError(
        f"{document.name}: says itself how {short_value(task)} ended "
        f'("{short(outer["passed"])}": {short_value(verdict)}) and has more verdicts on it in '
        f'"{short(key)}"; save that list as a file if each entry is a run, or leave it out if '
        "the file is one run"
    )
