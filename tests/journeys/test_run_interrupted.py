"""Ctrl-C, SIGTERM and resume: nothing that was paid for is lost or paid for twice."""

import json
import os
import signal
import sqlite3
import time

import pytest

SCRIPTED = """\
name: slow
concurrency: 2
agents:
  - name: patience
    model: scripted
    prompt: Take your time.
    runs: 12
    expect: [{contains: "4"}]
    script: [{answer: "4", seconds: 0.01}]
"""

# From the fourth trial on it waits for a file: nothing ends before it was interrupted.
WAITING = """\
concurrency: 2
systems: [{name: counting, command: [sh, agent.sh], cwd: .}]
tasks: [{name: any, prompt: hi, runs: 12}]
"""
AGENT = """\
echo >> calls
if [ $PASSHAT_TRIAL -ge 3 ]; then until [ -e go ]; do sleep 0.02; done; fi
echo '{"score": 1, "cost": 0.01}'
"""


def trials_kept(shell):
    """How many trials the store has, read as another process would."""
    path = shell.directory / ".passhat" / "history.db"
    if not path.exists():
        return 0
    with sqlite3.connect(path) as store:
        try:
            return store.execute("SELECT count(*) FROM trials").fetchone()[0]
        except sqlite3.OperationalError:
            return 0


def wait_for(process, condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


SIGNALS = [
    (signal.SIGINT, 130),
    pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow("interrupts a whole run once more")),
]


@pytest.mark.parametrize(("sent", "code"), SIGNALS)
def test_a_signal_ends_the_run_in_order_and_says_how_to_go_on(shell, sent, code):
    shell.write("suite.yml", WAITING)
    shell.write("agent.sh", AGENT)
    process = shell.start("run", "-o", "j.xml", "--html", "page.html")
    wait_for(process, lambda: trials_kept(shell) >= 2)
    process.send_signal(sent)
    shell.write("go", "")
    _, said = process.communicate(timeout=120)
    assert process.returncode == code, said
    command = said.rpartition("resume with: ")[2].split()
    assert command[:3] == ["passhat", "run", "--resume"]
    kept = trials_kept(shell)
    assert 2 <= kept < 12
    assert f"interrupted: {kept} of 12 trials made: {kept} passed\n" in said
    assert not (shell.directory / "j.xml").exists()
    listed = shell("history").stdout
    assert "interrupted" in listed
    assert "failed" not in listed
    assert f"Go on with the newest unfinished one: {' '.join(command)}" in listed
    done = shell(*command[1:], "--json")
    assert done.returncode == 0, done.stderr
    assert f"resuming: {kept} of 12 trials are already done" in done.stderr
    assert json.loads(done.stdout)["report"]["systems"][0]["trials"] == 12
    assert "<testsuite" in (shell.directory / "j.xml").read_text()
    assert (shell.directory / "page.html").exists()


WORDINGS = """\
concurrency: 2
factors: {wording: {polite: "Please {prompt}", loud: "{prompt}!"}}
gates: ["pass@1 >= 0.3"]
systems: [{name: counting, command: [sh, agent.sh], cwd: .}]
tasks: [{name: any, prompt: hi, runs: 6}, {name: other, prompt: ho, runs: 6}]
"""


def test_a_killed_run_under_conditions_is_resumed_with_each_trial_once(shell):
    shell.write("suite.yml", WORDINGS)
    shell.write("agent.sh", AGENT)
    process = shell.start("run")
    wait_for(process, lambda: trials_kept(shell) >= 2)
    process.kill()
    process.communicate(timeout=120)
    kept = trials_kept(shell)
    shell.write("go", "")
    done = shell("run", "--resume", "latest", "--json")
    assert done.returncode == 0, done.stderr
    assert f"resuming: {kept} of 36 trials are already done" in done.stderr
    (system,) = json.loads(done.stdout)["report"]["systems"]
    assert (system["tasks"], system["trials"]) == (2, 12)
    (factor,) = system["factors"]
    assert {one["name"]: one["runs"] for one in factor["levels"]} == {
        "as written": 12,
        "polite": 12,
        "loud": 12,
    }


def test_the_second_ctrl_c_ends_it_at_once(shell):
    shell.write("suite.yml", SCRIPTED.replace("seconds: 0.01", "seconds: 300"))
    process = shell.start("run", "-o", "events.ndjson")
    events = shell.directory / "events.ndjson"
    for seen in ("trial_started", "stopping"):
        wait_for(process, lambda seen=seen: events.exists() and seen in events.read_text())
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130


def test_a_killed_run_resumes_and_runs_no_finished_trial_again(shell):
    shell.write("suite.yml", WAITING)
    shell.write("agent.sh", AGENT)
    process = shell.start("run")
    wait_for(process, lambda: trials_kept(shell) >= 3)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert trials_kept(shell) == 3
    shell.write("go", "")
    done = shell("resume")
    assert done.returncode == 0, done.stderr
    assert trials_kept(shell) == 12
    # Only the two that were under way may have been started twice.
    calls = len((shell.directory / "calls").read_text())
    assert 12 <= calls <= 14


def test_the_same_command_with_resume_goes_on_and_then_has_nothing_to_do(shell):
    shell.write("suite.yml", SCRIPTED)
    first = shell("run", "--max-minutes", "0.0001", "--resume")
    assert first.returncode == 3, first.stderr
    assert "were left undone" in first.stderr + first.stdout
    second = shell("run", "--resume", "--json")
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout)["report"]["systems"][0]["trials"] == 12
    third = shell("run", "--resume")
    assert "resuming: 12 of 12 trials are already done" in third.stderr


def test_a_changed_suite_is_not_resumed_in_silence(shell):
    shell.write("suite.yml", SCRIPTED)
    shell("run", "--max-minutes", "0.0001")
    shell.write("suite.yml", SCRIPTED.replace("0.01", "0.02"))
    done = shell("resume")
    assert done.returncode == 2
    assert "suite.yml has changed since run" in done.stderr
