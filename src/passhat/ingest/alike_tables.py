"""Small tables with the same columns, read as one: a folder may hold thousands of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.formats import tables
from passhat.ingest.inputs import Known
from passhat.ingest.reader import Reader, TrialTable
from passhat.ingest.readers import READERS, formats_of
from passhat.ingest.rows import TOTALS, Sheet, column_names, separator_of
from passhat.ingest.written_numbers import SEPARATORS, number_columns
from passhat.records.columns import (
    CONFIGURATIONS,
    LETTER_GRADES,
    TASK_IDS,
    USUAL,
    VERDICTS,
    ColumnMap,
    find_columns,
    find_meanings,
    may_aggregate,
    usual_name,
    verdict_columns,
)

Shape = tuple[Any, ...]
Rows = tuple[Sequence[Any], Sequence[int]]

MOST_BYTES = 2**16
"""A bigger file is read by itself: there is little to save."""

MOST_HELD = 2**22
MOST_FILES = 2_000
"""How much of a folder is kept in memory, so that files of one shape are read together."""

FEWEST_FILES = 4

# Readers of these look only at the keys of a file, which are part of its shape.
_BY_KEYS = frozenset(("swe-bench", "score-array", "table"))

_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ROW = msgspec.json.Decoder(dict[str, Any])
_ROWS = msgspec.json.Decoder(list[dict[str, Any]])


class KnownShapes:
    """The shapes of tables seen so far: a file of such a shape is a table too."""

    def __init__(self, mapping: ColumnMap) -> None:
        self._mapping = mapping
        self._tables: set[Shape] = set()

    def __contains__(self, document: Document) -> bool:
        return bool(self._tables) and shape_of(document) in self._tables

    def add(self, document: Document) -> None:
        """Remember the shape of a table, if the shape alone decides that it is one."""
        shape = shape_of(document)
        if shape is None or not _BY_KEYS.issuperset(formats_of(document)):
            return
        names = column_names(document)
        if may_aggregate(tuple(names)) or tables.lacking(document.name, names, self._mapping):
            return
        self._tables.add(shape)


def read_each(
    known: Iterable[Known], mapping: ColumnMap
) -> Iterator[tuple[Document, Reader, TrialTable]]:
    """The table of each document, in order; small tables of one shape are read together."""
    held: list[Known] = []
    size = 0
    for document, reader in known:
        held.append((document, reader))
        size += len(document.data)
        if size > MOST_HELD or len(held) >= MOST_FILES:
            yield from _read_held(held, mapping)
            held, size = [], 0
    yield from _read_held(held, mapping)


def shape_of(document: Document) -> Shape | None:
    """What decides how the columns of a small table are read; None if that is not enough."""
    if document.shape is None:
        document.shape = _shape(document) or ()
    return document.shape or None


def _shape(document: Document) -> Shape | None:
    data = document.data
    if len(data) > MOST_BYTES:
        return None
    if document.kind == "text":
        header, end, _ = data.partition(b"\n")
        whole = end and header.strip() and header.count(b'"') % 2 == 0
        odd = b"\0" in header or b"\r" in header[:-1]
        return ("text", header) if whole and not odd else None
    first = document.first
    if len(first) < 2 or "schema" in first or all(name.startswith("instance_") for name in first):
        return None
    if document.kind in ("lines", "array"):
        return document.kind, *first
    return _object_shape(first) if document.kind == "json" else None


def _object_shape(first: Mapping[str, msgspec.Raw]) -> Shape | None:
    """The keys of one run, and of what it has a list of; None if that list may be runs."""
    openers = [_opener(raw) for raw in first.values()]
    if openers.count("[{") != 1:
        return "json", *first, *openers
    try:
        entries = _LIST.decode(first[list(first)[openers.index("[{")]])
        inner = tuple(_KEYS.decode(entries[0]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    shape = "json", *first, *openers, inner
    return shape if _is_one_run(tuple(first), tuple(openers), inner) else None


@lru_cache(maxsize=64)
def _is_one_run(names: tuple[str, ...], openers: tuple[str, ...], inner: tuple[str, ...]) -> bool:
    """Whether an object is one run itself, and the entries of its list have no verdicts."""
    own = [name for name, opener in zip(names, openers, strict=True) if not opener]
    outer = find_columns(own, USUAL)
    judged = "task" in outer and not outer.keys().isdisjoint(VERDICTS)
    return judged and find_columns(inner, USUAL).keys().isdisjoint(VERDICTS)


def _opener(raw: msgspec.Raw) -> str:
    view = memoryview(raw)
    start = bytes(view[:1])
    if start != b"[":
        return "{" if start == b"{" else ""
    return "[{" if bytes(view[1:64]).lstrip().startswith(b"{") else "["


def _read_held(
    held: Sequence[Known], mapping: ColumnMap
) -> Iterator[tuple[Document, Reader, TrialTable]]:
    places: dict[Shape, list[int]] = {}
    for place, (document, reader) in enumerate(held):
        if reader is READERS["table"] and (shape := shape_of(document)) is not None:
            places.setdefault(shape, []).append(place)
    read: dict[int, TrialTable | None] = {}
    for alike in places.values():
        if len(alike) >= FEWEST_FILES:
            documents = [held[place][0] for place in alike]
            read |= zip(alike, read_alike(documents, mapping), strict=True)
    for place, (document, reader) in enumerate(held):
        yield document, reader, read.get(place) or reader.read(document, mapping)


def read_alike(documents: Sequence[Document], mapping: ColumnMap) -> list[TrialTable | None]:
    """Tables of one shape as `tables.read` reads each; None for one that must be read by itself."""
    names = [name.strip() for name in column_names(documents[0])]
    parsed = [_rows_of(document, names) for document in documents]
    rows = [row for one in parsed if one for row in one[0]]
    whole = _read_whole(documents[0], names, rows, mapping) if rows else None
    if whole is None:
        return [None] * len(documents)
    found: list[TrialTable | None] = []
    start = 0
    for one in parsed:
        end = start + (len(one[0]) if one else 0)
        found.append(_piece(whole, start, end, one[1]) if one else None)
        start = end
    return found


def _rows_of(document: Document, names: Sequence[str]) -> Rows | None:
    """The rows of a document with their numbers; None if one needs an error or a note."""
    try:
        if document.kind == "text":
            return _csv_rows(document.data, len(names))
        if document.kind == "json":
            return [_ROW.decode(document.data)], [0]
        if document.kind == "array":
            rows = _ROWS.decode(document.data)
            numbers: Sequence[int] = range(len(rows))
        else:
            lines = enumerate(document.data.split(b"\n"), start=1)
            written = [(number, line) for number, line in lines if line.strip()]
            rows, numbers = [_ROW.decode(line) for _, line in written], [n for n, _ in written]
    except (msgspec.MsgspecError, csv.Error, UnicodeDecodeError, RecursionError):
        return None
    known = set(names)
    return (rows, numbers) if all(row.keys() == known for row in rows) else None


def _csv_rows(data: bytes, width: int) -> Rows | None:
    separator = separator_of(data.partition(b"\n")[0])
    reader = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=separator)
    next(reader)
    rows, numbers = [], []
    for cells in reader:
        if cells:
            rows.append(cells)
            numbers.append(reader.line_num)
    return (rows, numbers) if all(len(cells) == width for cells in rows) else None


def _read_whole(
    document: Document, names: Sequence[str], rows: Sequence[Any], mapping: ColumnMap
) -> TrialTable | None:
    """All rows as one table; None if an error or a note is about some of them only."""
    if len(set(names)) < len(names):
        return None
    if document.kind == "text":
        separator = separator_of(document.data.partition(b"\n")[0])
        cells: Iterable[Sequence[Any]] = zip(*rows, strict=True)
        sheet = Sheet(
            columns=dict(zip(names, cells, strict=True)),
            numbers=range(len(rows)),
            separator=separator,
        )
    else:
        columns = {name: [row[name] for row in rows] for name in names}
        sheet = Sheet(columns=columns, numbers=range(len(rows)))
    try:
        table = tables.read_sheet(document, sheet, mapping, repeats=lambda columns: False)
        found, _ = find_meanings(sheet.columns, mapping, sheet.cells)
    except ReadError:
        return None
    said = tables.notes_on(sheet.columns, found, mapping, own=False, repeats=lambda: False)
    return table if table.notes == said and _row_by_row(sheet, found, mapping) else None


def _row_by_row(sheet: Sheet, found: Mapping[str, str], mapping: ColumnMap) -> bool:
    """Whether what a cell means does not depend on the other cells of its file.

    Every rule of `tables.read_sheet` that looks at a whole column is named here, unless it raises
    an error or gives a note wherever it applies to some rows.
    """
    names = tuple(sheet.columns)
    others = [name for name in names if name not in found.values()]
    if any(usual_name(name) in CONFIGURATIONS and not _constant(sheet, name) for name in others):
        return False
    if "trial" not in found and any(usual_name(name) in TASK_IDS for name in others):
        return False
    tasks = sheet.cells(found["task"]) if sheet.has(found["task"]) else ()
    if any(isinstance(task, str) and _means_more(task) for task in tasks):
        return False
    numbers = number_columns(found)
    if any(isinstance(cell, (Mapping, list)) for name in numbers for cell in sheet.cells(name)):
        return False
    judging = {*verdict_columns(names), *(found[one] for one in VERDICTS if one in found)}
    words = {str(cell).strip().lower() for name in judging for cell in sheet.cells(name)}
    if not words.isdisjoint(LETTER_GRADES):
        return False
    if sheet.separator not in SEPARATORS:
        return True
    commas = any("," in cell for name in numbers for cell in sheet.cells(name))
    return not commas and mapping.pass_if is None


def _constant(sheet: Sheet, name: str) -> bool:
    cells = sheet.cells(name)
    return all(cell == cells[0] for cell in cells)


def _means_more(task: str) -> bool:
    """Whether a task may be the run of another, or a row that sums up those before it."""
    return "#" in task or task.strip().lower() in TOTALS


def _piece(whole: TrialTable, start: int, end: int, numbers: Sequence[int]) -> TrialTable | None:
    """The rows of one file; None if only their order tells them apart, which has a note."""
    columns = {name: values[start:end] for name, values in whole.columns.items()}
    if whole.left_out and end - start > 1 and tables.only_ordered(columns):
        return None
    return replace(whole, columns=columns, numbers=numbers)
