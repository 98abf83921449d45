"""What the store needs from a database, so that one SQL text serves SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

POSTGRES_SCHEMES = ("postgresql://", "postgres://")

ALL = 2**62
"""A limit that limits nothing, in both databases."""

_SECRET = ("password", "sslpassword", "passfile")

Row = tuple[Any, ...]
Values = Sequence[Any] | Mapping[str, Any]


class Duplicate(Exception):
    """There is a row with this key already."""


class Rows(Protocol):
    """The answer to a query: iterate over it, or fetch."""

    @property
    def description(self) -> Sequence[Any] | None: ...

    @property
    def rowcount(self) -> int: ...

    def __iter__(self) -> Iterator[Row]: ...

    def fetchone(self) -> Row | None: ...

    def fetchall(self) -> list[Row]: ...


class Database(Protocol):
    """One connection.

    SQL is written once, with the marks `?`, `?1` and `:name` and `ON CONFLICT`; `clock` and
    `joined` are the words that differ. Outside of `writing` every statement is its own
    transaction. Every method raises StoreError if the database cannot be used, and Duplicate if a
    key is taken.
    """

    name: str
    clock: str
    """SQL for the time now, in seconds since 1970: always the database's clock, for leases."""
    joined: str
    """The SQL function that joins the texts of a group."""

    def execute(self, sql: str, values: Values = (), /) -> Rows: ...

    def executemany(self, sql: str, rows: Iterable[Values], /) -> None: ...

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Row], /) -> None:
        """Insert many new rows in the fastest way that the database has."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """One transaction that is durable when it ends; it waits for others rather than fails."""
        ...

    def hold_still(self) -> None:
        """From now on, read everything as of one moment."""
        ...

    def query(self, sql: str, *, limit: int) -> tuple[list[str], list[Row]]:
        """Header and rows of a query by the user; anything that would write is refused."""
        ...

    def change_mark(self) -> int:
        """A number that changes when another connection writes: cheap to ask for."""
        ...

    def compact(self) -> None:
        """Return the space of deleted rows."""
        ...

    def another(self) -> Database:
        """A second connection to the same store, for another thread."""
        ...

    def reconnect(self) -> None:
        """A new connection in the place of one that broke."""
        ...

    def close(self) -> None: ...


def is_postgres(address: Path | str) -> bool:
    """Whether a store is a PostgreSQL address rather than a file.

    >>> is_postgres("postgresql://localhost/evals"), is_postgres(".passhat/history.db")
    (True, False)
    """
    return str(address).startswith(POSTGRES_SCHEMES)


def shown_address(address: Path | str) -> str:
    """A store's address as it may be shown: without the password.

    >>> shown_address("postgresql://ann:secret@db.example:5433/evals?password=x&sslmode=require")
    'postgresql://ann@db.example:5433/evals?sslmode=require'
    >>> shown_address("postgresql://ann:secret@one:5432,[::1]:5433/evals")
    'postgresql://ann@one:5432,[::1]:5433/evals'
    """
    if not is_postgres(address):
        return str(address)
    rest = str(address).partition("://")[2]
    # By hand: an address may list several hosts with a port each, and a password may hold ? or #.
    start = rest.partition("/")[0]
    login = (start if "@" in start else rest.partition("?")[0]).rpartition("@")[0]
    place, _, given = rest.removeprefix(login).partition("?")
    settings = [part for part in given.split("&") if part.partition("=")[0] not in _SECRET]
    query = "?" * bool(any(settings)) + "&".join(settings)
    return f"postgresql://{login.partition(':')[0]}{place}{query}"
