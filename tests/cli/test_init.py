"""A first suite: written, listed, validated."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from passhat.cli.setup import init, list_rows, validate
from passhat.errors import SuiteError
from passhat.records import ModelSystem
from passhat.suite import load_suite
from passhat.suite.yaml_tree import read_tree


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(command, *arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def test_init_writes_a_suite_that_loads_without_any_key(here: Path) -> None:
    done = call(init, "--scripted")
    assert done.exit_code == 0
    assert done.stderr.endswith("now: passhat run\n")
    suite = load_suite(here / "passhat.yml", env={})
    assert suite.size == "3 tasks, 1 agent, 60 trials"
    assert all(isinstance(p.system, ModelSystem) and p.system.model.script for p in suite.pairings)
    modeline = (here / "passhat.yml").read_text().splitlines()[0]
    assert (here / modeline.rpartition("=")[2]).is_file()


@pytest.mark.parametrize(
    ("ci", "file"),
    [("github", ".github/workflows/passhat.yml"), ("gitlab", ".gitlab-ci.yml")],
)
def test_init_writes_a_ci_job_that_is_yaml_and_runs_the_suite(
    here: Path, ci: str, file: str
) -> None:
    assert call(init, "--ci", ci).exit_code == 0
    text = (here / file).read_text()
    assert not read_tree(text, env={}, keeps_references=lambda path: True).problems
    assert "passhat run" in text


def test_init_writes_a_test_that_compiles(here: Path) -> None:
    assert call(init, "sub", "--pytest").exit_code == 0
    test = here / "sub" / "tests" / "test_reliability.py"
    compile(test.read_text(), str(test), "exec")


def test_init_can_be_quiet(here: Path) -> None:
    done = call(init, "-q")
    assert done.exit_code == 0
    assert done.output == ""
    assert (here / "passhat.yml").is_file()


def test_init_overwrites_nothing_unless_told_to(here: Path) -> None:
    (here / "passhat.yml").write_text("name: mine\n")
    refused = call(init)
    assert isinstance(refused.exception, SuiteError)
    assert str(refused.exception) == "already there: passhat.yml (--force overwrites)"
    assert (here / "passhat.yml").read_text() == "name: mine\n"
    assert call(init, "--force").exit_code == 0
    assert (here / "passhat.yml").read_text() != "name: mine\n"


@pytest.mark.parametrize(
    ("options", "file"),
    [
        (["--ci", "github"], ".github/workflows/passhat.yml"),
        (["--ci", "gitlab"], ".gitlab-ci.yml"),
        (["--pytest"], "tests/test_reliability.py"),
    ],
)
def test_beside_a_suite_only_what_was_asked_for_is_written(here: Path, options, file) -> None:
    (here / "passhat.yml").write_text("name: mine\n")
    done = call(init, *options)
    assert done.exit_code == 0, done.exception
    assert "left passhat.yml as it is (--force overwrites it)" in done.stderr
    written = {str(path) for path in Path().rglob("*") if path.is_file()}
    assert written == {"passhat.yml", file}
    assert Path("passhat.yml").read_text() == "name: mine\n"
    again = call(init, *options)
    assert str(again.exception) == f"already there: {file} (--force overwrites)"
    assert call(init, *options, "--force").exit_code == 0
    assert Path("passhat.yml").read_text() != "name: mine\n"


def test_validate_says_valid_or_tells_every_fault(here: Path) -> None:
    call(init, "--scripted")
    good = call(validate)
    assert (good.exit_code, good.stdout) == (
        0,
        "passhat.yml: valid: 3 tasks, 1 agent, 60 trials\n",
    )
    (here / "bad.yml").write_text('agents: [{name: a, model: o3}]\nruns: "\\e[31m"\n')
    bad = call(validate, "passhat.yml", "bad.yml")
    assert bad.exit_code == 2
    assert "bad.yml:1:10: agents[0]: needs either prompt, steps or user" in bad.stdout
    assert "bad.yml:2:1: runs:" in bad.stdout
    assert "\x1b" not in bad.stdout


def test_validate_gives_the_same_as_json(here: Path) -> None:
    (here / "bad.yml").write_text("agents: [{name: a, model: o3, promt: hi}]\n")
    done = call(validate, "--json", "bad.yml")
    assert done.exit_code == 2
    (entry,) = json.loads(done.stdout)
    assert not entry["valid"]
    assert entry["problems"][0] == {
        "line": 1,
        "column": 31,
        "path": "agents[0].promt",
        "message": '"promt" is not a key of agents[0]. Did you mean "prompt"?',
    }


def test_validate_notes_quarantines_that_have_ended(here: Path) -> None:
    (here / "suite.yml").write_text(
        "agents: [{name: a, model: o3, prompt: hi}]\nquarantine: [{task: a, until: 2020-01-31}]\n"
    )
    done = call(validate)
    assert done.exit_code == 0
    assert 'the quarantine of "a" ended on 2020-01-31: it is gated again' in done.stderr


def test_validate_notes_models_that_no_list_has_and_programs_that_are_not_here(here: Path) -> None:
    (here / "suite.yml").write_text(
        "systems:\n"
        "  - {name: typo, model: claude-opuss-5}\n"
        "  - {name: own, model: claude-opuss-5, base_url: 'http://localhost:1'}\n"
        "  - {name: mine, command: no-such-agent}\n"
        "tasks: [{name: t, prompt: hi, runs: 2}]\n"
    )
    done = call(validate)
    assert done.exit_code == 0
    assert done.stderr.splitlines() == [
        (
            'suite.yml: no price list has a model "claude-opuss-5" (did you mean claude-opus-5?): '
            "it is asked as it is"
        ),
        'suite.yml: system mine: there is no program "no-such-agent": install it, or give its path',
    ]


def test_validate_prints_the_schema(here: Path) -> None:
    assert json.loads(call(validate, "--schema").stdout)["title"] == "passhat suite"


def test_list_names_every_pairing_and_every_row(here: Path) -> None:
    (here / "suite.yml").write_text(
        "agents: [{name: weather selection, models: [o1, o3], prompt: hi, runs: 2, tags: [x]}]\n"
    )
    assert call(list_rows).stdout.splitlines() == [
        "weather selection [o1]  x2  (o1, #x)",
        "weather selection [o3]  x2  (o3, #x)",
    ]
    assert call(list_rows, "--rows").stdout.splitlines() == [
        "weather selection [o1] #1",
        "weather selection [o1] #2",
        "weather selection [o3] #1",
        "weather selection [o3] #2",
    ]
    first, _ = json.loads(call(list_rows, "suite.yml", "--json").stdout)
    assert (first["task"], first["system"], first["runs"]) == ("weather selection", "o1", 2)


def test_without_a_suite_the_way_out_is_said(here: Path) -> None:
    done = call(list_rows)
    assert isinstance(done.exception, SuiteError)
    assert "passhat init" in str(done.exception)


def test_models_that_have_a_price_are_listed_without_a_suite(here: Path) -> None:
    named = call(list_rows, "--models").stdout.splitlines()
    assert "claude-opus-5" in named
    assert named == json.loads(call(list_rows, "--models", "--json").stdout)
