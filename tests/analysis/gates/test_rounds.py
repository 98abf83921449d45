"""Suites and pairs in rounds, many at once."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from passhat.analysis.gates.gate import parse_gate
from passhat.analysis.gates.gate_plan import plan_gate
from passhat.analysis.gates.judge import judge
from passhat.analysis.gates.rounds import RoundGate, Rounds, simulated_rounds
from passhat.analysis.gates.run_answer import lift_of
from passhat.records import Outcome, Trial, Trials


@pytest.mark.parametrize("demand", ["pass^1 >= 0.8", "pass^3 >= 0.8", "pass@3 >= 0.8"])
@pytest.mark.parametrize(
    ("tasks", "rounds"),
    [
        (2, 10),
        (20, 5),
        *(
            pytest.param(*one, marks=pytest.mark.slow("larger suites"))
            for one in [(4, 20), (60, 10)]
        ),
    ],
)
def test_what_a_look_is_not_computed_for_lies_within_its_bounds(demand, tasks, rounds):
    watch = RoundGate(parse_gate(demand), (rounds,) * tasks, rounds)
    rng = np.random.default_rng(tasks + rounds)
    for look in (watch.looks[0], watch.looks[-1]):
        for spread in (0.3, 2.0, 24.0):
            mean = rng.random((30, 1))
            rates = rng.beta(spread * mean + 0.01, spread * (1 - mean) + 0.01, (30, tasks))
            passes = rng.binomial(look, rates)
            level = watch.level(look)[0]
            low, high = watch.bounds(passes, look, level)
            near_low, near_high = watch.narrow_bounds(passes, look, level)
            assert (low <= near_low + 1e-9).all()
            assert (near_high <= high + 1e-9).all()


@pytest.mark.slow("simulates an error rate")
def test_a_planned_difference_is_the_true_one_on_either_side():
    plan = plan_gate("equivalent_to main by 0.1", tasks=10, icc=0.5, repetitions=60)
    at = {row.truth: row for row in plan.rows}
    # 4 standard errors of 60 repetitions above 5 %
    assert at[0.1].passes <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 60)
    assert at[0.15].passes <= at[0.1].passes
    assert at[0.15].fails >= 0.2


@pytest.mark.parametrize(("tasks", "runs"), [(3, 10), (10, 10), (20, 5)])
def test_a_skill_that_changes_nothing_helps_no_oftener_than_is_stated(tasks, runs):
    """Two arms alike, as `--until-decided --require 'better_than without'` judges them."""
    rng = np.random.default_rng(tasks)
    rates = rng.beta(1.5, 1.0, (200, tasks))
    watch = RoundGate(parse_gate("better_than without"), (runs,) * tasks, runs)
    words, _ = simulated_rounds(watch, [rates, rates], rng)
    # 3 standard errors of 200 suites above the 5% that are promised on either side
    most = 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)
    assert np.mean(words == 1) <= most
    assert np.mean(words == 0) <= most


def test_a_plan_holds_no_difference_that_cannot_be():
    plan = plan_gate("no_worse_than main by 0.5", tasks=3, repetitions=5)
    assert all(-1 < row.truth < 1 for row in plan.rows)


def test_a_plan_lists_after_how_many_runs_a_pass_may_have_which_failures():
    assert plan_gate("pass^3 >= 0.8").pass_steps == ((0, 51), (1, 78), (2, 94))
    suite = plan_gate("pass^3 >= 0.8", tasks=4, repetitions=5)
    watch = RoundGate(suite.gate, (25,) * 4, 25)
    assert suite.pass_steps == watch.pass_steps
    assert suite.pass_steps[0] == (0, watch.soonest[0])
    assert plan_gate("no_worse_than main by 0.2", tasks=3, repetitions=5).pass_steps == ()


def verdict_on(passes, *, demand="pass^1 >= 0.8", tasks=20, rounds=10, seed=0):
    """What rounds say where the trials pass in this order."""
    names = [f"task {i:02}" for i in range(tasks)]
    gates = [parse_gate(demand)]
    stream = Rounds(("agent",), names, gates, stated=dict.fromkeys(names, rounds), seed=seed)
    for passed in passes:
        draw = stream.next_run()
        if draw is None:
            break
        outcome = Outcome.PASSED if passed else Outcome.FAILED
        stream.observe(
            draw.index, Trial(system="agent", task=draw.task, trial=draw.index, outcome=outcome)
        )
    return stream.verdict(stream.watches[0]), stream


@pytest.mark.parametrize(("tasks", "rounds"), [(4, 25), (7, 15), (2, 50)])
def test_rounds_pass_after_the_trials_that_their_list_names(tasks, rounds):
    demand = "pass^3 >= 0.8"
    (watch,) = verdict_on([], demand=demand, tasks=tasks, rounds=rounds)[1].watches
    for failures, listed in watch.pass_steps:
        passes = [run not in (10, 30)[:failures] for run in range(1, tasks * rounds + 1)]
        verdict, _ = verdict_on(passes, demand=demand, tasks=tasks, rounds=rounds)
        assert (verdict.status, verdict.runs) == ("PASS", listed)
        assert (listed % tasks == 0) == (failures > 0)
    assert f"no failure after {watch.soonest[0]} trials, or at the end" in verdict.boundaries[0]


@pytest.mark.parametrize("tasks", [4, 7])
def test_rounds_fail_by_the_trials_that_their_list_names(tasks):
    demand, rounds = "pass^1 >= 0.8", 10
    watch = RoundGate(parse_gate(demand), (rounds,) * tasks, rounds)
    (none, first), *later = watch.fail_steps
    assert none == first
    assert watch.pooled_status(first, 0, first) == "FAIL"
    assert watch.pooled_status(first - 1, 0, first - 1) is None
    for failures, run in later:
        assert run % tasks == 0
        assert watch.pooled_status(run, run - failures, failures) == "FAIL"
        assert watch.pooled_status(run, run - failures + 1, failures - 1) is None


def test_a_plan_spends_the_trials_that_a_suite_without_a_failure_or_a_pass_takes():
    watch = RoundGate(parse_gate("pass^1 >= 0.8"), (25,) * 4, 25)
    rng = np.random.default_rng(3)
    for rate, word, soonest in zip((1.0, 0.0), (1, 0), watch.soonest, strict=True):
        words, spent = simulated_rounds(watch, [np.full((5, 4), rate)], rng)
        assert set(words) == {word}
        assert set(spent) == {soonest}
        assert soonest % 4
        passes = [rate == 1.0] * 100
        assert verdict_on(passes, tasks=4, rounds=25)[0].runs >= soonest


@pytest.mark.parametrize("lasted", [10, 12, 14])
@pytest.mark.parametrize("seed", range(3))
def test_outages_fail_no_suite_that_passes_outside_them(lasted, seed):
    passes = np.arange(200) % 10 != 7  # 90 %, and 80 % are demanded
    for began in (12, 32, 52, 72, 92):
        passes[began : began + lasted] = False
    verdict, stream = verdict_on(passes, seed=seed)
    assert stream.outages.outages
    assert not stream.outages.is_hopeless
    assert verdict.status != "FAIL"


def test_trials_set_aside_speak_for_neither_verdict():
    watch = RoundGate(parse_gate("pass^1 >= 0.8"), (10,) * 20, 10)
    for runs in range(1, 201):
        for aside in range(0, runs, 7):
            for passes in range(0, runs - aside + 1, 3):
                failures = runs - aside - passes
                word = watch.pooled_status(runs, passes, failures)
                if word is not None:
                    assert word == watch.pooled_status(runs, passes + aside, failures)
                    assert word == watch.pooled_status(runs, passes, failures + aside)


@pytest.mark.parametrize(
    "demand",
    [
        "pass^3 >= 0.8",
        pytest.param("pass^1 >= 0.8", marks=pytest.mark.slow("the same law at another k")),
        pytest.param("pass@2 >= 0.9", marks=pytest.mark.slow("the same law of another number")),
    ],
)
def test_a_run_that_ends_because_nothing_can_change_says_what_all_of_it_would(demand, monkeypatch):
    rng = np.random.default_rng(5)
    worlds = [rng.random(20) < rate for rate in (0.6, 0.75, 0.8, 0.9) for _ in range(2)]
    early = [verdict_on(passes, demand=demand, tasks=2, rounds=10)[0] for passes in worlds]
    monkeypatch.setattr(Rounds, "_foregone", lambda *_: None)
    whole = [verdict_on(passes, demand=demand, tasks=2, rounds=10)[0] for passes in worlds]
    assert [one.status for one in early] == [one.status for one in whole]
    sooner = [one for one, other in zip(early, whole, strict=True) if one.runs < other.runs]
    assert sooner
    assert all(one.runs <= other.runs for one, other in zip(early, whole, strict=True))
    for one in sooner:
        if one.status == "UNDECIDED":
            assert "neither verdict can be reached any more" in one.sentence
            assert one.more_runs is None


def test_nothing_is_foregone_while_some_end_of_the_run_would_change_the_status():
    """Every way in which the last rounds can end, against what is said before them."""
    tasks, rounds, rng, foregone = 2, 6, np.random.default_rng(2), 0
    for _ in range(4):
        first = (rng.random(tasks * (rounds - 2)) < 0.6).tolist()
        ends = [
            verdict_on([*first, *rest], demand="pass^1 >= 0.6", tasks=tasks, rounds=rounds)[0]
            for rest in product([True, False], repeat=2 * tasks)
        ]
        so_far, stream = verdict_on(first, demand="pass^1 >= 0.6", tasks=tasks, rounds=rounds)
        if not stream.is_open:
            foregone += 1
            assert {end.status for end in ends} == {so_far.status}
    assert foregone


def test_the_lists_of_a_verdict_are_those_that_decide():
    verdict, stream = verdict_on([True] * 80, demand="pass^3 >= 0.8", tasks=4, rounds=20)
    (watch,) = stream.watches
    passing, looks = verdict.boundaries
    first, _ = watch.soonest
    words = f"PASS with no failure after {first} trials, or at the end of a round at most 1 after "
    assert passing.startswith(words)
    assert verdict.runs == first
    assert looks.startswith("Looks after round 4, 6, 8, 10, 12, 14, 16, 18, 20, with bounds at ")
    assert looks.endswith("95.2%")


@pytest.mark.parametrize("trials", [20, 40, 80])
def test_a_difference_beside_counts_says_of_how_many_trials_it_is(trials):
    """A pair that ran on after its gate was decided has counts of more trials."""
    table = Trials.from_columns(
        system=["A"] * trials + ["B"] * trials,
        task=[f"t{i % 4}" for i in range(2 * trials)],
        passed=[True] * trials + [i % 3 > 0 for i in range(trials)],
    )
    ours, other = (table.where(system=name) for name in "BA")
    terms = {"require": "no_worse_than A by 0.1", "system": "B"}
    bound = judge(table, terms)[0]
    assert lift_of(bound, ours, other).first_trials is None
    for runs in (trials, 2 * trials):
        watched = replace(bound, evidence="sequential", runs=runs)
        lift = lift_of(watched, ours, other)
        seen = sum(count for _, count in lift.passed)
        assert (lift.first_trials or seen) == runs
