"""What reviewers of a change read agrees with the verdicts, and everything is read once."""

import io

import pytest

import passhat
from passhat.analysis.planning.simulate import World, simulate
from passhat.history import History
from passhat.journeys import gate_results, review_change
from passhat.journeys.results import Results


@pytest.fixture
def results(tmp_path):
    """New results and a baseline, some of their trials errored."""
    for name, seed in (("new", 1), ("old", 2)):
        trials = simulate(tasks=10, runs=6, world=World(error_rate=0.1), seed=seed)
        passhat.write_trials(trials, tmp_path / f"{name}.jsonl")
    return tmp_path / "new.jsonl", tmp_path / "old.jsonl"


def test_results_that_can_be_read_only_once_are_reviewed_against_a_baseline(results, monkeypatch):
    new, old = results
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(new.read_bytes())))
    found = review_change("-", "pass^1 >= 0.1", against=old)
    again = review_change(new, "pass^1 >= 0.1", against=old)
    assert [one.sentence for one in found.judged] == [one.sentence for one in again.judged]
    assert found.report.system().metrics == again.report.system().metrics
    assert found.comparisons.keys() == {"agent"}


def test_the_rounds_and_the_errors_that_verdicts_leave_out_are_left_out_of_the_report(results):
    new, old = results
    some = Results(paths=(str(new),), drop_rounds=(2, 5))
    found = review_change(some, "pass^1 >= 0.1", against=old, errors="exclude")
    (system,) = found.report.systems
    assert system.design.most_runs == 4
    assert system.errors.policy == "exclude"
    assert found.judged[0].runs == system.tasks.runs.sum()
    assert found.comparisons["agent"].provenance.options.errors == "exclude"


def test_the_confidence_of_gates_is_not_that_of_the_report(results):
    found = review_change(results[0], "pass^1 >= 0.1", confidence=0.8, gate_confidence=0.99)
    assert found.judged[0].gate.alpha == 0.01
    assert found.report.provenance.options.confidence == 0.8


def test_a_stored_run_is_judged_without_the_rounds_to_drop(tmp_path):
    store = tmp_path / "history.db"
    trials = simulate(tasks=5, runs=6, seed=1)
    with History.open(store) as history:
        run = history.start_run("suite", started="2026-11-01T09:00:00.000+00:00")
        history.add_trials(run, trials)
        history.finish_run(run)
    whole, part = (
        gate_results(Results(paths=("latest",), store=store, drop_rounds=drop), "pass^1 >= 0.1")
        for drop in ((), (2,))
    )
    assert (whole[0].runs, part[0].runs) == (30, 25)
    assert "left out by request: round 2" in part[0].sentence
