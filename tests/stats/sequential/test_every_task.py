from itertools import product

import numpy as np
import pytest

from passhat.errors import ArgumentError
from passhat.stats.sequential import EveryTaskGate


def test_one_bad_task_passes_with_at_most_alpha_and_good_tasks_fail_with_at_most_beta():
    gate = EveryTaskGate(p0=(0.7,) * 10, p1=(0.9,) * 10, alpha=0.05, beta=0.1)
    one_bad = gate.operating_characteristics([0.7] + [1.0] * 9)
    assert one_bad.pass_probability <= 0.05
    all_good = gate.operating_characteristics([0.9] * 10)
    assert all_good.fail_probability <= 0.1
    assert gate.gates[3].beta == pytest.approx(0.01)


def test_the_joint_verdict_agrees_with_every_pair_of_sequences_enumerated():
    gate = EveryTaskGate(p0=(0.3, 0.4), p1=(0.8, 0.85), alpha=0.2, beta=0.3, max_runs_per_task=5)
    p, chance = (0.6, 0.75), {"PASS": 0.0, "FAIL": 0.0, "UNDECIDED": 0.0}
    for first in product((0, 1), repeat=5):
        for second in product((0, 1), repeat=5):
            weights = [
                rate ** sum(runs) * (1 - rate) ** (5 - sum(runs))
                for rate, runs in zip(p, (first, second), strict=True)
            ]
            chance[gate.replay([first, second]).verdict] += weights[0] * weights[1]
    exact = gate.operating_characteristics(p)
    found = (exact.pass_probability, exact.fail_probability, exact.undecided_probability)
    assert np.ravel(found) == pytest.approx(list(chance.values()), abs=1e-12)


def test_open_tasks_are_asked_in_turn_and_settled_ones_no_more():
    gate = EveryTaskGate(p0=(0.5,) * 3, p1=(0.9,) * 3)
    state, tickets = gate.next_tasks(gate.start(), 7)
    assert [(t.task, t.repeat) for t in tickets] == [
        (0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 2),
    ]  # fmt: skip
    rates, asked = (1.0, 1.0, 1.0), []
    for ticket in tickets:
        state = gate.observe(state, ticket, rates[ticket.task])
    while state.verdict is None:
        state, (ticket,) = gate.next_tasks(state, 1)
        asked.append(state.tasks[ticket.task].verdict)
        state = gate.observe(state, ticket, rates[ticket.task])
    assert state.verdict == "PASS"
    assert set(asked) == {None}
    assert sum(task.verdict is not None for task in state.tasks) == 3
    assert gate.next_tasks(state, 3)[1] == ()


def test_the_first_fail_ends_it_and_the_replay_agrees():
    gate = EveryTaskGate(p0=(0.5, 0.5), p1=(0.9, 0.9))
    state, outcomes = gate.start(), ([], [])
    while state.verdict is None:
        state, tickets = gate.next_tasks(state, 2)
        for ticket in tickets:
            outcomes[ticket.task].append(ticket.task == 0)
            state = gate.observe(state, ticket, ticket.task == 0)
    assert state.verdict == "FAIL"
    replayed = gate.replay(outcomes)
    assert (replayed.verdict, replayed.runs) == (state.verdict, state.runs)


def test_no_more_runs_are_in_flight_than_the_cap_allows():
    gate = EveryTaskGate(p0=(0.5, 0.5), p1=(0.9, 0.9), max_runs_per_task=4)
    _, tickets = gate.next_tasks(gate.start(), 100)
    assert len(tickets) == 8


def test_bars_per_task_are_taken_to_the_kth_root():
    gate = EveryTaskGate.for_pass_hat_k(2, [0.25, 0.49], [0.64, 0.81])
    assert gate.p0 == pytest.approx((0.5, 0.7))
    assert gate.p1 == pytest.approx((0.8, 0.9))


def test_the_result_names_the_weakest_task_and_adds_up_the_runs():
    gate = EveryTaskGate(p0=(0.5, 0.5), p1=(0.9, 0.9))
    state = gate.replay([[1] * 12, [1, 0, 0, 0, 0, 0, 0]])
    result, each = gate.result(state), gate.task_results(state)
    assert (result.verdict, result.runs) == ("FAIL", 19)
    assert result.value == each[1].value < each[0].value
    assert (result.log_pass, result.log_fail) == (each[1].log_pass, each[1].log_fail)
    assert result.fixed_runs == each[0].fixed_runs + each[1].fixed_runs
    one_threshold = EveryTaskGate(p0=(0.5,), p1=(0.5,), design="planned")
    assert one_threshold.result(one_threshold.start()).fixed_runs is None


def test_bad_bars_are_named():
    with pytest.raises(ArgumentError, match=r"\(p0, p1\) must hold a rate per task each"):
        EveryTaskGate(p0=(0.5,), p1=())
    with pytest.raises(ArgumentError, match=r"p1 must be above p0 = 0.9, got 0.8"):
        EveryTaskGate(p0=(0.5, 0.9), p1=(0.7, 0.8))
    gate = EveryTaskGate(p0=(0.5, 0.5), p1=(0.9, 0.9))
    with pytest.raises(ArgumentError, match="outcomes must hold the trials of each of 2"):
        gate.replay([[1]])
    with pytest.raises(ArgumentError, match="p must hold 2 rates"):
        gate.operating_characteristics([0.5])
