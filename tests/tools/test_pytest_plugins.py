"""The marker beside the plugins that people use: pytest-asyncio, anyio, pytest-xdist, unittest."""

import json
from xml.etree import ElementTree as ET

import pytest

from passhat import read_trials
from passhat.history import History

TESTS = """
import asyncio
import unittest

import anyio
import pytest
import pytest_asyncio

RELIABLE = pytest.mark.reliable("pass^2 >= 0.5", indifference=0.3, runs=40)
COUNTS = {"async": 0}


@pytest_asyncio.fixture
async def resource():
    await asyncio.sleep(0)
    COUNTS["async"] += 1
    yield COUNTS["async"]


@RELIABLE
class TestRefunds:
    def test_small(self, trial):
        trial.record(cost=0.01, messages=[{"role": "user", "content": "refund me"}])

    @pytest.mark.parametrize("amount", [1, 20])
    def test_amount(self, amount, trial):
        assert trial.index != 3


@RELIABLE
@pytest.mark.asyncio
async def test_asyncio(resource):
    await asyncio.sleep(0)
    assert resource == COUNTS["async"] > 0


@RELIABLE
@pytest.mark.anyio
async def test_anyio(anyio_backend_name):
    await anyio.sleep(0)
    assert anyio_backend_name in ("asyncio", "trio")


@RELIABLE
class TestOld(unittest.TestCase):
    def setUp(self):
        self.ready = True

    def test_old_style(self):
        self.assertTrue(self.ready)
"""
NAMES = [
    "test_all.py::TestOld::test_old_style",
    "test_all.py::TestRefunds::test_amount[1]",
    "test_all.py::TestRefunds::test_amount[20]",
    "test_all.py::TestRefunds::test_small",
    "test_all.py::test_anyio[asyncio]",
    "test_all.py::test_anyio[trio]",
    "test_all.py::test_asyncio",
]
FAILING = """
import pytest

@pytest.mark.reliable("pass^1 >= 0.9", indifference=0.05, runs=60)
def test_coin(trial):
    assert trial.index % 2, "tails"

@pytest.mark.reliable("pass^1 >= 0.5", indifference=0.3, runs=60)
def test_steady(): pass
"""


@pytest.fixture(params=[(), ("-n", "2")], ids=["one process", "xdist"])
def session(request, tool, tmp_path):
    (tmp_path / "test_all.py").write_text(TESTS)
    words = ["--junitxml", "j.xml", "--reliable-log", "log.jsonl", "--reliable-store", "s.db"]
    done = tool("pytest").run("pytest", "-q", *request.param, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    return tmp_path, done.stdout


def test_every_kind_of_test_is_run_until_settled_and_told_in_one_order(session):
    folder, text = session
    assert "7 passed" in text
    for name in NAMES:
        (line,) = [line for line in text.splitlines() if line.startswith(f"{name}: ")]
        assert line.endswith("a PASS is wrong with a chance of at most 5%.")
    for suite in ("TestRefunds: 3 tests", "TestRefunds::test_amount: 2 tests", "test_anyio: 2"):
        (line,) = [line for line in text.splitlines() if f"::{suite}" in line]
        assert "pass^2" in line
    trials = read_trials(folder / "log.jsonl")
    assert sorted(trials.tasks) == NAMES
    begun = [trial.started for trial in trials]
    assert begun == sorted(begun)
    assert {trial.cost for trial in trials if trial.task.endswith("test_small")} == {0.01}
    _check_junit(folder)
    with History.open(folder / "s.db") as history:
        (run,) = history.runs()
        said = history.transcript(run, "pytest", "test_all.py::TestRefunds::test_small", 0)
    assert json.loads(said)["messages"][0]["text"] == "refund me"


def _check_junit(folder):
    cases = {case.get("name"): case for case in ET.parse(folder / "j.xml").iter("testcase")}
    found = {p.get("name"): p.get("value") for p in cases["test_amount[1]"].iter("property")}
    assert found["verdict"] == "PASS"
    assert int(found["passed"]) == int(found["runs"]) - 1
    assert 0 <= float(found["value"]) <= 1
    assert "PASS after" in found["reliability"]


def test_stopping_choosing_and_running_the_last_failures_again(tool, tmp_path):
    (tmp_path / "test_two.py").write_text(FAILING)
    pytest_tool = tool("pytest")
    first = pytest_tool.run("pytest", "-q", "-x", cwd=tmp_path).stdout
    assert "1 failed" in first
    assert "passed" not in first
    assert "FAILED test_two.py::test_coin - pass^1 >= 0.9: FAIL after" in first
    again = pytest_tool.run("pytest", "-q", "--lf", cwd=tmp_path).stdout
    assert "1 failed, 1 deselected" in again or "1 failed" in again
    assert "test_steady: " not in again
    chosen = pytest_tool.run("pytest", "-q", "-k", "steady", cwd=tmp_path).stdout
    assert "1 passed, 1 deselected" in chosen


def test_a_budget_ends_the_runs_and_skips_the_tests_after_it(tool, tmp_path):
    (tmp_path / "test_cost.py").write_text("""
import pytest

@pytest.mark.reliable("pass^1 >= 0.9", indifference=0.01, runs=500)
def test_dear(trial): trial.record(cost=1.0)

@pytest.mark.reliable("pass^1 >= 0.5", runs=60)
def test_later(trial): trial.record(cost=1.0)

def test_plain(): pass
""")
    done = tool("pytest").run("pytest", "-q", "-rs", "--reliable-max-cost", "5", cwd=tmp_path)
    assert "1 failed, 1 passed, 1 skipped" in done.stdout
    assert "The budget of --reliable-max-cost ended it after 5 runs." in done.stdout
    assert "the budget of --reliable-max-cost is spent" in done.stdout
