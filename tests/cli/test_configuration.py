"""Defaults from passhat.toml and [tool.passhat] in pyproject.toml."""

import json
from pathlib import Path

import pytest

ROWS = "question,try,ok\na,1,1\na,2,0\nb,1,1\nb,2,1\n"


@pytest.fixture
def log(here):
    (here / "log.csv").write_text(ROWS)
    return here


def confidence_of(report):
    return report["systems"][0]["metrics"]["pass^1"]["confidence"]


def write_project(folder, table):
    (folder / "pyproject.toml").write_text(f"[project]\nname = 'x'\n\n[tool.passhat]\n{table}\n")


def test_columns_confidence_and_k_hold_for_every_command_that_has_them(log, call):
    write_project(
        log,
        "confidence = 0.8\nk = [1, 2]\ncolumns = {task = 'question', trial = 'try', passed = 'ok'}",
    )
    found = json.loads(call("report", "log.csv", "--json").stdout)
    assert confidence_of(found) == 0.8
    assert "pass^2" in found["systems"][0]["metrics"]
    assert call("convert", "log.csv", "--csv").exit_code == 0


def test_what_the_command_line_says_wins(log, call):
    write_project(log, "confidence = 0.8\ncolumns = {task = 'question', passed = 'ok'}")
    told = call("report", "log.csv", "--confidence", "0.9", "--json")
    assert confidence_of(json.loads(told.stdout)) == 0.9


def test_gates_of_the_configuration_are_those_of_gate(log, call):
    write_project(log, "gates = ['pass@1 >= 0.9']\ncolumns = {task = 'question', passed = 'ok'}")
    done = call("gate", "log.csv")
    assert done.exit_code == 4, done.output
    assert "pass@1 >= 0.9" in done.stdout


def test_a_store_lies_beside_the_file_that_names_it(log, call, monkeypatch):
    (log / "passhat.toml").write_text(
        "store = 'kept/all.db'\ncolumns = {task = 'question', passed = 'ok'}\n"
    )
    (log / "kept").mkdir()
    (log / "below").mkdir()
    monkeypatch.chdir(log / "below")
    assert call("history", "add", "../log.csv", "--suite", "s").exit_code == 0
    assert (log / "kept" / "all.db").exists()
    assert json.loads(call("report", "latest", "--json").stdout)["systems"]


def test_the_store_before_a_subcommand_wins_over_the_configured_one(log, call):
    (log / "passhat.toml").write_text("columns = {task = 'question', passed = 'ok'}\n")
    assert call("history", "--store", "mine.db", "add", "log.csv", "--suite", "s").exit_code == 0
    (log / "passhat.toml").write_text("store = 'other.db'\n")
    assert call("history", "--store", "mine.db", "list").exit_code == 0


@pytest.mark.parametrize("command", ["trend", "flaky", "mcp", "merge", "run", "resume", "report"])
def test_the_configured_store_is_the_default_wherever_there_is_the_option(here, command):
    from passhat.cli import COMMANDS, FORMERLY
    from passhat.cli.configuration import configured_defaults

    (here / "passhat.toml").write_text("store = 'kept.db'\nconfidence = 0.8\n")
    found = configured_defaults(here, [*COMMANDS, *FORMERLY])
    assert found[command]["store"] == str(here / "kept.db")
    assert found["flaky"]["confidence"] == 0.8
    assert "store" not in found["repeat"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "confidense = 0.9",
            "'confidense' is not a key that passhat knows. Did you mean",
        ),
        ("confidence = 95", "confidence must lie strictly between 0 and 1, got 95"),
        ("k = ['two']", "k must be whole numbers, such as [1, 2, 4]"),
        (
            "columns = {tsak = 'q'}",
            "'tsak' is not a column that passhat knows. Did you mean",
        ),
        ("gates = 'pass^3 >= 1'", "gates must be a list of demands"),
        ("store = 3", "store must be a path or an address, got 3"),
    ],
)
def test_a_mistake_in_the_configuration_is_one_message_and_exit_code_2(log, call, table, message):
    write_project(log, table)
    done = call("report", "log.csv")
    assert done.exit_code == 2
    assert message in done.stderr
    assert "pyproject.toml" in done.stderr


def test_a_file_that_is_no_toml_is_named(log, call):
    (log / "passhat.toml").write_text("confidence = = 1")
    done = call("report", "log.csv")
    assert done.exit_code == 2
    assert "passhat.toml: is not valid TOML" in done.stderr


def test_a_project_without_our_table_changes_nothing(log, call):
    (log / "pyproject.toml").write_text("[project]\nname = 'uses-passhat'\n")
    assert call("demo", "--json").exit_code == 0


@pytest.mark.parametrize("command", ["gate", "run"])
def test_a_demand_on_the_command_line_replaces_the_configured_gates(here, suite, call, command):
    text = "agents: [{name: a, model: scripted, prompt: hi, runs: 5, script: [{answer: hi}]}]\n"
    path = str(suite(text))
    (here / "passhat.toml").write_text("gates = ['pass@1 >= 0.4']\n")
    about = ["latest"] if command == "gate" else [path]
    configured = call("run", path)
    assert "pass@1 >= 0.4" in configured.stdout
    told = call(command, *about, "--require", "pass@1 >= 0.3")
    assert "pass@1 >= 0.3" in told.stdout
    assert "pass@1 >= 0.4" not in told.stdout


def test_the_reference_names_every_key_and_every_column():
    from passhat.cli.configuration import CONFIGURED
    from passhat.cli.reading import COLUMNS

    page = (Path(__file__).parents[2] / "docs/reference/configuration.md").read_text("utf-8")
    assert [key for key in CONFIGURED if f"| `{key}` |" not in page] == []
    assert [name for name in COLUMNS if f"`{name}`" not in page] == []
