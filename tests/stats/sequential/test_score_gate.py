import numpy as np
import pytest

from passhat.errors import ArgumentError
from passhat.stats.sequential import ScoreGate, SuiteGate
from passhat.stats.sequential.draws import drawn_task


def mean_runs(gate_of, scores_of, repetitions=40):
    """Mean runs to a verdict, and the share of PASS."""
    runs, passed = 0, 0
    for seed in range(repetitions):
        gate, rng = gate_of(seed), np.random.default_rng(seed)
        state = gate.start()
        while state.verdict is None:
            state, (ticket,) = gate.next_tasks(state, 1)
            state = gate.observe(state, ticket, scores_of(rng, ticket.task))
        runs += state.runs
        passed += state.verdict == "PASS"
    return runs / repetitions, passed / repetitions


@pytest.mark.slow("simulates whole runs")
def test_steady_scores_settle_sooner_than_passes_and_failures_of_the_same_mean():
    def steady(rng, task):
        return float(np.clip(0.75 + 0.05 * (task - 4.5) / 4.5 + rng.normal(0, 0.05), 0, 1))

    def coins(rng, _):
        return float(rng.random() < 0.75)

    score = {"tasks": 10, "mu0": 0.70, "mu1": 0.75, "max_runs": 5000}
    steady_runs, steady_passed = mean_runs(lambda s: ScoreGate(**score, seed=s), steady, 5)
    coin_runs, _ = mean_runs(lambda s: ScoreGate(**score, seed=s), coins, 5)
    suite_runs, _ = mean_runs(lambda s: SuiteGate(**score, seed=s), steady, 5)
    assert steady_passed == 1
    assert steady_runs < coin_runs / 3
    assert steady_runs < suite_runs / 3


@pytest.mark.slow("simulates an error rate")
@pytest.mark.parametrize(("truth", "wrong_share"), [(-0.2, 1.0), (0.0, 0.0)])
def test_paired_differences_keep_the_errors(truth, wrong_share):
    def difference(rng, task):
        old = 0.6 + 0.03 * (task - 4.5)
        return float((rng.random() < old + truth) - float(rng.random() < old))

    def gate(seed):
        return ScoreGate.no_worse_than(0.2, tasks=10, seed=seed, alpha=0.1, beta=0.1)

    _, passed = mean_runs(gate, difference, 40)
    assert abs(passed - (1 - wrong_share)) <= 0.1 + 3 * (0.1 * 0.9 / 40) ** 0.5


def test_one_threshold_needs_no_indifference_zone():
    def gate(seed):
        return ScoreGate(tasks=5, mu0=0.7, mu1=0.7, seed=seed)

    _, above = mean_runs(gate, lambda rng, _: float(rng.beta(8, 2)), 20)
    _, below = mean_runs(gate, lambda rng, _: float(rng.beta(6, 4)), 20)
    assert above >= 0.85
    assert below <= 0.15


def test_scores_are_read_on_their_own_range():
    gate = ScoreGate(tasks=4, mu0=-0.2, mu1=0.0, low=-1.0, high=1.0)
    unit = ScoreGate(tasks=4, mu0=0.4, mu1=0.5)
    differences = [0.3, -0.4, 0.0, 1.0, -1.0, 0.5]
    state = gate.replay(differences)
    mapped = unit.replay([(d + 1) / 2 for d in differences])
    assert state.log_pass == pytest.approx(mapped.log_pass, abs=1e-12)
    result = gate.result(state)
    assert result.value == pytest.approx(np.mean(differences))
    assert result.value in result.interval


def test_the_fixed_design_it_is_measured_against_knows_the_variance():
    gate, rng = ScoreGate(tasks=1, mu0=0.5, mu1=0.6, max_runs=400), np.random.default_rng(0)
    scores = (0.55 + 0.1 * rng.choice([-1, 1], 300)).tolist()
    result = gate.result(gate.replay(scores))
    assert result.fixed_runs == pytest.approx((1.645 * 2 * 0.1 / 0.1) ** 2, abs=3)
    assert gate.result(gate.start()).fixed_runs is None
    assert ScoreGate(tasks=1, mu0=0.5, mu1=0.5).max_draws == 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mu0": 0.8, "mu1": 0.7}, r"\(mu0, mu1\) must have 0.0 < mu0 <= mu1 < 1.0"),
        ({"mu0": 0.0, "mu1": 0.7}, r"got \(0.0, 0.7\)"),
        ({"mu0": 0.5, "mu1": 0.7, "high": 0.6}, "mu1 < 0.6"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ArgumentError, match=message):
        ScoreGate(tasks=3, **options)


def test_a_score_outside_the_range_is_named():
    gate = ScoreGate.no_worse_than(0.1, tasks=3)
    with pytest.raises(ArgumentError, match=r"x must lie in \[-1.0, 1.0\].*got -1.5"):
        gate.replay([-1.5])
    assert drawn_task(0, 0, 3) in range(3)
