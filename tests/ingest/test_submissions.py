"""Layouts of public leaderboards and result repositories, written here in the same shapes."""

import csv
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import ReadError
from passhat.ingest import ColumnMap, read_trials, read_with_transcripts


def notes_of(trials):
    return " ".join(note for source in trials.sources for note in source.notes)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def lines(*entries):
    return "".join(json.dumps(entry) + "\n" for entry in entries)


def by_system(trials):
    return {system: trials.where(system=system).outcome.tolist() for system in trials.systems}


REPORT = {
    "submitted_ids": ["a__b-1", "a__b-2", "a__b-3"],
    "resolved_ids": ["a__b-1"],
    "unresolved_ids": ["a__b-2"],
    "error_ids": ["a__b-3"],
}


def test_submissions_to_swe_bench_are_called_by_their_folders(tmp_path):
    for name in ("20240825_agent_one", "20250101_agent_two"):
        write(tmp_path / name / "results" / "results.json", REPORT)
    assert by_system(read_trials(tmp_path)) == {"agent_one": [0, 2, 1], "agent_two": [0, 2, 1]}


@pytest.mark.parametrize(
    ("file", "system"),
    [
        ("claude-3.5.claude-3.5-full.json", "claude-3.5"),
        ("gpt-4.1-mini.json", "gpt-4.1-mini"),
        ("model4.20240620.json", "model4"),
        ("org__model.run1.json", "org__model"),
        ("swe-bench_verified__test__my_run.json", "my_run"),
        ("Subset.swe_bench_lite__dev__my_run.json", "my_run"),
    ],
)
def test_the_model_in_the_name_of_a_report_may_have_dots(tmp_path, file, system):
    assert read_trials(write(tmp_path / file, REPORT)).systems == (system,)


def test_a_submission_that_lists_what_it_resolved_is_read_with_its_predictions(tmp_path, counts):
    home = tmp_path / "20250601_agent"
    resolved = {"no_generation": ["a__b-3"], "no_logs": [], "resolved": ["a__b-1"]}
    path = write(home / "results" / "results.json", resolved)
    with pytest.raises(ReadError, match=r"not those that it tried; keep its all_preds.jsonl"):
        read_trials(path)
    predicted = [{"instance_id": f"a__b-{n}", "model_patch": "x"} for n in (1, 2, 3)]
    write(home / "all_preds.jsonl", lines(*predicted))
    expected = {"a__b-1": (1, 0, 0), "a__b-2": (0, 1, 0), "a__b-3": (0, 1, 0)}
    assert counts(read_trials(path)) == expected
    (home / "all_preds.jsonl").unlink()
    write(home / "preds.json", {one["instance_id"]: one for one in predicted})
    assert counts(read_trials(path)) == expected


def test_a_run_is_not_counted_again_by_the_reports_on_its_instances(tmp_path, counts):
    write(tmp_path / "model.run1.json", REPORT)
    logs = tmp_path / "logs" / "run_evaluation"
    for instance, resolved in (("a__b-1", True), ("a__b-2", False)):
        told = {instance: {"patch_is_None": False, "patch_exists": True, "resolved": resolved}}
        for run in ("run1", "run2"):
            write(logs / run / "model" / instance / "report.json", told)
    trials = read_trials(tmp_path)
    assert counts(trials) == {"a__b-1": (2, 0, 0), "a__b-2": (0, 2, 0), "a__b-3": (0, 0, 1)}
    assert "2 reports on tasks of this run are left out" in notes_of(trials)
    assert len(read_trials(logs)) == 4


def test_swe_bench_pro_has_a_verdict_for_each_instance(tmp_path):
    names = [f"instance_org__repo-{n * 40}-v1" for n in "ab"]
    verdicts = dict(zip(names, (True, False), strict=True))
    path = write(tmp_path / "some-model" / "eval_results.json", verdicts)
    trials = read_trials(path)
    assert by_system(trials) == {"some-model": [1, 0]}
    assert trials.family.texts() == ["org/repo", "org/repo"]


def upload(results, raw):
    return {"config": {"agent_name": "agent"}, "results": results, "raw_eval_results": raw}


@pytest.mark.parametrize(
    ("results", "raw", "expected"),
    [
        ({"passed_tasks": ["a"], "failed_tasks": ["b"]}, {}, {"a": (1, 0, 0), "b": (0, 1, 0)}),
        (
            {"successful_tasks": ["a"], "failed_tasks": []},
            {"empty_patch_ids": ["c"]},
            {"a": (1, 0, 0), "c": (0, 1, 0)},
        ),
        ({}, {"a": {"reward": 1.0}, "b": "TIMEOUT"}, {"a": (1, 0, 0), "b": (0, 1, 0)}),
        (
            {},
            {"agent_output": {"1": {}}, "eval_result": {"1": {"success_rate": 1}}},
            {"1": (1, 0, 0)},
        ),
    ],
    ids=["replicatorbench", "swebench", "taubench", "scienceagentbench"],
)
def test_uploads_to_hal_say_how_every_task_ended(counts, results, raw, expected):
    assert counts(read_trials(json.dumps(upload(results, raw)).encode())) == expected


def test_tasks_of_hal_without_a_verdict_are_named():
    trials = read_trials(
        json.dumps(upload({}, {"a": {"reward": 0.0}, "b": [{"score": 1}]})).encode()
    )
    assert trials.tasks == ("a",)
    assert "1 task that ran has no verdict, left out: b" in notes_of(trials)


def bfcl_v1(folder, *, correct=2, failed=2):
    """Three answers of the first version, of which the one at place `failed` (from 1) is wrong."""
    answers = [{"idx": n, "result": "x", "latency": 0.5} for n in range(3)]
    head = {"accuracy": correct / 3, "correct_count": correct, "total_count": 3}
    failure = {"id": failed, "model_name": "m", "valid": False, "error_type": "type_error"}
    write(folder / "score" / "m" / "simple_score.json", lines(head, failure))
    name = "gorilla_openfunctions_v1_test_simple_result.json"
    write(folder / "result" / "m" / name, lines(*answers))
    return folder


def test_the_first_version_of_bfcl_counts_its_failures_from_one(tmp_path, counts):
    expected = {"simple_0": (1, 0, 0), "simple_1": (0, 1, 0), "simple_2": (1, 0, 0)}
    assert counts(read_trials(bfcl_v1(tmp_path))) == expected


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"correct": 1}, r"1 of 3 entries are correct, but lists 1 failure"),
        ({"failed": 9}, "no answer"),
    ],
)
def test_scores_of_other_results_than_those_beside_them_are_refused(tmp_path, wrong, said):
    with pytest.raises(ReadError, match=said):
        read_trials(bfcl_v1(tmp_path, **wrong))


def test_answers_to_bfcl_that_nobody_scored_are_left_out_with_word_of_it(tmp_path):
    folder = bfcl_v1(tmp_path)
    answer = {"id": "sql_0", "result": "x", "latency": 1}
    path = write(folder / "result" / "m" / "BFCL_v3_sql_result.json", lines(answer, answer))
    write(folder / "result" / "m" / "BFCL_v4_memory_kv_prereq_result.json", lines(answer, answer))
    trials = read_trials(folder)
    assert len(trials) == 3
    assert "holds answers to BFCL without verdicts" in notes_of(trials)
    with pytest.raises(ReadError, match="run `bfcl evaluate`"):
        read_trials(path)


def test_older_results_of_evalplus_are_read(counts):
    old = {"nfiles": 2, "base": [["success", [1]], ["success", [1]]]}
    plus = [["success", [1]], ["failed", [0]]]
    told = {"date": "", "hash": "", "eval": {"HumanEval/0": {**old, "plus": plus}}}
    content = json.dumps(told).encode()
    assert counts(read_trials(content)) == {"HumanEval/0": (1, 1, 0)}
    base = read_trials(content, mapping=ColumnMap(scorer="base"))
    assert counts(base) == {"HumanEval/0": (2, 0, 0)}


@pytest.mark.parametrize(
    "header", ["[gpt] Say {{word}}", '{"raw": "Say {{word}}", "display": "Say"}']
)
def test_answers_of_promptfoo_may_begin_with_their_verdict(tmp_path, header, counts):
    path = tmp_path / "out.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["word", header])
        writer.writerow(["hi", "[PASS] (1.00) Hi!"])
        writer.writerow(["ho", "[FAIL] (0.25) Expected ho\n---\nHi!"])
        writer.writerow(["hu", "[ERROR] no answer"])
    trials = read_trials(path)
    assert counts(trials) == {"word=hi": (1, 0, 0), "word=ho": (0, 1, 0), "word=hu": (0, 0, 1)}
    assert trials.score.tolist()[:2] == [1.0, 0.25]


def test_an_object_that_is_one_run_is_one_trial_whatever_it_lists():
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
    run = {"task_id": "a", "success": True, "messages": messages}
    assert read_trials(json.dumps(run, indent=1).encode()).outcome.tolist() == [1]


def test_the_runs_inside_an_object_are_read_where_its_own_verdict_is_a_rate():
    runs = {"task": "a", "score": 0.5, "runs": [{"passed": True}, {"passed": False}]}
    assert read_trials(json.dumps(runs, indent=1).encode()).outcome.tolist() == [1, 0]


def test_an_object_with_a_verdict_of_its_own_and_more_on_the_same_task_is_refused():
    tries = [{"task_id": "a", "resolved": False}, {"task_id": "a", "resolved": True}]
    run = {"task_id": "a", "resolved": True, "tries": tries}
    with pytest.raises(ReadError, match=r"says itself how 'a' ended .* more verdicts on it in"):
        read_trials(json.dumps(run, indent=1).encode())


def test_files_of_one_name_in_several_folders_are_systems_by_folder(tmp_path):
    for folder, passed in (("baseline", 1), ("new", 0)):
        write(tmp_path / folder / "results.csv", f"task,passed\na,{passed}\n")
    trials = read_trials(tmp_path)
    assert by_system(trials) == {"baseline": [1], "new": [0]}
    assert "the folder is read as the agent" in notes_of(trials)
    assert read_trials(tmp_path, mapping=ColumnMap(name="one")).systems == ("one",)


@pytest.mark.parametrize("folders", [("run-1", "run-2"), ("2026-11-15", "2026-11-16"), ("1", "2")])
def test_folders_of_runs_are_runs_of_one_system(tmp_path, folders):
    for passed, folder in enumerate(folders):
        write(tmp_path / folder / "results.csv", f"task,passed\na,{passed}\n")
    assert by_system(read_trials(tmp_path)) == {"results": [0, 1]}


def test_folders_of_tasks_are_one_system(tmp_path):
    for task in ("refund", "booking"):
        write(tmp_path / task / "results.csv", f"task,passed\n{task},1\n")
    assert read_trials(tmp_path).systems == ("results",)


def test_a_file_of_rates_beside_the_trials_that_tracelens_wrote_is_left_out(samples):
    trials = read_trials(samples / "tracelens")
    assert len(trials) == 10
    assert "results.json: holds one row for all trials of a task" in notes_of(trials)
    with pytest.raises(ReadError, match=r'column "num_trials".*TraceLens: trials.json'):
        read_trials(samples / "tracelens" / "results.json")


def test_a_trial_of_harbor_in_steps_is_one_trial_with_what_its_steps_took_and_said(samples):
    trials, said = read_with_transcripts(samples / "harbor")
    columns = trials.to_columns()
    assert columns["score"] == [1.0, 0.5, None]  # the mean of two steps, or the last one's
    assert (columns["tokens_in"], columns["seconds"]) == ([300.0] * 3, [8.0] * 3)
    assert columns["error"][2] == "TimeoutError: agent ran out of time"
    whole = json.loads(said["scripted/none", "two-parts", 0])
    asked = [turn["text"] for turn in whole["messages"] if turn["role"] == "user"]
    assert asked == ["do part 1", "do part 2"]
    assert [check["target"] for check in whole["checks"]] == [
        "verifier of step-1",
        "verifier of step-2",
    ]


def tau2(*rewards):
    simulations = [
        {"task_id": "1", "trial": trial, "reward_info": {"reward": reward}, "messages": []}
        for trial, reward in enumerate(rewards)
    ]
    return {"info": {"environment_info": {"domain_name": "retail"}}, "tasks": []}, simulations


def test_a_run_of_tau2_bench_without_an_index_is_read_from_its_folder(tmp_path):
    whole, simulations = tau2(1.0, 0.0)
    write(tmp_path / "results.json", {"timestamp": "", **whole})
    for number, simulation in enumerate(simulations):
        write(tmp_path / "simulations" / f"{number}.json", simulation)
    assert sorted(read_trials(tmp_path).outcome.tolist()) == [0, 1]


def test_a_run_of_tau2_bench_that_nobody_evaluated_is_refused():
    whole, simulations = tau2(None, None)
    with pytest.raises(ReadError, match=r"has no rewards.*tau2 evaluate-trajs"):
        read_trials(json.dumps({**whole, "simulations": simulations}).encode())


def test_a_reward_of_tau2_bench_counts_where_its_details_have_none():
    whole, simulations = tau2(None, None)
    judged = [one | {"reward": trial} for trial, one in enumerate(simulations)]
    trials = read_trials(json.dumps({**whole, "simulations": judged}).encode())
    assert trials.outcome.tolist() == [0, 1]


def test_a_score_that_is_empty_everywhere_is_refused():
    table = b"example_id,inputs.q,feedback.right,feedback.short\n1,a,,1\n2,b,,0\n"
    with pytest.raises(ReadError, match=r'score "right" is empty everywhere.*`scorer`.*short'):
        read_trials(table)
    assert read_trials(table, mapping=ColumnMap(scorer="short")).outcome.tolist() == [1, 0]


def test_traces_of_langfuse_that_belong_to_no_data_set_are_tasks_of_their_own(samples):
    trials = read_trials(samples / "langfuse" / "scores.json")
    assert trials.tasks == ("t1", "t2", "t3")
    assert "each trace is a task of its own" in notes_of(trials)


def test_a_csv_of_phoenix_has_a_column_for_each_annotation(counts):
    table = (
        "example_id,repetition_number,output,error,annotation_right_label,annotation_right_score,"
        "annotation_right_error\n"
        "e1,1,x,,correct,1.0,\ne1,2,y,,incorrect,0.0,\ne2,1,,broke,,,\n"
    )
    trials = read_trials(table.encode())
    assert {source.format for source in trials.sources} == {"phoenix"}
    assert counts(trials) == {"e1": (1, 1, 0), "e2": (0, 0, 1)}


@settings(max_examples=40)
@given(
    ended=st.lists(
        st.sampled_from(["resolved", "unresolved", "empty_patch", "patch_apply_fail", "none"]),
        min_size=2,
        max_size=8,
    ).filter(lambda ended: "resolved" in ended)
)
def test_every_submitted_instance_is_a_trial_and_passes_only_if_resolved(ended):
    names = [f"r__r-{n}" for n in range(len(ended))]
    report = {
        f"{how}_ids": [name for name, own in zip(names, ended, strict=True) if own == how]
        for how in ("resolved", "unresolved", "empty_patch", "patch_apply_fail")
    }
    trials = read_trials(json.dumps({**report, "submitted_ids": names}).encode())
    assert len(trials) == len(names)
    assert sum(trials.outcome.tolist()) == ended.count("resolved")
    unlisted = ended.count("patch_apply_fail") + ended.count("none")
    said = f"{unlisted} of {len(names)} submitted instances"
    assert any(note.startswith(said) for note in trials.sources[0].notes) == bool(unlisted)
