"""Shapes of public result files that were once read wrong, or refused with the wrong sentence."""

import json
import shutil
from pathlib import Path

import pytest

from passhat.errors import ReadError
from passhat.ingest import ColumnMap, read_tallies, read_trials, tallies
from passhat.records.trial import how_read


def notes_of(trials):
    return " ".join(note for source in trials.sources for note in source.notes)


def write_json(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def old_report(*resolved):
    return {
        "no_generation": [],
        "generated": ["django__django-1", "django__django-2"],
        "resolved": list(resolved),
    }


def test_reports_of_swe_bench_are_called_by_the_folder_that_has_a_name(tmp_path, counts):
    for run, resolved in (("acr-run-1", ["django__django-1"]), ("acr-run-2", []), ("acr-val", [])):
        write_json(tmp_path / run / "new_eval_results" / "report.json", old_report(*resolved))
    trials = read_trials(tmp_path)
    assert trials.systems == ("acr", "acr-val")
    assert counts(trials.where(system="acr"))["django__django-1"] == (1, 1, 0)


def test_a_list_of_what_was_resolved_is_no_report(tmp_path):
    write_json(
        tmp_path / "final_report.json",
        {"stats": {"generated": 2}, "resolved": ["a"], "resolved_per_project": {}},
    )
    with pytest.raises(ReadError, match="resolved, but not what it tried"):
        read_trials(tmp_path / "final_report.json")


def test_verdicts_of_openhands_are_found_by_their_path():
    line = json.dumps({"instance_id": "a__b-1", "test_result": {"report": {"resolved": True}}})
    with pytest.raises(ReadError, match=r"passed='test_result\.report\.resolved'"):
        read_trials(line.encode())
    trials = read_trials(line.encode(), mapping=ColumnMap(passed="test_result.report.resolved"))
    assert trials.tally().passed.tolist() == [1]


def bfcl_folder(home, right):
    """One question and its score, as bfcl-eval writes them."""
    for kind in ("result", "score"):
        (home / kind / "m").mkdir(parents=True)
    (home / "result/m/BFCL_v4_simple_result.json").write_text('{"id":"simple_0","result":"x"}\n')
    head = {"accuracy": right, "correct_count": right, "total_count": 1}
    failure = [] if right else [{"id": "simple_0", "error_type": "wrong"}]
    lines = "".join(json.dumps(line) + "\n" for line in [head, *failure])
    (home / "score/m/BFCL_v4_simple_score.json").write_text(lines)


@pytest.mark.parametrize(
    ("folders", "systems"),
    [
        (("v0.10.2", "v0.11.0"), ("m (v0.10.2)", "m (v0.11.0)")),
        (("run-1", "run-2"), ("m",)),
        (("2026-11-16T00-12-00", "2026-11-17T00-12-00"), ("m",)),
    ],
)
def test_folders_of_bfcl_are_configurations_unless_they_are_numbered(tmp_path, folders, systems):
    for right, folder in enumerate(folders):
        bfcl_folder(tmp_path / folder, right)
    trials = read_trials(tmp_path)
    assert trials.systems == systems
    assert sorted(trials.outcome.tolist()) == [0, 1]


def test_the_folder_of_bfcl_names_the_model_though_its_failures_call_it_otherwise(tmp_path):
    for category, failures in (("simple", []), ("java", [{"id": "java_0", "model_name": "x/y"}])):
        head = {"accuracy": 0.5, "correct_count": 1 - len(failures), "total_count": 1}
        score = tmp_path / "score" / "x_y" / f"BFCL_v3_{category}_score.json"
        result = tmp_path / "result" / "x_y" / f"BFCL_v3_{category}_result.json"
        for path in (score, result):
            path.parent.mkdir(parents=True, exist_ok=True)
        score.write_text("\n".join(map(json.dumps, [head, *failures])))
        result.write_text(json.dumps({"id": f"{category}_0", "result": "f()", "latency": 1}))
    trials = read_trials(tmp_path / "score")
    assert trials.systems == ("x_y",)
    assert trials.tally().passed.sum() == 1


def test_another_scenario_of_livecodebench_is_another_system(tmp_path):
    answers = [{"question_id": "1873_A", "graded_list": [True]}]
    for name in ("codegeneration_1_0.2", "selfrepair_1_0.2", "codegeneration_1_0.8"):
        write_json(tmp_path / "Qwen" / f"Scenario.{name}_eval_all.json", answers)
    systems = set(read_trials(tmp_path).systems)
    assert systems == {"Qwen", "Qwen (selfrepair)", "Qwen (temperature 0.8)"}


def mlflow_table(columns, rows):
    return json.dumps({"columns": ["inputs", *columns], "data": rows}).encode()


def test_the_grades_of_mlflow_judges_need_a_threshold():
    columns = ["answer_correctness/v1/score", "answer_correctness/v1/justification"]
    table = mlflow_table(columns, [["a", 1, "wrong"], ["b", 5, "right"]])
    with pytest.raises(ReadError, match=r"a judge's grade.*from 1 \(the worst\) to 5.*pass_if"):
        read_trials(table)
    trials = read_trials(table, mapping=ColumnMap(pass_if="score>=4"))
    assert trials.outcome.tolist() == [0, 1]


def test_a_score_that_is_better_the_lower_it_is_does_not_pass_at_one():
    alone = mlflow_table(["toxicity/v1/score"], [["a", 1.0]])
    with pytest.raises(ReadError, match=r'score "toxicity/v1" is usually better the lower it is'):
        read_trials(alone)
    both = mlflow_table(["toxicity/v1/score", "exact_match/v1/score"], [["a", 1.0, 0.0]])
    trials = read_trials(both)
    assert trials.outcome.tolist() == [0]
    assert 'score "exact_match/v1" was read' in notes_of(trials)


@pytest.mark.parametrize("big", [False, True])
def test_the_name_of_the_benchmark_is_not_the_task(tmp_path, monkeypatch, big):
    path = tmp_path / "runs.csv"
    path.write_text("task,instance_id,passed\ngsm8k,1,1\ngsm8k,2,0\ngsm8k,2,1\n")
    if big:
        monkeypatch.setattr(tallies, "BIG_BYTES", 1)
    tally = read_tallies(path)[0] if big else read_trials(path).tally()
    assert tally.passed.tolist() == [1, 1]
    assert tally.failed.tolist() == [0, 1]
    note = " ".join(note for source in tally.sources for note in source.notes)
    assert 'column "task" is the same in every row, so "instance_id" is read as the task' in note


def test_a_task_that_is_an_object_gives_way_to_its_id():
    rows = [{"task_id": f"t{n}", "task": {"query": ""}, "success": n > 0} for n in range(3)]
    trials = read_trials(json.dumps(rows).encode())
    assert trials.tasks == ("t0", "t1", "t2")
    assert 'column "task" holds objects' in notes_of(trials)


def test_tasks_that_differ_stay_tasks_beside_an_id():
    trials = read_trials(b"task,item_id,passed\nrefund,1,1\nrefund,2,1\nreturn,3,0\n")
    assert trials.tasks == ("refund", "return")


@pytest.mark.parametrize("name", ["Row", "Question", "suite::Test case", "tests > Example"])
def test_names_that_only_count_are_tasks(name):
    rows = "".join(f"{name} #{place},1\n" for place in (1, 2, 3))
    assert len(read_trials(f"task,passed\n{rows}".encode()).tasks) == 3


def test_means_of_metrics_are_no_runs():
    with pytest.raises(ReadError, match="one mean for each metric"):
        read_trials(b"metric,score\nfaithfulness,1.0\nanswer_relevancy,0.97\n")


def test_what_terminal_bench_was_run_with_is_no_unknown_file(tmp_path):
    trial = {"task_id": "a", "trial_name": "a.1-of-1.x", "is_resolved": True}
    run = {"results": [trial], "pass_at_k": {}, "n_resolved": 1}
    write_json(tmp_path / "run" / "results.json", run)
    write_json(tmp_path / "run" / "run_metadata.json", {"agent_name": "me", "model_name": "m"})
    assert notes_of(read_trials(tmp_path)) == ""


def helm_instance(**metrics):
    stats = [{"name": {"name": name}, "count": 1, "mean": mean} for name, mean in metrics.items()]
    return {"instance_id": "id1", "train_trial_index": 0, "stats": stats}


def test_what_helm_counts_of_every_request_is_no_verdict():
    alone = helm_instance(num_references=1.0, finish_reason_stop=1.0, f1_score=0.4)
    assert read_trials(json.dumps([alone]).encode()).outcome.tolist() == [0]
    several = helm_instance(num_references=1.0, f1_score=1.0, bleu_4=0.3)
    with pytest.raises(ReadError, match=r"several metrics \(f1_score, bleu_4\).*`scorer`"):
        read_trials(json.dumps([several]).encode())
    chosen = read_trials(json.dumps([several]).encode(), mapping=ColumnMap(scorer="f1_score"))
    assert chosen.outcome.tolist() == [1]


def test_the_metric_of_a_helm_scenario_comes_before_an_exact_match():
    instance = helm_instance(exact_match=0.0, final_number_exact_match=1.0)
    assert read_trials(json.dumps([instance]).encode()).outcome.tolist() == [1]


def test_appworld_once_called_success_passes_fully():
    tasks = {"82e2fac_1": {"passes_fully": True}, "82e2fac_2": {"passes_fully": False}}
    trials = read_trials(json.dumps({"aggregate": {}, "individual": tasks}).encode())
    assert trials.outcome.tolist() == [1, 0]
    with pytest.raises(ReadError, match='task "82e2fac_1": has no "success"'):
        read_trials(json.dumps({"aggregate": {}, "individual": {"82e2fac_1": {}}}).encode())


def test_both_downloads_of_phoenix_say_the_same(samples):
    tables = [read_trials(samples / folder) for folder in ("phoenix", "phoenix_csv")]
    assert tables[0].outcome.tolist() == tables[1].outcome.tolist() == [1, 1, 1, 0, 0, 2]
    assert tables[0].tasks == tables[1].tasks


def test_scores_of_the_third_version_of_langfuse_are_found_by_their_subject(samples):
    trials = read_trials(samples / "langfuse_v3")
    assert dict(zip(trials.tasks, trials.outcome.tolist(), strict=True)) == {
        "t1": 1,
        "t2": 0,
        "t3": 1,  # of an observation within the trace
    }
    assert "1 score of a whole experiment" in how_read(trials.sources[0])


def test_a_second_score_of_one_name_on_a_trace_is_noted():
    rows = "traceId,name,value,dataType\nt1,correct,1,NUMERIC\nt1,correct,0,NUMERIC\n"
    trials = read_trials(rows.encode())
    assert trials.outcome.tolist() == [0]
    assert "1 score has the name of an earlier one of the same trace" in notes_of(trials)


def test_benchmarks_of_aider_are_told_apart_by_what_they_are_called_and_not_by_their_date(tmp_path):
    runs = ("2026-01-01-10-00-00--plain", "2026-01-02-10-00-00--plain", "20260103-terse-run-2")
    for run in runs:
        home = tmp_path / run / "failed" / "anagram"
        home.mkdir(parents=True)
        result = {"testcase": "anagram", "tests_outcomes": [run == runs[1]], "model": "m"}
        (home / ".aider.results.json").write_text(json.dumps(result))
    trials = read_trials(tmp_path)
    assert trials.systems == ("m (plain)", "m (terse)")
    assert trials.tally("m (plain)").passed.tolist() == [1]
    assert read_trials(tmp_path / runs[0]).systems == ("m",)


def test_tests_of_one_name_in_several_files_are_several_tests_in_ctrf():
    tests = [
        {"name": "opens", "status": status, "filePath": f"{file}.cy.ts", "duration": 1}
        for file, status in (("a", "passed"), ("b", "failed"))
    ]
    report = {"results": {"tool": {"name": "cypress"}, "summary": {}, "tests": tests}}
    assert read_trials(json.dumps(report).encode()).tasks == ("a.cy.ts > opens", "b.cy.ts > opens")


def test_the_tests_of_a_harbor_verifier_are_no_trials_of_another_agent(samples, tmp_path):
    shutil.copytree(samples / "harbor", tmp_path / "job")
    alone = read_trials(tmp_path / "job")
    trial = next(
        path.parent
        for path in (tmp_path / "job").rglob("result.json")
        if b'"agent_info"' in path.read_bytes()
    )
    tests = {
        "tool": {"name": "pytest"},
        "summary": {},
        "tests": [{"name": "a", "status": "passed"}],
    }
    write_json(trial / "verifier" / "ctrf.json", {"results": tests})
    write_json(trial / "artifacts" / "table.json", [{"task": "b", "passed": True}])
    again = read_trials(tmp_path / "job")
    assert (again.systems, len(again)) == (alone.systems, len(alone))


def langfuse_score(number, **about):
    row = {"id": str(number), "name": "ok", "value": number % 2, "dataType": "NUMERIC"}
    return row | {"traceId": None, "sessionId": None} | about


def test_scores_of_langfuse_without_a_trace_belong_to_their_session_or_to_no_run():
    scores = [langfuse_score(n, sessionId=f"s{n}") for n in range(3)]
    scores += [langfuse_score(3, traceId="t"), langfuse_score(4), langfuse_score(5)]
    trials = read_trials(json.dumps(scores).encode())
    assert sorted(trials.tasks) == ["s0", "s1", "s2", "t"]
    assert "2 scores of whole experiments" in dict(trials.sources[0].read_as)["left out"]


def test_every_listed_attempt_of_a_ctrf_test_is_counted_in_the_note():
    attempts = [{"status": "failed"}] * 1200
    test = {"name": "a", "status": "passed", "retries": 1200, "retryAttempts": attempts}
    results = {"tool": {"name": "jest"}, "summary": {}, "tests": [test]}
    trials = read_trials(json.dumps({"reportFormat": "CTRF", "results": results}).encode())
    assert len(trials) == 1201
    assert trials.sources[0].notes[0].startswith("1,200 attempts were followed by a retry")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that cannot be read")
def test_results_of_bfcl_that_cannot_be_read_are_named(tmp_path):
    bfcl_folder(tmp_path, 1)
    (answers,) = (tmp_path / "result").rglob("*.json")
    answers.unlink()
    answers.symlink_to("/proc/self/mem")
    (scores,) = (tmp_path / "score").rglob("*.json")
    with pytest.raises(ReadError, match=rf"{answers.name}: cannot be opened"):
        read_trials(scores)
