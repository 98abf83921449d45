from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.stats.sequential import TaskGate, TaskState, fixed_design, wald_lower_bounds
from passhat.stats.sequential.designs import (
    Boundaries,
    operating_characteristics,
    ratio_boundaries,
)

SMALL_GATES = [
    TaskGate(p0=0.3, p1=0.8, alpha=0.1, beta=0.15, max_runs=9),
    TaskGate(p0=0.3, p1=0.8, alpha=0.1, beta=0.15, design="truncated"),
    TaskGate(p0=0.3, p1=0.8, alpha=0.1, beta=0.15, design="fixed"),
    TaskGate.at_threshold(0.6, alpha=0.2, beta=0.2, max_runs=9),
]


def by_enumeration(gate, p):
    """Chances of each verdict and expected runs, over every sequence of the longest length."""
    cap = gate.boundaries.max_runs
    chance = {"PASS": 0.0, "FAIL": 0.0, "UNDECIDED": 0.0}
    expected = 0.0
    for outcomes in product((0, 1), repeat=cap):
        state = gate.replay(outcomes)
        weight = p ** sum(outcomes) * (1 - p) ** (cap - sum(outcomes))
        chance[state.verdict] += weight
        expected += weight * state.runs
    return [*chance.values(), expected]


@pytest.mark.parametrize("gate", SMALL_GATES, ids=lambda gate: gate.design)
def test_dynamic_programming_agrees_with_every_sequence_enumerated(gate):
    assert gate.boundaries.max_runs <= 12
    for p in (0.0, 0.2, 0.55, 0.9, 1.0):
        exact = gate.operating_characteristics(p)
        found = [
            exact.pass_probability[0],
            exact.fail_probability[0],
            exact.undecided_probability[0],
            exact.expected_runs[0],
        ]
        assert found == pytest.approx(by_enumeration(gate, p), abs=1e-12)


def test_the_published_table_comes_out():
    rates = [0.5, 0.8, 0.85, 0.9, 0.95]
    fixed = fixed_design(0.8, 0.9)
    assert (fixed.runs, fixed.passes_needed) == (135, 116)
    assert (fixed.wrong_pass, fixed.wrong_fail) == pytest.approx((0.049, 0.048), abs=5e-4)
    assert wald_lower_bounds(0.8, 0.9) == pytest.approx((59.7, 72.2), abs=0.05)

    sprt = TaskGate(p0=0.8, p1=0.9).operating_characteristics(rates)
    assert sprt.expected_runs.round().tolist() == [12, 67, 120, 77, 40]
    assert sprt.pass_probability[1] == pytest.approx(0.045, abs=5e-4)
    assert sprt.fail_probability[3] == pytest.approx(0.037, abs=5e-4)
    assert sprt.expected_runs[1] <= 70
    assert sprt.expected_runs[3] <= 80

    truncated = TaskGate(p0=0.8, p1=0.9, design="truncated").operating_characteristics(rates)
    assert truncated.max_runs == 148
    assert truncated.expected_runs == pytest.approx([12, 68, 103, 85, 46], abs=1.5)
    assert truncated.undecided_probability.max() == 0


def test_peeking_at_an_interval_breaks_both_error_rates():
    z, runs = 1.959963984540054, range(1, 136)

    def wilson(c, n):
        centre = (c + z * z / 2) / (n + z * z)
        half = z / (n + z * z) * np.sqrt(c * (n - c) / n + z * z / 4)
        return centre - half, centre + half

    fail_at, pass_at = [], []
    for n in runs:
        low, high = wilson(np.arange(n + 1), n)
        looked = n >= 5
        pass_at.append(int(np.argmax(low > 0.8)) if looked and (low > 0.8).any() else n + 1)
        fail_at.append(int((high < 0.9).sum()) - 1 if looked else -1)
    peeking = Boundaries(fail_at=tuple(fail_at), pass_at=tuple(pass_at))
    exact = operating_characteristics(peeking, [0.8, 0.9])
    assert exact.pass_probability[0] == pytest.approx(0.094, abs=5e-4)
    assert exact.fail_probability[1] == pytest.approx(0.212, abs=5e-4)


@pytest.mark.parametrize("design", ["sprt", "truncated", "fixed"])
@pytest.mark.parametrize(
    ("p0", "p1", "alpha", "beta"),
    [(0.5, 0.7, 0.05, 0.05), (0.8, 0.95, 0.01, 0.1), (0.1, 0.3, 0.1, 0.02), (0.9, 0.99, 0.05, 0.2)],
)
def test_errors_never_exceed_what_was_promised(design, p0, p1, alpha, beta):
    gate = TaskGate(p0=p0, p1=p1, alpha=alpha, beta=beta, design=design)
    exact = gate.operating_characteristics([p0 / 2, p0, p1, (1 + p1) / 2])
    assert exact.pass_probability[:2].max() <= alpha + 1e-12
    assert exact.fail_probability[2:].max() <= beta + 1e-12
    if design == "truncated":
        assert gate.boundaries.max_runs <= 1.1 * fixed_design(p0, p1, alpha, beta).runs + 10
        assert exact.undecided_probability.max() == 0


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9, 0.99])
def test_a_single_threshold_gate_keeps_its_errors_at_the_threshold(threshold):
    gate = TaskGate.at_threshold(threshold, alpha=0.05, beta=0.1, max_runs=600)
    exact = gate.operating_characteristics(threshold)
    assert exact.pass_probability[0] <= 0.05
    assert exact.fail_probability[0] <= 0.1


def test_the_fixed_design_is_the_smallest_that_keeps_both_errors():
    from scipy.stats import binom

    for p0, p1, alpha, beta in [
        (0.5, 0.8, 0.05, 0.05),
        (0.2, 0.5, 0.1, 0.2),
        (0.9, 0.99, 0.05, 0.1),
    ]:
        found = fixed_design(p0, p1, alpha, beta)
        valid = [
            n
            for n in range(1, found.runs + 1)
            if any(
                binom.sf(c - 1, n, p0) <= alpha and binom.cdf(c - 1, n, p1) <= beta
                for c in range(1, n + 1)
            )
        ]
        assert valid == [found.runs]
    assert fixed_design(0.80, 0.85).runs == 624


@given(st.lists(st.booleans(), min_size=135, max_size=135))
def test_a_curtailed_gate_gives_the_verdict_of_the_whole_sample(outcomes):
    state = TaskGate(p0=0.8, p1=0.9, design="fixed").replay(outcomes)
    assert state.verdict == ("PASS" if sum(outcomes) >= 116 else "FAIL")
    assert state.runs <= 135


@given(st.lists(st.sampled_from([True, False, None]), max_size=60), st.randoms())
def test_results_in_any_order_give_the_state_of_the_order_they_were_started(outcomes, random):
    gate = TaskGate(p0=0.6, p1=0.9)
    state, order = TaskState(), list(range(len(outcomes)))
    random.shuffle(order)
    for index in order:
        state = gate.observe(state, outcomes[index], index=index)
    replayed = gate.replay(outcomes)
    assert (state.runs, state.passes, state.verdict) == (
        replayed.runs,
        replayed.passes,
        replayed.verdict,
    )


def test_completion_order_would_let_fast_passes_carry_a_wrong_verdict():
    # Failures take longer than passes: 20 runs in flight at a rate of p0, the passes come first.
    gate, rng = TaskGate(p0=0.6, p1=0.9), np.random.default_rng(0)
    wrong_in_order = wrong_as_finished = 0
    for _ in range(200):
        outcomes = (rng.random(60) < 0.6).tolist()
        as_finished = [x for i in range(0, 60, 20) for x in sorted(outcomes[i : i + 20])[::-1]]
        wrong_in_order += gate.replay(outcomes).verdict == "PASS"
        wrong_as_finished += gate.replay(as_finished).verdict == "PASS"
    assert wrong_in_order <= 200 * 0.05 + 3 * (200 * 0.05 * 0.95) ** 0.5
    assert wrong_as_finished > 100


def test_a_settled_verdict_stays_and_an_open_one_ends_undecided_once_none_can_come():
    gate = TaskGate(p0=0.8, p1=0.9, max_runs=30)
    passed = gate.replay([1] * 26)
    assert gate.observe(passed, 0) is passed
    nearly = [1] * 8 + [0] * 3 + [1] * 8 + [0] * 2 + [1] * 6
    assert gate.replay(nearly[:-1]).verdict is None
    # 22 passes: FAIL would be at most 21 of 30, and PASS has no failure. Neither can come.
    assert gate.replay(nearly).verdict == "UNDECIDED"


def test_an_errored_run_is_never_evidence_for_pass():
    gate = TaskGate(p0=0.8, p1=0.9)
    before = gate.result(gate.replay([1] * 5)).log_pass
    assert gate.result(gate.replay([1] * 5 + [None])).log_pass < before
    assert gate.replay([None] * 30).verdict == "FAIL"


@given(st.floats(0.3, 0.95), st.integers(5, 80), st.lists(st.booleans(), min_size=80, max_size=80))
def test_the_interval_of_a_planned_gate_clears_the_threshold_just_where_it_decides(
    threshold, runs, outcomes
):
    gate = TaskGate.at_threshold(threshold, max_runs=runs)
    state = gate.replay(outcomes[:runs])
    low, high = gate.result(state).interval.low, gate.result(state).interval.high
    assert (low >= threshold - 1e-9) == (state.verdict == "PASS")
    assert (high <= threshold + 1e-9) == (state.verdict == "FAIL")


@pytest.mark.parametrize(("threshold", "runs"), [(0.8, 50), (0.9283, 99), (0.5, 60)])
def test_the_lower_end_of_a_planned_gate_is_too_high_at_most_as_often_as_a_wrong_pass(
    threshold, runs
):
    """At every rate, not only at the threshold, whatever look ends the run: exact."""
    gate = TaskGate.at_threshold(threshold, max_runs=runs)
    for rate in np.linspace(0.05, 0.99, 25):
        too_high, mass = 0.0, {0: 1.0}
        for n in range(1, runs + 1):
            grown = {}
            for passes, chance in mass.items():
                grown[passes] = grown.get(passes, 0) + chance * (1 - rate)
                grown[passes + 1] = grown.get(passes + 1, 0) + chance * rate
            mass = grown
            for passes in list(mass):
                if (verdict := gate.boundaries.verdict(n, passes)) is not None:
                    state = TaskState(runs=n, passes=passes, verdict=verdict)
                    if gate.result(state).interval.low > rate:
                        too_high += mass[passes]
                    del mass[passes]
        assert too_high <= 0.05


def test_a_planned_gate_ends_when_no_verdict_can_be_reached_any_more():
    gate = TaskGate.at_threshold(0.8, max_runs=20)
    # One failure rules out PASS, and so many passes rule out FAIL.
    outcomes = [True] * 13 + [False] + [True] * 6
    state = gate.replay(outcomes)
    assert (state.verdict, state.runs) == ("UNDECIDED", 14)


@given(st.floats(0.1, 0.6), st.floats(0.05, 0.3), st.lists(st.booleans(), max_size=80))
def test_turning_passes_into_failures_turns_the_verdict(p0, gap, outcomes):
    p1 = p0 + gap
    gate = TaskGate(p0=p0, p1=p1, alpha=0.05, beta=0.1, max_runs=60)
    mirror = TaskGate(p0=1 - p1, p1=1 - p0, alpha=0.1, beta=0.05, max_runs=60)
    turned = {"PASS": "FAIL", "FAIL": "PASS", "UNDECIDED": "UNDECIDED", None: None}
    assert mirror.replay([not x for x in outcomes]).verdict == turned[gate.replay(outcomes).verdict]


def test_a_pass_hat_k_gate_tests_the_kth_root():
    gate = TaskGate.for_pass_hat_k(3, 0.8**3, 0.9**3)
    assert (gate.p0, gate.p1) == pytest.approx((0.8, 0.9))


def test_a_pass_at_k_gate_tests_the_kth_root_of_failing():
    gate = TaskGate.for_pass_at_k(2, 1 - 0.4**2, 1 - 0.2**2)
    assert (gate.p0, gate.p1) == pytest.approx((0.6, 0.8))


@pytest.mark.parametrize("design", ["sprt", "truncated", "fixed", "planned"])
def test_the_decision_log_crosses_its_boundary_exactly_at_the_verdict(design):
    p1 = 0.8 if design == "planned" else 0.9
    gate, rng = TaskGate(p0=0.8, p1=p1, design=design), np.random.default_rng(3)
    for rate in (0.6, 0.99):
        outcomes = rng.random(200) < rate
        log_lines, state = gate.steps(outcomes), gate.replay(outcomes)
        assert len(log_lines) == state.runs
        for line in log_lines[:-1]:
            assert line.log_pass < line.pass_boundary
            assert line.log_fail < line.fail_boundary
        last = log_lines[-1]
        if state.verdict == "PASS":
            assert last.log_pass >= last.pass_boundary - 1e-9
        else:
            assert last.log_fail >= last.fail_boundary - 1e-9


def test_the_result_carries_what_is_needed_to_judge_it():
    gate = TaskGate(p0=0.8, p1=0.9)
    result = gate.result(gate.replay([True] * 40))
    assert (result.verdict, result.runs, result.value) == ("PASS", 26, 1.0)
    assert result.runs_saved == 135 - 26
    assert result.log_pass >= log(20)
    assert result.interval.high == 1.0
    assert gate.result(TaskState()).value is None


def test_the_ratio_test_has_walds_boundaries():
    found = ratio_boundaries(0.8, 0.9, log(20), log(20), 100)
    for n in (30, 60, 100):
        ratios = [c * log(0.9 / 0.8) + (n - c) * log(0.1 / 0.2) for c in range(n + 1)]
        assert found.pass_at[n - 1] == next(c for c in range(n + 1) if ratios[c] >= log(20))
        assert found.fail_at[n - 1] == sum(r <= -log(20) for r in ratios) - 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"p0": 0.9, "p1": 0.8}, "p1 must be above p0 = 0.9, got 0.8"),
        ({"p0": 0.0, "p1": 0.8}, "p0 must lie strictly between 0 and 1, got 0.0"),
        (
            {"p0": 0.5, "p1": 0.8, "alpha": 0.5},
            "alpha must lie strictly between 0 and 0.5, got 0.5",
        ),
        ({"p0": 0.5, "p1": 0.8, "design": "guess"}, "design must be one of 'planned'.*got 'guess'"),
        ({"p0": 0.5, "p1": 0.8, "max_runs": 0}, "max_runs must be a whole number >= 1, got 0"),
        ({"p0": 0.5, "p1": 0.8, "design": "fixed", "max_runs": 9}, "max_runs cannot be set.*got 9"),
        ({"p0": 0.5, "p1": 0.8, "planned_runs": 9}, "planned_runs must be at most max_runs, of a"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ArgumentError, match=message):
        TaskGate(**options)


def test_a_result_that_is_no_pass_or_failure_or_comes_twice_is_named():
    gate = TaskGate(p0=0.5, p1=0.8)
    with pytest.raises(ArgumentError, match=r"x must be a pass or a failure .* got 0.5"):
        gate.replay([0.5])
    with pytest.raises(ArgumentError, match=r"x must lie in \[0, 1\]"):
        gate.replay([2])
    with pytest.raises(ArgumentError, match="index must be a draw not yet observed, got 0"):
        gate.observe(gate.replay([1]), 1, index=0)
