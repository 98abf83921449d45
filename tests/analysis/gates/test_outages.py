"""Outages in a run that its gates end: set aside, said, waited out, and the same after a resume."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from bench.calibrate.outages import drift_in_rounds_cell

from passhat.analysis.gates.judge import judge
from passhat.analysis.gates.stopping import StoppingRule, replay_run
from passhat.records import CommandSystem, Finished, Outcome, Pairing, Task, Trial, Trials

TASKS = ("a", "b", "c")
GATE = {"require": "pass_rate >= 0.8", "indifference": 0.15}


def rule_for(gates, *, runs=100, tasks=TASKS):
    agent = CommandSystem(name="agent", argv=("agent",))
    return StoppingRule(
        [Pairing(system=agent, task=Task(name=t), runs=runs, label=t) for t in tasks],
        gates,
        until_settled=True,
    )


def drive(rule, outcome_of, *, started_of=lambda number: None):
    """Runs one trial after another until the rule ends it; its tickets and results."""
    tickets, finished = [], []
    while batch := rule.next(1):
        (ticket,) = batch
        trial = Trial(
            system=ticket.system,
            task=ticket.task,
            trial=ticket.trial,
            outcome=outcome_of(ticket.number),
            started=started_of(ticket.number),
            seconds=1.0,
        )
        rule.observe(ticket, trial)
        tickets.append(ticket)
        finished.append(Finished(ticket=ticket, trial=trial))
    return tickets, finished


def down_from_10_to_24(number):
    return Outcome.ERRORED if 10 <= number < 25 else Outcome.PASSED


def test_an_outage_is_set_aside_and_the_verdict_says_which_runs():
    rule = rule_for([GATE])
    drive(rule, down_from_10_to_24)
    (verdict,) = rule.verdicts()
    assert verdict.status == "PASS"
    assert "16 trials of" in verdict.sentence
    assert "(11 to 26) were set aside as an outage" in verdict.sentence
    assert verdict.errors == "15 errored trials set aside"
    assert ": 17 of 17 trials passed;" in verdict.sentence
    aside = [step for step in verdict.steps if step.outcome.endswith("set aside")]
    assert [step.number for step in aside] == list(range(11, 27))
    assert len({step.log_pass for step in aside}) == 1


def test_a_replay_of_the_journal_says_the_same():
    rule = rule_for([GATE])
    tickets, finished = drive(rule, down_from_10_to_24)
    assert replay_run(rule_for([GATE]), tickets, finished)[0] == rule.verdicts()[0]


def test_a_broken_agent_fails_and_the_verdict_says_what_it_cannot_tell():
    rule = rule_for([GATE])
    tickets, _ = drive(rule, lambda number: Outcome.FAILED)
    (verdict,) = rule.verdicts()
    assert verdict.status == "FAIL"
    assert len(tickets) <= 26
    assert "an outage that lasts look the same" in verdict.sentence


EVERY_TASK = {"require": "every task: pass^2 >= 0.7", "max_runs": 50}
IN_ROUNDS = "pass^3 >= 0.8"
FIVE = ("a", "b", "c", "d", "e")


@pytest.mark.parametrize("rate", [0.03, 0.06, 0.1])
@pytest.mark.parametrize(
    ("gate", "runs"), [(EVERY_TASK, 10), (IN_ROUNDS, 7)], ids=["every task", "rounds"]
)
def test_an_agent_that_nearly_always_fails_has_its_fail(gate, runs, rate):
    """In 50 runs of an agent at 6% or 10%, a gate on every task was UNDECIDED in 12."""
    words, rng = [], np.random.default_rng(6)
    for _ in range(25):
        rule = rule_for([gate], runs=runs, tasks=FIVE)
        drive(rule, lambda _: Outcome.PASSED if rng.random() < rate else Outcome.FAILED)
        words.append(rule.verdicts()[0].status)
    assert words.count("FAIL") >= 24
    assert "PASS" not in words


def test_a_verdict_sets_aside_only_trials_of_its_own_that_it_does_not_count():
    """It counts its last trials, though later ones show that an outage had begun in them."""
    rule = rule_for([IN_ROUNDS], runs=7, tasks=FIVE)
    passes = {0, 2, 4, 6, 8, 34}
    tickets, _ = drive(rule, lambda n: Outcome.PASSED if n in passes else Outcome.FAILED)
    (verdict,) = rule.verdicts()
    assert len(tickets) == 35, "the failures waited for the pass that ended the outage"
    assert (verdict.status, verdict.runs) == ("FAIL", 15)
    assert "5 of 15 trials passed" in verdict.sentence
    assert "set aside" not in verdict.sentence


def test_a_short_run_in_which_everything_fails_is_a_fail():
    rule = rule_for(["pass_rate >= 0.8"], runs=4, tasks=("a", "b"))
    assert drive(rule, lambda number: Outcome.FAILED)
    assert rule.verdicts()[0].status == "FAIL"


def test_errors_are_what_a_gate_on_errors_is_about():
    rule = rule_for(["error_rate <= 0.05"])
    drive(rule, down_from_10_to_24)
    (verdict,) = rule.verdicts()
    assert verdict.status == "FAIL"
    assert "set aside" not in verdict.sentence


def test_a_gate_on_every_task_sets_an_outage_aside():
    gate = {"require": "every task: pass^1 >= 0.6", "indifference": 0.3}
    rule = rule_for([gate])
    drive(rule, down_from_10_to_24)
    (verdict,) = rule.verdicts()
    assert verdict.status == "PASS"
    assert "16 trials of" in verdict.sentence
    assert sum(task.runs for task in verdict.tasks) == verdict.runs - 16


def test_a_log_is_judged_with_the_same_guard():
    trials = Trials.from_columns(
        task=["a"] * 60, trial=range(60), passed=[not 10 <= n < 25 for n in range(60)]
    )
    (verdict,) = judge(trials, [{**GATE, "evidence": "sequential"}])
    assert verdict.status == "PASS"
    assert "were set aside as an outage" in verdict.sentence


def test_no_run_is_started_while_an_outage_may_pass():
    """The last failures ended a second ago, after a stretch of six seconds."""
    rule, now = rule_for([GATE]), datetime.now(UTC)

    def started_of(number):
        return (now - timedelta(seconds=8 - number)).isoformat()

    outcomes = [Outcome.PASSED] * 2 + [Outcome.FAILED] * 9
    tickets, _ = drive(rule, outcomes.__getitem__, started_of=started_of)
    assert 5 <= len(tickets) < 11, "it stops asking before the outcomes are used up"
    assert 0 < rule.pause_seconds < 20
    assert rule.next(4) == ()
    assert not rule.is_settled


def test_an_outage_of_long_ago_is_not_waited_for():
    def started_of(number):
        return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)).isoformat()

    rule = rule_for([GATE])
    drive(rule, down_from_10_to_24, started_of=started_of)
    assert rule.verdicts()[0].status == "PASS"


def test_a_drift_along_the_runs_is_said_in_the_verdict():
    rule = rule_for([{**GATE, "indifference": 0.05}], runs=400)
    # Good enough for 150 runs, then most fail.
    drive(rule, lambda n: Outcome.PASSED if (n % 7 if n < 150 else n % 4 == 0) else Outcome.FAILED)
    (verdict,) = rule.verdicts()
    assert "The pass rate changed during these trials, from" in verdict.sentence
    assert "not on the agent as it is now" in verdict.sentence


def test_the_calibration_counts_the_drifts_that_verdicts_tell():
    assert drift_in_rounds_cell(0.97, 0.4, 3)["outages"] > 0


def test_steady_runs_are_said_to_be_nothing_else():
    rng = np.random.default_rng(2)
    rule = rule_for([GATE], runs=400)
    drive(rule, lambda _: Outcome.PASSED if rng.random() < 0.9 else Outcome.FAILED)
    (verdict,) = rule.verdicts()
    assert "changed during" not in verdict.sentence
