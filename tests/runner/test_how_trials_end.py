"""Failure or error? Every way in which a trial in a workspace can end, with its stage and reason.

An agent must be able to fail, and must not be able to turn its failure into an error, which does
not count: what it broke is told from what was broken by trying the tests on the untouched work.
"""

import json
import os
import signal
import tempfile
from dataclasses import replace

import pytest
from tests.runner.test_workspaces import (
    ERRORED,
    FAILED,
    MEND,
    PASSED,
    RUN_HIDDEN,
    SMALL,
    SYSTEM_PYTHON,
    agent,
    folder,
    hidden,
    isolated,
    run,
)

from passhat.errors import MachineError
from passhat.records import CommandSystem, Expectation, Model, Pairing, Suite, Task, Workspace
from passhat.records.secrets import Secret
from passhat.runner import MemoryJournal, run_trials, workspaces
from passhat.runner import sandbox as sandboxes

__all__ = ["folder"]

pytestmark = isolated

IDLE, EDIT = "true", "echo '#' >> calc.py"
BREAK = "echo 100 > seconds; echo 4 > code"
RUNS_TESTS = f"sleep $(cat seconds) && [ $(cat code) = 0 ] && exec {RUN_HIDDEN}; exit $(cat code)"


def tests(command, **options):
    given = {"files": ["hidden/"], "at_least": 2, **options}
    return Expectation(matcher="tests", value=command, options=given)


def own(name, **files):
    """A workspace like the usual one, with some files of its own."""
    return name, {"code": "0", "seconds": "0", "pytest": RUNS_TESTS, **files}


# What happens: the agent's script, the workspace, setup, what decides; outcome, stage, words.
ENDINGS = {
    "the workspace is not there": (MEND, "nowhere", None, hidden(), ERRORED, "setup", "be made"),
    "the image is not there": (
        MEND, Workspace(image="localhost/nowhere:1"), None, hidden(), ERRORED, "setup", "nowhere",
    ),
    "setup fails": (
        MEND, "calc", "echo no >&2; exit 3", hidden(), ERRORED, "setup", "setup: exit code 3: no",
    ),
    "the program is missing": (
        ("no-such-agent",), "calc", None, hidden(), ERRORED, "agent", "cannot be started",
    ),
    "the agent does its work": (MEND, "calc", None, hidden(), PASSED, "grader", "2 tests passed"),
    "the agent does nothing": (IDLE, "calc", None, hidden(), FAILED, "grader", "2 of 2 tests"),
    "it ends with another code, and did its work": (
        f"{MEND}; exit 7", "calc", None, hidden(), PASSED, "grader", "2 tests passed",
    ),
    "it ends with another code, and did nothing": (
        "exit 7", "calc", None, hidden(), FAILED, "grader", "2 of 2 tests failed",
    ),
    "it kills itself": ("kill -9 $$", "calc", None, hidden(), FAILED, "grader", "2 of 2 tests"),
    "there is no report": (MEND, "calc", None, tests("true"), FAILED, "grader", "no test report"),
    "fewer tests ran than must": (
        MEND, "calc", None, hidden(at_least=9), FAILED, "grader", "2 of at least 9 tests ran",
    ),
    "all tests are skipped": (
        MEND, "calc", None,
        tests("sh -c \"echo 'test_a (m.T) ... skipped' >&2\""), FAILED, "grader", "(1 skipped)",
    ),
    "tests passed, but the exit code is another": (
        MEND, "calc", None, tests(f"sh -c '{RUN_HIDDEN}; exit 1'"), FAILED, "grader",
        "but the exit code is 1",
    ),
    "the test command is missing": (
        MEND, "calc", None, tests("no-such-runner"), ERRORED, "grader",
        "the tests could not run: no-such-runner: No such file",
    ),
    "the test command cannot be run": (
        MEND, "calc", None, tests("./calc.py"), ERRORED, "grader",
        "the tests could not run: ./calc.py: Permission denied",
    ),
    "the hidden tests are missing": (
        MEND, "calc", None, hidden("nowhere/"), ERRORED, "grader", "no hidden tests at",
    ),
    "pytest finds something that it cannot collect": (
        EDIT, own("two", code="2"), None, tests("sh pytest"), FAILED, "grader", "no test report",
    ),
    "pytest has an internal error": (
        EDIT, own("three", code="3"), None, tests("sh pytest"), ERRORED, "grader",
        "pytest broke: an internal error",
    ),
    "pytest is called in a wrong way": (
        EDIT, own("four", code="4"), None, tests("sh pytest"), ERRORED, "grader",
        "pytest broke: a wrong command line",
    ),
    "the agent breaks how pytest is called": (
        "echo 4 > code", own("fine"), None, tests("sh pytest"), FAILED, "grader",
        "a wrong command line: it said nothing; without its changes they run",
    ),
    "the agent removes what the tests start": (
        "rm run", own("removed", run=RUNS_TESTS), None, tests("sh run"), FAILED, "grader",
        "no test report",
    ),
    "the agent removes the program that is the test command": (
        "rm run", own("gone", run=RUNS_TESTS), None, tests("./run"), FAILED, "grader",
        "could not run: ./run: No such file or directory; without its changes they run",
    ),
    "a shell does not find the test command": (
        MEND, "calc", None, tests("sh -c no-such-runner"), ERRORED, "grader", "is not there",
    ),
    "the agent makes the test command unusable": (
        "rm -f run; mkdir run", own("unusable", run=RUNS_TESTS), None, tests("sh -c ./run"),
        FAILED, "grader", "without its changes they run",
    ),
    "the tests take too long, whatever the agent did": (
        EDIT, own("slow", seconds="100"), None, tests("sh pytest", timeout=1), ERRORED, "grader",
        "the tests took longer than 1 s",
    ),
    "the agent makes the tests hang": (
        "echo 100 > seconds", own("hangs"), None, tests("sh pytest", timeout=20), FAILED, "grader",
        "the tests took longer than 20 s; without its changes they run",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def ended(folder):
    """How each of them ended: one run of as many tasks."""
    pairings = []
    for name, (script, work, setup, decides, *_) in ENDINGS.items():
        if isinstance(work, tuple):
            place = folder / work[0]
            place.mkdir()
            for file, text in {**work[1], "calc.py": (folder / "calc/calc.py").read_text()}.items():
                (place / file).write_text(f"#!/bin/sh\n{text}" if file == "run" else text)
                (place / file).chmod(0o755 if file == "run" else 0o644)
            work = work[0]
        given = work if isinstance(work, Workspace) else Workspace(source=folder / work)
        task = Task(name=name, prompt="?", workspace=given, setup=setup, expect=(decides,))
        system = agent(name, script) if isinstance(script, str) else None
        system = system or CommandSystem(name=name, argv=script, timeout=100.0)
        pairings.append(Pairing(system=system, task=task, runs=1, label=name))
    suite = Suite(
        name="s", pairings=tuple(pairings), directory=folder, resources=SMALL, concurrency=4
    )
    journal = MemoryJournal()
    run_trials(suite, journal=journal, handle_signals=False, keep_going=True)
    return {done.ticket.task: (done.trial, json.loads(done.transcript)) for done in
            journal.finished()}  # fmt: skip


@pytest.mark.parametrize("name", ENDINGS)
def test_a_trial_ends_as_the_table_says(ended, name):
    *_, outcome, stage, words = ENDINGS[name]
    trial, said = ended[name]
    checks = [check["message"] for check in said.get("checks", ())]
    assert trial.outcome is outcome, (trial.error, checks)
    assert said["workspace"]["stage"] == stage
    assert any(words in one for one in (trial.error or "", *checks)), (trial.error, checks)


def test_a_setup_that_fails_once_is_tried_again(folder, tmp_path):
    mark = tmp_path / "mark"
    task = Task(name="t", prompt="?", workspace=Workspace(source=folder / "calc"),
                setup=f"test -e {mark} || ! touch {mark}", expect=(hidden(),))  # fmt: skip
    trial, _ = run(folder, [agent("a", MEND, sandbox="none")], task=task)["a"]
    assert trial.outcome is PASSED


def test_a_setup_that_takes_too_long_is_an_error(folder, monkeypatch):
    monkeypatch.setattr(workspaces, "SETUP_SECONDS", 0.2)
    task = Task(name="t", prompt="?", workspace=Workspace(source=folder / "calc"),
                setup="sleep 100", expect=(hidden(),))  # fmt: skip
    trial, said = run(folder, [agent("a", MEND)], task=task)["a"]
    assert (trial.outcome, said["workspace"]["stage"]) == (ERRORED, "setup")
    assert "setup took longer than 0.2 s" in trial.error


@pytest.mark.parametrize("graded", [False, True])
def test_who_runs_out_of_time_fails_unless_the_tests_shall_decide(folder, graded):
    task = Task(name="t", prompt="?", workspace=Workspace(source=folder / "calc"),
                expect=(hidden(grade_on_timeout=graded),))  # fmt: skip
    for seconds in (1.0, 5.0, 30.0):  # it must have begun: a busy machine takes its time
        slow = agent("a", f"{MEND}; sleep 100", timeout=seconds)
        trial, said = run(folder, [slow], task=task)["a"]
        if "a + b" in said["workspace"]["diff"]:
            break
    assert said["stop_reason"] == "timeout"
    assert trial.outcome is (PASSED if graded else FAILED)


def test_killed_by_a_machine_without_memory_is_an_error_and_killed_by_itself_is_not(
    folder, monkeypatch
):
    """Where no cgroup says whose process it was; with one, see `MemoryKills`."""
    kills = iter(range(1000))
    monkeypatch.setattr(sandboxes, "CGROUPS", folder / "none")
    monkeypatch.setattr(sandboxes, "_killed_on_this_machine", lambda: next(kills))
    both = [agent("killed", "kill -9 $$"), agent("ends", "exit 1")]
    came = run(folder, both)
    assert came["killed"][0].outcome is ERRORED
    assert "the machine ran out of memory" in came["killed"][0].error
    assert came["ends"][0].outcome is FAILED
    assert signal.SIGKILL == 9


@pytest.fixture
def small_machine(tmp_path, monkeypatch):
    """A group of 100 MB around those of trials: the kernel kills in them, at no limit of ours."""
    v2 = sandboxes.cgroup_version() == 2
    around = sandboxes.CGROUPS / ("" if v2 else "memory") / f"machine-{os.getpid()}"
    try:
        around.mkdir()
        (around / ("memory.max" if v2 else "memory.limit_in_bytes")).write_text("100000000")
        if v2:
            (around / "cgroup.subtree_control").write_text("+memory")
    except OSError as error:
        pytest.skip(f"no control group of memory may be made here: {error}")
    (tmp_path / "groups").mkdir()
    (tmp_path / "groups" / "memory").symlink_to(around)
    monkeypatch.setattr(sandboxes, "CGROUPS", around if v2 else tmp_path / "groups")
    yield
    around.rmdir()


@pytest.mark.usefixtures("small_machine")
def test_memory_that_the_machine_lacks_is_an_error_and_that_over_the_limit_a_failure(folder):
    """By what the kernel really does: our limits are 256 and 50 MB, the machine has 100."""
    takes = f'{SYSTEM_PYTHON} -c "bytearray(200_000_000)"'
    for limit, outcome in ((256 << 20, ERRORED), (50 << 20, FAILED)):
        limits = replace(SMALL, memory=limit)
        for name, script in (("ends with it", f"exec {takes}"), ("answers", f"{MEND}; {takes}")):
            trial, said = run(folder, [agent("a", script)], resources=limits)["a"]
            assert trial.outcome is outcome, (limit, name, said)
            if outcome is FAILED:
                assert said["stop_reason"] == "memory"
                assert said["workspace"]["stage"] == "grader"
            else:
                assert "the machine ran out of memory" in trial.error
                flags = said["workspace"]["flags"]
                assert flags[0].startswith("begun again: the machine ran out of memory")


@pytest.mark.parametrize(
    ("failing", "script", "outcome", "starts"),
    [
        ({0}, MEND, PASSED, 3),
        ({0, 1}, MEND, ERRORED, 2),
        ((), IDLE, FAILED, 2),
        ({1}, MEND, ERRORED, 2),
    ],
    ids=["once", "always", "never", "the grader"],
)
def test_an_agent_that_could_not_work_is_begun_again_once_and_the_trial_says_so(
    folder, monkeypatch, failing, script, outcome, starts
):
    """In a fresh workspace; what it did itself, and what its grader met, is never repeated."""
    really_run, seen = sandboxes.Sandbox.run, []

    async def run_or_fail(self, argv, view, **given):
        seen.append(view.top)
        if len(seen) - 1 in failing:
            raise MachineError("the sandbox cannot be started: too busy")
        return await really_run(self, argv, view, **given)

    monkeypatch.setattr(sandboxes.Sandbox, "run", run_or_fail)
    trial, said = run(folder, [agent("a", script)])["a"]
    assert trial.outcome is outcome, said
    assert len(seen) == len(set(seen)) == starts
    again = [flag for flag in said["workspace"]["flags"] if flag.startswith("begun again: ")]
    is_again = 0 in failing
    assert again == ["begun again: the sandbox cannot be started: too busy"] * is_again


def test_an_agent_that_never_asks_its_model_is_begun_again_once(folder, tmp_path):
    asks = f"echo x >> {tmp_path}/starts; {MEND}"
    model = Model(name="gpt-5", base_url="http://127.0.0.1:9/v1", api_key=Secret("${K}", "x"))
    systems = [agent("silent", asks, sandbox="none", model=model)]
    trial, said = run(folder, systems)["silent"]
    assert trial.outcome is ERRORED
    assert (tmp_path / "starts").read_text() == "x\nx\n"
    assert said["workspace"]["flags"][0].startswith("begun again: it never asked its model")


def test_hidden_tests_that_are_changed_or_removed_during_a_run_decide_nothing(folder):
    for name, harm in (("changed", "echo '#' >> {0}"), ("removed", "rm {0}")):
        place = folder / f"hidden-{name}"
        place.mkdir()
        (place / "hidden_tests.py").write_text((folder / "hidden/hidden_tests.py").read_text())
        script = harm.format(place / "hidden_tests.py")
        task = Task(name="t", prompt="?", workspace=Workspace(source=folder / "calc"),
                    expect=(hidden(f"hidden-{name}/"),))  # fmt: skip
        trial, _ = run(folder, [agent("a", f"{MEND}; {script}", sandbox="none")], task=task)["a"]
        assert trial.outcome is ERRORED, name
        assert "was changed while the run went on" in trial.error


def test_what_was_tried_on_untouched_work_leaves_nothing(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    task = Task(name="t", prompt="?", workspace=Workspace(source=folder / "calc"),
                expect=(tests("no-such-runner"),))  # fmt: skip
    trial, _ = run(folder, [agent("a", MEND)], task=task)["a"]
    assert trial.outcome is ERRORED
    assert list(tmp_path.glob("**/untouched*")) == []
