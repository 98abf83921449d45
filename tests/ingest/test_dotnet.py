"""NUnit's XML and .trx: each test that ran is a trial, and an unknown ending is refused."""

from pathlib import Path

import pytest

from passhat.errors import ReadError
from passhat.ingest import read_trials
from passhat.records import Outcome

SAMPLES = Path(__file__).parents[1] / "samples" / "handmade" / "dotnet"

# Passed, failed and errored tests of each file, counted by hand.
COUNTED = {"run.trx": (3, 2, 1), "nunit3.xml": (2, 1, 1), "nunit2.xml": (1, 1, 1)}


@pytest.mark.parametrize("name", COUNTED)
def test_every_test_that_ran_is_a_trial_that_ended_as_the_report_counts(name):
    trials = read_trials(SAMPLES / name)
    ended = trials.outcome.tolist()
    kinds = (Outcome.PASSED, Outcome.FAILED, Outcome.ERRORED)
    assert tuple(ended.count(kind) for kind in kinds) == COUNTED[name]
    assert "Agent.Tests.Later" not in trials.tasks
    assert any("1 skipped test is no trial" in note for note in trials.sources[0].notes)


def test_rows_of_data_are_trials_and_what_sums_them_up_is_none():
    trials = read_trials(SAMPLES / "run.trx")
    assert trials.task.texts().count("Agent.Tests.Cancel") == 2
    assert trials.to_columns()["seconds"][:2] == [1.5, 2.25]
    assert trials.to_columns()["error"][1] == "Assert.Equal() Failure"


def test_the_reason_of_a_skipped_test_is_no_error_of_the_one_before():
    assert read_trials(SAMPLES / "nunit3.xml").to_columns()["error"][:3] == [
        None,
        "Expected: 20",
        None,
    ]


@pytest.mark.parametrize(
    ("report", "fault"),
    [
        (b'<test-run><test-case name="a" result="Odd"/></test-run>', 'line 1: "Odd" does not say'),
        (b'<test-run><test-case name="a"/></test-run>', '"" does not say how a test ended'),
        (b"<test-run><test-suite>", "not valid XML"),
        (b"<!DOCTYPE x><test-run></test-run>", "has a DOCTYPE"),
        (b"<test-run>" + b"<a>" * 2_000, "nested too deeply"),
        (b"<test-run></test-run>", "holds no trial"),
    ],
)
def test_what_does_not_say_how_tests_ended_is_refused(report, fault):
    with pytest.raises(ReadError, match=fault):
        read_trials(report)


def test_reports_of_both_kinds_are_found_in_a_folder():
    assert len(read_trials(SAMPLES).systems) == len(COUNTED)
