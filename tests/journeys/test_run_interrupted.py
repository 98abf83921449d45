"""Ctrl-C, SIGTERM and resume: nothing that was paid for is lost or paid for twice."""

import json
import os
import signal
import sqlite3
import threading
import time

import pytest

from passhat.runner.models.exchange import Reply
from passhat.testing import WireServer

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


@pytest.mark.slow("kills runs and starts them again")
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


@pytest.mark.slow("kills a run and resumes it once more")
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


CROSSED = """\
name: shop
concurrency: 2
users:
  patient: {{model: user-model, base_url: {url}, persona: Polite.}}
  terse: {{model: user-model, base_url: {url}, persona: At most five words.}}
factors:
  user: [patient, terse]
  wording: {{polite: "Please help. {{prompt}}", loud: "{{prompt}} Now!", aside: "Hi. {{prompt}}"}}
  fault: [none, all]
defaults: {{model: agent-model, base_url: {url}, runs: 4}}
agents:
  - name: refund
    user: {{goal: Get the money back for order 7., done: {{contains: refunded}}, max_turns: 4}}
    expect: [{{contains: refunded}}]
    faults: [{{kind: truncated_answer, nth: 1}}]
  - name: greet
    prompt: Say hello.
    expect: [{{contains: hello}}]
    faults: [{{kind: truncated_answer, nth: 1}}]
"""
CELLS = {
    "user": {"patient": 4, "terse": 4},
    "fault": {"none": 8, "all": 8},
    "wording": {"as written": 4, "polite": 4, "loud": 4, "aside": 4},
}
CALLS = 4 * (3 * 2 + 5)
"""Of three cells with a user, who speaks before each answer, and five without."""


@pytest.mark.slow("runs a suite with users, wordings and faults, kills it, resumes it, replays it")
def test_users_wordings_and_faults_are_run_killed_resumed_and_replayed(shell):
    asked, go_on = [], threading.Event()

    def answer(request):
        asked.append(request.body["model"])
        if len(asked) > 24:
            go_on.wait(60)
        if request.body["model"] == "user-model":
            return Reply(text="It is about order 7.")
        wants = "order 7" in str(request.body["messages"][-1]["content"]).lower()
        return Reply(text="I refunded order 7 today." if wants else "hello to you and yours")

    def levels(done):
        assert done.returncode == 0, done.stderr
        (system,) = json.loads(done.stdout)["report"]["systems"]
        assert (system["tasks"], system["trials"]) == (2, 8)
        return {
            factor["name"]: {one["name"]: one["runs"] for one in factor["levels"]}
            for factor in system["factors"]
        }

    with WireServer(answer) as server:
        shell.write("suite.yml", CROSSED.format(url=server.url))
        process = shell.start("run", "--record")
        wait_for(process, lambda: len(asked) > 24)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=120)
        kept = trials_kept(shell)
        go_on.set()
        resumed = shell("run", "--resume", "latest", "--json", "--html", "page.html")
        assert f"resuming: {kept} of 32 trials are already done" in resumed.stderr
        assert levels(resumed) == CELLS
        # A call that was under way when it was killed may be made twice, one for each worker.
        assert CALLS <= len(asked) <= CALLS + 4
    replayed = shell("run", "--replay", "--json")  # the server is gone
    assert levels(replayed) == CELLS
    page = (shell.directory / "page.html").read_text()
    assert all(name in page for name in ("What moves the result", "terse", "polite", "aside"))


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


@pytest.mark.slow("kills a run and resumes it once more")
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


@pytest.mark.slow("kills a run and starts it again")
def test_a_changed_suite_is_not_resumed_in_silence(shell):
    shell.write("suite.yml", SCRIPTED)
    shell("run", "--max-minutes", "0.0001")
    shell.write("suite.yml", SCRIPTED.replace("0.01", "0.02"))
    done = shell("resume")
    assert done.returncode == 2
    assert "suite.yml has changed since run" in done.stderr
