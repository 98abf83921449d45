"""Exact p-values for pairs, against every sign flip and every division of the passes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, hypergeom

from passhat.stats.exact_tests import divided_passes_test, sign_flip_test, sign_flip_tests


def flips_by_hand(differences):
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
            for signs in product((-1, 1), repeat=len(differences))]  # fmt: skip
    observed = abs(sum(differences))
    beyond = sum(s > observed + 1e-9 for s in sums)
    tied = sum(abs(s - observed) <= 1e-9 for s in sums)
    return (beyond + tied / 2) / len(sums)


def expected_p(differences):
    # Sums that are all 0 tie on both signs at once: nothing was seen, p = 1.
    return 1.0 if abs(sum(differences)) < 1e-9 else flips_by_hand(differences)


@settings(max_examples=60)
@given(steps=st.lists(st.integers(-6, 6), min_size=1, max_size=9), unit=st.sampled_from([1, 5, 7]))
def test_sign_flips_on_a_lattice_are_all_the_sign_flips(steps, unit):
    differences = np.array(steps) / (6 * unit)
    found = sign_flip_test(differences, np.random.default_rng(0))
    assert found.p_value == pytest.approx(expected_p(differences), abs=1e-12)
    assert not found.random


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), tasks=st.integers(1, 9))
def test_sign_flips_of_scores_off_any_lattice_are_all_the_sign_flips(seed, tasks):
    differences = np.random.default_rng(seed).uniform(-1, 1, tasks)
    found = sign_flip_test(differences, np.random.default_rng(0))
    assert found.p_value == pytest.approx(flips_by_hand(differences), abs=1e-12)


def test_drawn_flips_agree_with_exact_ones_within_their_error():
    differences = np.random.default_rng(5).integers(-5, 7, size=60) / 5
    exact = sign_flip_test(differences, np.random.default_rng(0))
    nudged = differences + np.random.default_rng(6).uniform(-1e-6, 1e-6, 60)
    drawn = sign_flip_test(nudged, np.random.default_rng(0))
    assert drawn.random
    error = np.sqrt(exact.p_value / 9_999)
    assert drawn.p_value == pytest.approx(exact.p_value, abs=5 * error)


def test_the_normal_limit_of_many_tasks_is_near_the_exact_p():
    differences = np.random.default_rng(8).integers(-20, 21, size=3_000) / 20
    exact = sign_flip_test(differences, np.random.default_rng(0))
    nudged = differences + np.random.default_rng(6).uniform(-1e-7, 1e-7, 3_000)
    limit = sign_flip_test(nudged, np.random.default_rng(0))
    assert limit.method == "sign-flip, normal limit"
    assert limit.p_value == pytest.approx(exact.p_value, rel=0.01)


def test_no_p_value_is_ever_zero():
    ones = np.ones(2_000)
    assert sign_flip_test(ones, np.random.default_rng(0)).p_value > 0
    n = np.full(2_000, 3)
    assert divided_passes_test(n, n, n, n * 0).p_value > 0


def test_one_run_a_task_is_mcnemar_mid_p():
    a = np.array([1] * 9 + [0] * 3 + [1] * 20)
    b = np.array([0] * 9 + [1] * 3 + [1] * 20)
    one = np.ones(32, dtype=int)
    mid_p = 2 * binom.cdf(3, 12, 0.5) - binom.pmf(3, 12, 0.5)
    found = divided_passes_test(one, a, one, b)
    assert found.method == "McNemar mid-p"
    assert found.p_value == pytest.approx(mid_p, abs=1e-12)


@settings(max_examples=40)
@given(data=st.data())
def test_divided_passes_are_every_division_of_every_task(data):
    tasks = data.draw(st.integers(1, 3))
    runs = st.lists(st.integers(1, 4), min_size=tasks, max_size=tasks)
    n_a, n_b = np.array(data.draw(runs)), np.array(data.draw(runs))
    c_a = np.array([data.draw(st.integers(0, int(n))) for n in n_a])
    c_b = np.array([data.draw(st.integers(0, int(n))) for n in n_b])
    law = {0: 1.0}
    for na, nb, m in zip(n_a, n_b, c_a + c_b, strict=True):
        law = _convolved(law, {x: hypergeom.pmf(x, na + nb, m, na) for x in range(na + 1)})
    observed = int(c_a.sum())
    below = sum(p for x, p in law.items() if x < observed)
    above = sum(p for x, p in law.items() if x > observed)
    mid_p = min(1.0, 2 * min(below, above) + law[observed])
    assert divided_passes_test(n_a, c_a, n_b, c_b).p_value == pytest.approx(mid_p, abs=1e-11)


def _convolved(left, right):
    law = {}
    for x, p in left.items():
        for y, q in right.items():
            law[x + y] = law.get(x + y, 0.0) + p * q
    return law


def test_the_normal_limit_of_many_runs_is_the_cmh_test_of_statsmodels():
    from statsmodels.stats.contingency_tables import StratifiedTable

    rng = np.random.default_rng(2)
    n = np.full(50, 500)
    c_a, c_b = rng.binomial(n, 0.61), rng.binomial(n, 0.6)
    tables = [
        np.array([[a, 500 - a], [b, 500 - b]], dtype=float) for a, b in zip(c_a, c_b, strict=True)
    ]
    expected = StratifiedTable(tables).test_null_odds(correction=False).pvalue
    found = divided_passes_test(n, c_a, n, c_b)
    assert found.method == "CMH mid-p, normal limit"
    assert found.p_value == pytest.approx(expected, rel=1e-9)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=60),
    st.booleans(),
)
def test_a_pair_alone_has_the_p_value_that_it_has_among_others(tasks, mid):
    table = np.array(tasks) / 10
    rng = np.random.default_rng(0)
    alone = sign_flip_tests(table, (np.array([0]), np.array([1])), rng, mid=mid)
    twice = sign_flip_tests(table, (np.array([0, 1]), np.array([1, 0])), rng, mid=mid)
    assert alone.p_values[0] == pytest.approx(twice.p_values, abs=1e-12)
