"""Output that cannot be written, and Ctrl-C: the exit code never says that a demand failed."""

import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PASSHAT = (sys.executable, "-m", "passhat")
GATE = (*PASSHAT, "gate", "runs.csv", "-r", "pass^1 >= 0.1")
FULL = Path("/dev/full")

needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")


@pytest.fixture
def here(tmp_path):
    (tmp_path / "runs.csv").write_text("task,passed\n" + "a,1\nb,1\n" * 20)
    (tmp_path / "suite.yml").write_text(
        "defaults: {runs: 3}\n"
        "systems: [{name: a, model: scripted, script: [{answer: sure}]}]\n"
        "tasks: [{name: t, prompt: hi, expect: [{contains: sure}]}]\n"
    )
    return tmp_path


@needs_full
def test_a_full_disk_behind_standard_output_is_one_message_and_no_verdict(here):
    with FULL.open("w") as full:
        done = subprocess.run(GATE, cwd=here, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (3, "Error: No space left on device\n")


@pytest.mark.slow("starts the command for every stream")
@needs_full
@pytest.mark.parametrize("command", [GATE, (*PASSHAT, "run", "suite.yml")])
def test_notes_and_progress_that_nobody_can_read_leave_the_exit_code_alone(here, command):
    with FULL.open("w") as full:
        done = subprocess.run(command, cwd=here, stdout=subprocess.PIPE, stderr=full, text=True)
    assert done.returncode == 0
    assert "pass^1 >= 0.1" in done.stdout or "How many more: passhat plan" in done.stdout


@needs_full
@pytest.mark.parametrize(
    "words",
    [
        ["report", "absent.csv"],
        pytest.param(["report", "--no-such"], marks=pytest.mark.slow("starts the command again")),
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_refusal_that_nobody_can_read_keeps_its_exit_code(here, words, unbuffered):
    env = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with FULL.open("w") as full:
        done = subprocess.run((*PASSHAT, *words), cwd=here, stderr=full, env=env)
    assert done.returncode == 2


@pytest.mark.slow("starts the command for every stream")
@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2)])
def test_output_that_was_closed_before_the_start_leaves_the_exit_code_alone(here, closed):
    closing = " ".join(f"{stream}>&-" for stream in closed)
    done = subprocess.run(["sh", "-c", f'"$@" {closing}', "sh", *GATE], cwd=here)
    assert done.returncode == 0


def test_a_reader_that_ends_early_ends_the_command_as_it_ends_others(here):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(GATE, cwd=here, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_a_run_whose_reader_ends_early_is_finished_and_kept(here):
    reading, writing = os.pipe()
    os.close(reading)
    run = (*PASSHAT, "run", "suite.yml")
    done = subprocess.run(run, cwd=here, stdout=writing, stderr=writing)
    os.close(writing)
    assert done.returncode == 128 + signal.SIGPIPE
    listed = subprocess.run((*PASSHAT, "history"), cwd=here, stdout=subprocess.PIPE, text=True)
    assert re.search(r"suite +3 +100%\n", listed.stdout)
    assert "unfinished" not in listed.stdout


def test_ctrl_c_in_any_command_is_130(here):
    with subprocess.Popen(
        (*PASSHAT, "gate", "-", "-r", "pass^1 >= 0.1"),
        cwd=here,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        # More than a pipe holds: once it is taken, the command is reading, and stays at it.
        waiting.stdin.write("task,passed\n" + "a,1\n" * 100_000)
        waiting.stdin.flush()
        waiting.send_signal(signal.SIGINT)
        # Python notices a signal that comes between two reads only after the next one.
        while not select.select([waiting.stderr], [], [], 1)[0]:
            waiting.send_signal(signal.SIGINT)
        said = waiting.stderr.read()
    assert (waiting.returncode, said) == (130, "interrupted\n")
