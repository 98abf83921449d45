"""Recovery from faults: the same tasks with and without them."""

import pytest

from passhat.analysis.gates.run_answer import measure_recovery
from passhat.records import Trials
from passhat.stats.estimate import Unavailable


def table(clean, faulty, tags=None):
    """Trials of tasks a and b: passes of each in ten runs."""
    rows = {"system": [], "task": [], "passed": [], "tags": [], "at": []}
    for fault, passes in (("none", clean), ("all", faulty)):
        for task, passed in zip("ab", passes, strict=True):
            for run in range(10):
                rows["system"].append("bot")
                rows["task"].append(task)
                rows["at"].append((f"fault={fault}",))
                rows["passed"].append(run < passed)
                struck = tags and fault == "all" and run >= 5
                rows["tags"].append(tags if struck else ())
    return Trials.from_columns(rows)


def test_the_score_is_the_ratio_of_the_two_pass_rates():
    (found,) = measure_recovery(table((10, 8), (6, 3)), ks=[1])
    (level,) = found.levels
    assert level.without.value == pytest.approx(0.9)
    assert level.under.value == pytest.approx(0.45)
    assert level.score.value == pytest.approx(0.5)
    assert level.score.value in level.score.interval


def test_an_agent_that_nothing_disturbs_recovers_fully():
    (found,) = measure_recovery(table((9, 9), (9, 9)), ks=[1, 3])
    assert [level.score.value for level in found.levels] == [1.0, 1.0]


def test_kinds_and_reactions_are_counted_over_the_trials_they_struck():
    tags = ("fault:timeout", "after-fault:gave up")
    (found,) = measure_recovery(table((10, 10), (7, 5), tags), ks=[1])
    assert (found.struck, found.trials) == (10, 20)
    (kind,) = found.kinds
    assert (kind.kind, kind.trials) == ("timeout", 10)
    assert kind.rate.value == pytest.approx(0.2)
    (reaction,) = found.reactions
    assert (reaction.reaction, reaction.trials) == ("gave up", 10)
    assert reaction.share.value == 1.0
    assert reaction.rate.value == pytest.approx(0.2)


def test_only_tasks_that_were_run_both_ways_are_compared():
    trials = table((10, 0), (5, 5))
    kept = trials.take(trials.task.codes != trials.task.code("b [fault=none]"))
    (found,) = measure_recovery(kept, ks=[1])
    assert found.tasks == 1
    assert found.levels[0].score.value == pytest.approx(0.5)


def test_where_nothing_passes_without_faults_there_is_no_score():
    (found,) = measure_recovery(table((0, 0), (0, 0)), ks=[1])
    assert isinstance(found.levels[0].score, Unavailable)


def test_systems_that_were_run_one_way_only_have_no_recovery():
    trials = table((1, 1), (1, 1))
    assert measure_recovery(trials.take(trials.has_word("at", "fault=all"))) == ()


def test_recovery_compares_a_task_with_itself_where_users_and_wordings_vary_too():
    """Cells with another user, whom no fault struck, are not what faults are held against."""
    cells = {
        "a": (("user=kind", "fault=none"), 8),
        "a [user=terse]": (("user=terse", "fault=none"), 0),
        "a [fault=all]": (("user=kind", "fault=all"), 4),
    }
    rows = [(task, at, i < passes) for task, (at, passes) in cells.items() for i in range(8)]
    task, at, passed = zip(*rows, strict=True)
    table = Trials.from_columns(task=task, base=["a"] * len(rows), at=at, passed=passed)
    (recovery,) = measure_recovery(table, ks=[1])
    assert (recovery.tasks, recovery.trials) == (1, 8)
    assert recovery.levels[0].without.value == 1
    assert recovery.levels[0].score.value == 0.5
