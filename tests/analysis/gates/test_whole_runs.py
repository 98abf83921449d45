"""Whole runs, through the real runner: the verdict does not depend on how it is driven."""

import pytest
from bench.calibrate.whole_runner import (
    ONE_TASK,
    SUITE,
    Setting,
    allowed,
    drive,
)

from passhat.analysis.gates.stopping import StoppingRule, replay_run
from passhat.history import History, RunJournal
from passhat.records import Behaviour, Expectation, Model, ModelSystem, Pairing, Suite, Task
from passhat.runner import run_trials

REPETITIONS = 40


@pytest.mark.parametrize(
    "interrupted",
    [False, pytest.param(True, marks=pytest.mark.slow("begins every run again and again"))],
)
def test_concurrency_and_crashes_change_no_verdict(interrupted):
    for seed in range(6 if interrupted else 3):
        plain = drive(ONE_TASK, [0.85], Setting(concurrency=1), seed=seed)
        for concurrency in (8, 64):
            setting = Setting(concurrency=concurrency, interrupted=interrupted)
            other = drive(ONE_TASK, [0.85], setting, seed=seed)
            assert (other.status, other.evidence) == (plain.status, plain.evidence)


@pytest.mark.slow("simulates an error rate")
def test_errors_among_many_hands_and_crashes_keep_the_error_rates():
    """A short form of the table in docs/explanation/calibration.md."""
    setting = Setting(concurrency=8, interrupted=True, errors=True)
    at_low = [drive(ONE_TASK, [0.8], setting, seed=seed) for seed in range(REPETITIONS)]
    at_high = [drive(ONE_TASK, [0.9], setting, seed=seed) for seed in range(REPETITIONS)]
    wrong = (
        sum(outcome.status == "PASS" for outcome in at_low) / REPETITIONS,
        sum(outcome.status == "FAIL" for outcome in at_high) / REPETITIONS,
    )
    assert max(wrong) <= allowed(0.05, REPETITIONS)
    evidence = [sum(o.evidence for o in side) / REPETITIONS for side in (at_low, at_high)]
    assert max(evidence) < 135


def test_a_suite_is_settled_the_same_way_at_any_concurrency():
    rates = [1.0] * 14 + [0.6, 0.5, 0.5, 0.4, 0.2, 0.1]
    plain = drive(SUITE, rates, Setting(concurrency=1), seed=1)
    many = drive(SUITE, rates, Setting(concurrency=64, interrupted=True), seed=1)
    assert (many.status, many.evidence) == (plain.status, plain.evidence)
    assert plain.paid < 625


def scripted_suite():
    answers = (Behaviour(answer="yes", weight=7), Behaviour(answer="no"))
    system = ModelSystem(name="agent", model=Model(name="scripted", script=answers))
    return Suite(
        name="scripted",
        seed=4,
        pairings=tuple(
            Pairing(
                system=system,
                task=Task(
                    name=name,
                    prompt="Well?",
                    expect=(Expectation(matcher="exact", value="yes"),),
                ),
                runs=3,
                label=name,
            )
            for name in ("first", "second", "third")
        ),
    )


def test_a_stored_run_of_the_scripted_model_is_judged_again_from_its_journal(tmp_path):
    """Twice the same run, and once from what the history kept: the same evidence each time."""
    suite, gates = scripted_suite(), [{"require": "pass^2 >= 0.5", "indifference": 0.2}]
    verdicts = []
    with History.open(tmp_path / "history.db") as history:
        for hands in (1, 8):
            journal = RunJournal(history, history.start_run(suite.name))
            rule = StoppingRule(suite.pairings, gates, until_settled=True, seed=suite.seed)
            run_trials(suite, stopping_rule=rule, journal=journal, concurrency=hands)
            fresh = StoppingRule(suite.pairings, gates, until_settled=True, seed=suite.seed)
            again = replay_run(fresh, journal.launched(), journal.finished())
            assert again[0].steps == rule.verdicts()[0].steps
            assert again[0].sentence == rule.verdicts()[0].sentence
            verdicts.append(rule.verdicts()[0])
    assert {verdict.status for verdict in verdicts} == {"PASS"}
