import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, special

from passhat.errors import ArgumentError
from passhat.stats.beta_binomial import (
    BetaPrior,
    Likelihood,
    _GammaSums,
    _trigamma,
    chance_above,
    fit_beta_binomial,
    fit_cells,
)
from passhat.stats.sufficient_statistics import Cells, count_cells

suites = st.lists(
    st.integers(1, 25).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=2,
    max_size=40,
)


def penalised(x, n, c):
    a, b = np.exp(x[1]) * special.expit(x[0]), np.exp(x[1]) * special.expit(-x[0])
    likelihood = (special.betaln(a + c, b + n - c) - special.betaln(a, b)).sum()
    s = a + b
    return likelihood + 0.5 * np.log(a / s * (b / s)) + np.log(s / (1 + s))


@settings(max_examples=15)
@given(suites)
def test_nothing_found_by_a_slow_search_is_more_likely(pairs):
    n, c = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
    prior = fit_beta_binomial(n, c)
    ours = penalised([np.log(prior.a / prior.b), np.log(prior.a + prior.b)], n, c)
    for start in ([0, 0], [2, 3], [-2, -1]):
        # Beyond some precision ln Gamma is all rounding, and the search would follow it.
        found = optimize.minimize(
            lambda x: -penalised(x, n, c),
            start,
            method="Nelder-Mead",
            bounds=[(-30, 30), (-30, np.log(1e6))],
        )
        # The cap on a + b costs up to 2e-4 where identical tasks are likeliest.
        assert ours >= -found.fun - 2e-4


@pytest.mark.parametrize("stretch", [0.1, 3.0, 18.0, 38.0])
def test_a_likelihood_at_many_priors_is_interpolated_to_rounding(stretch):
    rng = np.random.default_rng(6)
    counts = np.unique(rng.integers(0, 5000, 1000)).astype(float)
    weights, x = rng.random(counts.size), np.exp(rng.uniform(-stretch / 2, stretch / 2, 576))
    sums = _GammaSums(counts, weights[None])
    exact = (special.gammaln(x[:, None] + counts) - special.gammaln(x)[:, None]) @ weights
    assert sums.values(x) == pytest.approx(exact, rel=1e-9, abs=1e-4)


@pytest.mark.parametrize("most", [1, 40, 250, 2000])
def test_short_and_long_tasks_have_the_sums_that_gamma_functions_give(most):
    rng = np.random.default_rng(most)
    counts = rng.integers(0, most + 1, 30).astype(float)
    tasks, x = rng.random((3, 30)), rng.gamma(1.0, 5.0, 3)
    value, slope, bend = _GammaSums(counts, tasks).at(x, np.arange(3))
    for term, found in (
        (special.gammaln, value),
        (special.digamma, slope),
        (lambda at: special.polygamma(1, at), bend),
    ):
        exact = (tasks * (term(x[:, None] + counts) - term(x)[:, None])).sum(axis=1)
        assert found == pytest.approx(exact, rel=1e-9)


def test_the_curvature_is_that_of_ln_gamma():
    x = np.exp(np.linspace(-8, 12, 400))
    assert _trigamma(x) == pytest.approx(special.polygamma(1, x), rel=1e-11)


@given(st.floats(0.1, 500), st.floats(0.1, 500), st.floats(0.01, 0.99))
def test_the_chance_above_is_the_complement_of_the_chance_below(a, b, p):
    assert chance_above(a, b, p) == pytest.approx(1 - special.betainc(a, b, p), abs=1e-12)


def test_a_large_suite_recovers_its_prior():
    rng = np.random.default_rng(5)
    n = rng.integers(3, 20, 100_000)
    prior = fit_beta_binomial(n, rng.binomial(n, rng.beta(8, 2, n.size)))
    assert (prior.a, prior.b) == pytest.approx((8, 2), rel=0.03)
    assert prior.correlation == pytest.approx(1 / 11, rel=0.03)


@given(suites)
def test_failures_swap_the_shapes(pairs):
    n, c = map(np.array, zip(*pairs, strict=True))
    prior, mirror = fit_beta_binomial(n, c), fit_beta_binomial(n, n - c)
    assert mirror.mean == pytest.approx(1 - prior.mean, abs=1e-4)


def test_many_suites_at_once_are_fitted_as_one_by_one():
    rng = np.random.default_rng(2)
    tallies = rng.multinomial(30, np.full(6, 1 / 6), size=20).astype(float)
    cells = Cells(n=np.full(6, 5.0), c=np.arange(6.0), tasks=tallies)
    a, b = fit_cells(cells)
    for row, tally in enumerate(tallies):
        alone = fit_cells(Cells(n=cells.n, c=cells.c, tasks=tally))
        assert (a[row], b[row]) == pytest.approx((float(alone[0]), float(alone[1])), rel=1e-6)


def test_all_pass_and_all_fail_stay_off_the_boundary():
    assert 0.99 < fit_beta_binomial([5] * 100, [5] * 100).mean < 1
    assert 0 < fit_beta_binomial([5] * 100, [0] * 100).mean < 0.01


def test_identical_tasks_have_hardly_any_correlation():
    assert fit_beta_binomial([5] * 10, [4] * 10).correlation < 1e-3
    assert fit_beta_binomial([10**6] * 5, [500_000] * 5).correlation < 1e-3


def test_all_or_nothing_tasks_have_hardly_anything_else():
    assert fit_beta_binomial([20] * 30, [20, 0] * 15).correlation > 0.9


def test_one_run_a_task_tells_nothing_about_correlation_and_it_is_taken_as_none():
    prior = fit_beta_binomial([1] * 10, [1, 0] * 5)
    assert prior.mean == pytest.approx(0.5)
    assert prior.correlation < 1e-3


def test_a_million_tasks_and_a_million_runs_are_no_trouble():
    rng = np.random.default_rng(3)
    passes = rng.binomial(20, rng.beta(8, 1, 10**6))
    prior = fit_beta_binomial(np.full(10**6, 20), passes)
    assert (prior.a, prior.b) == pytest.approx((8, 1), rel=0.01)
    assert count_cells(np.full(10**6, 20), passes).n.size <= 21
    assert 0 < fit_beta_binomial([10**6] * 3, [10**6, 3, 400_000]).mean < 1


def test_tasks_without_a_run_do_not_count():
    assert fit_beta_binomial([5, 0, 5], [4, 0, 2]) == fit_beta_binomial([5, 5], [4, 2])


def test_bad_input_is_refused_by_name():
    with pytest.raises(ArgumentError, match="n must hold at least one task with a trial"):
        fit_beta_binomial([0, 0], [0, 0])
    with pytest.raises(ArgumentError, match="a and b must be positive and finite"):
        BetaPrior(a=0.0, b=1.0)


def test_the_share_above_is_the_tail_of_the_beta():
    assert BetaPrior(a=1.0, b=1.0).share_above(0.3) == pytest.approx(0.7)


@given(suites, st.floats(-6, 6), st.floats(-4, 9))
def test_plain_numbers_give_the_likelihood_that_arrays_give(pairs, mean, size):
    likelihood = Likelihood(count_cells(*np.transpose(pairs)))
    plain, arrays = likelihood.at_one(mean, size), likelihood.at(0, mean, size)
    assert plain == pytest.approx([float(one) for one in arrays], rel=1e-9, abs=1e-9)
