"""The plugin in real pytest sessions, each in a process of its own."""

import json
import math
import os
import re
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

from passhat.errors import ArgumentError
from passhat.history import History
from passhat.ingest import read_trials
from passhat.journeys import assert_reliable, gate

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


CHANGE_OUTPUT = ("CI", "BUILD_NUMBER", "FORCE_COLOR", "PY_COLORS", "PYTEST_ADDOPTS")


def run_session(folder, body: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(OPENING + body)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments]
    # Where continuous integration is named, pytest repeats every message in its summary.
    environment = {name: value for name, value in os.environ.items() if name not in CHANGE_OUTPUT}
    if "-n" not in arguments:  # a session with workers loads it as users do, and all others
        command += ["-p", "passhat.pytest_plugin"]
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def session(tmp_path):
    return partial(run_session, tmp_path)


FEW = """
@pytest.mark.reliable("pass^1 >= 0.9", runs=3)
def test_few(): pass
"""
EVERY_END = f"""
@pytest.mark.reliable("pass^1 >= 0.8", indifference=0.15, runs=200)
def test_steady(fresh): COUNTS["calls"] += 1

def test_after(): assert 5 < COUNTS["calls"] == COUNTS["setup"] < 100 and COUNTS["module"] == 1

@pytest.mark.reliable("pass^1 >= 0.9", indifference=0.05, runs=100)
def test_coin(fresh): assert fresh % 2, "tails"

@pytest.mark.reliable("pass^1 >= 0.9")
def test_absent(): pytest.skip("not here")
{FEW}
"""


@pytest.fixture(scope="module")
def every_end(tmp_path_factory):
    """What a session says in which a test ends in each way."""
    done = run_session(tmp_path_factory.mktemp("session"), EVERY_END, "-rA")
    assert done.returncode == 1
    assert "2 failed, 2 passed, 1 skipped" in done.stdout, done.stdout
    return done.stdout


def verdict(said, name):
    return next(line for line in said.splitlines() if line.startswith(f"test_it.py::{name}: "))


def test_a_test_that_always_passes_is_settled_early_and_passes(every_end):
    assert "PASSED test_it.py::test_steady" in every_end
    assert "PASSED test_it.py::test_after" in every_end
    assert "PASS after" in verdict(every_end, "test_steady")


def test_a_coin_flip_fails_with_the_sentence_and_the_failures(every_end):
    assert "FAILED test_it.py::test_coin" in every_end
    assert "FAIL after" in verdict(every_end, "test_coin")
    assert "tails" in every_end


def test_too_few_runs_do_not_pass(every_end):
    assert "FAILED test_it.py::test_few" in every_end
    assert "UNDECIDED" in verdict(every_end, "test_few")


def test_a_skip_is_a_skip(every_end):
    assert "SKIPPED [1] test_it.py" in every_end
    assert "not here" in every_end


@pytest.mark.slow("starts pytest once more")
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


@pytest.mark.slow("starts pytest and the command")
def test_the_log_is_read_by_passhat_report(session, tmp_path):
    session("""
@pytest.mark.reliable("pass^1 >= 0.9", runs=20, evidence="bound")
def test_some(fresh): assert fresh % 5
""", "--reliable-log", "runs.jsonl")  # fmt: skip
    command = [sys.executable, "-m", "passhat", "report", "runs.jsonl", "--json"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    (system,) = json.loads(told.stdout)["systems"]
    assert system["metrics"]["pass^1"]["value"] == 0.8
    assert "ended" not in json.loads((tmp_path / "runs.jsonl").read_text().splitlines()[0])


@pytest.mark.slow("starts pytest")
@pytest.mark.parametrize("log", ["runs.jsonl", "runs.csv"])
def test_a_log_and_a_store_say_that_demands_decided_how_many_trials_there_are(
    session, tmp_path, log
):
    session("""
@pytest.mark.reliable("pass^1 >= 0.5")
def test_some(): pass
""", "--reliable-log", log, "--reliable-store", "runs.db")  # fmt: skip
    (source,) = read_trials(tmp_path / log).sources
    assert source.ended == "by gates"
    for results in (log, "runs.db"):
        (verdict,) = gate(tmp_path / results, "pass^1 >= 0.5")
        assert (verdict.alpha, verdict.beta) == (None, None)
        assert "The verdict has no known error rate" in verdict.sentence


@pytest.mark.slow("starts pytest once more")
def test_a_test_that_is_collected_twice_is_logged_with_all_its_runs(session, tmp_path):
    done = session("""
@pytest.mark.reliable("pass^1 >= 0.1", runs=40)
def test_twice(): pass
""", "--reliable-log", "runs.jsonl", "--keep-duplicates", "test_it.py", "test_it.py")  # fmt: skip
    assert "2 passed" in done.stdout
    _, *rows = map(json.loads, (tmp_path / "runs.jsonl").read_text().splitlines())
    assert [row["trial"] for row in rows] == list(range(len(rows)))


@pytest.mark.slow("starts workers of pytest-xdist")
def test_with_workers_the_verdicts_come_together(session):
    done = session("""
@pytest.mark.reliable("pass^1 >= 0.8", indifference=0.15)
@pytest.mark.parametrize("n", range(3))
def test_steady(n): pass
""", "-n", "2")  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASS after") == 3


UNJUDGED = {
    "reliable()": "reliable takes one demand",
    'reliable("pas^3 >= 0.9")': "pas^3",
    'reliable("pass^1 >= 0.9", runs="many")': "runs must be a whole number, at least 1",
    'reliable("pass^1 >= 0.9", run=20)': 'reliable has no such term (did you mean "runs"?)',
    'reliable("pass^1 >= 0.9", colour=1)': "(the terms are runs, require, name, ",
    'reliable("pass^1 >= 0.9", runs=0)': "runs must be a whole number, at least 1",
    'reliable("pass^1 >= 0.9", certainty=0.9)': "certainty",
    'reliable("pass^1 >= 0.9", trials=20)': "calls the number of trials `runs`",
    'reliable("no_worse_than main by 0.05")': "main",
}


@pytest.mark.slow("starts pytest once more")
def test_a_demand_that_cannot_be_judged_is_an_error_of_its_test_alone(session):
    bad = "\n".join(
        f'@pytest.mark.{marker}\ndef test_it_{n}(fresh): COUNTS["calls"] += 1_000\n'
        for n, marker in enumerate(UNJUDGED)
    )
    done = session(f"""
def test_before(): COUNTS["calls"] += 1

@pytest.mark.reliable("pass^1 >= 0.8", indifference=0.15)
def test_steady(): COUNTS["calls"] += 1

{bad}
def test_after(): assert 0 < COUNTS["calls"] < 1_000 and COUNTS["setup"] == 0
""")
    assert done.returncode == 1, done.stdout
    assert f"3 passed, {len(UNJUDGED)} errors" in done.stdout
    for n, message in enumerate(UNJUDGED.values()):
        assert f"ERROR at setup of test_it_{n} " in done.stdout
        said = next(x for x in done.stdout.splitlines() if x.startswith(f"test_it.py::test_it_{n}"))
        assert message in said.removeprefix(f"test_it.py::test_it_{n}: ")
        assert done.stdout.index(said) < done.stdout.index("[100%]"), "said before anything is run"


def test_the_number_of_runs_follows_from_the_demand_and_is_said_at_collection(session):
    body = """
import random

@pytest.mark.reliable("pass^3 >= 0.8")
def test_always(): assert True

@pytest.mark.reliable("pass^3 >= 0.8")
def test_coin(trial): assert random.Random(trial.seed).random() < 0.5

@pytest.mark.reliable("pass^1 >= 0.95")
def test_strict(): assert True

@pytest.mark.reliable("pass^3 >= 0.8", runs=20)
def test_few(): assert True
"""
    told = session(body).stdout
    assert "reliable: 2 tests, each pass^3 >= 0.8, at most 99 trials; PASS after 51" in told
    assert "at most 20 trials; so few can never show it: an agent that never fails needs 41" in told
    assert "test_always: pass^3 >= 0.8: PASS after 51 trials" in told
    assert "test_strict: pass^1 >= 0.95: PASS after 75 trials" in told
    assert "test_coin: pass^3 >= 0.8: FAIL" in told
    assert "2 failed, 2 passed" in told


def test_a_test_that_is_undecided_says_what_to_raise(every_end, session):
    told = verdict(every_end, "test_few")
    assert "the log" not in told
    assert "Raise runs= in its marker, now 3, to 70." in told
    with pytest.raises(AssertionError, match="Raise `runs`, now 99, to 198"):
        assert_reliable(lambda seed: seed % 20 != 9, "pass^3 >= 0.8")
    told = verdict(session(FEW, "--reliable-runs", "5").stdout, "test_few")
    assert "Raise --reliable-runs, now 5, to 70." in told


def test_what_a_test_returns_is_read_and_false_never_passes(session):
    told = session(
        """
import unittest

@pytest.mark.reliable("pass@1 >= 0.5")
class TestPlain:
    def test_false(self): return False
    def test_true(self): return True
    def test_text(self): return "wrong"
    @pytest.mark.anyio
    async def test_async(self): return False

class TestCase(unittest.TestCase):
    @pytest.mark.reliable("pass@1 >= 0.5")
    def test_false(self): return False

@pytest.fixture
def anyio_backend(): return "asyncio"
""",
        "-p",
        "anyio",
    ).stdout
    assert "4 failed, 1 passed" in told, told
    assert "test_true: pass@1 >= 0.5: PASS" in told
    assert told.count(":\nreturned False") == 3, "trials that fail in the same way are one"
    assert told.count("\ntrials 1, 2, 3 and 9 more:") == 4
    assert "must return True or False, or nothing" in told


@pytest.mark.slow("starts pytest once more")
def test_the_trial_fixture_numbers_the_runs_and_keeps_what_they_record(session, tmp_path):
    done = session(
        """
SEEN = []

@pytest.mark.reliable("pass@1 >= 0.5", runs=40)
def test_recorded(trial):
    SEEN.append((trial.index, trial.seed))
    trial.record(cost=0.25, tokens_in=10)

def test_after():
    assert SEEN == [(i, i) for i in range(len(SEEN))] and len(SEEN) > 3
""",
        "--reliable-store",
        "history.db",
    )
    assert "2 passed" in done.stdout, done.stdout
    with History.open(tmp_path / "history.db", read_only=True) as history:
        (run,) = history.runs()
        trials = history.trials(run)
    assert run.suite == "pytest"
    assert set(trials.features["cost"].tolist()) == {0.25}


def test_a_function_is_asserted_reliable_without_pytest():
    assert assert_reliable(lambda: True, "pass@1 >= 0.5").status == "PASS"

    def coin(trial):
        assert trial.seed % 2, "tails"

    with pytest.raises(AssertionError, match=r"FAIL|UNDECIDED|pass@1") as raised:
        assert_reliable(coin, "pass@1 >= 0.9", runs=60)
    assert "tails" in str(raised.value)

    async def later():
        return True

    assert assert_reliable(later, "pass@1 >= 0.5")


def test_a_function_that_always_fails_is_a_fail_and_not_taken_for_an_outage_forever():
    calls = []

    def broken():
        calls.append(1)
        time.sleep(0.05)  # a stretch of failures that took time asks for a pause
        return False

    with pytest.raises(AssertionError, match=r"broken: pass\^3 >= 0.5: FAIL after") as raised:
        assert_reliable(broken, "pass^3 >= 0.5")
    assert f" {len(calls)} trials were run." in str(raised.value), "every call is said"


def test_a_function_may_take_the_seed_and_nothing_that_nobody_gives_it():
    seeds = []
    assert_reliable(lambda seed: seeds.append(seed), "pass^1 >= 0.5")
    assert seeds == list(range(len(seeds)))
    with pytest.raises(ArgumentError, match="function may take `trial`, `seed` or nothing"):
        assert_reliable(lambda prompt: True)


@pytest.mark.slow("workers of pytest-xdist, started for a second time")
def test_a_verdict_is_the_same_with_and_without_xdist(session):
    body = """
import random

@pytest.mark.reliable("pass^2 >= 0.6", indifference=0.1, runs=150)
@pytest.mark.parametrize("salt", range(4))
def test_seeded(salt, trial):
    assert random.Random(f"{salt} {trial.seed}").random() < 0.9 - 0.15 * salt
"""

    def sentences(*arguments):
        lines = session(body, *arguments).stdout.splitlines()
        return sorted(line for line in lines if line.startswith("test_it.py::test_seeded"))

    alone = sentences()
    assert len(alone) == 5
    assert {word for line in alone for word in ("PASS", "FAIL") if word in line} == {"PASS", "FAIL"}
    assert sentences("-n", "2") == alone


@pytest.mark.parametrize("answer", ["", "wrong", {}, {"answer": "49"}, 0, 1, 0.3, [True]])
def test_an_answer_that_nobody_looked_at_is_no_pass(answer):
    calls = []

    def agent():
        calls.append(1)
        return answer

    with pytest.raises(ArgumentError, match="must return True or False"):
        assert_reliable(agent, "pass^3 >= 0.8")
    assert len(calls) == 1


@pytest.mark.parametrize("kind", [bool, np.bool_])
def test_numpys_false_fails_as_pythons_does(kind):
    assert assert_reliable(lambda: kind(1), "pass@1 >= 0.5")
    with pytest.raises(AssertionError, match="returned False"):
        assert_reliable(lambda: kind(0), "pass@1 >= 0.5")


@pytest.mark.slow("starts pytest once more")
def test_junit_counts_the_runs_that_the_verdict_counts(session, tmp_path):
    """The verdict falls on seven runs; the eighth shows that its failures were no outage."""
    done = session("""
@pytest.mark.reliable("pass^3 >= 0.8")
def test_shaky(trial): assert trial.index in (1, 3, 5, 7)
""", "--junitxml", "junit.xml")  # fmt: skip
    assert done.returncode == 1
    text = (tmp_path / "junit.xml").read_text()
    found = dict(re.findall(r'property name="(\w+)" value="([^"]*)"', text))
    runs, passed = int(found["runs"]), int(found["passed"])
    assert f"{passed} of {runs} trials passed" in found["reliability"]
    assert f"{runs + 1} trials were run" in found["reliability"]
    assert float(found["value"]) == pytest.approx(math.comb(passed, 3) / math.comb(runs, 3))
