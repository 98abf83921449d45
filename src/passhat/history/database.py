"""What the store needs from a database, so that one SQL text serves SQLite and PostgreSQL."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from passhat.arguments import STORE, STORE_VARIABLE
from passhat.dataclass import dataclass
from passhat.errors import HistoryError
from passhat.messages import short

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

    def fetchmany(self, size: int, /) -> list[Row]: ...


class Database(Protocol):
    """One connection.

    SQL is written once, with the marks `?`, `?1` and `:name` and `ON CONFLICT`; `clock` and
    `joined` are the words that differ. Outside of `writing` every statement is its own
    transaction. Every method raises StoreError if the database cannot be used, and Duplicate if a
    key is taken.
    """

    name: str
    read_only: bool
    clock: str
    """SQL for the time now, in seconds since 1970: always the database's clock, for leases."""
    joined: str
    """The SQL function that joins the texts of a group."""

    @property
    def full_text(self) -> bool:
        """Whether there is an index of words."""
        ...

    def add_words(self, keys: Sequence[Row], texts: Sequence[str], /) -> None:
        """Index the words of texts of trials, by run, system, task and trial."""
        ...

    def forget_words(self) -> bool:
        """Empty the index if it has words of deleted runs; whether it has to be filled again."""
        ...

    def find_words(self, words: Sequence[str], limit: int, /) -> Iterator[list[Row]]:
        """Run, system, task, trial, outcome and transcript of the newest trials with all words.

        The last word may be the beginning of one. Each list has more such trials than the one
        before it, and costs more; trials in it may lack the last word.
        """
        ...

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

    def check(self, table: str | None = None) -> None:
        """Raise HistoryError if the file, or a table, is damaged; a server looks after its own."""
        ...

    def another(self, *, read_only: bool) -> Database:
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


def store_words(store: Path | str) -> str:
    """What to add to a printed command so that it reads this store; never with a password.

    Nothing for the store that commands read anyway.

    >>> store_words(STORE), store_words("postgresql://ann:secret@db/evals")
    ('', ' --store postgresql://ann@db/evals')
    """
    usual = os.environ.get(STORE_VARIABLE) or STORE
    shown = shown_address(store)
    return "" if shown == shown_address(usual) else f" --store {shlex.quote(shown)}"


# The tables of the store, and the migrations from one version to the next.

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

# A row of `sessions` is one process that works on a run; its id is the fencing token that
# everything it writes is checked against. `answers.reply` is null while a call is only asked.
# A ticket's state is one of `TicketState`. Money is in micro-dollars, so that sums are exact;
# `lost` counts calls whose process died before the answer was kept: paid, perhaps.
_VERSION_2 = """
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  role TEXT NOT NULL,
  host TEXT NOT NULL,
  place TEXT NOT NULL,
  pid INTEGER NOT NULL,
  born TEXT NOT NULL,
  hands INTEGER NOT NULL DEFAULT 0,
  alive INTEGER NOT NULL DEFAULT 1,
  lease REAL NOT NULL,
  started TEXT NOT NULL
);
CREATE INDEX sessions_by_run ON sessions (run);
CREATE TABLE accounts (
  run INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  max_cost INTEGER,
  max_tokens INTEGER,
  max_calls INTEGER,
  cost INTEGER NOT NULL DEFAULT 0,
  tokens INTEGER NOT NULL DEFAULT 0,
  calls INTEGER NOT NULL DEFAULT 0,
  reserved_cost INTEGER NOT NULL DEFAULT 0,
  reserved_tokens INTEGER NOT NULL DEFAULT 0,
  reserved_calls INTEGER NOT NULL DEFAULT 0,
  lost_calls INTEGER NOT NULL DEFAULT 0,
  lost_cost INTEGER NOT NULL DEFAULT 0,
  unpriced INTEGER NOT NULL DEFAULT 0,
  stopped TEXT
);
ALTER TABLE tickets ADD COLUMN state INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tickets ADD COLUMN session INTEGER;
ALTER TABLE tickets ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
CREATE TABLE new_answers (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  system INTEGER NOT NULL,
  task INTEGER NOT NULL,
  trial INTEGER NOT NULL,
  step INTEGER NOT NULL,
  request TEXT NOT NULL,
  reply BLOB,
  reserved_cost INTEGER NOT NULL DEFAULT 0,
  reserved_tokens INTEGER NOT NULL DEFAULT 0,
  priced INTEGER NOT NULL DEFAULT 1,
  session INTEGER,
  PRIMARY KEY (run, system, task, trial, step)
);
INSERT INTO new_answers (run, system, task, trial, step, request, reply)
  SELECT run, system, task, trial, step, request, reply FROM answers;
DROP TABLE answers;
ALTER TABLE new_answers RENAME TO answers;
"""

# The family that a task belongs to, and how much it weighs.
_VERSION_3 = """
ALTER TABLE trials ADD COLUMN family TEXT;
ALTER TABLE trials ADD COLUMN weight REAL;
"""

# `unsure_calls` counts the lost calls that were perhaps never sent, `found_calls` those whose
# answers the provider still had. A call is given up if a deadline came first or the connection
# was cut. `remote` is the provider's name for an answer that it prepares in the background.
_VERSION_4 = """
ALTER TABLE accounts ADD COLUMN unsure_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN found_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN given_up_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN given_up_cost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE accounts ADD COLUMN given_up_unpriced INTEGER NOT NULL DEFAULT 0;
ALTER TABLE answers ADD COLUMN remote TEXT;
"""

# `sealed` is the number and the checksum of a run's trials and the checksum of its own row; `open`
# while it runs, and `before` for runs that ended before there were checksums.
_VERSION_5 = """
ALTER TABLE runs ADD COLUMN sealed TEXT NOT NULL DEFAULT 'before';
"""

# What people say of trials. They are no part of what a run's checksum seals: they come later.
_VERSION_6 = """
CREATE TABLE labels (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  system INTEGER NOT NULL,
  task INTEGER NOT NULL,
  trial INTEGER NOT NULL,
  person TEXT NOT NULL,
  passed INTEGER NOT NULL,
  labelled TEXT NOT NULL,
  note TEXT NOT NULL,
  chosen TEXT,
  chance REAL,
  PRIMARY KEY (run, system, task, trial, person)
);
"""

# The task that a trial's task is without the conditions it was tried under, these conditions, and
# what the agent said of its own success.
_VERSION_7 = """
ALTER TABLE trials ADD COLUMN base TEXT;
ALTER TABLE trials ADD COLUMN at TEXT;
ALTER TABLE trials ADD COLUMN stated_confidence REAL;
"""

# Answers about a run that take long to make, with a checksum of what they rest on and of
# themselves: they can be made again at any time, so a store without them is as good.
_VERSION_8 = """
CREATE TABLE kept (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  mark TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (run, kind)
);
"""

# What people did to runs, and what they noted. A line outlives its run: who deleted it is known.
_VERSION_9 = """
CREATE TABLE changes (
  id INTEGER PRIMARY KEY,
  run TEXT NOT NULL,
  at TEXT NOT NULL,
  person TEXT NOT NULL,
  action TEXT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX changes_by_run ON changes (run);
"""

# The trials that the full-text index knows, and the index: words alone in SQLite, if it was built
# with FTS5. Words of deleted runs are in it until the store is vacuumed; nothing leads to them.
_VERSION_10 = """
CREATE TABLE spoken (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  system INTEGER NOT NULL,
  task INTEGER NOT NULL,
  trial INTEGER NOT NULL,
  UNIQUE (run, system, task, trial)
);
CREATE VIRTUAL TABLE spoken_words USING fts5(words, content='', detail=none, columnsize=0);
"""
_VERSION_10_OF_POSTGRES = """
CREATE TABLE spoken (
  id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  run BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  system BIGINT NOT NULL,
  task BIGINT NOT NULL,
  trial BIGINT NOT NULL,
  words TSVECTOR NOT NULL,
  UNIQUE (run, system, task, trial)
);
CREATE INDEX spoken_words ON spoken USING gin (words);
"""

# The files that are kept of trials, by name, and what is in them: each content once, compressed,
# under its SHA-256, however many trials have it.
_VERSION_11 = """
CREATE TABLE contents (
  digest TEXT PRIMARY KEY,
  size INTEGER NOT NULL,
  body BLOB NOT NULL
);
CREATE TABLE artefacts (
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  system INTEGER NOT NULL,
  task INTEGER NOT NULL,
  trial INTEGER NOT NULL,
  name TEXT NOT NULL,
  digest TEXT NOT NULL REFERENCES contents (digest),
  PRIMARY KEY (run, system, task, trial, name)
);
CREATE INDEX artefacts_by_content ON artefacts (digest);
"""

# A tag names one run of each suite, and not of the whole store. PostgreSQL keeps the table, and who
# may read it.
_VERSION_12 = """
CREATE TABLE tags_of_suites (
  name TEXT NOT NULL,
  run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  PRIMARY KEY (name, run)
);
INSERT INTO tags_of_suites SELECT name, run FROM tags;
DROP TABLE tags;
ALTER TABLE tags_of_suites RENAME TO tags;
"""
_VERSION_12_OF_POSTGRES = """
ALTER TABLE tags DROP CONSTRAINT tags_pkey;
ALTER TABLE tags ADD PRIMARY KEY (name, run);
"""

# Only a store with many workers needs these: indices for tickets that are ready or claimed, and a
# table of rates, which may be lost when the server crashes.
_QUEUE_OF_POSTGRES = """
CREATE INDEX tickets_ready ON tickets (run, number) WHERE state = 0;
CREATE INDEX tickets_held ON tickets (session) WHERE state = 1;
CREATE INDEX answers_open ON answers (session) WHERE reply IS NULL;
CREATE INDEX trials_by_sequence ON trials (run, sequence);
CREATE UNLOGGED TABLE buckets (name TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL);
ALTER TABLE tickets SET (fillfactor = 80);
ALTER TABLE answers SET (fillfactor = 70);
ALTER TABLE sessions SET (fillfactor = 50);
"""

_TYPES_OF_POSTGRES = (
    (" WITHOUT ROWID", ""),
    ("INTEGER PRIMARY KEY,", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,"),
    ("INTEGER", "BIGINT"),
    ("REAL", "DOUBLE PRECISION"),
    ("BLOB", "BYTEA"),
)


@dataclass(frozen=True, slots=True)
class Migration:
    """The step from one version to the next, in the SQL of each database."""

    sqlite: str
    postgres: str


def _same(script: str, *, first: str = "", more: str = "") -> Migration:
    """One script for both databases, with what only PostgreSQL needs around it."""
    translated = script
    for ours, theirs in _TYPES_OF_POSTGRES:
        translated = translated.replace(ours, theirs)
    return Migration(script, first + translated + more)


MIGRATIONS: tuple[Migration, ...] = (
    _same(_VERSION_1, first="CREATE TABLE passhat_version (version BIGINT NOT NULL);"),
    _same(_VERSION_2, more=_QUEUE_OF_POSTGRES),
    _same(_VERSION_3),
    _same(_VERSION_4),
    _same(_VERSION_5),
    _same(_VERSION_6),
    _same(_VERSION_7),
    _same(_VERSION_8),
    _same(_VERSION_9),
    Migration(_VERSION_10, _VERSION_10_OF_POSTGRES),
    _same(_VERSION_11),
    Migration(_VERSION_12, _VERSION_12_OF_POSTGRES),
)
"""Step i leads from version i to version i + 1. Never edit one that was released."""


def word_forms(word: str) -> tuple[str, str, str]:
    """A word as the index may have it: transcripts are JSON, in which a line break is a letter.

    >>> word_forms("refund")
    ('refund', 'nrefund', 'trefund')
    """
    return word, f"n{word}", f"t{word}"


FOUND = """
SELECT d.run, s.text, t.text, d.trial, x.outcome, k.body FROM ({}) d
JOIN names s ON s.id = d.system JOIN names t ON t.id = d.task
JOIN transcripts k ON k.run = d.run AND k.system = d.system AND k.task = d.task
  AND k.trial = d.trial
LEFT JOIN trials x ON x.run = d.run AND x.system = d.system AND x.task = d.task
  AND x.trial = d.trial
ORDER BY d.id DESC
"""
"""What is shown of trials in `spoken` that were found."""


def statements(script: str) -> list[str]:
    """The statements of a script, one by one: they run inside the caller's transaction."""
    return [text for part in script.split(";") if (text := part.strip())]


def refuse_newer(name: str, version: int) -> None:
    """Refuse a store that a newer passhat has written."""
    if version > len(MIGRATIONS):
        raise HistoryError(
            f"{name}: written by a newer passhat (store version {version}, this one reads up "
            f"to {len(MIGRATIONS)}): upgrade passhat, or name another store"
        )


def damaged(name: str, what: object) -> HistoryError:
    """The error for a store that does not hold what was written to it."""
    fault = short(" ".join(str(what).split()), 200)
    return HistoryError(
        f"{name}: the store is damaged ({fault}): restore it from a copy; `passhat history verify` "
        "says which runs are whole"
    )


class NoHistoryYet(HistoryError):
    """A store that is not there, or a database without tables: the first run makes them."""

    def __init__(self, name: object) -> None:
        start = "`passhat run` or `passhat history add` starts one"
        super().__init__(f"{name}: no history here yet; {start}")


class StaleStore(HistoryError):
    """A store of an older version, which has to be updated before it can be read."""


def stale(name: str) -> StaleStore:
    """The error for a store that has to be updated before it can be read."""
    return StaleStore(
        f"{name}: not a passhat history store of this version (an older store, which cannot be "
        "written from here; update it with `passhat history vacuum` where it can be written)"
    )
