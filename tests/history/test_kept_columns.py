"""The trials of a large run are kept as columns too, and are the same trials."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.analysis.planning.simulate import simulate
from passhat.history import History
from passhat.history.store import pack_trials, unpack_trials
from passhat.journeys import stored_runs
from passhat.journeys.overview import ReportCache
from passhat.journeys.stored_runs import keep_answers, trials_in_columns
from passhat.records import Outcome, Trial, Trials
from passhat.records.labels import Label
from passhat.records.tally import Categorical

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)
NUMBERS = st.none() | st.floats(0, 1e9)
DRAWN = {
    **dict.fromkeys(("system", "task"), WORDS),
    **dict.fromkeys(("error", "family", "started", "level", "base"), st.none() | WORDS),
    **dict.fromkeys(("cost", "seconds", "turns", "tool_calls"), NUMBERS),
    **dict.fromkeys(("tokens", "tokens_in", "tokens_out"), NUMBERS),
    **dict.fromkeys(("tools", "tags"), st.lists(WORDS, max_size=2).map(tuple)),
    "trial": st.integers(0, 9),
    "outcome": st.sampled_from(Outcome),
    "score": st.floats(0, 1),
    "seed": st.none() | st.integers(0, 2**62),
    "stated_confidence": st.none() | st.floats(0, 1),
    "weight": st.none() | st.floats(0.01, 100),
    "at": st.sampled_from([(), ("user=terse",), ("mood=é", "user=a=b")]),
}
assert DRAWN.keys() == {field.name for field in fields(Trial)}, "a new field is drawn as well"
RECORDS = st.builds(Trial, **DRAWN)


def same(one, other):
    for name in (field.name for field in fields(Trials)):
        a, b = getattr(one, name), getattr(other, name)
        if isinstance(a, Categorical):
            assert a.names == b.names
            a, b = a.codes, b.codes
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        elif name == "features":
            assert a.keys() == b.keys()
            for key in a:
                np.testing.assert_array_equal(a[key], b[key])
        else:
            assert a == b


@settings(max_examples=50)
@given(st.lists(RECORDS, min_size=1, max_size=8))
def test_columns_hold_every_trial_as_it_was(records):
    trials = Trials.from_records(records, duplicates=None)
    same(trials, unpack_trials(pack_trials(trials), trials.sources))


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(stored_runs, "KEPT_IN_COLUMNS", 10)


def test_what_a_page_reads_is_what_the_rows_say_also_with_labels(address, few_are_many):
    with History.open(address) as history:
        run = history.start_run("suite")
        history.add_trials(run, simulate(tasks=6, runs=5, rate={"a": 0.9, "b": 0.4}, seed=3))
        run = history.finish_run(run)
        keep_answers(history, run)
        assert history.query("SELECT count(*) FROM kept WHERE kind = 'trials'")[1] == [(1,)]
        label = Label(passed=True, by="ann", at="2026-11-17")
        history.add_labels(run, {("a", "task-1", 0): [label]})
        same(history.trials(run), trials_in_columns(history, run))
        tallies, counted = (
            ReportCache(address, title="x").tallies(history, run),
            history.tallies(run),
        )
        assert [one.system for one in tallies] == [one.system for one in counted]
        for one, other in zip(tallies, counted, strict=True):
            assert one.tasks == other.tasks
            for name in ("passed", "failed", "errored", "score_total", "score_squares"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_columns_that_are_not_of_this_state_of_the_run_or_are_damaged_are_not_read(
    address, few_are_many
):
    with History.open(address) as history:
        run = history.start_run("suite")
        history.add_trials(run, simulate(tasks=6, runs=5, seed=3))
        run = history.finish_run(run)
        keep_answers(history, run)
        with history.writing():
            history.database.execute("UPDATE kept SET body = ? WHERE kind = 'trials'", (b"x",))
        same(history.trials(run), trials_in_columns(history, run))
        history.reopen_run(run)
        more = Trial(system="agent", task="late", trial=0, outcome=Outcome.PASSED)
        history.add_trials(run, [more], first_sequence=30)
        run = history.finish_run(run)
        assert "late" in trials_in_columns(history, run).tasks
