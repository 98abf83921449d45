"""The store in PostgreSQL: many machines may write at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from passhat.errors import HistoryError, MissingExtra, StoreError
from passhat.history.database import (
    FOUND,
    MIGRATIONS,
    Duplicate,
    NoHistoryYet,
    Row,
    Rows,
    Values,
    refuse_newer,
    shown_address,
    stale,
    statements,
    word_forms,
)

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS = 15
LOCK = 7_226_847
"""The advisory lock under which the tables are changed: an arbitrary number, the same for all."""

_MARK = re.compile(r"\?(\d+)|\?|(?<!:):([a-z_]+)\b")


class PostgresDatabase:
    """A connection to a PostgreSQL database."""

    clock = "extract(epoch FROM clock_timestamp())::float8"
    joined = "string_agg"

    def __init__(
        self, connection: psycopg.Connection[Row], *, address: str, read_only: bool
    ) -> None:
        self.name = shown_address(address)
        self._address = address
        self.read_only = read_only
        self._connection = connection

    @classmethod
    def open(cls, address: str, *, read_only: bool) -> Self:
        """The database at an address; its tables are made or updated unless `read_only`."""
        database = cls(_connect(address, read_only), address=address, read_only=read_only)
        try:
            if read_only:
                database._check_readable()
            else:
                database._migrate()
        except BaseException:
            database.close()
            raise
        return database

    def execute(self, sql: str, values: Values = (), /) -> Rows:
        text, numbered = _translated(sql)
        with self._errors():
            return self._connection.execute(text, _safe(_keyed(values) if numbered else values))

    def executemany(self, sql: str, rows: Iterable[Values], /) -> None:
        text, _ = _translated(sql)
        with self._errors(), self._connection.cursor() as cursor:
            cursor.executemany(text, [_safe(row) for row in rows])

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Row], /) -> None:
        with self._errors(), self._connection.cursor() as cursor:
            copying = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
            with cursor.copy(copying) as copy:
                for row in rows:
                    copy.write_row(_safe(row))

    @contextmanager
    def writing(self) -> Iterator[None]:
        self.execute("BEGIN")
        try:
            yield
        except BaseException:
            import psycopg

            try:
                self._connection.execute("ROLLBACK")
            except psycopg.Error:
                self._connection.close()  # the connection is lost, and its transaction with it
            raise
        self.execute("COMMIT")

    def hold_still(self) -> None:
        self.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def query(self, sql: str, *, limit: int) -> tuple[list[str], list[Row]]:
        import psycopg

        connection = _connect(self._address, read_only=True)
        connection.autocommit = False
        # A cursor can only be declared for a query that returns rows: no COPY, no SET, and no
        # second statement behind a semicolon.
        with connection, connection.cursor("passhat") as cursor:
            try:
                cursor.execute(sql.strip().rstrip(";").encode())
                rows = cursor.fetchmany(limit)
            except psycopg.Error as error:
                raise HistoryError(f"`sql`: {_error_text(error)}") from None
            return [column[0] for column in cursor.description or ()], rows

    full_text = True

    def add_words(self, keys: Sequence[Row], texts: Sequence[str], /) -> None:
        # Addresses and dates would be taken for one word each: only letters and digits are left.
        self.executemany(
            "INSERT INTO spoken (run, system, task, trial, words) VALUES (?, ?, ?, ?, "
            r"to_tsvector('simple', regexp_replace(?, '[\W_]+', ' ', 'g')))",
            [(*key, text) for key, text in zip(keys, texts, strict=True)],
        )

    def forget_words(self) -> bool:
        return False  # they went with their rows

    def find_words(self, words: Sequence[str], limit: int, /) -> Iterator[list[Row]]:
        each = [list(word_forms(word)) for word in words]
        each[-1] = [f"{form}:*" for form in each[-1]]
        wanted = " & ".join(f"({' | '.join(forms)})" for forms in each)
        matching = (
            "SELECT * FROM spoken WHERE words @@ to_tsquery('simple', ?) ORDER BY id DESC LIMIT ?"
        )
        yield self.execute(FOUND.format(matching), (wanted, limit)).fetchall()

    def change_mark(self) -> int:
        row = self.execute(
            "SELECT pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() "
            "ELSE pg_current_wal_insert_lsn() END, '0/0')"
        ).fetchone()
        assert row is not None
        return int(row[0])

    def compact(self) -> None:
        for table in (
            "trials",
            "transcripts",
            "artefacts",
            "contents",
            "answers",
            "tickets",
            "runs",
            "names",
        ):
            self.execute(f"VACUUM {table}")

    def check(self, table: str | None = None) -> None:
        """Nothing: the server checks its own pages."""

    def another(self, *, read_only: bool) -> PostgresDatabase:
        return PostgresDatabase.open(self._address, read_only=read_only)

    def reconnect(self) -> None:
        self._connection.close()
        self._connection = _connect(self._address, self.read_only)

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.errors.UniqueViolation as error:
            raise Duplicate(_error_text(error)) from None
        except psycopg.Error as error:
            raise StoreError(
                f"{self.name}: the store cannot be used now ({_error_text(error)})"
            ) from None

    def _migrate(self) -> None:
        """Bring the tables to the current version, in one transaction that others wait for."""
        if self._version() == len(MIGRATIONS):
            return
        with self.writing():
            self.execute(f"SELECT pg_advisory_xact_lock({LOCK})")
            version = self._version()
            refuse_newer(self.name, version)
            for migration in MIGRATIONS[version:]:
                for statement in statements(migration.postgres):
                    self.execute(statement)
            self.execute("DELETE FROM passhat_version")
            self.execute("INSERT INTO passhat_version VALUES (?)", (len(MIGRATIONS),))

    def _check_readable(self) -> None:
        version = self._version()
        refuse_newer(self.name, version)
        if version < len(MIGRATIONS):
            raise stale(self.name) if version else NoHistoryYet(self.name)

    def _version(self) -> int:
        # Not to_regclass: inside a transaction that waited for the lock it answers from a cache
        # that does not know yet what the other process has made.
        row = self.execute(
            "SELECT 1 FROM pg_catalog.pg_tables "
            "WHERE tablename = 'passhat_version' AND schemaname = current_schema()"
        ).fetchone()
        if row is None:
            return 0
        row = self.execute("SELECT version FROM passhat_version").fetchone()
        return 0 if row is None else int(row[0])


def _connect(address: str, read_only: bool) -> psycopg.Connection[Row]:
    try:
        import psycopg
    except ImportError:
        raise MissingExtra("a store in PostgreSQL", "postgres") from None
    try:
        connection = psycopg.connect(
            address,
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            application_name="passhat",
            client_encoding="utf8",
        )
        if read_only:
            connection.execute("SET default_transaction_read_only = on")
    except psycopg.Error as error:
        raise StoreError(
            f"{shown_address(address)}: cannot be reached ({_error_text(error)})"
        ) from None
    return connection


@lru_cache(maxsize=512)
def _translated(sql: str) -> tuple[str, bool]:
    """Our marks as psycopg's, and whether they are numbered.

    >>> _translated("SELECT ?1 WHERE a = ?1"), _translated("a = ? AND b = :name")
    (('SELECT %(v1)s WHERE a = %(v1)s', True), ('a = %s AND b = %(name)s', False))
    """
    numbered = False

    def mark(match: re.Match[str]) -> str:
        nonlocal numbered
        number, name = match.groups()
        numbered = numbered or number is not None
        return f"%({name or f'v{number}'})s" if name or number else "%s"

    return _MARK.sub(mark, sql.replace("%", "%%")), numbered


def _keyed(values: Values) -> Values:
    if isinstance(values, Mapping):
        return values
    return {f"v{i}": value for i, value in enumerate(values, 1)}


def _safe(values: Any) -> Any:
    """The values without the one character that PostgreSQL cannot keep in a text."""
    if isinstance(values, Mapping):
        return {name: _without_nul(value) for name, value in values.items()}
    return tuple(map(_without_nul, values))


def _without_nul(value: Any) -> Any:
    return value.replace("\0", "\ufffd") if type(value) is str and "\0" in value else value


def _error_text(error: Exception) -> str:
    """The first line of the server's message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
