"""Connections to a store: many may write at once, and a reader can do nothing but read."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from passhat.history.schema import check_readable, migrate

BUSY_SECONDS = 30.0


def connect(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """A connection to the store at `path`, brought to the current version unless `read_only`."""
    uri = path.absolute().as_uri() + ("?mode=ro" if read_only else "")
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(connection, str(path), read_only=read_only)
    except BaseException:
        connection.close()
        raise
    return connection


def only_reading(action: int, _: object, function: object, *__: object) -> int:
    """An authorizer that lets a query look and do nothing else."""
    reading = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
    harmless = action == sqlite3.SQLITE_FUNCTION and function != "load_extension"
    return sqlite3.SQLITE_OK if action in reading or harmless else sqlite3.SQLITE_DENY


def _prepare(connection: sqlite3.Connection, name: str, *, read_only: bool) -> None:
    if read_only:
        connection.execute("PRAGMA query_only = 1")
        check_readable(connection, name=name)
        return
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = 1")
    migrate(connection, name=name)
