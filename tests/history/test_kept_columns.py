"""The trials of a large run are kept as columns too, and are the same trials."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.analysis.planning.simulate import simulate
from passhat.analysis.reports.measure import measure
from passhat.history import History
from passhat.history.queries import ended_trials, marks_of_tasks, outcomes_over_time
from passhat.history.store import pack_trials, unpack_trials
from passhat.journeys import stored_runs
from passhat.journeys.overview import ReportCache
from passhat.journeys.stored_runs import keep_answers, trials_in_columns
from passhat.records import Outcome, Trial, Trials
from passhat.records.labels import Label
from passhat.records.tally import Categorical
from passhat.stats import mean_intervals

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


def test_the_intervals_of_a_large_suite_are_computed_once_and_kept_to_the_last_digit(
    tmp_path, monkeypatch
):
    path = tmp_path / "history.db"
    with History.open(path) as history:
        run = history.start_run("large")
        history.add_trials(run, simulate(tasks=8, runs=130, seed=1))
        keep_answers(history, history.finish_run(run))
        trials = history.trials(run)
    monkeypatch.setattr(mean_intervals, "_given", {})
    alone = measure(trials).system()
    expected = dict(alone.metrics), alone.decay
    # Another process: what was computed is gone, and nothing may be computed again.
    monkeypatch.setattr(mean_intervals, "_given", {})
    monkeypatch.setattr(mean_intervals, "suite_bounds", None)
    reports = ReportCache(path, title="")
    with reports.open() as history:
        kept = reports.report(history, history.runs()[0]).system()
        assert (dict(kept.metrics), kept.decay) == expected


def test_intervals_that_were_not_kept_are_when_the_page_is_first_seen(tmp_path, monkeypatch):
    path = tmp_path / "history.db"
    with History.open(path) as history:
        run = history.start_run("large")
        history.add_trials(run, simulate(tasks=8, runs=130, seed=1))
        history.finish_run(run)
    seen = []
    for computed in (mean_intervals.suite_bounds, None):
        monkeypatch.setattr(mean_intervals, "_given", {})
        monkeypatch.setattr(mean_intervals, "suite_bounds", computed)
        reports = ReportCache(path, title="")
        with reports.open() as history:
            system = reports.report(history, history.runs()[0]).system()
        seen.append((dict(system.metrics), system.decay))
    assert seen[0] == seen[1]


def test_the_marks_of_a_thousand_tasks_take_few_statements(address, monkeypatch):
    with History.open(address) as history:
        run = history.start_run("wide")
        history.add_trials(run, simulate(tasks=1_000, runs=2, rate={"a": 0.6, "b": 0.5}, seed=2))
        run = history.finish_run(run)
        trials = history.trials(run)
        asked = [*trials.tasks, "no such task", "o\"'; --"]
        kind, statements = type(history.database), []
        plain = kind.execute

        def counted(self, sql, values=()):
            statements.append(sql)
            return plain(self, sql, values)

        monkeypatch.setattr(kind, "execute", counted)
        found = marks_of_tasks(history, run, "b", asked)
    assert len(statements) <= 3
    ended = {task: [] for task in asked}
    for one in trials:
        if one.system == "b":
            ended[one.task].append((one.trial + 1, one.trial, one.outcome))
    marks = {task: [(m.place, m.trial, m.outcome) for m in marks] for task, marks in found.items()}
    assert marks == {task: sorted(rows) for task, rows in ended.items()}


def test_outcomes_over_time_are_counted_as_by_hand(address):
    rng = np.random.default_rng(4)
    made = [
        Trial(system=system, task=f"t{i % 7}", trial=i, outcome=Outcome(int(rng.integers(3))))
        for i in range(31)
        for system in ("b", "a")
    ]
    with History.open(address) as history:
        run = history.start_run("s")
        history.add_trials(run, made)
        run = history.finish_run(run)
        found = outcomes_over_time(history, run, 5)
        ended = ended_trials(history, run)
    counts = {}
    for place, one in enumerate(ended):
        key = 5 * place // len(ended), one.system
        counts.setdefault(key, [0, 0, 0])[(1, 0, 2)[one.outcome]] += 1
    assert found == [(*key, *counts[key]) for key in sorted(counts)]
