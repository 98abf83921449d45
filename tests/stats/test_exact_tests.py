"""Boschloo's test, against every table, against scipy, and against itself."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, boschloo_exact, fisher_exact

from passhat.stats.exact_tests import LARGEST_TABLE, boschloo_greater, stratified_distribution

strata = st.lists(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))
    ),
    min_size=1,
    max_size=3,
)


def all_tables(n_a, n_b):
    c_a, c_b = np.meshgrid(np.arange(n_a + 1), np.arange(n_b + 1), indexing="ij")
    return c_a.ravel(), c_b.ravel()


def by_hand(n_a, n_b):
    """Of each table the supremum, over a fine grid, of the chance of a Fisher p no larger."""
    every = list(product(range(n_a + 1), range(n_b + 1)))
    fisher = np.array(
        [fisher_exact([[x, n_a - x], [y, n_b - y]], "greater").pvalue for x, y in every]
    )
    rates = np.linspace(0, 1, 4_001)
    chances = np.array([binom.pmf(x, n_a, rates) * binom.pmf(y, n_b, rates) for x, y in every])
    return [chances[fisher <= p * (1 + 1e-9)].sum(axis=0).max() for p in fisher]


@pytest.mark.parametrize(("n_a", "n_b"), [(1, 1), (2, 3), (4, 2), (5, 5)])
def test_every_small_table_is_what_enumeration_says(n_a, n_b):
    c_a, c_b = all_tables(n_a, n_b)
    found = boschloo_greater(n_a, c_a, n_b, c_b)
    np.testing.assert_allclose(found, by_hand(n_a, n_b), rtol=1e-5)


@pytest.mark.parametrize(
    ("n_a", "c_a", "n_b", "c_b"),
    [(10, 7, 10, 2), (3, 3, 7, 1), (20, 13, 20, 11), (37, 30, 18, 9), (60, 48, 60, 36)],
)
def test_larger_tables_are_those_of_scipy(n_a, c_a, n_b, c_b):
    expected = boschloo_exact([[c_a, c_b], [n_a - c_a, n_b - c_b]], "greater", n=256).pvalue
    assert float(boschloo_greater(n_a, c_a, n_b, c_b)) == pytest.approx(expected, abs=1e-7)


@settings(max_examples=30)
@given(n_a=st.integers(1, 15), n_b=st.integers(1, 15))
def test_the_chance_of_a_small_p_value_never_exceeds_it(n_a, n_b):
    c_a, c_b = all_tables(n_a, n_b)
    p = boschloo_greater(n_a, c_a, n_b, c_b)
    for rate in (0.05, 0.3, 0.5, 0.77, 0.99):
        chance = binom.pmf(c_a, n_a, rate) * binom.pmf(c_b, n_b, rate)
        for alpha in (0.01, 0.05, 0.2):
            assert chance[p <= alpha].sum() <= alpha * (1 + 1e-6)


@settings(max_examples=30)
@given(n_a=st.integers(1, 15), n_b=st.integers(1, 15))
def test_it_is_never_less_powerful_than_fisher_and_more_passes_never_raise_p(n_a, n_b):
    c_a, c_b = all_tables(n_a, n_b)
    p = boschloo_greater(n_a, c_a, n_b, c_b).reshape(n_a + 1, n_b + 1)
    fisher = [fisher_exact([[x, n_a - x], [y, n_b - y]], "greater").pvalue
              for x, y in zip(c_a, c_b, strict=True)]  # fmt: skip
    assert (p.ravel() <= np.array(fisher) * (1 + 1e-9)).all()
    assert (np.diff(p, axis=0) <= 1e-9).all()
    assert (np.diff(p, axis=1) >= -1e-9).all()


@settings(max_examples=30)
@given(n=st.integers(1, 12), c=st.integers(0, 12), other=st.integers(0, 12))
def test_counting_failures_for_passes_swaps_the_systems(n, c, other):
    c, other = min(c, n), min(other, n)
    one = float(boschloo_greater(n, c, n, other))
    assert float(boschloo_greater(n, n - other, n, n - c)) == pytest.approx(one, rel=1e-9)


def test_beyond_the_largest_table_fishers_p_is_taken():
    n = LARGEST_TABLE
    expected = fisher_exact([[1_300, 1_240], [n - 1_300, n - 1_240]], "greater").pvalue
    assert float(boschloo_greater(n, 1_300, n, 1_240)) == pytest.approx(expected, rel=1e-8)


def test_a_side_without_runs_says_nothing_and_no_p_is_zero():
    assert float(boschloo_greater(0, 0, 5, 2)) == 1.0
    assert float(boschloo_greater(10**6, 10**6, 10**6, 0)) > 0


def every_count(runs, having, failing):
    """The failing runs among the first `having`, for every choice of the failing ones."""
    return [sum(i < having for i in chosen) for chosen in combinations(range(runs), failing)]


@given(strata)
def test_the_law_is_what_counting_every_division_of_the_runs_gives(kinds):
    law = stratified_distribution(kinds)
    sums = [sum(counts) for counts in product(*(every_count(*kind) for kind in kinds))]
    assert min(sums) == law.fewest
    expected = np.bincount(np.array(sums) - law.fewest) / len(sums)
    assert law.chance == pytest.approx(expected)
    assert len(law.chance) == max(sums) - min(sums) + 1


@given(strata)
def test_p_is_the_smaller_tail_doubled_and_at_most_one(kinds):
    law = stratified_distribution(kinds)
    sums = np.array([sum(c) for c in product(*(every_count(*kind) for kind in kinds))])
    for seen in range(law.fewest, law.fewest + len(law.chance)):
        tails = np.mean(sums <= seen), np.mean(sums >= seen)
        assert law.p_of(seen) == pytest.approx(min(1.0, 2 * min(tails)))


@given(strata)
def test_p_keeps_its_level(kinds):
    law = stratified_distribution(kinds)
    for level in (0.01, 0.05, 0.2):
        assert law.chance[law.p <= level].sum() <= level + 1e-12


def test_fishers_tea_tasting():
    # Fisher (1935): 3 of 4 right with 8 cups has a one-sided p of 17 / 70.
    assert stratified_distribution([(8, 4, 4)]).p_of(3) == pytest.approx(2 * 17 / 70)


def test_a_task_in_which_all_runs_have_the_property_changes_nothing():
    alone, beside = (
        stratified_distribution([(6, 3, 2)]),
        stratified_distribution([(6, 3, 2), (5, 5, 2)]),
    )
    assert beside.fewest == alone.fewest + 2
    assert beside.p == pytest.approx(alone.p)
