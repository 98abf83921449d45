import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.independent import independent_difference
from passhat.stats.proportions import proportion_interval


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
