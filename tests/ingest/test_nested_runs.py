"""Rows that list the runs of their task are read as those runs."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.ingest import read_trials, read_with_transcripts
from passhat.records.trial import how_read

RUNS = st.lists(st.booleans(), min_size=1, max_size=4)


def rows_with(runs_of_tasks, key="trials"):
    """As harnesses write it: the runs of a task inside its row, beside their rate."""
    return [
        {
            "id": f"t{place}",
            "input": "a question",
            "k": len(runs),
            key: [{"trialNum": n, "pass": ok, "output": "x"} for n, ok in enumerate(runs, 1)],
            "passRate": sum(runs) / len(runs),
        }
        for place, runs in enumerate(runs_of_tasks)
    ]


def as_lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@given(tasks=st.lists(RUNS, min_size=2, max_size=4))
def test_each_listed_run_is_a_trial_in_lines_arrays_and_objects(tasks, counts_of):
    rows = rows_with(tasks)
    expected = {f"t{n}": (sum(runs), len(runs) - sum(runs)) for n, runs in enumerate(tasks)}
    whole = {"version": 1, "results": rows}
    for content in (as_lines(rows), json.dumps(rows).encode(), json.dumps(whole).encode()):
        assert counts_of(read_trials(content)) == expected


@pytest.fixture(scope="session")
def counts_of():
    def counted(trials):
        tally = trials.tally()
        return {
            task: (int(passed), int(failed))
            for task, passed, failed in zip(tally.tasks, tally.passed, tally.failed, strict=True)
        }

    return counted


@pytest.mark.parametrize("key", ["trials", "runs", "attempts", "rollouts"])
def test_the_list_may_be_called_in_several_ways(key):
    trials = read_trials(as_lines(rows_with([[True, False], [True, True]], key)))
    assert len(trials) == 4
    assert f'whose rows list runs ("{key}")' in how_read(trials.sources[0])


def test_what_the_row_sums_up_is_not_taken_for_each_run():
    row = {"task": "a", "passed": True, "score": 0.5, "runs": [{"passed": True}, {"passed": False}]}
    trials = read_trials(as_lines([row, {**row, "task": "b"}]))
    assert trials.outcome.tolist() == [1, 0, 1, 0]
    assert trials.score.tolist() == [1, 0, 1, 0]


def test_a_list_without_verdicts_is_no_list_of_runs():
    row = {"task": "a", "passed": True, "attempts": [{"action": "click"}, {"action": "type"}]}
    assert len(read_trials(as_lines([row, {**row, "task": "b"}]))) == 2


def test_the_words_of_each_run_stay_with_it():
    rows = rows_with([[True, False], [True]])
    rows[0]["trials"][1]["output"] = "the second"
    trials, said = read_with_transcripts(as_lines(rows))
    texts = [said["input", trial.task, trial.trial] for trial in trials]
    assert ["the second" in text for text in texts] == [False, True, False]


def test_a_row_of_totals_has_no_transcript():
    rows = b"task,passed,transcript\na,1,hello\nb,0,bye\nTotal,50%,\n"
    trials, said = read_with_transcripts(rows)
    assert trials.tasks == ("a", "b")
    assert len(said) == 2
