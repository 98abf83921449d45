"""What commands and options were called before still works, and says what it is called now."""

import json

import click
import pytest
from click.testing import CliRunner

from passhat.cli import FORMERLY, main
from passhat.cli.error_messages import NOT_COLUMNS
from passhat.cli.options import Option, SectionedGroup
from passhat.cli.reading import COLUMNS

SUITE = """\
name: sums
agents:
  - name: sum
    model: scripted
    runs: 4
    prompt: What is 2 + 2?
    expect: [{contains: "4"}]
    script: [{answer: "4"}, {answer: "five"}]
"""
AGENTS = ["--rate", "a=0.9", "--rate", "b=0.85", "--rate", "c=0.5"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with results of three agents, a suite, and two stored runs of it."""
    folder = tmp_path_factory.mktemp("former")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "passhat.yml").write_text(SUITE)
        for words in (
            ["simulate", "--tasks", "6", "--trials", "6", *AGENTS, "-o", "all.jsonl"],
            ["convert", "all.jsonl", "--only", "a", "-o", "one.csv"],
            ["run", "-q"],
            ["run", "-q"],
        ):
            assert CliRunner().invoke(main, words).exit_code in (0, 1), words
        rows = "".join(f"{t},{i % 2}\n" for t in "xy" for i in range(4))
        (folder / "odd.csv").write_text("question,right\n" + rows)
    return folder


@pytest.fixture
def call(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return lambda *words: CliRunner().invoke(main, words)


GATE = ("one.csv", "--require", "pass^3 >= 0.5")
CASES = [  # what was typed before, what is typed now, what standard error says of it
    (("rank", "all.jsonl"), ("compare", "all.jsonl"), "`rank` is now `compare`"),
    (("diff", "latest", "sum"), ("why", "latest", "sum"), "`diff` is now `why RESULTS TASK`"),
    (("diff", "latest", "sum", "2", "1"), ("why", "latest", "sum", "2", "1"), "`diff` is now"),
    (("flaky",), ("trend", "--tasks"), "`flaky` is now `trend --tasks`"),
    (("schema",), ("--schema",), "`schema` is now `--schema [NAME]`"),
    (("schema", "plan"), ("--schema", "plan"), "`schema` is now"),
    (("completion", "zsh"), ("--completion", "zsh"), "`completion` is now `--completion SHELL`"),
    (("flaky", "--json"), ("trend", "--tasks", "--json"), "`flaky` is now"),
    (("list", "--models"), ("check", "--models"), "`list` is now"),
    (("history", "list"), ("history",), "`history list` is now `history`"),
    (("history", "list", "--json"), ("history", "--json"), "`history list` is now `history`"),
    (("cassette", "list"), ("cassette",), "`cassette list` is now `cassette`"),
    (
        ("plan", "--tasks", "9", "--runs", "4"),
        ("plan", "--tasks", "9", "--trials", "4"),
        "`--runs` is now `--trials`",
    ),
    (("simulate", "--runs=2"), ("simulate", "--trials=2"), "`--runs` is now `--trials`"),
    (
        ("gate", *GATE, "--scope", "tasks like these"),
        ("gate", *GATE, "--for", "similar-tasks"),
        "`--scope` is now `--for`",
    ),
    (("gate", *GATE, "--explain"), ("gate", *GATE, "-v"), "`--explain` is now `--verbose`"),
    (
        ("report", "one.csv", "--all-tasks"),
        ("report", "one.csv", "--tasks"),
        "`--all-tasks` is now `--tasks`",
    ),
    (
        ("repeat", "--runs", "2", "--min", "0.1", "--until-settled", "--", "true"),
        ("repeat", "--trials", "2", "--require", "pass@1 >= 0.1", "--until-decided",
         "--", "true"),
        "`--until-settled` is now `--until-decided`",
    ),
    (("report", "one.csv", "--markdown"), ("report", "one.csv", "-o", "-.md"), ""),
    (("report", "one.csv", "--as", "csv"), ("report", "one.csv", "-o", "-.csv"), ""),
    (("convert", "one.csv", "--csv"), ("convert", "one.csv", "-o", "-.csv"), ""),
    (
        ("report", "odd.csv", "--task", "question", "--pass", "right"),
        ("report", "odd.csv", "--columns", "task=question,pass=right"),
        "",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("before", "now", "note"), CASES, ids=lambda one: " ".join(one))
def test_a_former_name_prints_the_same_and_says_what_it_is_called_now(call, before, now, note):
    old, new = call(*before), call(*now)
    assert old.exception is None or isinstance(old.exception, SystemExit)
    assert old.exit_code == new.exit_code != 2
    # What to type next repeats what was typed.
    typed = old.stdout.replace("--task question --pass right", "--columns task=question,pass=right")
    assert typed == new.stdout
    assert note in old.stderr
    assert "is now" not in new.stderr


@pytest.mark.parametrize("words", [("resume", "latest"), ("run", "--resume", "latest")])
@pytest.mark.parametrize("option", ["--runs", "--trials"])
def test_a_run_is_extended_by_either_name(call, words, option, tmp_path):
    store = str(tmp_path / "h.db")
    call("run", "-q", "--store", store)
    done = call(*words, option, "6", "--store", store)
    kept = json.loads(call("history", "--store", store, "--json").stdout)
    assert [run["trials"] for run in kept["runs"]] == [6], done.stderr
    assert ("`resume` is now `run --resume [RUN]`" in done.stderr) is (words[0] == "resume")


def test_a_run_that_goes_on_keeps_its_options_and_a_suite_is_no_run(call):
    refused = call("run", "--resume", "latest", "--only", "sum")
    assert refused.exit_code == 2
    assert "goes on with the options that it was started with: leave out --only" in refused.stderr
    same = call("run", "--resume", "passhat.yml", "--json")
    assert same.exit_code in (0, 1), same.stderr
    assert same.exit_code == call("run", "passhat.yml", "--resume", "--json").exit_code


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (("history", "show", "latest", "--json"), ("report", "latest", "--json")),
        (("history", "export", "latest", "old.csv"), ("convert", "latest", "-o", "new.csv")),
    ],
)
def test_stored_runs_are_reported_and_written_as_any_results_are(call, folder, before, now):
    old, new = call(*before), call(*now)
    assert (old.exit_code, new.exit_code) == (0, 0)
    assert f"`{before[0]} {before[1]}` is now `" in old.stderr
    if before[1] == "export":
        assert (folder / "old.csv").read_text() == (folder / "new.csv").read_text()
    else:
        old_systems, new_systems = (json.loads(one.stdout)["systems"] for one in (old, new))
        assert old_systems == new_systems


def test_a_run_goes_to_a_folder_with_its_transcripts(call, folder):
    assert call("convert", "latest", "-o", "kept", "--transcripts").exit_code == 0
    assert call("history", "search", "2 + 2", "kept").exit_code == 0
    alone = call("convert", "one.csv", "-o", "two.csv", "--transcripts")
    assert "--transcripts are those of a stored run" in alone.stderr


@pytest.mark.parametrize("name", ["validate", "doctor", "scan"])
def test_what_was_asked_of_several_commands_is_asked_of_check(call, name):
    old, new = call(name), call("check", "--secrets", "passhat.yml")
    assert (old.exit_code, new.exit_code) == (0, 0), new.output
    assert f"`{name}` is now `check" in old.stderr
    assert new.stdout.splitlines() == [
        "ok  passhat.yml: 1 task x 4 trials, 1 agent (scripted)",
        "ok  model scripted: follows its script: no key, no network",
        "ok  passhat.yml: no secrets",
        "Ready: passhat run",
    ]


def test_check_fails_for_a_secret_and_for_a_suite_that_is_wrong(call, folder, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "a-very-secret-value-17")
    (folder / "leak.txt").write_text("a-very-secret-value-17")
    leaks = call("check", "--secrets", "leak.txt", "--json")
    assert leaks.exit_code == 1
    assert "a-very-secret" not in leaks.output
    assert [one["state"] for one in json.loads(leaks.stdout)][-1] == "problem"
    (folder / "wrong.yml").write_text("agents: []\n")
    assert call("check", "wrong.yml").exit_code == call("validate", "wrong.yml").exit_code == 2


def test_every_command_and_option_that_was_renamed_is_tried():
    tried = {" ".join(before[:n]) for before, _, _ in CASES for n in (1, 2)}
    tried |= {"resume", "validate", "doctor", "scan", "merge", "history show", "history export"}
    tried |= {"cassette verify", "local status"}  # tests/cli/test_doctor.py and test_run_replay.py
    assert set(FORMERLY) <= tried
    context, options = click.Context(main), set()
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        if isinstance(command, SectionedGroup):
            assert {f"{name} {below}" for below in command.formerly} <= tried
        params = [one for one in command.params if isinstance(one, Option)]
        options |= {former for param in params for former in param.formerly}
    used = {word.partition("=")[0] for before, _, _ in CASES for word in before}
    assert options <= used


def all_commands(group=main, before=()):
    """Every command, former ones and those of groups too, with its words."""
    context = click.Context(group)
    for name in dict.fromkeys([*group.list_commands(context), *getattr(group, "formerly", ())]):
        command = group.get_command(context, name)
        yield (*before, name), command
        if isinstance(command, click.Group):
            yield from all_commands(command, (*before, name))


EVERY = {
    **dict(all_commands()),
    **{(n,): main.get_command(click.Context(main), n) for n in FORMERLY},
}
RENAMED = {
    f"{' '.join(words)} {former}": (command, option, former)
    for words, command in EVERY.items()
    for option in command.params
    if isinstance(option, Option)
    for former in option.formerly
}


@pytest.mark.parametrize("typed", RENAMED)
def test_every_option_of_every_command_is_read_by_its_former_name(typed, capsys):
    command, option, former = RENAMED[typed]
    value = [] if option.is_flag else ["0.5"]
    parser = command.make_parser(click.Context(command))
    old, new = (parser.parse_args([name, *value])[0] for name in (former, option.flag))
    assert old == new
    assert option.name in old
    command._say_new_names(click.Context(command), [former, *value])
    assert capsys.readouterr().err == f"`{former}` is now `{option.flag}`\n"


BECAME = {(name,): now for name, (_, now) in FORMERLY.items()} | {
    (*words, name): now
    for words, command in EVERY.items()
    if isinstance(command, SectionedGroup)
    for name, now in command.formerly.items()
}


@pytest.mark.parametrize("words", BECAME, ids=" ".join)
def test_every_former_command_is_there_and_what_to_type_instead_is_too(words):
    assert CliRunner().invoke(main, [*words, "--help"]).exit_code == 0
    for instead in BECAME[words].split("` or `"):
        name, *rest = instead.split()
        command = main if name.startswith("-") else EVERY[(name,)]
        for word in [name, *rest] if command is main else rest:
            known = {flag for param in command.params for flag in param.opts}
            if word.startswith("-"):
                assert word in known, instead
            elif word.islower():
                command = EVERY[(name, word)]


@pytest.mark.parametrize("name", [name for name in COLUMNS if name not in NOT_COLUMNS])
def test_every_column_can_be_named_with_columns_as_with_its_option(name):
    report = main.get_command(click.Context(main), "report")
    (option,) = [one for one in report.params if one.name == f"column_{name}"]
    word = min(option.opts, key=len).lstrip("-").removesuffix("-column")
    context = report.make_context("report", ["x.csv", "--columns", f"{word}=a,b"])
    assert context.params["named_columns"] == {name: "a,b"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tsk=question", "'tsk' is not what a column can hold; did you mean task?"),
        ("question", "'question' is not NAME=COL, such as task=question,pass=ok"),
        ("task=a,task=b", "task is named twice: a and b"),
    ],
)
def test_a_column_that_cannot_be_understood_is_refused(call, text, message):
    done = call("report", "odd.csv", "--columns", text)
    assert done.exit_code == 2
    assert message in done.stderr


@pytest.mark.parametrize("words", [("-q",), ("--quiet",)])
def test_who_asks_for_quiet_is_told_no_new_name(call, words):
    assert call("rank", "all.jsonl", *words).stderr == ""
