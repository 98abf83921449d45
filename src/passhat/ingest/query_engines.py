"""Parquet by whichever library is here, and query engines for tables too big to hold."""

from __future__ import annotations

import functools
import glob
import importlib
import importlib.util
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from passhat.errors import MissingExtra, ReadError
from passhat.ingest.document import Document, check_memory_left

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
            _ParquetPolars,
            lambda m: (m.exceptions.PolarsError, m.exceptions.PanicException),
        ),
        ("duckdb", _ParquetDuckDb, lambda m: (m.Error,)),
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


class _ParquetPolars:
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
        sums = self._frame.select(lengths).collect(engine="streaming")
        yield sum(sums.row(0)) if texts else 0

    def columns(self) -> dict[str, list[Any]]:
        return dict(self._frame.collect().to_dict(as_series=False))


class _ParquetDuckDb:
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


# Query engines for tables too big to hold: polars for CSV, DuckDB for JSON Lines and Parquet.
#
# Both take the same SQL. Measured on 10 million trials (bench/reading.py), each is the faster on
# its own formats by a third to a half; where DuckDB is not installed, polars is used.
ColumnKind = Literal["text", "number", "boolean", "other"]

Shape = Literal["csv", "lines", "parquet"]

VIEW = "trials"

_COUNT = f"SELECT COUNT(*) AS n FROM {VIEW}"  # noqa: S608 # constant

_CUBIC = (1_000_000_007, 998_244_353)


class Engine(Protocol):
    """A file as a view called `trials`: its columns, and answers to SQL by column.

    `fingerprint` is an aggregate over whole numbers that is another for any n of them but 0..n-1
    and 1..n, at a fraction of what counting distinct ones costs; `fingerprints` are of 0..n-1,
    and `join` and `part` put two of them together and take one away.
    """

    @property
    def columns(self) -> Mapping[str, ColumnKind]: ...

    @property
    def rows(self) -> int:
        """How many rows there are: by the metadata alone, where a file has any."""

    @property
    def join(self) -> np.ufunc: ...

    @property
    def part(self) -> np.ufunc: ...

    def query(self, sql: str) -> dict[str, list[Any]]: ...

    def zero_or_one(self, column: str) -> bool:
        """Whether the file's own statistics tell that a column holds 0 and 1 and nothing else."""

    def fingerprint(self, column: str) -> str: ...

    def fingerprints(self, most: int) -> NDArray[np.uint64]: ...


def dataset_files(folder: Path) -> Iterator[Path]:
    """The files of a dataset; names that begin with `_` or `.` are not data, as for any engine."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(("_", ".")))
        yield from (Path(here, name) for name in sorted(names) if not name.startswith(("_", ".")))


def quoted(column: str) -> str:
    """A column's name as SQL writes it, whatever is in it."""
    doubled = column.replace('"', '""')
    return f'"{doubled}"'


def open_engine(path: Path, shape: Shape, separator: str = ",", above: int = 0) -> Engine:
    """The engine that reads this kind of file the fastest, of those installed.

    `above` is how many lines stand above the header of a CSV.
    """
    if shape != "csv" and has_duckdb():
        return _DuckDb(path, shape)
    return _Polars(path, shape, separator, above)


class _Polars:
    join, part = np.add, np.subtract  # of unsigned numbers: modulo 2**64

    def __init__(self, path: Path, shape: Shape, separator: str, above: int) -> None:
        size = path.stat().st_size
        check_memory_left(*(least + size for least in _LEAST_FOR_POLARS))
        try:
            import polars
        except ImportError:
            raise MissingExtra("reading Parquet and big tables", "frames") from None
        self._name, self._polars = str(path), polars
        scans = {
            "csv": lambda: polars.scan_csv(path, separator=separator, skip_lines=above, glob=False),
            "lines": lambda: polars.scan_ndjson(glob.escape(str(path))),
            "parquet": lambda: polars.scan_parquet(_parts(path), glob=False),
        }
        try:
            self._frame = scans[shape]()
            schema = self._frame.collect_schema()
        except polars.exceptions.PolarsError as error:
            raise _unreadable(self._name, error) from error
        self.columns = {name: self._kind(kind) for name, kind in schema.items()}

    @property
    def rows(self) -> int:
        return int(self.query(_COUNT)["n"][0])

    def query(self, sql: str) -> dict[str, list[Any]]:
        context = self._polars.SQLContext({VIEW: self._frame})
        try:
            table = context.execute(sql).collect(engine="streaming")
        except self._polars.exceptions.PolarsError as error:
            raise _unreadable(self._name, error) from error
        return dict(table.to_dict(as_series=False))

    def zero_or_one(self, column: str) -> bool:
        del column
        return False  # polars does not show a file's statistics

    # The sum of a cubic, modulo 2**64: it equals that of 0..n-1 only if the first three power sums
    # do, which takes far more than a number that is there twice and one that is missing.

    def fingerprint(self, column: str) -> str:
        whole = f"CAST({column} AS BIGINT)"
        return f"SUM((({whole} + {_CUBIC[0]}) * {whole} + {_CUBIC[1]}) * {whole})"

    def fingerprints(self, most: int) -> NDArray[np.uint64]:
        i = np.arange(most, dtype=np.uint64)
        cubic = ((i + np.uint64(_CUBIC[0])) * i + np.uint64(_CUBIC[1])) * i
        return np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(cubic)])

    def _kind(self, kind: Any) -> ColumnKind:
        polars = self._polars
        if kind == polars.Boolean:
            return "boolean"
        if kind.is_numeric():
            return "number"
        return "text" if kind in (polars.String, polars.Categorical, polars.Enum) else "other"


class _DuckDb:
    _KINDS: Mapping[str, ColumnKind] = {"VARCHAR": "text", "BOOLEAN": "boolean"}
    _NUMBERS = ("INT", "DOUBLE", "FLOAT", "DECIMAL", "REAL")

    # The exclusive or of 64-bit hashes is its own inverse.
    join = part = np.bitwise_xor

    def __init__(self, path: Path, shape: Shape) -> None:
        import duckdb  # type: ignore[import-not-found,unused-ignore] # an extra

        self._name, self._error, self._shape = str(path), duckdb.Error, shape
        self._files = duckdb_names(_parts(path))
        self._connection = duckdb_database().cursor()
        quoted = "[" + ", ".join("'" + name.replace("'", "''") + "'" for name in self._files) + "]"
        try:
            how = self._parquet_options() if shape == "parquet" else "format = 'newline_delimited'"
            read = "read_parquet" if shape == "parquet" else "read_json"
            self._connection.execute(f"CREATE TEMP VIEW {VIEW} AS FROM {read}({quoted}, {how})")
            described = self._connection.execute(f"DESCRIBE {VIEW}").fetchall()
        except self._error as error:
            raise _unreadable(self._name, error) from error
        self.columns = {name: self._kind(kind) for name, kind, *_ in described}

    def _parquet_options(self) -> str:
        """Columns are matched by name where files differ; that costs a fifth of the whole query."""
        schemas = self._connection.execute(
            "SELECT count(DISTINCT columns) FROM (SELECT list(name || ':' || coalesce(type, '') "
            "|| ':' || coalesce(logical_type, converted_type, '')) AS columns "
            "FROM parquet_schema(?) GROUP BY file_name)",
            [self._files],
        ).fetchone()
        differ = schemas is None or schemas[0] > 1
        return f"union_by_name = {'true' if differ else 'false'}, hive_partitioning = false"

    def query(self, sql: str) -> dict[str, list[Any]]:
        try:
            result = self._connection.execute(sql)
            names = [column[0] for column in result.description or ()]
            rows = result.fetchall()
        except self._error as error:
            raise _unreadable(self._name, error) from error
        values = zip(*rows, strict=True) if rows else [() for _ in names]
        return {name: list(column) for name, column in zip(names, values, strict=True)}

    @property
    def rows(self) -> int:
        if self._shape != "parquet":
            return int(self.query(_COUNT)["n"][0])
        return sum(dict(chunk[:2] for chunk in self._chunks).values())

    def zero_or_one(self, column: str) -> bool:
        if self._shape != "parquet":
            return False
        known = [bounds for _, _, name, *bounds in self._chunks if name == column]
        # Between 0 and 1 there is nothing else only if numbers are whole.
        whole, words = {"BOOLEAN", "INT32", "INT64"}, {"0", "1", "false", "true"}
        return bool(known) and all(
            kind in whole and {low, high} <= words and missing == 0
            for kind, low, high, missing in known
        )

    @functools.cached_property
    def _chunks(self) -> list[tuple[Any, ...]]:
        """The statistics in a Parquet file on each column of each group of rows."""
        asked = (
            "file_name || '#' || row_group_id, row_group_num_rows, path_in_schema, type, "
            "stats_min_value, stats_max_value, stats_null_count"
        )
        query = f"SELECT {asked} FROM parquet_metadata(?)"  # noqa: S608 # constant
        return list(self._connection.execute(query, [self._files]).fetchall())

    def fingerprint(self, column: str) -> str:
        return f"BIT_XOR(HASH(CAST({column} AS BIGINT)))"

    def fingerprints(self, most: int) -> NDArray[np.uint64]:
        numbers = f"SELECT HASH(i) AS h FROM RANGE({int(most)}) AS numbers (i)"  # noqa: S608 # a number
        hashes = self._connection.execute(numbers)
        hashed: NDArray[np.uint64] = np.asarray(hashes.fetchnumpy()["h"], dtype=np.uint64)
        return np.concatenate([np.zeros(1, dtype=np.uint64), np.bitwise_xor.accumulate(hashed)])

    def _kind(self, kind: str) -> ColumnKind:
        if any(word in kind for word in self._NUMBERS) and "[" not in kind and "(" not in kind[:7]:
            return "number"
        return self._KINDS.get(kind, "other")


def _parts(path: Path) -> list[Path]:
    return list(dataset_files(path)) if path.is_dir() else [path]


def duckdb_names(files: Iterable[Path]) -> list[str]:
    """Files as DuckDB is given them: it takes a name for a pattern, so `[1]` must be escaped."""
    return [glob.escape(str(file)) for file in files]


_LEAST_FOR_DUCKDB = 1100 * 2**20, 480 * 2**20
"""With less left of a limit on addresses and on data DuckDB, or OpenBLAS after it, may end the
process."""

_LEAST_FOR_POLARS = 1_700_000_000, 900_000_000
"""The same beside the size of a file: it ended the process at 1,400 MB of addresses with one of
62 MB, and at 1,700 MB with one of 249."""


@functools.cache
def duckdb_database() -> Any:
    """One database in memory for all files: starting one costs 30 ms."""
    check_memory_left(*_LEAST_FOR_DUCKDB)
    import duckdb

    database = duckdb.connect()
    # Groups are sorted afterwards: keeping the order of rows would only cost memory.
    database.execute("SET preserve_insertion_order = false")
    database.execute("SET autoinstall_known_extensions = false")
    # It would be drawn on standard output, where the data goes.
    database.execute("SET enable_progress_bar = false")
    return database


def has_engine() -> bool:
    """Whether any of them is installed."""
    return has_duckdb() or importlib.util.find_spec("polars") is not None


def has_duckdb() -> bool:
    """Whether DuckDB is installed."""
    return importlib.util.find_spec("duckdb") is not None


def _unreadable(name: str, error: Exception) -> ReadError:
    first = str(error).strip().partition("\n")[0]
    if "out of memory" in first.lower():
        raise MemoryError from error
    hint = "; save it as UTF-8" if "utf-8" in first.lower() else ""
    return ReadError(f"{name}: cannot be read as a table ({first}){hint}")
