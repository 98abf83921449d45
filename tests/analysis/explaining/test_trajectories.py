"""How alike runs are, what they repeat and mend, what failing ones cost, which tool for which."""

from itertools import combinations

import numpy as np
import pytest

from passhat.analysis.explaining.run_diff import divergences
from passhat.analysis.explaining.runs import compared_runs
from passhat.analysis.explaining.trajectories import trajectories
from passhat.analysis.reports.measure import measure
from passhat.records import Trials
from passhat.stats.estimate import Unavailable


def measured(*runs, **options):
    found = divergences(compared_runs(runs))
    return trajectories(runs, found, confidence=0.95, **options)


def test_why_and_the_consistency_of_paths_compare_the_same_trials(make_run):
    rng = np.random.default_rng(3)
    ways = {(task, i): rng.choice(list("xyz"), 4).tolist() for task in "abc" for i in range(14)}
    runs = [make_run("P", *way, task=task, trial=i) for (task, i), way in ways.items()]
    trials = Trials.from_columns(
        task=[task for task, _ in ways],
        passed=[True] * len(ways),
        tools=list(map(tuple, ways.values())),
        stated_confidence=[0.5] * len(ways),
    )
    of_trials = measure(trials).system().hal["consistency_trajectory_sequence"].number
    assert measured(*runs).order.value == pytest.approx(of_trials.value)


def test_likeness_is_the_mean_over_tasks_of_the_mean_over_pairs(make_run):
    ways = {"a": ["x", "xy", "xyy"], "b": ["x", "x"], "c": ["y", "z"]}
    runs = [
        make_run("P", *way, task=task, trial=i)
        for task, those in ways.items()
        for i, way in enumerate(those)
    ]

    def mean(measure):
        return np.mean([np.mean([measure(*p) for p in combinations(w, 2)]) for w in ways.values()])

    found = measured(*runs)
    assert found.path.value == pytest.approx(mean(lambda one, other: one == other))
    assert found.tools.value == pytest.approx(
        mean(lambda one, other: 2 * len({*one} & {*other}) / (len({*one}) + len({*other})))
    )
    assert found.order.interval.low < found.order.value < found.order.interval.high


def test_costs_are_alike_by_the_smaller_over_the_larger_and_split_by_outcome(make_run):
    runs = [make_run("P", task=task, trial=0, costs={"tokens": 100.0}) for task in "ab"] + [
        make_run("F", task=task, trial=1, costs={"tokens": 300.0}) for task in "ab"
    ]
    found = measured(*runs)
    assert found.costs["tokens"].value == pytest.approx(1 / 3)
    (split,) = found.splits
    assert (split.passing, split.failing, split.failing_share) == (100, 300, 0.75)


def test_repeats_errors_retries_and_recoveries_are_counted_by_runs(make_run):
    broken = ("pay", {}, "Error: no")
    found = measured(
        make_run("P", broken, "pay"),
        make_run("F", broken, broken, trial=1),
        make_run("F", broken, "look", trial=2),
        make_run("P", "look", trial=3),
    )
    told = {one.words: (one.runs, one.passed) for one in found.behaviours}
    assert told == {
        "made the same call twice": (2, 1),
        "got an error from a tool": (3, 1),
        "called a tool again after its error": (2, 1),
        "got a success after an error of the same tool": (1, 1),
    }


def test_the_matrix_puts_what_a_failing_run_called_beside_what_a_passing_one_did(make_run):
    found = measured(
        make_run("P", "look", "refund", "note"),
        make_run("F", "look", "cancel", "note", "note", trial=1),
    )
    assert found.matrix.counts == {
        ("look", "look"): 1,
        ("refund", "cancel"): 1,
        ("note", "note"): 1,
        ("", "note"): 1,
    }
    assert found.matrix.tools == ("cancel", "note", "refund")


def test_where_the_suite_names_the_tool_the_first_call_stands_against_it(make_run):
    found = measured(
        make_run("P", "look", "weather"),
        make_run("F", "search", trial=1),
        make_run("F", trial=2),
        expected={"a": "weather"},
    )
    assert found.matrix.given
    assert found.matrix.counts == {
        ("weather", "weather"): 1,
        ("weather", "search"): 1,
        ("weather", ""): 1,
    }


def test_one_run_a_task_has_nothing_to_be_like(make_run):
    assert isinstance(measured(make_run("P", "x")).path, Unavailable)


def test_runs_that_call_no_tool_are_not_alike_in_their_tools(make_run):
    found = measured(*(make_run("P", task=task, trial=i) for task in "ab" for i in range(2)))
    for number in (found.tools, found.order, found.path):
        assert number == Unavailable("no trial calls a tool")
