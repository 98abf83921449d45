"""A stored run against its baseline, and by its own gates."""

import pytest

from passhat.analysis.planning.simulate import simulate
from passhat.history import History
from passhat.journeys.report_cache import judge_run
from passhat.journeys.stored_runs import change_of_run


@pytest.fixture
def store(tmp_path):
    """Four runs of one suite, the first ones better; the second has a gate."""
    path = tmp_path / "history.db"
    with History.open(path) as history:
        for i, rate in enumerate((0.95, 0.95, 0.5, 0.5)):
            options = {"gates": ["pass^1 >= 0.6"]} if i == 1 else {}
            started = f"2026-11-0{i + 1}T09:00:00.000+00:00"
            run = history.start_run("suite", started=started, options=options)
            history.add_trials(run, simulate(tasks=30, runs=8, rate={"agent": rate}, seed=3))
            history.finish_run(run)
    return path


def test_a_run_is_compared_with_the_one_before_until_a_baseline_is_tagged(store):
    with History.open(store) as history:
        newest, middle, second, first = history.runs()
    assert change_of_run(store, first.key) is None
    found = change_of_run(store, middle.key)
    assert (found.baseline.key, found.tagged) == (second.key, False)
    assert found.comparison.headline.value < 0
    assert change_of_run(store, newest.key).comparison.headline.value == 0
    with History.open(store) as history:
        history.tag(first, "baseline")
    found = change_of_run(store, newest.key)
    assert (found.baseline.key, found.tagged) == (first.key, True)
    assert found.comparison.headline.name == "pass^5"
    assert found.comparison.headline.value < 0
    assert change_of_run(store, first.key) is None


def test_a_run_is_judged_by_the_gates_that_it_was_started_with(store):
    with History.open(store) as history:
        *_, second, first = history.runs()
        assert judge_run(history, first) is None
        assert judge_run(history, second).word == "PASS"
