"""Everything that a command says, its function says too: the same JSON, byte for byte."""

import ast
import inspect
import re
from functools import reduce
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import passhat
from passhat.cli import COMMANDS, FORMERLY, main
from passhat.history import History
from passhat.records.ledger import RunLog
from passhat.reporters import render

pytestmark = pytest.mark.usefixtures("few_suites_drawn")

PATH = "two.jsonl"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-from-python.md"
SUITE = """\
name: sums
agents:
  - name: sum
    model: scripted
    prompt: 2 + 2?
    runs: 6
    expect: [{contains: "4"}]
    script: [{answer: "4"}, {answer: "5"}]
"""

ASKED = {
    ("demo", "--seed", "3"): lambda: passhat.demonstrate(seed=3),
    ("run", "--dry-run"): lambda: passhat.plan_run(store=".passhat/history.db"),
    ("validate",): lambda: passhat.check_suites(),
    ("report", PATH, "--k", "1,3"): lambda: passhat.report(PATH, ks=(1, 3)),
    ("compare", PATH): lambda: passhat.compare(PATH),
    ("rank", PATH, "--by", "pass^2"): lambda: passhat.rank_results(PATH, by="pass^2"),
    ("gate", PATH, "-r", "pass@1 >= 0.5"): lambda: passhat.gate(PATH, "pass@1 >= 0.5"),
    ("profile", PATH, "--only", "new"): lambda: passhat.profile_results(PATH, only="new"),
    ("judge", "labelled.csv", "--label", "human", "--label-chosen", "random"): lambda: (
        passhat.check_judge(passhat.read_trials("labelled.csv", mapping=LABELLED))
    ),
    ("plan", PATH, "--only", "new"): lambda: passhat.plan(PATH, only="new"),
    ("plan", "--gate", "pass@1 >= 0.9"): lambda: passhat.plan_gates("pass@1 >= 0.9"),
    ("plan", "--judge", "0.9,0.85", "--tasks", "30"): lambda: passhat.plan_labels(
        "0.9,0.85", tasks=30
    ),
    ("why", "sums"): lambda: passhat.why("sums"),
    ("diff", "sums", "sum", "1", "2"): lambda: passhat.diff_trials("sums", "sum", 1, 2),
    ("history", "list"): lambda: passhat.list_runs(),
    ("history", "log"): lambda: stored_changes(),
    ("history", "artefacts", "sums"): lambda: passhat.list_artefacts("sums"),
    ("history", "show", "sums"): lambda: passhat.report("sums"),
    ("history", "search", "2 +"): lambda: passhat.search_transcripts("2 +"),
    ("trend", "s"): lambda: passhat.trend("s"),
    ("flaky", "s"): lambda: passhat.flaky_tasks("s"),
}


def stored_changes():
    with History.open(".passhat/history.db") as store:
        return RunLog(changes=tuple(store.changes()))


LABELLED = passhat.ColumnMap(human_labels="human", label_chosen="random")
TIMED = ("run", "resume", "repeat")
"""Two runs of a suite take different times, and so have different JSON."""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    (folder / "suite.yml").write_text(SUITE)
    trials = passhat.simulate(tasks=6, runs=5, rate={"old": 0.6, "new": 0.8}, seed=3)
    passhat.write_trials(trials, folder / PATH)
    rows = [f"t{i // 4},{i % 4},{i % 3 == 0:d},{i % 3 < 2:d}" for i in range(48)]
    (folder / "labelled.csv").write_text("\n".join(["task,trial,passed,human", *rows]))
    add = f"history add {PATH} --suite s"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        calls = (add, add, "run -q", "history tag latest sums")
        codes = [CliRunner().invoke(main, words.split()).exit_code for words in calls]
    assert codes == [0, 0, 1, 0]  # an answer is 5
    return folder


@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_a_command_and_its_function_give_the_same_json(results, call, monkeypatch, words):
    monkeypatch.chdir(results)
    done = call(*words, "--json")
    assert done.exit_code in (0, 1, 4), done.output
    assert done.stdout == render(ASKED[words](), "json")


def commands(group=main, before=()):
    """The words of every command, those of groups too, with the command."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*before, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*before, name))


ALL = dict(commands())


def tables():
    """The rows of the two tables on the page: the functions of commands, and commands without."""
    text = PAGE.read_text(encoding="utf-8").partition("## The function of each command")[2]
    rows = [re.findall(r"^\| `([^`]+)` \| (.*) \|$", part, re.MULTILINE)
            for part in re.split(r"^\| command .*$", text, flags=re.MULTILINE)[1:]]  # fmt: skip
    return dict(rows[0]), dict(rows[1])


FUNCTIONS, ONLY_IN_A_SHELL = tables()


def named(cell):
    """The functions that a cell of the table names."""
    return [name for name in re.findall(r"`([\w.]+)`", cell) if name != "pairings"]


def test_each_command_has_its_function_or_is_only_for_a_shell():
    groups = {words for words, command in ALL.items() if isinstance(command, click.Group)}
    leaves = {" ".join(words) for words in ALL if words not in groups or words[0] != "history"}
    leaves -= {name for name, (_, now) in FORMERLY.items() if now.startswith("--")}
    with_function = {re.sub(r" --\S+$", "", command) for command in FUNCTIONS} - {"history"}
    alone = {name for name in leaves if name.split()[0] in ONLY_IN_A_SHELL}
    assert ONLY_IN_A_SHELL.keys() <= COMMANDS.keys()
    assert with_function | alone == leaves
    assert not with_function & alone


@pytest.mark.parametrize("command", FUNCTIONS)
def test_the_function_of_a_command_is_public_and_the_command_calls_it(command):
    # `history merge` is the former `merge`, and shares its module
    words = ("merge",) if command == "history merge" else command.split()[:1]
    command_function = inspect.unwrap(main.get_command(click.Context(main), *words).callback)
    tree = ast.parse(Path(command_function.__code__.co_filename).read_text(encoding="utf-8"))
    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    called |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
               for alias in node.names}  # fmt: skip
    for function in named(FUNCTIONS[command]):
        assert callable(reduce(getattr, function.split("."), passhat))
        if function != "read_trials":  # a command reads as its options say
            assert function.rpartition(".")[2] in called


def test_every_command_with_formats_and_a_function_is_compared():
    compared = {words[: 2 if words[0] == "history" else 1] for words in ASKED}
    with_formats = {
        words
        for words, command in ALL.items()
        if any("--as" in param.opts for param in command.params) and words != ("history",)
    }
    assert with_formats - {(name,) for name in TIMED} <= compared
