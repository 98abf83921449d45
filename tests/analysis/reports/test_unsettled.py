import numpy as np
import pytest

from passhat.analysis.planning.plan import plan
from passhat.analysis.planning.simulate import SimulationModel, simulate
from passhat.analysis.reports.measure import measure
from passhat.analysis.reports.unsettled import SENSIBLE_RUNS, WORTH_RUNNING, runs_until
from passhat.records import Trials
from passhat.stats.proportions import lower_bound, upper_bound
from passhat.stats.sample_size import zero_failure_runs


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


def advice_on(passes, runs):
    """What is said of the labels of tasks that passed so many of their runs."""
    columns = [(f"t{i}", r < c) for i, c in enumerate(passes) for r in range(runs)]
    names, passed = zip(*columns, strict=True)
    found = measure(Trials.from_columns(task=names, passed=passed)).system().unsettled
    return next((one for one in found if one.what == "labels"), None)


@pytest.mark.parametrize("passes", [[3], [6], [10], [5] * 3])
def test_after_the_runs_advised_no_more_are_advised(passes):
    runs = passes[0]
    first = advice_on(passes, runs)
    assert first.advice.endswith(
        "current pass rate." if len(passes) == 1 else "current pass rates."
    )
    assert "failures" not in first.advice
    after = runs + first.more_runs
    assert advice_on([after] * len(passes), after) is None


def test_a_task_on_a_border_is_promised_nothing_and_the_sentence_is_of_one_task():
    found = advice_on([19], 20)
    assert found.more_runs is None
    assert found.advice == (
        "1 task lies so close to a border between labels that more trials would not decide it."
    )


def test_half_of_the_tasks_means_half_of_all_that_are_open():
    found = advice_on([19, 19, 19, 18], 20)
    if found.more_runs is not None:
        assert found.more_runs > WORTH_RUNNING


def test_without_a_failure_nobody_is_sent_to_look_at_the_failures():
    trials = Trials.from_columns(task=["a"] * 10, passed=[1] * 10)
    found = measure(trials, ks=[1], bars=0.9999).system().unsettled
    (bar,) = [one for one in found if one.what == "bars, pass^1"]
    assert "look at the failures" not in bar.advice


def test_a_well_known_suite_leaves_nothing_about_its_own_mean_open():
    trials = simulate(tasks=200, runs=20, rate=0.9, world=SimulationModel(luck=0.9), seed=1)
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
        ((1, 1, 1), "one trial cannot tell skill from luck"),
        ((1, 1, 3), "2 tasks ran only once, which cannot tell skill from luck"),
        ((1, 3), "1 task ran only once, which cannot tell skill from luck"),
    ],
)
def test_the_advice_to_repeat_says_how_many_tasks_ran_once(runs, why):
    tasks = [f"t{i}" for i, n in enumerate(runs) for _ in range(n)]
    found = measure(Trials.from_columns(task=tasks, passed=[1] * len(tasks))).system().unsettled
    (luck,) = [one for one in found if one.what == "luck"]
    assert luck.advice == f"Run every task at least 5 times: {why}."


@pytest.mark.parametrize(
    ("passed", "told"),
    [(88, "it would take 571 more trials"), (89, "no sensible number of trials would decide it")],
)
def test_a_number_of_runs_that_nobody_makes_is_not_advised(passed, told):
    trials = Trials.from_columns(task=["a"] * 100, passed=[1] * passed + [0] * (100 - passed))
    found = measure(trials, ks=[1], bars=0.9).system().unsettled
    (bar,) = [one for one in found if one.what == "bars, pass^1"]
    assert bar.more_runs > WORTH_RUNNING
    assert (bar.more_runs > SENSIBLE_RUNS) is ("sensible" in told)
    assert bar.advice.endswith(
        f"it lies so close to its bar that {told}: look at the failures instead."
    )


def _half(number):
    return (number.interval.high - number.interval.low) / 2


@pytest.mark.parametrize(("tasks", "runs"), [(2, 10), (5, 5), (12, 10), (50, 4), (6, 2)])
@pytest.mark.parametrize("scope", ["this suite", "tasks like these"])
def test_now_is_half_the_interval_that_the_report_prints_and_the_plan_begins_there(
    tasks, runs, scope
):
    trials = simulate(tasks=tasks, runs=runs, rate=0.7, seed=tasks)
    system = measure(trials).system()
    half = _half(system.mean_score.within(scope))
    (found,) = [one for one in system.unsettled if one.what == f"mean_score, {scope}"]
    assert f"(now ±{100 * half:.1f}" in found.advice
    chosen = plan(trials).chosen
    planned = chosen.this_suite if scope == "this suite" else chosen.tasks_like_these
    assert planned == pytest.approx(half)


@pytest.mark.slow("simulates how often a promise is kept")
@pytest.mark.parametrize(("tasks", "runs"), [(5, 5), (10, 5), (50, 4)])
def test_in_about_half_of_the_cases_or_more_the_runs_promised_reach_the_width(tasks, runs):
    rng = np.random.default_rng(tasks)
    reached = []
    for _ in range(24):
        rates = rng.beta(1, 1, tasks)
        passes = rng.binomial(runs, rates)
        found = measure(_counted(passes, runs)).system().unsettled
        more = [one.more_runs for one in found if one.what == "mean_score, this suite"]
        if more:
            passes = passes + rng.binomial(more[0], rates)
            after = measure(_counted(passes, runs + more[0])).system().mean_score
            reached.append(_half(after.this_suite) <= 0.0505)
    assert len(reached) > 12
    assert np.mean(reached) > 0.4


def test_runs_are_promised_for_tasks_like_these_only_where_their_floor_is_known():
    few = measure(simulate(tasks=2, runs=10, rate=0.5, seed=0)).system()
    (found,) = [one for one in few.unsettled if one.what == "mean_score, tasks like these"]
    assert found.more_runs is None
    assert found.advice.startswith(
        "No number of trials on these 2 tasks gets below ±40 points for similar tasks; about"
    )


def test_where_tasks_hardly_differ_the_runs_promised_do_for_tasks_like_these_too():
    rng = np.random.default_rng(3)
    passes = rng.binomial(6, 0.5, 45)
    system = measure(_counted(passes, 6)).system()
    (found,) = [one for one in system.unsettled if one.what == "mean_score, tasks like these"]
    assert found.advice.startswith(f"It takes {found.more_runs} more trials of every task")
    after = passes + rng.binomial(found.more_runs, 0.5, 45)
    mean = measure(_counted(after, 6 + found.more_runs)).system().mean_score
    assert _half(mean.tasks_like_these) == pytest.approx(0.05, abs=0.008)


def test_no_runs_are_promised_below_what_so_few_tasks_can_ever_show():
    """With 30 tasks, all alike, runs without end leave ±5.02 points for tasks like these."""
    rng = np.random.default_rng(3)
    passes = rng.binomial(10, 0.5, 30)
    system = measure(_counted(passes, 10)).system()
    (found,) = [one for one in system.unsettled if one.what == "mean_score, tasks like these"]
    assert found.more_runs is None
    assert found.advice.startswith("No number of trials on these 30 tasks gets below ±5 points")
    after = passes + rng.binomial(1000, 0.5, 30)
    mean = measure(_counted(after, 1010)).system().mean_score
    assert 0.05 < _half(mean.tasks_like_these) < 0.051


def _counted(passes, runs):
    rows = [(f"t{i}", r, r < c) for i, c in enumerate(passes) for r in range(runs)]
    task, trial, passed = zip(*rows, strict=True)
    return Trials.from_columns(task=task, trial=trial, passed=passed)


def test_no_number_of_passes_shows_that_a_task_always_passes():
    assert runs_until((10, 10), 1, 1.0, 0.95) is None


def test_the_runs_advised_for_several_tasks_settle_half_of_them_and_no_fewer_do():
    """Four tasks with needs of their own: the second smallest settles two of them."""
    passes = {"a": 20, "b": 19, "c": 17, "d": 16}
    rows = [(name, run < count) for name, count in passes.items() for run in range(20)]
    task, passed = zip(*rows, strict=True)
    trials = Trials.from_columns(task=task, passed=passed)
    found = measure(trials, ks=[1], bars=0.9).system().unsettled
    (bar,) = [one for one in found if one.what == "bars, pass^1"]
    needs = [runs_until((20, passes[name]), 1, 0.9, 0.95) for name in bar.tasks]
    settled = [need is not None and need <= bar.more_runs for need in needs]
    assert 2 * sum(settled) >= len(needs) == 4
    fewer = [need is not None and need < bar.more_runs for need in needs]
    assert 2 * sum(fewer) < len(needs)


@pytest.mark.parametrize(("runs", "advised"), [(1, True), (2, False)])
def test_only_where_most_tasks_ran_once_is_repeating_them_all_advised(runs, advised):
    trials = simulate(tasks=6, runs=runs, rate=0.5, seed=1)
    found = {one.what for one in measure(trials).system().unsettled}
    assert ("luck" in found) is advised
    assert ("labels" in found) is not advised


def test_where_every_run_errored_more_of_the_same_is_not_advised():
    trials = Trials.from_columns(task=["a", "a", "b"], outcome=["errored"] * 3)
    assert measure(trials, bars=0.9).system().unsettled == ()


@pytest.mark.parametrize(("tasks", "runs"), [(10, 12), (10, 13), (20, 6), (20, 8), (20, 10)])
def test_a_suites_mean_is_open_just_while_it_is_known_to_less_than_five_points(tasks, runs):
    system = measure(simulate(tasks=tasks, runs=runs, rate=0.8, seed=1)).system()
    open_ = [one for one in system.unsettled if one.what == "mean_score, this suite"]
    assert bool(open_) == (_half(system.mean_score.this_suite) > 0.05)
    assert all(one.more_runs > 0 for one in open_)


@pytest.mark.parametrize("level", ["seed", "day"])
def test_where_levels_move_the_suite_more_of_them_are_advised_and_not_more_trials(level):
    """Five times the trials at the same levels hardly narrow the mean."""
    rates = np.linspace(0.1, 0.9, 8)

    def measured(runs):
        rng = np.random.default_rng(3)
        at, task, _ = (one.ravel() for one in np.indices((8, 10, runs)))
        named = {"seed": at} if level == "seed" else {"at": [[f"day={one}"] for one in at]}
        passed = rng.random(at.size) < rates[at]
        return measure(Trials.from_columns(task=[f"t{i}" for i in task], passed=passed, **named))

    once, often = (measured(runs).system() for runs in (3, 15))
    width = once.metrics["mean_score"].interval.width
    assert often.metrics["mean_score"].interval.width > 0.8 * width
    for system in (once, often):
        (mean,) = (one for one in system.unsettled if one.what.startswith("mean_score"))
        assert mean.advice.startswith(f"More {level}s narrow the mean of these tasks (now ±")
        assert mean.more_runs is None


def test_seeds_that_only_number_the_rounds_of_a_run_change_no_advice():
    for draw in range(20):
        rng = np.random.default_rng(draw)
        task, run = (one.ravel() for one in np.indices((20, 10)))
        columns = {
            "task": [f"t{i}" for i in task],
            "trial": run,
            "passed": rng.random(task.size) < rng.beta(2, 1, 20)[task],
        }
        with_seeds = measure(Trials.from_columns(**columns, seed=run)).system()
        without = measure(Trials.from_columns(**columns)).system()
        assert [u.what for u in with_seeds.unsettled] == [u.what for u in without.unsettled]
        assert not any(u.advice.startswith("More seeds") for u in with_seeds.unsettled)
