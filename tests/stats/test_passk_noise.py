import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from passhat.stats.cells import count_cells
from passhat.stats.passk import pass_hat_k
from passhat.stats.passk_noise import (
    beta_moments,
    expected_mean,
    expected_noise,
    observed_noise,
    run_variance,
    value_variance,
)


def variance_given(p, n, k):
    """Var(pass^k | p), by summing over every outcome, for one rate or an array of them."""
    c = np.arange(n + 1)
    rate = np.asarray(p)[..., None]
    chance = special.comb(n, c) * rate**c * (1 - rate) ** (n - c)
    values = pass_hat_k(n, c, k)
    return chance @ values**2 - (chance @ values) ** 2


@settings(max_examples=25)
@given(st.floats(0.3, 20), st.floats(0.3, 20), st.integers(1, 5), st.integers(0, 12))
def test_run_variance_is_the_mean_over_the_beta_of_the_variance_over_outcomes(a, b, k, more):
    n = k + more
    grid, weight = np.polynomial.legendre.leggauss(400)
    p = stats.beta.ppf((grid + 1) / 2, a, b)
    expected = (weight / 2) @ variance_given(p, n, k)
    found = float(run_variance(np.array(float(n)), k, np.array(a), np.array(b)))
    assert found == pytest.approx(expected, rel=2e-3, abs=1e-6)


def test_value_variance_is_the_variance_over_the_beta_binomial():
    n, k, a, b = 6, 3, 2.5, 0.8
    c = np.arange(n + 1)
    chance, values = stats.betabinom.pmf(c, n, a, b), pass_hat_k(n, c, k)
    cells = count_cells([n], [0])
    found = float(value_variance(cells, k, np.array(a), np.array(b)))
    assert found == pytest.approx(chance @ values**2 - (chance @ values) ** 2, rel=1e-10)


@pytest.mark.parametrize(("n", "k"), [(6, 3), (10, 5), (4, 1), (2, 1)])
def test_observed_noise_is_unbiased_with_twice_k_runs(n, k):
    """Exactly: averaged over every outcome of two tasks of different difficulty."""
    rates, c = (0.9, 0.4), np.arange(n + 1)
    chances = [stats.binom.pmf(c, n, p) for p in rates]
    truth = sum(variance_given(p, n, k) for p in rates) / 4
    mean = sum(
        chances[0][i] * chances[1][j] * float(observed_noise(count_cells([n, n], [i, j]), k))
        for i in c
        for j in c
    )
    assert mean == pytest.approx(truth, rel=1e-9)


def test_observed_noise_with_fewer_runs_errs_upward():
    rng = np.random.default_rng(7)
    p = rng.beta(1, 1, 4000)
    truth = variance_given(p, 5, 5).sum() / p.size**2
    found = float(observed_noise(count_cells(np.full(p.size, 5), rng.binomial(5, p)), 5))
    assert truth < found < 1.6 * truth


def test_expected_noise_and_mean_of_a_known_prior_are_right():
    rng = np.random.default_rng(8)
    p = rng.beta(3, 2, 20_000)
    cells = count_cells(np.full(p.size, 8), rng.binomial(8, p))
    a, b = np.array(3.0), np.array(2.0)
    truth = variance_given(p, 8, 3).mean() / p.size
    assert float(expected_noise(cells, 3, a, b)) == pytest.approx(truth, rel=0.03)
    assert float(expected_mean(cells, 3, a, b)) == pytest.approx((p**3).mean(), rel=0.02)


def test_beta_moments_are_those_of_scipy():
    found = beta_moments(np.array(2.5), np.array(0.7), 4)
    assert [float(m) for m in found] == pytest.approx(
        [stats.beta.moment(m, 2.5, 0.7) if m else 1.0 for m in range(5)]
    )
