"""The quantile of the largest |t| of a row."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from passhat.stats.largest_t import largest_t

levels = st.sampled_from([0.01, 0.3, 0.5, 0.8, 0.9, 0.95, 0.99])
rows = st.lists(st.floats(-1, 1), max_size=9).map(np.array)


@pytest.mark.parametrize("freedom", [1, 4, 30, 10**6])
def test_one_t_and_copies_of_it_have_the_quantile_of_one(freedom):
    single = stats.t.ppf(0.975, freedom)
    assert largest_t(np.array([]), freedom, 0.95) == pytest.approx(single)
    assert largest_t(np.ones(6), freedom, 0.95) == pytest.approx(single)
    assert largest_t(-np.ones(1), freedom, 0.95) == pytest.approx(single)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.9, -0.6])
@pytest.mark.parametrize("freedom", [3, 12])
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
