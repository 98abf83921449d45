import numpy as np
import pytest

from passhat.errors import ArgumentError
from passhat.stats.sequential import (
    ScoreGate,
    SuiteGate,
    TaskGate,
    block_outcomes,
    simulated_characteristics,
)
from passhat.stats.sequential.draws import drawn_task
from passhat.stats.sequential.suite_gate import blocks_at, suite_rates


@pytest.mark.parametrize("kind", [SuiteGate, ScoreGate])
def test_repetitions_side_by_side_make_the_bets_of_the_gate_itself(kind):
    gates = [
        kind(tasks=9, mu0=0.6, mu1=0.7, alpha=1e-9, beta=1e-9, seed=seed, max_runs=200)
        for seed in range(4)
    ]
    outcomes = np.random.default_rng(0).random((4, 100)) < 0.65
    wealth = gates[0].first_wealth((4, gates[0].tasks))
    for draw in range(100):
        tasks = np.array([drawn_task(gate.seed, draw, 9) for gate in gates])
        wealth = wealth.after((np.arange(4), tasks), outcomes[:, draw].astype(float))
        if (draw + 1) % gates[0].draws_per_bet == 0:
            wealth = wealth.with_new_bets()
    for i, gate in enumerate(gates):
        state = gate.replay(outcomes[i].astype(float))
        # rows stop their searches together, so they agree to its tolerance, not to the bit
        assert wealth.log[:, i] == pytest.approx([state.log_pass, state.log_fail], abs=1e-3)


def test_with_equal_tasks_the_simulation_agrees_with_walds_ratio_test_exactly_solved():
    gate = SuiteGate(tasks=1, mu0=0.5, mu1=0.7, max_runs=150)
    found = simulated_characteristics(gate, [0.5, 0.7], icc=0.0, repetitions=2000, rng=1)
    exact = TaskGate(p0=0.5, p1=0.7, max_runs=150).operating_characteristics([0.5, 0.7])
    error = np.sqrt(0.05 * 0.95 / 2000)
    assert found.pass_probability == pytest.approx(exact.pass_probability, abs=4 * error)
    assert found.expected_runs == pytest.approx(exact.expected_runs, rel=0.08)
    assert (found.repetitions, found.seed) == (2000, 1)


def test_the_same_seed_gives_the_same_characteristics():
    gate = SuiteGate(tasks=5, mu0=0.6, mu1=0.8)
    one, other = (
        simulated_characteristics(gate, [0.7], icc=0.4, repetitions=30, rng=3) for _ in range(2)
    )
    assert np.array_equal(one.expected_runs, other.expected_runs)


@pytest.mark.parametrize("metric", ["pass^k", "pass@k"])
def test_simulated_blocks_pass_and_cost_as_blocks_of_runs_do(metric):
    gate = SuiteGate(tasks=1, mu0=0.5, mu1=0.7, k=3, metric=metric)
    rng, p, size = np.random.default_rng(4), 0.8, 20_000
    rate = p**3 if metric == "pass^k" else 1 - (1 - p) ** 3
    rows, zeros = np.arange(size), np.zeros(size, int)
    results, cost = blocks_at(np.full((size, 1), rate), gate.k, gate.metric)(rng, rows, zeros)
    blocks, _ = block_outcomes((rng.random(3 * size) < p).tolist(), k=3, metric=metric)
    assert results.mean() == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / size))
    assert np.mean(cost) == pytest.approx(3 * size / len(blocks), rel=0.03)


def test_simulated_suites_have_the_mean_and_the_spread_asked_for():
    rates = suite_rates(0.8, 0.5, (400, 50), np.random.default_rng(0))
    assert rates.mean(axis=1) == pytest.approx(np.full(400, 0.8), abs=1e-4)
    assert rates.var(axis=1).mean() / (0.8 * 0.2) == pytest.approx(0.5, abs=0.05)


def test_an_impossible_icc_is_named():
    gate = SuiteGate(tasks=5, mu0=0.6, mu1=0.8)
    with pytest.raises(ArgumentError, match=r"icc must lie in \[0, 1\), got 1.0"):
        simulated_characteristics(gate, [0.7], icc=1.0)
