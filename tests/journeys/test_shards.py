"""Parts of one run, made apart and put together."""

import pytest

from passhat import journeys
from passhat.errors import ArgumentError, HistoryError
from passhat.history import History
from passhat.journeys.run_store import merge_shards

COIN = """
name: coin
seed: 7
systems:
  - {name: agent, model: scripted, script: [{answer: "yes", weight: 2}, {answer: "no"}]}
defaults: {expect: [{contains: "yes"}], runs: 11}
tasks: [{name: a, prompt: "?"}, {name: b, prompt: "??"}, {name: c, prompt: "???"}]
"""


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "suite.yml"
    path.write_text(COIN)
    return path


def shard(suite, number, of, **more):
    store = suite.parent / f"part{number}.db"
    journeys.run(suite, store=store, shard=f"{number}/{of}", **more)
    return store


def outcomes(trials):
    return {(t.system, t.task, t.trial): t.outcome for t in trials}


def test_shards_put_together_are_the_run_that_one_process_makes(suite, tmp_path):
    whole = journeys.run(suite, store=tmp_path / "whole.db")
    merged = merge_shards([shard(suite, i, 4) for i in (1, 2, 3, 4)], tmp_path / "all.db")
    assert (merged.run.status, merged.missing) == ("finished", ())
    with History.open(tmp_path / "all.db") as history:
        trials = history.trials(merged.run)
        assert outcomes(trials) == outcomes(whole.trials)
        numbers = [trial.trial for trial in trials]
        assert numbers == sorted(numbers)
        first = next(iter(trials))
        assert history.transcript(merged.run, first.system, first.task, first.trial)


def test_a_shard_judges_nothing(suite, tmp_path):
    assert not journeys.run(suite).passed  # some trials fail, and there is no gate
    part = journeys.run(suite, store=tmp_path / "part.db", shard="1/2")
    assert part.passed
    assert part.why_not_passed is None


def test_missing_shards_are_named(suite, tmp_path):
    merged = merge_shards([shard(suite, i, 4) for i in (1, 3)], tmp_path / "all.db")
    assert (merged.run.status, merged.missing) == ("interrupted", (2, 4))


def test_a_shard_that_comes_twice_is_refused_and_nothing_is_kept(suite, tmp_path):
    part = shard(suite, 1, 2)
    with pytest.raises(HistoryError, match="two of these shards have the same trial"):
        merge_shards([part, part], tmp_path / "all.db")
    with History.open(tmp_path / "all.db") as history:
        assert history.runs() == []


def test_shards_of_different_requests_are_refused(suite, tmp_path):
    parts = [shard(suite, 1, 2), shard(suite, 2, 2, seed=8)]
    with pytest.raises(HistoryError, match="are shards of different runs"):
        merge_shards(parts, tmp_path / "all.db")


def test_a_gate_that_decides_on_the_way_cannot_be_split(suite):
    with pytest.raises(ArgumentError, match="cannot go with `until_settled`"):
        shard(suite, 1, 2, until_settled=True, require=["pass^1 >= 0.5"])


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/0"])
def test_a_shard_is_a_part_of_a_whole(suite, text):
    with pytest.raises(ArgumentError, match=r"^shard must be a part such as 3/10"):
        journeys.run(suite, shard=text)
