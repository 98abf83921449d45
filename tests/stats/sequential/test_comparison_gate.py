"""Two systems, or several, run side by side until the answer is known."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from passhat.errors import ArgumentError
from passhat.stats.sequential import BestOf, ComparisonGate


def run_pairs(gate, first, second, rng, most=3000):
    """Pairs of runs with these pass rates of each task, until something is found."""
    state = gate.start()
    while state.finding is None and state.pairs < most:
        task = gate.task(state.pairs)
        passed = rng.random(2) < (first[task], second[task])
        state = gate.observe(state, float(passed[0]) - float(passed[1]))
    return state


def test_the_wealth_of_a_bettor_has_mean_one_under_its_null():
    """Every sequence of four differences of two equal systems on one task."""
    outcomes = {-1.0: 0.25, 0.0: 0.5, 1.0: 0.25}
    gate, total, alone = ComparisonGate(tasks=1, margin=0.2), np.zeros((2, 2)), 0.0
    for ds in product(outcomes, repeat=4):
        chance = np.prod([outcomes[d] for d in ds])
        state = gate.replay(ds)
        total += chance * np.exp(state.up.log)
        alone += chance
    assert alone == pytest.approx(1.0)
    assert total[0] == pytest.approx(np.ones(2))
    assert (total[1] > 1).all()  # a lead of the margin is not there: evidence against it grows


def test_a_large_difference_is_found_sooner_than_a_small_one_and_in_its_direction():
    rng = np.random.default_rng(1)
    high, middle, low = (np.full(20, rate) for rate in (0.9, 0.7, 0.4))
    gate = ComparisonGate(tasks=20, difference=0.1)
    near, far = (run_pairs(gate, high, other, rng) for other in (middle, low))
    assert (near.finding, far.finding) == ("better", "better")
    assert far.pairs < near.pairs
    assert run_pairs(gate, low, high, rng).finding == "worse"


@pytest.mark.slow("simulates an error rate")
def test_equal_systems_are_equivalent_within_the_margin():
    rng = np.random.default_rng(2)
    findings = []
    for seed in range(24):
        rates = rng.random(30)
        gate = ComparisonGate(tasks=30, margin=0.15, seed=seed)
        findings.append(run_pairs(gate, rates, rates, rng).finding)
    # in the first stream luck alone is 2.8 standard errors: a valid test may call it a difference
    assert findings.count("equivalent") >= 22


@pytest.mark.slow("simulates an error rate")
def test_equal_systems_are_called_different_in_at_most_one_of_twenty():
    rng = np.random.default_rng(3)
    wrong = 0
    for seed in range(60):
        rates = rng.beta(2, 1, 20)
        gate = ComparisonGate(tasks=20, seed=seed)
        wrong += run_pairs(gate, rates, rates, rng, most=250).finding is not None
    assert wrong <= 7  # a chance of 5% gives more than that less than 1% of the time


def test_after_a_finding_nothing_changes():
    gate = ComparisonGate(tasks=4, difference=0.2)
    found = gate.replay([1.0] * 60)
    assert gate.observe(found, -1.0) is found


def test_a_difference_of_scores_lies_between_minus_one_and_one():
    gate = ComparisonGate(tasks=2)
    with pytest.raises(ArgumentError, match="difference of two scores"):
        gate.observe(gate.start(), 1.5)


def test_the_best_of_several_is_found_and_the_hopeless_are_dropped_first():
    rng = np.random.default_rng(4)
    gate, rates = BestOf(systems=3, tasks=10, difference=0.1), (0.9, 0.2, 0.75)
    state = gate.start()
    while state.best is None and state.draws < 2000:
        state = gate.observe(state, {j: float(rng.random() < rates[j]) for j in state.left})
    assert state.best == 0
    assert state.dropped[1] < state.draws
    assert state.runs < 3 * state.draws


def test_equal_systems_end_with_one_that_is_no_worse():
    rng = np.random.default_rng(5)
    gate = BestOf(systems=2, tasks=10, difference=0.2)
    state = gate.start()
    while state.best is None and state.draws < 3000:
        state = gate.observe(state, {j: float(rng.random() < 0.8) for j in state.left})
    assert state.best in (0, 1)


def test_every_system_that_is_left_has_a_score():
    gate = BestOf(systems=2, tasks=3)
    with pytest.raises(ArgumentError, match="must hold those of agents"):
        gate.observe(gate.start(), {0: 1.0})


@pytest.mark.slow("simulates an error rate")
def test_a_wrong_call_takes_one_error_of_the_best_with_one_other_whatever_was_dropped_before():
    # Evidence for what is false reaches (systems - 1) / alpha with a chance of alpha / (systems -
    # 1) a pair, so one such error for each of the others is all that may be needed.
    gate = BestOf(systems=3, tasks=5, difference=0.1, alpha=0.05)
    rng, level = np.random.default_rng(8), np.log(2 / 0.05)
    calls = 0
    for _ in range(2_000):
        worth = np.array([0.0, -rng.uniform(0, 0.3), -rng.uniform(0, 0.3)])
        state = gate.start()
        ahead, close = rng.normal(level, 1.0, (2, 3, 3))
        np.fill_diagonal(ahead, 0.0)
        np.fill_diagonal(close, 0.0)
        for j in (1, 2):  # the errors that cannot happen here
            if worth[j] < -gate.difference:
                close[0, j] = min(close[0, j], level - 1e-9)
            else:
                ahead[j, 0] = min(ahead[j, 0], level - 1e-9)
        state = gate._ended(gate._dropped(replace(state, ahead=ahead, close=close)))
        assert 0 not in state.dropped
        if state.best is not None:
            calls += 1
            assert worth[state.best] >= -gate.difference
    assert calls > 200
