"""A test a task: families, what too few runs cannot tell, and every direction."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import (
    binom,
    boschloo_exact,
    fisher_exact,
    mannwhitneyu,
    permutation_test,
    ttest_ind,
)

from passhat.errors import ArgumentError
from passhat.stats.exact_tests import boschloo_greater
from passhat.stats.multiple_testing import _smallest_p, minimum_runs, score_task_tests, task_tests


@st.composite
def suites(draw):
    tasks = draw(st.integers(1, 8))
    runs = st.lists(st.integers(0, 9), min_size=tasks, max_size=tasks)
    n_a, n_b = draw(runs), draw(runs)
    return n_a, [draw(st.integers(0, n)) for n in n_a], n_b, [draw(st.integers(0, n)) for n in n_b]


def test_p_values_are_those_of_scipy():
    n, c_a, c_b = 9, [9, 7, 5, 0], [2, 5, 5, 6]
    found = task_tests([n] * 4, c_a, [n] * 4, c_b)
    tables = [[[a, b], [n - a, n - b]] for a, b in zip(c_a, c_b, strict=True)]
    expected = [fisher_exact(table).pvalue for table in tables]
    np.testing.assert_allclose(found.p_values, np.minimum(expected, 1), atol=1e-7)
    alone = task_tests([n], [9], [n], [2])
    assert alone.p_values[0] == pytest.approx(boschloo_exact(tables[0], n=256).pvalue, abs=1e-7)
    assert found.answers == ("better", "no difference shown", "no difference shown", "worse")


def test_the_interval_of_each_difference_is_newcombes():
    from statsmodels.stats.proportion import confint_proportions_2indep

    found = task_tests([20, 12], [15, 12], [25, 12], [9, 3])
    for j, counts in enumerate([(15, 20, 9, 25), (12, 12, 3, 12)]):
        low, high = confint_proportions_2indep(*counts, method="newcomb", compare="diff")
        assert found.low[j] == pytest.approx(low, abs=1e-9)
        assert found.high[j] == pytest.approx(high, abs=1e-9)


@settings(max_examples=40)
@given(suite=suites(), correction=st.sampled_from(["holm", "benjamini-hochberg"]))
def test_swapping_the_systems_turns_every_answer_round(suite, correction):
    n_a, c_a, n_b, c_b = suite
    there = task_tests(n_a, c_a, n_b, c_b, correction=correction)
    back = task_tests(n_b, c_b, n_a, c_a, correction=correction)
    turned = {"better": "worse", "worse": "better"}
    assert back.answers == tuple(turned.get(word, word) for word in there.answers)
    np.testing.assert_allclose(back.adjusted, there.adjusted, rtol=1e-9)
    np.testing.assert_allclose(back.low, -there.high, atol=1e-12)


@settings(max_examples=40)
@given(suite=suites())
def test_asking_in_one_direction_answers_in_that_direction_only(suite):
    less = task_tests(*suite, alternative="less")
    greater = task_tests(*suite, alternative="greater")
    assert "better" not in less.answers
    assert "worse" not in greater.answers
    both = task_tests(*suite)
    least = np.minimum(less.p_values, greater.p_values)
    assert (both.p_values >= least * (1 - 1e-9)).all()


@settings(max_examples=40)
@given(n=st.integers(1, 9), seed=st.integers(0, 999), tasks=st.integers(1, 12))
def test_screening_finds_all_that_a_gate_finds_where_tasks_have_the_same_runs(n, seed, tasks):
    rng = np.random.default_rng(seed)
    runs = np.full(tasks, n)
    sides = (runs, rng.integers(0, n + 1, tasks), runs, rng.integers(0, n + 1, tasks))
    gate, screen = (task_tests(*sides, correction=c) for c in ("holm", "benjamini-hochberg"))
    for strict, loose in zip(gate.answers, screen.answers, strict=True):
        if strict in ("better", "worse"):
            assert loose == strict


@settings(max_examples=40)
@given(suite=suites())
def test_an_unevaluable_task_could_not_have_been_rejected_whatever_its_runs_had_said(suite):
    n_a, _, n_b, _ = (np.array(x) for x in suite)
    found = task_tests(*suite)
    best = [
        task_tests(n_a, n_a, n_b, 0 * n_b).p_values,
        task_tests(n_a, 0 * n_a, n_b, n_b).p_values,
    ]
    assert ((np.minimum(*best) <= 0.05 + 1e-12) == found.evaluable).all()
    assert (found.adjusted[~found.evaluable] == 1).all()


def test_the_smallest_p_that_runs_allow_is_boschloos_p_of_all_against_none():
    n_a, n_b = (x.ravel() for x in np.mgrid[1:13, 1:13])
    expected = boschloo_greater(n_a, n_a, n_b, np.zeros_like(n_b))
    found = _smallest_p(n_a, n_b, "greater", alone=True)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("correction", ["holm", "benjamini-hochberg"])
def test_leaving_out_what_cannot_be_told_spares_the_rest(correction):
    n = np.array([8] * 3 + [1] * 97)
    c_a, c_b = np.where(n == 8, 8, 1), np.where(n == 8, 2, 1)
    found = task_tests(n, c_a, n, c_b, correction=correction)
    assert found.answers == ("better",) * 3 + ("unevaluable",) * 97
    alone = task_tests(n[:3], c_a[:3], n[:3], c_b[:3], correction=correction)
    np.testing.assert_allclose(found.adjusted[:3], alone.adjusted)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize("tasks", [1, 7, 40, 500])
def test_the_minimum_runs_are_the_fewest_with_which_a_family_can_be_told(tasks, alternative):
    least = minimum_runs(tasks, alternative=alternative)
    for runs, evaluable in ((least, True), (least - 1, False)):
        n, none = np.full(tasks, runs), np.zeros(tasks, dtype=int)
        sides = (n, none, n, n) if alternative == "less" else (n, n, n, none)
        found = task_tests(*sides, alternative=alternative)
        assert found.evaluable.all() == evaluable
        assert found.minimum_runs == least


@pytest.mark.parametrize(
    "n", [3, 4, pytest.param(5, marks=pytest.mark.slow("enumerates the largest family of tests"))]
)
def test_the_family_error_of_tasks_that_did_not_change_is_held_exactly(n):
    """Two tasks with the same rate on both sides: every outcome of both enumerated."""
    wrong = []
    for *a, b1, b2 in product(range(n + 1), repeat=4):
        found = task_tests([n, n], a, [n, n], [b1, b2])
        if found.answers != ("no difference shown",) * 2 and "unevaluable" not in found.answers:
            wrong.append([*a, b1, b2])
    for first, second in [(0.5, 0.5), (0.9, 0.5), (0.9, 0.9)]:
        chances = binom.pmf(np.reshape(wrong, (-1, 4)), n, [first, second] * 2).prod(axis=1)
        assert chances.sum() <= 0.05


def test_tasks_that_always_pass_cost_the_others_nothing():
    small = task_tests([5, 5], [5, 5], [5, 5], [0, 5])
    large = task_tests([5] * 100, [5] * 100, [5] * 100, [0] + [5] * 99)
    assert large.adjusted[0] == pytest.approx(small.adjusted[0])
    assert large.answers[0] == "better"


def test_scores_are_tested_where_no_run_passes():
    rng = np.random.default_rng(3)
    a = [np.clip(rng.normal(0.9, 0.03, 10), 0, 0.99) for _ in range(6)]
    b = [np.clip(rng.normal(0.53, 0.1, 10), 0, 0.99) for _ in range(6)]
    for test in ("permutation", "wilcoxon"):
        assert score_task_tests(a, b, test=test).answers == ("better",) * 6


def test_the_permutation_p_of_scores_is_scipys():
    rng = np.random.default_rng(5)
    a, b = rng.random(6), rng.random(7) * 0.8
    exact = permutation_test(
        (a, b), lambda x, y: abs(x.mean() - y.mean()), n_resamples=np.inf, alternative="greater"
    )
    ranked = mannwhitneyu(a, b, method="exact")
    assert score_task_tests([a], [b]).p_values[0] == pytest.approx(exact.pvalue)
    found = score_task_tests([a], [b], test="wilcoxon").p_values[0]
    assert found == pytest.approx(ranked.pvalue)


def test_passes_as_scores_have_the_same_p_values():
    scores_a, scores_b = [[1] * 6 + [0], [1] * 7], [[0] * 5 + [1] * 2, [1] * 6 + [0]]
    by_score = score_task_tests(scores_a, scores_b)
    by_pass = task_tests([7, 7], [6, 7], [7, 7], [2, 6])
    np.testing.assert_allclose(by_score.p_values, by_pass.p_values)
    np.testing.assert_allclose(by_score.adjusted, by_pass.adjusted)


def test_with_many_runs_scores_are_permuted_at_random_and_the_p_is_close():
    rng = np.random.default_rng(6)
    a, b = rng.normal(0.56, 0.1, 20).clip(0, 1), rng.normal(0.5, 0.1, 20).clip(0, 1)
    expected = ttest_ind(a, b).pvalue
    assert score_task_tests([a], [b]).p_values[0] == pytest.approx(expected, rel=0.3, abs=0.001)


def test_scores_of_unequal_numbers_of_tasks_are_refused():
    with pytest.raises(ArgumentError, match="aligned, an entry per task"):
        score_task_tests([[0.5]], [])


def test_constant_sides_have_the_p_value_that_their_runs_allow():
    found = task_tests([2, 5], [2, 5], [2, 5], [0, 5])
    assert found.p_values.tolist() == pytest.approx([2 / 6, 1.0])
    assert task_tests([2], [2], [2], [0]).p_values[0] == pytest.approx(2 * 4.0**-2)


def test_a_task_that_one_side_did_not_run_is_unevaluable():
    found = task_tests([9, 9], [9, 9], [0, 9], [0, 0])
    assert found.answers == ("unevaluable", "better")
    assert (found.low[0], found.high[0]) == (-1.0, 1.0)


def test_no_task_at_all_is_an_empty_answer():
    found = task_tests([], [], [], [])
    assert found.answers == ()
    assert found.tasks == 0


def test_sides_and_options_that_do_not_fit_are_refused():
    with pytest.raises(ArgumentError, match="aligned, an entry per task"):
        task_tests([3, 3], [1, 1], [3], [1])
    with pytest.raises(ArgumentError, match="c must not exceed n"):
        task_tests([3], [4], [3], [1])
    with pytest.raises(ArgumentError, match="alternative must be one of"):
        task_tests([3], [1], [3], [1], alternative="smaller")
    with pytest.raises(ArgumentError, match="correction must be one of"):
        task_tests([3], [1], [3], [1], correction="none")
