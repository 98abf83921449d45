"""Nothing is paid twice: living runs are left alone, killed ones lose nothing, disks fill up."""

import json
import os
import resource
import sqlite3
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


@pytest.mark.slow("kills processes and starts them again")
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


@pytest.mark.slow("kills processes and starts them again")
def test_runs_that_are_killed_lose_nothing_and_say_what_they_paid_twice():
    result = storm(kills=3, tasks=4, runs=40)
    assert result.kills > 0
    assert (result.kept, result.lost) == (160, 0)
    assert result.needed == 160
    # Between the mark and the bytes lie two system calls: one kill in a thousand comes there.
    assert result.paid_twice <= result.reported <= result.paid_twice + 1
    assert result.unsure == 0


@pytest.mark.slow("kills processes and starts them again")
@pytest.mark.parametrize("keep", ["store", "background"])
def test_answers_that_the_provider_kept_are_found_and_not_paid_again(keep):
    result = storm(kills=3, tasks=4, runs=40, keep=keep)
    assert (result.kept, result.lost) == (160, 0)
    assert result.reported > 0
    if keep == "store":
        assert result.paid_twice == 0
    # A call in the background is lost only before its name has come back.
    assert result.paid_twice <= result.reported - result.found <= result.paid_twice + 1


@pytest.mark.slow("fills a disk with a run, and resumes it")
def test_a_full_disk_is_a_sentence_and_the_run_is_resumed_when_there_is_room(server, tmp_path):
    (tmp_path / "suite.yml").write_text(suite_text(server.url, 4))
    full = passhat(
        *("run", "suite.yml", "--runs", "30", "--concurrency", "20"),
        cwd=tmp_path,
        # No file may grow beyond this: the store's log fills up as on a full disk.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)),
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # else half a module may be kept
    )
    code, _, err = ended(full)
    assert code == 3
    assert "the store cannot be used now" in err
    assert "Traceback" not in err
    code, out, err = ended(passhat("resume", "--concurrency", "20", cwd=tmp_path))
    assert code == 0, err
    assert "4 tasks" in out


AGENT = """
import time

def paid(prompt, trial):
    time.sleep(0 if trial < 3 else 30)
    return {"passed": True, "cost": COST}
"""


@pytest.mark.slow("kills runs and starts them again")
@pytest.mark.parametrize(("cost", "says"), [(0.5, True), (0, False)])
def test_attempts_of_agents_that_cost_money_are_counted_when_the_run_dies(tmp_path, cost, says):
    (tmp_path / "agents.py").write_text(AGENT.replace("COST", str(cost)))
    (tmp_path / "suite.yml").write_text(
        "name: s\nsystems: [{name: a, python: 'agents:paid', timeout: 60}]\n"
        "tasks: [{name: t, prompt: hi}]\n"
    )
    run = passhat("run", "suite.yml", "--runs", "5", "--concurrency", "5", cwd=tmp_path)
    store = tmp_path / ".passhat" / "history.db"
    while not store.exists() or finished(store) < 3:
        assert run.poll() is None
        time.sleep(0.1)
    run.kill()
    run.communicate()
    (tmp_path / "agents.py").write_text(AGENT.replace("COST", str(cost)).replace("30", "0"))
    code, out, err = ended(passhat("resume", "--changed", "--json", cwd=tmp_path))
    assert code == 0, err
    (note,) = [n for n in json.loads(out)["report"]["notes"] if "perhaps paid" in n] or [""]
    assert ("perhaps paid twice: 2 calls" in note) is says


def finished(store):
    connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT count(*) FROM trials").fetchone()[0]
    except sqlite3.OperationalError:
        return 0  # its tables are being made
    finally:
        connection.close()
