"""A clock that jumps while a run goes on: nothing is lost, counted twice, or taken over."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench.kill_storm import answer_done, call_identity, suite_text

from passhat.testing import WireServer

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
needs_faketime = pytest.mark.skipif(LIBRARY is None, reason="libfaketime is not installed")


class Clock:
    """The wall clock of the processes that get its variables; the monotonic clock stays right."""

    def __init__(self, folder):
        self._file = folder / "clock"
        self.jump("+0")

    def jump(self, offset):
        self._file.write_text(offset)

    @property
    def variables(self):
        return {
            **os.environ,
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }


@pytest.fixture
def clock(tmp_path):
    return Clock(tmp_path)


@pytest.fixture
def server():
    with WireServer(answer_done, latency=0.1) as server:
        yield server


def start(*arguments, cwd, clock):
    return subprocess.Popen(
        [sys.executable, "-m", "passhat", *arguments],
        cwd=cwd,
        env=clock.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(server, calls, process):
    while len(server.asked) < calls:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)


@pytest.mark.slow("real processes whose every look at the clock reads a file")
@needs_faketime
def test_a_run_goes_through_clocks_that_jump(server, clock, tmp_path):
    (tmp_path / "suite.yml").write_text(suite_text(server.url, 4))
    command = ("run", "suite.yml", "--runs", "20", "--concurrency", "2", "--json")
    run = start(*command, "--max-minutes", "20", cwd=tmp_path, clock=clock)
    wait_for(server, 10, run)
    clock.jump("+2d")
    wait_for(server, 20, run)
    refused = start("resume", cwd=tmp_path, clock=clock)
    assert "is still running" in refused.communicate(timeout=100)[1]
    assert refused.returncode == 2
    clock.jump("-3h")
    out, err = run.communicate(timeout=200)
    assert run.returncode == 0, err
    assert len(server.asked) == 80
    system = json.loads(out)["report"]["systems"][0]
    assert sum(row["runs"] for row in system["task_table"]) == 80
    assert 0 < system["features"]["seconds"]["mean"]["value"] < 60


@pytest.mark.slow("real processes whose every look at the clock reads a file")
@needs_faketime
@pytest.mark.parametrize("jump", ["-3h", "+5h"])
def test_a_killed_run_is_resumed_by_a_clock_that_jumped(server, clock, tmp_path, jump):
    (tmp_path / "suite.yml").write_text(suite_text(server.url, 4))
    run = start("run", "suite.yml", "--runs", "10", "--concurrency", "2", cwd=tmp_path, clock=clock)
    wait_for(server, 10, run)
    run.kill()
    run.communicate()
    clock.jump(jump)
    again = start("resume", "--json", cwd=tmp_path, clock=clock)
    out, err = again.communicate(timeout=200)
    assert again.returncode == 0, err
    system = json.loads(out)["report"]["systems"][0]
    assert sum(row["runs"] for row in system["task_table"]) == 40
    assert len({call_identity(asked) for asked in server.asked}) == 40
    assert len(server.asked) <= 42
