"""The test for a fall that is in some of the tasks only."""

from math import comb

import numpy as np
import pytest

from passhat.stats.trend import (
    WIDTHS,
    TaskSeries,
    _tail_given_total,
    concentrated_fall_p,
    noticeable_fall,
    task_fall,
)


def brute_force_tail(score, law, tasks, observed, total):
    """Every combination of the scores and passes of every task."""
    sums, passes, logs = np.zeros(1), np.zeros(1), np.zeros(1)
    for row in np.repeat(np.arange(len(tasks)), tasks):
        sums = np.add.outer(sums, score[row]).ravel()
        passes = np.add.outer(passes, np.arange(law.shape[1])).ravel()
        logs = np.add.outer(logs, law[row]).ravel()
    chance = np.exp(logs) * (passes == total)
    return chance[sums >= observed].sum() / chance.sum()


@pytest.mark.parametrize("seed", range(6))
def test_the_saddlepoint_tail_given_the_total_is_that_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    law = np.log(rng.dirichlet(np.ones(4), size=2))
    score = np.sort(rng.exponential(size=(2, 4)), axis=1)[:, ::-1]
    tasks = np.array([4, 3])
    rows = np.repeat(np.arange(2), tasks)
    for _ in range(20):
        passes = [rng.choice(4, p=np.exp(law[row])) for row in rows]
        observed, total = float(score[rows, passes].sum()), int(sum(passes))
        exact = brute_force_tail(score, law, tasks, observed - 1e-9, total)
        tail = _tail_given_total(score, law, tasks, observed, total)
        assert exact / 4 < tail < 4 * exact + 1e-9  # seven tasks: a coarse lattice


def test_the_most_extreme_scores_have_a_p_near_their_own_chance():
    x = np.arange(4)
    law = np.log(np.array([[comb(3, i) * 0.8**i * 0.2 ** (3 - i) for i in x]]))
    score, tasks = (3.0 - x[None, :]) ** 2, np.array([8])
    exact = comb(8, 2) / comb(24, 18)  # two tasks never pass, the others always
    tail = _tail_given_total(score, law, tasks, 2 * 9.0, 18)
    assert exact / 4 < tail < 4 * exact


def test_tasks_that_never_failed_before_and_stopped_passing_are_a_fall():
    # Given how often each task passed in all, the total says all: the mean alone decides.
    n_old, n_new = np.full(20, 60), np.full(20, 6)
    c_new = np.array([0, 0] + [6] * 18)
    assert concentrated_fall_p(n_old, n_old, n_new, c_new) < 1e-6


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


@pytest.mark.parametrize("day", [-0.5, 0.0, 0.5])
def test_which_tasks_failed_says_the_same_on_any_day(day):
    # Odds of all tasks times one factor: the chance given the total does not move.
    rng = np.random.default_rng(11)
    law = np.log(rng.dirichlet(np.ones(5), size=6))
    score, tasks = rng.exponential(size=(6, 5)), np.full(6, 5)
    shifted = law + day * np.arange(5)
    tails = [_tail_given_total(score, one, tasks, 36.0, 60) for one in (law, shifted)]
    assert tails[1] == pytest.approx(tails[0], rel=1e-6)


def test_p_values_are_no_smaller_than_they_should_be_where_nothing_changed():
    rng = np.random.default_rng(4)
    p = []
    for _ in range(400):
        rates = rng.beta(4, 1, 20)
        old, new = rng.binomial(60, rates), rng.binomial(6, rates)
        p.append(concentrated_fall_p(np.full(20, 60), old, np.full(20, 6), new))
    for level in (0.1, 0.01):
        assert np.mean(np.array(p) <= level) <= level + 3 * np.sqrt(level / 400)


def test_the_chance_of_an_error_is_shared_out_and_not_exceeded():
    assert sum(WIDTHS.values()) == pytest.approx(1)


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


def steady(tasks, trials, points, *, rate=0.9):
    """A history in which every task always passes as often as it does on average."""
    n = np.full((points, tasks), trials)
    return TaskSeries(n, np.round(rate * n).astype(np.int64))


def test_a_smaller_fall_is_noticeable_with_more_tasks_trials_or_points():
    sizes = [(8, 5, 2), (8, 5, 10), (20, 5, 10), (20, 20, 10), (100, 20, 30)]
    falls = [noticeable_fall(steady(*size)) for size in sizes]
    rates = [fall.rate or 2.0 for fall in falls]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[-1] == 0.1
    assert [(fall.tasks, fall.suite) for fall in falls] == [
        (2, 8), (2, 8), (4, 20), (4, 20), (20, 100),
    ]  # fmt: skip


def test_no_fall_is_noticeable_where_there_are_too_few_trials_or_nothing_left_to_fall():
    assert noticeable_fall(steady(3, 2, 1)).rate is None
    assert noticeable_fall(steady(20, 20, 10, rate=0.0)).rate is None
    nobody = TaskSeries(np.zeros((2, 3), dtype=np.int64), np.zeros((2, 3), dtype=np.int64))
    assert noticeable_fall(nobody) is None


def test_what_is_noticeable_is_looked_for_in_no_more_trials_than_show_it(monkeypatch):
    looked_at = []

    def recorded(n_old, c_old, n_new, *rest, **options):
        looked_at.append(int(n_new.sum()))
        return concentrated_fall_p(n_old, c_old, n_new, *rest, **options)

    monkeypatch.setattr("passhat.stats.trend.concentrated_fall_p", recorded)
    assert noticeable_fall(steady(1_000, 1_000, 2)).rate == 0.1
    assert looked_at == [200_000]  # two runs have ten times as many


@pytest.mark.slow("simulates how often a fall is shown")
@pytest.mark.parametrize(("tasks", "trials", "before"), [(12, 5, 30), (20, 6, 30), (50, 5, 5)])
def test_a_noticeable_fall_is_shown_within_two_points_in_most_histories(tasks, trials, before):
    rng, shown, histories = np.random.default_rng(20_261_119), 0, 40
    for _ in range(histories):
        rates = np.tile(rng.beta(4, 1, tasks), (before + 2, 1))
        calm = rng.binomial(trials, rates)
        fall = noticeable_fall(TaskSeries(np.full_like(calm[:before], trials), calm[:before]))
        able = np.flatnonzero(rates[0] >= min(fall.rate, 0.9))
        fell = rng.choice(able, size=min(fall.tasks, able.size), replace=False)
        rates[before:, fell] = np.maximum(rates[before:, fell] - fall.rate, 0)
        passed = np.vstack((calm[:before], rng.binomial(trials, rates[before:])))
        series = TaskSeries(np.full_like(passed, trials), passed)
        first = TaskSeries(series.n[:-1], series.c[:-1])
        shown += bool(task_fall(first) or task_fall(series))
    # 0.8 is meant: of 40 it is below 0.65 in one of a hundred.
    assert shown / histories >= 0.65
