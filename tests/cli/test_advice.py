"""What an answer advises next can be called as it stands."""

import html
import json
import re
import shlex
import shutil

import click
import pytest
from click.testing import CliRunner

from passhat import simulate
from passhat.cli import main
from passhat.cli.reading import COLUMNS, ReadingOptions
from passhat.ingest.write import write_trials

TWO = """\
name: sums
defaults: {runs: 4}
systems:
  - {name: calm, command: [echo, "4"]}
  - {name: odd one, command: [echo, "5"]}
tasks:
  - {name: two and two, prompt: What is 2 + 2?, expect: [{contains: "4"}]}
  - {name: two and three, prompt: What is 2 + 3?, expect: [{contains: "5"}]}
"""


def advised(said):
    """The commands of an answer's steps, as a shell would split them."""
    said = re.sub(r" \\\n +", " ", said)  # a long command goes on in the next line
    lines = re.findall(
        r"(?:^ +|: )(passhat .*?)(?=    [A-Z][^:\n]*: passhat |$)", said, re.MULTILINE
    )
    return [shlex.split(line)[1:] for line in lines]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Results in files with awkward names, and in a history, that leave nothing but a command."""
    folder = tmp_path_factory.mktemp("made")
    dependable = simulate(tasks=12, runs=20, rate={"good": 0.9999}, seed=1)
    write_trials(dependable, folder / "it's good.jsonl")
    several = simulate(tasks=8, runs=8, rate={"a b": 0.9, "-c": 0.5, "d'e": 0.7}, seed=1)
    write_trials(several, folder / "several agents.csv")
    rows = "".join(f"q{i % 12},{1 + i % 2}\n" for i in range(240))
    (folder / "own.csv").write_text(f"question,points\n{rows}")
    for name, passed in (("young.csv", 1), ("broken.csv", 0)):
        rows = "".join(f"t{i % 10},{passed}\n" for i in range(80))
        (folder / name).write_text(f"task,passed\n{rows}")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("it's good.jsonl", "several agents.csv", "it's good.jsonl"):
            words = ["history", "--store", "my runs.db", "add", name]
            assert CliRunner().invoke(main, words).exit_code == 0
        words = ["history", "--store", "my runs.db", "tag", "latest", "v1"]
        assert CliRunner().invoke(main, words).exit_code == 0
    return folder


@pytest.fixture
def results(made, here):
    """A copy of them."""
    shutil.copytree(made, here, dirs_exist_ok=True)


@pytest.mark.parametrize(
    "words",
    [
        ["report", "it's good.jsonl"],
        ["report", "it's good.jsonl", "--name", "my agent", "--errors", "exclude"],
        ["report", "own.csv", "--task", "question", "--pass-if", "points>=1"],
        ["report", "young.csv"],
        ["report", "several agents.csv"],
        ["report", "several agents.csv", "--only", "a b", "--only", "-c"],
        ["rank", "several agents.csv", "--only", "a b", "--only", "d'e"],
        ["compare", "several agents.csv"],
        ["report", "my runs.db"],
        ["report", "my runs.db", "--run", "v1"],
        ["history", "--store", "my runs.db", "show", "v1"],
        ["history", "--store", "my runs.db", "show", "latest"],
        ["history", "--store", "my runs.db"],
    ],
    ids=" ".join,
)
def test_every_command_that_an_answer_advises_runs_as_it_stands(here, call, results, words):
    first = call(*words)
    assert first.exit_code == 0, first.stderr
    commands = advised(first.stdout)
    assert commands
    for command in commands:
        done = call(*command)
        assert done.exit_code == 0, (command, done.stderr)
        assert "RESULTS" not in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["report", "broken.csv", "--k", "3", "--confidence=0.8", "-q", "--seed", "4"],
        ["report", "--name", "-c", "broken.csv", "--k=2", "--errors=exclude"],
        ["compare", "several agents.csv", "--only", "a b", "--only", "-c", "--margin", "0.3"],
        ["compare", "--k", "2", "several agents.csv", "--only=d'e", "--only", "a b"],
        ["compare", "several agents.csv", "--only", "a b", "--only", "-c", "--by", "pass^2"],
    ],
    ids=" ".join,
)
def test_a_command_that_shows_more_of_an_answer_is_about_the_same_answer(call, results, words):
    (more,) = [one for one in advised(call(*words).stdout) if one[-1] == "-v"]
    again = json.loads(call(*more[:-1], "--json").stdout)
    assert again == json.loads(call(*words, "--json").stdout)


def test_what_a_trend_advises_reads_the_same_store_and_agent(here, call):
    for seed, rate in enumerate([0.95] * 4 + [0.3] * 4):
        trials = simulate(tasks=8, runs=8, rate={"new": rate, "other": 0.9}, seed=seed)
        write_trials(trials, here / f"{seed}.jsonl")
        stored = call(*("history", "--store", "my runs.db", "add", f"{seed}.jsonl", "--suite", "s"))
        assert stored.exit_code == 0, stored.stderr
    for chosen in ([], ["--only", "new"]):
        (command,) = advised(call("trend", "--store", "my runs.db", *chosen).stdout)
        assert command[3:] == ["--only", "new", "--store", "my runs.db"]
        done = call(*command)
        assert done.exit_code == 0, (command, done.stderr)


@pytest.mark.parametrize("ending", ["md", "html", "txt"])
def test_an_agent_that_never_passes_is_advised_no_gate(here, call, results, ending):
    assert call("report", "broken.csv", "-o", f"r.{ending}").exit_code == 0
    said = (here / f"r.{ending}").read_text()
    assert "passhat gate" not in said
    if ending == "html":
        assert "look at the failures of t0" in said
    else:
        assert "passhat why broken.csv" in said
    full = call("report", "broken.csv", "-v").stdout
    assert "passhat gate" not in full
    assert "look at the failures of t0" in " ".join(full.split())


def test_of_some_agents_of_a_file_the_ranking_advised_is_over_the_same(here, call, results):
    chosen = ["a b", "-c"]
    those = [word for one in chosen for word in ("--only", one)]
    (pair,) = advised(call("report", "several agents.csv", *those).stdout)
    assert pair == ["compare", "several agents.csv", *those, "--k", "5"]
    one, all_, *_ = advised(call("report", "several agents.csv", *those, "-v").stdout)
    assert one == ["report", "several agents.csv", "--only", "a b", "-v"]
    assert [all_[i + 1] for i, word in enumerate(all_) if word == "--only"] == chosen
    compared = json.loads(call(*all_, "--json").stdout)
    assert [compared["first"], compared["second"]] == chosen
    chosen = [*chosen, "d'e"]
    those = [word for one in chosen for word in ("--only", one)]
    _, all_, *_ = advised(call("report", "several agents.csv", *those, "-v").stdout)
    ranked = json.loads(call(*all_, "--json").stdout)
    assert {system["name"] for system in ranked["systems"]} == set(chosen)


def test_every_command_advised_is_about_the_agents_that_were_chosen(here, call, results):
    chosen = ["a b", "-c", "d'e"]
    those = [word for one in chosen for word in ("--only", one)]
    more = simulate(tasks=8, runs=8, rate=dict.fromkeys([*chosen, "fourth"], 0.6), seed=1)
    write_trials(more, here / "four.jsonl")
    (by,) = advised(call("compare", "four.jsonl", *those).stdout)
    assert sorted(by) == sorted(["compare", "four.jsonl", *those, "--by", "pass^5"])
    demand = "--require", "pass^3 >= 0.99"
    (why,) = advised(call("gate", "four.jsonl", "--only", "-c", *demand).stdout)
    assert why == ["why", "four.jsonl", "--only", "-c"]


def test_two_agents_that_a_report_tells_apart_are_told_apart_by_the_command_it_advises(here, call):
    """At pass@1 they are not: the command asks about the streak of the report."""
    rows = [("q", 1, [8, 8, 4, 4, 8, 5, 8, 8]), ("r", 0, [6, 6, 6, 6, 6, 6, 6, 6])]
    lines = [
        f"{agent},t{task},{int(i < passes)}"
        for agent, _, counts in rows
        for task, passes in enumerate(counts)
        for i in range(8)
    ]
    (here / "pair.csv").write_text("\n".join(["agent,task,passed", *lines, ""]))
    said = call("report", "pair.csv").stdout
    assert said.startswith("Neither agent is reliable. On these tasks q (63%) is ahead of r")
    (pair,) = advised(said)
    assert call(*pair).stdout.startswith("q is better than r: pass^5 is")
    asked = " ".join(call("compare", "pair.csv").stdout.split())
    assert asked.startswith("No clear difference")
    assert "At pass^5 q is ahead for these tasks: to ask about pass^5 instead, say --k 5." in asked


def test_markdown_and_pages_advise_the_same_commands(here, call, results):
    assert call("report", "it's good.jsonl", "-o", "r.md", "-o", "r.html").exit_code == 0
    file = shlex.quote("it's good.jsonl")
    command = f'passhat gate {file} --require "pass^5 >= 0.9"'
    assert f"`{command}`" in (here / "r.md").read_text()
    assert command in html.unescape((here / "r.html").read_text())


def test_each_of_several_systems_is_advised_a_gate_of_its_own(here, call):
    trials = simulate(tasks=12, runs=20, rate={"one": 0.9999, "the other": 0.9999}, seed=1)
    write_trials(trials, here / "two.jsonl")
    said = call("report", "two.jsonl", "--markdown", "-v").stdout
    for name in ("one", "'the other'"):
        assert f"passhat gate two.jsonl --only {name} --require" in said


def test_what_came_through_a_pipe_advises_no_command_on_it(call, results, here):
    for name in ("it's good.jsonl", "several agents.csv"):
        done = CliRunner().invoke(main, ["report", "-"], input=(here / name).read_bytes())
        assert done.exit_code == 0, done.stderr
        assert not advised(done.stdout)
        assert "RESULTS" not in done.stdout


@pytest.mark.parametrize("words", [["rank"], ["compare"], ["convert"], ["profile", "--only", "-c"]])
def test_a_store_is_read_by_every_command_that_reads_results(call, results, words):
    query = "SELECT key FROM runs WHERE suite = 'several agents'"
    key = call("history", "--store", "my runs.db", "--sql", query).stdout.split()[-1]
    done = call(*words, "my runs.db", "--run", key)
    assert done.exit_code == 0, done.stderr
    assert "-c" in done.stdout
    refused = call(*words, "my runs.db", "--run", "no such run")
    assert refused.exit_code == 2
    assert "no such run" in refused.stderr


def test_a_gate_judges_the_run_of_a_store_that_is_named(call, results):
    demand = ("-r", "pass^1 >= 0.95")
    assert call("gate", "my runs.db", "--run", "v1", *demand).exit_code == 0
    assert call("gate", "my runs.db", *demand).exit_code == 0
    assert call("gate", "several agents.csv", *demand).exit_code == 1


def test_the_commands_advised_after_a_run_of_several_systems_can_be_called(here, suite, call):
    suite(TWO)
    commands = advised(call("run").stdout)
    assert [command[0] for command in commands] == ["compare", "why"]
    commands += advised(call("run", "-v").stdout)
    assert {"report", "compare"} <= {command[0] for command in commands}
    for command in commands:
        done = call(*command)
        assert done.exit_code == 0, done.stderr
        assert any(name in done.stdout for name in ("calm", "odd one", "two and two"))


def test_a_run_that_was_not_kept_advises_no_command_on_it(here, suite, call):
    suite(TWO)
    assert not advised(call("run", "--no-store").stdout)


READING = {
    "format": "inspect", "duplicates": "last", "limits": ("max_depth=9",), "drop_rounds": (2, 5),
    "shares": ("easy=0.5", "hard=0.5"), "names": ("my agent",), "run": "v1", "store": "runs.db",
}  # fmt: skip


def read_words(command, words):
    """The reading options of a command line, as the command gets them."""
    # Without its group a command would keep the help option of one that stands alone.
    group = click.Context(main, **main.context_settings)
    context = command.make_context("passhat", list(words), parent=group)
    given = {name: value for name, value in context.params.items() if value is not None}
    given |= {f"column_{name}": value for name, value in given["named_columns"].items()}
    return {name: str(v) for name, v in given.items() if name in READING or name[:7] == "column_"}


@pytest.mark.parametrize("name", ["report", "why", "diff", "compare", "rank", "gate", "convert"])
def test_a_command_that_is_printed_repeats_every_reading_option(name):
    columns = {column: f"the {column}" for column in COLUMNS}
    again = ReadingOptions(paths=("my log.csv",), columns=columns, **READING).again()
    command = main.get_command(click.Context(main), name)
    read = read_words(command, shlex.split(again))
    every = {param.name for param in command.params if param.name in READING}
    every |= {param.name for param in command.params if param.name.startswith("column_")}
    assert read.keys() == every >= READING.keys()
    for option, value in (READING | {f"column_{c}": text for c, text in columns.items()}).items():
        assert read[option] == str(value), option
