"""The hypergeometric tail, against scipy and against counting."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from passhat.stats.numerics import log_choose, log_probability, upper_tail


@pytest.mark.parametrize(("n_a", "n_b", "passes"), [(3, 4, 3), (5, 2, 4), (1, 5, 2), (4, 4, 0)])
def test_the_tail_is_the_share_of_all_divisions_of_the_passes(n_a, n_b, passes):
    held = [sum(run < n_a for run in runs) for runs in combinations(range(n_a + n_b), passes)]
    for x in range(n_a + 2):
        share = np.mean(np.array(held) >= x)
        assert float(upper_tail(x, n_a, n_b, passes)) == pytest.approx(share, abs=1e-14)


@given(
    n_a=st.integers(1, 3_000), n_b=st.integers(0, 3_000), passes=st.floats(0, 1), x=st.floats(0, 1)
)
def test_the_tail_is_that_of_scipy_near_and_far(n_a, n_b, passes, x):
    passes = round(passes * (n_a + n_b))
    x = round(x * min(n_a, passes))
    expected = hypergeom.sf(x - 1, n_a + n_b, passes, n_a)
    assert float(upper_tail(x, n_a, n_b, passes)) == pytest.approx(expected, rel=1e-8, abs=1e-290)


def test_probabilities_outside_the_support_are_zero():
    assert np.exp(log_probability([-1, 4, 1], 3, 2, 3)).tolist() == pytest.approx([0, 0, 0.3])


def test_log_choose_of_a_million_keeps_its_digits():
    assert float(log_choose(10**6, 1)) == pytest.approx(np.log(10**6), rel=1e-9)
