import pytest

from passhat.analysis.measure import measure
from passhat.analysis.simulate import World, simulate
from passhat.analysis.task_table import CERTAINTY
from passhat.analysis.unsettled import WORTH_RUNNING, runs_until
from passhat.records import Trials
from passhat.stats.power import zero_failure_runs
from passhat.stats.proportions import lower_bound, upper_bound


@pytest.mark.parametrize("bar", [0.9, 0.95, 0.99])
def test_without_a_failure_the_runs_to_a_bar_are_those_of_zero_failure_certification(bar):
    assert 5 + runs_until((5, 5), 1, bar, 0.95) == pytest.approx(zero_failure_runs(bar), rel=0.03)


@pytest.mark.parametrize("counts", [(10, 9), (10, 5), (20, 19), (7, 0)])
@pytest.mark.parametrize("k", [1, 3])
def test_the_runs_promised_settle_the_bar_at_the_observed_rate(counts, k):
    more = runs_until(counts, k, 0.7, 0.95)
    runs = counts[0] + more
    passes = round(counts[1] / counts[0] * runs)
    low, high = lower_bound(passes, runs) ** k, upper_bound(passes, runs) ** k
    assert low >= 0.7 or high < 0.7


def test_a_rate_at_the_bar_is_never_settled():
    assert runs_until((10, 9), 1, 0.9, 0.95) is None


def test_a_task_without_a_label_gets_one_after_the_runs_promised():
    by_task = {f"t{i}": [1] * 10 for i in range(6)} | {"odd": [1] * 9 + [0]}
    trials = Trials.from_columns(
        task=[name for name, runs in by_task.items() for _ in runs],
        passed=[run for runs in by_task.values() for run in runs],
    )
    rows = measure(trials).system().tasks.labelled("too few runs")
    assert rows
    assert all(row.chance < CERTAINTY and row.more_runs > 0 for row in rows if row.more_runs)


def test_a_well_known_suite_leaves_nothing_about_its_own_mean_open():
    trials = simulate(tasks=200, runs=20, rate=0.9, world=World(luck=0.9), seed=1)
    open_ = {one.what for one in measure(trials).system().unsettled}
    assert "mean_score, this suite" not in open_
    assert "luck" not in open_


def test_an_open_bar_names_its_tasks_and_the_runs_that_would_tell():
    trials = Trials.from_columns(task=["a"] * 10, passed=[1] * 10)
    found = measure(trials, ks=[1], bars=0.9).system().unsettled
    (bar,) = [one for one in found if one.what == "bars, pass^1"]
    assert bar.tasks == ("a",)
    assert bar.more_runs == 19


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ((1, 1, 1), "one run cannot tell skill from luck"),
        ((1, 1, 3), "2 tasks ran only once, which cannot tell skill from luck"),
        ((1, 3), "1 task ran only once, which cannot tell skill from luck"),
    ],
)
def test_the_advice_to_repeat_says_how_many_tasks_ran_once(runs, why):
    tasks = [f"t{i}" for i, n in enumerate(runs) for _ in range(n)]
    found = measure(Trials.from_columns(task=tasks, passed=[1] * len(tasks))).system().unsettled
    (luck,) = [one for one in found if one.what == "luck"]
    assert luck.advice == f"Run every task at least 5 times: {why}."


def test_a_number_of_runs_that_nobody_makes_is_not_advised():
    # 88 of 100 against 0.9: a few thousand runs away.
    trials = Trials.from_columns(task=["a"] * 100, passed=[1] * 88 + [0] * 12)
    found = measure(trials, ks=[1], bars=0.9).system().unsettled
    (bar,) = [one for one in found if one.what == "bars, pass^1"]
    assert bar.more_runs > WORTH_RUNNING
    assert bar.advice.endswith(
        f"it lies so close to its bar that it would take {bar.more_runs:,} more runs: "
        "look at the failures instead."
    )
