"""The tests are shared by processes that are forked off: each runs once, and none is lost."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ONE = """
import os
def test_passes(): pass
def test_fails(): assert os.getpid() == 0
def test_passes_too(tmp_path): (tmp_path / "x").write_text("")
"""
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""No other plugin: they take two thirds of the time in which pytest starts."""

KILLED = "import os, signal\ndef test_dies(): os.kill(os.getpid(), signal.SIGKILL)\n"


def run(folder, *files):
    for number, text in enumerate(files):
        (folder / f"test_{number}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", folder, folder]
    options = ["-p", "tests.workers", "--workers", "2", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(
        [*command, *options], cwd=ROOT, env=os.environ | ALONE, capture_output=True, text=True
    )
    return done.returncode, done.stdout


def test_every_test_of_every_file_runs_once_and_a_failure_is_shown(tmp_path):
    code, said = run(tmp_path, ONE, ONE, ONE)
    assert (code, "3 failed, 6 passed" in said) == (1, True), said
    assert said.count("assert os.getpid() == 0") == 3
    pids = re.findall(r"where (\d+) = ", said)
    assert 1 <= len(set(pids)) <= 2, said


@pytest.mark.parametrize("beside", [(), (ONE, ONE)])
def test_a_worker_that_is_killed_is_no_success(tmp_path, beside):
    code, said = run(tmp_path, KILLED, *beside)
    assert (code, "a worker broke: it was killed" in said) == (3, True), said


def test_workers_end_when_nobody_listens_any_more(tmp_path):
    slow = "import pytest\n@pytest.mark.parametrize('n', range(4_000))\n"
    (tmp_path / "test_long.py").write_text(f"{slow}def test_long(n): print(n)\n")
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", tmp_path, tmp_path]
    options = ["-p", "tests.workers", "--workers", "2", "-p", "no:cacheprovider", "-q"]
    with subprocess.Popen(
        [*command, *options], cwd=ROOT, env=os.environ | ALONE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout.read(100).startswith(".")  # workers are at work
        running.kill()
        running.stdout.read()  # ends when the last process that has it does
