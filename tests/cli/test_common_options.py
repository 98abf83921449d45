"""The same options on every command that turns results into answers."""

import inspect
from dataclasses import fields

import click
import pytest
from click.testing import CliRunner

import passhat
from passhat import ColumnMap
from passhat.arguments import ANALYSIS_OPTIONS, CountingTerms
from passhat.cli import COMMANDS as EVERY
from passhat.cli import main
from passhat.journeys import review_change

COMMANDS = ("report", "compare", "rank", "plan", "profile", "simulate", "convert", "demo")
COMMON = (
    "--json", "--markdown", "-o", "--quiet", "--k", "--confidence", "--errors", "--seed",
)  # fmt: skip

# Where an option would change nothing, it is not offered.
WITHOUT = {
    ("simulate", "--k"): "trials are written, none is analysed",
    ("simulate", "--confidence"): "trials are written, none is analysed",
    ("simulate", "--errors"): "trials are written, none is analysed",
    ("convert", "--k"): "trials are written, none is analysed",
    ("convert", "--confidence"): "trials are written, none is analysed",
    ("convert", "--errors"): "trials are written, none is analysed",
    ("convert", "--seed"): "nothing is drawn at random",
    ("demo", "--k"): "its three surprises are told at the k that shows them",
    ("demo", "--errors"): "its agents make no errors",
}


def flags(name):
    with click.Context(main) as context:
        command = main.get_command(context, name)
    return {flag for option in command.params for flag in option.opts}


def test_a_command_states_its_options_so_that_a_type_checker_sees_a_wrong_one():
    with click.Context(main) as context:
        named = [main.get_command(context, name) for name in EVERY]
    commands = [
        *named,
        *(one for group in named for one in getattr(group, "commands", {}).values()),
    ]
    for function in (command.callback for command in commands if command.callback):
        for parameter in inspect.signature(inspect.unwrap(function)).parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                assert str(parameter.annotation).startswith("Unpack["), (function, parameter)


def test_every_command_has_the_common_options_or_a_reason():
    without = {(name, option) for name in COMMANDS for option in set(COMMON) - flags(name)}
    assert without == WITHOUT.keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "--rate", "2"], "--rate must lie strictly between 0 and 1, got 2.0"),
        (["rank", "one.csv"], "RESULTS must hold at least two agents to rank, got 'one'"),
        (["report", "one.csv", "--matrix", "--as", "tap"], "--as tap: must be one of text json"),
        (
            ["report", "notes.csv"],
            "which columns? It has hello, world. Say --columns task=hello,pass=world",
        ),
        (
            ["init", "--mcp", "nosuchprog"],
            'server "tools" cannot be started: there is no program "nosuchprog": install it, or',
        ),
    ],
)
def test_an_error_names_what_was_typed(call, here, arguments, message):
    (here / "one.csv").write_text("task,passed\na,1\na,0\n")
    (here / "notes.csv").write_text("hello,world\nparis,no\n")
    done = call(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr


def test_repeating_a_command_lists_no_task_as_missing(call):
    done = call("repeat", "--runs", "3", "--", "true")
    assert "not listed" not in done.stdout


def test_a_plan_says_in_sentences_what_runs_without_a_failure_show(call):
    shown = " ".join(call("plan", "--tasks", "10", "--trials", "5", "-v").stdout.split())
    assert "A task that passes 29 of 29 trials is shown to pass at least 90% of the time" in shown


def test_every_column_that_python_can_name_has_an_option():
    report = main.get_command(click.Context(main), "report")
    options = {param.name for param in report.params}
    without = [one.name for one in fields(ColumnMap) if f"column_{one.name}" not in options]
    assert without == ["name"]  # of the agent, which is no column


def test_tools_and_start_times_are_read_from_columns_of_any_name(tmp_path):
    table = tmp_path / "log.csv"
    table.write_text("task,ok,used,began\na,1,search,2026-11-16T09:30:00+00:00\n")
    words = ["--pass", "ok", "--tools", "used", "--started-column", "began", "--csv"]
    done = CliRunner().invoke(main, ["convert", str(table), *words])
    assert "search" in done.stdout
    assert "2026-11-16T09:30:00" in done.stdout


def test_an_option_of_the_statistics_is_declared_once_and_taken_by_all_that_analyse():
    for name, option in ANALYSIS_OPTIONS.items():
        taking = [passhat.report, passhat.compare, passhat.profile_results, passhat.rank_results]
        commands = ["report", "compare", "profile", "rank"]
        if name in CountingTerms.__annotations__:  # gates have a confidence and a k of their own
            taking, commands = [*taking, passhat.gate, review_change], [*commands, "gate"]
        for function in taking:
            assert inspect.signature(function).parameters[name].default == option.default, name
        for command in commands:
            assert option.metadata["flag"] in flags(command), command


def test_an_option_that_nobody_declared_is_refused_by_its_name():
    with pytest.raises(TypeError, match=r"report\(\) got an unexpected keyword argument 'kss'.*ks"):
        passhat.report("-", kss=3)
