"""Runs of the history by name, wherever results are read."""

import json

import pytest


@pytest.fixture
def kept(here, call):
    (here / "monday.csv").write_text("task,trial,passed\n" + "t,1,1\nt,2,0\nt,3,1\nt,4,1\n")
    (here / "tuesday.csv").write_text("task,trial,passed\n" + "t,1,0\nt,2,0\nt,3,1\nt,4,1\n")
    for name in ("monday", "tuesday"):
        done = call("history", "add", f"{name}.csv", "--suite", "nightly", "--branch", "main")
        assert done.exit_code == 0, done.output
    assert call("history", "tag", "main", "baseline").exit_code == 0
    return here


def test_a_log_without_an_agent_gets_that_of_the_suite_so_that_a_trend_has_its_points(kept, call):
    (system,) = json.loads(call("trend", "nightly", "--json").stdout)["systems"]
    assert system["name"] == "nightly"
    assert len(system["points"]) == 2


def test_the_agent_that_a_log_is_kept_under_is_said(kept, call):
    done = call("history", "add", "monday.csv", "--suite", "nightly")
    assert "agent: nightly (as in earlier runs of the suite; --name says otherwise)" in done.stderr
    named = call("history", "add", "monday.csv", "--suite", "nightly", "--name", "mine")
    assert "agent: mine\n" in named.stderr


@pytest.mark.parametrize("command", ["report", "rank", "convert", "plan"])
def test_every_command_that_reads_results_reads_a_run_by_its_name(kept, call, command):
    by_name = call(command, "latest")
    by_store = call(command, ".passhat/history.db")
    assert by_name.exit_code == by_store.exit_code
    # lines break elsewhere where a name is longer
    said = by_name.stdout.replace("latest", ".passhat/history.db").split()
    assert said == by_store.stdout.split()


def test_two_runs_are_compared_under_the_names_given(kept, call):
    runs = [run["run"] for run in json.loads(call("history", "list", "--json").stdout)["runs"]]
    found = json.loads(call("compare", *runs, "--name", "new", "--name", "old", "--json").stdout)
    assert (found["first"], found["second"]) == ("new", "old")
    files = ("tuesday.csv", "monday.csv")
    told = call("compare", *files, "--name", "new", "--name", "old", "--json")
    assert json.loads(told.stdout)["second"] == "old"


def test_names_must_be_as_many_as_the_results(kept, call):
    done = call("compare", "latest", "baseline", "tuesday.csv", "--name", "a", "--name", "b")
    assert done.exit_code == 2
    assert (
        "--name must be given once, or once for each of the 3 files and runs, got 'a', 'b'"
        in done.stderr
    )


def test_a_word_that_is_neither_a_file_nor_a_run_names_the_newest_runs(kept, call):
    done = call("report", "yesterday")
    assert done.exit_code == 2
    assert "no run, tag, branch or commit 'yesterday'" in done.stderr


def test_flaky_tasks_over_the_last_runs(kept, call):
    found = json.loads(call("flaky", "nightly", "--json").stdout)
    (task,) = found["tasks"]
    assert (task["task"], task["trials"], task["passed"], task["marks"]) == ("t", 8, 5, "~~")
    assert found["runs"] == 2
    assert "1 of 1 task is flaky over 2 runs." in call("flaky").stdout
    assert json.loads(call("flaky", "--last", "1", "--json").stdout)["tasks"][0]["trials"] == 4


@pytest.mark.parametrize(
    ("shell", "part"), [("bash", "complete"), ("zsh", "compdef"), ("fish", "complete")]
)
def test_completion_prints_a_script_for_each_shell(call, shell, part):
    done = call("completion", shell)
    assert done.exit_code == 0
    assert part in done.stdout
    assert "_PASSHAT_COMPLETE" in done.stdout
