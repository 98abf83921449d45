"""Parquet, read by whichever library is here: pyarrow, polars or DuckDB."""

from __future__ import annotations

import functools
import importlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, Protocol

from passhat.errors import MissingExtra, ReadError
from passhat.ingest.document import Document
from passhat.ingest.query_engines import duckdb_database, duckdb_names, quoted

_ROW_BYTES = 64  # the least memory that a row takes in Python


class _File(Protocol):
    """An opened file: its columns' names, its rows, and how many bytes they would take.

    `sizes` are what is found out step by step, the cheapest first: what metadata says, then the
    length of all texts. A text that is stored once may occur in every row.
    """

    names: list[str]
    rows: int

    def sizes(self) -> Iterator[int]: ...

    def columns(self) -> dict[str, list[Any]]: ...


def parquet_names(document: Document) -> list[str]:
    """The names of the columns."""
    with _opened(document) as (file, _):
        return file.names


def parquet_columns(document: Document) -> dict[str, list[Any]]:
    """All cells by column; refused unread where they would be more than the limits allow."""
    with _opened(document) as (file, packed):
        document.limits.check_size(document.name, file.rows * _ROW_BYTES)
        for size in file.sizes():
            document.limits.check_size(document.name, size, packed)
        return file.columns()


@contextmanager
def _opened(document: Document) -> Iterator[tuple[_File, int]]:
    kind, faults = _library()
    with document.stream() as stream:
        packed = stream.seek(0, io.SEEK_END)
        stream.seek(0)
        try:
            yield kind(document, stream), packed
        except faults as error:
            first = str(error).strip().partition("\n")[0]
            raise ReadError(f"{document.name}: not a valid Parquet file ({first})") from error


def _library() -> tuple[Callable[[Document, BinaryIO], _File], tuple[type[BaseException], ...]]:
    """How the first library that is here opens a file, and how it complains of one."""
    libraries: tuple[tuple[str, Any, Callable[[Any], tuple[type[BaseException], ...]]], ...] = (
        ("pyarrow", _Arrow, lambda m: (m.ArrowException, UnicodeDecodeError)),
        (
            "polars",
            _Polars,
            lambda m: (m.exceptions.PolarsError, m.exceptions.PanicException),
        ),
        ("duckdb", _DuckDb, lambda m: (m.Error,)),
    )
    for name, kind, faults in libraries:
        with suppress(ImportError):
            return kind, (*faults(importlib.import_module(name)), OSError)
    raise MissingExtra("reading Parquet", "frames")


class _Arrow:
    def __init__(self, document: Document, stream: BinaryIO) -> None:
        del document
        from pyarrow import parquet

        self._stream, self._file = stream, parquet.ParquetFile(stream)
        self.names = list(self._file.schema_arrow.names)
        self.rows = int(self._file.metadata.num_rows)

    def sizes(self) -> Iterator[int]:
        metadata = self._file.metadata
        groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
        yield sum(group.total_byte_size for group in groups)
        yield sum(map(_text_length, self._table.columns))

    def columns(self) -> dict[str, list[Any]]:
        return dict(self._table.to_pydict())

    @functools.cached_property
    def _table(self) -> Any:
        """All of it, each text once: one that is repeated a million times takes no more."""
        import pyarrow
        from pyarrow import parquet

        text = (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view())
        kinds = zip(self.names, self._file.schema_arrow.types, strict=True)
        texts = [name for name, kind in kinds if kind in text]
        return parquet.ParquetFile(self._stream, read_dictionary=texts).read()


def _text_length(column: Any) -> int:
    from pyarrow import compute

    if not hasattr(column.type, "index_type"):
        return 0
    lengths = (
        compute.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks
    )
    return sum(compute.sum(chunk).as_py() or 0 for chunk in lengths)


class _Polars:
    def __init__(self, document: Document, stream: BinaryIO) -> None:
        import polars

        self._polars = polars
        source = document.path if document.path and not document.data else stream
        self._frame = polars.scan_parquet(source, glob=False)
        self._schema = self._frame.collect_schema()
        self.names = list(self._schema.names())
        self.rows = int(self._frame.select(polars.len()).collect().item())

    def sizes(self) -> Iterator[int]:
        texts = [name for name, kind in self._schema.items() if kind == self._polars.String]
        lengths = [self._polars.col(name).str.len_bytes().sum() for name in texts]
        found = self._frame.select(lengths).collect(engine="streaming")
        yield sum(found.row(0)) if texts else 0

    def columns(self) -> dict[str, list[Any]]:
        return dict(self._frame.collect().to_dict(as_series=False))


class _DuckDb:
    def __init__(self, document: Document, stream: BinaryIO) -> None:
        del stream  # it reads files by their path alone
        if document.path is None:
            raise MissingExtra("reading Parquet that is no file", "frames")
        self._connection = duckdb_database().cursor()
        self._file = duckdb_names([document.path])
        described = self._rows("DESCRIBE SELECT * FROM read_parquet(?)")
        self._kinds = {str(name): str(kind) for name, kind, *_ in described}
        self.names = list(self._kinds)
        self.rows = int(self._rows("SELECT COUNT(*) FROM read_parquet(?)")[0][0])

    def sizes(self) -> Iterator[int]:
        sizes = self._rows("SELECT total_uncompressed_size FROM parquet_metadata(?)")
        yield sum(int(size) for (size,) in sizes)
        texts = [name for name, kind in self._kinds.items() if kind == "VARCHAR"]
        lengths = [f"SUM(STRLEN({quoted(name)}))" for name in texts]
        query = f"SELECT {', '.join(lengths)} FROM read_parquet(?)"  # noqa: S608 # names are quoted
        yield sum(int(size or 0) for size in self._rows(query)[0]) if texts else 0

    def columns(self) -> dict[str, list[Any]]:
        rows = self._rows("SELECT * FROM read_parquet(?)")
        values = zip(*rows, strict=True) if rows else ([] for _ in self.names)
        return {name: list(cells) for name, cells in zip(self.names, values, strict=True)}

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return list(self._connection.execute(query, self._file).fetchall())
