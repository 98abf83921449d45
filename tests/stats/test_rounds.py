"""Rounds that differ, drifts, bursts of failures, and intervals that include them."""

import numpy as np
import pytest

from passhat.errors import ArgumentError
from passhat.stats.dependent_runs import (
    GroupedRuns,
    find_bursts,
    margin_ratios,
    mean_variance,
    round_tests,
    streak_variance,
    stretched,
    widened,
    with_excess,
)
from passhat.stats.estimate import Estimate, Interval, Unavailable


def flips(rng, tasks, runs, rate=0.7):
    return (rng.random((tasks, runs)) < rate).astype(float)


def estimate(value, low, high, scope="this suite"):
    return Estimate(
        value=value,
        interval=Interval(low, high),
        method="test",
        confidence=0.95,
        scope=scope,
    )


def test_with_many_tasks_the_spread_is_cochrans_q():
    from statsmodels.stats.contingency_tables import cochrans_q

    table = flips(np.random.default_rng(1), 200, 6)
    assert round_tests(table).spread_p == pytest.approx(cochrans_q(table).pvalue, abs=1e-9)


def test_with_few_tasks_the_spread_is_that_of_every_arrangement():
    # Three tasks failed once each, all in the same of ten rounds: the chance is (1/10)^2.
    table = np.ones((3, 10))
    table[:, 4] = 0
    found = round_tests(table)
    assert found.spread_p == pytest.approx(0.01, abs=0.005)
    assert not found.differ  # chi-squared would have said 0.0014


def test_a_round_that_fails_is_found_and_named():
    table = flips(np.random.default_rng(2), 40, 6, 0.9)
    table[:, 3] = 0
    found = round_tests(table)
    assert (found.differ, found.out_of_line, found.drifts) == (True, (3,), False)


def test_a_drift_is_a_drift_and_no_round_is_blamed():
    rng = np.random.default_rng(3)
    table = (rng.random((40, 10)) < np.linspace(0.95, 0.3, 10)).astype(float)
    found = round_tests(table)
    assert found.drifts
    assert found.out_of_line == ()
    assert found.drift == pytest.approx(-0.65, abs=0.12)


def test_missing_runs_are_no_results():
    rng = np.random.default_rng(4)
    table = flips(rng, 120, 5)
    table[rng.random(table.shape) < 0.2] = np.nan
    assert round_tests(table).spread_p > 0.01
    table[:, 2] = np.where(np.isnan(table[:, 2]), np.nan, 0)
    assert round_tests(table).out_of_line == (2,)


def test_tasks_that_never_vary_say_nothing_of_rounds():
    found = round_tests(np.repeat([[1.0], [0.0], [1.0]], 6, axis=1))
    assert (found.spread_p, found.drift_p, found.tasks) == (1.0, 1.0, 0)


def test_a_single_round_has_nothing_to_compare_with():
    assert isinstance(round_tests(np.ones((8, 1))), Unavailable)
    assert isinstance(round_tests(np.ones((0, 8))), Unavailable)


def test_of_a_single_task_only_a_drift_is_seen():
    drifting = np.repeat([1.0, 0.0], 20)[None, :]
    found = round_tests(drifting)
    assert found.drifts
    assert found.spread_p > 0.1


def test_a_table_of_other_numbers_is_refused():
    with pytest.raises(ArgumentError, match="a row for each task and a column for each round"):
        round_tests([1, 0, 1])
    with pytest.raises(ArgumentError, match=r"must lie in \[0, 1\].*, got 2"):
        round_tests([[1, 2], [0, 1]])
    with pytest.raises(ArgumentError, match=r"must lie in \[0, 1\].*, got -0.5"):
        round_tests([[1, -0.5], [0, 1]])


@pytest.mark.slow("simulates an error rate")
def test_calm_runs_raise_an_alarm_one_time_in_a_hundred_at_most():
    rng, alarms, repetitions = np.random.default_rng(5), 0, 600
    for _ in range(repetitions):
        table = (rng.random((45, 8)) < rng.beta(3, 1, 45)[:, None]).astype(float)
        task = np.tile(np.arange(45), 8)
        alarms += round_tests(table).differ or bool(find_bursts(task, table.T.ravel()))
    assert alarms / repetitions <= 0.02


def test_a_burst_over_tasks_that_usually_pass_is_found_where_it_is():
    rng = np.random.default_rng(6)
    passed, task = rng.random(400) < 0.9, np.tile(np.arange(40), 10)
    passed[199], passed[200:212], passed[212] = True, False, True
    (found,) = find_bursts(task, passed)
    assert (found.first, found.last, found.tasks) == (200, 211, 12)


def test_failures_of_tasks_that_always_fail_are_no_burst():
    task, passed = np.repeat([0, 1, 2, 3], 10), np.repeat([True, False, False, True], 10)
    assert find_bursts(task, passed) == ()
    assert find_bursts([0, 1], [False, False]) == ()


def test_bursts_need_one_result_for_every_run():
    with pytest.raises(ArgumentError, match="one entry per trial"):
        find_bursts([0, 1], [True])


def test_leaving_out_rounds_gives_the_variance_of_their_means():
    table = flips(np.random.default_rng(7), 20, 6)
    expected = table.mean(axis=0).var(ddof=1) / 6
    found = GroupedRuns.of_table(table)
    assert mean_variance(found) == pytest.approx(expected)
    assert streak_variance(found, 1) == pytest.approx(expected)
    assert streak_variance(found, 6) is None


def test_runs_are_grouped_by_any_label():
    table = flips(np.random.default_rng(8), 5, 4)
    task, seed = (x.ravel() for x in np.indices(table.shape))
    found = GroupedRuns.of(task, seed, table.ravel())
    assert (found.total == table).all()
    assert found.groups == 4


def test_a_task_in_one_group_only_leaves_nothing_to_say():
    assert mean_variance(GroupedRuns.of(["a", "b", "b"], [1, 1, 2], [1, 0, 1])) is None


def test_an_interval_never_gets_narrower_by_its_rounds():
    found = estimate(0.8, 0.7, 0.9)
    assert widened(found, 1e-9, 6, "rounds").interval == found.interval
    wide = widened(found, 0.02, 6, "rounds")
    assert wide.interval.low < 0.7
    assert wide.interval.high > 0.9


def test_tasks_like_these_gain_what_this_suite_gained():
    before, after = estimate(0.5, 0.4, 0.6), estimate(0.5, 0.2, 0.8)
    alike = estimate(0.5, 0.3, 0.7, "tasks like these")
    found = with_excess(alike, before, after, "rounds").interval
    assert 0.5 - found.low == pytest.approx(np.sqrt(0.2**2 + 0.3**2 - 0.1**2))
    assert with_excess(alike, before, before, "rounds").interval == alike.interval


def test_arms_are_stretched_by_the_ratios_of_another_interval():
    ratios = margin_ratios(estimate(0.5, 0.4, 0.6), estimate(0.5, 0.3, 0.9))
    assert ratios == pytest.approx((2.0, 4.0))
    found = stretched(estimate(0.8, 0.75, 0.82), ratios, "rounds").interval
    assert (found.low, found.high) == pytest.approx((0.7, 0.88))
