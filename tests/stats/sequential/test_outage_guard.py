"""Failures of an outage are set aside; everything else counts as it would without the guard."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.stats.sequential import SET_ASIDE, Outage, OutageGuard, TaskGate

ONE_TASK = OutageGuard(tasks=1, rate=0.8, least_failure=0.2)


def flags_of(guard, runs):
    """Whether each run counts, of those that are decided."""
    state, flags = guard.start(), []
    for task, passed in runs:
        state, decided = guard.observe(state, task, passed)
        flags += decided
    return state, flags


@given(st.lists(st.booleans(), max_size=200))
def test_runs_are_decided_in_order_and_all_of_them_at_the_end(passes):
    state, flags = flags_of(ONE_TASK, [(0, passed) for passed in passes])
    assert len(flags) + len(state.waiting) == len(passes)
    flags += ONE_TASK.finish(state)[1]
    assert len(flags) == len(passes)
    aside = {run for one in state.outages for run in range(one.first, one.last + 1)}
    assert aside <= {place for place, counts in enumerate(flags) if not counts}


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=80))
def test_a_gate_decides_as_without_the_guard_where_no_stretch_is_long(draws):
    """Stretches of at most three failures, each ended by a pass, with a pass at the end."""
    outcomes = [x for failures, again in draws for x in [False] * failures + [True] * (1 + again)]
    shown = ONE_TASK.set_aside(outcomes)
    assert shown == outcomes
    gate = TaskGate(p0=0.8, p1=0.9)
    assert gate.replay(shown) == gate.replay(outcomes)


def test_an_outage_is_set_aside_with_the_pass_that_ends_it():
    runs = [True] * 12 + [False] * 8 + [True] * 3
    state, flags = flags_of(ONE_TASK, [(0, passed) for passed in runs])
    assert flags == [True] * 12 + [False] * 9 + [True] * 2
    assert state.outages == (Outage(first=12, last=20),)
    assert state.outages[0].runs == 9


def test_what_is_set_aside_moves_no_evidence_and_is_spent():
    gate = TaskGate(p0=0.8, p1=0.9, max_runs=30)
    plain = gate.replay([True] * 12)
    after = gate.replay([True] * 12 + [SET_ASIDE] * 9)
    assert (after.runs, after.passes, after.verdict) == (plain.runs, plain.passes, None)
    assert gate.replay([True] * 12 + [SET_ASIDE] * 18).verdict == "UNDECIDED"
    assert gate.steps([True, SET_ASIDE])[1].log_pass == gate.steps([True])[0].log_pass


def test_two_stretches_count_as_failures_where_nothing_ever_passed():
    state, flags = flags_of(ONE_TASK, [(0, False)] * 40)
    assert flags == [True] * 40
    assert not state.outages
    first = next(n for n in range(1, 40) if flags_of(ONE_TASK, [(0, False)] * n)[1])
    assert first == 4 + 10


def test_three_stretches_count_as_failures_after_a_pass():
    runs = [(0, True), *[(0, False)] * 40]
    state, flags = flags_of(ONE_TASK, runs)
    assert flags == [True] * 41
    assert not state.outages
    first = next(n for n in range(2, 41) if len(flags_of(ONE_TASK, runs[:n])[1]) > 1)
    assert first == 1 + 6 + 10 + 10  # 0.2^6 is below 0.01 / 100; further stretches take ten


def test_runs_under_way_when_a_stretch_is_recognised_belong_to_it():
    state, flags = ONE_TASK.start(), []
    for second in range(5):
        state, decided = ONE_TASK.observe(state, 0, True, began=second, ended=second + 1.0)
        flags += decided
    for _ in range(64):  # all started at once, while the provider was down
        state, decided = ONE_TASK.observe(state, 0, False, began=10.0, ended=11.0)
        flags += decided
    assert state.stretches == 1
    state, decided = ONE_TASK.observe(state, 0, True, began=60.0, ended=61.0)
    assert decided == (False,) * 65


def test_at_the_end_a_long_stretch_is_set_aside_only_where_something_passed_before():
    state, _ = flags_of(ONE_TASK, [(0, True)] * 10 + [(0, False)] * 9)
    assert ONE_TASK.finish(state)[1] == (False,) * 9
    never, _ = flags_of(ONE_TASK, [(0, False)] * 9)
    assert ONE_TASK.finish(never)[1] == (True,) * 9


def test_a_task_that_always_fails_is_no_outage():
    guard = OutageGuard(tasks=4, rate=0.8)
    turns = [(task, task != 0) for _ in range(15) for task in range(4)]
    _, flags = flags_of(guard, [*turns, *[(0, False)] * 6, (1, True)])
    assert all(flags)


def test_the_same_stretch_on_tasks_that_always_pass_is_one():
    guard = OutageGuard(tasks=4, rate=0.8)
    turns = [(task, task != 0) for _ in range(15) for task in range(4)]
    state, _ = flags_of(guard, [*turns, *[(1 + i % 3, False) for i in range(6)], (1, True)])
    assert [one.runs for one in state.outages] == [7]


@given(st.lists(st.integers(0, 30), min_size=2, max_size=20))
def test_an_agent_that_fails_between_its_passes_has_one_outage(failures):
    """Rows of failures with one pass after each: only what is set aside first says so."""
    outcomes = [x for row in failures for x in [False] * row + [True]]
    state, flags = flags_of(ONE_TASK, [(0, passed) for passed in outcomes])
    for outage in state.outages[1:]:
        earlier = [x for x, counts in zip(outcomes[: outage.first], flags, strict=False) if counts]
        aside = outage.first - len(earlier)
        assert sum(earlier) >= ONE_TASK.rate * (aside - 4) / 2


def test_failures_count_again_where_one_pass_alone_ended_an_outage():
    _, flags = flags_of(ONE_TASK, [(0, False)] * 12 + [(0, True)] + [(0, False)] * 12)
    assert flags == [False] * 13 + [True] * 12


def test_a_second_outage_is_set_aside_after_passes():
    outage = [(0, False)] * 8 + [(0, True)]
    _, flags = flags_of(ONE_TASK, [*outage, *[(0, True)] * 3, *outage])
    assert flags == [False] * 9 + [True] * 3 + [False] * 9


def with_outages(rng, rate, share, runs=540):
    """Outcomes of one run after another; minutes of eight runs fail together."""
    down = np.repeat(rng.random(runs // 8 + 1) < share, 8)[:runs]
    return list((rng.random(runs) < rate) & ~down)


@pytest.mark.slow("simulates an error rate")
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_a_good_agent_is_not_failed_for_outages(share):
    """Without the guard a gate at 0.8 against 0.9 fails it in 38% of runs at a share of 5%."""
    rng, gate = np.random.default_rng(7), TaskGate(p0=0.8, p1=0.9)
    words = [
        gate.replay(ONE_TASK.set_aside(with_outages(rng, 0.9, share))).verdict for _ in range(150)
    ]
    assert words.count("FAIL") <= 17  # 5% and more than three standard errors


@pytest.mark.slow("simulates an error rate")
def test_a_bad_agent_is_not_passed_for_outages():
    rng, gate = np.random.default_rng(8), TaskGate(p0=0.8, p1=0.9)
    words = [
        gate.replay(ONE_TASK.set_aside(with_outages(rng, 0.8, 0.1))).verdict for _ in range(150)
    ]
    assert words.count("PASS") <= 17


def test_a_task_must_be_one_of_the_guard():
    with pytest.raises(ArgumentError, match="one of 2, counted from 0"):
        OutageGuard(tasks=2).observe(OutageGuard(tasks=2).start(), 2, True)
