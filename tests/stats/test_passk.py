from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.stats.estimate import Estimate, Interval
from passhat.stats.passk import (
    pass_at_k,
    pass_at_k_of_rate,
    pass_hat_k,
    pass_hat_k_of_rate,
    plug_in_pass_hat_k,
    pooled_pass_hat_k,
    share_of_passing_subsets,
    shares_of_passing_subsets,
    task_values,
    window_pass_hat_k,
)
from passhat.stats.proportions import proportion_interval

SEQUENCE = [1, 1, 0, 1, 1, 1, 0, 1, 1, 1]
SIXTEEN_OF_TWENTY = proportion_interval(16, 20, method="wald")
counts = st.integers(0, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@st.composite
def runs_passes_and_k(draw, most=60):
    n = draw(st.integers(1, most))
    return n, draw(st.integers(0, n)), draw(st.integers(1, n))


def test_both_are_shares_of_all_subsets_of_the_runs():
    for n in range(1, 9):
        for c in range(n + 1):
            outcomes = [True] * c + [False] * (n - c)
            for k in range(1, n + 1):
                subsets = list(combinations(outcomes, k))
                all_pass = sum(all(subset) for subset in subsets) / len(subsets)
                any_pass = sum(any(subset) for subset in subsets) / len(subsets)
                assert pass_hat_k(n, c, k) == pytest.approx(all_pass, abs=1e-14)
                assert pass_at_k(n, c, k) == pytest.approx(any_pass, abs=1e-14)


@given(runs_passes_and_k())
def test_more_passes_never_lower_either(case):
    n, c, k = case
    if c < n:
        assert pass_hat_k(n, c, k) <= pass_hat_k(n, c + 1, k)
        assert pass_at_k(n, c, k) <= pass_at_k(n, c + 1, k)


@given(runs_passes_and_k())
def test_pass_hat_k_is_at_most_the_pass_rate_and_pass_at_k_at_least(case):
    n, c, k = case
    assert 0 <= pass_hat_k(n, c, k) <= c / n + 1e-12
    assert c / n - 1e-12 <= pass_at_k(n, c, k) <= 1


@given(runs_passes_and_k())
def test_one_more_attempt_lowers_pass_hat_k_and_raises_pass_at_k(case):
    n, c, k = case
    if k < n:
        assert pass_hat_k(n, c, k + 1) <= pass_hat_k(n, c, k) + 1e-12
        assert pass_at_k(n, c, k + 1) >= pass_at_k(n, c, k) - 1e-12


@given(runs_passes_and_k())
def test_pass_at_k_is_what_pass_hat_k_of_the_failures_leaves(case):
    n, c, k = case
    assert pass_at_k(n, c, k) == pytest.approx(1 - pass_hat_k(n, n - c, k), abs=1e-12)


@given(runs_passes_and_k(most=2000))
def test_the_product_of_ratios_agrees_with_exact_binomials(case):
    n, c, k = case
    exact = comb(c, k) / comb(n, k)
    assert pass_hat_k(n, c, k) == pytest.approx(exact, rel=1e-10, abs=1e-300)


@given(st.floats(0, 1), st.integers(1, 8), st.integers(1, 8))
def test_both_are_unbiased(p, k, more):
    n = k + more - 1
    c = np.arange(n + 1)
    chance = np.array([comb(n, j) for j in c]) * p**c * (1 - p) ** (n - c)
    assert chance @ pass_hat_k(n, c, k) == pytest.approx(p**k, abs=1e-12)
    assert chance @ pass_at_k(n, c, k) == pytest.approx(1 - (1 - p) ** k, abs=1e-12)


def test_arrays_answer_as_their_entries_do():
    n, c = np.array([[5, 6], [7, 8]]), np.array([[4, 6], [0, 3]])
    expected = [[pass_hat_k(5, 4, 3), 1.0], [0.0, pass_hat_k(8, 3, 3)]]
    np.testing.assert_allclose(pass_hat_k(n, c, 3), expected)
    assert isinstance(pass_hat_k(5, 4, 3), float)


def test_a_million_runs_and_a_large_k_are_no_trouble():
    assert pass_hat_k(10**6, 999_000, 5) == pytest.approx(0.999**5, rel=1e-6)
    assert pass_hat_k(10**6, 10**6 - 1, 10**6 - 1) == pytest.approx(1e-6, rel=1e-6)


def test_the_sequence_of_the_sources_gives_their_figures():
    assert [round(pass_at_k(10, 8, k), 3) for k in (1, 2, 3)] == [0.8, 0.978, 1.0]
    windows = [round(window_pass_hat_k(SEQUENCE, k).value, 3) for k in (1, 2, 3, 5)]
    assert windows == [0.8, 0.556, 0.25, 0.0]


def test_windows_depend_on_the_order_and_the_default_does_not():
    early, middle = [0] + [1] * 9, [1] * 4 + [0] + [1] * 5
    assert round(window_pass_hat_k(early, 5).value, 3) == 0.833
    assert round(window_pass_hat_k(middle, 5).value, 3) == 0.167
    assert pass_hat_k(10, 9, 5) == pytest.approx(0.5)


def test_the_alternatives_are_labelled_and_promise_no_interval():
    found = plug_in_pass_hat_k([5, 5], [4, 5], 5)
    assert found.value == pytest.approx((0.8**5 + 1) / 2)
    assert found.interval is None
    assert "biased" in found.method
    pooled = pooled_pass_hat_k([5, 15], [5, 5], 2)
    assert pooled.value == pytest.approx(0.25)
    assert (pooled.tasks, pooled.runs) == (2, 20)


@pytest.mark.parametrize(
    ("n", "c", "k", "message"),
    [
        (3, 0, 5, "n must be at least k = 5, got 3"),
        (3, 4, 1, r"c must not exceed n \(as \(n, c\)\), got \(3, 4\)"),
        (-1, 0, 1, "n must be whole numbers >= 0"),
        (3, -1, 1, "c must be whole numbers >= 0"),
        (3.5, 1, 1, "n must be whole numbers >= 0, got 3.5"),
        (3, float("nan"), 1, "c must be whole numbers >= 0, got nan"),
        (float("inf"), 1, 1, "n must be whole numbers >= 0, got inf"),
        (3, 1, 0, "k must be a whole number >= 1, got 0"),
        (3, 1, 1.5, "k must be a whole number >= 1, got 1.5"),
        ("3", 1, 1, "n must be whole numbers"),
    ],
)
@pytest.mark.parametrize("function", [pass_hat_k, pass_at_k])
def test_bad_counts_are_refused_by_name(function, n, c, k, message):
    with pytest.raises(ArgumentError, match=message):
        function(n, c, k)


def test_bad_sequences_are_refused_by_name():
    with pytest.raises(ArgumentError, match="outcomes must be a sequence of passes"):
        window_pass_hat_k([0, 1, 2], 1)
    with pytest.raises(ArgumentError, match="k must not exceed the 3 trials"):
        window_pass_hat_k([0, 1, 1], 4)
    with pytest.raises(ArgumentError, match="n must hold at least one task, each with a trial"):
        plug_in_pass_hat_k([3, 0], [1, 0], 1)


def test_the_published_interval_of_sixteen_in_twenty_comes_out():
    low, high = round(SIXTEEN_OF_TWENTY.low, 2), round(SIXTEEN_OF_TWENTY.high, 2)
    assert (low, high) == (0.62, 0.98)
    # The source takes the third power of the ends that it printed.
    found = pass_hat_k_of_rate(0.8, 3, interval=Interval(low, high))
    assert found.value == pytest.approx(0.512)
    assert (round(found.interval.low, 2), round(found.interval.high, 2)) == (0.24, 0.94)


def test_without_rounding_the_same_interval_ends_lower():
    found = pass_hat_k_of_rate(0.8, 3, interval=SIXTEEN_OF_TWENTY)
    assert (round(found.interval.low, 3), round(found.interval.high, 3)) == (0.244, 0.928)


@given(st.floats(0, 1), st.integers(1, 20), st.floats(0, 1), st.floats(0, 1))
def test_any_success_is_the_complement_of_failures_only(rate, k, below, above):
    bounds = Interval(rate * below, rate + (1 - rate) * above)
    some = pass_at_k_of_rate(rate, k, interval=bounds)
    none = pass_hat_k_of_rate(1 - rate, k, interval=Interval(1 - bounds.high, 1 - bounds.low))
    assert some.value == pytest.approx(1 - none.value)
    assert some.interval.low == pytest.approx(1 - none.interval.high)
    assert some.interval.high == pytest.approx(1 - none.interval.low)
    assert some.interval.low <= some.value <= some.interval.high


def test_one_attempt_is_the_rate_itself_and_needs_no_note():
    for found in (pass_hat_k_of_rate(0.7, 1), pass_at_k_of_rate(0.7, 1)):
        assert (round(found.value, 12), found.interval, found.notes) == (0.7, None, ())


def test_an_estimate_brings_its_interval_confidence_and_counts():
    rate = Estimate(
        value=0.8, interval=SIXTEEN_OF_TWENTY, method="Wald", confidence=0.95, tasks=1, runs=20
    )
    found = pass_hat_k_of_rate(rate, 3)
    assert found.interval == pass_hat_k_of_rate(0.8, 3, interval=SIXTEEN_OF_TWENTY).interval
    assert (found.runs, found.method) == (20, "p^3 of one rate for all attempts (Wald)")
    with pytest.raises(ArgumentError, match="the estimate has its own"):
        pass_hat_k_of_rate(rate, 3, interval=SIXTEEN_OF_TWENTY)


@pytest.mark.parametrize(
    ("rate", "k", "interval", "rule"),
    [
        (1.2, 2, None, "rate must"),
        (0.8, 0, None, "k must"),
        (0.8, 2, Interval(0.1, 0.5), "interval must hold the rate 0.8"),
        (0.8, 2, Interval(0.1, 1.5), "interval must lie within"),
    ],
)
def test_a_rate_that_cannot_be_is_refused(rate, k, interval, rule):
    with pytest.raises(ArgumentError, match=rule):
        pass_at_k_of_rate(rate, k, interval=interval)


@pytest.mark.parametrize(("metric", "formula"), [("pass^k", pass_hat_k), ("pass@k", pass_at_k)])
@given(tasks=st.lists(counts, max_size=8), k=st.integers(1, 5))
def test_each_task_has_its_own_value_in_its_place_or_none_for_want_of_runs(
    metric, formula, tasks, k
):
    runs, passes = np.array(tasks, dtype=np.int64).reshape(-1, 2).T
    expected = [formula(n, c, k) if n >= k else np.nan for n, c in tasks]
    np.testing.assert_allclose(task_values(runs, passes, k, metric=metric), expected)


@given(
    st.lists(st.integers(12, 200).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))),
    st.sets(st.integers(1, 12), min_size=1),
)
def test_the_shares_of_several_k_are_those_of_each(pairs, ks):
    n, c = np.transpose([(12, 5), *pairs])
    together = shares_of_passing_subsets(n, c, sorted(ks))
    for k, row in zip(sorted(ks), together, strict=True):
        assert row == pytest.approx(share_of_passing_subsets(n, c, k), rel=1e-12, abs=1e-300)
