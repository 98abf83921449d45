"""`passhat history search`: over a store and over the dataset that was exported from it."""

import json

import pytest
from click.testing import CliRunner

from passhat.cli import main
from passhat.errors import ArgumentError, ReadError
from passhat.history import History
from passhat.ingest import read_with_transcripts, tallies
from passhat.journeys import results, search_transcripts
from passhat.journeys.history import export_dataset
from passhat.records import Outcome, Trial

SIZE = 60


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "sqlite":
        return tmp_path / "history.db"
    return request.getfixturevalue("new_database")()


@pytest.fixture
def kept(store, tmp_path):
    """Two runs; in each third trial of the first somebody speaks of a refund."""
    trials = [
        Trial(system=f"s{i % 2}", task=f"t{i % 5}", trial=i // 10, outcome=Outcome(i % 2))
        for i in range(SIZE)
    ]
    keys = [(one.system, one.task, one.trial) for one in trials]
    words = ["A refund\x1b[2J, please." if i % 3 == 0 else "Hello." for i in range(SIZE)]
    said = {key: json.dumps({"answer": text}) for key, text in zip(keys, words, strict=True)}
    with History.open(store) as history:
        first, second = history.start_run("shop"), history.start_run("shop")
        for run in (first, second):
            history.add_trials(run, trials)
        history.add_transcripts(first, said)
        history.tag(first, "baseline")
        export_dataset(history, first, tmp_path / "dataset", rows=25, transcripts=True)
    asked = {key for i, key in enumerate(keys) if i % 3 == 0}
    return store, tmp_path / "dataset", asked, first.key


def found_in(matches):
    return {(one.system, one.task, one.trial) for one in matches.matches}


def test_a_match_in_a_store_has_the_number_that_reports_and_diff_use(kept):
    (first, *_) = search_transcripts("refund", store=kept[0]).matches
    assert first.number == first.trial + 1  # these trials count from 0


def test_store_and_dataset_give_the_same_trials(kept):
    store, dataset, asked, run = kept
    for where in ({"store": store}, {"dataset": dataset}):
        matches = search_transcripts("REFUND", limit=100, **where)
        assert found_in(matches) == asked
        assert {one.run for one in matches.matches} == {run}
        assert (matches.read, matches.more) == (SIZE, False)


@pytest.mark.parametrize("place", ["store", "dataset"])
def test_a_search_is_narrowed_by_run_agent_task_and_outcome(kept, place):
    store, dataset, asked, run = kept
    where = {"store": store} if place == "store" else {"dataset": dataset}
    wanted = {"run": run, "only": "s1", "task": "t1", "outcome": Outcome.PASSED}
    matches = search_transcripts("refund", **wanted, limit=100, **where)
    assert found_in(matches) == {key for key in asked if key[:2] == ("s1", "t1")}
    assert not search_transcripts("refund", only="s1", outcome="failed", **where).matches


def test_a_search_ends_at_its_limit_and_says_so(kept):
    matches = search_transcripts("refund", store=kept[0], limit=2)
    assert len(matches.matches) == 2
    assert matches.more
    assert matches.read < SIZE


def test_a_page_over_a_dataset_has_the_words_of_its_trials(kept):
    trials, said = read_with_transcripts(kept[1])
    assert len(trials) == len(said) == SIZE
    assert sum("refund" in text for text in said.values()) == len(kept[2])


def test_of_a_huge_dataset_the_first_failures_are_read_and_no_more(kept, monkeypatch, tmp_path):
    store, dataset, _, run = kept
    monkeypatch.setattr(tallies, "BIG_ROWS", 1)
    monkeypatch.setattr(results, "COUNTED_IN_STORE", 1)
    of_dataset = results.Results(paths=(str(dataset),)).counts_with_failures()
    of_store = results.Results(paths=(str(store),), run=run).counts_with_failures()
    assert of_dataset is not None
    assert of_store is not None
    # Even trials failed: s0 alone, five tasks, the first three of each.
    chosen = {("s0", f"t{task}", trial) for task in range(5) for trial in range(3)}
    assert set(of_dataset[1].transcripts) == set(of_store[1].transcripts) == chosen
    assert of_dataset[1].first_trial == of_store[1].first_trial == 0
    page = tmp_path / "page.html"
    told = CliRunner().invoke(main, ["report", str(dataset), "--transcripts", "-o", str(page)])
    assert told.exit_code == 0
    assert "15 transcripts: the first failures of each task" in told.stderr
    assert "refund" in page.read_text()


def test_the_command_shows_nothing_that_steers_a_terminal(kept):
    told = CliRunner().invoke(
        main, ["history", "search", "refund", "--store", str(kept[0]), "--limit", "1"]
    )
    assert told.exit_code == 0
    assert "\x1b" not in told.stdout
    assert "The first 1 trial with 'refund'" in told.stdout
    assert "answer: A refund\\x1b[2J, please." in told.stdout


def test_the_command_prints_json(kept):
    told = CliRunner().invoke(
        main, ["history", "search", "refund", str(kept[1]), "--json", "--limit", "100"]
    )
    data = json.loads(told.stdout)
    assert data["schema"] == "passhat.search/1"
    assert len(data["matches"]) == len(kept[2])


def test_transcripts_go_to_a_folder_only(kept, tmp_path):
    file = str(tmp_path / "trials.csv")
    told = CliRunner().invoke(
        main, ["history", "export", "latest", file, "--transcripts", "--store", str(kept[0])]
    )
    assert told.exit_code == 2
    assert "exported to a folder" in told.stderr


def test_exporting_again_without_transcripts_removes_them(kept, tmp_path):
    store, dataset, _, run = kept
    with History.open(store, read_only=True) as history:
        export_dataset(history, history.find_run(run), dataset, rows=25)
    assert not list(dataset.rglob("_transcripts"))
    with pytest.raises(ReadError, match="holds no transcripts"):
        search_transcripts("refund", dataset=dataset)


def test_a_dataset_that_is_no_folder_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="must be a folder or an address"):
        search_transcripts("refund", dataset=tmp_path / "none")
