"""Folding trials together: in whatever parts they come, the numbers are those of the whole."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.analysis.reports.measure import measure
from passhat.history import History
from passhat.ingest import read_tallies, write_trials
from passhat.records import Outcome, Trial, Trials, merge_tallies


def made(size: int) -> list[Trial]:
    """Trials with errors, features that some lack, families and weights."""
    return [
        Trial(
            system=f"s{i % 2}",
            task=f"t{i * i % 7}",
            trial=i,
            outcome=Outcome(i * i % 3),
            cost=i / 7 if i % 3 else None,
            seconds=0.1 * i,
            family=f"f{i * i % 7 % 2}",
            weight=1.0 + i * i % 7,
        )
        for i in range(size)
    ]


def assert_same(found, expected):
    """Counts are equal; sums agree to the digits that do not depend on the order of adding."""
    assert sorted(tally.system for tally in found) == sorted(t.system for t in expected)
    wanted = {tally.system: tally for tally in expected}
    for tally in found:
        other = wanted[tally.system]
        assert set(tally.tasks) == set(other.tasks)
        place = [other.tasks.index(task) for task in tally.tasks]
        for name in ("passed", "failed", "errored"):
            assert (getattr(tally, name) == getattr(other, name)[place]).all()
        for name in ("score_total", "score_squares", "weight"):
            np.testing.assert_allclose(
                getattr(tally, name), getattr(other, name)[place], rtol=1e-11
            )
        assert tally.family == tuple(other.family[i] for i in place)
        assert set(tally.features) == set(other.features)
        for name, sums in tally.features.items():
            assert (sums.count == other.features[name].count[:, place]).all()
            for part in ("total", "squares"):
                theirs = getattr(other.features[name], part)[:, place]
                np.testing.assert_allclose(getattr(sums, part), theirs, rtol=1e-11)


def tallies_of(trials):
    table = Trials.from_records(trials, duplicates=None)
    return [table.tally(system) for system in table.systems]


@given(cuts=st.lists(st.integers(0, 60), max_size=6), seed=st.integers(0, 99))
def test_parts_in_any_number_and_order_fold_to_the_whole(cuts, seed):
    trials = made(60)
    np.random.default_rng(seed).shuffle(trials)
    edges = [0, *sorted(cuts), 60]
    parts = [trials[a:b] for a, b in pairwise(edges) if a < b]
    assert_same(merge_tallies(t for part in parts for t in tallies_of(part)), tallies_of(trials))


@given(cut=st.integers(1, 59))
def test_a_report_on_folded_counts_states_the_numbers_of_a_report_on_all(cut):
    trials = [t for t in made(60) if t.system == "s0"]
    parts = [part for part in (trials[:cut], trials[cut:]) if part]
    folded = measure(merge_tallies(t for part in parts for t in tallies_of(part)))
    whole = measure(tallies_of(trials))
    for k in (1, 2):
        ours, theirs = (report.systems[0].pass_hat(k).this_suite for report in (folded, whole))
        assert ours == theirs


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    if request.param == "sqlite":
        return tmp_path / "history.db"
    return request.getfixturevalue("new_database")()


def test_a_store_counts_as_its_trials_do_whenever_new_ones_come(address):
    trials = made(90)
    with History.open(address) as history:
        run = history.start_run("suite")
        for first in range(0, 90, 30):
            history.add_trials(run, trials[first : first + 30], first_sequence=first)
            assert_same(history.tallies(run, features=True), tallies_of(trials[: first + 30]))


def test_files_that_are_added_to_a_folder_are_folded_in(tmp_path, monkeypatch):
    monkeypatch.setattr("passhat.ingest.tallies.BIG_ROWS", 1)
    trials = [replace(trial, family=None, weight=None) for trial in made(90)]
    for first in range(0, 90, 30):
        part = trials[first : first + 30]
        write_trials(Trials.from_records(part), tmp_path / f"part-{first}.parquet")
        found = {tally.system: tally for tally in read_tallies(tmp_path)}
        for expected in tallies_of(trials[: first + 30]):
            tally = found[expected.system]
            place = [expected.tasks.index(task) for task in tally.tasks]
            assert (tally.passed == expected.passed[place]).all()
            assert (tally.errored == expected.errored[place]).all()
