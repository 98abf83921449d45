"""What reviewers of a change read agrees with the verdicts, and everything is read once."""

import io

import pytest

import passhat
from passhat import journeys
from passhat.analysis.planning.simulate import SimulationModel, simulate
from passhat.errors import ArgumentError
from passhat.history import History
from passhat.journeys import review_change
from passhat.journeys.gating import JudgedResults
from passhat.journeys.results import Results


@pytest.fixture
def results(tmp_path):
    """New results and a baseline, some of their trials errored."""
    for name, seed in (("new", 1), ("old", 2)):
        trials = simulate(tasks=10, runs=6, world=SimulationModel(error_rate=0.1), seed=seed)
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
        journeys.gate(Results(paths=("latest",), store=store, drop_rounds=drop), "pass^1 >= 0.1")
        for drop in ((), (2,))
    )
    assert (whole[0].runs, part[0].runs) == (30, 25)
    assert "left out by request: round 2" in part[0].sentence


@pytest.fixture
def two_stored_runs(tmp_path):
    """A store with two tagged runs, and a file of each."""
    store = tmp_path / "history.db"
    with History.open(store) as history:
        for name, seed, runs in (("main", 2, 4), ("topic", 1, 6)):
            trials = simulate(tasks=5, runs=runs, seed=seed)
            day = f"2026-11-0{seed}T09:00:00.000+00:00"
            run = history.start_run("suite", started=day)
            history.add_trials(run, trials)
            history.finish_run(run)
            history.tag(run, name)
            passhat.write_trials(trials, tmp_path / f"{name}.jsonl")
    return store


@pytest.mark.parametrize(("drop", "left"), [((2,), 3), ((2, 5), 3), ((5,), 4)])
def test_a_stored_baseline_loses_the_same_rounds_as_a_file_does(two_stored_runs, drop, left):
    notes = []
    judged = Results(
        paths=("topic",), store=two_stored_runs, drop_rounds=drop, on_note=notes.append
    )
    file = two_stored_runs.parent / "main.jsonl"
    (kept,) = {
        JudgedResults(judged, name).baseline(name, "against").outcome.tobytes()
        for name in ("main", str(file))
    }
    assert len(kept) == 5 * left
    assert (left < 4) == any("in the baseline, left out by request" in note for note in notes)


def test_a_baseline_of_which_nothing_would_be_left_is_named(two_stored_runs):
    judged = Results(paths=("topic",), store=two_stored_runs, drop_rounds=(1, 2, 3, 4))
    with pytest.raises(ArgumentError, match="must leave some of the 4 rounds of the baseline, got"):
        journeys.gate(judged, against="main")


def test_a_baseline_without_one_of_the_groups_is_compared_by_the_shares_of_the_judged(tmp_path):
    rows = "task,trial,passed,tags\na,1,1,x\na,2,1,x\nb,1,1,x\nb,2,0,x\n"
    (tmp_path / "old.csv").write_text(rows)
    (tmp_path / "new.csv").write_text(rows + "c,1,0,y\nc,2,0,y\n")
    new = Results(paths=(str(tmp_path / "new.csv"),), shares={"x": 0.9, "y": 0.1})
    demand = "no_worse_than old.csv by 0.3"
    assert journeys.gate(new, demand, against=tmp_path / "old.csv")[0].status == "UNDECIDED"


STOPPED = "The verdict has no known error rate: its gates decide when the run ends"


@pytest.fixture
def until_settled(tmp_path, monkeypatch):
    """A run that its gate ended, kept in history.db."""
    monkeypatch.chdir(tmp_path)
    script = "[{answer: sure, weight: 9}, {answer: no idea, weight: 1}]"
    (tmp_path / "suite.yml").write_text(
        "defaults: {runs: 100}\n"
        f"systems: [{{name: a, model: scripted, script: {script}}}]\n"
        "tasks: [{name: t, prompt: hi, expect: [{contains: sure}]}]\n"
        "gates: [pass^1 >= 0.6, pass@1 >= 0.3]\n"
    )
    return passhat.run("suite.yml", store="history.db", until_settled=True)


def test_bounds_on_a_run_that_its_gates_ended_promise_no_error_rate(until_settled, tmp_path):
    passhat.write_trials(until_settled.trials, "trials.jsonl")
    (tmp_path / "report.json").write_text(str(passhat.render(until_settled.report, "json")))
    store = Results(paths=("latest",), store="history.db")
    for results in (until_settled.trials, store, "history.db", "trials.jsonl", "report.json"):
        verdicts = journeys.gate(results, "pass^1 >= 0.5")  # another gate than those that ended it
        (verdict,) = verdicts
        assert (verdict.status, verdict.alpha, verdict.beta) == ("PASS", None, None)
        assert STOPPED in verdict.sentence
        assert "fixed number of trials" in verdict.notes[-1]
        for kind in ("text", "json", "markdown", "html", "junit"):
            shown = str(passhat.render(verdicts, kind))
            assert "its gates decide when the run ends" in " ".join(shown.split()), kind
            assert "wrong pass at most" not in shown.lower()


def test_sequential_evidence_keeps_its_error_rates_on_a_run_that_its_gates_ended(until_settled):
    for verdict in (
        *until_settled.verdicts,
        *journeys.gate(until_settled.trials, "pass^1 >= 0.6", evidence="sequential"),
        *journeys.gate("history.db", "pass^1 >= 0.6"),  # the very gate that ended it
        *journeys.gate(Results(paths=("latest",), store="history.db"), suite="suite.yml"),
    ):
        assert (verdict.status, verdict.alpha, verdict.beta) == ("PASS", 0.05, 0.05)
        assert STOPPED not in verdict.sentence


def test_a_baseline_that_its_gates_ended_leaves_a_comparison_without_error_rates(until_settled):
    fixed = passhat.Trials.from_columns(task=["t"] * 80, passed=[True] * 80)
    (verdict,) = journeys.gate(fixed, "no_worse_than old by 0.2", against=until_settled.trials)
    assert STOPPED in verdict.sentence
    (verdict,) = journeys.gate(fixed, "no_worse_than old by 0.2", against=fixed)
    assert STOPPED not in verdict.sentence


def test_a_gate_that_takes_the_runs_others_asked_for_promises_no_error_rate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yml").write_text(
        "defaults: {runs: 40}\n"
        "systems: [{name: a, model: scripted, script: [{answer: sure}]}]\n"
        "tasks:\n"
        "  - {name: t, prompt: hi, expect: [{contains: sure}]}\n"
        "  - {name: u, prompt: hi, expect: [{contains: sure}]}\n"
        "gates:\n"
        "  - pass^1 >= 0.6\n"
        "  - {require: pass^1 >= 0.05, scope: tasks like these}\n"
        "  - {require: pass^1 >= 0.5, evidence: bound}\n"
    )
    answer = passhat.run("suite.yml", store=None, until_settled=True)
    assert [verdict.alpha for verdict in answer.verdicts] == [0.05, None, 0.05]
    assert STOPPED in answer.verdicts[1].sentence
