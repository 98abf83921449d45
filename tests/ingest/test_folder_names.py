"""Files that name no system are called by their folders where that is what was run."""

import itertools
import json

import pytest

from passhat.ingest import ColumnMap, read_trials


def write_runs(home, tasks, *, passed=True):
    home.mkdir(parents=True)
    for task in tasks:
        (home / f"{task}.json").write_text(json.dumps({"task_id": task, "correct": passed}))


def notes_of(trials):
    return " ".join(note for source in trials.sources for note in source.notes)


@pytest.mark.parametrize("number", [2, 12])
def test_files_with_a_task_each_are_tasks_of_one_system(tmp_path, number):
    tasks = [f"t{place}" for place in range(number)]
    write_runs(tmp_path / "model-a" / "tasks", tasks)
    trials = read_trials(tmp_path)
    assert trials.systems == ("model-a",)
    assert set(trials.tasks) == set(tasks)
    assert "each file holds another task" in notes_of(trials)
    assert read_trials(tmp_path, mapping=ColumnMap(name="x")).systems == ("x",)


def test_folders_of_such_files_are_systems_and_numbered_ones_are_runs(tmp_path):
    for model, run in itertools.product("ab", (1, 2)):
        write_runs(tmp_path / model / f"run-{run}" / "tasks", ["t1", "t2"], passed=run == 1)
    write_runs(tmp_path / "c" / "tasks", ["t1"])
    trials = read_trials(tmp_path)
    assert set(trials.systems) == {"a", "b", "c"}
    assert trials.tally("a").passed.tolist() == [1, 1]
    assert trials.tally("a").failed.tolist() == [1, 1]


def test_files_that_share_a_task_stay_systems(tmp_path):
    for model in ("a", "b"):
        (tmp_path / f"{model}.json").write_text(json.dumps({"task": "t", "passed": model == "a"}))
    assert read_trials(tmp_path).systems == ("a", "b")


def test_files_with_several_tasks_stay_systems(tmp_path):
    (tmp_path / "a.csv").write_text("task,passed\nt1,1\nt2,0\n")
    (tmp_path / "b.csv").write_text("task,passed\nt3,1\nt4,0\n")
    assert read_trials(tmp_path).systems == ("a", "b")


@pytest.mark.parametrize("key", ["tests", "checks", "evaluators_results"])
def test_checks_within_a_run_are_no_runs(key):
    run = {"task": "a", "success": False, key: [{"name": "x", "passed": True}]}
    trials = read_trials(json.dumps(run).encode())
    assert trials.outcome.tolist() == [0]
