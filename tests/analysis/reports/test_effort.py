from itertools import combinations

import numpy as np
import pytest

from passhat.analysis.planning.simulate import SimulationModel, simulate
from passhat.analysis.reports.measure import measure
from passhat.records import Outcome, Trials
from passhat.stats.estimate import Unavailable

TASKS = ["a"] * 4 + ["b"] * 4 + ["c"] * 4
OUTCOMES = ["passed", "passed", "passed", "failed", "passed", "failed", "failed", "errored"]
OUTCOMES += ["passed", "passed", "failed", "failed"]
COSTS = [1.0, 2.0, 3.0, 6.0, 2.0, 4.0, 4.0, 10.0, 1.0, 1.0, 3.0, 3.0]


def _cost(errors="fail", cost=COSTS, ks=(1, 2)):
    trials = Trials.from_columns(task=TASKS, outcome=OUTCOMES, cost=cost)
    return measure(trials, ks=ks, errors=errors).system().features["cost"]


def test_cost_per_success_is_all_that_was_spent_over_all_successes():
    assert _cost().per_success.value == sum(COSTS) / 6
    assert _cost(errors="exclude").per_success.value == (sum(COSTS) - 10) / 6


def test_means_are_told_apart_by_outcome():
    found = _cost()
    assert found.passed.value == 10 / 6
    assert found.failed.value == 20 / 5
    assert found.errored.value == 10.0
    assert found.difference.value == pytest.approx(10 / 6 - 4)
    assert found.trials == 12


def test_a_streak_costs_k_runs_divided_by_the_share_of_streaks_that_succeed():
    spent, succeeded = 0.0, 0.0
    for name in "abc":
        rows = [i for i, task in enumerate(TASKS) if task == name]
        spent += 2 * np.mean([COSTS[i] for i in rows])
        pairs = combinations(rows, 2)
        succeeded += np.mean([all(OUTCOMES[i] == "passed" for i in pair) for pair in pairs])
    assert _cost().per_streak[2].value == pytest.approx(spent / succeeded)


def test_one_success_in_a_row_costs_what_a_success_costs_where_runs_are_equal():
    found = _cost()
    assert found.per_streak[1].value == pytest.approx(found.per_success.value)


def test_trials_that_do_not_say_count_as_their_tasks_mean():
    silent = [None if i == 3 else cost for i, cost in enumerate(COSTS)]
    expected = (6.0 / 3 * 4 + sum(COSTS[4:])) / 6
    assert _cost(cost=silent).per_success.value == pytest.approx(expected)
    assert _cost(cost=silent).trials == 11


def test_a_streak_longer_than_any_task_was_run_is_unavailable():
    assert _cost(ks=(9,)).per_streak[9] == Unavailable(
        "cost per 9 successes in a row needs 9 trials of a task; none has them"
    )


def test_turns_are_not_paid_for():
    trials = Trials.from_columns(task=TASKS, outcome=OUTCOMES, turns=COSTS)
    turns = measure(trials).system().features["turns"]
    assert isinstance(turns.per_success, Unavailable)
    assert turns.per_streak == {}


def test_a_feature_that_no_trial_recorded_is_not_reported():
    trials = Trials.from_columns(task=TASKS, outcome=OUTCOMES, cost=[None] * 12)
    assert measure(trials).system().features == {}


def test_what_only_left_out_trials_recorded_is_unavailable():
    trials = Trials.from_columns(
        task=["a", "a", "b"], outcome=["errored", "errored", "passed"], cost=[1.0, 2.0, None]
    )
    feature = measure(trials, errors="exclude").system().features["cost"]
    assert isinstance(feature.per_success, Unavailable)
    assert isinstance(feature.mean, Unavailable)


def test_a_task_that_told_its_cost_once_takes_part_in_streaks_by_its_mean():
    told_once = [*COSTS[:4], None, 3.0, None, None, *COSTS[8:]]
    all_told = [*COSTS[:4], 3.0, 3.0, 3.0, 3.0, *COSTS[8:]]
    found = [_cost(cost=cost).per_streak[2].value for cost in (told_once, all_told)]
    assert found[0] == pytest.approx(found[1])


def test_errored_runs_say_nothing_of_what_goes_with_passing():
    trials = simulate(
        tasks=15, runs=8, rate=0.6, world=SimulationModel(luck=0.9, error_rate=0.2), seed=1
    )
    ended = trials.take(trials.outcome != Outcome.ERRORED)
    every, some = (measure(one).system().features["turns"] for one in (trials, ended))
    assert every.association == some.association
    assert every.difference == some.difference
    assert -1 < every.association.value < 0  # failing takes more turns


def test_the_quantiles_are_those_of_all_trials():
    costs = np.random.default_rng(1).permutation(np.arange(1.0, 201.0))
    trials = Trials.from_columns(task=["a"] * 200, passed=[True] * 200, cost=costs)
    feature = measure(trials).system().features["cost"]
    assert feature.median.value == pytest.approx(np.quantile(costs, 0.5))
    assert feature.p95.value == pytest.approx(np.quantile(costs, 0.95))


def test_every_interval_narrows_with_the_confidence_asked_for():
    trials = simulate(
        tasks=15, runs=8, rate=0.6, world=SimulationModel(luck=0.9, error_rate=0.2), seed=1
    )
    sure, hasty = (
        measure(trials, confidence=level, ks=[2]).system().features["cost"] for level in (0.95, 0.8)
    )
    names = ("mean", "passed", "failed", "errored", "difference", "association")
    for name in (*names, "median", "p95", "per_success"):
        wide, narrow = getattr(sure, name), getattr(hasty, name)
        assert narrow.value == wide.value
        assert narrow.interval.width < wide.interval.width
    assert hasty.per_streak[2].interval.width < sure.per_streak[2].interval.width
