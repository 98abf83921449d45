"""The tables of the history store, and the steps that lead from one version to the next."""

from __future__ import annotations

import sqlite3

from passhat.errors import HistoryError

# Texts that repeat (systems, tasks) are kept once, in `names`. A row of `trials` is found by its
# run, system, task and trial number; `sequence` is the number of its ticket: the order of evidence.
_VERSION_1 = """
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  suite TEXT NOT NULL,
  suite_hash TEXT,
  status TEXT NOT NULL,
  started TEXT NOT NULL,
  finished TEXT,
  seed INTEGER,
  commit_id TEXT,
  branch TEXT,
  dirty INTEGER,
  host TEXT,
  versions TEXT NOT NULL DEFAULT '{}',
  options TEXT NOT NULL DEFAULT '{}',
  sources TEXT NOT NULL DEFAULT '[]'
);
CREATE INDEX runs_by_suite ON runs (suite, started);
CREATE TABLE names (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE trials (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  system INTEGER NOT NULL REFERENCES names (id),
  task INTEGER NOT NULL REFERENCES names (id),
  trial INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  score REAL,
  seed INTEGER,
  tokens_in REAL,
  tokens_out REAL,
  tokens REAL,
  cost REAL,
  seconds REAL,
  turns REAL,
  tool_calls REAL,
  tools TEXT,
  level TEXT,
  tags TEXT,
  error TEXT,
  started TEXT,
  PRIMARY KEY (run, system, task, trial)
) WITHOUT ROWID;
CREATE TABLE tickets (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  system INTEGER NOT NULL,
  task INTEGER NOT NULL,
  trial INTEGER NOT NULL,
  stamp TEXT,
  PRIMARY KEY (run, number)
) WITHOUT ROWID;
CREATE TABLE transcripts (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  system INTEGER NOT NULL,
  task INTEGER NOT NULL,
  trial INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (run, system, task, trial)
);
CREATE TABLE answers (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  system INTEGER NOT NULL,
  task INTEGER NOT NULL,
  trial INTEGER NOT NULL,
  step INTEGER NOT NULL,
  request TEXT NOT NULL,
  reply BLOB NOT NULL,
  PRIMARY KEY (run, system, task, trial, step)
);
CREATE TABLE tags (
  name TEXT PRIMARY KEY,
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE
);
"""

MIGRATIONS: tuple[str, ...] = (_VERSION_1,)
"""Script i leads from version i to version i + 1. Never edit one that was released."""


def migrate(connection: sqlite3.Connection, *, name: str) -> None:
    """Bring a store to the current version, in one transaction that other processes wait for."""
    if _version(connection) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)
        if version > len(MIGRATIONS):
            raise _too_new(name, version)
        for script in MIGRATIONS[version:]:
            for statement in _statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def check_readable(connection: sqlite3.Connection, *, name: str) -> None:
    """A store that is only read cannot be brought to the current version on the way."""
    version = _version(connection)
    if version > len(MIGRATIONS):
        raise _too_new(name, version)
    if version < len(MIGRATIONS):
        found = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone()
        what = "an older store: `passhat history vacuum` updates it" if found else "no trials"
        raise HistoryError(f"{name}: not a passhat history store of this version ({what})")


def _too_new(name: str, version: int) -> HistoryError:
    return HistoryError(
        f"{name}: written by a newer passhat (store version {version}, this one reads up "
        f"to {len(MIGRATIONS)}): upgrade passhat, or name another store"
    )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _statements(script: str) -> list[str]:
    # executescript would commit the surrounding transaction.
    return [text for part in script.split(";") if (text := part.strip())]
