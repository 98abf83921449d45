"""Labels in the store: beside the trial, one of each person, and no part of what a run sealed."""

import pytest

from passhat.errors import HistoryError
from passhat.history import History
from passhat.ingest import ColumnMap, read_trials
from passhat.journeys import store_results
from passhat.records import Outcome, Trial
from passhat.records.labels import Label

KEY = ("bot", "refund", 0)


@pytest.fixture
def stored(address):
    with History.open(address) as history:
        run = history.start_run("s")
        trials = [
            Trial(system="bot", task="refund", trial=i, outcome=Outcome.PASSED) for i in (0, 1)
        ]
        history.add_trials(run, trials)
        yield history, history.finish_run(run)


def test_a_label_is_kept_beside_its_trial_and_the_run_is_still_what_was_sealed(stored):
    history, run = stored
    label = Label(passed=False, by="ann", at="2026", note="no", chosen="verdict", chance=0.5)
    history.add_labels(run, {KEY: [label]})
    history.verify(run, whole=True)
    assert history.labels(run) == {KEY: (label,)}
    assert history.trials(run).labels() == {KEY: (label,)}


def test_a_person_who_says_something_else_later_replaces_only_their_own_label(stored):
    history, run = stored
    for by, passed in (("ann", True), ("ben", True), ("ann", False)):
        chosen = "task" if passed else None  # how it was chosen is kept when it is labelled again
        history.add_labels(run, {KEY: [Label(passed=passed, by=by, at="2026", chosen=chosen)]})
    said = {one.by: (one.passed, one.chosen) for one in history.labels(run)[KEY]}
    assert said == {"ann": (False, "task"), "ben": (True, "task")}


def test_a_label_of_no_trial_is_refused_and_none_of_its_batch_is_kept(stored):
    history, run = stored
    batch = {KEY: [Label(passed=True)], ("bot", "refund", 9): [Label(passed=True)]}
    with pytest.raises(HistoryError, match="has no trial 9 of bot at refund; no label was kept"):
        history.add_labels(run, batch)
    assert history.labels(run) == {}


def test_labels_go_with_their_run(stored):
    history, run = stored
    history.add_labels(run, {KEY: [Label(passed=True)]})
    history.delete(run)
    assert history.query("SELECT count(*) FROM labels")[1] == [(0,)]


def test_labels_of_a_table_are_stored_with_its_trials_and_half_a_run_is_not_kept(
    tmp_path, monkeypatch
):
    table, store = tmp_path / "graded.csv", tmp_path / "history.db"
    table.write_text("task,trial,passed,human\na,0,1,1\na,1,1,0\nb,0,0,\nb,1,1,\n")
    labelled = ColumnMap(human_labels="human", label_chosen="random")
    trials = read_trials(table, mapping=labelled)
    assert [one.outcome.name for one in trials] == ["PASSED", "PASSED", "FAILED", "PASSED"]
    stored = store_results(trials, suite="s", store=store)
    with History.open(store, read_only=True) as history:
        assert len(history.labels(stored.run)) == 2
    monkeypatch.setattr(History, "add_labels", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store_results(trials, suite="s", store=store)
    with History.open(store, read_only=True) as history:
        assert [run.key for run in history.runs()] == [stored.run.key]
