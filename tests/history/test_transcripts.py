"""Transcripts of a run, read a few at a time, in SQLite and in PostgreSQL."""

import pytest

from passhat.history import History
from passhat.history.queries import (
    BATCH,
    all_transcripts,
    each_transcript,
    failures_of_run,
    transcripts_of,
)
from passhat.records import Outcome, Trial

SIZE = 2 * BATCH + 50


@pytest.fixture
def kept(address):
    """A run in which every trial but each seventh has a transcript."""
    trials = [
        Trial(system=f"s{i % 2}", task=f"t{i % 3}", trial=i // 6, outcome=Outcome(i % 3 % 2))
        for i in range(SIZE)
    ]
    said = {
        (one.system, one.task, one.trial): f"words {i}"
        for i, one in enumerate(trials)
        if i % 7
    }  # fmt: skip
    with History.open(address) as history:
        run, other = history.start_run("suite"), history.start_run("suite")
        for one in (run, other):
            history.add_trials(one, trials)
        history.add_transcripts(run, said)
        history.add_transcripts(other, {next(iter(said)): "of another run"})
        yield history, run, trials, said


def test_every_transcript_is_read_once_with_the_outcome_of_its_trial(kept):
    history, run, trials, said = kept
    found = list(each_transcript(history, run))
    assert {one.key: one.text for one in found} == said
    assert len(found) == len(said)
    outcomes = {(one.system, one.task, one.trial): one.outcome for one in trials}
    assert all(one.outcome is outcomes[one.key] for one in found)
    assert all_transcripts(history, run) == said


def test_transcripts_of_one_system_and_task_are_read_alone(kept):
    history, run, _, said = kept
    found = {one.key: one.text for one in each_transcript(history, run, system="s1", task="t2")}
    assert found == {key: text for key, text in said.items() if key[:2] == ("s1", "t2")}
    assert not list(each_transcript(history, run, task="unknown"))


def test_transcripts_of_given_trials_come_in_their_order(kept):
    history, run, trials, said = kept
    keys = [(one.system, one.task, one.trial) for one in reversed(trials)]
    assert list(transcripts_of(history, run, keys)) == [(k, said[k]) for k in keys if k in said]


def test_of_each_task_the_first_failures_are_chosen(kept):
    history, run, trials, said = kept
    failed = [(one.system, one.task, one.trial) for one in trials if one.outcome is Outcome.FAILED]
    expected = {}
    for pair in dict.fromkeys(key[:2] for key in failed):
        first = [key for key in failed if key[:2] == pair][:2]
        expected |= {key: said[key] for key in first if key in said}
    assert failures_of_run(history, run, most=2) == expected
