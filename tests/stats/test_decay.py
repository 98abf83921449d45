"""Reliability as more runs in a row must pass."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import special, stats

from passhat.errors import ArgumentError
from passhat.stats.beta_binomial import fit_cells
from passhat.stats.decay import (
    DecayCurve,
    _run_covariance,
    _task_covariance,
    decay_curve,
    decay_curves,
    decay_summary,
    largest_t,
)
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Unavailable
from passhat.stats.passk import pass_at_k, pass_hat_k
from passhat.stats.proportions import proportion_interval
from passhat.stats.sufficient_statistics import count_cells
from passhat.stats.suite_mean import suite_estimate

P, F = True, False

runs_of_a_task = st.lists(st.booleans(), min_size=1, max_size=12)
suites = st.integers(2, 6).flatmap(
    lambda n: st.lists(st.tuples(st.just(n), st.integers(0, n)), min_size=2, max_size=12)
)
levels = st.sampled_from([0.01, 0.3, 0.5, 0.8, 0.9, 0.95, 0.99])
rows = st.lists(st.floats(-1, 1), max_size=9).map(np.array)


def described(*outcomes):
    (only,) = decay_summary(outcomes).sequences
    return only


def test_the_documented_examples_of_one_sequence_come_out():
    assert described(P, P, P, F).curve == (100, 100, 100, 31)
    assert described(P, F, P, F).variance_amplification == 100
    assert described(F, P, P, P).graceful_degradation == 90
    assert described(P, P, P, F).graceful_degradation == 60


def test_the_sequence_curve_is_the_rate_so_far_to_the_power_of_its_length():
    assert described(F, P).curve == (0, 25)
    assert described(P, F, P).curve == (100, 25, 29)  # (2/3)^3 = 0.296


def test_variance_amplification_is_the_spread_of_outcomes_whatever_their_order():
    assert described(P, F, P, P).variance_amplification == 87
    assert described(P, P, P, F).variance_amplification == 87
    assert described(P).variance_amplification == 0


def test_flips_count_neighbours_that_differ():
    assert described(P, F, P, F).flips == 100
    assert described(P, P, F, F).flips == 33
    assert isinstance(described(P).flips, Unavailable)


def test_of_exchangeable_runs_the_order_dependent_numbers_are_noise_around_a_constant():
    # Over all orders of 4 passes in 6 runs, the mean graceful degradation is just the pass rate.
    orders = [[i in passed for i in range(6)] for passed in combinations(range(6), 4)]
    exact = [100 * sum(i + 1 for i in range(6) if o[i]) / 21 for o in orders]
    assert np.mean(exact) == pytest.approx(100 * 4 / 6)
    seen = {described(*o).graceful_degradation for o in orders}
    assert len(seen) > 5  # the same 4 of 6, told as many different stories
    curves = {decay_summary(o).curve.values for o in orders}
    assert len(curves) == 1  # the unbiased curve tells one


@given(runs_of_a_task)
def test_descriptions_are_percentages_and_perfect_runs_get_full_marks(outcomes):
    answer = described(*outcomes)
    assert all(0 <= entry <= 100 for entry in answer.curve)
    assert 0 <= answer.graceful_degradation <= 100
    assert (answer.runs, answer.passes) == (len(outcomes), sum(outcomes))
    assert (answer.graceful_degradation == 100) == all(outcomes)
    assert (answer.curve[-1] == 100) == all(outcomes)


@given(st.lists(runs_of_a_task, min_size=1, max_size=8))
def test_tasks_described_together_are_described_as_alone(tasks):
    together = decay_summary(tasks, k=1).sequences
    assert together == tuple(described(*outcomes) for outcomes in tasks)


def test_the_unbiased_curve_is_pass_hat_k_of_every_task_averaged():
    n, c = [6, 6, 6], [6, 4, 1]
    curve = decay_curve(n, c)
    expected = [
        np.mean([pass_hat_k(a, b, k) for a, b in zip(n, c, strict=True)]) for k in range(1, 7)
    ]
    assert curve.values == pytest.approx(expected)
    assert (curve.tasks, curve.runs, curve.excluded_tasks) == (3, 18, 0)


@settings(max_examples=40, deadline=None)
@given(suites, st.sampled_from([THIS_SUITE, TASKS_LIKE_THESE]))
def test_curve_and_band_never_rise_and_the_curve_lies_in_its_band(tasks, scope):
    n, c = zip(*tasks, strict=True)
    curve = decay_curve(n, c, scope=scope)
    assert isinstance(curve, DecayCurve)
    for point in curve.points:
        assert point.interval.low - 1e-12 <= point.value <= point.interval.high + 1e-12
    for attribute in ("low", "high"):
        ends = [getattr(bounds, attribute) for bounds in curve.band]
        assert all(later <= earlier + 1e-12 for earlier, later in pairwise(ends))
    assert curve.pointwise_confidence >= curve.confidence - 1e-12


def test_a_curve_of_one_point_is_the_suite_estimate():
    n, c = [5] * 8, [5, 5, 4, 4, 3, 2, 1, 0]
    alone = suite_estimate(n, c, k=1, scope=TASKS_LIKE_THESE)
    curve = decay_curve(n, c, k=1)
    assert curve.values == (alone.value,)
    assert curve.band[0].low == pytest.approx(alone.interval.low)
    assert curve.pointwise_confidence == 0.95


def test_the_band_holds_every_pointwise_interval_before_it_is_made_monotone():
    n, c = [8] * 30, np.arange(30) % 9
    curve = decay_curve(n, c, k=5)
    for k, bounds in enumerate(curve.band, start=1):
        single = suite_estimate(n, c, k=k, scope=TASKS_LIKE_THESE).interval
        assert bounds.low <= single.low + 1e-9
        assert bounds.high >= single.high - 1e-9


def test_the_joint_confidence_lies_between_one_point_and_bonferroni():
    curve = decay_curve([8] * 30, np.arange(30) % 9, k=5)
    assert 0.95 < curve.pointwise_confidence < 1 - 0.05 / 5
    assert {point.confidence for point in curve.points} == {0.95}  # what the band promises


def test_the_covariance_over_tasks_is_numpys():
    n, c = np.full(20, 6), np.arange(20) % 7
    expected = np.cov(np.stack([pass_hat_k(n, c, k) for k in range(1, 5)]), bias=True)
    variance, neighbours = _task_covariance(count_cells(n, c), 4)
    assert variance == pytest.approx(np.diag(expected), abs=1e-12)
    assert neighbours == pytest.approx(np.diag(expected, 1), abs=1e-12)


def test_the_covariance_over_runs_is_that_of_runs_drawn_again():
    n, c = np.array([6, 6, 9]), np.array([5, 2, 9])
    cells = count_cells(n, c)
    a, b = fit_cells(cells)
    variance, neighbours = _run_covariance(cells, 4, (a, b))
    expected = np.zeros((4, 4))
    for runs, passes in zip(n, c, strict=True):
        p, weight = special.roots_jacobi(60, b + runs - passes - 1, a + passes - 1)
        p, weight = (p + 1) / 2, weight / weight.sum()
        f = np.stack(
            [pass_hat_k(np.full(runs + 1, runs), np.arange(runs + 1), k) for k in range(1, 5)]
        )
        for rate, share in zip(p, weight, strict=True):
            law = stats.binom(runs, rate).pmf(np.arange(runs + 1))
            mean = f @ law
            expected += share * ((f * law) @ f.T - np.outer(mean, mean))
    assert variance == pytest.approx(np.diag(expected), rel=1e-8)
    assert neighbours == pytest.approx(np.diag(expected, 1), rel=1e-8)


@settings(max_examples=40, deadline=None)
@given(suites, st.sampled_from([THIS_SUITE, TASKS_LIKE_THESE]))
def test_the_curve_of_pass_at_k_is_the_failures_curve_upside_down(tasks, scope):
    n, c = (np.array(column) for column in zip(*tasks, strict=True))
    isotonic = decay_curve(n, c, metric="pass@k", scope=scope)
    falling = decay_curve(n, n - c, scope=scope)
    # At one half the guard of Wilson's interval changes ends, and rounding may decide which.
    assume(not any(abs(value - 0.5) < 1e-9 for value in falling.values))
    assert [1 - v for v in isotonic.values] == pytest.approx(falling.values, abs=1e-12)
    for mine, other in zip(isotonic.band, falling.band, strict=True):
        assert (1 - mine.high, 1 - mine.low) == pytest.approx((other.low, other.high), abs=1e-6)


@pytest.mark.slow("simulates coverage")
@pytest.mark.parametrize("scope", [TASKS_LIKE_THESE, THIS_SUITE])
def test_the_band_holds_the_whole_curve(scope):
    rng = np.random.default_rng(9)
    repeats, tasks, runs = 120, 40, 6
    k = np.arange(1, 6)
    held = 0
    for _ in range(repeats):
        rates = rng.beta(3, 1, tasks)
        truth = 3 / (3 + k) if scope == TASKS_LIKE_THESE else (rates[:, None] ** k).mean(0)
        curve = decay_curve([runs] * tasks, rng.binomial(runs, rates), k=5, scope=scope)
        held += all(v in b for v, b in zip(truth, curve.band, strict=True))
    assert held / repeats >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / repeats)


def test_one_tasks_band_is_its_pass_rate_to_the_power_k():
    curve = decay_curve([10], [9], k=3)
    rate = proportion_interval(9, 10, method="wilson")
    assert [b.low for b in curve.band] == pytest.approx([rate.low**k for k in (1, 2, 3)])
    assert [b.high for b in curve.band] == pytest.approx([rate.high**k for k in (1, 2, 3)])
    assert curve.scope == THIS_SUITE


def test_one_tasks_band_holds_an_estimate_of_zero():
    curve = decay_curve([5], [4])
    assert curve.values[-1] == 0
    assert curve.band[-1].low == 0


def test_tasks_with_too_few_runs_are_left_out_and_counted():
    curve = decay_curve([5, 5, 2], [5, 3, 2], k=4)
    assert (curve.tasks, curve.excluded_tasks) == (2, 1)
    assert curve.values[0] == pytest.approx(0.8)


def test_by_default_the_curve_ends_at_the_fewest_runs_or_ten():
    assert len(decay_curve([4, 7, 9], [3, 7, 2]).points) == 4
    assert len(decay_curve([40, 50], [30, 20]).points) == 10


@pytest.mark.parametrize("c", [0, 5])
def test_suites_that_all_pass_or_all_fail_stay_uncertain(c):
    for scope in (THIS_SUITE, TASKS_LIKE_THESE):
        curve = decay_curve([5] * 10, [c] * 10, scope=scope)
        assert set(curve.values) == {c / 5}
        assert all(bounds.width > 0 for bounds in curve.band)


def test_a_million_tasks_cost_no_more_than_their_cells():
    n = np.full(10**6, 5)
    curve = decay_curve(n, np.arange(10**6) % 6, k=3)
    assert curve.values[0] == pytest.approx(0.5, abs=1e-4)
    assert curve.band[0].width < 0.01


@pytest.mark.parametrize(
    ("n", "c", "k", "reason"),
    [
        ([], [], None, "no task"),
        ([3, 3], [1, 2], 5, "pass^5 needs"),
        ([0, 0], [0, 0], None, "pass^1"),
    ],
)
def test_a_curve_without_runs_is_unavailable(n, c, k, reason):
    answer = decay_curve(n, c, k=k)
    assert isinstance(answer, Unavailable)
    assert reason in answer.reason


def test_several_sequences_make_one_curve():
    summary = decay_summary([[P, P, P], [P, F, P], [F, F, F]])
    assert len(summary.sequences) == 3
    assert summary.curve.values == pytest.approx((5 / 9, 4 / 9, 1 / 3))


@pytest.mark.parametrize("outcomes", [[], [[P], []], [2, 1], [["x"]], [[[P]]]])
def test_outcomes_must_be_passes_and_failures(outcomes):
    with pytest.raises(ArgumentError, match="outcomes must be passes"):
        decay_summary(outcomes)


def test_impossible_options_are_refused():
    with pytest.raises(ArgumentError, match="k must be a whole number"):
        decay_curve([5, 5], [1, 2], k=0)
    with pytest.raises(ArgumentError, match="scope must be one of"):
        decay_curve([5, 5], [1, 2], scope="everything")


@pytest.mark.parametrize(
    ("scope", "passes", "freedom"),
    [
        (TASKS_LIKE_THESE, [20, 19, 18, 17, 15, 12, 10, 8], 8 - 1),
        (THIS_SUITE, [18, 14, 10], 60 - 3),
    ],
)
def test_all_points_hold_together_as_often_as_promised_where_each_holds_pointwise(
    scope, passes, freedom
):
    """By drawing rows of t linked as the curve is, their freedom that of tasks or of repeats."""
    cells = count_cells([20] * len(passes), passes)
    variance, beside = (
        _task_covariance(cells, 5)
        if scope == TASKS_LIKE_THESE
        else _run_covariance(cells, 5, fit_cells(cells))
    )
    rng = np.random.default_rng(1)
    row = [rng.standard_normal(400_000)]
    for r in beside / np.sqrt(variance[1:] * variance[:-1]):
        row.append(r * row[-1] + np.sqrt(1 - r * r) * rng.standard_normal(row[0].size))
    largest = np.abs(row).max(axis=0) / np.sqrt(rng.chisquare(freedom, row[0].size) / freedom)
    curve = decay_curve([20] * len(passes), passes, k=5, scope=scope)
    reach = stats.t.ppf((1 + curve.pointwise_confidence) / 2, freedom)
    assert 0.949 < np.mean(largest <= reach) < 0.957  # a bound, so rather more than less


def test_points_that_no_task_reached_count_as_one_that_nothing_links_to_the_others():
    n, c = [8] * 30, np.arange(30) % 4  # no task passed four in a row
    three, four, six = (decay_curve(n, c, k=k).pointwise_confidence for k in (3, 4, 6))
    assert three < four == six


def test_one_tasks_curve_of_any_pass_is_its_curve_of_all_failures_upside_down():
    isotonic, falling = decay_curve([10], [7], metric="pass@k", k=4), decay_curve([10], [3], k=4)
    assert isotonic.values == pytest.approx([1 - value for value in falling.values])
    assert isotonic.values == pytest.approx([pass_at_k(10, 7, k) for k in range(1, 5)])
    for mine, other in zip(isotonic.band, falling.band, strict=True):
        assert (mine.low, mine.high) == pytest.approx((1 - other.high, 1 - other.low))


@pytest.mark.parametrize("freedom", [1, 4, 30, 10**6])
def test_one_t_and_copies_of_it_have_the_quantile_of_one(freedom):
    single = stats.t.ppf(0.975, freedom)
    assert largest_t(np.array([]), freedom, 0.95) == pytest.approx(single)
    assert largest_t(np.ones(6), freedom, 0.95) == pytest.approx(single)
    assert largest_t(-np.ones(1), freedom, 0.95) == pytest.approx(single)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.9, -0.6])
@pytest.mark.parametrize(
    "freedom", [12, pytest.param(3, marks=pytest.mark.slow("the same law, more slowly summed"))]
)
def test_of_two_the_chance_is_that_of_their_joint_law(correlation, freedom):
    c = largest_t(np.array([correlation]), freedom, 0.9)
    shape = [[1, correlation], [correlation, 1]]
    law = stats.multivariate_t(shape=shape, df=freedom, seed=1)
    held = law.cdf([c, c], lower_limit=[-c, -c], maxpts=200_000)
    assert held == pytest.approx(0.9, abs=5e-4)


@settings(max_examples=100, deadline=None)
@given(rows, st.integers(1, 200), levels)
def test_it_lies_between_one_t_and_bonferroni_and_grows_with_the_level(row, freedom, level):
    found = largest_t(row, freedom, level)
    single = stats.t.ppf((1 + level) / 2, freedom)
    apart = stats.t.ppf(1 - (1 - level) / 2 / (row.size + 1), freedom)
    assert single - 1e-9 <= found <= apart + 1e-9
    assert largest_t(row, freedom, (1 + level) / 2) > found


def test_the_closer_the_neighbours_the_smaller_the_largest():
    found = [largest_t(np.full(5, r), 20, 0.95) for r in (0.0, 0.4, 0.8, 0.95, 0.999)]
    assert all(later < earlier for earlier, later in pairwise(found))


@pytest.mark.parametrize("decay", [0.5, 0.9, 0.98])
def test_along_a_row_whose_correlation_falls_off_it_holds_and_is_close(decay):
    points, freedom = 8, 15
    apart = np.abs(np.subtract.outer(np.arange(points), np.arange(points)))
    rng = np.random.default_rng(5)
    normal = rng.multivariate_normal(np.zeros(points), decay**apart, 400_000, method="cholesky")
    largest = np.abs(normal).max(axis=1) / np.sqrt(rng.chisquare(freedom, 400_000) / freedom)
    bound = largest_t(np.full(points - 1, decay), freedom, 0.95)
    held = (largest <= bound).mean()
    assert 0.95 - 3 * np.sqrt(0.95 * 0.05 / 400_000) <= held < 0.962


@pytest.mark.parametrize("level", [0.05, 0.3, 0.5, 0.6])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_it_holds_at_low_levels_too_where_the_chance_is_not_convex(level, correlation):
    points, freedom, draws = 10, 9, 100_000
    apart = np.abs(np.subtract.outer(np.arange(points), np.arange(points)))
    rng = np.random.default_rng(6)
    shape = correlation**apart
    normal = rng.multivariate_normal(np.zeros(points), shape, draws, method="cholesky")
    largest = np.abs(normal).max(axis=1) / np.sqrt(rng.chisquare(freedom, draws) / freedom)
    held = (largest <= largest_t(np.full(points - 1, correlation), freedom, level)).mean()
    assert held >= level - 3 * np.sqrt(level * (1 - level) / draws)


@pytest.mark.parametrize("scope", ["this suite", "tasks like these"])
def test_both_curves_at_once_are_the_curves_of_each_metric(scope):
    n, c = [8] * 7, [8, 8, 7, 5, 3, 0, 1]
    for metric, curve in zip(("pass^k", "pass@k"), decay_curves(n, c, scope=scope), strict=True):
        alone = decay_curve(n, c, metric=metric, scope=scope)
        assert curve.pointwise_confidence == alone.pointwise_confidence
        for one, other in zip(curve.points, alone.points, strict=True):
            assert one.value == pytest.approx(other.value)
            assert one.interval.low == pytest.approx(other.interval.low, abs=1e-9)
            assert one.interval.high == pytest.approx(other.interval.high, abs=1e-9)
