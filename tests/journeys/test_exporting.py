"""Datasets: a run in many Parquet files, counted as one table."""

import pytest

from passhat.history import History
from passhat.ingest import read_tallies, read_trials, tallies
from passhat.journeys.exporting import export_dataset
from passhat.records import Outcome, Trial


@pytest.fixture
def exported(tmp_path):
    trials = [
        Trial(
            system=f"s{i % 3}", task=f"t{i % 7}", trial=i // 21, outcome=Outcome(i % 5 > 0),
            cost=i / 8,
        )
        for i in range(21 * 40)
    ]  # fmt: skip
    with History.open(tmp_path / "history.db") as history:
        run = history.start_run("my suite/1")
        history.add_trials(run, trials)
        files = export_dataset(history, run, tmp_path / "dataset", rows=100)
        yield trials, files, tmp_path / "dataset"


def test_a_run_is_exported_in_parts_that_hold_all_of_it(exported):
    trials, files, _ = exported
    assert len(files) == 9
    assert files[0].parent.name.startswith("run=")
    assert files[0].parent.parent.name == "suite=my-suite-1"
    found = [trial for file in files for trial in read_trials(file)]
    assert [(t.system, t.task, t.trial, t.outcome, t.cost) for t in found] == [
        (t.system, t.task, t.trial, t.outcome, t.cost) for t in trials
    ]


def test_a_dataset_is_counted_by_an_engine_as_its_trials_are(exported, monkeypatch):
    trials, _, folder = exported
    monkeypatch.setattr(tallies, "BIG_ROWS", 1)
    counted = tallies.count_big(folder)
    assert counted is not None
    for tally in counted:
        own = [trial for trial in trials if trial.system == tally.system]
        passed = dict.fromkeys(tally.tasks, 0)
        for trial in own:
            passed[trial.task] += trial.outcome is Outcome.PASSED
        assert dict(zip(tally.tasks, tally.passed.tolist(), strict=True)) == passed


def test_a_small_dataset_is_read_as_rows_with_the_same_counts(exported):
    trials, _, folder = exported
    assert sum(int(tally.passed.sum()) for tally in read_tallies(folder)) == sum(
        trial.outcome is Outcome.PASSED for trial in trials
    )
