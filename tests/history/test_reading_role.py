"""A team looks at one PostgreSQL store: a role that can only read sees everything."""

import re

import pytest

from passhat.errors import StoreError
from passhat.history import History
from passhat.history.database import StaleStore, shown_address
from passhat.history.queries import change_mark, read_progress
from passhat.journeys.overview import ReportCache
from passhat.records import Outcome, Trial

psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed")


@pytest.fixture
def shared(new_database):
    """A store with one run, and its address for a role that may only read."""
    address = new_database()
    schema = re.search(r"search_path%3D(\w+)", address)[1]
    with History.open(address) as history:
        run = history.start_run("suite")
        rows = [Trial(system="a", task="t", trial=i, outcome=Outcome(i % 2)) for i in range(4)]
        history.add_trials(run, rows)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE looker_{schema} LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO looker_{schema}")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO looker_{schema}")
    return address, address.replace("passhat@", f"looker_{schema}@")


def test_a_role_that_may_only_read_sees_runs_trials_reports_and_progress(shared):
    _, looker = shared
    history = ReportCache(looker, title="team").open()
    (run,) = history.runs()
    assert len(history.trials(run)) == 4
    assert read_progress(history, run).tasks[0].passed == 2
    assert change_mark(history) > 0
    assert history.query("SELECT count(*) FROM trials")[1] == [(4,)]
    history.close()


def test_a_reader_cannot_write_whatever_its_role_may(shared):
    owner, looker = shared
    for address in (owner, looker):
        with (
            History.open(address, read_only=True) as history,
            pytest.raises(StoreError, match="read-only transaction"),
        ):
            history.start_run("another")


def test_an_address_is_shown_without_its_password():
    for password in ("secret", "sec?ret", "sec#ret", "sec/ret", "sec@ret", "sec:ret"):
        assert shown_address(f"postgresql://a:{password}@h/d?passfile=x&sslmode=require") == (
            "postgresql://a@h/d?sslmode=require"
        )
    assert shown_address("postgresql://h?password=a/b@c&user=a") == "postgresql://h?user=a"


def test_a_role_that_may_only_read_is_told_who_updates_an_older_store(shared):
    address, looker = shared
    with psycopg.connect(address) as connection:
        connection.execute("UPDATE passhat_version SET version = version - 1")
    with pytest.raises(StaleStore, match="which cannot be written from here"):
        History.open(looker, read_only=True)
