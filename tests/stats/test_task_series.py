"""Histories of tasks: who was not run, or is new, moves nothing."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from passhat.errors import ArgumentError
from passhat.stats.passk import pass_hat_k
from passhat.stats.suite_mean import suite_estimate
from passhat.stats.trend import TaskSeries, change_points, permutation_p, runs_to_show

sides = st.tuples(st.integers(2, 5), st.integers(2, 5)).flatmap(
    lambda n: st.tuples(st.just(n[0]), st.integers(0, n[0]), st.just(n[1]), st.integers(0, n[1]))
)


def columns(tasks):
    return tuple(np.array(column) for column in zip(*tasks, strict=True))


def brute_force(tasks, k):
    """Over every way in which chance may divide the passes of each task."""
    laws = []
    for n_old, c_old, n_new, c_new in tasks:
        passes = c_old + c_new
        laws.append(
            [
                (
                    stats.hypergeom.pmf(x, n_old + n_new, passes, n_new),
                    pass_hat_k(n_new, x, k) - pass_hat_k(n_old, passes - x, k),
                )
                for x in range(max(0, passes - n_old), min(n_new, passes) + 1)
            ]
        )
    seen = sum(pass_hat_k(nn, cn, k) - pass_hat_k(no, co, k) for no, co, nn, cn in tasks)
    return sum(
        np.prod([chance for chance, _ in way])
        for way in product(*laws)
        if abs(sum(moved for _, moved in way)) >= abs(seen) - 1e-9
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(sides, min_size=1, max_size=3), st.integers(1, 2))
def test_the_permutation_test_is_that_over_every_way_to_divide_the_runs(tasks, k):
    assert permutation_p(*columns(tasks), k=k) == pytest.approx(brute_force(tasks, k), abs=1e-9)


def test_of_one_task_it_is_fishers_by_distance():
    table = [[9, 1], [3, 7]]
    fisher = stats.fisher_exact(table).pvalue
    assert permutation_p(*columns([(10, 9, 10, 3)])) == pytest.approx(fisher)


def test_a_law_with_a_far_tail_does_not_wrap_round():
    # A failure that five of ten runs share is rare and far out: nothing may come back as near.
    tasks = [(500, 3, 10, 5)] + [(500, 2, 10, 0)] * 4
    found = permutation_p(*columns(tasks), k=5)
    chance = stats.hypergeom.pmf(range(5, 9), 510, 8, 10).sum()
    assert found == pytest.approx(chance, rel=1e-3)


def test_what_was_not_run_and_what_is_new_raise_no_alarm():
    """The means of moments would: new tasks are harder, and old counts are carried forward."""
    rng = np.random.default_rng(3)
    rates = np.r_[np.full(10, 0.95), np.full(10, 0.3)]
    alarms = 0
    for _ in range(10):
        n = np.full((40, 20), 5)
        n[:20, 10:] = 0
        n[np.arange(40) % 10 > 0, :8] = 0
        alarms += bool(change_points(TaskSeries(n, rng.binomial(n, rates), k=2)).points)
    assert alarms <= 2


@pytest.mark.parametrize("metric", ["pass^k", "pass@k"])
def test_a_fall_is_found_at_its_place_among_tasks_that_come_and_go(metric):
    rng = np.random.default_rng(4)
    n = np.where(rng.random((40, 20)) < 0.4, 5, 0)
    rate = np.where(np.arange(40) < 25, 0.85, 0.4)[:, None] * np.ones(20)
    (found,) = change_points(TaskSeries(n, rng.binomial(n, rate), k=2, metric=metric)).points
    assert abs(found.position - 25) <= 1
    assert found.direction == "down"
    assert found.size in found.interval
    assert found.interval.high < 0


def test_a_line_through_every_task_is_blind_to_who_was_run():
    rng = np.random.default_rng(6)
    rates = rng.beta(2, 1, 30)
    n = np.full((12, 30), 6)
    n[:6, :15] = 0  # the second half of history has other tasks besides
    errors, moves = [], []
    for _ in range(300):
        moved, error = TaskSeries(n, rng.binomial(n, rates), k=2).change()
        moves.append(moved)
        errors.append(error)
    assert abs(np.mean(moves)) < 4 * np.std(moves) / np.sqrt(300)
    assert np.mean(errors) == pytest.approx(np.std(moves), rel=0.15)


def test_no_common_task_is_no_difference():
    series = TaskSeries(np.array([[5, 0], [0, 5]]), np.array([[5, 0], [0, 0]]))
    assert series.p_values(np.array([0]), np.array([1]), np.array([2])).tolist() == [1.0]
    assert np.isnan(series.change()).all()


def test_a_series_needs_a_row_for_each_point():
    with pytest.raises(ArgumentError, match="n must have a row for each point"):
        TaskSeries([5, 5], [1, 2])


def test_without_a_line_to_cross_every_p_is_that_of_the_permutation_test():
    rng = np.random.default_rng(8)
    n = np.full((6, 5), 4)
    series = TaskSeries(n, rng.binomial(n, 0.9), k=2)
    start, split = np.zeros(5, dtype=int), np.arange(1, 6)
    found = series.p_values(start, split, np.full(5, 6))
    for at, p in zip(split.tolist(), found.tolist(), strict=True):
        old, new = (slice(0, at), slice(at, 6))
        counts = [x[side].sum(axis=0) for side in (old, new) for x in (series.n, series.c)]
        assert p == permutation_p(*counts, k=2)


FALLEN = [[19, 18, 19], [16, 16, 16], [15, 17, 16], [5, 5, 7], [9, 6, 5], [4, 4, 8], [5, 6, 8]]
"""Passes of three tasks in 20 runs each, from 84% in the first three points to 30%."""


@pytest.mark.parametrize("points", [4, 5, 6, 7])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_plain_fall_of_few_tasks_is_found_at_once_and_where_it_is(points, k):
    passes = np.array(FALLEN[:points])
    found = change_points(TaskSeries(np.full_like(passes, 20), passes, k=k))
    assert [(one.position, one.alarm, one.direction) for one in found.points] == [(3, 3, "down")]


def test_the_interval_of_a_change_is_no_narrower_than_those_of_its_two_stretches():
    """The noise of a stretch comes from that stretch, not from a history of other rates."""
    passes = np.array(FALLEN)
    series = TaskSeries(np.full_like(passes, 20), passes, k=5)
    (change,) = change_points(series).points
    sides = [
        suite_estimate(np.full(3, 20 * len(part)), part.sum(axis=0), k=5).interval
        for part in (passes[:3], passes[3:])
    ]
    assert change.interval.width >= np.hypot(sides[0].width, sides[1].width) * 0.99
    assert change.interval.width < 0.5


def test_an_alarm_of_pass_k_depends_on_no_later_point():
    rng = np.random.default_rng(3)
    passes = rng.binomial(8, np.where(np.arange(24) < 12, 0.9, 0.6)[:, None], size=(24, 6))
    series = [TaskSeries(np.full((m, 6), 8), passes[:m], k=4) for m in range(13, 25)]
    alarms = [[one.alarm for one in change_points(one).points] for one in series]
    for early, late in pairwise(alarms):
        assert late[: len(early)] == early or not early


@pytest.mark.slow("simulates the rate of false alarms")
def test_calm_histories_of_few_tasks_and_a_large_k_seldom_raise_an_alarm():
    rng = np.random.default_rng(4)
    histories = [
        TaskSeries(np.full((15, 3), 20), rng.binomial(20, 0.85, size=(15, 3)), k=5)
        for _ in range(40)
    ]
    assert sum(bool(change_points(one).points) for one in histories) <= 2


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(n, marks=pytest.mark.slow("more draws")) for n in (3, 4, 5))]
)
def test_runs_that_would_show_a_move_are_the_fewest_after_which_changes_have_one(seed):
    rng = np.random.default_rng(seed)
    n = np.full((5, 15), 4 + seed)
    series = TaskSeries(n, rng.binomial(n, rng.beta(6, 1, 15)), k=1 + seed % 3)
    rates = series.rate.c.sum(axis=0) / n.sum(axis=0)
    fallen = rates * (1 - 0.25 / rates.mean())
    day = np.diff(np.floor(np.cumsum(n[-1] * fallen) + 0.5).astype(int), prepend=0).clip(0, n[-1])
    longer = [
        TaskSeries(np.vstack((n, [n[-1]] * days)), np.vstack((series.rate.c, [day] * days)))
        for days in range(1, 9)
    ]
    shown = [days for days, one in enumerate(longer, 1) if change_points(one).points]
    assert runs_to_show(series, 0.25, most=8) == (shown[0] if shown else None)
