"""Opening a store: a path is a SQLite file, an address is PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from passhat.history.database import Database, is_postgres


def open_database(address: Path | str, *, read_only: bool) -> Database:
    """A connection to the store at a path or address, brought to the current version."""
    if is_postgres(address):
        from passhat.history.postgres import PostgresDatabase

        return PostgresDatabase.open(str(address), read_only=read_only)
    from passhat.history.sqlite import SqliteDatabase

    return SqliteDatabase.open(Path(address), read_only=read_only)
