"""Ctrl-C, SIGTERM and sudden death of a whole run, in a process of its own."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from passhat.history import History, RunJournal

SCRIPT = Path(__file__).parent.parent / "runner" / "slow_run.py"


class Started:
    """A run in a child process, and the lines that it prints."""

    def __init__(self, folder, mode):
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(folder), mode], stdout=subprocess.PIPE, text=True
        )
        self.lines = []

    def until(self, start, count=1):
        while sum(line.startswith(start) for line in self.lines) < count:
            line = self.process.stdout.readline()
            assert line, self.lines
            self.lines.append(line.strip())

    def end(self):
        # Not with communicate(): it does not see what readline() has read ahead.
        with self.process.stdout as output:
            self.lines += output.read().splitlines()
        return self.process.wait()

    def said(self, start):
        return [line for line in self.lines if line.startswith(start)]


@pytest.mark.parametrize(
    ("sign", "code"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow("interrupts a run once more")),
    ],
)
def test_the_first_signal_stops_launching_and_what_is_left_is_resumed(tmp_path, sign, code):
    run = Started(tmp_path, "slow")
    run.until("finished", 20)
    run.process.send_signal(sign)
    assert run.end() == code
    assert run.said("stopping") == [f"stopping {sign}"]
    (over,) = run.said("over")
    _, ending, done, undone = over.split()
    assert ending == "interrupted"
    assert int(done) + int(undone) == 200
    assert len(run.said("finished")) == int(done) < 200
    assert len(run.said("started")) <= int(done) + 4

    again = Started(tmp_path, "quick")
    assert again.end() == 0
    assert again.said("over") == ["over finished 200 0"]
    assert len(again.said("started")) == int(undone)


WAITS = """\
name: waits
defaults: {runs: 20}
concurrency: 4
systems: [{name: c, command: [sh, ../../agent.sh]}]
tasks: [{name: t, prompt: x, expect: [{contains: ok}]}]
"""

# From the tenth trial on it waits until the terminal is closed, however long that takes.
AGENT = """\
cd ../..
echo >> calls
if [ $(wc -l < calls) -ge 10 ]; then until [ -e closed ]; do sleep 0.02; done; fi
echo ok
"""


def take_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def on_terminal(*words, cwd, env):
    """A command on a terminal of its own, and our end of the terminal."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        words, cwd=cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=take_terminal,
    )  # fmt: skip
    os.close(theirs)
    return process, ours


@pytest.mark.slow("kills runs and starts them again")
@pytest.mark.parametrize(("nohup", "code"), [((), 129), (("nohup",), 0)])
def test_a_closed_terminal_stops_a_run_as_sigterm_does_unless_nohup_says_otherwise(
    tmp_path, nohup, code
):
    (tmp_path / "passhat.yml").write_text(WAITS)
    (tmp_path / "agent.sh").write_text(AGENT)
    started = *nohup, sys.executable, "-m", "passhat", "run", "--store", "h.db"
    run, terminal = on_terminal(*started, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)})

    calls = tmp_path / "calls"
    _wait(lambda: calls.exists() and len(calls.read_text()) >= 10)
    os.close(terminal)
    (tmp_path / "closed").touch()
    assert run.wait(timeout=120) == code
    with History.open(tmp_path / "h.db", read_only=True) as history:
        (kept,) = history.runs()
    if nohup:
        assert (kept.status, kept.trials) == ("finished", 20)
    else:
        assert kept.status == "interrupted"
        assert 5 <= kept.trials < 20


SERVED = """\
name: served
defaults: {{runs: 4}}
concurrency: 2
servers: {{clock: {{command: ["{python}", "{server}"]}}}}
systems:
  - name: a
    model: scripted
    servers: [clock]
    script: [{{calls: [{{tool: convert_time, args: {{time: "9:00"}}}}], answer: ok}}]
tasks: [{{name: t, prompt: x, expect: [{{contains: ok}}]}}]
"""

# It ends neither by itself nor when it is asked to.
STUBBORN = """\
import os, runpy, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open({pids!r}, "a") as file:
    file.write(f"{{os.getpid()}}\\n")
runpy.run_path({clock!r})
time.sleep(600)
"""


@pytest.mark.slow("ends ten runs at ten moments")
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGHUP])
def test_no_server_outlives_a_run_at_whatever_moment_it_is_ended(tmp_path, sign):
    pids, server = tmp_path / "pids", tmp_path / "server.py"
    clock = SCRIPT.with_name("clock_server.py")
    server.write_text(STUBBORN.format(pids=str(pids), clock=str(clock)))
    suite = tmp_path / "passhat.yml"
    suite.write_text(SERVED.format(python=sys.executable, server=server))
    command = [sys.executable, "-m", "passhat", "run", "--no-store", "--as", "ndjson"]
    whole = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert whole.returncode == 0, whole.stderr
    lines = whole.stdout.count("\n")
    codes = set()
    for moment in sorted({1, 2, lines // 2, lines - 1, lines}):
        run = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        for _ in range(moment):
            assert run.stdout.readline()
        run.send_signal(sign)
        run.stdout.read()
        run.stdout.close()
        codes.add(run.wait(timeout=120))
    assert 128 + sign in codes
    for pid in map(int, pids.read_text().split()):
        _wait(lambda pid=pid: _dead(pid))


def test_trials_that_do_not_end_are_abandoned_with_all_their_children(tmp_path):
    run = Started(tmp_path, "stuck")
    pids = tmp_path / "pids"
    run.until("finished", 3)
    _wait(lambda: pids.exists() and len(pids.read_text().split()) >= 2)
    run.process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    assert run.end() == 130
    # Two seconds are promised; a loaded machine gets more before it counts as a hang.
    assert time.monotonic() - sent < 60
    for pid in map(int, pids.read_text().split()):
        _wait(lambda pid=pid: _dead(pid))


def test_the_second_signal_ends_everything_at_once(tmp_path):
    run = Started(tmp_path, "stuck")
    pids = tmp_path / "pids"
    _wait(lambda: pids.exists() and len(pids.read_text().split()) >= 2)
    run.process.send_signal(signal.SIGINT)
    run.until("stopping")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130
    for pid in map(int, pids.read_text().split()):
        _wait(lambda pid=pid: _dead(pid))


@pytest.mark.slow("kills runs and starts them again")
def test_sudden_death_loses_nothing_that_was_announced(tmp_path):
    run = Started(tmp_path, "slow")
    run.until("finished", 25)
    run.process.kill()
    run.end()
    announced = {int(line.split()[1]) for line in run.said("finished")}
    with History.open(tmp_path / "history.db") as history:
        kept = RunJournal(history, history.runs()[0]).finished()
    assert announced <= {entry.ticket.number for entry in kept}
    again = Started(tmp_path, "quick")
    assert again.end() == 0
    assert again.said("over") == ["over finished 200 0"]


def _wait(condition):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def _dead(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
