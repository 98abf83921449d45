"""Nothing is paid twice: living runs are left alone, killed ones lose nothing, disks fill up."""

import resource
import subprocess
import sys
import time

import pytest
from bench.kill_storm import answer_done, storm, suite_text

from passhat.testing import WireServer


def passhat(*arguments, cwd, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "passhat", *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def ended(process):
    out, err = process.communicate(timeout=100)
    return process.returncode, out, err


@pytest.fixture
def server():
    with WireServer(answer_done, latency=0.3) as server:
        yield server


def test_a_living_run_is_not_run_a_second_time(server, tmp_path):
    (tmp_path / "suite.yml").write_text(suite_text(server.url, 2))
    first = passhat("run", "suite.yml", "--runs", "20", "--concurrency", "2", cwd=tmp_path)
    while len(server.asked) < 3:
        assert first.poll() is None
        time.sleep(0.05)
    code, _, err = ended(passhat("resume", cwd=tmp_path))
    assert code == 2
    assert f"is still running: process {first.pid} on " in err
    code, _, err = ended(passhat("run", "suite.yml", "--runs", "20", "--resume", cwd=tmp_path))
    assert code == 2
    assert ended(first)[0] == 0
    assert len(server.asked) == 40


def test_runs_that_are_killed_lose_nothing_and_say_what_they_paid_twice():
    result = storm(kills=3, tasks=4, runs=40)
    assert result.kills > 0
    assert (result.kept, result.lost) == (160, 0)
    assert result.needed == 160
    assert result.paid_twice <= result.reported


def test_a_full_disk_is_a_sentence_and_the_run_is_resumed_when_there_is_room(server, tmp_path):
    (tmp_path / "suite.yml").write_text(suite_text(server.url, 4))
    full = passhat(
        *("run", "suite.yml", "--runs", "30", "--concurrency", "20"),
        cwd=tmp_path,
        # No file may grow beyond this: the store's log fills up as on a full disk.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)),
    )
    code, _, err = ended(full)
    assert code == 3
    assert "the store cannot be used now" in err
    assert "Traceback" not in err
    code, out, err = ended(passhat("resume", "--concurrency", "20", cwd=tmp_path))
    assert code == 0, err
    assert "4 tasks" in out
