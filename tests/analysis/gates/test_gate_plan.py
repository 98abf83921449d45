"""What a gate costs before any run, and pictures of verdicts."""

import pytest

from passhat import plan_gates
from passhat.analysis.gates.gate import parse_gate
from passhat.analysis.gates.gate_plan import plan_gate
from passhat.analysis.gates.judge import judge
from passhat.analysis.gates.plots import evidence_figure, plan_figure, tasks_figure
from passhat.analysis.planning.plan import plan
from passhat.analysis.planning.simulate import simulate
from passhat.errors import ArgumentError
from passhat.stats.estimate import Unavailable


def row_at(plan, truth):
    return next(row for row in plan.rows if row.truth == pytest.approx(truth))


def test_one_task_costs_what_wald_allows():
    """0.8 against 0.9: at most 70 and 86 runs on average, where a fixed design takes 135."""
    plan = plan_gate(parse_gate({"require": "pass^1 >= 0.8", "indifference": 0.1}))
    assert (plan.exact, plan.fixed_runs) == (True, 135)
    low, high = row_at(plan, 0.8), row_at(plan, 0.9)
    assert low.expected_runs <= 70
    assert high.expected_runs <= 86
    assert low.passes <= 0.05
    assert high.fails <= 0.05


def test_pass_hat_k_of_one_task_is_planned_on_its_own_scale():
    single = plan_gate(parse_gate({"require": "pass^1 >= 0.8", "indifference": 0.1}))
    cubed = plan_gate(parse_gate({"require": "pass^3 >= 0.512", "indifference": 0.9**3 - 0.8**3}))
    assert row_at(cubed, 0.512).expected_runs == pytest.approx(row_at(single, 0.8).expected_runs)


def test_a_suite_is_simulated_with_its_seed():
    gate = parse_gate({"require": "pass^1 >= 0.7", "indifference": 0.15})
    plan = plan_gate(gate, tasks=12, icc=0.7, repetitions=60, seed=3)
    assert not plan.exact
    assert plan == plan_gate(gate, tasks=12, icc=0.7, repetitions=60, seed=3)
    assert plan.worst_runs < plan.fixed_runs
    assert row_at(plan, 0.85).passes >= 0.8


def test_without_an_indifference_zone_the_threshold_itself_stays_open():
    plan = plan_gate("error_rate <= 0.05")
    assert row_at(plan, 0.05).undecided > 0.9
    assert row_at(plan, 0.0).passes == 1
    assert row_at(plan, 0.25).fails > 0.99


def test_every_task_and_paired_gates_can_be_planned():
    every = plan_gate(parse_gate({"require": "every task: pass^1 >= 0.6", "indifference": 0.2}),
                      tasks=3)  # fmt: skip
    assert every.exact
    assert row_at(every, 0.8).fails <= 0.05
    paired = plan_gate("no_worse_than main by 0.2", tasks=5, repetitions=40)
    assert row_at(paired, 0.0).passes >= 0.85
    assert row_at(paired, -0.2).passes <= 0.15


def test_a_plan_says_how_far_it_assumes_that_tasks_differ():
    (plan,) = plan_gates("pass^3 >= 0.8", icc=0.3)
    assert "Assumed: 20 tasks, 30% of the spread between them; one trial at a time." in str(plan)
    (exact,) = plan_gates("every task: pass^1 >= 0.8", tasks=3)
    assert "Assumed: 3 tasks; one trial at a time." in str(exact)


@pytest.mark.parametrize(
    ("demand", "most"),
    [
        ("pass^3 >= 0.8", 50),
        ("every task: pass^2 >= 0.7", 50),
        ("error_rate <= 0.05", 50),
        ("no_worse_than main by 0.2", 100),
    ],
)
def test_a_run_of_so_many_trials_of_each_task_can_be_planned(demand, most):
    (plan,) = plan_gates(demand, tasks=5, trials=10)
    assert plan.max_runs == most
    assert max(row.runs_95 for row in plan.rows) <= most


def test_what_cannot_be_watched_cannot_be_planned():
    with pytest.raises(ArgumentError, match="cannot be planned"):
        plan_gate("cost per success <= 1")
    with pytest.raises(ArgumentError, match="must leave room above"):
        plan_gate(parse_gate({"require": "pass^1 >= 0.95", "indifference": 0.1}))


def test_pictures_say_their_finding_and_hold_any_name():
    table = simulate(tasks=6, runs=30, seed=2, rate=0.8)
    watched = {"require": "pass^1 >= 0.5", "evidence": "sequential", "indifference": 0.2}
    for gate in ("pass^2 >= 0.5", watched, "p95(seconds) <= 1000"):
        verdict = judge(table, [gate])[0]
        figure = evidence_figure(verdict)
        assert figure.finding == verdict.sentence
        assert figure.svg().startswith("<svg")
    plan = plan_gate(parse_gate({"require": "pass^1 >= 0.8", "indifference": 0.1}))
    assert "at most" not in plan_figure(plan).finding
    assert "never more than 148" in plan_figure(plan).finding
    nothing = judge(table, ["variance_amplification <= 10"])[0]
    assert isinstance(evidence_figure(nothing), Unavailable)


def test_tasks_are_drawn_one_by_one_only_where_that_shows_more_than_passed_or_not():
    table = simulate(tasks=20, runs=4, seed=2, rate=0.6)
    every, some = judge(table, ["pass^4 >= 0.5", "pass^2 >= 0.5"])
    assert len(evidence_figure(every).rows) < len(evidence_figure(some).rows)
    counted = tasks_figure(every)
    (_, *rows) = counted.rows
    assert [row[0] for row in rows] == [f"{passed} of 4" for passed in range(5)]
    assert sum(row[1] for row in rows) == 20
    assert counted.title == f"{20 - rows[-1][1]} of 20 tasks did not pass every trial"


@pytest.mark.parametrize(
    ("gate", "tasks"), [("pass^999999999 >= 0.99999999", 1), ("pass^3 >= 0.8", 10**9)]
)
def test_a_plan_that_would_take_terabytes_is_refused(gate, tasks):
    with pytest.raises(ArgumentError, match=r"cannot be planned: k is above|can be planned up to"):
        plan_gate(gate, tasks=tasks)
    with pytest.raises(ArgumentError, match="can be planned up to 10,000, got 1000000000"):
        plan(tasks=10**9)
