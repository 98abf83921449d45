"""A store that an older passhat wrote is brought up to date with everything in it."""

import sqlite3
from contextlib import closing

import pytest

from passhat.errors import HistoryError
from passhat.history import History, RunJournal
from passhat.history.database import MIGRATIONS, is_postgres, statements
from passhat.records import Outcome, Trial

OLD_ROWS = """
INSERT INTO runs (id, key, suite, status, started)
  VALUES (901, 'abcd1234', 'old', 'finished', '2026-01-01');
INSERT INTO names (id, text) VALUES (901, 'agent'), (902, 'refund');
INSERT INTO trials (run, system, task, trial, sequence, outcome, score, tools)
  VALUES (901, 901, 902, 0, 0, 1, 0.5, 'search');
INSERT INTO tickets (run, number, system, task, trial) VALUES (901, 0, 901, 902, 0);
INSERT INTO answers (run, system, task, trial, step, request, reply)
  VALUES (901, 901, 902, 0, 0, 'model:x', 'kept');
INSERT INTO tags (name, run) VALUES ('baseline', 901)
"""


def write_old_store(address, version):
    """The tables and some rows, as the passhat of that version left them."""
    rows = OLD_ROWS.replace("'kept'", "X'6b657074'")
    if not is_postgres(address):
        with closing(sqlite3.connect(address)) as connection, connection:
            connection.execute("PRAGMA journal_mode = WAL")
            for migration in MIGRATIONS[:version]:
                connection.executescript(migration.sqlite)
            connection.executescript(rows)
            connection.execute(f"PRAGMA user_version = {version}")
        return
    import psycopg

    with psycopg.connect(address) as connection:
        for script in [migration.postgres for migration in MIGRATIONS[:version]]:
            for statement in statements(script):
                connection.execute(statement)
        for statement in statements(rows.replace("X'6b657074'", "'kept'::bytea")):
            connection.execute(statement)
        connection.execute("INSERT INTO passhat_version VALUES (%s)", (version,))


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_an_older_store_keeps_its_rows_and_takes_new_ones(address, version, read_only):
    write_old_store(address, version)
    with History.open(address, read_only=read_only) as history:
        old = history.find_run("baseline")
        assert [(t.task, t.outcome, t.tools) for t in history.trials(old)] == [
            ("refund", Outcome.PASSED, ("search",))
        ]
        assert RunJournal(history, old).calls() == 1
    with History.open(address) as history:
        new = Trial(system="a", task="b", trial=0, outcome=Outcome.PASSED, family="f", weight=2.0)
        run = history.start_run("new")
        history.add_trials(run, [new])
    with History.open(address, read_only=True) as history:
        assert list(history.trials(history.find_run(run.key))) == [new]


def test_a_store_of_a_newer_passhat_is_refused_and_left_alone(address):
    History.open(address).close()
    newer = len(MIGRATIONS) + 1
    if is_postgres(address):
        import psycopg

        with psycopg.connect(address) as connection:
            connection.execute("UPDATE passhat_version SET version = %s", (newer,))
    else:
        with closing(sqlite3.connect(address)) as connection:
            connection.execute(f"PRAGMA user_version = {newer}")
    for read_only in (False, True):
        with pytest.raises(HistoryError, match="written by a newer passhat"):
            History.open(address, read_only=read_only)
