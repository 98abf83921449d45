"""Adjusted p-values: what statsmodels says, what the procedures demand, what they never do."""

from __future__ import annotations

from itertools import permutations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from statsmodels.stats.multitest import multipletests

from passhat.errors import ArgumentError
from passhat.stats.exact_tests import NullDistributions
from passhat.stats.multiple_testing import (
    benjamini_hochberg,
    discrete_benjamini_hochberg,
    discrete_holm,
    holm,
    shuffled_in_strata,
    standardised,
    step_down_p,
    tukey,
    tukey_level,
)

p_values = arrays(float, st.integers(1, 30), elements=st.floats(0, 1, width=16))
tables = arrays(
    np.float64,
    st.tuples(st.integers(2, 12), st.integers(1, 5)),
    elements=st.integers(-3, 3).map(float),
)


@pytest.mark.parametrize("adjust", [discrete_holm, discrete_benjamini_hochberg])
def test_distributions_may_have_their_old_name_for_one_more_release(adjust):
    null = NullDistributions(kind=np.array([0]), attainable=(np.array([0.02, 1.0]),))
    with pytest.warns(DeprecationWarning, match=r"\(laws=\) is .*\(distributions=\) now"):
        assert adjust([0.02], laws=null).tolist() == [0.02]


@pytest.mark.parametrize(("ours", "theirs"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])
@given(p=p_values)
def test_adjusted_p_values_are_those_of_statsmodels(ours, theirs, p):
    # statsmodels collects garbage in every call: half a second beside thousands of tests
    with patch("gc.collect"):
        adjusted = multipletests(p, method=theirs)[1]
    np.testing.assert_allclose(ours(p), adjusted, rtol=0, atol=1e-12)


@given(p=p_values)
def test_holm_rejects_what_stepping_down_by_hand_rejects(p):
    alpha, rejected = 0.05, np.zeros(p.size, dtype=bool)
    for step, at in enumerate(np.argsort(p, kind="stable")):
        if p[at] * (p.size - step) > alpha:
            break
        rejected[at] = True
    np.testing.assert_array_equal(holm(p) <= alpha, rejected)


@given(p=p_values)
def test_screening_never_rejects_less_than_a_gate_and_neither_lowers_a_p_value(p):
    assert (benjamini_hochberg(p) <= holm(p) + 1e-15).all()
    assert (benjamini_hochberg(p) >= p).all()
    assert (holm(p) <= 1).all()


@given(p=p_values, seed=st.integers(0, 99))
def test_the_order_of_the_tests_does_not_matter(p, seed):
    shuffled = np.random.default_rng(seed).permutation(p.size)
    for correct in (holm, benjamini_hochberg):
        np.testing.assert_array_equal(correct(p[shuffled]), correct(p)[shuffled])


def test_an_empty_family_stays_empty_and_one_test_stays_as_it_is():
    for correct in (holm, benjamini_hochberg):
        assert correct([]).size == 0
        assert correct([0.03]).tolist() == [0.03]


@pytest.mark.parametrize("bad", [[0.5, float("nan")], [-0.1], [1.5], ["a"]])
def test_what_is_no_p_value_is_refused(bad):
    with pytest.raises(ArgumentError, match=r"p must be numbers in \[0, 1\]"):
        holm(bad)


def test_a_table_of_p_values_is_refused():
    with pytest.raises(ArgumentError, match="p must be a flat list of p-values"):
        benjamini_hochberg([[0.1, 0.2]])


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=5), min_size=1, max_size=4))
def test_a_shuffle_keeps_how_many_fail_in_each_stratum_and_the_first_row_is_as_observed(groups):
    labels = np.array([label for group in groups for label in group])
    strata = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    rows = shuffled_in_strata(labels, strata, shuffles=20, rng=np.random.default_rng(1))
    assert (rows[0] == labels).all()
    for stratum in range(len(groups)):
        here = strata == stratum
        assert (rows[:, here].sum(axis=1) == labels[here].sum()).all()


def test_every_division_of_a_stratum_is_equally_likely():
    labels = np.array([True, True, False, False])
    rng = np.random.default_rng(2)
    rows = shuffled_in_strata(labels, np.zeros(4, dtype=np.int64), shuffles=6000, rng=rng)[1:]
    _, counts = np.unique(rows, axis=0, return_counts=True)
    assert len(counts) == 6
    assert counts.min() > 900  # 1,000 expected, with a standard deviation of 29
    assert counts.max() < 1100


@given(tables)
def test_adjusted_p_never_lies_below_the_p_of_its_own_column(table):
    own = (table >= table[0]).mean(axis=0)
    assert (step_down_p(table) >= own - 1e-12).all()


@given(tables)
def test_adjusted_p_never_lies_above_the_single_step_p(table):
    largest = table.max(axis=1)
    single = np.array([(largest >= seen).mean() for seen in table[0]])
    assert (step_down_p(table) <= single + 1e-12).all()


@given(tables)
def test_what_is_more_extreme_has_no_larger_p_and_equal_columns_have_equal_ones(table):
    p = step_down_p(table)
    order = np.argsort(-table[0], kind="stable")
    assert (np.diff(p[order]) >= -1e-12).all()
    twice = step_down_p(np.hstack([table, table]))
    assert twice[: p.size] == pytest.approx(p)


def test_over_all_permutations_some_false_rejection_has_its_level_at_most():
    # Two-sample differences of 6 runs on 3 dependent measures, each of 720 orders observed once.
    rng = np.random.default_rng(5)
    values = rng.integers(0, 4, size=(6, 3)).astype(float)
    orders = np.array(list(permutations(range(6))))
    differences = values[orders[:, :3]].mean(axis=1) - values[orders[:, 3:]].mean(axis=1)
    table = standardised(differences)
    smallest = []
    for row in range(0, len(table), 24):
        observed = np.vstack([table[row], np.delete(table, row, axis=0)])
        smallest.append(step_down_p(observed).min())
    for level in (0.05, 0.1, 0.3):
        assert np.mean(np.array(smallest) <= level) <= level + 0.1


def test_a_statistic_that_never_varies_is_nothing():
    assert standardised(np.array([[1.0, 2.0], [1.0, 4.0]])).tolist() == [[0.0, -1.0], [0.0, 1.0]]


@pytest.mark.parametrize("systems", [2, 3, 6, 12, 30])
def test_the_level_of_a_pair_is_that_of_the_studentized_range(systems):
    level = tukey_level(0.05, systems)
    gap = -np.sqrt(2) * stats.norm.ppf(level / 2)
    assert gap == pytest.approx(stats.studentized_range.ppf(0.95, systems, 1e6), rel=1e-4)
    assert tukey([level], systems)[0] == pytest.approx(0.05)
    assert 0.05 / (systems * (systems - 1) / 2) <= level <= 0.05


def test_adjusting_for_all_pairs_keeps_the_order_and_never_helps():
    p = np.logspace(-20, 0, 60)
    adjusted = tukey(p, 7)
    assert (np.diff(adjusted) >= 0).all()
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(1, 21 * p) * (1 + 1e-6)).all()
