"""The ratio of two rates, from their intervals."""

import numpy as np
import pytest

from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.proportions import proportion_interval
from passhat.stats.ratio import ratio_of


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
    # Four Monte Carlo errors below the nominal 95 %.
    assert hits / repetitions > 0.95 - 4 * (0.95 * 0.05 / repetitions) ** 0.5
