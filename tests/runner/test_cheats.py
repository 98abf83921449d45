"""`check --try`: can a task be passed without doing it? Holes are found, named, and only those."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner
from tests.runner.test_workspaces import APART, HIDDEN, SYSTEM_PYTHON, WRONG, isolated

import passhat
from passhat.cli import main
from passhat.cli.setup import schema_text
from passhat.errors import SuiteError
from passhat.records import CommandSystem, Expectation, Solution, Task
from passhat.reporters.formatting import TerminalStyle
from passhat.runner import hidden_tests
from passhat.runner.cheats import CHEATS, FORGES, NOTHING, SOLUTION, Cheat, _planted
from passhat.runner.workspaces import PROTECTED, matches
from passhat.suite import load_suite

UNITTEST = f"{SYSTEM_PYTHON} -m unittest -v hidden_tests"
RIGHT = WRONG.replace("a - b", "a + b")
PATCH = """\
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""

TASKS = {
    # Only the solution passes: the runner imports nothing from the workspace.
    "holds": (
        "workspace: calc\n    solution: fixed",
        f"{SYSTEM_PYTHON} -I -m unittest discover -v -s graders -p '*_tests.py'",
        "files: safe",
    ),
    # The tests import what the agent wrote.
    "imports": ("workspace: calc\n    solution: fix.patch", UNITTEST, "files: hidden"),
    # The tests are in the workspace, under a name that is not protected.
    "visible": ("workspace: visible", f"{SYSTEM_PYTHON} -I check_calc.py -v", "at_least: 2"),
    # Nothing fails before the work, and what is said to be the solution is none.
    "easy": (
        "workspace: calc\n    solution: {run: 'echo oops >&2; exit 3'}",
        f"{SYSTEM_PYTHON} -m unittest -v easy_tests",
        "files: easy_tests.py",
    ),
    # pytest, directed from a file that agents may change in other ways.
    "pytest": (
        "workspace: calc\n    solution: {run: \"sed -i 's/a - b/a + b/' calc.py\"}",
        f"{sys.executable} -m pytest -q --junitxml={{report}} test_hidden.py",
        "files: test_hidden.py",
    ),
    # Without the exit code, whoever kills the runner might have written its report.
    "named": (
        "workspace: calc",
        f"{sys.executable} -I -m pytest -q --junitxml={{report}} graders",
        "files: safe, names: [graders/test_apart.py::test_small]",
    ),
}


@pytest.fixture
def folder(tmp_path):
    for name, text in {
        "calc/calc.py": WRONG,
        "visible/calc.py": WRONG,
        "visible/check_calc.py": "import sys\nsys.path.append('.')\n"
        + HIDDEN
        + "if __name__ == '__main__':\n    unittest.main()\n",
        "hidden/hidden_tests.py": HIDDEN,
        "safe/graders/hidden_tests.py": APART,
        "safe/graders/test_apart.py": "import subprocess, sys\ndef test_small():\n    code = "
        "'import calc; print(calc.add(1, 2))'\n    done = subprocess.run([sys.executable, '-c', "
        "code], capture_output=True, text=True)\n    assert done.stdout.strip() == '3'\n",
        "easy_tests.py": "import unittest\nclass T(unittest.TestCase):\n"
        "    def test_it(self): pass\n",
        "test_hidden.py": "from calc import add\ndef test_small(): assert add(1, 2) == 3\n",
        "fixed/calc.py": RIGHT,
        "fix.patch": PATCH,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def tried(folder, *names):
    """What `check --try --json` says about these tasks, its exit code, and what it prints."""
    places = {Path(sys.prefix), *(Path(p) for p in sys.path if Path(p).is_dir())}
    places -= set(folder.parents)
    shown = json.dumps([str(place) for place in places])
    lines = [f"systems: [{{name: a, command: agent, show: {shown}}}]", "tasks:"]
    for name in names:
        keys, run, options = TASKS[name]
        lines += [f"  - name: {name}", "    prompt: Mend it.", f"    {keys}"]
        lines += [f"    expect: [{{tests: {{run: {json.dumps(run)}, {options}}}}}]"]
    (folder / "suite.yml").write_text("\n".join(lines) + "\n")
    done = CliRunner().invoke(main, ["check", str(folder / "suite.yml"), "--try", "--json"])
    assert done.exit_code in (0, 1), done.output
    jsonschema.validate(json.loads(done.stdout), json.loads(schema_text("tryout")))
    (said,) = json.loads(done.stdout)
    return said, done.exit_code


def holes(said):
    return {name: hole["tasks"] for name, hole in said["holes"].items()}


@isolated
def test_only_the_solution_passes_where_nothing_is_imported_from_the_workspace(folder):
    said, code = tried(folder, "holds")
    ended = {one["attempt"]: one["outcome"] for one in said["attempts"]}
    assert ended.pop(SOLUTION) == "passed", said
    assert ended == dict.fromkeys([NOTHING, *(cheat.name for cheat in CHEATS)], "failed"), said
    assert (code, said["holds"], holes(said)) == (0, True, {})
    assert said["answer"] == ("The graders hold on 1 task: nothing passes, but the solution does.")


@pytest.mark.slow("tries every cheat in a sandbox of its own")
@isolated
def test_the_hole_that_no_runner_can_close_is_named_and_others_are_problems(folder):
    said, code = tried(folder, "imports")
    assert holes(said) == {FORGES: ["imports"]}
    assert (code, said["holds"]) == (0, True)
    assert "a hole that no runner can close" in said["answer"]
    (found,) = said["holes"].values()
    assert "start the code as a program of its own" in found["remedy"]


@pytest.mark.slow("tries every cheat in a sandbox of its own")
@isolated
def test_tests_that_the_agent_may_rewrite_and_tests_that_pass_at_once_are_found(folder):
    said, code = tried(folder, "visible", "easy")
    found = holes(said)
    assert found["rewrites the tests that it sees"] == ["visible", "easy"]
    assert found[NOTHING] == ["easy"]
    assert SOLUTION not in found  # these tests pass whatever it did
    assert (code, said["answer"]) == (1, "2 of 2 tasks can be passed without doing them.")


@isolated
@pytest.mark.slow("starts pytest some thirty times")
def test_pytest_is_directed_by_no_file_of_the_agent_and_names_need_a_runner_that_lives(folder):
    said, _ = tried(folder, "pytest", "named")
    assert holes(said) == {FORGES: ["pytest"]}, said
    assert [one["outcome"] for one in said["attempts"] if one["attempt"] == SOLUTION] == ["passed"]


@isolated
def test_a_solution_that_does_not_work_is_a_problem_with_its_reason(folder, monkeypatch):
    monkeypatch.setattr("passhat.runner.cheats.CHEATS", ())
    TASKS["unsolved"] = (TASKS["easy"][0], *TASKS["imports"][1:])
    try:
        said, code = tried(folder, "unsolved")
    finally:
        del TASKS["unsolved"]
    assert (code, said["answer"]) == (1, "The solution of unsolved does not pass.")
    assert said["attempts"][-1]["reason"] == "exit code 3: oops"
    done = CliRunner().invoke(main, ["check", str(folder / "suite.yml"), "--try"])
    assert done.stdout.splitlines() == [
        "The solution of unsolved does not pass.",
        "",
        "  FAILED  the solution: unsolved",
        "          exit code 3: oops",
        "Tried 2 ways to pass 1 task.",
    ]


@isolated
def test_what_is_locked_in_a_workspace_stops_no_cheat(folder, monkeypatch):
    """It is the agent's own: an agent would open it."""
    monkeypatch.setattr("passhat.runner.cheats.CHEATS", CHEATS[:2])
    (folder / "calc" / "locked").mkdir()
    (folder / "calc" / "locked" / "test_old.py").write_text("")
    (folder / "calc" / "locked" / "test_old.py").chmod(0o444)
    (folder / "calc" / "locked").chmod(0o555)
    said, code = tried(folder, "holds")
    (folder / "calc" / "locked").chmod(0o755)
    assert {one["outcome"] for one in said["attempts"]} == {"passed", "failed"}, said
    assert (code, said["holds"]) == (0, True)


@isolated
def test_a_cheat_whose_own_script_fails_is_not_caught_but_untried(folder, monkeypatch):
    cheats = (
        Cheat(name="works", script="true", remedy=""),
        Cheat(name="stumbles", script="cp nowhere here", remedy="none"),
    )
    monkeypatch.setattr("passhat.runner.cheats.CHEATS", cheats)
    said, code = tried(folder, "holds")
    ended = {one["attempt"]: (one["outcome"], one["reason"]) for one in said["attempts"]}
    assert ended["works"][0] == "failed"
    assert ended["stumbles"][0] == "untried"
    assert ended["stumbles"][1].startswith("exit code 1: cp: ")
    assert (code, said["holds"]) == (1, False)
    assert said["answer"] == "1 way to cheat could not be tried."
    done = CliRunner().invoke(main, ["check", str(folder / "suite.yml"), "--try"])
    assert "  UNTRIED  stumbles: holds" in done.stdout.splitlines()


def test_what_a_forger_prints_passes_as_what_the_runner_of_the_task_prints():
    """A forger that no reader takes for a report would find no hole."""
    names = ["tests/test_a.py::test_x", "m.C::test_y", "test_z"]
    for run in ("sh -c 'pytest -rA 2>&1'", "bash /tests/run-tests.sh", "npx jest --json"):
        asked = Expectation(matcher="tests", value=run, options={"names": names})
        task = Task(name="t", expect=(asked,))
        done = subprocess.run(
            [sys.executable, "-c", _planted(task)["forge.py"]], capture_output=True, check=True
        )
        ended = hidden_tests.TestRun(code=0, stdout=done.stdout.decode())
        results = hidden_tests.read_results(ended)
        assert hidden_tests._verdict(results, ended, asked)[0] == 1, run


def test_every_file_that_pytest_takes_settings_from_is_protected():
    from _pytest.config.findpaths import CONFIG_LOADERS_BY_NAME

    assert [name for name in CONFIG_LOADERS_BY_NAME if not matches(f"a/{name}", PROTECTED)] == [
        "pyproject.toml"
    ]  # only what it says to pytest is


def test_the_answer_of_any_number_of_holes_fits_a_screen(folder):
    from passhat.journeys.checks import GraderTryout
    from passhat.runner.cheats import Tried

    every = tuple(
        Tried(task=f"a task with a rather long name {n}", attempt=name, wanted="failed",
              outcome="passed")
        for n in range(40)
        for name in [NOTHING, *(cheat.name for cheat in CHEATS)]
    )  # fmt: skip
    many = GraderTryout(file="s.yml", tried=every, left_out=tuple("abcdefghijklmnopqrs"))
    lines = passhat.render_terminal(many, TerminalStyle(width=80)).splitlines()
    assert lines[0] == "40 of 40 tasks can be passed without doing them."
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 80
    shown = sum("PASSED" in line for line in lines)
    assert f"{len(many.holes) - shown} more holes: -v" in lines
    for suites in (2, 3, 30):
        several = [replace(many, file=f"suites/{n}.yml") for n in range(suites)]
        lines = passhat.render_terminal(several, TerminalStyle(width=80)).splitlines()
        assert len(lines) <= 15
        assert lines[0].startswith("suites/0.yml: 40 of 40 tasks can be passed without doing them")
        assert any(": -v" in line for line in lines)
    assert len(passhat.to_frame(many, "pandas")) == len(every)


def test_a_suite_without_workspaces_says_that_nothing_was_tried(tmp_path):
    file = tmp_path / "suite.yml"
    file.write_text("agents: [{name: a, model: scripted, prompt: hi, script: [{answer: x}]}]\n")
    done = CliRunner().invoke(main, ["check", str(file), "--try"])
    assert done.exit_code == 0
    assert done.stdout.startswith("Nothing was tried: no task has a workspace")
    assert passhat.try_graders(file).left_out == ("a",)
    file.write_text("agents: [{name: a, modle: scripted}]\n")
    assert CliRunner().invoke(main, ["check", str(file), "--try"]).exit_code == 2


def test_a_killed_runner_decides_nothing_even_where_only_named_tests_count():
    import asyncio

    report = b'<testsuite><testcase name="test_x"/></testsuite>'
    asked = Expectation(matcher="tests", value="run {report}", options={"names": ["test_x"]})

    def score(code):
        async def ran(_words, _report):
            return hidden_tests.TestRun(code=code, report=report)

        return asyncio.run(hidden_tests.match_tests(asked, ran, lambda _: None)).score

    assert [score(code) for code in (0, 1, 5, 137, 143, -9)] == [1, 1, 1, 0, 0, 0]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("workspace: calc, solution: nowhere", "there is no solution at"),
        ("workspace: calc, solution: calc/calc.py", "in the workspace, where the agent reads"),
        ("solution: fixed", "solution needs a workspace"),
        ("workspace: calc, solution: {patch: fix.patch, run: x}", "either a patch, or files"),
    ],
)
def test_a_solution_that_an_agent_would_find_or_that_is_not_there_is_refused(folder, keys, message):
    (folder / "suite.yml").write_text(
        f"systems: [{{name: a, command: x}}]\ntasks: [{{name: t, prompt: '?', {keys}}}]\n"
    )
    with pytest.raises(SuiteError, match=message) as refused:
        load_suite(folder / "suite.yml")
    assert "solution" in str(refused.value)


def test_a_solution_is_a_folder_a_patch_or_a_command(folder):
    forms = {
        "fixed": Solution(files=folder / "fixed"),
        "fix.patch": Solution(patch=PATCH),
        "{patch: fix.patch}": Solution(patch=PATCH),
        "{run: make fix}": Solution(run="make fix"),
        "{files: fixed, run: $SOLUTION/go}": Solution(files=folder / "fixed", run="$SOLUTION/go"),
    }
    for written, meant in forms.items():
        (folder / "suite.yml").write_text(
            "systems: [{name: a, command: x}]\n"
            f"tasks: [{{name: t, prompt: '?', workspace: calc, solution: {written}}}]\n"
        )
        (pairing,) = load_suite(folder / "suite.yml").pairings
        assert isinstance(pairing.system, CommandSystem)
        assert pairing.task.solution == meant
