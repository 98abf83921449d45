"""The whole answer, on runs made by hand and on a published log with known right calls."""

import json
from pathlib import Path

import pytest

from passhat import Trials, read_with_transcripts
from passhat.analysis.explaining.explain import explain
from passhat.analysis.explaining.run_diff import divergences, first_difference
from passhat.analysis.explaining.runs import (
    ExplainedRun,
    compared_runs,
    explained_runs,
    normalized_calls,
)
from passhat.errors import ArgumentError
from passhat.records import Outcome
from passhat.records.transcript import Call, Transcript, Turn

WRITES = frozenset(
    {"book_reservation", "cancel_reservation", "send_certificate"}
    | {f"update_reservation_{what}" for what in ("flights", "baggages", "passengers")}
)


@pytest.fixture(scope="module")
def airline():
    shared = Path(__file__).parents[3].parent / "shared" / "samples" / "tau_bench"
    if not shared.is_dir():
        pytest.skip("published result files are not beside this checkout (../shared/samples)")
    return shared / "gpt-4o-airline.json"


@pytest.fixture(scope="module")
def explained(airline):
    return explain(*read_with_transcripts(airline))


@pytest.fixture(scope="module")
def right_calls(airline):
    """The calls that change something which tau-bench expects, as a run, by task."""
    found = {}
    for entry in json.loads(airline.read_text()):
        actions = entry["info"]["task"]["actions"]
        calls = tuple(
            Call(name=one["name"], arguments=json.dumps(one["kwargs"]))
            for one in actions
            if one["name"] in WRITES
        )
        said = Transcript(messages=(Turn(role="assistant", calls=calls),))
        found[str(entry["task_id"])] = ExplainedRun(
            system="truth",
            task=str(entry["task_id"]),
            trial=0,
            outcome=Outcome.PASSED,
            calls=normalized_calls(said),
            transcript=said,
        )
    return found


def test_tau_bench_airline_three_tools_are_named(explained):
    told = [
        (one.tool, one.failing, one.failing_of, one.passing, one.passing_of, one.tasks)
        for one in explained.causes
    ]
    assert told == [
        ("cancel_reservation", 9, 11, 0, 13, 6),
        ("update_reservation_flights", 7, 8, 0, 8, 4),
        ("send_certificate", 5, 6, 0, 10, 4),
    ]
    assert explained.causes[0].p < 0.01
    assert explained.causes[2].p < 0.05


def test_tau_bench_airline_every_run_counted_as_departing_departs_from_the_truth(
    airline, right_calls
):
    """A tool that is named, checked run by run against the calls that tau-bench expects."""
    compared = compared_runs(explained_runs(*read_with_transcripts(airline)))
    import numpy as np

    from passhat.analysis.explaining.run_diff import departures
    from passhat.stats.multiple_testing import shuffled_in_strata

    rng = np.random.default_rng(0)
    shuffled = shuffled_in_strata(compared.failed, compared.stratum, shuffles=499, rng=rng)
    for found in departures(compared, shuffled)[:3]:
        for run in found.runs:
            mine = sorted(c.key for c in run.calls if c.worked and c.tool == found.tool)
            right = sorted(c.key for c in right_calls[run.task].calls if c.tool == found.tool)
            assert mine != right


def test_tau_bench_airline_the_first_difference_is_right_in_53_of_56_runs(airline, right_calls):
    compared = compared_runs(explained_runs(*read_with_transcripts(airline)))
    found = [one for one in divergences(compared) if one.kind != "no difference"]
    right = 0
    for one in found:
        truth = first_difference(one.run, right_calls[one.run.task], WRITES)
        right += (one.kind, one.tool) == (truth.kind, truth.tool)
    assert (right, len(found)) == (53, 56)


def test_tau_bench_airline_every_run_is_counted_once(explained):
    counts = explained.counts
    assert (counts.runs, counts.failed, counts.errored) == (200, 116, 0)
    assert (counts.mixed_tasks, counts.failing, counts.passing) == (26, 60, 44)
    assert (counts.never_passed_tasks, counts.never_passed_runs) == (14, 56)
    assert sum(one.count for one in explained.categories) == 116
    assert sum(one.count for one in explained.divergences) == 60
    assert len(explained.review.never_pass) == 14


def test_the_same_seed_gives_the_same_answer(airline):
    trials, said = read_with_transcripts(airline)
    one, other = (explain(trials, said, shuffles=199, seed=3) for _ in range(2))
    assert one.causes == other.causes


def test_without_transcripts_it_says_how_many_runs_have_none():
    table = Trials.from_columns(task=["a"] * 4, passed=[True, False] * 2)
    found = explain(table, {})
    assert found.counts.without_transcript == 4
    assert not found.could_name
    assert found.causes == ()


def test_an_empty_table_has_an_empty_answer():
    found = explain(Trials.from_columns(task=[], outcome=[]), {})
    assert (found.categories, found.causes, found.counts.runs) == ((), (), 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha must lie strictly between 0 and 1"),
        ({"shuffles": 10}, "shuffles must be a whole number >= 199"),
        ({"confidence": 1}, "confidence must lie strictly"),
    ],
)
def test_what_is_outside_its_rule_is_refused(options, message):
    table = Trials.from_columns(task=["a"], passed=[True])
    with pytest.raises(ArgumentError, match=message):
        explain(table, {}, **options)


def test_what_is_no_table_is_refused():
    with pytest.raises(ArgumentError, match="trials must be Trials"):
        explain([1, 2], {})
    with pytest.raises(ArgumentError, match="transcripts must be texts by"):
        explain(Trials.from_columns(task=["a"], passed=[True]), ["words"])
