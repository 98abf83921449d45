"""Rows that differ in what was run, or in what was asked, are no runs of one system and task."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat import Trials
from passhat.ingest import ColumnMap, read_tallies, read_trials, tallies

NAMES = st.sampled_from(["one", "two", "three"])


def notes_of(trials):
    return " ".join(note for source in trials.sources for note in source.notes)


def table(rows):
    names = list(rows[0])
    lines = (",".join(str(row[name]) for name in names) for row in rows)
    return "\n".join([",".join(names), *lines]).encode()


@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {"agent": NAMES, "model": NAMES, "task": NAMES, "passed": st.sampled_from([0, 1])}
        ),
        min_size=1,
    )
)
def test_two_models_of_one_agent_are_never_pooled(rows):
    trials = read_trials(table(rows))
    by_task = {}
    for row in rows:
        by_task.setdefault((row["agent"], row["task"]), set()).add(row["model"])
    if any(len(models) > 1 for models in by_task.values()):
        assert set(trials.systems) == {f"{row['agent']}/{row['model']}" for row in rows}
    else:
        assert set(trials.systems) == {row["agent"] for row in rows}


@pytest.mark.parametrize("column", ["condition", "config", "variant", "arm", "harness", "method"])
def test_a_column_of_configurations_names_the_system_where_a_task_has_several(column):
    rows = [
        {column: setting, "task": task, "passed": int(setting == "tuned")}
        for setting, task, _ in itertools.product(("base", "tuned"), "ab", range(3))
    ]
    trials = read_trials(table(rows))
    assert trials.systems == ("base", "tuned")
    assert trials.tally("tuned").passed.tolist() == [3, 3]
    assert f"rows of one task differ in {column}" in notes_of(trials)
    assert len(read_trials(table(rows), mapping=ColumnMap(system="")).systems) == 1


def test_settings_that_are_those_of_one_task_each_name_no_system():
    trials = read_trials(b"agent,variant,task,passed\nx,easy,a,1\nx,easy,a,0\nx,hard,b,1\n")
    assert trials.systems == ("x",)


def test_a_setting_of_each_row_is_no_name():
    trials = read_trials(b"agent,config,task,passed\nx,r1.yml,a,1\nx,r2.yml,a,0\nx,r3.yml,a,1\n")
    assert trials.systems == ("x",)


def test_models_are_known_by_their_ids_too():
    trials = read_trials(b"model_id,task,run_id,passed\nm1,a,r1,1\nm2,a,r2,0\n")
    assert trials.systems == ("m1", "m2")


@pytest.mark.parametrize("big", [False, True])
def test_rows_of_one_kind_of_task_that_ask_different_questions_are_tasks(
    tmp_path, monkeypatch, big
):
    path = tmp_path / "runs.csv"
    path.write_text("task,question,correct\nmath,1+1?,1\nmath,2+2?,0\nwords,1+1?,1\n")
    if big:
        monkeypatch.setattr(tallies, "BIG_BYTES", 1)
    tally = read_tallies(path)[0] if big else read_trials(path).tally()
    assert tally.tasks == ("math/1+1?", "math/2+2?", "words/1+1?")
    assert "so both name the task" in " ".join(tally.sources[0].notes)


def test_a_run_number_says_that_different_wordings_are_runs():
    rows = b"task,question,run,correct\nmath,1+1?,1,1\nmath,one and one?,2,0\n"
    assert read_trials(rows).tasks == ("math",)


@pytest.mark.parametrize("big", [False, True])
def test_several_columns_can_be_chosen_to_name_the_system(tmp_path, monkeypatch, big):
    path = tmp_path / "runs.csv"
    path.write_text("team,tool,task,trial,passed\nx,1,a,1,1\nx,2,a,1,0\n")
    if big:
        monkeypatch.setattr(tallies, "BIG_BYTES", 1)
    found = read_tallies(path, mapping=ColumnMap(system="team,tool"))
    assert [tally.system for tally in found] == ["x/1", "x/2"]


def test_frames_are_told_apart_by_the_same_rule():
    rows = [
        {"agent": "x", "model": model, "task": task, "passed": model == "m1"}
        for model, task in itertools.product(("m1", "m2"), "ab")
    ]
    assert Trials.from_records(rows).systems == ("x/m1", "x/m2")
    assert Trials.from_records(rows, system="agent").systems == ("x",)
    assert Trials.from_records(rows, system="model,agent").systems == ("m1/x", "m2/x")


def test_calls_that_are_listed_are_counted_and_objects_are_left_out():
    rows = (
        b'{"task":"a","passed":true,"tool_calls":[{"name":"x"},{"name":"y"}],"tokens":{"in":3}}\n'
        b'{"task":"b","passed":false,"tool_calls":[],"tokens":{"in":4}}\n'
    )
    trials = read_trials(rows)
    assert trials.features["tool_calls"].tolist() == [2, 0]
    assert "tokens" not in trials.features
    assert 'column "tokens" holds objects, not numbers' in notes_of(trials)


def test_marks_say_how_a_run_ended():
    trials = read_trials("task,passed\na,✓\nb,✗\nc,✅\nd,❌\n".encode())
    assert trials.outcome.tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize("files", [2, 8])
def test_files_of_one_agent_with_different_models_are_different_systems(tmp_path, files):
    for place in range(files):
        half, model = divmod(place, 2)
        run = {"agent": "x", "model": f"m/{model}", "task": f"t{half}", "passed": bool(model)}
        (tmp_path / f"{place}.json").write_text(json.dumps(run))
    assert read_trials(tmp_path).systems == ("x (m-0)", "x (m-1)")
    assert read_trials(tmp_path / "0.json").systems == ("x",)
    assert read_trials(tmp_path, mapping=ColumnMap(system="agent")).systems == ("x",)
