"""The plugin in real pytest sessions, each in a process of its own."""

import json
import subprocess
import sys

import pytest

OPENING = """
import pytest
COUNTS = {"setup": 0, "module": 0, "calls": 0}

@pytest.fixture(scope="module")
def shared():
    COUNTS["module"] += 1
    return COUNTS

@pytest.fixture
def fresh(shared):
    COUNTS["setup"] += 1
    yield COUNTS["setup"]
"""


@pytest.fixture
def session(tmp_path):
    def run(body: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_it.py").write_text(OPENING + body)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_a_test_that_always_passes_is_settled_early_and_passes(session):
    done = session("""
@pytest.mark.reliable("pass^1 >= 0.8", indifference=0.15, runs=200)
def test_steady(fresh): COUNTS["calls"] += 1

def test_after(): assert 5 < COUNTS["calls"] == COUNTS["setup"] < 100 and COUNTS["module"] == 1
""")
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    assert "PASS after" in done.stdout


def test_a_coin_flip_fails_with_the_sentence_and_the_failures(session):
    done = session("""
@pytest.mark.reliable("pass^1 >= 0.9", indifference=0.05, runs=100)
def test_coin(fresh): assert fresh % 2, "tails"
""")
    assert done.returncode == 1
    assert "FAIL after" in done.stdout
    assert "tails" in done.stdout
    assert "1 failed" in done.stdout


def test_too_few_runs_do_not_pass(session):
    done = session("""
@pytest.mark.reliable("pass^1 >= 0.9", runs=3)
def test_short(): pass
""")
    assert done.returncode == 1
    assert "UNDECIDED" in done.stdout


def test_a_broken_fixture_is_an_error_and_never_counts_for_a_pass(session, tmp_path):
    done = session("""
@pytest.fixture
def shaky(fresh):
    if fresh % 2: raise RuntimeError("no server")

@pytest.mark.reliable("pass^1 >= 0.6", evidence="bound", runs=40)
def test_shaky(shaky): pass
""", "--reliable-log", "runs.jsonl")  # fmt: skip
    assert done.returncode == 1
    lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert {line["outcome"] for line in lines if "outcome" in line} == {"passed", "errored"}


def test_a_skip_is_a_skip(session):
    done = session("""
@pytest.mark.reliable("pass^1 >= 0.9")
def test_absent(): pytest.skip("not here")
""")
    assert done.returncode == 0
    assert "1 skipped" in done.stdout


def test_the_log_is_read_by_passhat_report(session, tmp_path):
    session("""
@pytest.mark.reliable("pass^1 >= 0.9", runs=20, evidence="bound")
def test_some(fresh): assert fresh % 5
""", "--reliable-log", "runs.jsonl")  # fmt: skip
    command = [sys.executable, "-m", "passhat", "report", "runs.jsonl", "--json"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    (system,) = json.loads(told.stdout)["systems"]
    assert system["metrics"]["pass^1"]["value"] == 0.8


def test_with_workers_the_verdicts_come_together(session):
    done = session("""
@pytest.mark.reliable("pass^1 >= 0.8", indifference=0.15)
@pytest.mark.parametrize("n", range(3))
def test_steady(n): pass
""", "-n", "2")  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASS after") == 3


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ("reliable()", "reliable takes one demand"),
        ('reliable("pass^1 about 0.9")', "pass^1 about 0.9"),
    ],
)
def test_a_demand_that_cannot_be_read_is_a_usage_error(session, marker, message):
    done = session(f"@pytest.mark.{marker}\ndef test_it(): pass\n")
    assert done.returncode == 4
    assert message in done.stdout + done.stderr
