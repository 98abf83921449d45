import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from passhat.stats import passk
from passhat.stats.passk import (
    _sharing_chances,
    beta_moments,
    cell_moments,
    expected_totals,
    observed_noise_and_values,
    pass_hat_k,
    run_covariances,
)
from passhat.stats.sufficient_statistics import count_cells


def noise_seen(cells, k):
    return float(observed_noise_and_values(cells, (k,))[0][0])


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
    moments = beta_moments(np.array([a]), np.array([a + b]), 2 * k)
    found = float(run_covariances(np.array([float(n)]), [(k, k)], moments)[0][0])
    assert found == pytest.approx(expected, rel=2e-3, abs=1e-6)


def test_the_variance_over_the_beta_binomial_is_that_of_rates_and_that_of_runs():
    n, k, a, b = 6, 3, 2.5, 0.8
    c = np.arange(n + 1)
    chance, values = stats.betabinom.pmf(c, n, a, b), pass_hat_k(n, c, k)
    moments = beta_moments(np.array([a]), np.array([a + b]), 2 * k)
    between = moments[2 * k] - moments[k] ** 2
    found = float((between + run_covariances(np.array([float(n)]), [(k, k)], moments)[0])[0])
    assert found == pytest.approx(chance @ values**2 - (chance @ values) ** 2, rel=1e-10)


@pytest.mark.parametrize(("n", "k"), [(6, 3), (10, 5), (4, 1), (2, 1)])
def test_observed_noise_is_unbiased_with_twice_k_runs(n, k):
    """Exactly: averaged over every outcome of two tasks of different difficulty."""
    rates, c = (0.9, 0.4), np.arange(n + 1)
    chances = [stats.binom.pmf(c, n, p) for p in rates]
    truth = sum(variance_given(p, n, k) for p in rates) / 4
    mean = sum(
        chances[0][i] * chances[1][j] * noise_seen(count_cells([n, n], [i, j]), k)
        for i in c
        for j in c
    )
    assert mean == pytest.approx(truth, rel=1e-9)


def test_observed_noise_with_fewer_runs_errs_upward():
    rng = np.random.default_rng(7)
    p = rng.beta(1, 1, 4000)
    truth = variance_given(p, 5, 5).sum() / p.size**2
    found = noise_seen(count_cells(np.full(p.size, 5), rng.binomial(5, p)), 5)
    assert truth < found < 1.6 * truth


def expected_noise_and_mean(cells, k, prior):
    """The variance of the suite's mean pass^k over new runs, and its mean p^k, after its runs."""
    totals, tasks = expected_totals(cells, 2 * k, prior), float(cells.task_count)
    noise = run_covariances(cells.lengths, [(k, k)], totals)[0].sum() / tasks**2
    return float(noise), float(totals[k].sum() / tasks)


def test_expected_noise_and_mean_of_a_known_prior_are_right():
    rng = np.random.default_rng(8)
    p = rng.beta(3, 2, 20_000)
    cells = count_cells(np.full(p.size, 8), rng.binomial(8, p))
    a, b = np.array(3.0), np.array(2.0)
    truth = variance_given(p, 8, 3).mean() / p.size
    noise, mean = expected_noise_and_mean(cells, 3, (a, b))
    assert noise == pytest.approx(truth, rel=0.03)
    assert mean == pytest.approx((p**3).mean(), rel=0.02)


@given(
    st.integers(1, 60), st.integers(0, 40), st.lists(st.integers(0, 300), min_size=1, max_size=3)
)
def test_runs_that_two_subsets_share_are_hypergeometric(k, wider, more):
    j = k + wider
    n = np.array([j + extra for extra in more], dtype=float)
    (chances,) = _sharing_chances(n.tobytes(), ((k, j),))
    for column, runs in zip(chances.T, n, strict=True):
        known = stats.hypergeom.sf(k + j - np.arange(k + j) - 1, int(runs), j, k)
        assert column == pytest.approx(known, abs=1e-12)


def test_moments_of_a_cell_are_the_shares_of_its_passing_subsets_and_none_beyond_its_runs():
    cells = count_cells([3, 5, 5], [3, 4, 0])
    values = cell_moments(cells, 6)
    for column, n, c in zip(values.T, cells.n.astype(int), cells.c.astype(int), strict=True):
        known = [1.0, *(pass_hat_k(int(n), int(c), k) for k in range(1, n + 1))]
        assert column[: n + 1] == pytest.approx(known)
        assert not column[n + 1 :].any()


def test_beta_moments_are_those_of_scipy():
    found = beta_moments(np.array(2.5), np.array(3.2), 4)
    assert [float(m) for m in found] == pytest.approx(
        [stats.beta.moment(m, 2.5, 0.7) if m else 1.0 for m in range(5)]
    )


@given(
    st.lists(
        st.integers(3, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
        min_size=2,
        max_size=12,
    ),
    st.integers(1, 40),
)
def test_noise_is_that_of_its_tasks_one_by_one_however_few_moments_are_held_at_once(pairs, block):
    n, c = zip(*pairs, strict=True)
    k, prior = 3, (np.array(1.5), np.array(0.7))
    alone = [expected_noise_and_mean(count_cells([i], [j]), k, prior) for i, j in pairs]
    noise, mean = np.mean(alone, axis=0)
    cells = count_cells(n, c)
    whole = observed_noise_and_values(cells, (k,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passk, "_BLOCK", block)
        found = expected_noise_and_mean(cells, k, prior)
        parts = observed_noise_and_values(cells, (k,))
    for part, all_at_once in zip(parts, whole, strict=True):
        assert part == pytest.approx(all_at_once, rel=1e-12)
    assert found == pytest.approx((noise / len(pairs), mean), rel=1e-10)
