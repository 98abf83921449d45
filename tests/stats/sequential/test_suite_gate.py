import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from passhat.errors import ArgumentError
from passhat.stats.sequential import (
    DrawTicket,
    ScoreGate,
    SuiteGate,
    TaskGate,
    block_outcomes,
    fixed_design,
)
from passhat.stats.sequential.confidence_sequences import projected, tilted
from passhat.stats.sequential.draws import drawn_task

outcome_lists = st.lists(st.sampled_from([0.0, 1.0]), max_size=120)
score_lists = st.lists(st.floats(0, 1), max_size=60)
gate_kinds = st.sampled_from([SuiteGate, ScoreGate])


def open_gate(kind, **options):
    """A gate whose verdict is out of reach, so that any state can be looked at."""
    return kind(
        **{"mu0": 0.7, "mu1": 0.8, "alpha": 1e-300, "beta": 1e-300, **options}, max_runs=9999
    )


def same(one, other):
    """Whether two states are equal to the last bit."""
    arrays = [
        np.array_equal(getattr(getattr(one, part), name), getattr(getattr(other, part), name))
        for part in ("wealth", "seen")
        for name in getattr(one, part).__slots__
    ]
    return all(arrays) and (one.draws, one.runs, one.verdict) == (
        other.draws,
        other.runs,
        other.verdict,
    )


@settings(deadline=None)
@given(
    gate_kinds,
    st.integers(1, 30),
    st.tuples(st.floats(1e-4, 0.9999), st.floats(1e-4, 0.9999)).map(sorted),
    st.one_of(outcome_lists, score_lists),
    st.data(),
)
def test_every_bet_is_fair_or_worse_under_its_hypothesis_in_every_reachable_state(
    kind, tasks, means, outcomes, data
):
    mu0, mu1 = means
    assume(mu1 - mu0 > 1e-4)
    wealth = open_gate(kind, tasks=tasks, mu0=mu0, mu1=mu1).replay(outcomes).wealth
    rates = np.array(data.draw(st.lists(st.floats(0, 1), min_size=tasks, max_size=tasks)))
    for side, null in ((0, mu0), (1, 1 - mu1)):
        at_null = rates * min(1.0, null / max(rates.mean(), 1e-9))
        expected_factor = 1 + wealth.stake[side] * (at_null - wealth.centres[side]).mean()
        assert expected_factor <= 1 + 1e-9
        assert wealth.stake[side] >= 0
        for x in (0.0, 1.0):
            assert (1 + wealth.stake[side] * (x - wealth.centres[side])).min() > 0


@settings(deadline=None)
@given(gate_kinds, st.integers(1, 12), outcome_lists)
def test_turning_scores_round_exchanges_the_two_sides(kind, tasks, outcomes):
    gate = open_gate(kind, tasks=tasks)
    mirror = open_gate(kind, tasks=tasks, mu0=1 - 0.8, mu1=1 - 0.7)
    state = gate.replay(outcomes)
    turned = mirror.replay([1 - x for x in outcomes])
    assert state.log_pass == pytest.approx(turned.log_fail, abs=1e-6)
    assert state.log_fail == pytest.approx(turned.log_pass, abs=1e-6)


@settings(deadline=None)
@given(outcome_lists)
def test_with_one_task_the_suite_gate_is_walds_ratio_test(outcomes):
    state = open_gate(SuiteGate, tasks=1).replay(outcomes)
    task = TaskGate(p0=0.7, p1=0.8, alpha=1e-300, beta=1e-300, max_runs=9999)
    evidence = task.result(task.replay(outcomes))
    assert state.log_pass == pytest.approx(evidence.log_pass, abs=1e-3)
    assert state.log_fail == pytest.approx(evidence.log_fail, abs=1e-3)


@settings(deadline=None)
@given(gate_kinds, outcome_lists, st.randoms(), st.integers(1, 9))
def test_the_state_depends_on_the_results_by_draw_and_not_on_when_they_came(
    kind, outcomes, random, count
):
    gate = open_gate(kind, tasks=7, seed=5)
    state, tickets = gate.start(), []
    while len(tickets) < len(outcomes):
        state, more = gate.next_tasks(state, min(count, len(outcomes) - len(tickets)))
        tickets.extend(more)
    random.shuffle(tickets)
    for ticket in tickets:
        state = gate.observe(state, ticket, outcomes[ticket.index])
    assert same(state, gate.replay(outcomes))


@pytest.mark.parametrize("kind", [SuiteGate, ScoreGate])
def test_an_interrupted_run_resumes_from_stored_trials_to_the_same_state(kind):
    gate, rng = kind(tasks=6, mu0=0.5, mu1=0.7, seed=11), np.random.default_rng(1)

    def result(ticket):
        return float(np.random.default_rng([ticket.task, ticket.repeat]).random() < 0.62)

    state, stored, in_flight = gate.start(), {}, []
    for _ in range(40):
        state, more = gate.next_tasks(state, 5 - len(in_flight))
        in_flight.extend(more)
        done = in_flight.pop(int(rng.integers(len(in_flight))))
        stored[done.index] = result(done)
        state = gate.observe(state, done, result(done))
    resumed = gate.replay(stored)
    assert (resumed.log_pass, resumed.log_fail) == (state.log_pass, state.log_fail)

    def finish(state, waiting):
        while state.verdict is None:
            state, more = gate.next_tasks(state, 3)
            for ticket in (*waiting, *more):
                state = gate.observe(state, ticket, result(ticket))
            waiting = ()
        return state

    uninterrupted, after_resume = finish(state, in_flight), finish(resumed, ())
    assert after_resume.verdict == uninterrupted.verdict
    assert after_resume.log_pass == uninterrupted.log_pass


def test_missing_draws_are_handed_out_again_first_with_their_task_and_repeat():
    gate = SuiteGate(tasks=4, mu0=0.5, mu1=0.7)
    _, tickets = gate.next_tasks(gate.start(), 10)
    holes = {2, 3, 7}
    state = gate.replay({t.index: 1.0 for t in tickets if t.index not in holes})
    assert state.draws.taken == 2
    _, again = gate.next_tasks(state, 4)
    assert again[:3] == tuple(t for t in tickets if t.index in holes)
    assert again[3].index == 10


def test_tickets_count_the_repeats_of_each_task():
    gate = SuiteGate(tasks=3, mu0=0.5, mu1=0.7, seed=9)
    state, tickets = gate.start(), []
    for _ in range(6):
        state, more = gate.next_tasks(state, 5)
        tickets.extend(more)
        state = gate.observe(state, more[0], 1.0)
    for task in range(3):
        repeats = [t.repeat for t in tickets if t.task == task]
        assert repeats == list(range(len(repeats)))


def test_tasks_are_drawn_uniformly_and_alike_on_every_machine():
    drawn = [drawn_task(3, index, 8) for index in range(8000)]
    counts = np.bincount(drawn, minlength=8)
    assert abs(counts - 1000).max() < 4 * (1000 * 7 / 8) ** 0.5
    assert drawn[:12] == [4, 0, 2, 3, 3, 5, 1, 3, 0, 3, 5, 5]


@pytest.mark.slow("simulates an error rate")
@pytest.mark.parametrize("icc", [0.0, 0.7])
def test_the_gate_keeps_its_errors_and_its_interval_and_stops_early(icc):
    rng, repetitions = np.random.default_rng(4), 60
    for mean, wrong in ((0.6, "PASS"), (0.8, "FAIL")):
        errors = missed = runs = 0
        for seed in range(repetitions):
            a = (1 / icc - 1) * mean if icc else None
            p = np.full(10, mean) if a is None else rng.beta(a, a * (1 - mean) / mean, 10)
            p, _ = tilted(np.clip(p, 1e-6, 1 - 1e-6), np.array(mean), np.array(0.0))
            gate = SuiteGate(tasks=10, mu0=0.6, mu1=0.8, seed=seed, alpha=0.1, beta=0.1)
            draws = (drawn_task(seed, index, 10) for index in range(gate.max_draws))
            state = gate.start()
            while state.verdict is None:
                state, (ticket,) = gate.next_tasks(state, 1)
                state = gate.observe(state, ticket, float(rng.random() < p[next(draws)]))
            errors += state.verdict == wrong
            missed += mean not in gate.result(state, confidence=0.9).interval
            runs += state.runs
        assert max(errors, missed) <= repetitions * 0.1 + 3 * (repetitions * 0.1 * 0.9) ** 0.5
        assert runs / repetitions < fixed_design(0.6, 0.8, 0.1, 0.1).runs


@given(
    st.lists(st.floats(0.01, 0.99), min_size=2, max_size=40),
    st.floats(0.1, 0.85),
    st.floats(0.01, 0.1),
)
def test_the_projection_has_the_mean_and_makes_the_bet_a_likelihood_ratio(rates, null, gap):
    rates, _ = tilted(np.array(rates), np.array(null + gap), np.array(0.0))
    stake, centres = projected(rates, np.array(null), np.array(1.0))
    assert centres.mean() == pytest.approx(null, abs=1e-12)
    assert centres * (1 + stake * (1 - centres)) == pytest.approx(rates, abs=1e-4)
    assert (1 - centres) * (1 - stake * centres) == pytest.approx(1 - rates, abs=1e-4)


def test_the_projection_lies_nearest_among_centres_with_its_mean():
    rng = np.random.default_rng(0)
    rates, _ = tilted(rng.beta(0.5, 0.2, 12).clip(0.01, 0.99), np.array(0.8), np.array(0.0))
    _, centres = projected(rates, np.array(0.7), np.array(1.0))

    def divergence(m):
        return (rates * np.log(rates / m) + (1 - rates) * np.log((1 - rates) / (1 - m))).mean()

    for _ in range(200):
        step = rng.normal(size=12) * 1e-3
        nearby = centres + step - step.mean()
        if nearby.min() > 0 and nearby.max() < 1:
            assert divergence(nearby) >= divergence(centres) - 1e-9


@pytest.mark.parametrize("kind", [SuiteGate, ScoreGate])
def test_the_decision_log_recomputes_the_verdict(kind):
    gate, rng = kind(tasks=5, mu0=0.6, mu1=0.8), np.random.default_rng(2)
    outcomes = (rng.random(400) < 0.85).astype(float).tolist()
    state, lines = gate.replay(outcomes), gate.steps(outcomes)
    assert len(lines) == state.draws.taken == state.seen.runs
    assert lines[-1].log_pass == state.log_pass >= lines[-1].pass_boundary
    assert all(line.log_pass < line.pass_boundary for line in lines[:-1])
    assert [line.task for line in lines] == [drawn_task(0, i, 5) for i in range(len(lines))]
    assert len(gate.steps({0: 1.0, 1: 1.0, 5: 0.0})) == 2


def test_the_cap_bounds_the_runs_and_late_results_only_cost():
    gate = SuiteGate(tasks=5, mu0=0.6, mu1=0.8, max_runs=10)
    state, tickets = gate.next_tasks(gate.start(), 50)
    assert len(tickets) == 10
    for ticket in tickets:
        state = gate.observe(state, ticket, ticket.index % 10 < 7)
    assert state.verdict == "UNDECIDED"
    assert gate.next_tasks(state, 5) == (state, ())
    late = gate.observe(state, DrawTicket(10, drawn_task(0, 10, 5), 2), 1.0)
    assert (late.runs, late.verdict, late.log_pass) == (11, "UNDECIDED", state.log_pass)


def test_draws_that_waited_behind_the_one_that_settles_it_change_nothing():
    gate = SuiteGate(tasks=2, mu0=0.5, mu1=0.9)
    state, tickets = gate.next_tasks(gate.start(), 30)
    for ticket in tickets[1:]:
        state = gate.observe(state, ticket, 1.0)
    assert state.draws.taken == 0
    state = gate.observe(state, tickets[0], 1.0)
    assert state.verdict == "PASS"
    assert state.runs == 30
    assert state.seen.runs == gate.replay([1.0] * 30).seen.runs < 30


def test_an_errored_draw_is_never_evidence_for_pass():
    for gate in (SuiteGate(tasks=3, mu0=0.5, mu1=0.7), ScoreGate.no_worse_than(0.1, tasks=3)):
        errored, worst = gate.replay([1, 1, None]), gate.replay([1, 1, getattr(gate, "low", 0)])
        assert errored.log_pass == worst.log_pass < gate.replay([1, 1]).log_pass


def test_the_result_carries_evidence_interval_and_runs_saved():
    gate = SuiteGate(tasks=20, mu0=0.80, mu1=0.85, seed=7)
    result = gate.result(gate.replay([1.0] * 200))
    assert (result.verdict, result.seed, result.fixed_runs) == ("PASS", 7, 624)
    assert result.runs == 200
    assert result.value == 1.0
    assert result.interval.low > 0.8
    empty = gate.result(gate.start())
    assert (empty.verdict, empty.value, empty.interval.width) == (None, None, 1.0)


def test_blocks_cost_up_to_k_runs_each_and_never_pass_the_cap():
    gate = SuiteGate(tasks=5, mu0=0.6, mu1=0.8, k=3, max_runs=100)
    assert gate.max_draws == 33
    assert gate.fixed_runs == 3 * fixed_design(0.6, 0.8).runs
    state, (ticket, *_) = gate.next_tasks(gate.start(), 2)
    assert gate.observe(state, ticket, 0.0, runs=2).runs == 2
    assert gate.replay([0.0, 1.0], runs={0: 2, 1: 3}).runs == 5


@given(st.lists(st.sampled_from([True, False, None]), max_size=40), st.integers(1, 5))
def test_blocks_end_as_soon_as_they_are_known_and_lose_no_run(outcomes, k):
    for metric, all_or_any in (("pass^k", all), ("pass@k", any)):
        results, left = block_outcomes(outcomes, k=k, metric=metric)
        start = 0
        for found in results:
            end = start + 1
            while end - start < k and all_or_any(outcomes[start:end]) is (metric == "pass^k"):
                end += 1
            assert found is all_or_any(bool(x) for x in outcomes[start:end])
            start = end
        assert start + left == len(outcomes)
        assert left < k


@pytest.mark.parametrize("k", [2, 3])
def test_a_block_passes_with_the_chance_of_pass_hat_k(k):
    rng = np.random.default_rng(k)
    blocks, _ = block_outcomes((rng.random(30_000) < 0.7).tolist(), k=k)
    error = (0.7**k * (1 - 0.7**k) / len(blocks)) ** 0.5
    assert abs(np.mean(blocks) - 0.7**k) < 4 * error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mu0": 0.8, "mu1": 0.8}, "mu1 must be above mu0 = 0.8, got 0.8"),
        ({"tasks": 0}, "tasks must be a whole number >= 1, got 0"),
        ({"seed": -1}, "seed must be a whole number >= 0, got -1"),
        ({"k": 3, "max_runs": 2}, "max_runs must be a whole number >= 3, got 2"),
        ({"metric": "pass"}, "metric must be one of 'pass\\^k', 'pass@k', got 'pass'"),
        ({"beta": 0.0}, "beta must lie strictly between 0 and 0.5, got 0.0"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ArgumentError, match=message):
        SuiteGate(**{"tasks": 5, "mu0": 0.6, "mu1": 0.8, **options})


def test_foreign_tickets_and_results_are_named():
    gate = SuiteGate(tasks=50, mu0=0.6, mu1=0.8)
    wrong = DrawTicket(0, (drawn_task(0, 0, 50) + 1) % 50, 0)
    with pytest.raises(ArgumentError, match=r"ticket must be of this gate \(seed 0\)"):
        gate.observe(gate.start(), wrong, 1.0)
    with pytest.raises(ArgumentError, match=r"x must lie in \[0, 1\].*got 1.5"):
        gate.replay([1.5])
