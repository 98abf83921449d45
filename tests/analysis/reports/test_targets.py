import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.analysis.gates.gate import parse_gate
from passhat.analysis.gates.judge import judge
from passhat.analysis.planning.simulate import SimulationModel, simulate
from passhat.analysis.reports.measure import measure
from passhat.analysis.reports.targets import METRIC_FORMS, parse_target, targets
from passhat.records import Trials
from passhat.stats.estimate import Estimate, Unavailable


def test_the_sources_names_are_there_on_their_own_scale():
    trials = Trials.from_columns(task=["a"] * 4, passed=[1, 1, 1, 0])
    found = targets(measure(trials))
    assert [found[f"decay[{k}]"] for k in (1, 2, 3, 4)] == [100, 100, 100, 31]
    assert found["graceful_degradation"] == 60
    flipping = Trials.from_columns(task=["a"] * 4, passed=[1, 0, 1, 0])
    assert targets(measure(flipping))["variance_amplification"] == 100


def test_what_a_suite_may_demand_is_listed():
    world = SimulationModel(error_rate=0.1, seeds=5)
    found = targets(measure(simulate(tasks=6, runs=6, world=world, seed=1)))
    for name in (
        "pass^3",
        "pass@1",
        "reliability@5",
        "mean_score",
        "error_rate",
        "icc",
        "cost.per_success",
        "cost.per_streak[5]",
        "seconds.p95",
        "tasks.flaky",
        "tasks[task-1].rate",
        "rounds.population_sd",
        "seed_variance",
    ):
        assert name in found
        assert isinstance(found[name], (Estimate, Unavailable, float, int))


def test_reliability_is_the_suites_pass_hat():
    found = targets(measure(simulate(tasks=6, runs=6, seed=1)))
    assert found["reliability@3"] == found["pass^3"]


def test_a_scope_may_be_chosen():
    report = measure(simulate(tasks=6, runs=6, seed=1))
    here, there = (targets(report, scope=s) for s in ("this suite", "tasks like these"))
    assert here["pass^2"].scope == "this suite"
    assert there["pass^2"].scope == "tasks like these"
    assert here["pass^2"].value == there["pass^2"].value


def test_several_systems_are_told_apart_by_name():
    report = measure(simulate(tasks=3, runs=3, rate={"x": 0.5, "y": 0.6}))
    found = targets(report, tasks=False)
    assert found["x: pass^2"] == targets(report.system("x"))["pass^2"]
    assert not any(".rate" in name for name in found)


def test_a_task_with_too_few_runs_says_so():
    trials = Trials.from_columns(task=["a", "a", "a", "b"], passed=[1, 1, 0, 1])
    found = targets(measure(trials, ks=[3]))
    assert found["tasks[b].pass^3"] == Unavailable("pass^3 needs 3 trials; b has 1")


def a_table_with_everything() -> Trials:
    trials = simulate(tasks=6, runs=20, world=SimulationModel(error_rate=0.1, seeds=5), seed=1)
    under = [
        *[()] * 10,
        *[(f"{factor}=all",) for factor in ("fault", "environment", "wording")] * 4,
    ]
    return Trials.from_records(
        replace(
            trial,
            tags=(
                "hard, [odd]: >= 1" if trial.task.endswith("1") else "easy",
                f"step-{'passed' if trial.outcome == 1 else 'failed'}:book [it]: > 1",
                "constraint:low" if trial.trial % 4 == 0 else "constraint:kept",
            ),
            level="first" if trial.task < "task-3" else "second",
            tools=("get weather (v2)",) if trial.trial % 3 else (),
            at=under[trial.trial],
            stated_confidence=0.25 + trial.trial / 40,
        )
        for trial in trials
    )


@pytest.fixture(scope="module")
def everything():
    """Trials that have everything, and their report."""
    trials = a_table_with_everything()
    return trials, measure(trials, bars=0.5)


def test_every_number_that_is_listed_can_be_gated(everything):
    _, report = everything
    listed = targets(report)
    assert len(listed) > 150
    for name, value in listed.items():
        target = parse_gate(f"{name} >= 0").demand.target
        assert target.name == re.sub(r"^reliability@", "pass^", name)
        assert target.value_in(report.system(), "this suite") == value or "association" in name


def test_every_form_is_listed_where_the_trials_have_it(everything):
    listed = targets(everything[1])
    found = {parse_target(name).form.pattern for name in listed}
    assert found == {form.pattern for form in METRIC_FORMS} - {"reliability@{k}"}


@pytest.mark.parametrize(
    "fifth",
    [0, *(pytest.param(n, marks=pytest.mark.slow("a report for each")) for n in range(1, 5))],
)
def test_a_listed_number_of_each_form_gets_a_verdict_and_never_no_such_number(everything, fifth):
    trials, report = everything
    listed = targets(report)
    first_of_form = {parse_target(name).form.pattern: name for name in reversed(listed)}
    gates = [f"{name} >= 0" for name in [*first_of_form.values()][fifth::5]]
    for verdict in judge(trials, gates, bars=0.5):
        assert "have no" not in verdict.sentence


def test_numbers_of_several_systems_can_be_gated_as_they_are_listed():
    trials = simulate(tasks=3, runs=3, rate={"x: 1": 0.5, "y": 0.6}, seed=1)
    listed = targets(measure(trials), tasks=False)
    for name in listed:
        gate = parse_gate(f"{name} >= 0")
        assert gate.system in ("x: 1", "y")
    (verdict,) = judge(trials, ["y: pass^2 >= 0.1"])
    assert verdict.system == "y"


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("Reliability@5", "pass^5"),
        ("pass_rate", "pass^1"),
        ("Mean Score", "mean_score"),
        ("P99( cost )", "cost.p99"),
        ("median(turns)", "turns.median"),
        ("tokens_in per_success", "tokens_in.per_success"),
        ("selection rate( get_weather )", "selection_rate(get_weather)"),
    ],
)
def test_names_may_be_written_in_words(spelling: str, name: str):
    assert str(parse_target(spelling)) == name


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("PFE", min_size=1, max_size=8), min_size=1, max_size=4))
def test_a_tasks_own_order_numbers_are_those_of_a_suite_of_that_task(sequences):
    rows = [
        {"task": f"t{i}", "trial": j, "outcome": {"P": 1, "F": 0, "E": 2}[run]}
        for i, runs in enumerate(sequences)
        for j, run in enumerate(runs)
    ]
    columns = {name: [row[name] for row in rows] for name in ("task", "trial", "outcome")}
    trials = Trials.from_columns(columns)
    for errors in "fail", "exclude":
        whole = targets(measure(trials, errors=errors))
        for task in trials.tasks:
            alone = targets(measure(trials.where(task=task), errors=errors))
            for name in ("variance_amplification", "graceful_degradation", "decay[1]", "decay[3]"):
                own = whole.get(f"tasks[{task}].{name}")
                assert own is None or own == alone[name]
                assert own is not None or not isinstance(alone.get(name), float)
