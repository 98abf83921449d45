"""Adjusted p-values: what statsmodels says, what the procedures demand, what they never do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from statsmodels.stats.multitest import multipletests

from passhat.errors import ArgumentError
from passhat.stats.multiplicity import benjamini_hochberg, holm

p_values = arrays(float, st.integers(1, 30), elements=st.floats(0, 1, width=16))


@pytest.mark.parametrize(("ours", "theirs"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])
@given(p=p_values)
def test_adjusted_p_values_are_those_of_statsmodels(ours, theirs, p):
    np.testing.assert_allclose(ours(p), multipletests(p, method=theirs)[1], rtol=0, atol=1e-12)


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
