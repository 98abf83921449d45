"""PASSHAT_STORE names the store for every command that takes --store."""

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
