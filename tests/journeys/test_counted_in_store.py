"""A huge stored run is reduced to counts inside the database, and reports the same numbers."""

import pytest

from passhat import journeys
from passhat.history import History
from passhat.journeys import results
from passhat.records import Outcome, Trial


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    sqlite = request.param == "sqlite"
    address = tmp_path / "h.db" if sqlite else request.getfixturevalue("new_database")()
    with History.open(address) as history:
        run = history.start_run("suite")
        history.add_trials(
            run,
            [
                Trial(
                    system="agent", task=f"t{i % 9}", trial=i // 9, outcome=Outcome(i % 5 > 0),
                    cost=i / 8, weight=1.0 + i % 9, family=f"f{i % 3}",
                )
                for i in range(180)
            ],
        )  # fmt: skip
        history.finish_run(run)
    return str(address)


def test_counts_made_in_the_store_give_the_numbers_of_its_trials(store, monkeypatch):
    read = journeys.report(store).systems[0]
    monkeypatch.setattr(results, "COUNTED_IN_STORE", 100)
    counted = journeys.report(store).systems[0]
    for k in (1, 2, 5):
        assert counted.pass_hat(k).this_suite == read.pass_hat(k).this_suite
        assert counted.pass_hat(k).tasks_like_these == read.pass_hat(k).tasks_like_these
    assert counted.features["cost"].mean == read.features["cost"].mean


def test_a_huge_run_is_never_read_as_rows(store, monkeypatch):
    monkeypatch.setattr(results, "COUNTED_IN_STORE", 100)
    monkeypatch.delattr(History, "trials")
    report = journeys.report(store, only=["agent"])
    assert report.systems[0].pass_hat(1).this_suite.value == pytest.approx(0.8)
