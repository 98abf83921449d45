from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.stats.estimate import (
    Estimate,
    Interval,
    Unavailable,
    at_least_as_wide,
    independent_difference,
    isotonic,
    ratio_of,
)
from passhat.stats.proportions import proportion_interval

intervals = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(lambda ends: Interval(*sorted(ends)))
numbers = st.builds(
    Estimate,
    value=st.floats(0, 1),
    interval=intervals,
    method=st.just("m"),
    confidence=st.just(0.95),
)
ENDS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8)


@given(numbers, numbers)
def test_the_wider_question_holds_its_own_interval_and_that_of_the_narrower_and_no_more(a, b):
    found = at_least_as_wide(a, b)
    ends = {a.interval.low, a.interval.high, b.interval.low, b.interval.high}
    assert (found.interval.low, found.interval.high) == (min(ends), max(ends))
    assert replace(found, interval=a.interval) == a
    assert at_least_as_wide(found, b) == found


@given(numbers)
def test_without_an_interval_to_hold_nothing_changes(number):
    none = Unavailable("no run")
    bare = replace(number, interval=None)
    assert at_least_as_wide(number, none) is number
    assert at_least_as_wide(number, bare) is number
    assert at_least_as_wide(bare, number) is bare
    assert at_least_as_wide(none, number) is none


def estimate(low, high, *, tasks=5):
    return Estimate(
        value=high, interval=Interval(low, high), method="m", confidence=0.95, tasks=tasks
    )


@given(ENDS)
def test_ends_rise_and_no_interval_grows(pairs):
    # intervals around values in order share a point with all that come after: they never cross
    values = sorted(max(pair) for pair in pairs)
    given_ = [
        estimate(min(low, value), value) for (low, _), value in zip(pairs, values, strict=True)
    ]
    found = isotonic(given_)
    lows, highs = ([getattr(one.interval, end) for one in found] for end in ("low", "high"))
    assert lows == sorted(lows)
    assert highs == sorted(highs)
    for before, after in zip(given_, found, strict=True):
        assert before.interval.low <= after.interval.low
        assert after.interval.high <= before.interval.high
        assert after.value in after.interval


def test_only_numbers_over_the_same_tasks_bound_each_other():
    few = estimate(0.1, 0.4, tasks=2)
    unknown = Unavailable("too few runs")
    both = [estimate(0.5, 0.9), few, unknown, estimate(0.2, 0.9)]
    assert isotonic(both) == both


def test_a_report_never_bounds_pass_at_10_below_pass_at_5():
    rng = np.random.default_rng(1)
    rates = rng.beta(3, 1, 12)
    passed = rng.random((12, 10)) < rates[:, None]
    table = Trials.from_columns(
        task=np.repeat([f"t{i}" for i in range(12)], 10).tolist(), passed=passed.ravel().tolist()
    )
    metrics = measure(table, ks=range(1, 11)).system().metrics
    chain = [f"pass^{k}" for k in range(10, 0, -1)] + [f"pass@{k}" for k in range(1, 11)]
    for scope in ("this suite", "tasks like these"):
        intervals = [metrics[name].within(scope).interval for name in chain]
        for end in ("low", "high"):
            ends = [getattr(interval, end) for interval in intervals]
            assert ends == sorted(ends)


def test_ends_that_cross_in_their_last_digit_meet():
    above = float(np.nextafter(0.3, 1))
    first, second = isotonic([estimate(above, 0.6), estimate(0.1, 0.3)])
    assert first.interval == second.interval == Interval(above, above)


def _rate(passes, runs):
    return Estimate(
        value=passes / runs,
        interval=proportion_interval(passes, runs),
        method="Wilson",
        confidence=0.95,
        runs=runs,
    )


@given(st.integers(0, 20), st.integers(0, 30))
def test_two_wilson_intervals_give_newcombes_interval(passes_a, passes_b):
    a, b = _rate(passes_a, 20), _rate(passes_b, 30)
    found = independent_difference(a, b)
    low = a.value - b.value - np.hypot(a.value - a.interval.low, b.interval.high - b.value)
    assert np.isclose(found.interval.low, max(-1, low))
    assert found.value == a.value - b.value
    assert found.interval.low <= found.value <= found.interval.high


@given(st.integers(0, 20), st.integers(0, 30))
def test_turning_the_sides_round_turns_the_interval_round(passes_a, passes_b):
    a, b = _rate(passes_a, 20), _rate(passes_b, 30)
    there, back = independent_difference(a, b), independent_difference(b, a)
    assert np.isclose(there.interval.low, -back.interval.high)
    assert np.isclose(there.interval.high, -back.interval.low)


def test_a_side_without_an_interval_makes_the_difference_unavailable():
    bare = Estimate(value=0.5, interval=None, method="m", confidence=0.95)
    assert isinstance(independent_difference(bare, _rate(5, 10)), Unavailable)


def test_newcombes_published_example_comes_out():
    # Newcombe (1998), Statistics in Medicine 17, 873-890, example (a): 56/70 against 48/80.
    found = independent_difference(_rate(56, 70), _rate(48, 80))
    assert np.isclose(found.interval.low, 0.0524, atol=5e-5)
    assert np.isclose(found.interval.high, 0.3339, atol=5e-5)
    assert found.interval == Interval(found.interval.low, found.interval.high)


def rate(passes, runs):
    interval = proportion_interval(passes, runs)
    return Estimate(value=passes / runs, interval=interval, method="wilson", confidence=0.95)


def test_the_value_is_the_ratio_and_lies_in_its_interval():
    found = ratio_of(rate(12, 30), rate(24, 30))
    assert found.value == pytest.approx(0.5)
    assert found.value in found.interval


def test_a_sure_denominator_leaves_the_interval_of_the_numerator():
    whole = Estimate(value=0.5, interval=Interval(0.5, 0.5), method="given", confidence=0.95)
    part = rate(12, 30)
    found = ratio_of(part, whole)
    assert found.interval.low == pytest.approx(part.interval.low / 0.5)
    assert found.interval.high == pytest.approx(part.interval.high / 0.5)


def test_nothing_can_be_compared_with_a_rate_of_zero():
    found = ratio_of(rate(1, 10), rate(0, 10))
    assert found == Unavailable("the rate to compare with is 0")


def test_where_the_denominator_may_be_zero_there_is_no_upper_end():
    near = Estimate(value=0.1, interval=Interval(0.0, 0.4), method="given", confidence=0.95)
    assert ratio_of(rate(5, 10), near).interval is None


@pytest.mark.slow("simulates coverage")
@pytest.mark.parametrize(("p", "q", "n"), [(0.45, 0.9, 20), (0.8, 0.9, 40), (0.2, 0.6, 60)])
def test_the_interval_covers_the_true_ratio_as_often_as_it_says(p, q, n):
    rng = np.random.default_rng(20)
    repetitions = 2000
    hits = sum(
        p / q in found.interval
        for a, b in zip(
            rng.binomial(n, p, repetitions), rng.binomial(n, q, repetitions), strict=True
        )
        if (found := ratio_of(rate(int(a), n), rate(int(b), n))) and found.interval
    )
    # Four Monte Carlo errors below the nominal 95%.
    assert hits / repetitions > 0.95 - 4 * (0.95 * 0.05 / repetitions) ** 0.5
