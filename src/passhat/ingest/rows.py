"""Tables read from CSV, TSV, JSON, JSON Lines and Parquet: cells by column, rows by number.

Below them: numbers as people write them, and what is said of a table that was read or refused.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from itertools import compress
from typing import Any

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import ReadError
from passhat.ingest.document import Document, decode
from passhat.ingest.query_engines import parquet_columns, parquet_names
from passhat.messages import closest, few, plural, short, short_value
from passhat.records import FEATURES
from passhat.records.columns import (
    COUNTS,
    RATES,
    TRANSCRIPTS,
    USUAL,
    VERDICTS,
    ColumnCondition,
    ColumnMap,
    Conflict,
    aggregate_column,
    are_means,
    as_number,
    find_columns,
    has_column,
    is_missing,
    is_table,
    name_parts,
    outcome_of,
    parse_pass_if,
    seen,
    usual_name,
    verdict_columns,
)
from passhat.records.trial import NEVER_MET, Ended, noted_end

SCHEMA = "passhat.trials/1"
"""What the first line of passhat's own JSON Lines says."""

TOTALS = ("total", "totals", "grand total", "overall", "average")
"""What spreadsheets call a last row that sums up the others."""

LISTS = ("trials", "runs", "attempts", "repetitions", "rollouts", "episodes")
"""What a list of the runs of one task is called."""

WITHIN_A_RUN = frozenset(
    (
        *("messages", "steps", "turns", "trajectory", "traj", "trace", "traces", "history"),
        *("chat_history", "events", "conversation", "dialogue", "dialog", "transcript", "spans"),
        *("tool_calls", "function_calls", "actions", "observations", "checks", "assertions"),
        "collectors",  # of pytest-json-report, beside its tests
    )
)
"""Names of lists whose entries are never runs: what happened within one, or was checked of it."""

_LISTS_OF_RUNS = (
    *LISTS,
    *("results", "outcomes", "evaluations", "repeats", "iterations", "tries", "samples"),
    *("data", "rows", "records", "items", "entries"),
)
"""What a list of runs is called in an object that names their task."""

_CHECKS = (
    *("tests", "test_results", "criteria", "rubric", "graders"),
    *("evaluators", "evaluators_results"),
)
"""Names of lists whose entries may be parts of one run, each with its own verdict."""

_LOOKED_AT = 20
"""So many entries show whether a list holds messages."""

_BIG = 2**22
"""JSON of more than 4 MiB is decoded column by column: below, doing it row by row is faster."""

_MOST_IDENTIFIED = 10_000
"""A bigger table repeats no other files: the rows of fewer are compared with those of others."""

_MEASURED = re.compile(
    r"time|date|second|duration|latency|elapsed|started|finished|uuid|session|run_id|trace_id|_ms$"
)
"""Names of columns in which hardly two runs are the same."""

_SHORT = 64
_MOST_KEPT = 2**24
_MOST_OF_A_CELL = 2**10
"""A column of JSON with more than 16 MiB beyond short cells, and more than 1 KiB a row, is not
kept in memory but read again where it is needed: a transcript mostly is not."""

_NESTED = 8
"""Bytes that an object or a list takes in memory, for each in the file."""

_MOST_COLUMNS = 100_000
"""A table of more columns is none: its rows are columns, or its keys are data."""

_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_CELL = msgspec.json.Decoder(Any)

Row = dict[str, Any]
RawRow = Mapping[str, msgspec.Raw]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Cells by column, and for each row its line or place in the file.

    `separator` is what separates the cells of a CSV; `merged` the columns of the file whose cells
    became the verdicts, one below another, and `empty` how many of these cells are no row.
    """

    columns: Mapping[str, Sequence[Any] | _ReadAgain]
    numbers: Sequence[int]
    separator: str | None = None
    merged: str = ""
    empty: int = 0
    _inner: dict[str, Sequence[Any]] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        return len(self.numbers)

    def has(self, column: str) -> bool:
        """Whether there is such a column, or one that a dotted path begins with."""
        return has_column(self.columns, column)

    def cells(self, column: str) -> Sequence[Any]:
        """The cells of a column, or at a dotted path into nested objects; None if absent."""
        if column in self.columns:
            cells = self.columns[column]
            return list(cells) if isinstance(cells, _ReadAgain) else cells
        if column not in self._inner:
            first, *rest = column.split(".")
            outer = self.columns.get(first, [None] * len(self))
            self._inner[column] = [_inside(cell, rest) for cell in outer]
        return self._inner[column]

    def rows(self, *columns: str) -> Iterator[Row]:
        """The cells of each row in these columns, by column; each column is decoded once."""
        for cells in zip(*map(self.cells, columns), strict=True):
            yield dict(zip(columns, cells, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ReadAgain:
    """A column of a big file that is not kept: whoever needs its cells reads the file again."""

    document: Document
    column: str
    mapping: ColumnMap
    rows: int

    def __iter__(self) -> Iterator[Any]:
        count = 0
        for cell in cells_one_by_one(self.document, self.column, self.mapping):
            count += 1
            yield cell
        if count != self.rows:
            raise ReadError(f"{self.document.name}: changed while it was read; read it again")


def table_of(document: Document, mapping: ColumnMap = USUAL) -> Table:
    """All cells of a table, by column; of JSON, those of the list that `mapping` asks for."""
    if document.kind == "text":
        return _csv_table(document)
    if document.kind == "parquet":
        columns = parquet_columns(document)
        return Table(columns=columns, numbers=range(len(next(iter(columns.values()), ()))))
    if lists_runs(document, mapping) or (document.size > _BIG and _has_rows(document, mapping)):
        return _raw_table(document, mapping)
    if document.kind == "lines":
        numbered = [pair for pair in document.lines(Row) if pair[1].get("schema") != SCHEMA]
        return table_of_rows([row for _, row in numbered], [line for line, _ in numbered])
    rows = _json_rows(document, mapping)
    return table_of_rows(rows)


def column_names(document: Document, mapping: ColumnMap = USUAL) -> list[str]:
    """The names of the columns, for detection and for messages; empty if there are none."""
    if document.kind == "text":
        try:
            names = _header(csv_lines(document))
        except ReadError:
            return []
        _check_width(document.name, len(names))
        return names
    if document.kind == "parquet":
        return parquet_names(document)
    if is_own_file(document):
        return []
    if document.kind in ("lines", "array"):
        names = list(_first_row(document, mapping))
        _check_width(document.name, len(names))
        return names
    if document.kind == "json":
        return list({**document.first, **_first_row(document, mapping)})
    return []


def row_names(document: Document, mapping: ColumnMap) -> list[str]:
    """The names of all columns: in JSON, those of every row."""
    if not _has_rows(document, mapping):
        return column_names(document, mapping)
    shared = document.first if document.kind == "json" else ()
    inner = (name for _, row in _numbered_rows(document, mapping) for name in row)
    return list(dict.fromkeys((*shared, *inner)))


def cells_one_by_one(
    document: Document,
    column: str,
    mapping: ColumnMap = USUAL,
    wanted: Container[int] | None = None,
) -> Iterator[Any]:
    """The cells of a column, each decoded when it is needed; None in rows that are not `wanted`.

    All transcripts of a log together take as much memory again as the log.
    """
    if document.kind == "text":
        lines = csv_lines(document)
        place = _header(lines).index(column)
        yield from (cells[place] for _, cells in lines)
    elif _has_rows(document, mapping):
        for place, (_, row) in enumerate(_numbered_rows(document, mapping)):
            if wanted is not None and place not in wanted:
                yield None
                continue
            first, *rest = [column] if column in row else column.split(".")
            raw = row.get(first)
            yield None if raw is None else _inside(decode(document.name, raw, object), rest)
    else:
        yield from table_of(document, mapping).cells(column)


def csv_lines(document: Document) -> Iterator[tuple[int, list[str]]]:
    """Each line with its number, the header first; all must have as many cells as it has.

    What is put above the header is left out: `sep=,`, comments that begin with #, and a title with
    nothing beside it.
    """
    stream = io.BytesIO(document.data)
    begin = stream.seek(_header_begins(document.data))
    above = document.data.count(b"\n", 0, begin)
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(text, delimiter=separator_of(document.data))
    width = 0
    try:
        for cells in reader:
            if not any(cells):  # an empty row, which separates others
                continue
            if len(cells) == width:
                yield above + reader.line_num, cells
            else:
                if not width and len(cells) > 1 and not any(map(str.strip, cells[1:])):
                    continue
                width = width or len(cells)
                if len(cells) != width:
                    has = f"has {plural(len(cells), 'cell')} where the header has {width}"
                    raise ReadError(f"{document.name}, line {above + reader.line_num}: {has}")
                yield above + reader.line_num, cells
    except (csv.Error, UnicodeDecodeError) as error:
        where = f"{document.name}, line {above + reader.line_num}"
        raise ReadError(f"{where}: not valid CSV in UTF-8 ({error})") from error


_LONGEST_CELL = 2**31 - 1
"""A cell may hold a transcript; the file's size is limited."""

_STATED_SEPARATOR = re.compile(rb"sep=([,;|\t])\r?\n")
"""The first line by which a CSV tells Excel what separates its cells."""


def separator_of(data: bytes) -> str:
    """What the first line states, or what occurs most in the header: a comma, tab, ; or bar."""
    if stated := _STATED_SEPARATOR.match(data):
        return stated[1].decode()
    header = _line_at(data, _header_begins(data))
    return max(_SEPARATORS, key=lambda mark: len(_cells(header, mark)))


_SEPARATORS = (",", "\t", ";", "|")

_IN_WORDS = re.compile(r"#+\s+[^\W\d]")
"""How a comment begins, unlike a column that is called # or #id."""


def _header_begins(data: bytes) -> int:
    """Where the header begins: after `sep=,` and lines with #, unless # begins its first name."""
    stated = _STATED_SEPARATOR.match(data)
    begin = stated.end() if stated else 0
    marked = []
    while data.startswith(b"#", begin) and (end := data.find(b"\n", begin)) >= 0:
        marked.append(begin)
        begin = end + 1
    below = _line_at(data, begin)
    for place in marked:
        line = _line_at(data, place)
        for separator in (stated[1].decode(),) if stated else _SEPARATORS:
            names, cells = _cells(line, separator), _cells(below, separator)
            if len(names) == len(cells) > 1 and (
                not _IN_WORDS.match(line)
                or (is_table(_bare(names), USUAL) and not is_table(cells, USUAL))
            ):
                return place
    return begin


def _line_at(data: bytes, begin: int) -> str:
    end = data.find(b"\n", begin)  # splitting it there would copy the whole file
    return (data[begin:] if end < 0 else data[begin:end]).decode("utf-8", "replace")


def _cells(line: str, separator: str) -> list[str]:
    if '"' not in line:
        return line.split(separator)
    csv.field_size_limit(_LONGEST_CELL)
    return next(csv.reader([line], delimiter=separator), [])


def is_own_file(document: Document) -> bool:
    """Whether the first line says that passhat wrote the file."""
    schema = document.first.get("schema")
    return schema is not None and bytes(schema) == f'"{SCHEMA}"'.encode()


class _Header(msgspec.Struct):
    ended: Ended | None = None
    notes: list[str] = []


def own_end(document: Document) -> Ended | None:
    """How trials that passhat wrote had ended; older versions said it in a note."""
    header = decode(f"{document.name}, line 1", msgspec.json.encode(document.first), _Header)
    return header.ended or noted_end(header.notes)


def measured_rows(sheet: Table) -> list[int | None]:
    """What identifies each row: all its cells, if one of them is a time or an id; else None.

    >>> one = Table(columns={"task": ["a", "b"], "seconds": [41.7, 3]}, numbers=[0, 1])
    >>> [row is None for row in measured_rows(one)]
    [False, True]
    """
    telling = [column for column in sheet.columns if _MEASURED.search(usual_name(column))]
    if not telling or len(sheet) > _MOST_IDENTIFIED:
        return []
    marked = [
        any(map(_tells_apart, cells)) for cells in zip(*map(sheet.cells, telling), strict=True)
    ]
    if not any(marked):
        return []
    names = tuple(sorted(sheet.columns))
    # Column by column: one of transcripts is not kept.
    hashes = [_cell_hashes(sheet.columns[name]) for name in names]
    whole = not any(None in column for column in hashes)
    marks: list[int | None] = []
    for row, own in zip(zip(*hashes, strict=True), marked, strict=True):
        if not own:
            marks.append(None)
        elif whole:
            marks.append(hash((names, row)))
        else:  # a cell that says nothing is as none
            there = [cell is not None for cell in row]
            marks.append(hash((tuple(compress(names, there)), tuple(compress(row, there)))))
    return marks


FEWEST_DISTINCT = 8
"""Fewer different rows may well be equal: of one task, with a day for a time."""


def tells_rows_apart(sheet: Table, marks: Sequence[int | None]) -> bool:
    """Whether different rows mostly differ in one time or id: not in a day, nor in a session."""
    distinct = len(set(marks))
    telling = (name for name in sheet.columns if _MEASURED.search(usual_name(name)))
    return distinct >= FEWEST_DISTINCT and any(
        2 * len(set(_cell_hashes(sheet.cells(name)))) >= distinct for name in telling
    )


def _cell_hashes(cells: Iterable[Any]) -> list[int | None]:
    """A number for each cell, the same for equal ones; None for one that says nothing."""
    hashes: list[int | None] = []
    for cell in cells:
        if cell is None or cell == "":
            hashes.append(None)
            continue
        try:
            hashes.append(hash(cell))
        except TypeError:  # a list or an object
            hashes.append(hash(msgspec.json.encode(cell, enc_hook=str)))
    return hashes


def _tells_apart(cell: Any) -> bool:
    """Whether hardly two runs have the same value: 41.73 seconds, 21858 ms, a time, a long id."""
    if isinstance(cell, str):
        try:
            cell = float(cell)
        except ValueError:
            return len(cell) >= 8
    return isinstance(cell, (int, float)) and (abs(cell) >= 1000 or cell % 1 != 0)


def without_total(sheet: Table, task: str) -> tuple[Table, list[str]]:
    """A CSV without its last row if that sums up the others, with a note; nor empty ones below it.

    A sum is called "Total" or the like, as its task or in the first cell of a row without a task.
    """
    if sheet.separator is None or not len(sheet):
        return sheet, []
    cells = sheet.cells(task)

    def named(row: int) -> str:
        return "" if is_missing(cells[row]) else str(cells[row]).strip()

    kept = len(cells)
    while kept and not named(kept - 1) and not _first_word(sheet, kept - 1):
        kept -= 1
    notes = []
    last = named(kept - 1) if kept > 1 else ""
    word = last or _first_word(sheet, kept - 1) if kept > 1 else ""
    if word.lower() in TOTALS and all(named(row) != last for row in range(kept - 1)):
        kept -= 1
        notes = [f'the last row, "{word}", sums up the others and was left out']
    if kept == len(cells):
        return sheet, []
    columns = {name: sheet.cells(name)[:kept] for name in sheet.columns}
    return replace(sheet, columns=columns, numbers=sheet.numbers[:kept]), notes


def _first_word(sheet: Table, row: int) -> str:
    cells = (sheet.cells(name)[row] for name in sheet.columns)
    return next((str(cell).strip() for cell in cells if not is_missing(cell)), "")


def ends_in_total(document: Document) -> bool:
    """Whether the last line of a CSV may be such a row, or an empty one of a spreadsheet."""
    if document.kind != "text":
        return False
    last = document.data[-400:].rstrip(b"\r\n").rpartition(b"\n")[2].lower()
    return not last.strip(b",;\t \r") or any(word.encode() in last for word in TOTALS)


def lists_runs(document: Document, mapping: ColumnMap) -> str | None:
    """The key under which each row lists the runs of its task, by the first row."""
    if document.kind not in ("json", "lines", "array"):
        return None
    return _list_of_runs(_first_entry(document, mapping), mapping)


def _has_rows(document: Document, mapping: ColumnMap) -> bool:
    """Whether it is JSON with a list of rows, and not one row."""
    if document.kind == "json":
        return _inner_list(document, mapping) is not None
    return document.kind in ("lines", "array")


def _numbered_rows(document: Document, mapping: ColumnMap) -> Iterator[tuple[int, RawRow]]:
    """The rows of JSON with their numbers, their cells not decoded yet; none of a single object.

    A row that lists runs is a row for each of them.
    """
    rows = _outer_rows(document, mapping)
    if (key := lists_runs(document, mapping)) is None:
        yield from rows
    else:
        yield from ((number, run) for number, row in rows for run in _rows_of_runs(row, key))


def _outer_rows(document: Document, mapping: ColumnMap) -> Iterator[tuple[int, RawRow]]:
    """The rows as the file has them, without the line that names passhat's schema."""
    shape = dict[str, msgspec.Raw]
    if document.kind == "array":
        yield from enumerate(document.entries(shape))
    elif document.kind == "json":
        inner = _inner_list(document, mapping)
        yield from enumerate(document.entries(shape, inner[0])) if inner else ()
    else:
        header = f'"{SCHEMA}"'.encode()
        for number, row in document.lines(shape):
            if "schema" not in row or bytes(row["schema"]) != header:
                yield number, row


def _first_entry(document: Document, mapping: ColumnMap) -> RawRow:
    """The first entry of the list of rows; empty if JSON is one object."""
    if document.kind != "json":
        return document.first
    inner = _inner_list(document, mapping)
    return inner[1] if inner else {}


def _first_row(document: Document, mapping: ColumnMap) -> RawRow:
    """The first row: the first run, where the entries list runs."""
    row = _first_entry(document, mapping)
    key = _list_of_runs(row, mapping)
    return row if key is None else next(_rows_of_runs(row, key))


def _raw_table(document: Document, mapping: ColumnMap) -> Table:
    """A sheet that keeps columns of short cells: most of a log is text that is seldom needed."""
    shared = _shared(document, mapping) if document.kind == "json" else {}
    kept: dict[str, list[Any]] = {name: [] for name in shared}
    held: Counter[str] = Counter()
    left: set[str] = set()
    numbers: list[int] = []
    for rows, (number, row) in enumerate(_numbered_rows(document, mapping)):
        numbers.append(number)
        for name, raw in ({**shared, **row} if shared else row).items():
            if name in left:
                continue
            if (size := len(view := memoryview(raw))) > _SHORT:
                held[name] += size * (_NESTED if view[0] in b"[{" else 1)
                if held[name] > max(_MOST_KEPT, _MOST_OF_A_CELL * rows) and name not in shared:
                    left.add(name)
                    kept[name] = []
                    continue
            column = kept.get(name)
            if column is None:
                column = kept[name] = []
                _check_width(document.name, len(kept))
            if len(column) < rows:
                column += [None] * (rows - len(column))
            try:
                column.append(_CELL.decode(raw))
            except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
                column.append(decode(document.name, raw, object))
    columns: dict[str, list[Any] | _ReadAgain] = {}
    for name, column in kept.items():
        if name in left:
            columns[name] = _ReadAgain(
                document=document, column=name, mapping=mapping, rows=len(numbers)
            )
        else:
            columns[name] = column + [None] * (len(numbers) - len(column))
    return Table(columns=columns, numbers=numbers)


def _check_width(name: str, columns: int) -> None:
    if columns > _MOST_COLUMNS:
        raise ReadError(
            f"{name}: has more than {_MOST_COLUMNS:,} columns; give a table of a row per trial"
        )


def _shared(document: Document, mapping: ColumnMap) -> dict[str, msgspec.Raw]:
    """The fields of an object that apply to all rows in its list.

    An object among them does if the user named a field inside it. How the whole ended, and what
    it took, is no fact of each entry.
    """
    asked = {name.partition(".")[0] for name in _asked_for(mapping)}
    plain = {
        key: raw
        for key, raw in document.first.items()
        if not (opener := bytes(memoryview(raw)[:1])).startswith((b"[", b"{"))
        or (opener == b"{" and key in asked)
    }
    verdicts = {column for column in verdict_columns(plain) if column not in asked}
    by_meaning = find_columns(plain, USUAL)
    verdicts |= {
        by_meaning[meaning] for meaning in (*VERDICTS, *FEATURES) if meaning in by_meaning
    } - asked
    return {key: raw for key, raw in plain.items() if key not in verdicts}


def _inside(cell: Any, path: Sequence[str]) -> Any:
    for key in path:
        cell = cell.get(key) if isinstance(cell, Mapping) else None
    return cell


def table_of_rows(rows: Sequence[Row], numbers: Sequence[int] | None = None) -> Table:
    """The cells of rows by column; rows are numbered as they come unless they have numbers."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    return Table(columns=columns, numbers=range(len(rows)) if numbers is None else numbers)


def _csv_table(document: Document) -> Table:
    lines = csv_lines(document)
    names = _header(lines)
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise ReadError(f"{document.name}, line 1: the column {few(twice)} occurs twice")
    big = document.size > _BIG
    words = [name for name in names if usual_name(name) in TRANSCRIPTS] if big else []
    kept = [place for place, name in enumerate(names) if name not in words]
    numbers: list[int] = []
    rows: list[list[str]] = []
    for line, cells in lines:
        numbers.append(line)
        rows.append([cells[at] for at in kept] if words else cells)
    columns = zip(*rows, strict=True) if rows else ([] for _ in kept)
    by_name: dict[str, Any] = dict(zip([names[place] for place in kept], columns, strict=True))
    for name in words:
        by_name[name] = _ReadAgain(document=document, column=name, mapping=USUAL, rows=len(rows))
    return Table(columns=by_name, numbers=numbers, separator=separator_of(document.data))


def _header(lines: Iterator[tuple[int, list[str]]]) -> list[str]:
    """The names in the first line, which is taken from the lines."""
    return _bare([name.strip() for name in next(lines, (1, []))[1]])


def _bare(names: list[str]) -> list[str]:
    """The names, of which the first may stand behind a # as numpy writes it."""
    bare = names[0].lstrip("# ") if names else ""
    return [bare, *names[1:]] if bare and find_columns([bare], USUAL) else names


def _json_rows(document: Document, mapping: ColumnMap) -> list[Row]:
    if document.kind == "array":
        return document.decode(list[dict[str, Any]])
    inner = _inner_list(document, mapping)
    if inner is None:
        return [document.decode(dict[str, Any])]
    whole = document.decode(dict[str, Any])
    shared = {key: whole[key] for key in _shared(document, mapping)}
    rows = whole[inner[0]]
    for odd in (row for row in rows if not isinstance(row, dict)):
        raise ReadError(
            f'{document.name}: "{short(inner[0])}" must hold objects only, but has '
            f"{short_value(odd)}"
        )
    return [{**shared, **row} for row in rows]


# An object is one run with its messages, or it holds a list with a row for each trial.


def _inner_list(document: Document, mapping: ColumnMap) -> tuple[str, RawRow] | None:
    """The one list of rows inside an object, such as {"agent": ..., "runs": [{...}]}.

    None if there is none, and if the object itself is the row: a run with its messages.
    """
    if document.rows_in is None or document.rows_in[0] is not mapping:
        lists = dict(lists_inside(document, mapping))
        key = rows_under(document.first, lists, mapping)
        row = key is None or _is_row(document, key, lists[key], mapping)
        document.rows_in = mapping, None if key is None or row else (key, lists[key])
    return document.rows_in[1]


def lists_inside(document: Document, mapping: ColumnMap = USUAL) -> Iterator[tuple[str, RawRow]]:
    """The lists of an object that may have a row for each run, with the first entry of each."""
    for key, raw in document.first.items():
        if not holds_objects(raw) or usual_name(key) in WITHIN_A_RUN:
            continue
        try:
            entries = msgspec.json.decode(raw, type=list[msgspec.Raw])[:_LOOKED_AT]
            objects = [entry for entry in entries if bytes(memoryview(entry)[:1]) == b"{"]
            first, *more = (_KEYS.decode(entry) for entry in objects)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            document.decode(dict[str, Any])  # says what is wrong, and in which line
            continue
        if not any(is_message(entry, mapping) for entry in (first, *more)):
            yield key, first


def holds_objects(raw: msgspec.Raw) -> bool:
    """Whether a value is a list whose first entry is an object.

    >>> holds_objects(msgspec.Raw(b'[{"role": "user"}]')), holds_objects(msgspec.Raw(b"[1]"))
    (True, False)
    """
    text = bytes(memoryview(raw)[:64]).lstrip()
    return text.startswith(b"[") and text[1:].lstrip().startswith(b"{")


def is_message(entry: Collection[str], mapping: ColumnMap) -> bool:
    """Whether the keys of an entry are those of a message: somebody's, and no run of a task."""
    return "role" in entry and len(_says(entry, mapping)) < 2


def rows_under(
    names: Collection[str], lists: Mapping[str, Collection[str]], mapping: ColumnMap
) -> str | None:
    """Which of the lists of objects under some of the names has a row for each run.

    `lists` has the keys of the first entry of each. None if the object itself is the row, or if
    nothing says which list it is. A list is asked for by the task or the verdict inside it;
    where neither is known anywhere, the only list shows the user what there is to name.
    """
    own = _says([name for name in names if name not in lists], mapping)
    inside = {key: _says(entry, mapping) for key, entry in lists.items()}
    for needed in ({"task", "verdict"}, {"verdict"}, {"task"}):
        fit = [key for key, says in inside.items() if needed <= says]
        if len(fit) > 1:
            return None
        if fit:
            (key,) = fit
            if needed == {"task"} and len(own) == 2:
                return None
            # One task with several verdicts: its runs, or what was checked of one run.
            named = bool(_verdicts_asked_for(mapping)) or usual_name(key) in _LISTS_OF_RUNS
            parts = needed == {"verdict"} and (usual_name(key) in _CHECKS or not named)
            return None if parts and "task" in own else key
    return next(iter(lists)) if len(lists) == 1 and not own else None


def _says(names: Collection[str], mapping: ColumnMap) -> set[str]:
    """What some keys say of a run: its "task", its "verdict", by the user's names or the usual."""
    usual = find_columns(names, USUAL)
    meanings = set()
    if all(has_column(names, part) for part in name_parts(names, mapping.task or "")) or (
        not mapping.task and "task" in usual
    ):
        meanings.add("task")
    asked = _verdicts_asked_for(mapping)
    if any(has_column(names, usual.get(name, name)) for name in asked) or (
        not asked and not usual.keys().isdisjoint(VERDICTS)
    ):
        meanings.add("verdict")
    return meanings


def _verdicts_asked_for(mapping: ColumnMap) -> list[str]:
    tests = parse_pass_if(mapping.pass_if) if mapping.pass_if else ()
    return [test.column for test in tests] or [n for n in (mapping.passed, mapping.score) if n]


def _asked_for(mapping: ColumnMap) -> list[str]:
    """All columns that the user named."""
    chosen = mapping.chosen().values()
    return [*(part for name in chosen for part in name.split(",")), *_verdicts_asked_for(mapping)]


def _is_row(document: Document, key: str, entry: RawRow, mapping: ColumnMap) -> bool:
    """Whether an object is one run itself, and its list has more verdicts on parts of that run."""
    own = [name for name in document.first if name != key]
    if len(_says(own, mapping)) < 2:
        return False
    if usual_name(key) in _CHECKS:
        return True
    outer, inner = find_columns(own, mapping), find_columns(entry, mapping)
    value = msgspec.json.decode(document.first.get(outer.get("passed", ""), b"null"))
    if not isinstance(value, (bool, str)) or outcome_of(value) is None:
        return False  # a count or a rate of the runs in the list
    task = msgspec.json.decode(document.first.get(outer["task"], b"null"))
    if "task" in inner and msgspec.json.decode(entry.get(inner["task"], b"null")) != task:
        return False
    raise ReadError(
        f"{document.name}: says itself how {short_value(task)} ended "
        f'("{short(outer["passed"])}": {short_value(value)}) and has more verdicts on it in '
        f'"{short(key)}"; save that list as a file if each entry is a trial, or leave it out '
        "if the file is one trial"
    )


def _list_of_runs(row: RawRow, mapping: ColumnMap) -> str | None:
    """The key under which a row lists runs, each with a verdict or a score; None if it does not.

    >>> row = {"id": msgspec.Raw(b'"a"'), "trials": msgspec.Raw(b'[{"pass": true}]')}
    >>> _list_of_runs(row, USUAL)
    'trials'
    """
    for key in (name for name in row if usual_name(name) in LISTS):
        runs = _runs(row[key])
        if runs and "verdict" in _says(runs[0], mapping):
            return key
    return None


def _rows_of_runs(row: RawRow, key: str) -> Iterator[RawRow]:
    """A row for each run; what the outer row sums up of them is left out.

    Its "id" is the task if nothing else is.
    """
    by_meaning = find_columns((name for name in row if name != key), USUAL)
    summed = {by_meaning.get(meaning) for meaning in VERDICTS}
    outer = {
        name: value
        for name, value in row.items()
        if name != key and name not in summed and usual_name(name) not in COUNTS | RATES
    }
    if "task" not in by_meaning and "id" in outer:
        outer["task"] = outer.pop("id")
    for run in _runs(row.get(key)):
        yield {
            **outer,
            **{name: value for name, value in run.items() if name != by_meaning.get("task")},
        }


def _runs(raw: msgspec.Raw | None) -> list[dict[str, msgspec.Raw]]:
    """The runs in a list of objects; none in anything else."""
    if raw is None:
        return []
    try:
        return msgspec.json.decode(raw, type=list[dict[str, msgspec.Raw]])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []


# Numbers as people write them: with a decimal comma, or with a mark of money or of percent.

SEPARATORS = (";", "\t")
"""With these between cells, a comma may be part of a number."""

_POWER = r"(?:[eE][+-]?\d+)?"
_COMMA = re.compile(rf"[+-]?\d*,\d+{_POWER}")
_WHOLE = re.compile(rf"[+-]?\d+{_POWER}")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")

# A decimal comma may stay: whether it is one is seen once the marks are gone.
_NUMBER = r"[+-]?[.,]?\d[\d.,]*(?:[eE][+-]?\d+)?"
_CURRENCY = r"[$€£¥]|USD|EUR|GBP|JPY"
_MONEY = re.compile(rf"(?P<mark>{_CURRENCY})\s?({_NUMBER})|({_NUMBER})\s?(?P<after>{_CURRENCY})")
_PERCENT = re.compile(rf"({_NUMBER})\s?%")


def with_points(cells: Sequence[Any]) -> list[str] | None:
    """The cells of a column with points for their decimal commas.

    None if there is no comma, if a cell is no such number, or if every comma may be a
    thousands separator.

    >>> with_points(["0,9", "1", "0,25"])
    ['0.9', '1', '0.25']
    >>> with_points(["1,234", "2,500"]) is with_points(["0,9", "0.8"]) is None
    True
    """
    numbers = [str(cell).strip() for cell in cells if not is_missing(cell)]
    written = [text for text in numbers if _COMMA.fullmatch(text)]
    if all(_THOUSANDS.fullmatch(text) for text in written):  # or there is none
        return None
    if not all(_COMMA.fullmatch(text) or _WHOLE.fullmatch(text) for text in numbers):
        return None
    return [str(cell).replace(",", ".") for cell in cells]


def without_commas(
    sheet: Table, by_meaning: Mapping[str, str], tests: Sequence[ColumnCondition]
) -> tuple[Table, list[str]]:
    """Decimal commas as points where the separator leaves them free, and the note that says so."""
    if sheet.separator not in SEPARATORS:
        return sheet, []
    compared = [by_meaning.get(test.column, test.column) for test in tests]
    read = {
        column: points
        for column in dict.fromkeys((*number_columns(by_meaning), *compared))
        if (points := with_points(sheet.cells(column))) is not None
    }
    if not read:
        return sheet, []
    column, points = next(iter(read.items()))
    at = next(i for i, cell in enumerate(sheet.cells(column)) if cell != points[i])
    example = f"{sheet.cells(column)[at]} is {points[at]}"
    note = f"decimal commas were read as points in {few(read)} ({example})"
    return replace(sheet, columns={**sheet.columns, **read}), [note]


def number_columns(by_meaning: Mapping[str, str]) -> list[str]:
    """The columns that may hold numbers."""
    return [
        by_meaning[meaning] for meaning in ("passed", "score", *FEATURES) if meaning in by_meaning
    ]


def comma_fault(cell: Any) -> str | None:
    """The error for a cell that is a number but for its comma; None for any other.

    >>> comma_fault("1,234")
    "'1,234' may be 1.234 or 1234; write numbers with a point, or without any mark"
    """
    text = _text(cell)
    if _THOUSANDS.fullmatch(text):
        meant = f"{text.replace(',', '.')} or {text.replace(',', '')}"
        meant = meant if text.count(",") == 1 else short(text.replace(",", ""))
        hint = "write numbers with a point, or without any mark"
        return f"{short_value(cell)} may be {meant}; {hint}"
    if _COMMA.fullmatch(text):
        return (
            f"{short_value(cell)} has a decimal comma; write {short(text.replace(',', '.'))} with "
            "a point (commas are read where ; or tabs separate cells and the whole column is "
            "written so)"
        )
    return None


def without_marks(
    name: str, sheet: Table, by_meaning: Mapping[str, str], tests: Sequence[ColumnCondition]
) -> tuple[Table, frozenset[str], list[str]]:
    """The sheet with plain numbers, which of its columns were percentages, and notes on both.

    Looked at are costs, for money; scores, for percentages; and what is compared with a number.
    """
    compared = [by_meaning.get(t.column, t.column) for t in tests if isinstance(t.value, float)]
    plain: dict[str, list[Any]] = {}
    notes, percents = [], []
    for column in dict.fromkeys((*_named("cost", by_meaning), *compared)):
        if (money := _without_money(name, column, sheet.cells(column))) is not None:
            plain[column], note = money
            notes.append(note)
    for column in dict.fromkeys((*_named("score", by_meaning), *compared)):
        if (numbers := _without_percent(name, column, sheet.cells(column))) is not None:
            _refuse_shares(name, column, tests, by_meaning)
            plain[column] = numbers
            percents.append(column)
            which = f'percentages of "{short(column)}" were'
            example = next(plain for plain in numbers if not is_missing(plain))
            share = with_points([example]) or [example]
            read = [f"compared as they are: {example}% is {example}"] if column in compared else []
            if column == by_meaning.get("score"):
                read.append(f"read as shares: {example}% is a score of {as_number(*share) / 100:g}")
            notes.append(f"{which} {', and '.join(read)}")
    if plain:
        sheet = replace(sheet, columns={**sheet.columns, **plain})
    return sheet, frozenset(percents), notes


def shares(cells: Iterable[Any]) -> list[float]:
    """Percentages without their mark as shares of 1.

    >>> shares(["66", "100"])
    [0.66, 1.0]
    """
    return [as_number(cell) / 100 for cell in cells]


def _named(meaning: str, by_meaning: Mapping[str, str]) -> list[str]:
    return [by_meaning[meaning]] if meaning in by_meaning else []


def _without_money(name: str, column: str, cells: Sequence[Any]) -> tuple[list[Any], str] | None:
    if all(map(_is_digits, cells)):  # no mark before or after any of them
        return None
    amounts = [_MONEY.fullmatch(_text(cell)) for cell in cells]
    marked = [amount for amount in amounts if amount]
    if not marked:
        return None
    marks = list(dict.fromkeys(amount["mark"] or amount["after"] for amount in marked))
    if len(marks) > 1:
        raise ReadError(
            f'{name}, column "{short(column)}": holds several currencies ({" and ".join(marks)}); '
            "write all amounts in one"
        )
    plain = [
        amount[2] or amount[3] if amount else cell
        for amount, cell in zip(amounts, cells, strict=True)
    ]
    example = f"{marked[0][0]} is {marked[0][2] or marked[0][3]}"
    return plain, f'"{short(column)}" was read without its {marks[0]}: {example}'


def _without_percent(name: str, column: str, cells: Sequence[Any]) -> list[Any] | None:
    if all(map(_is_digits, cells)):
        return None
    shown = [_PERCENT.fullmatch(_text(cell)) for cell in cells]
    if not any(shown):
        return None
    for cell, percent in zip(cells, shown, strict=True):
        if percent is None and not is_missing(cell):
            marked = next(texts[0] for texts in shown if texts)
            raise ReadError(
                f'{name}, column "{short(column)}": holds {marked}, but also {short_value(cell)}; '
                "write all of them as percentages, or none"
            )
    return [percent[1] if percent else cell for cell, percent in zip(cells, shown, strict=True)]


def _refuse_shares(
    name: str, column: str, tests: Sequence[ColumnCondition], by_meaning: Mapping[str, str]
) -> None:
    """Refuse to compare percentages with a share such as 0.6: nearly all of them are above it."""
    for test in tests:
        value = test.value
        own = by_meaning.get(test.column, test.column) == column
        if own and isinstance(value, float) and 0 < value <= 1:
            raise ReadError(
                f'{name}, column "{short(column)}": holds percentages, which are compared as they '
                f"are: write `pass_if='{short(test.column)}{test.symbol}{100 * value:g}'` for "
                f"{100 * value:g}%, not {value:g}"
            )


def _is_digits(cell: Any) -> bool:
    """Whether a cell begins and ends with a digit, as plain numbers do."""
    return isinstance(cell, str) and cell[:1].isdigit() and cell[-1:].isdigit()


def _text(cell: Any) -> str:
    return cell.strip() if isinstance(cell, str) else ""


# How a table was read, and the errors of those that hold no trials or say two things.

_NOTHING = (
    "no outcome; `missing='error'` counts such rows as errors, `missing='fail'` as failures, "
    "`missing='exclude'` leaves them out"
)
_MOST_FAULTS = 10
"""Rows that one error names."""


def table_facts(by_meaning: Mapping[str, str], mapping: ColumnMap) -> dict[str, str]:
    """Which column became what, and what replaces columns that are missing."""
    named = {meaning: f'column "{short(column)}"' for meaning, column in by_meaning.items()}
    if "at" in named:
        named["factor"] = named.pop("at")
    outcome = named.pop("passed", "")
    if not outcome:
        outcome = f'a "{short(by_meaning["score"])}" of 1 passes' if "score" in by_meaning else ""
    run = named.pop("trial", "order of rows")
    first = {"system": "file name", "task": "", "run": run, "outcome": outcome}
    return {**first, "score": "", "family": "", "started": "", **named}


def aggregates(
    name: str,
    columns: Collection[str],
    by_meaning: Mapping[str, str],
    mapping: ColumnMap,
    cells: Callable[[str], Sequence[Any]],
) -> ReadError | None:
    """The error of a table that has one row for all runs of a task."""
    column = aggregate_column(columns, by_meaning, mapping, cells)
    if column is None:
        return None
    return ReadError(
        f'{name}: holds one row for all trials of a task (column "{short(column)}"), not trials; '
        "give the file that has a row for each trial (TraceLens: trials.json), or name the columns "
        "with `task` and `passed` if each row is one run"
    )


def means(
    name: str,
    columns: Collection[str],
    by_meaning: Mapping[str, str],
    mapping: ColumnMap,
    cells: Callable[[str], Sequence[Any]],
) -> ReadError | None:
    """The error of a table of scores that are likely means: read as trials, none would pass."""
    if not are_means(columns, by_meaning, mapping, cells):
        return None
    score = short(by_meaning["score"])
    return ReadError(
        f'{name}: has one row for each task, and no "{score}" is 1, which is what passes unless '
        "you say so: are they means of several trials? Then give a row for each trial. If each row "
        f"is one trial, say what passes, such as `pass_if='{score}>=0.8'`, or `score={score!r}` if "
        "none did"
    )


def conflicting(where: str, conflict: Conflict) -> ReadError:
    """The error of two columns that disagree on how a trial ended."""
    column, two = conflict.columns
    first, second = map(short_value, conflict.cells)
    return ReadError(
        f'{where}: the columns "{short(column)}" ({first}) and "{short(two)}" ({second}) '
        f"disagree on whether the trial passed; choose one with `passed={short(column)!r}` or "
        f"`passed={short(two)!r}`"
    )


def never_holds(name: str, test: ColumnCondition, words: Collection[str]) -> ReadError:
    """The error of a comparison with a word that its column never holds: likely a typo."""
    known = sorted(words)
    near = closest(str(test.value), known)
    hint = f' Did you mean "{short(near)}"?' if near else ""
    return ReadError(
        f'{name}: "{short(test.column)}" is never "{short(str(test.value))}" (`pass_if`); it holds '
        f"{few(known, 8)}.{hint}"
    )


def never_met(
    pass_if: str,
    words: Mapping[str, Collection[str]],
    ranges: Mapping[str, tuple[float, float]],
) -> str:
    """The note on a condition that no trial meets, with what the compared columns hold.

    >>> never_met("score>=80", {}, {"score": (0.1, 0.9)})
    'no trial meets score>=80: score is 0.1 to 0.9'
    """
    held = [f"{short(column)} is {few(sorted(known), 4)}" for column, known in words.items()]
    for column, (low, high) in ranges.items():
        held.append(f"{short(column)} is {low:g}" + (f" to {high:g}" if low < high else ""))
    return f"{NEVER_MET}{pass_if}: {', '.join(held)}"


def compared_ranges(
    tests: Iterable[ColumnCondition], cells: Callable[[str], Iterable[Any]]
) -> dict[str, tuple[float, float]]:
    """The least and the greatest number of each column that the user compares with a number."""
    ranges = {}
    for column in {test.column: None for test in tests if isinstance(test.value, float)}:
        numbers = []
        for cell in cells(column):
            with suppress(ValueError):  # a word for an error, or an empty cell
                numbers.append(as_number(cell))
        if known := [number for number in numbers if number == number]:
            ranges[column] = min(known), max(known)
    return ranges


def verdicts_of(tests: Sequence[ColumnCondition], by_meaning: Mapping[str, str]) -> list[str]:
    """The columns that say how a row ended: those that are compared, or the one of verdicts."""
    usual = by_meaning.get("passed") or by_meaning.get("score", "")
    return [by_meaning.get(test.column, test.column) for test in tests] or [usual]


def no_outcome(
    name: str,
    where: Callable[[int], str],
    rows: Sequence[int],
    by_meaning: Mapping[str, str],
    sheet: Table,
    tests: Sequence[ColumnCondition],
) -> ReadError:
    """The error of rows that do not say how their trials ended: the first, and up to nine more."""
    columns = verdicts_of(tests, by_meaning)
    fault = _first_fault(name, where(rows[0]), rows[0], by_meaning, sheet, tests)
    if len(rows) == 1:
        return ReadError(fault)
    faults = [
        f"{where(row)} ({few(_shown(sheet.cells(column)[row]) for column in columns)})"
        for row in rows[1:_MOST_FAULTS]
    ]
    more = f" and {len(rows) - _MOST_FAULTS:,} more" if len(rows) > _MOST_FAULTS else ""
    empty = [any(is_missing(sheet.cells(c)[row]) for c in columns) for row in rows]
    hint = ""
    if empty[0] and not all(empty):
        hint = "; `error_words` names words that say a trial broke"
    elif any(empty) and not empty[0]:
        hint = "; `missing` (fail, error or exclude) says what becomes of rows with nothing"
    return ReadError(f"{fault}. Also {', '.join(faults)}{more}{hint}")


def _shown(cell: Any) -> str:
    return "nothing" if is_missing(cell) else short_value(cell)


def _first_fault(
    name: str,
    where: str,
    row: int,
    by_meaning: Mapping[str, str],
    sheet: Table,
    tests: Sequence[ColumnCondition],
) -> str:
    for column in verdicts_of(tests, by_meaning):
        cell = sheet.cells(column)[row]
        fault = _NOTHING if is_missing(cell) else comma_fault(cell)
        if fault:
            return f'{name}, {where}, column "{short(column)}": {fault}'
    if tests:
        shown = few(
            f"{short(column)} is {short_value(sheet.cells(column)[row])}"
            for column in verdicts_of(tests, by_meaning)
        )
        return f"{name}, {where}: `pass_if` compares with a number, but {shown}"
    usual = by_meaning.get("passed") or by_meaning.get("score", "")
    cells, called = sheet.cells(usual), short(usual)
    if isinstance(cells[row], Mapping) and cells[row]:
        field = short(next(iter(cells[row])))
        return (
            f'{name}, {where}, column "{called}": holds objects; name the field inside that says '
            f"whether the trial passed, such as `passed='{called}.{field}'`"
        )
    if sheet.merged:
        return (
            f"{name}, {where}, {sheet.merged}: {short_value(cells[row])} does not say whether the "
            f"trial passed. They hold {seen(cells)}; which words say that a trial broke is "
            "`error_words`"
        )
    return (
        f'{name}, {where}, column "{called}": {short_value(cells[row])} does not say whether the '
        f"trial passed. The column holds {seen(cells)}; say what passes with "
        f"`pass_if='{called}==...'`, or which words say that a trial broke with `error_words`"
    )
