"""Equivalence within a margin, one pair of runs at a time."""

from itertools import product

import numpy as np
import pytest

from passhat.errors import ArgumentError
from passhat.stats.sequential import EquivalenceGate
from passhat.stats.sequential.suite_gate import simulated_ends


def differences_at(first, second):
    """Paired differences of passes at these rates, from [-1, 1] mapped to [0, 1]."""

    def results(rng, alive, task):
        one = rng.random(alive.size) < first[task]
        other = rng.random(alive.size) < second[task]
        return (1.0 + one - other) / 2, 1

    return results


def shares(first, second, *, repetitions=200, **terms):
    rng = np.random.default_rng(6)
    gate = EquivalenceGate(tasks=first.size, mu1=0.15, mu0=0.0, **terms)
    ends = simulated_ends(gate, differences_at(first, second), repetitions, rng)
    return ends.share(1), ends.share(0)


@pytest.mark.slow("simulates an error rate")
@pytest.mark.parametrize("sign", [1, -1])
def test_systems_that_differ_by_the_margin_pass_in_at_most_one_of_twenty(sign):
    high, low = np.full(10, 0.75), np.full(10, 0.6)
    passed, failed = shares(high, low) if sign > 0 else shares(low, high)
    assert passed <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert failed > 0.85


def test_equal_systems_fail_in_at_most_one_of_twenty_and_pass_mostly():
    rates = np.linspace(0.3, 0.95, 10)
    passed, failed = shares(rates, rates)
    assert failed <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert passed > 0.85


def test_evidence_for_pass_has_mean_one_or_less_at_either_margin():
    """Every sequence of four differences of a system that is better by just the margin."""
    chances = {-1.0: 0.2, 0.0: 0.4, 1.0: 0.4}
    for sign in (1, -1):
        gate, mean = EquivalenceGate(tasks=1, mu0=0.0, mu1=0.2), 0.0
        for ds in product(chances, repeat=4):
            chance = np.prod([chances[d] for d in ds])
            mean += chance * np.exp(gate.replay([sign * d for d in ds]).log_pass)
        assert mean <= 1.0


def test_the_decision_log_ends_with_the_verdict():
    gate = EquivalenceGate(tasks=3, mu0=0.0, mu1=0.2)
    outcomes = [0.0] * 120
    state, steps = gate.replay(outcomes), gate.steps(outcomes)
    assert state.verdict == "PASS"
    assert steps[-1].log_pass >= steps[-1].pass_boundary
    assert len(steps) == state.draws.taken
    found = gate.result(state)
    assert found.value == pytest.approx(0.0)
    assert found.interval.low < 0 < found.interval.high


def test_the_margin_lies_beyond_what_should_pass():
    with pytest.raises(ArgumentError, match="0 <= mu0 < mu1 < 1"):
        EquivalenceGate(tasks=3, mu0=0.2, mu1=0.1)
