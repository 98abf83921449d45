import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.stats.estimate import Unavailable
from passhat.stats.usage import _ranks, quantile_estimate


def _binomial_below(rank, size, share):
    return sum(math.comb(size, i) * share**i * (1 - share) ** (size - i) for i in range(rank))


@given(st.integers(1, 60), st.sampled_from([0.1, 0.5, 0.95]), st.sampled_from([0.025, 0.005]))
def test_ranks_are_the_innermost_whose_tails_are_small_enough(size, share, tail):
    low, high = _ranks(size, share, tail)
    assert _binomial_below(low, size, share) <= tail + 1e-12
    assert 1 - _binomial_below(high, size, share) <= tail + 1e-12
    assert low > size or _binomial_below(low + 1, size, share) > tail - 1e-12
    assert high == 0 or 1 - _binomial_below(high - 1, size, share) > tail - 1e-12


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200), st.floats(0.01, 0.99))
def test_a_quantile_lies_inside_its_interval(values, share):
    found = quantile_estimate(values, share)
    if found.interval is not None:
        assert found.interval.low <= found.value * (1 + 1e-9)
        assert found.value <= found.interval.high * (1 + 1e-9) + 1e-9


def test_the_interval_covers_at_least_as_often_as_it_says():
    rng = np.random.default_rng(3)
    hits = sum(
        -math.log(0.05) in quantile_estimate(rng.exponential(size=200), 0.95).interval
        for _ in range(400)
    )
    assert hits / 400 > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 400)


def test_too_few_trials_give_a_value_and_say_why_there_is_no_interval():
    found = quantile_estimate([1.0, 2.0, 3.0], 0.95)
    assert found.interval is None
    assert found.notes == ("3 trials are too few for an interval",)


def test_missing_values_are_left_out():
    assert quantile_estimate([1.0, math.nan, 3.0], 0.5).value == 2.0
    assert quantile_estimate([math.nan], 0.5) == Unavailable("no trial recorded it")


def test_a_share_outside_its_range_is_refused():
    with pytest.raises(ArgumentError, match="share must lie strictly between 0 and 1, got 1"):
        quantile_estimate([1.0], 1.0)
