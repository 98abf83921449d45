"""p^k and 1 - (1 - p)^k of a stated rate, with its interval."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.stats.estimate import Estimate, Interval
from passhat.stats.proportions import proportion_interval
from passhat.stats.stated_rate import pass_at_k_of_rate, pass_hat_k_of_rate

SIXTEEN_OF_TWENTY = proportion_interval(16, 20, method="wald")


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
