"""The test for a fall that is in some of the tasks only."""

from math import comb

import numpy as np
import pytest

from passhat.stats.trend import (
    WIDTHS,
    TaskSeries,
    _upper_tail_of_sum,
    concentrated_fall_p,
    task_fall,
)


def brute_force_tail(score, law, tasks, observed):
    """Every combination of the scores of every task."""
    sums, logs = np.zeros(1), np.zeros(1)
    for row in np.repeat(np.arange(len(tasks)), tasks):
        sums = np.add.outer(sums, score[row]).ravel()
        logs = np.add.outer(logs, law[row]).ravel()
    return np.exp(logs[sums >= observed]).sum()


@pytest.mark.parametrize("seed", range(6))
def test_the_saddlepoint_tail_is_that_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    score = rng.exponential(size=(2, 4)) - 0.5
    chance = rng.dirichlet(np.ones(4), size=2)
    tasks = np.array([4, 4])
    for share in (0.5, 0.7, 0.9, 1.0):
        highest = float(tasks @ score.max(axis=1))
        mean = float(tasks @ (score * chance).sum(axis=1))
        observed = mean + share * (highest - mean)
        exact = brute_force_tail(score, np.log(chance), tasks, observed - 1e-9)
        tail = _upper_tail_of_sum(score, np.log(chance), tasks, observed)
        if share == 1.0:
            assert tail == pytest.approx(exact)  # the largest sum is exact
        else:
            assert exact / 3 < tail < exact * 4  # eight tasks: a coarse lattice


def test_a_task_alone_that_stopped_passing_has_the_p_of_fisher_where_days_are_alike():
    def counts(*values):
        return np.array(values, dtype=np.int64)

    # The first of eleven tasks fell; the others hold the day where it is.
    n_old, n_new = np.full(11, 60), np.full(11, 6)
    c_old, c_new = counts(*[57] + [54] * 10), counts(*[0] + [6] * 10)
    fisher = comb(60, 57) / comb(66, 57)
    assert fisher < concentrated_fall_p(n_old, c_old, n_new, c_new) < 100 * fisher


def test_a_bad_day_for_all_tasks_alike_is_no_fall_of_some():
    rng = np.random.default_rng(3)
    rates = rng.beta(4, 1, 50)
    odds = rates / (1 - rates) * np.exp(-0.5)
    c_old, c_new = rng.binomial(200, rates), rng.binomial(10, odds / (1 + odds))
    p = concentrated_fall_p(np.full(50, 200), c_old, np.full(50, 10), c_new)
    assert p > 0.01


def test_p_values_are_no_smaller_than_they_should_be_where_nothing_changed():
    rng = np.random.default_rng(4)
    p = []
    for _ in range(400):
        rates = rng.beta(4, 1, 20)
        old, new = rng.binomial(60, rates), rng.binomial(6, rates)
        p.append(concentrated_fall_p(np.full(20, 60), old, np.full(20, 6), new))
    for level in (0.1, 0.01):
        assert np.mean(np.array(p) <= level) <= level + 3 * np.sqrt(level / 400)


def test_a_rise_is_no_fall():
    n, c = np.full((6, 10), 8), np.array([[2] * 10] * 5 + [[8] * 10])
    assert task_fall(TaskSeries(n, c)) is None


def test_the_newest_points_that_fell_are_counted():
    c = np.full((20, 20), 6)
    c[-2:, :4] = 0
    found = task_fall(TaskSeries(np.full((20, 20), 6), c))
    assert found is not None
    assert found.points == 2
    assert found.points in WIDTHS


def test_tasks_that_were_not_run_before_show_nothing():
    n = np.full((5, 6), 8)
    n[:-1, 3:] = 0
    c = np.where(n > 0, 8, 0)
    c[-1, 3:] = 0
    assert task_fall(TaskSeries(n, c)) is None
