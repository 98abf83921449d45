"""A drift along the runs of a gate is seen, and steady runs are hardly ever called one."""

import numpy as np
import pytest

from passhat.stats.sequential.draws import DRIFT_ALARMS, find_drift


@pytest.mark.parametrize("rate", [0.5, 0.8, 0.95])
def test_steady_runs_are_called_a_drift_at_most_as_often_as_stated(rate):
    rng = np.random.default_rng(5)
    tasks = rng.integers(0, 6, 120)
    seen = [find_drift(tasks, rng.random(120) < rate) is not None for _ in range(1_500)]
    assert np.mean(seen) <= DRIFT_ALARMS


def test_a_fall_over_two_hundred_runs_is_seen():
    rng = np.random.default_rng(6)
    rates = np.linspace(0.97, 0.6, 200)
    found = [find_drift(np.arange(200) % 10, rng.random(200) < rates) for _ in range(50)]
    assert sum(one is not None for one in found) >= 40
    assert all(one.first_half > one.second_half for one in found if one is not None)


def test_tasks_drawn_early_that_are_easy_are_no_drift():
    tasks = [0] * 40 + [1] * 40
    passed = ([True] * 9 + [False]) * 4 + ([False] * 9 + [True]) * 4
    assert find_drift(tasks, passed) is None


def test_runs_in_which_nothing_differs_show_nothing():
    assert find_drift([0] * 100, [True] * 100) is None
    assert find_drift([0] * 10, [True] * 5 + [False] * 5) is None
