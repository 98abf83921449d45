"""What a command says to somebody who has no history yet, or mistypes an option."""

import pytest

from passhat.analysis.gates.judge import judge
from passhat.analysis.reports.measure import measure
from passhat.errors import ArgumentError
from passhat.records import Trials

GATED = """\
name: sums
defaults: {model: scripted, runs: 10}
agents:
  - name: two and two
    prompt: What is 2 + 2?
    expect: [{contains: "4"}]
    script: [{answer: "4"}]
gates: [pass@1 >= 0.5]
"""


@pytest.mark.parametrize("command", ["report", "why", "gate", "rank"])
def test_the_latest_run_of_no_history_is_answered_with_how_to_begin_one(call, command):
    told = call(command, "latest")
    assert told.exit_code == 2
    assert "no history here yet" in told.stderr
    assert "`passhat run` or `passhat history add` starts one" in told.stderr


def test_a_run_of_the_history_is_judged_by_the_gates_of_the_suite_in_the_folder(suite, call):
    suite(GATED).rename("passhat.yml")
    assert call("run").exit_code == 0
    told = call("gate", "latest")
    assert told.exit_code == 0, told.output
    assert "pass@1 >= 0.5" in told.stdout
    assert told.stderr == "gates of passhat.yml\n"


def test_a_file_of_results_is_not_judged_by_the_suite_of_the_folder(suite, call, here):
    suite(GATED).rename("passhat.yml")
    (here / "x.csv").write_text("task,trial,passed\na,1,1\n")
    refused = call("gate", "x.csv").stderr
    assert "give a gate: --require 'pass^3 >= 0.8' or --against OLD_RESULTS" in refused


def test_a_suite_without_gates_is_named_as_the_reason_for_having_none(suite, call, here):
    (here / "x.csv").write_text("task,trial,passed\na,1,1\n")
    bare = suite(GATED.partition("gates:")[0])
    said = call("gate", "x.csv", "--suite", str(bare)).stderr
    assert "nothing is demanded: the suite has no `gates:`; add some to it, or give --req" in said


@pytest.mark.parametrize("command", ["trend", "trend --tasks"])
def test_with_several_suites_the_command_for_each_is_printed(suite, call, command):
    call("run", str(suite(GATED)), "--runs", "2")
    path = suite(GATED.replace("name: sums", "name: more sums"))
    call("run", str(path), "--runs", "2")
    path.unlink()  # where a suite lies, it is the one that is meant
    told = call(*command.split())
    assert told.exit_code == 2
    assert f"  passhat {command} 'more sums'\n  passhat {command} sums\n" in told.stderr


def test_a_run_named_beside_a_file_is_refused_and_the_column_of_attempts_is_named(call, here):
    (here / "x.csv").write_text("task,Attempt #,passed\na,1,1\n")
    told = call("report", "x.csv", "--run", "Attempt #")
    assert told.exit_code == 2
    assert "--columns trial=NAME names the column" in told.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("report", "x.csv", "--outcome", "ok"), "Did you mean '--columns pass=NAME'?"),
        (("run", "--epochs", "3"), "Did you mean '--trials'?"),
        (("run", "--runs", "1e3"), "'1e3' is not a whole number such as 20"),
        (("run", "--runs", "0"), "must be at least 1, got 0"),
    ],
)
def test_a_mistyped_option_gets_the_one_that_was_meant(call, arguments, said):
    told = call(*arguments)
    assert told.exit_code == 2
    assert said in told.stderr


PYTHON = "systems: [{{name: mine, python: '{}'}}]\ntasks: [{{name: t, prompt: hi}}]\n"


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("nomod:f", 'systems[0].python: there is no module "nomod", neither in'),
        ("agents.missing:f", 'there is no module "agents.missing"'),
        ("nomod.f", "systems[0].python: must be module:function, got 'nomod.f'"),
    ],
)
def test_validate_finds_a_function_that_cannot_be_there(suite, call, here, reference, said):
    (here / "agents").mkdir()
    (here / "agents" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (here / "agents" / "there.py").write_text("")
    path = suite(PYTHON.format(reference))
    told = call("validate", str(path))
    assert told.exit_code == 2
    assert said in told.stdout
    path = suite(PYTHON.format("agents.there:f"))
    assert call("validate", str(path)).exit_code == 0, "modules are looked up and not imported"


def test_a_wrong_key_in_the_configuration_does_not_hide_the_help(call, here):
    (here / "passhat.toml").write_text("nonsense = 1\n")
    assert call("report", "--help").exit_code == 0
    assert "'nonsense' is not a key" in call("report", "x.csv").stderr


@pytest.mark.parametrize(
    ("ask", "instead"),
    [
        (measure, "passhat.report"),
        (lambda path: judge(path, "pass^1 >= 0.5"), "passhat.gate"),
    ],
)
def test_a_path_where_trials_are_wanted_is_answered_with_the_function_that_reads(ask, instead):
    with pytest.raises(ArgumentError, match=rf"for a file call {instead}\('x.csv'\)"):
        ask("x.csv")


def test_explaining_without_transcripts_names_the_function_that_reads_them():
    from passhat.analysis.explaining.explain import explain

    table = Trials.from_columns(task=["a", "a"], passed=[True, False])
    with pytest.raises(ArgumentError, match=r"passhat\.read_with_transcripts"):
        explain(table)
