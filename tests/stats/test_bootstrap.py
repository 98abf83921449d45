from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy import stats

from passhat.stats.mean_intervals import (
    bca_interval,
    exact_task_interval,
    hierarchical_means,
    percentile_interval,
    resampled_cells,
    task_means,
)
from passhat.stats.passk import pass_hat_k, share_of_passing_subsets
from passhat.stats.sufficient_statistics import count_cells


def cells_and_values(n, c, k):
    cells = count_cells(n, c)
    return cells, share_of_passing_subsets(cells.n, cells.c, k)


def test_task_means_have_the_law_of_drawing_tasks_one_by_one():
    n, c = np.full(5, 6), np.array([6, 6, 5, 3, 0])
    cells, values = cells_and_values(n, c, 2)
    drawn = task_means(values, cells.tasks, resamples=200_000, rng=np.random.default_rng(1))
    every = Counter(
        round(np.mean(draw), 9) for draw in product(pass_hat_k(n, c, 2).tolist(), repeat=5)
    )
    seen = Counter(np.round(drawn, 9).tolist())
    assert set(seen) <= set(every)
    for mean, count in every.items():
        share = count / 5**5
        assert seen[mean] / drawn.size == pytest.approx(share, abs=5 * np.sqrt(share / drawn.size))


def test_the_exact_law_is_the_one_of_all_resamples():
    n, c = np.full(6, 5), np.array([5, 5, 4, 3, 1, 0])
    cells, values = cells_and_values(n, c, 2)
    every = np.sort([np.mean(draw) for draw in product(pass_hat_k(n, c, 2), repeat=6)])
    for confidence in (0.8, 0.95):
        interval = exact_task_interval(values, cells.tasks, confidence, lattice=10)
        tail = (1 - confidence) / 2
        ends = np.quantile(every, [tail, 1 - tail], method="inverted_cdf")
        assert (interval.low, interval.high) == pytest.approx(tuple(ends), abs=1e-9)


def test_the_exact_law_agrees_with_many_draws_off_the_lattice():
    values, tasks = np.array([0.1234567, 0.7654321, 0.9]), np.array([50.0, 100.0, 150.0])
    exact = exact_task_interval(values, tasks, 0.95)
    means = task_means(values, tasks, resamples=400_000, rng=np.random.default_rng(2))
    drawn = percentile_interval(means, 0.95)
    assert (exact.low, exact.high) == pytest.approx((drawn.low, drawn.high), abs=6e-4)


def test_scipys_bootstrap_has_the_same_ends():
    rng = np.random.default_rng(3)
    n, c = np.full(40, 10), rng.binomial(10, rng.beta(3, 1, 40))
    cells, values = cells_and_values(n, c, 3)
    means = task_means(values, cells.tasks, resamples=100_000, rng=rng)
    for method, ours in (
        ("percentile", percentile_interval(means, 0.95)),
        ("BCa", bca_interval(means, values, cells.tasks, 0.95)),
    ):
        theirs = stats.bootstrap(
            (pass_hat_k(n, c, 3),), np.mean, n_resamples=100_000, batch=1000, method=method, rng=rng
        ).confidence_interval
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=3e-3)


def test_resampled_runs_keep_the_tasks_and_spread_their_passes_binomially():
    again = resampled_cells(count_cells([4, 4, 2], [3, 3, 0]))
    assert again.tasks.sum() == pytest.approx(3)
    np.testing.assert_allclose(
        again.tasks[again.n == 4], 2 * stats.binom.pmf(np.arange(5), 4, 0.75)
    )
    np.testing.assert_allclose(again.tasks[again.n == 2], [1, 0, 0])


def test_hierarchical_means_centre_on_the_plug_in_value():
    cells = count_cells([5] * 16, [4] * 16)
    means = hierarchical_means(cells, 5, resamples=50_000, rng=np.random.default_rng(4))
    assert means.mean() == pytest.approx(0.8**5, abs=0.002)


@pytest.mark.parametrize("seed", range(20))
def test_rounding_of_resampled_tallies_loses_no_task(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 12, 16)
    c = rng.binomial(n, 0.7)
    means = hierarchical_means(count_cells(n, c), 1, resamples=4000, rng=rng)
    spread = np.sqrt(means.var() / means.size)
    assert means.mean() == pytest.approx((c / n).mean(), abs=5 * spread)


def test_huge_tasks_are_resampled_one_by_one_with_the_same_law():
    cells = count_cells([5000, 10], [2500, 10])
    means = hierarchical_means(cells, 1, resamples=3000, rng=np.random.default_rng(5))
    assert means.mean() == pytest.approx(0.75, abs=0.02)
    assert means.std() == pytest.approx(0.25 / np.sqrt(2), rel=0.05)


def test_bca_falls_back_to_percentiles_when_nothing_varies():
    interval = bca_interval(np.full(100, 0.5), np.array([0.5]), np.array([7.0]), 0.95)
    assert (interval.low, interval.high) == (0.5, 0.5)
