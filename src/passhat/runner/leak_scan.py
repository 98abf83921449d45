"""Searching files for secrets: texts, compressed files, archives and SQLite stores."""

from __future__ import annotations

import gzip
import io
import sqlite3
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from passhat.dataclass import dataclass
from passhat.errors import InputError
from passhat.records.redaction import Redactor

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SQLITE = b"SQLite format 3\0"
ZSTD = b"\x28\xb5\x2f\xfd"
GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"

MOST_BYTES = 2**30
"""No file, and nothing that a file unpacks to, is read beyond this."""

UNREADABLE = (
    *(OSError, EOFError, sqlite3.DatabaseError, zstd.ZstdError, zlib.error),
    *(zipfile.BadZipFile, RuntimeError),  # damaged; encrypted, or packed in an unknown way
)
"""What the readers of these formats raise for a file that they cannot read."""

SKIPPED = frozenset({".git", ".hg", ".venv", "node_modules", "__pycache__", ".mypy_cache"})
"""Folders that are not walked unless they are named themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSecret:
    """A secret in a file; `place` is a line, a table of a store, or a member of an archive.

    The secret itself is not kept: this is printed.
    """

    path: Path
    place: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}{self.place}: {self.what}"


def scan_paths(paths: Sequence[Path], redactor: Redactor) -> Iterator[FoundSecret]:
    """Every secret in these files, and in all files of these folders."""
    for path in _files(paths):
        try:
            yield from _scan_file(path, redactor)
        except UNREADABLE as error:
            raise InputError(f"{path} cannot be scanned: {error}") from error


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: there is no such file or folder")
        if path.is_dir():
            for found in sorted(path.rglob("*")):
                inner = found.relative_to(path).parts[:-1]
                if found.is_file() and not SKIPPED.intersection(inner):
                    yield found
        else:
            yield path


def _scan_file(path: Path, redactor: Redactor) -> Iterator[FoundSecret]:
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path} is larger than {MOST_BYTES} bytes: scan its parts")
    with path.open("rb") as file:
        start = file.read(len(SQLITE))
    for place, text in _texts(path, start):
        for leak in redactor.leaks(text):
            line = text.count("\n", 0, leak.start) + 1
            yield FoundSecret(path=path, place=place or f":{line}", what=leak.what)


def _texts(path: Path, start: bytes) -> Iterator[tuple[str, str]]:
    """The texts of a file, each with its place in the file; "" if lines can be counted."""
    if start == SQLITE:
        yield from _store_texts(path)
    elif start.startswith(ZIP):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                with archive.open(member) as file:
                    yield f"!{member.filename}", _text(file.read(MOST_BYTES))
    else:
        yield "", _text(_unpacked(path.read_bytes()))


def _store_texts(path: Path) -> Iterator[tuple[str, str]]:
    """Every text and every blob of a SQLite file, as far as a blob is text once unpacked."""
    # Read from the disk and never changed: a store may be in use.
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as store:
        # A virtual table keeps what it has in others, which are read, and may not show it itself.
        tables = store.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ).fetchall()
        for (table,) in tables:
            quoted = '"' + table.replace('"', '""') + '"'
            for row in store.execute(f"SELECT * FROM {quoted}"):  # noqa: S608 - quoted above
                for value in row:
                    if isinstance(value, str):
                        yield f" (table {table})", value
                    elif isinstance(value, bytes):
                        yield f" (table {table})", _text(_unpacked(value))


def _unpacked(data: bytes) -> bytes:
    if data.startswith(ZSTD):
        return zstd.ZstdDecompressor().decompress(data, max_length=MOST_BYTES)
    if data.startswith(GZIP):
        with gzip.open(io.BytesIO(data)) as file:
            return file.read(MOST_BYTES)
    return data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
