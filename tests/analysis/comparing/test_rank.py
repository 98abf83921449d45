from dataclasses import replace

import numpy as np
import pytest

from passhat import render_terminal
from passhat.analysis.comparing.ranking import rank
from passhat.analysis.planning.simulate import SimulationModel, simulate
from passhat.errors import ArgumentError
from passhat.records import Trials
from passhat.stats.estimate import Unavailable

TRIALS = simulate(tasks=50, runs=8, rate={"low": 0.3, "best": 0.9, "good": 0.88}, seed=1)


def test_systems_come_from_best_to_worst_with_the_ranks_they_may_have():
    found = rank(TRIALS)
    values = [system.value for system in found.systems]
    assert values == sorted(values, reverse=True)
    ranks = {system.name: system.ranks for system in found.systems}
    assert ranks == {"best": (1, 2), "good": (1, 2), "low": (3, 3)}


def test_a_tie_band_holds_those_that_cannot_be_told_apart():
    found = rank(TRIALS)
    assert {frozenset(band) for band in found.tie_bands} == {
        frozenset({"best", "good"}),
        frozenset({"low"}),
    }
    apart = {frozenset((pair.first, pair.second)): pair.told_apart for pair in found.pairs}
    assert apart[frozenset({"best", "good"})] is False
    assert apart[frozenset({"best", "low"})] is True


@pytest.mark.parametrize("metric", ["mean_score", "pass^3", "pass@3"])
def test_any_metric_can_be_ranked_by_and_its_value_is_the_metrics(metric):
    for system in rank(TRIALS, metric=metric).systems:
        assert system.value == system.metric.value


def test_only_tasks_that_all_ran_count_and_the_others_are_named():
    extra = Trials.from_columns(system=["best"] * 3, task=["more"] * 3, passed=[0, 0, 0])
    found = rank(Trials.concat([TRIALS, extra]))
    assert found.unshared == ("more",)
    assert [s.value for s in found.systems] == [s.value for s in rank(TRIALS).systems]


def test_equal_agents_are_all_tied():
    trials = simulate(tasks=40, runs=5, rate=[0.7] * 5, world=SimulationModel(shared=0.9), seed=3)
    found = rank(trials)
    assert len(found.tie_bands) == 1
    assert {system.ranks for system in found.systems} == {(1, 5)}


def test_too_few_shared_tasks_are_unavailable():
    trials = simulate(tasks=1, runs=5, rate=[0.5, 0.6])
    assert isinstance(rank(trials), Unavailable)


def test_one_system_cannot_be_ranked():
    with pytest.raises(ArgumentError, match="must hold at least two agents to rank"):
        rank(simulate(tasks=2, runs=2))


@pytest.mark.parametrize(
    "metric", ["pass", "pass^", "pass^x", "pass^²", "pass^" + "9" * 5000, "icc", "fail^2"]
)
def test_an_unknown_metric_is_refused(metric):
    with pytest.raises(ArgumentError, match="by must be mean_score, pass"):
        rank(TRIALS, metric=metric)


def _runs(**runs):
    rows = [
        (name, t, r) for name, counts in runs.items() for t, n in counts.items() for r in range(n)
    ]
    system, task, trial = zip(*rows, strict=True)
    passed = [(len(s) + r) % 2 for s, _, r in rows]
    return Trials.from_columns(system=system, task=task, trial=trial, passed=passed)


FOUR, ONCE = dict.fromkeys("xyz", 4), dict.fromkeys("xyz", 1)


@pytest.mark.parametrize("metric", ["pass^4", "pass@4"])
def test_a_system_without_k_runs_is_left_out_and_takes_no_task_from_the_others(metric):
    found = rank(_runs(a=FOUR, b=FOUR, c=ONCE), metric=metric)
    assert {one.name for one in found.systems} == {"a", "b"}
    assert [(one.name, one.reason) for one in found.unranked] == [
        ("c", f"1 trial of every task, so no {metric}")
    ]
    assert (found.tasks, found.unshared, found.scope) == (3, (), "tasks like these")
    alone = rank(_runs(a=FOUR, b=FOUR), metric=metric)
    assert [one.value for one in found.systems] == [one.value for one in alone.systems]


def test_a_system_with_k_runs_of_few_tasks_takes_none_from_those_with_k_of_most():
    few = {"x": 4, "y": 4, "z": 1, "w": 1, "v": 1}
    most = {"x": 4, "y": 4, "z": 4, "w": 1, "v": 4}
    found = rank(_runs(a=most, b=most, c=few), metric="pass^4")
    assert {one.name for one in found.systems} == {"a", "b"}
    assert (found.tasks, found.unshared) == (4, ("w",))
    assert [(one.name, one.reason) for one in found.unranked] == [
        ("c", "fewer than 4 trials of 3 of 5 tasks, so no pass^4")
    ]


def test_where_no_two_have_the_runs_of_most_tasks_those_with_any_are_ranked():
    some = {"x": 4, "y": 4, "z": 1, "w": 1, "v": 1}
    found = rank(_runs(a=some, b=some, c=ONCE), metric="pass^4")
    assert {one.name for one in found.systems} == {"a", "b"}
    assert found.unshared == ("z", "w", "v")


def test_a_ranking_of_fewer_than_two_names_who_is_in_the_way():
    found = rank(_runs(a=FOUR, b=ONCE, c={"x": 1, "y": 3}), metric="pass^4")
    assert found == Unavailable(
        "ranking by pass^4 needs two agents with 4 trials of a task; "
        "b has 1 trial of every task, c has at most 3 trials of any task"
    )


def test_tasks_without_the_runs_are_not_said_to_have_been_run_by_few():
    runs = {"a": {"x": 3, "y": 2, "z": 2}, "b": {"x": 3, "y": 3, "z": 2}, "c": {"x": 3, "y": 2}}
    assert rank(_runs(**runs), by="pass^3") == Unavailable(
        "ranking by pass^3 needs 2 tasks with 3 trials of every agent; there is 1 "
        "(pass^2 can be ranked by)"
    )
    assert rank(_runs(**runs), by="pass^2").tasks == 2
    apart = {"a": {"x": 3}, "b": {"x": 3, "y": 1}}
    assert rank(_runs(**apart)) == Unavailable(
        "ranking needs 2 tasks that every agent ran; there is 1"
    )


def test_metric_is_another_word_for_by():
    assert rank(TRIALS, by="pass^3") == rank(TRIALS, metric="pass^3")
    assert rank(TRIALS, by="pass^3").metric == "pass^3"


def test_one_that_has_k_runs_of_most_is_ranked_with_those_that_have_k_of_some():
    some = {"x": 4, "y": 4, "z": 1, "w": 1, "v": 1}
    most = dict.fromkeys("xyzwv", 4)
    found = rank(_runs(a=most, b=some, c=some), metric="pass^4")
    assert {one.name for one in found.systems} == {"a", "b", "c"}
    assert (found.tasks, found.unshared) == (2, ("z", "w", "v"))


def _coin_and_split():
    """One passes about half of the runs of every task, one all runs of half of the tasks."""
    rows = [("coin", f"t{t}", r, r < 2 + (t % 3 == 0)) for t in range(12) for r in range(4)]
    rows += [
        ("split", f"t{t}", r, t < 6 or (t == 7 and r < 1)) for t in range(12) for r in range(4)
    ]
    system, task, trial, passed = zip(*rows, strict=True)
    return Trials.from_columns(system=system, task=task, trial=trial, passed=passed)


@pytest.mark.parametrize(
    ("metric", "order"), [("pass^3", ["split", "coin"]), ("pass@3", ["coin", "split"])]
)
def test_order_ranks_and_differences_are_those_of_the_metric(metric, order):
    found = rank(_coin_and_split(), metric=metric)
    assert [one.name for one in found.systems] == order
    assert [one.ranks for one in found.systems] == [(1, 1), (2, 2)]
    values = {one.name: one.value for one in found.systems}
    (pair,) = found.pairs
    assert pair.value == pytest.approx(values[pair.first] - values[pair.second])


def test_tasks_are_matched_by_name_in_whatever_order_each_system_has_them():
    sides = [TRIALS.where(system=name) for name in TRIALS.systems]
    there = rank([side.tally() for side in sides])
    columns = {name: column[::-1] for name, column in sides[-1].to_columns().items()}
    turned = Trials.from_columns(columns).tally()
    assert turned.tasks == sides[-1].tasks[::-1]
    back = rank([*(side.tally() for side in sides[:-1]), turned])
    assert [(one.name, one.ranks) for one in back.systems] == [
        (one.name, one.ranks) for one in there.systems
    ]
    for one, other in zip(there.pairs, back.pairs, strict=True):
        assert one.interval.low == pytest.approx(other.interval.low)


@pytest.mark.parametrize("metric", ["mean_score", "pass^3", "pass@3"])
def test_an_outage_widens_a_ranking_as_it_widens_the_comparison_of_two(metric):
    rng = np.random.default_rng(5)
    rates = {"a": 0.85, "b": 0.85, "c": 0.4}
    rows = [
        {"system": name, "task": f"t{i}", "trial": trial, "passed": bool(rng.random() < rate)}
        for name, rate in rates.items()
        for i in range(40)
        for trial in range(8)
    ]
    calm = rank(Trials.from_records(rows), by=metric)
    broken = [
        {**row, "passed": row["passed"] and (row["system"], row["trial"]) != ("b", 4)}
        for row in rows
    ]
    struck = rank(Trials.from_records(broken), by=metric)
    widths = [
        {(pair.first, pair.second): pair.interval.high - pair.interval.low for pair in one.pairs}
        for one in (calm, struck)
    ]
    assert widths[1]["a", "c"] == pytest.approx(widths[0]["a", "c"])
    assert widths[1]["a", "b"] > (1 if metric == "pass@3" else 1.5) * widths[0]["a", "b"]
    assert all(-1 <= p.interval.low <= p.interval.high <= 1 for p in struck.pairs)
    assert sorted(system.name for system in struck.systems if system.ranks[0] == 1) == ["a", "b"]
    for pair in struck.pairs:
        assert pair.p_value >= 0.01 if 0 in pair.interval else pair.p_value < 0.05
    assert "b: Round 5 is out of line" in " ".join(struck.notes)
    assert "Note: b: Round 5 is out of line" in " ".join(render_terminal(struck).split())
    assert not [note for note in calm.notes if "out of line" in note]


def test_a_note_on_the_method_is_none_on_an_agent_whatever_it_begins_with():
    own, general = "best: round 5 is out of line", "good: what nobody says of an agent"
    notes = {"notes": (own, general), "agent_notes": (own,), "method_notes": (general,)}
    shown = " ".join(render_terminal(replace(rank(TRIALS), **notes)).split())
    assert own in shown
    assert general not in shown
