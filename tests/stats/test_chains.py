"""Chains of steps and contained failures."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from passhat.errors import ArgumentError
from passhat.stats.decay import cascade, containment_rate
from passhat.stats.estimate import Unavailable
from passhat.stats.proportions import proportion_interval

step = st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_a_chain_is_as_reliable_as_the_product_of_its_steps():
    chain = cascade([(19, 20), (48, 50), (30, 30)])
    assert chain.reliability.value == pytest.approx(0.95 * 0.96)
    assert chain.length == 3
    assert chain.weakest == 0
    assert chain.reliability.runs == 100


def test_every_step_keeps_its_own_wilson_interval():
    chain = cascade([(19, 20), (30, 30)])
    assert [s.value for s in chain.steps] == [0.95, 1.0]
    assert chain.steps[0].interval == proportion_interval(19, 20, method="wilson")


def test_zero_failures_bound_the_chain_by_its_least_tested_step():
    # The likeliest way to hide a chain of reliability r behind zero failures is to put all the
    # unreliability into the step with the fewest runs: r ** min(n) = tail.
    bound = cascade([(20, 20), (50, 50), (200, 200)]).reliability.interval
    assert bound.low == pytest.approx(0.025 ** (1 / 20))
    assert bound.high == 1
    rates = np.linspace(0.5, 1, 60)
    for p, q in product(rates, rates):
        if p * q < bound.low:
            assert p**20 * q**50 < 0.025 + 1e-12


def test_adding_perfect_steps_with_more_runs_does_not_widen_a_chain_of_zero_failures():
    short = cascade([(20, 20)]).reliability.interval
    assert cascade([(20, 20)] + [(40, 40)] * 9).reliability.interval == short


def test_one_step_with_zero_failures_is_clopper_pearson():
    exact = stats.binomtest(30, 30).proportion_ci(0.95, method="exact")
    assert cascade([(30, 30)]).reliability.interval.low == pytest.approx(exact.low, rel=1e-12)


def test_one_step_is_close_to_clopper_pearson():
    exact = stats.binomtest(45, 50).proportion_ci(0.95, method="exact")
    bounds = cascade([(45, 50)]).reliability.interval
    assert bounds.low == pytest.approx(exact.low, abs=0.01)
    assert bounds.high == pytest.approx(exact.high, abs=0.01)


def test_a_step_that_never_passed_bounds_the_chain_from_above():
    bounds = cascade([(0, 10), (30, 30)]).reliability.interval
    assert bounds.low == 0
    assert bounds.high == pytest.approx(1 - 0.025 ** (1 / 10))


@given(st.lists(step, min_size=1, max_size=6), st.randoms())
def test_the_product_lies_in_its_interval_whatever_the_order(steps, random):
    chain = cascade(steps).reliability
    assert 0 <= chain.interval.low <= chain.value <= chain.interval.high <= 1
    shuffled = list(steps)
    random.shuffle(shuffled)
    again = cascade(shuffled).reliability
    assert again.value == pytest.approx(chain.value)
    assert again.interval.low == pytest.approx(chain.interval.low)


@given(st.lists(step, min_size=1, max_size=6), step)
def test_a_further_step_never_makes_a_chain_more_reliable(steps, further):
    assert cascade([*steps, further]).reliability.value <= cascade(steps).reliability.value


@pytest.mark.slow("simulates coverage")
@pytest.mark.parametrize(
    ("rates", "runs"),
    [([0.95] * 5, 20), ([0.98] * 10, 20), ([0.9] * 3, 50), ([0.7] * 4, 10), ([0.999] * 20, 30)],
)
def test_the_interval_of_a_chain_covers(rates, runs):
    rng = np.random.default_rng(8)
    repeats = 500
    passes = rng.binomial(runs, rates, (repeats, len(rates)))
    truth = float(np.prod(rates))
    hits = sum(truth in cascade([(c, runs) for c in row]).reliability.interval for row in passes)
    assert hits / repeats >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / repeats)


def test_containment_is_the_wilson_rate_of_failures_caught():
    rate = containment_rate(9, 1)
    assert rate.value == 0.9
    assert rate.interval == proportion_interval(9, 10, method="wilson")
    assert rate.runs == 10


def test_without_failures_there_is_no_containment_rate():
    assert isinstance(containment_rate(0, 0), Unavailable)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "steps must be at least one pair"),
        ([(3,)], "steps must be at least one pair"),
        ([(3, 2)], "c must not exceed n"),
        ([(0, 0)], "steps must have at least 1 trial each"),
        ([(0.5, 2)], "whole numbers"),
    ],
)
def test_steps_that_are_not_counts_are_refused(steps, message):
    with pytest.raises(ArgumentError, match=message):
        cascade(steps)


def test_negative_counts_of_failures_are_refused():
    with pytest.raises(ArgumentError, match="escaped must be a whole number >= 0"):
        containment_rate(3, -1)
