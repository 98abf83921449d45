"""PASSHAT_STORE names the store for every command that takes --store."""

import re
import shlex
from pathlib import Path

import click
import pytest

from passhat.cli import COMMANDS, main

SUITE = (
    "name: small\n"
    "defaults: {model: scripted, runs: 2}\n"
    "agents: [{name: a, prompt: hi, expect: [{contains: x}], script: [{answer: x}]}]\n"
)


def taking_store():
    context = click.Context(main)
    for name in COMMANDS:
        for option in main.get_command(context, name).params:
            if "--store" in option.opts:
                yield pytest.param(option, id=name)


@pytest.mark.parametrize("option", list(taking_store()))
def test_every_command_with_a_store_reads_the_variable_and_says_so(option):
    assert option.envvar == "PASSHAT_STORE"
    assert option.show_envvar


def test_a_run_is_stored_where_the_variable_says_and_found_there(call, suite, monkeypatch):
    suite(SUITE)
    monkeypatch.setenv("PASSHAT_STORE", "other.db")
    assert call("run", "suite.yml").exit_code == 0
    for words in ("report latest", "gate latest -r pass@1>=0.1", "history", "resume latest"):
        done = call(*words.split())
        assert done.exit_code in (0, 4), done.output
    assert not Path(".passhat").exists()


def test_an_empty_variable_is_as_if_it_were_not_set(call, suite, monkeypatch):
    """As of git and pip: `PASSHAT_STORE= passhat ...` is how a shell leaves a variable out."""
    suite(SUITE)
    monkeypatch.setenv("PASSHAT_STORE", "")
    assert call("run", "suite.yml").exit_code == 0
    assert Path(".passhat/history.db").is_file()
    assert "small" in call("history").stdout
    assert call("gate", "latest", "-r", "pass@1>=0.1").exit_code in (0, 4)


def test_what_is_given_comes_before_the_variable_also_before_a_subcommand(call, suite, monkeypatch):
    suite(SUITE)
    assert call("run", "suite.yml", "--store", "mine.db").exit_code == 0
    monkeypatch.setenv("PASSHAT_STORE", "other.db")
    for words in ("history --store mine.db", "history --store mine.db list"):
        done = call(*words.split())
        assert done.exit_code == 0, done.output
        assert "small" in done.output
    done = call("report", "latest", "--store", "mine.db")
    assert done.exit_code == 0


def test_without_results_the_store_of_the_variable_is_viewed(call, monkeypatch):
    monkeypatch.setenv("PASSHAT_STORE", "other.db")
    done = call("view", "--no-browser")
    assert done.exit_code == 2
    assert "other.db: no history here yet" in done.stderr


def test_the_store_that_is_given_is_viewed_and_results_beside_it_are_refused(call, monkeypatch):
    monkeypatch.setenv("PASSHAT_STORE", "other.db")
    done = call("view", "--store", "mine.db", "--no-browser")
    assert done.exit_code == 2
    assert "mine.db: no history here yet" in done.stderr
    done = call("view", "logs.csv", "--store", "mine.db", "--no-browser")
    assert done.exit_code == 2
    assert "RESULTS is what is shown: leave out --store" in done.stderr


SHAKY = SUITE.replace("runs: 2", "runs: 5").replace(
    "[{answer: x}]", "[{answer: x}, {answer: y}, {answer: z}]"
)


def printed_commands(text):
    """Each `passhat ...` of a line of advice; two spaces lie between two of them."""
    joined = re.sub(r" \\\n +", " ", text)
    return [shlex.split(said) for said in re.findall(r": passhat (.+?)(?:  |$)", joined, re.M)]


@pytest.mark.parametrize("named", ["variable", "option"])
def test_no_screen_or_page_tells_the_password_of_the_store(
    call, suite, monkeypatch, new_database, named
):
    """Advice reads the same store: by the variable where that names it, else by its address."""
    suite(SHAKY)
    address = new_database()
    secret = f"{address}{'&' if '?' in address else '?'}password=geheim"
    monkeypatch.setenv("PASSHAT_STORE", secret if named == "variable" else "unused.db")
    given = [] if named == "variable" else ["--store", secret]
    calls = [
        ["run", "suite.yml", "--html", "run.html", *given],
        ["report", "latest", "-v", *given],
        ["report", "latest", "-o", "report.html", *given],
        ["why", "latest", *given],
        ["gate", "latest", "-r", "pass^3 >= 0.5", *given],
        ["history", *given],
        ["trend", *given],
    ]
    followed = 0
    for words in calls:
        done = call(*words)
        assert "geheim" not in done.output, words
        for command in printed_commands(done.stdout):
            if named == "variable" and command[0] != "init":  # "passhat init shows how"
                assert not any("postgresql:" in word for word in command), command
                again = call(*command)
                assert again.exit_code in (0, 1, 4), (command, again.output)
                followed += 1
    for page in ("run.html", "report.html"):
        assert "geheim" not in Path(page).read_text(encoding="utf-8")
    assert followed or named == "option"


def test_check_tries_the_store_that_the_variable_names(call, suite, monkeypatch):
    suite(SUITE)
    monkeypatch.setenv("PASSHAT_STORE", "postgresql://ann:geheim@127.0.0.1:1/evals")
    done = call("check")
    assert done.exit_code == 1
    assert "problem  store postgresql://ann@127.0.0.1:1/evals: cannot be reached" in done.output
    assert "geheim" not in done.output
    monkeypatch.setenv("PASSHAT_STORE", "new.db")
    assert "new.db: is made by the first run" in call("check").output
    call("run")
    assert "new.db: can be reached" in call("check").output


def test_an_empty_database_is_ready_and_has_no_history_yet(call, suite, new_database, monkeypatch):
    suite(SUITE)
    monkeypatch.setenv("PASSHAT_STORE", new_database())
    checked = call("check")
    assert checked.exit_code == 0, checked.output
    assert "is made by the first run" in checked.output
    dry = call("run", "--dry-run")
    assert dry.exit_code == 0, dry.output
    for words in (["report", "latest"], ["history"], ["trend"]):
        refused = call(*words)
        assert refused.exit_code == 2
        assert "no history here yet; `passhat run` or" in refused.stderr
    assert call("run", "-q").exit_code in (0, 1)
    assert "can be reached" in call("check").output
