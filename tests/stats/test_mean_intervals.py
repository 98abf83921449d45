import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from passhat.stats import mean_intervals
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE
from passhat.stats.mean_intervals import (
    SuiteCurve,
    bounds_both_ways,
    bounds_side_by_side,
    compute_together,
    default_bounds,
    guarded_wilson,
    lie_below,
    student_quantile,
    wilson_suite_bounds,
)
from passhat.stats.proportions import proportion_interval, wilson_bounds
from passhat.stats.sufficient_statistics import count_cells
from passhat.stats.suite_bounds import suite_bounds


@given(st.floats(0.001, 0.999), st.floats(1, 1e4), st.floats(1, 5))
def test_the_guard_only_widens_and_only_the_short_end(share, n, quantile):
    plain = wilson_bounds(np.array(share), np.array(n), quantile)
    low, high = guarded_wilson(np.array(share), np.array(n), np.array(quantile))
    assert low <= plain[0] + 1e-12
    assert high >= plain[1] - 1e-12
    untouched = (high, plain[1]) if share < 0.5 else (low, plain[0])
    assert untouched[0] == untouched[1]


@given(st.floats(0.001, 0.999), st.floats(1, 1e4), st.floats(0.1, 1e4))
@example(1 / 3, 9.0, 31.6)  # scipy's quantile at so small a tail is nan
def test_the_guard_has_a_value_however_sure_one_wants_to_be(share, n, quantile):
    low, high = guarded_wilson(np.array(share), np.array(n), np.array(quantile))
    assert 0 <= low <= share <= high <= 1


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))))
def test_the_guarded_end_lies_between_clopper_pearson_and_wilson(pair):
    n, c = pair
    c = min(c, n // 2)
    low, _ = guarded_wilson(np.array(c / n), np.array(float(n)), np.array(1.959963985))
    exact = proportion_interval(c, n, method="clopper-pearson")
    assert exact.low - 1e-9 <= low <= proportion_interval(c, n).low + 1e-9


def test_a_guarded_wilson_of_one_coin_covers_everywhere():
    """Exactly, over every outcome: Wilson falls to 0.86 at n = 50, guarded it stays above 0.92."""
    n, rates = 50, np.linspace(0.001, 0.999, 999)
    c = np.arange(n + 1)
    chance = stats.binom.pmf(c, n, rates[:, None])
    worst = {}
    for name, formula in (("wilson", wilson_bounds), ("guarded", guarded_wilson)):
        low, high = formula(c / n, np.full(n + 1, float(n)), np.array(1.959963985))
        inside = (low <= rates[:, None]) & (rates[:, None] <= high)
        worst[name] = (chance * inside).sum(axis=1).min()
    assert worst["wilson"] < 0.87
    assert worst["guarded"] > 0.92


def test_noiseless_suites_keep_the_exact_bound_of_runs_not_seen():
    half, none = np.array(0.5), np.array(0.0)
    low, high = wilson_suite_bounds(half, none, tasks=4, runs=40, confidence=0.95)
    assert float(low) == pytest.approx(0.5 * 0.025 ** (1 / 40))
    assert float(high) == pytest.approx(1 - 0.5 * 0.025 ** (1 / 40))


def test_as_many_runs_know_their_noise_the_worse_the_more_tasks_share_them():
    """Only repeats of a task show its noise: 40 runs hold 36 of them in 4 tasks, 22 in 18."""

    def bounds(tasks):
        mean, noise = np.array(0.6), np.array(0.004)
        return wilson_suite_bounds(mean, noise, tasks=tasks, runs=40, confidence=0.95)

    lows, highs = zip(*(bounds(tasks) for tasks in (4, 10, 18)), strict=True)
    assert lows[0] > lows[1] > lows[2]
    assert highs[0] < highs[1] < highs[2]


def test_student_quantiles_are_scipys():
    freedom = np.array([1.0, 2.0, 9.0, 1e6])
    np.testing.assert_allclose(
        student_quantile(freedom, 0.9), stats.t.ppf(0.95, freedom), rtol=1e-9
    )


small = st.lists(
    st.integers(6, 20).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=2,
    max_size=30,
)


@settings(max_examples=25, deadline=None)
@given(small, st.floats(0.5, 0.99), st.floats(0.5, 0.99))
def test_both_ways_at_once_give_the_bounds_of_each_way(pairs, one, other):
    cells = count_cells(*np.transpose(pairs))
    low, high = bounds_both_ways(cells, (1, 2, 6), THIS_SUITE, (one, other))
    for side, way, level in ((0, cells, one), (1, cells.mirrored(), other)):
        found = suite_bounds(way, (1, 2, 6), level)
        assert low[side] == pytest.approx(found[0], abs=1e-9)
        assert high[side] == pytest.approx(found[1], abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(small, small, st.floats(0.5, 0.99))
def test_two_suites_side_by_side_have_the_bounds_that_each_has_alone(one, other, level):
    sides = [count_cells(*np.transpose(pairs)) for pairs in (one, other)]
    for cells, found in zip(sides, bounds_side_by_side(*sides, (1, 2, 6), level), strict=True):
        for end, alone in zip(found, suite_bounds(cells, (1, 2, 6), level), strict=True):
            assert end == pytest.approx(alone, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(small, st.sampled_from((THIS_SUITE, TASKS_LIKE_THESE)), st.booleans())
def test_a_curve_has_the_bounds_that_each_k_has_alone(pairs, scope, mirrored):
    cells = count_cells(*np.transpose(pairs))
    low, high = SuiteCurve(cells, (2, 3, 6), mirrored=mirrored).bounds(scope, 0.95)
    for place, k in enumerate((2, 3, 6)):
        alone = default_bounds(cells.mirrored() if mirrored else cells, k, scope, 0.95)
        assert low[place] == pytest.approx(float(alone[0]), abs=1e-9)
        assert high[place] == pytest.approx(float(alone[1]), abs=1e-9)


def test_suites_computed_together_get_the_intervals_that_each_gets_alone():
    rng = np.random.default_rng(8)
    ks, suites = (1, 2, 3, 5), []
    for place in range(12):
        tasks = int(rng.integers(2, 30))
        n = rng.integers(2, 9, tasks) if place % 3 else np.full(tasks, 6)
        suites.append(count_cells(n, rng.binomial(n, rng.beta(2, 1, tasks))))
    asked = [(cells.having(k), [j for j in ks if j <= k]) for cells in suites for k in ks]
    asked = [(cells, some) for cells, some in asked if cells.n.size]
    every = [
        (cells, some, side, scope)
        for cells, some in asked
        for side in (False, True)
        for scope in (THIS_SUITE, TASKS_LIKE_THESE)
        if cells.task_count > 1
    ]

    def found():
        return [
            np.stack(SuiteCurve(cells, some, mirrored=side).bounds(scope, 0.95))
            for cells, some, side, scope in every
        ]

    compute_together([], 0.95)
    alone = found()
    compute_together([(cells, ks) for cells in suites], 0.95)
    one_way = len(mean_intervals._computed_together)
    assert one_way > 20
    compute_together([(cells, ks) for cells in suites], 0.95, mirrored=True, added=True)
    assert len(mean_intervals._computed_together) > 1.5 * one_way
    for one, together in zip(alone, found(), strict=True):
        assert together == pytest.approx(one, abs=1e-9)
    compute_together([], 0.95)
    assert not mean_intervals._computed_together


@pytest.mark.parametrize("line", [0.5, 0.9])
def test_suites_are_said_to_lie_below_a_line_where_their_intervals_do(line):
    rng = np.random.default_rng(21)
    suites = []
    for place in range(48):
        tasks = int(rng.integers(2, 30))
        n = rng.integers(2, 12, tasks) if place % 3 else np.full(tasks, 6)
        suites.append(count_cells(n, rng.binomial(n, rng.beta(6 * rng.random(), 0.5, tasks))))
    for k in (1, 2, 3, 6):
        below = lie_below(suites, k, line, 0.95)
        for place, cells in enumerate(suites):
            kept = cells.having(k)
            known = kept.n.size > 0 and kept.task_count > 1
            high = SuiteCurve(kept, (k,)).bounds(THIS_SUITE, 0.95)[1][0] if known else 1.0
            assert (place in below) == (high < line)
        assert 0 < len(below) < 44
