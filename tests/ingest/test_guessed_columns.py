"""Columns of less usual names are taken by what they hold, only where nothing better is there."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import ReadError
from passhat.ingest import ColumnMap, read_trials
from passhat.records.trial import how_read

TASKS = ["id", "name", "question", "prompt", "puzzle_id", "eval_id", "nodeid", "input"]
VERDICTS = ["ok", "match", "accuracy", "grade", "exact_match", "tests_passed", "oracle_ok"]
RUNS = st.lists(st.tuples(st.sampled_from(["q1", "q2"]), st.booleans()), min_size=1, max_size=6)


@settings(max_examples=60)
@given(task=st.sampled_from(TASKS), verdict=st.sampled_from(VERDICTS), runs=RUNS)
def test_a_guess_says_what_naming_the_columns_says_and_says_that_it_is_one(task, verdict, runs):
    content = json.dumps([{task: name, verdict: ok} for name, ok in runs]).encode()
    guessed = read_trials(content)
    named = read_trials(content, mapping=ColumnMap(task=task, passed=verdict))
    for one, two in zip(guessed, named, strict=True):
        assert (one.task, one.trial, one.outcome) == (two.task, two.trial, two.outcome)
    assert f'task = column "{task}", as nothing better is there' in how_read(guessed.sources[0])


@settings(max_examples=30)
@given(task=st.sampled_from(TASKS), verdict=st.sampled_from(VERDICTS))
def test_a_usual_name_is_always_better_than_a_guess(task, verdict):
    row = {task: "x", verdict: True, "task_id": "a", "passed": False}
    trials = read_trials(json.dumps([row]).encode())
    assert (trials.tasks, trials.outcome.tolist()) == (("a",), [0])


def test_two_columns_that_group_rows_differently_are_asked_about():
    rows = [{"id": n, "question": f"q{n // 2}", "correct": True} for n in range(4)]
    with pytest.raises(ReadError, match="several may: say `task='id'`, `task='question'`"):
        read_trials(json.dumps(rows).encode())
    rows = [{"task": "a", "ok": True, "match": False}]
    with pytest.raises(ReadError, match="several may: say `passed='ok'`, `passed='match'`"):
        read_trials(json.dumps(rows).encode())


@pytest.mark.parametrize(
    "row",
    [
        {"task": "a", "accuracy": 0.4},  # a mean
        {"task": "a", "grade": "B+"},
        {"task": "a", "tests_passed": 3, "tests_total": 4},
        {"id": [1], "passed": True},
        {"name": "x", "version": 3},
    ],
)
def test_a_column_without_the_shape_is_no_guess(row):
    with pytest.raises(ReadError, match=r"no column|not a file|which columns\?"):
        read_trials(json.dumps([row, row]).encode())


def test_an_id_that_is_another_in_every_row_is_no_task_where_runs_are_numbered():
    rows = [{"id": n, "trial": n, "passed": True} for n in range(3)]
    with pytest.raises(ReadError, match="no column says which task"):
        read_trials(json.dumps(rows).encode())


def test_beside_known_results_nothing_is_guessed(tmp_path):
    (tmp_path / "meta.json").write_text('{"name": "my eval", "status": "success"}')
    (tmp_path / "runs.csv").write_text("task,passed\na,1\nb,0\n")
    assert len(read_trials(tmp_path)) == 2
    (tmp_path / "runs.csv").unlink()
    assert read_trials(tmp_path).tasks == ("my eval",)


def test_what_a_whole_file_took_is_not_what_each_run_took():
    runs = [{"task": "a", "passed": True}, {"task": "b", "passed": True}]
    trials = read_trials(json.dumps({"model": "m", "cost": 4.0, "results": runs}).encode())
    assert "cost" not in trials.features


def test_a_report_of_pytest_json_report_is_its_tests():
    ends = {"t.py::a": "passed", "t.py::b": "failed"}
    report = {
        "created": 1.5,
        "duration": 2.5,
        "exitcode": 1,
        "summary": {"passed": 1, "failed": 1, "total": 2},
        "collectors": [{"nodeid": "", "outcome": "passed", "result": []}],
        "tests": [{"nodeid": name, "lineno": 3, "outcome": end} for name, end in ends.items()],
    }
    trials = read_trials(json.dumps(report).encode())
    assert (trials.tasks, trials.outcome.tolist()) == (tuple(ends), [1, 0])
    assert "seconds" not in trials.features
