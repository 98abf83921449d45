"""The store as one SQLite file: many processes may write at once, and a reader can only read."""

from __future__ import annotations

import os
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

from passhat.errors import HistoryError, StoreError
from passhat.history.database import (
    FOUND,
    MIGRATIONS,
    Duplicate,
    NoHistoryYet,
    Row,
    Values,
    damaged,
    refuse_newer,
    stale,
    statements,
    word_forms,
)
from passhat.messages import few

BUSY_SECONDS = 30.0
MANY_PAGES = 400
"""Pages of the full-text index that may be merged for one search: 0.4 ms of CPU each."""

SYNCHRONOUS = "FULL"
"""Each commit waits for the disk: trials that were paid for outlive a power cut."""


class SqliteDatabase:
    """A connection to a SQLite file."""

    clock = "((julianday('now') - 2440587.5) * 86400.0)"
    joined = "group_concat"

    def __init__(self, connection: sqlite3.Connection, *, path: Path, read_only: bool) -> None:
        self.name = str(path)
        self._path = path
        self.read_only = read_only
        self._connection = connection

    @classmethod
    def open(cls, path: Path, *, read_only: bool) -> Self:
        """The file at `path`; created, or updated to the current version, unless `read_only`."""
        if read_only and not path.exists():
            raise NoHistoryYet(path)
        try:
            if not read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
                if not path.exists():
                    path.touch(0o600)  # transcripts are for nobody else's eyes
            database = cls(_connect(path, read_only=read_only), path=path, read_only=read_only)
            database._prepare()
        except sqlite3.OperationalError as error:
            raise _unusable(path, error) from None
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            fault = " ".join(str(error).split())
            raise HistoryError(f"{path}: not a passhat history store ({fault})") from None
        except OSError as error:
            raise StoreError(f"{path}: the store cannot be made ({error.strerror})") from None
        return database

    def execute(self, sql: str, values: Values = (), /) -> sqlite3.Cursor:
        try:
            return self._connection.cursor(self._rows).execute(sql, values)
        except _ERRORS as error:
            raise self._failure(error) from None

    def _rows(self, connection: sqlite3.Connection) -> _Rows:
        rows = _Rows(connection)
        rows.failure = self._failure
        return rows

    def executemany(self, sql: str, rows: Iterable[Values], /) -> None:
        try:
            self._connection.executemany(sql, rows)
        except sqlite3.Error as error:
            raise self._failure(error) from None

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Row], /) -> None:
        marks = ", ".join("?" * len(columns))
        self.executemany(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})",  # noqa: S608  our names
            rows,
        )

    @contextmanager
    def writing(self) -> Iterator[None]:
        # The write lock is taken at once: a transaction that upgrades later could fail.
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            # SQLite has already rolled back where the disk is full.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self.execute("COMMIT")

    def hold_still(self) -> None:
        self.execute("BEGIN")

    def query(self, sql: str, *, limit: int) -> tuple[list[str], list[Row]]:
        with closing(_connect(self._path, read_only=True)) as connection:
            connection.execute("PRAGMA query_only = 1")
            connection.set_authorizer(_only_reading)
            try:
                cursor = connection.execute(sql)
                rows = cursor.fetchmany(limit)
            except sqlite3.Error as error:
                refused = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH
                why = "must be a SELECT query; the store is only read" if refused else error
                raise HistoryError(f"`sql`: {why}") from None
            return [column[0] for column in cursor.description or ()], rows

    @property
    def full_text(self) -> bool:
        known = "SELECT count(*) FROM sqlite_master WHERE name = 'spoken_words'"
        return self._has_fts5() and bool(self.execute(known).fetchone()[0])

    def _has_fts5(self) -> bool:
        built = "SELECT count(*) FROM pragma_module_list WHERE name = 'fts5'"
        return bool(self._connection.execute(built).fetchone()[0])

    def add_words(self, keys: Sequence[Row], texts: Sequence[str], /) -> None:
        last = self.execute("SELECT seq FROM sqlite_sequence WHERE name = 'spoken'").fetchone()
        first = (0 if last is None else last[0]) + 1
        rows = [(first + i, *key) for i, key in enumerate(keys)]
        self.insert("spoken", ("id", "run", "system", "task", "trial"), rows)
        words = [(first + i, text) for i, text in enumerate(texts)]
        self.insert("spoken_words", ("rowid", "words"), words)

    def forget_words(self) -> bool:
        of_deleted = (
            "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'spoken'), 0) "
            "<> (SELECT count(*) FROM spoken)"
        )
        if not self.full_text or not self.execute(of_deleted).fetchone()[0]:
            return False
        self.execute("INSERT INTO spoken_words (spoken_words) VALUES ('delete-all')")
        self.execute("DELETE FROM spoken")
        self.execute("DELETE FROM sqlite_sequence WHERE name = 'spoken'")
        return True

    def find_words(self, words: Sequence[str], limit: int, /) -> Iterator[list[Row]]:
        *others, last = [[f'"{form}"' for form in word_forms(word)] for word in words]
        yield self._newest([*others, last], limit)
        # All words with a beginning are merged before the first trial is known: a second where
        # they are many. The newest trials are likely to have one of so many.
        if self._pages_of_beginning(words[-1]) > MANY_PAGES:
            newest = self._newest(others, 10 * limit)
            yield newest
            if len(newest) < 10 * limit:
                return
        yield self._newest([*others, [f"{form}*" for form in last]], limit)

    def _newest(self, forms: Sequence[Sequence[str]], limit: int) -> list[Row]:
        """The newest trials that have one form of each word."""
        if not forms:
            newest = "SELECT * FROM spoken ORDER BY id DESC LIMIT ?"
            return self.execute(FOUND.format(newest), (limit,)).fetchall()
        matching = (
            "SELECT p.* FROM spoken_words f JOIN spoken p ON p.id = f.rowid "
            "WHERE spoken_words MATCH ? ORDER BY f.rowid DESC LIMIT ?"
        )
        wanted = " AND ".join(f"({' OR '.join(each)})" for each in forms)
        return self.execute(FOUND.format(matching), (wanted, limit)).fetchall()

    def _pages_of_beginning(self, beginning: str) -> int:
        """How many pages of the index hold the words that begin so, without reading them."""
        plain = "".join(
            letter for letter in unicodedata.normalize("NFKD", beginning)
            if not unicodedata.combining(letter)
        )  # fmt: skip
        pages = 0
        for form in word_forms(plain):
            start = b"0" + form.encode()
            pages += self.execute(_PAGES, (start, start + b"\xff")).fetchone()[0]
        return pages

    def change_mark(self) -> int:
        return int(self.execute("PRAGMA data_version").fetchone()[0])

    def compact(self) -> None:
        self.execute("VACUUM")
        self.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def check(self, table: str | None = None) -> None:
        row = self.execute(f"PRAGMA quick_check({1 if table is None else table})").fetchone()
        if row is None or row[0] != "ok":
            raise damaged(self.name, row and str(row[0]).splitlines()[-1])

    def another(self, *, read_only: bool) -> SqliteDatabase:
        return SqliteDatabase.open(self._path, read_only=read_only)

    def reconnect(self) -> None:
        """A new connection in the place of one that broke."""
        self._connection.close()
        self._connection = _connect(self._path, read_only=self.read_only)
        self._prepare()

    def close(self) -> None:
        self._connection.close()

    def _failure(self, error: Exception) -> Exception:
        if isinstance(error, sqlite3.IntegrityError):
            return Duplicate(str(error))
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # none: it is no text
        return damaged(self.name, error) if code & 0xFF in _DAMAGE else _unusable(self._path, error)

    def _prepare(self) -> None:
        try:
            self._refuse_foreign()
            if self.read_only:
                self._connection.execute("PRAGMA query_only = 1")
                self._check_readable()
                return
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
            self._connection.execute("PRAGMA foreign_keys = 1")
            self._migrate()
        except BaseException:
            self.close()
            raise

    def _migrate(self) -> None:
        """Update the store to the current version, in one transaction that others wait for."""
        if self._version() == len(MIGRATIONS):
            return
        with self.writing():
            version = self._version()
            refuse_newer(self.name, version)
            for migration in MIGRATIONS[version:]:
                for statement in statements(migration.sqlite):
                    if "USING fts5" not in statement or self._has_fts5():
                        self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _check_readable(self) -> None:
        """Raise if the store would have to be updated first."""
        version = self._version()
        refuse_newer(self.name, version)
        if version < len(MIGRATIONS):
            raise stale(self.name)

    def _refuse_foreign(self) -> None:
        """Raise if the tables are those of another tool, which may have one called `runs` too."""
        execute = self._connection.execute
        if execute("SELECT 1 FROM pragma_table_info('runs') WHERE name = 'suite_hash'").fetchone():
            return
        tables = [row[0] for row in execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if tables or self.read_only:
            held = f"its tables are {few(sorted(tables), 3)}" if tables else "it has no trials"
            raise HistoryError(
                f"{self.name}: is an SQLite database, but no history of passhat ({held}); export "
                "the results of another tool as CSV or JSON, and give that"
            )

    def _version(self) -> int:
        return int(self._connection.execute("PRAGMA user_version").fetchone()[0])


# FTS5 keeps the first word of each leaf page, after a "0", with twice the number of the page.
_PAGES = """
WITH segments AS (SELECT DISTINCT segid FROM spoken_words_idx)
SELECT coalesce(sum(
  (SELECT pgno / 2 FROM spoken_words_idx i WHERE i.segid = s.segid AND term < ?2
   ORDER BY term DESC LIMIT 1)
  - (SELECT pgno / 2 FROM spoken_words_idx i WHERE i.segid = s.segid AND term <= ?1
     ORDER BY term DESC LIMIT 1)
), 0) FROM segments s
"""
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What is raised for a statement; the second for texts that a damaged file has in it."""


class _Rows(sqlite3.Cursor):
    """The rows of an answer: damage may show only when they are read."""

    failure: Callable[[Exception], Exception]

    def __next__(self) -> Any:
        try:
            return super().__next__()
        except _ERRORS as error:
            raise self.failure(error) from None

    def fetchone(self) -> Any:
        try:
            return super().fetchone()
        except _ERRORS as error:
            raise self.failure(error) from None

    def fetchmany(self, size: int | None = 1) -> list[Any]:
        try:
            return super().fetchmany(size)
        except _ERRORS as error:
            raise self.failure(error) from None

    def fetchall(self) -> list[Any]:
        try:
            return super().fetchall()
        except _ERRORS as error:
            raise self.failure(error) from None


def _connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    uri = path.absolute().as_uri() + ("?mode=ro" if read_only else "")
    if read_only and _on_read_only_disk(path):
        uri += "&immutable=1"  # there SQLite can make no file beside it, and nobody writes to it
    return sqlite3.connect(
        uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )


def _on_read_only_disk(path: Path) -> bool:
    """Whether a store is on a disk that is mounted read-only, with nothing left in its log."""
    log = path.with_name(f"{path.name}-wal")
    try:
        mounted = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
        return mounted and not (log.exists() and log.stat().st_size)
    except OSError:
        return False


def _only_reading(action: int, _: object, function: object, *__: object) -> int:
    """An authorizer that allows a query to read, and nothing else."""
    reading = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
    harmless = action == sqlite3.SQLITE_FUNCTION and function != "load_extension"
    return sqlite3.SQLITE_OK if action in reading or harmless else sqlite3.SQLITE_DENY


def _unusable(path: Path, error: Exception) -> StoreError:
    fault = " ".join(str(error).split())
    if _on_read_only_disk(path):
        fault = "it is on a disk that is mounted read-only"
    return StoreError(f"{path}: the store cannot be used now ({fault})")
