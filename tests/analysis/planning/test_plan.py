import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.analysis.comparing.comparison import compare
from passhat.analysis.planning import plan as planning
from passhat.analysis.planning.plan import Spending, plan
from passhat.analysis.planning.simulate import SimulationModel, simulate
from passhat.analysis.reports.measure import measure
from passhat.errors import ArgumentError
from passhat.records import Trials
from passhat.records.tally import Categorical
from passhat.stats.assurance import PossibleSuites
from passhat.stats.estimate import Interval, Unavailable
from passhat.stats.sample_size import GroupSpread


@pytest.fixture
def fewer_suites(monkeypatch):
    """As `few_suites_drawn`, for a test whose neighbours look at numbers."""
    monkeypatch.setattr(planning, "WIDTH_SUITES", 16)
    monkeypatch.setattr(planning, "POWER_SUITES", 100)


SAME_LAW = pytest.mark.slow("the same law with other numbers")


def test_the_published_figures_come_out_before_any_run():
    found = plan(half_width=0.05)
    assert found.one_task_runs == 385
    assert dict(found.zero_failures) == {0.9: 29, 0.95: 59, 0.99: 299}


def test_trials_replace_the_guesses():
    trials = simulate(tasks=80, runs=10, rate=0.85, world=SimulationModel(luck=0.3), seed=1)
    found = plan(trials)
    assert not plan().assumptions.measured
    assert found.assumptions.measured
    assert found.assumptions.rate == pytest.approx(0.85, abs=0.06)
    assert found.assumptions.icc == pytest.approx(0.7, abs=0.12)
    assert (found.chosen.tasks, found.chosen.runs) == (80, 10)


def test_the_users_word_counts_more_than_what_was_observed():
    trials = simulate(tasks=10, runs=5, seed=1)
    found = plan(trials, rate=0.9, correlation=0.2, tasks=7, runs=3)
    assert (found.assumptions.rate, found.assumptions.icc) == (0.9, 0.2)
    assert (found.chosen.tasks, found.chosen.runs) == (7, 3)


@given(st.integers(2, 500), st.integers(1, 50), st.floats(0.05, 0.95), st.floats(0.01, 0.99))
def test_more_runs_never_widen_and_never_pass_the_floor(tasks, runs, rate, correlation):
    found = plan(tasks=tasks, runs=runs, rate=rate, correlation=correlation)
    widths = [(design.this_suite, design.tasks_like_these) for design in found.designs]
    assert widths == sorted(widths, reverse=True)
    assert all(wide >= found.chosen.floor - 1e-12 for _, wide in widths)


@given(st.integers(2, 200), st.integers(1, 20))
def test_the_tasks_asked_for_reach_the_target(tasks, runs):
    found = plan(tasks=tasks, runs=runs, half_width=0.04)
    enough = plan(tasks=found.chosen.tasks_needed, runs=runs, half_width=0.04)
    assert enough.chosen.tasks_like_these <= 0.04 + 1e-9


def test_no_design_of_a_plan_is_drawn_twice(monkeypatch):
    made, drawn = PossibleSuites.reports, []

    def counted(suites, runs, **options):
        drawn.append((suites, runs))
        return made(suites, runs, **options)

    monkeypatch.setattr(PossibleSuites, "reports", counted)
    assert plan(tasks=40).assured.runs
    assert len({(id(suites), runs) for suites, runs in drawn}) == len(drawn) > 2


def test_a_budget_buys_whole_runs_of_every_task():
    (budget,) = plan(tasks=20, spending=Spending(max_cost=10, cost_per_run=0.03)).budgets
    assert budget.runs_in_all == 333
    assert budget.design.runs == 16


def test_minutes_are_shared_by_runs_side_by_side():
    spending = Spending(max_minutes=10, seconds_per_run=30, at_once=4)
    (budget,) = plan(tasks=20, spending=spending).budgets
    assert budget.runs_in_all == 80


def test_what_a_run_takes_is_read_off_the_trials():
    trials = simulate(tasks=10, runs=5, seed=1)
    mean = trials.features["cost"].mean()
    (budget,) = plan(trials, spending=Spending(max_cost=1)).budgets
    assert budget.per_run == pytest.approx(mean)


def test_a_budget_that_does_not_reach_every_task_once_says_so():
    (budget,) = plan(tasks=50, spending=Spending(max_cost=1, cost_per_run=0.1)).budgets
    assert budget.design == Unavailable("10 trials do not reach all 50 tasks once")


def test_a_wanted_difference_is_turned_into_tasks_and_runs():
    found = plan(tasks=30, runs=5, difference=0.1)
    again = plan(tasks=found.tasks_for_difference, runs=5, difference=0.1)
    assert again.detectable.value <= 0.1 + 1e-9
    fewer = plan(tasks=found.tasks_for_difference - 1, runs=5, difference=0.1)
    assert fewer.detectable.value > 0.1
    assert isinstance(found.runs_for_difference, Unavailable)


def test_a_limit_without_the_price_of_a_run_is_refused():
    with pytest.raises(ArgumentError, match=r"cost_per_run must be given with `max_cost`$"):
        plan(spending=Spending(max_cost=5))
    with pytest.raises(ArgumentError, match="max_minutes must be a number above 0, got 0"):
        Spending(max_minutes=0)


def test_two_systems_are_no_basis_for_one_plan():
    with pytest.raises(ArgumentError, match="must hold exactly one agent to plan from"):
        plan(simulate(tasks=3, runs=3, rate=[0.5, 0.6]))


def _trials(**passed):
    rows = [(task, r, won) for task, runs in passed.items() for r, won in enumerate(runs)]
    task, trial, won = zip(*rows, strict=True)
    return Trials.from_columns(task=task, trial=trial, passed=won)


ONE_TASK = _trials(a=[1] * 7 + [0] * 3)
ONE_RUN = _trials(a=[1], b=[1], c=[0], d=[1])
NO_FAILURE = _trials(**dict.fromkeys("abcd", [1] * 5))
CONSTANT = _trials(a=[0] * 5, b=[1] * 5, c=[1] * 5)


@pytest.mark.parametrize("trials", [ONE_TASK, ONE_RUN, NO_FAILURE, CONSTANT])
def test_a_plan_from_trials_begins_at_the_interval_of_their_report_whatever_they_are(trials):
    bounds = measure(trials).system().mean_score.this_suite.interval
    found = plan(trials)
    assert found.chosen.this_suite == pytest.approx((bounds.high - bounds.low) / 2)
    assert isinstance(found.chosen.runs_tasks_like_these, Unavailable)
    widths = [design.this_suite for design in found.designs]
    assert widths == sorted(widths, reverse=True)
    enough = plan(trials, runs=found.chosen.runs_this_suite).chosen
    assert enough.this_suite <= 0.05 + 1e-9


def _moved(by, seed, *, tasks=12, levels=6, runs=3):
    """Trials that seeds, days, a bad round or users move together."""
    rng = np.random.default_rng(seed)
    skill, shift = rng.normal(1, 1, tasks), rng.normal(0, 1.5, levels)
    shift = np.where(np.arange(levels) == 4, -3, 0) if by == "round" else shift
    task, level, trial = (
        grid.ravel() for grid in np.indices((tasks, levels, 1 if by == "round" else runs))
    )
    columns = {
        "task": [f"t{t}" for t in task],
        "trial": level * runs + trial,
        "passed": rng.random(task.size) < 1 / (1 + np.exp(-skill[task] - shift[level])),
    }
    if by == "seed":
        columns |= {"seed": level + 1}
    elif by != "round":
        columns |= {"at": [[f"{by}={n}"] for n in level], "base": columns["task"]}
    if by == "user":
        columns |= {"task": [f"t{t} [user={n}]" for t, n in zip(task, level, strict=True)]}
    return Trials.from_columns(columns)


@pytest.mark.usefixtures("fewer_suites")
@pytest.mark.parametrize(
    ("by", "k", "seed"),
    [
        ("user", 1, 0),
        *(
            pytest.param(*one, marks=SAME_LAW)
            for one in [("seed", 3, 1), ("seed", 1, 0), ("day", 1, 2), ("round", 1, 1)]
        ),
    ],
)
def test_a_plan_is_never_narrower_than_the_report_of_the_same_trials(by, k, seed):
    trials = _moved(by, seed)
    shown, found = measure(trials).system(), plan(trials, k=k)
    metric = shown.pass_hat(k)
    for scope in ("this_suite", "tasks_like_these"):
        half = getattr(metric, scope).interval.width / 2
        assert getattr(found.assured, scope) >= 0.99 * half
        if k == 1:
            assert getattr(found.chosen, scope) == pytest.approx(half, rel=0.01)


@pytest.mark.usefixtures("fewer_suites")
def test_more_trials_at_the_same_seeds_leave_the_spread_between_seeds():
    found = plan(_moved("seed", 1), half_width=0.05)
    groups = found.assumptions.groups
    assert (groups.name, groups.levels, groups.grows) == ("seed", 6, False)
    assert groups.this_suite > 0.05
    for design in (*found.assured.designs, *found.designs):
        assert design.this_suite >= groups.this_suite
    assert re.fullmatch(
        r"about \d+ seeds: more trials at these 6 seeds leave ±\d+\.\d points",
        found.assured.runs.reason,
    )
    assert found.assured.tasks.reason == "no number of tasks at these 6 seeds reaches ±5 points"
    assert found.chosen.runs_this_suite is None


def test_the_levels_asked_for_reach_the_width_asked_for():
    def width(seed, levels):
        mean = measure(_moved("seed", seed, levels=levels)).system().mean_score
        return mean.this_suite.interval.width / 2

    now = float(np.median([width(seed, 6) for seed in range(8)]))
    several = GroupSpread(
        name="seed", levels=6, grows=False, this_suite=now, tasks_like_these=now
    ).needed(now, now / 2)
    assert several == 24
    assert np.median([width(seed, several) for seed in range(8)]) <= now / 2


@pytest.mark.usefixtures("fewer_suites")
def test_more_rounds_narrow_what_one_bad_round_moved():
    found = plan(_moved("round", 0, levels=10), half_width=0.1)
    assert (found.assumptions.groups.name, found.assumptions.groups.grows) == ("round", True)
    assert found.assured.designs[-1].this_suite < 0.6 * found.assured.this_suite
    assert isinstance(found.assured.runs, int)


def test_one_task_or_one_run_says_nothing_of_the_icc():
    assert plan(ONE_TASK).assumptions.icc_interval is None
    assert plan(ONE_RUN).assumptions.icc_interval is None
    assert plan(ONE_RUN, correlation=0.2).assumptions.icc_interval == Interval(0.2, 0.2)


def test_runs_without_a_failure_are_not_taken_for_certainty():
    found = plan(NO_FAILURE)
    assert found.detectable.value > 0.1
    assert found.one_task_runs > 30


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=2, max_size=12), st.integers(1, 30), st.integers(2, 60))
def test_a_plan_from_trials_never_widens_with_runs_or_tasks(passes, runs, tasks):
    trials = _trials(**{f"t{i}": [r < c for r in range(4)] for i, c in enumerate(passes)})
    small = plan(trials, tasks=tasks, runs=runs).chosen
    for other in (
        plan(trials, tasks=tasks, runs=runs + 1),
        plan(trials, tasks=tasks + 1, runs=runs),
    ):
        assert other.chosen.this_suite <= small.this_suite + 1e-9
        assert other.chosen.tasks_like_these <= small.tasks_like_these + 1e-9
    assert small.floor <= small.tasks_like_these + 1e-9


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 5), min_size=2, max_size=12),
    st.integers(1, 20),
    st.integers(2, 200),
    st.sampled_from([{}, {"rate": 0.5}, {"correlation": 0.05}, {"correlation": 0.9, "rate": 0.2}]),
)
def test_the_wider_question_is_never_answered_better_or_sooner(passes, runs, tasks, given):
    trials = _trials(**{f"t{i}": [r < c for r in range(5)] for i, c in enumerate(passes)})
    found = plan(trials, tasks=tasks, runs=runs, **given).chosen
    assert found.this_suite <= found.tasks_like_these + 1e-12
    if isinstance(found.runs_tasks_like_these, int):
        assert found.runs_this_suite <= found.runs_tasks_like_these
    wide = plan(trials, tasks=found.tasks_needed, runs=runs, **given).chosen
    assert wide.this_suite <= 0.05 + 1e-9


@pytest.mark.parametrize(("passes", "runs"), [(8, 12), (10, 10), (1, 1), (0, 4), (30, 40)])
def test_one_task_is_one_question_with_one_answer(passes, runs):
    found = plan(_trials(a=[r < passes for r in range(runs)]))
    needed = found.chosen.runs_this_suite
    assert needed == found.one_task_runs
    again = round(needed * passes / runs)
    bounds = measure(_trials(a=[r < again for r in range(needed)])).system().mean_score.this_suite
    assert bounds.interval.width / 2 == pytest.approx(0.05, abs=0.002)


def test_runs_that_all_pass_are_planned_by_the_exact_bound():
    few = plan(NO_FAILURE).chosen  # 4 x 5
    for runs in (2, 10):
        planned = plan(NO_FAILURE, runs=runs).chosen.this_suite
        seen = measure(_trials(**dict.fromkeys("abcd", [1] * runs))).system().mean_score.this_suite
        assert planned == pytest.approx(seen.interval.width / 2)
    enough = _trials(**dict.fromkeys("abcd", [1] * few.runs_this_suite))
    assert measure(enough).system().mean_score.this_suite.interval.width <= 0.1


@pytest.mark.parametrize(
    ("rate", "icc"),
    [(0.99, 0.4), (0.02, 0.3), pytest.param(0.97, 0.5, marks=SAME_LAW)],
)
def test_near_the_ends_a_plan_says_how_wide_reports_will_be(rate, icc):
    note = plan(tasks=20, runs=3, rate=rate, correlation=icc).notes[0]
    here, there = (float(part.split()[0]) / 100 for part in note.split("±")[1:3])
    widths = []
    for seed in range(40):
        trials = simulate(
            tasks=20, runs=3, rate=rate, world=SimulationModel(luck=1 - icc), seed=seed
        )
        mean = measure(trials, ks=(1,)).system().mean_score
        widths.append(
            (mean.this_suite.interval.width / 2, mean.tasks_like_these.interval.width / 2)
        )
    means = [sum(column) / len(widths) for column in zip(*widths, strict=True)]
    assert here == pytest.approx(means[0], rel=0.25)
    assert there == pytest.approx(means[1], rel=0.25)
    assert plan(tasks=20, runs=3, rate=0.6, correlation=0.5).notes == ()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"half_width": 1e-300}, "half_width must be at least 1e-06"),
        ({"confidence": 1 - 1e-16}, "confidence must not exceed"),
        ({"spending": Spending(max_cost=1e300, cost_per_run=1e-300)}, "max_cost must buy at most"),
        ({"errors": "Fail"}, "errors must be one of 'fail', 'exclude'"),
    ],
)
def test_what_no_plan_can_hold_is_refused(asked, told):
    with pytest.raises(ArgumentError, match=told):
        plan(ONE_TASK, **asked)


def test_runs_that_all_passed_say_nothing_of_a_spread_that_is_given():
    given = {"rate": 0.9, "correlation": 0.3, "tasks": 4, "runs": 5}
    assert plan(NO_FAILURE, **given).chosen == plan(**given).chosen
    one = plan(_trials(a=[1] * 10), rate=0.9)
    widths = [design.this_suite for design in one.designs]
    assert widths == sorted(widths, reverse=True)
    assert one.chosen.this_suite == pytest.approx(
        plan(tasks=1, runs=10, rate=0.9).chosen.this_suite
    )
    many = plan(_trials(a=[1]), tasks=20, runs=1).chosen
    seen = measure(_trials(**{f"t{i}": [1] for i in range(20)})).system().mean_score.this_suite
    assert many.this_suite == pytest.approx(seen.interval.width / 2)


def test_one_run_more_does_not_turn_a_plan_over():
    once = {f"t{i}": [i % 3 > 0] for i in range(20)}
    before = plan(_trials(**once))
    after = plan(_trials(**once | {"t0": [False, False]}))
    assert after.assumptions.icc == before.assumptions.icc == 0.5
    assert after.chosen.runs_this_suite == pytest.approx(before.chosen.runs_this_suite, rel=0.15)


@pytest.mark.parametrize(("errors", "told"), [("fail", "counted as failures"), ("exclude", "out")])
def test_a_plan_from_nothing_but_errors_says_so(errors, told):
    trials = Trials.from_columns(task=["a", "b"], outcome=["errored", "errored"])
    assert told in plan(trials, errors=errors).notes[0]


def test_no_width_is_wider_than_knowing_nothing():
    for design in plan(tasks=1, rate=0.5).designs:
        assert max(design.this_suite, design.tasks_like_these, design.floor) <= 0.5


@pytest.mark.parametrize(
    ("apart", "said"), [(2.0, "tell more than more trials"), (0.0, "are not shown to matter")]
)
def test_a_plan_says_whether_more_levels_or_more_trials_tell_more(apart, said):
    rng = np.random.default_rng(3)
    shift = apart * np.array([-1, -0.5, 0.5, 1])
    rows = [(t, u) for t in range(40) for u in range(4) for _ in range(5)]
    table = Trials.from_columns(
        task=[f"t{t}" for t, _ in rows],
        at=[(f"user={u}", "fault=none") for _, u in rows],
        passed=[bool(rng.random() < 1 / (1 + np.exp(-shift[u]))) for _, u in rows],
    )
    (note,) = [note for note in plan(table).notes if "levels of user" in note]
    assert said in note
    assert ("with 1 x 20 and" in note and "with 10 x 2" in note) == (apart > 0)
    priced = " ".join(plan(table, cost_ratio=5, difference=0.1).notes)
    best = "where a task at one more level costs as much as 5 trials, take 1 trial at each"
    assert (best in priced) == (apart > 0)
    chances = re.search(
        r"one level of user that is 10 points worse than the others is found with a chance of "
        r"(\S+) with 2 levels x 10 trials, (\S+) with 4 levels x 5 trials, "
        r"(\S+) with 10 levels x 2 trials: to find a bad level buy trials",
        priced,
    )
    assert sorted(chances.groups(), reverse=True) == list(chances.groups())
    # Nobody samples more levels of a fault, but one that is worse may be looked for.
    assert "levels of fault" not in priced


@pytest.mark.usefixtures("fewer_suites")
@pytest.mark.parametrize("k", [2, pytest.param(5, marks=SAME_LAW)])
def test_a_difference_is_planned_for_the_number_that_was_asked_about(k):
    trials = simulate(tasks=10, runs=8, rate=0.8, seed=3)
    asked, one = (plan(trials, k=j, difference=0.2) for j in (k, 1))
    assert asked.assured_comparison.tasks != one.assured_comparison.tasks
    assert asked.assured_comparison.runs_of_each >= k
    assert f"20 points of pass^{k} on similar tasks" in asked.summary()
    # The formula is one of means: it is not given for another number.
    assert isinstance(asked.detectable, Unavailable)
    assert asked.tasks_for_difference is asked.runs_for_difference is None


@pytest.mark.usefixtures("fewer_suites")
def test_partial_credit_is_no_part_of_pass_hat_k():
    partial = simulate(tasks=10, runs=8, rate=0.8, seed=3, world=SimulationModel(partial=True))
    whole = Trials.from_columns(
        task=[one.task for one in partial],
        passed=[one.outcome.name == "PASSED" for one in partial],
    )
    for asked in ({}, {"difference": 0.2}):
        same = plan(partial, k=3, **asked), plan(whole, k=3, **asked)
        assert str(same[0]) == str(same[1])


def test_one_task_has_no_plan_of_pass_hat_k():
    with pytest.raises(ArgumentError, match="k must be 1 to plan for one task; gates can be"):
        plan(tasks=1, k=5)


@pytest.mark.usefixtures("fewer_suites")
def test_a_budget_is_told_in_the_widths_of_the_table():
    spending = Spending(max_cost=10, cost_per_run=0.05)
    for k in (1, 4):
        made = plan(tasks=10, k=k, spending=spending)
        (bought,) = [one for one in made.assured.designs if one.runs == 20]
        assert (
            f"±{100 * bought.this_suite:.1f}".removesuffix(".0")
            in made.summary().partition("\n\n")[0]
        )
    too_few = plan(tasks=10, k=4, spending=Spending(max_cost=1, cost_per_run=0.05))
    assert "2 of each of 10 tasks, too few for pass^4." in " ".join(too_few.summary().split())


@pytest.mark.usefixtures("fewer_suites")
def test_two_agents_at_seeds_are_told_apart_no_sooner_than_a_comparison_tells_them():
    trials = _moved("seed", 1)
    found = plan(trials, difference=0.1, runs=18)
    other = replace(trials, system=Categorical(("other",), trials.system.codes))
    row = compare(trials, other, ks=[1]).differences["pass^1"]
    half = row.tasks_like_these.interval.width / 2
    assert found.assured_comparison.detectable >= half
    assert found.detectable.value >= half
    assert isinstance(found.assured_comparison.runs, Unavailable)
    assert found.runs_for_difference.reason == "no number of trials at these 6 seeds would do"
    without = plan(replace(trials, seed=None), runs=18)
    assert found.detectable.value > without.detectable.value + 0.05
