"""Several suites, and several machines, in one store."""

from pathlib import Path

import psycopg
import pytest

from passhat.history import History
from passhat.journeys.run_store import named_run_here

SUITE = """
name: {name}
systems: [{{name: bot, python: "bot:answer"}}]
defaults: {{runs: 3}}
tasks: [{{name: t, prompt: x, expect: [{{contains: right}}]}}]
"""
STORE = "history.db"


@pytest.fixture
def run(call, here, monkeypatch):
    monkeypatch.setenv("PASSHAT_STORE", str(Path(STORE).absolute()))
    Path("bot.py").write_text("def answer(prompt): return 'right'\n")

    def once(name):
        Path("passhat.yml").write_text(SUITE.format(name=name))
        return call("run", "-q")

    return once


def test_a_tag_is_that_of_the_suite_here_and_what_moves_is_said(run, call):
    run("one")
    assert " is now good of one\n" in call("history", "tag", "latest", "good").stderr
    run("two")
    assert " is now good of two\n" in call("history", "tag", "latest", "good").stderr
    assert ", which was " in (run("two"), call("history", "tag", "latest", "good"))[1].stderr
    gated = call("gate", "latest", "--require", "no_task_worse_than good")
    assert "is the run that is judged" in gated.stderr
    run("one")
    gated = call("gate", "latest", "--require", "no_task_worse_than good")
    assert gated.exit_code == 0, gated.stderr
    assert ", tagged good" in call("history", "delete", "good", "--yes").stderr


def test_a_trend_is_that_of_the_suite_here(run, call):
    run("one")
    run("two")
    assert call("trend").exit_code == 0
    Path("passhat.yml").unlink()
    assert "has runs of 2 suites; choose one:" in call("trend").stderr


def test_latest_says_that_another_run_of_the_suite_had_not_ended_when_it_began(here):
    with History.open(STORE) as history:
        made = {"options": {"suite": "passhat.yml"}}
        first = history.finish_run(history.start_run("one", started="2026-01-01", **made))
        begun = history.finish_run(history.start_run("one", started="2026-01-02", **made))
        named = named_run_here(history, "latest")
        assert named.run.id == begun.id
        assert f"; run {first.key}, which had not ended when it began, is of the" in named.note
        history.finish_run(history.start_run("one", **made))
        assert named_run_here(history, "latest").note is None


ENDS_THE_CONNECTIONS = """
import os, psycopg
calls = []
def answer(prompt):
    calls.append(prompt)
    if len(calls) == 2:
        store = os.environ["PASSHAT_STORE"]
        with psycopg.connect(store, dbname="postgres", autocommit=True) as connection:
            connection.execute("ALTER DATABASE away ALLOW_CONNECTIONS false")
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = 'away'")
    return "right"
"""


def test_a_store_that_goes_away_during_a_run_leaves_the_way_to_resume_it(
    call, here, monkeypatch, new_database
):
    server = new_database().partition("?")[0]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE away")  # a schema cannot refuse connections
    store = server.replace("/postgres", "/away")
    monkeypatch.setenv("PASSHAT_STORE", store)
    Path("leaving_bot.py").write_text(ENDS_THE_CONNECTIONS)
    Path("passhat.yml").write_text(SUITE.format(name="one").replace("bot:", "leaving_bot:"))
    done = call("run", "-q")
    assert done.exit_code == 3
    assert "resume with: passhat run --resume " in done.stderr, done.output
