"""`passhat repeat`: any command, many times."""

import json
import sys

import pytest

from passhat.history import History

SOMETIMES = "import os, sys; sys.exit(int(os.environ['PASSHAT_TRIAL']) % 4 == 0)"


@pytest.fixture
def repeat(call):
    def run(*options, code):
        return call("repeat", *options, "--", sys.executable, "-c", code)

    return run


def test_it_runs_a_command_many_times_and_gives_an_interval(repeat):
    done = repeat("--runs", "8", "--json", code=SOMETIMES)
    (system,) = json.loads(done.stdout)["report"]["systems"]
    assert (system["trials"], system["task_table"][0]["passed"]) == (8, 6)
    assert system["metrics"]["pass^1"]["this_suite"]["low"] < 0.75
    assert done.exit_code == 1


def test_a_command_that_always_succeeds_exits_0(repeat):
    assert repeat("--runs", "3", code="pass").exit_code == 0


@pytest.mark.parametrize(
    ("code", "least", "expected"), [("pass", "0.5", 0), ("raise SystemExit(1)", "0.5", 1)]
)
def test_until_settled_stops_as_soon_as_the_answer_is_known(repeat, code, least, expected):
    done = repeat("--until-settled", "--min", least, "--runs", "100", "--json", code=code)
    assert done.exit_code == expected
    assert json.loads(done.stdout)["report"]["systems"][0]["trials"] < 20


def test_what_stays_open_exits_4(repeat):
    assert repeat("--runs", "4", "--min", "0.9", code="pass").exit_code == 4


def test_until_settled_needs_something_to_settle(repeat):
    done = repeat("--until-settled", code="pass")
    assert done.exit_code == 2
    assert "--until-decided needs a gate: --require" in done.stderr


def test_options_of_the_command_are_its_own(call):
    done = call("repeat", "--runs", "2", sys.executable, "-c", "import sys; sys.exit(0)", "--json")
    assert done.exit_code == 0
    assert not done.stdout.startswith("{")


def test_a_json_line_of_the_command_decides_where_there_is_one(repeat):
    line = """print('{"score": 0.0, "tokens": 12}')"""
    assert repeat("--runs", "2", code=line).exit_code == 1
    assert repeat("--runs", "2", "--outcome", "exit", code=line).exit_code == 0


def test_a_command_that_hangs_fails_by_its_timeout(repeat):
    done = repeat("--runs", "1", "--timeout", "0.3", code="import time; time.sleep(60)")
    assert done.exit_code == 1
    assert "stopped by its timeout" in done.stdout


def test_a_command_that_is_not_there_is_a_mistake_of_the_request(call):
    done = call("repeat", "--runs", "2", "--", "./no-such-command")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert "./no-such-command: no such program" in done.stderr


def test_nothing_is_kept_unless_asked_for(repeat, here):
    repeat("--runs", "1", code="pass")
    assert not (here / ".passhat").exists()
    repeat("--runs", "1", "--store", "kept.db", code="pass")
    assert (here / "kept.db").is_file()


def test_an_interrupted_repeat_is_not_called_finished_when_it_cannot_be_resumed(repeat, call):
    repeat("--runs", "1", "--store", "kept.db", code="pass")
    with History.open("kept.db") as history:
        history.finish_run(history.find_run("latest"), "interrupted")
    done = call("resume", "--store", "kept.db")
    assert done.exit_code == 2
    assert "was not made by `passhat run` and cannot be resumed" in done.stderr
