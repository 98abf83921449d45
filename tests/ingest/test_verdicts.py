"""What decides where a log says two things of one trial: the rules of each tool, and the user's."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ArgumentError, ReadError
from passhat.ingest import ColumnMap, read_tallies, read_trials, read_with_transcripts, tallies
from passhat.records import Outcome
from passhat.records.columns import is_missing, missing_at, outcomes_of


def outcomes(log, **options):
    return [trial.outcome.name for trial in read_trials(json.dumps(log).encode(), **options)]


@pytest.mark.parametrize("ended", ["infrastructure_error", "context_window_exceeded"])
def test_a_tau2_simulation_that_could_not_be_evaluated_is_errored_whatever_its_reward(ended):
    def simulations(*reasons):
        return [
            {"task_id": "t", "trial": i, "reward_info": {"reward": 1.0}, "termination_reason": why}
            for i, why in enumerate(reasons)
        ]

    log = {"info": {}, "tasks": [], "simulations": simulations("agent_stop", ended)}
    first, second = read_trials(json.dumps(log).encode())
    assert (first.outcome, first.error) == (Outcome.PASSED, None)
    assert (second.outcome, second.error, second.score) == (Outcome.ERRORED, ended, None)


def test_an_mcpmark_run_that_passed_its_check_passed_though_the_agent_broke():
    runs = {
        "run-1": {"success": True, "error_message": "timed out"},
        "run-2": {"success": False, "error_message": "timed out"},
        "run-3": {"success": False},
    }
    log = {"model": "m", "service": "fs", "task": "t", "runs": runs}
    assert outcomes(log) == ["PASSED", "ERRORED", "FAILED"]


def test_an_instance_that_swebench_lists_twice_ended_as_the_surer_list_says():
    report = {
        "submitted_ids": [*"abcde"],
        "unresolved_ids": [*"abce"],
        "empty_patch_ids": [*"bc"],
        "error_ids": [*"ace"],
        "resolved_ids": [*"ad"],
    }
    trials = {trial.task: trial for trial in read_trials(json.dumps(report).encode())}
    assert {task: trial.outcome.name for task, trial in sorted(trials.items())} == {
        "a": "PASSED",
        "b": "FAILED",
        "c": "ERRORED",
        "d": "PASSED",
        "e": "ERRORED",
    }
    assert trials["b"].error == "empty patch"


def test_what_broke_stays_broken_whatever_the_users_own_bar_says():
    def sample(number, value, **more):
        return {"id": number, "epoch": 1, "scores": {"s": {"value": value}}, **more}

    samples = [sample(0, 0.6), sample(1, 0.4), sample(2, 0.6, invalidation={"by": "me"})]
    log = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
    judged = outcomes(log | {"samples": samples}, mapping=ColumnMap(pass_if="score>=0.5"))
    assert judged == ["PASSED", "FAILED", "ERRORED"]


@pytest.mark.parametrize("above", ["results", "run-7", "dry-run-7-old"])
def test_an_mcpmark_run_is_numbered_by_its_own_folder_wherever_that_lies(tmp_path, above):
    meta = {"task_name": "t", "model_name": "m", "execution_result": {"success": True}}
    for number in (1, 2):
        folder = tmp_path / above / "m__fs" / f"run-{number}" / "clean-up-run-9-logs"
        folder.mkdir(parents=True)
        (folder / "meta.json").write_text(json.dumps(meta))
    assert sorted(read_trials(tmp_path).trial.tolist()) == [1, 2]


# What the user says of rows that have no verdict, and of words that are none.

WORDED = b"task,trial,passed\na,1,pass\na,2,\na,3,timeout\nb,1,fail\nb,2,N/A\n"


def test_every_row_without_a_verdict_is_named_in_one_go_with_the_ways_out():
    with pytest.raises(ReadError) as refused:
        read_trials(WORDED)
    for said in ("line 3", "line 4 ('timeout')", "line 6 (nothing)", "missing=", "error_words"):
        assert said in str(refused.value)
    many = b"task,passed\n" + b"a,what\n" * 30
    with pytest.raises(ReadError, match=r"line 11 \('what'\) and 20 more"):
        read_trials(many)


@pytest.mark.parametrize(
    ("missing", "outcomes"),
    [("fail", [1, 0, 2, 0, 0]), ("error", [1, 2, 2, 0, 2]), ("exclude", [1, 2, 0])],
)
def test_rows_without_a_verdict_count_as_the_user_says(missing, outcomes):
    mapping = ColumnMap(missing=missing, error_words="timeout, skipped")
    assert read_trials(WORDED, mapping=mapping).outcome.tolist() == outcomes


def test_transcripts_stay_with_their_runs_where_rows_are_excluded():
    rows = b"task,passed,output\na,1,first\na,,none\na,0,third\n"
    trials, said = read_with_transcripts(rows, mapping=ColumnMap(missing="exclude"))
    assert [json.loads(text)["answer"] for text in said.values()] == ["first", "third"]
    assert trials.outcome.tolist() == [1, 0]


def test_what_missing_means_must_be_known():
    with pytest.raises(ArgumentError, match="must be fail, error or exclude"):
        ColumnMap(missing="drop")


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_a_word_that_never_occurs_is_refused_with_those_that_do(tmp_path, monkeypatch, ending):
    rows = [{"task": "a", "status": word} for word in ("success", "failed", "success")]
    path = tmp_path / f"runs{ending}"
    if ending == ".csv":
        path.write_text("task,status\n" + "".join(f"a,{row['status']}\n" for row in rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    fault = r'"status" is never "succes" .* it holds failed, success\. Did you mean "success"\?'
    mapping = ColumnMap(pass_if="status==succes")
    with pytest.raises(ReadError, match=fault):
        read_trials(path, mapping=mapping)
    monkeypatch.setattr(tallies, "BIG_BYTES", 1)
    with pytest.raises(ReadError, match=fault):
        read_tallies(path, mapping=mapping)


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
@pytest.mark.parametrize(
    ("pass_if", "held"),
    [
        ("s>=5", "s is 0.1 to 0.4"),
        ("s>=5 and status==done", "status is done, s is 0.1 to 0.4"),
        ("s<0.2 and status!=done", "status is done, s is 0.1 to 0.4"),
        ("steps>3", "steps is 3"),
    ],
)
def test_a_condition_that_no_trial_meets_says_what_the_columns_hold(
    tmp_path, monkeypatch, ending, pass_if, held
):
    """A suite may fail throughout, so it is read; whoever mistook the scale is told."""
    rows = [{"task": "a", "s": s, "status": "done", "steps": 3} for s in (0.1, 0.4, 0.2)]
    path = tmp_path / f"runs{ending}"
    if ending == ".csv":
        lines = [",".join(map(str, row.values())) for row in rows]
        path.write_text("\n".join(("task,s,status,steps", *lines, "")))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    note = f"no trial meets {pass_if}: {held}"
    by_row = read_trials(path, mapping=ColumnMap(pass_if=pass_if))
    assert not by_row.outcome.any()
    monkeypatch.setattr(tallies, "BIG_BYTES", 1)
    (by_query,) = read_tallies(path, mapping=ColumnMap(pass_if=pass_if))
    assert by_query.failed.tolist() == [3]
    for counted in (by_row, by_query):
        assert note in counted.sources[0].notes


def test_a_condition_that_one_file_meets_is_no_matter_for_a_note(tmp_path):
    for name, score in (("a", 0.1), ("b", 7)):
        (tmp_path / f"{name}.csv").write_text(f"task,agent,s\n{name},m,{score}\n")
    for pass_if, noted in (("s>=5", False), ("s>=50", True)):
        notes = read_trials(tmp_path, mapping=ColumnMap(pass_if=pass_if)).sources[0].notes
        assert (f"no trial meets {pass_if}: s is 0.1 to 7" in notes) is noted


def test_a_condition_that_no_simulation_meets_says_the_scores_there_are():
    runs = [
        {"task_id": "t", "trial": i, "reward_info": {"reward": reward}, "termination_reason": "x"}
        for i, reward in enumerate((0.2, 0.7))
    ]
    log = json.dumps({"info": {}, "tasks": [], "simulations": runs}).encode()
    notes = read_trials(log, mapping=ColumnMap(pass_if="score>=70")).sources[0].notes
    assert "no trial meets score>=70: score is 0.2 to 0.7" in notes


def test_a_word_may_occur_in_another_file_of_the_call(tmp_path):
    for name, word in (("a", "success"), ("b", "failed")):
        (tmp_path / f"{name}.csv").write_text(f"task,agent,status\n{name},m,{word}\n")
    assert len(read_trials(tmp_path, mapping=ColumnMap(pass_if="status==success"))) == 2


def test_names_that_differ_only_in_case_get_a_note():
    trials = read_trials(b"model,task,passed\nGPT-4o,a,1\ngpt-4o,a,0\n")
    assert "GPT-4o / gpt-4o" in " ".join(trials.sources[0].notes)
    assert not read_trials(b"model,task,passed\nGPT-4o,a,1\n").sources[0].notes


@given(st.lists(st.sampled_from(["1", " Pass", "P", "F", "C", "", "nan", "maybe", "NaN "])))
def test_a_column_of_words_is_read_as_its_cells_are_one_by_one(words):
    """A column of text alone is read by its different words: what stands beside changes nothing."""
    assert outcomes_of([*words, None])[:-1] == outcomes_of(words)
    alone = next((place for place, word in enumerate(words) if is_missing(word)), None)
    assert missing_at(words) == missing_at([*words, []]) == alone


def test_a_messy_table_reads_with_the_arguments_that_its_one_error_names():
    messy = b"task,trial,passed\na,1,pass\na,2,\na,3,timeout\nb,1,fail\nb,2,hung up\nb,1,fail\n"
    given = {}
    for _ in range(2):
        with pytest.raises(ReadError, match="All in one go if hung up, timeout say") as refused:
            read_trials(messy, mapping=ColumnMap(**given))
        named = dict(re.findall(r"`(\w+)='([^`]*)'`", str(refused.value).partition("one go")[2]))
        duplicates = named.pop("duplicates")
        trials = read_trials(messy, mapping=ColumnMap(**named), duplicates=duplicates)
        assert sorted(trials.outcome.tolist()) == [0, 1, 2, 2, 2]
        given = {"missing": "error"}  # who took one piece of advice is told the rest
    many = b"task,passed\n" + b"".join(b"a,word %c\n" % letter for letter in b"abcdef")
    with pytest.raises(ReadError) as refused:
        read_trials(many + b"b,\n")
    assert "one go" not in str(refused.value)
