"""The best of several systems: hopeless ones dropped, the same after a resume, from a log too."""

import random

import pytest

from passhat.analysis.gates.gate import BestOfRequirement, parse_gate
from passhat.analysis.gates.judge import judge
from passhat.analysis.gates.stopping import StoppingRule, replay_run
from passhat.errors import ArgumentError
from passhat.records import CommandSystem, Finished, Outcome, Pairing, Task, Trial, Trials

RATES = {"main": 0.7, "better": 0.9, "awful": 0.2}
TASKS = ("a", "b", "c", "d")


def rule_for(*gates, systems=tuple(RATES), runs=400):
    return StoppingRule(
        [
            Pairing(
                system=CommandSystem(name=name, argv=("agent",)),
                task=Task(name=task),
                runs=runs,
                label=f"{name} {task}",
            )
            for name in systems
            for task in TASKS
        ],
        gates,
        until_settled=True,
        seed=1,
    )


def trial_of(ticket, rates=RATES):
    chance = random.Random(f"{ticket.system} {ticket.task} {ticket.trial}").random()
    outcome = Outcome.PASSED if chance < rates[ticket.system] else Outcome.FAILED
    return Trial(system=ticket.system, task=ticket.task, trial=ticket.trial, outcome=outcome)


def drive(rule, *, at_once=1, rates=RATES):
    finished = []
    while batch := rule.next(at_once):
        for ticket in batch:
            finished.append(Finished(ticket=ticket, trial=trial_of(ticket, rates)))
            rule.observe(ticket, finished[-1].trial)
    return finished


def test_the_best_is_found_and_the_hopeless_cost_little():
    rule = rule_for("best_of by 0.1")
    finished = drive(rule)
    (verdict,) = rule.verdicts()
    assert (verdict.status, verdict.system) == ("PASS", "better")
    assert "dropped on the way: awful" in verdict.sentence
    runs = {name: sum(f.ticket.system == name for f in finished) for name in RATES}
    assert runs["awful"] < runs["better"] / 2
    assert verdict.runs <= len(finished)


def test_every_system_that_is_in_runs_the_same_draws():
    finished = drive(rule_for("best_of"))
    last = max(f.ticket.number for f in finished if f.ticket.system == "awful")
    early = [f.ticket for f in finished if f.ticket.number <= last]
    by_system = {name: [t.task for t in early if t.system == name] for name in RATES}
    assert by_system["main"] == by_system["better"][: len(by_system["main"])]


@pytest.mark.parametrize("at_once", [1, 7])
def test_the_verdict_is_the_same_at_any_concurrency_and_from_the_journal(at_once):
    rule = rule_for("best_of by 0.1")
    finished = drive(rule, at_once=at_once)
    alone = rule_for("best_of by 0.1")
    drive(alone)
    assert rule.verdicts()[0] == alone.verdicts()[0]
    again = replay_run(rule_for("best_of by 0.1"), [f.ticket for f in finished], finished)
    assert again[0] == rule.verdicts()[0]


def test_an_interrupted_contest_goes_on_where_it_stopped():
    whole = rule_for("best_of by 0.1")
    finished = drive(whole)
    cut = finished[: len(finished) // 2]
    resumed = rule_for("best_of by 0.1")
    resumed.restore([f.ticket for f in cut])
    for entry in cut:
        resumed.observe(entry.ticket, entry.trial)
    drive(resumed)
    assert resumed.verdicts()[0] == whole.verdicts()[0]


def test_a_named_system_that_is_dropped_fails_and_ends_the_run():
    rule = rule_for("awful: best_of")
    finished = drive(rule)
    (verdict,) = rule.verdicts()
    assert (verdict.status, verdict.system) == ("FAIL", "awful")
    assert "dropped as worse than others" in verdict.sentence
    assert len(finished) < len(drive(rule_for("best_of")))


def test_a_named_system_that_is_best_passes():
    rule = rule_for("better: best_of")
    drive(rule)
    assert rule.verdicts()[0].status == "PASS"


def test_too_few_runs_leave_it_undecided_and_say_who_is_in():
    rule = rule_for({"require": "best_of by 0.02", "max_runs": 30})
    drive(rule)
    (verdict,) = rule.verdicts()
    assert verdict.status == "UNDECIDED"
    assert "still in are" in verdict.sentence
    assert verdict.more_runs is None


def test_a_log_of_several_systems_is_judged_too():
    table = Trials.from_records(
        [
            trial_of(type("T", (), {"system": s, "task": t, "trial": n})())
            for s in RATES
            for t in TASKS
            for n in range(60)
        ],
        duplicates=None,
    )
    (verdict,) = judge(table, ["best_of by 0.1"], seed=3)
    assert (verdict.status, verdict.system) == ("PASS", "better")
    (short,) = judge(table.where(task="a"), ["best_of by 0.01"])
    assert short.status == "UNDECIDED"
    assert "the log has no more trials of task a" in short.sentence


def test_the_sentence_has_a_margin_of_its_own():
    assert parse_gate("best_of").demand == BestOfRequirement(margin=0.1)
    assert parse_gate("best of by 5%").demand == BestOfRequirement(margin=0.05)


@pytest.mark.parametrize(
    ("gate", "match"),
    [
        ("best_of by 0", "needs a margin between 0 and 1"),
        ({"require": "best_of", "evidence": "bound"}, "agents are dropped as trials come in"),
        ({"require": "best_of", "scope": "tasks like these", "evidence": "sequential"}, "not more"),
    ],
)
def test_what_cannot_be_asked_is_refused(gate, match):
    with pytest.raises(ArgumentError, match=match):
        parse_gate(gate)


def test_one_system_has_no_rivals():
    with pytest.raises(ArgumentError, match="two agents or more"):
        rule_for("best_of", systems=("main",))


@pytest.mark.parametrize(("shift", "word"), [(0.0, "PASS"), (-0.3, "FAIL")])
def test_equivalence_is_decided_run_by_run(shift, word):
    rates = {"main": 0.8, "new": 0.8 + shift}
    rule = rule_for("equivalent_to main by 0.15", systems=("main", "new"))
    finished = drive(rule, rates=rates)
    (verdict,) = rule.verdicts()
    assert (verdict.status, verdict.system, verdict.evidence) == (word, "new", "sequential")
    assert verdict.runs <= len(finished) < 2 * 400 * len(TASKS)


def test_an_indifference_beyond_the_margin_is_refused():
    gate = {"require": "equivalent_to main by 0.1", "indifference": 0.2}
    with pytest.raises(ArgumentError, match="at most the margin"):
        rule_for(gate, systems=("main", "new"))
