"""What each reader says of itself holds for its sample: the documentation is made of it."""

import json
from pathlib import Path

import pytest

from passhat.ingest import READERS, ColumnMap, read_trials
from passhat.records.trial import how_read

SAMPLES = Path(__file__).parents[1] / "samples"
SHARED = Path(__file__).parents[3] / "shared"
SPANS = ColumnMap(task="task.id", passed="verdict")

# By format: the file, then systems, tasks, trials and passes, counted by hand or by the tool.
COUNTED = {
    "passhat": ("passhat/report.json", 1, 5, 25, 17),  # as promptfoo's
    "inspect": ("inspect/letter_grades.json", 1, 3, 6, 2),
    "promptfoo": ("promptfoo/out.json", 1, 5, 25, 17),
    "deepeval": ("deepeval/latest_test_run.json", 1, 3, 9, None),
    "lm-eval": ("lm_eval", 1, None, None, None),
    "harbor": ("harbor", 1, 1, 3, 1),
    "junit": ("junit/junit_reruns_subtests.xml", 1, 7, 12, 6),
    "dotnet": ("handmade/dotnet/run.trx", 1, 3, 6, 3),
    "ctrf": ("ctrf/jest.json", 1, 4, 8, 3),
    "playwright": ("playwright/report.json", 2, 5, 32, 12),
    "mlflow": ("mlflow", 1, 2, 4, 3),  # right/mean 0.75, it says
    "inspect-dataframe": ("inspect_dataframe/samples.csv", 1, 3, 6, 4),
    "evalplus": ("evalplus", 1, 2, 6, 2),  # pass@1 0.333, it says
    "livecodebench": ("handmade/livecodebench", 1, 2, 6, 3),
    "hal": ("handmade/hal/taubench_agent_UPLOAD.json", 1, 2, 2, 1),
    "bfcl": ("bfcl", 1, 3, 3, 2),  # as its correct_count
    "appworld": ("appworld", 1, 3, 3, 2),  # task_goal_completion 66.7, it says
    "helm": ("helm", 1, 4, 8, 6),  # exact_match 0.75, it says
    "metr": ("handmade/metr/runs.jsonl", 2, 2, 5, 2),
    "agentdojo": ("agentdojo", 1, 4, 4, 2),
    "claude-skills": ("handmade/claude_skills", 2, 2, 12, 6),
    "nemo-evaluator": ("handmade/nemo_evaluator", 1, 2, 2, 1),
    "tracelens": ("tracelens/trials.json", 1, 2, 10, 3),  # of 9 that it can grade, it says
    "langsmith": ("langsmith/experiment.csv", 1, 3, 6, 3),
    "braintrust": ("braintrust/experiment.jsonl", 1, 3, 6, 3),
    "langfuse": ("langfuse", 1, 3, 3, 2),
    "phoenix": ("phoenix", 1, 3, 6, 3),
    "weave": ("weave", 1, 3, 6, 3),  # true_fraction 0.5, it says
    "ragas": ("ragas", 1, 2, 4, 2),  # exact_match 0.5, it says
    "aider": ("aider", 1, 2, 2, 1),  # pass_rate_2 50.0, it says
    "score-array": ("handmade/score_array", 1, 3, 8, 5),
    "swe-bench": ("handmade/swe_bench/run_evaluation", 1, 2, 4, 3),
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_sample_is_read_by_its_reader_with_the_counts_of_its_tool(name):
    file, *counted = COUNTED[name]
    trials = read_trials(SAMPLES / file)
    assert {source.format for source in trials.sources} == {name}
    found = len(trials.systems), len(trials.tasks), len(trials), int((trials.outcome == 1).sum())
    told = [(one, other) for one, other in zip(found, counted, strict=True) if other is not None]
    assert [one for one, _ in told] == [other for _, other in told]


@pytest.mark.parametrize("name", COUNTED)
def test_every_format_says_how_it_was_read(name):
    for source in read_trials(SAMPLES / COUNTED[name][0]).sources:
        line = how_read(source)
        assert line.startswith("read as: ")
        assert all(f"{part} = " in line for part in ("agent", "task", "trial", "outcome"))


@pytest.mark.parametrize("name", COUNTED)
def test_what_is_said_of_a_source_names_arguments_and_no_options_of_a_shell(name):
    for source in read_trials(SAMPLES / COUNTED[name][0]).sources:
        said = " ".join((how_read(source), *source.notes))
        assert "--" not in said.replace("--log_samples", "")  # an option of the harness


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_every_reader_says_what_becomes_what(reader):
    reading = reader.reading
    assert all((reading.format, reading.system, reading.task, reading.run, reading.outcome))


@pytest.mark.parametrize("name", [name for name in COUNTED if READERS[name].reading.family])
def test_families_are_taken_where_a_format_has_them(name):
    trials = read_trials(SAMPLES / COUNTED[name][0])
    assert trials.family is not None


def test_weights_and_times_of_metr_are_kept():
    trials = read_trials(SAMPLES / "handmade" / "metr" / "runs.jsonl")
    assert set(trials.to_columns()["weight"]) == {0.5}
    assert trials.started.names == ("2023-11-14T22:13:20+00:00",)
    assert trials.outcome.tolist() == [1, 0, 0, 2, 1]  # what broke around the agent is errored


@pytest.mark.parametrize("convention", ["openinference", "vercel"])
def test_spans_of_other_conventions_are_counted_as_opentelemetry_ones(convention):
    path = SAMPLES / "handmade" / "otel_conventions" / f"{convention}.jsonl"
    columns = read_trials(path, mapping=SPANS).to_columns()
    assert (columns["tokens_in"], columns["tokens_out"], columns["turns"]) == ([10], [5], [1])
    assert columns["tools"] == [("lookup",)]


def test_jest_s_retries_and_playwright_s_are_trials_of_their_own():
    counted = {}
    for file in ("ctrf/playwright.json", "playwright/report.json"):
        trials = read_trials(SAMPLES / file)
        counted[file] = (len(trials), int((trials.outcome == 1).sum()))
    assert set(counted.values()) == {(32, 12)}


@pytest.mark.parametrize(
    "file",
    [
        *("swebench_resolved_key.json", "ctrf.json", "promptfoo_v2.json", "rerun_subtests.xml"),
        *("rerun_teardown.xml", "jest_5suites.xml", "swe_logs", ".deepeval", "score_over_1.csv"),
        "system_prompt_column.jsonl",
    ],
)
def test_published_inputs_are_read(file):
    path = SHARED / "findings" / "inputs" / file
    if not path.exists():
        pytest.skip("published result files are not beside this checkout (../shared)")
    trials = read_trials(path)
    assert len(trials)
    assert how_read(trials.sources[0])


@pytest.mark.parametrize(
    ("file", "resolved", "tried"),
    [("aider_results.json", 79, 300), ("multi_swe_bench_results.json", 1, 91)],
)
def test_older_reports_of_swe_bench_are_counted_as_they_count_themselves(
    shared, file, resolved, tried
):
    trials = read_trials(shared / "swebench" / file)
    assert (int((trials.outcome == 1).sum()), len(trials)) == (resolved, tried)
    assert trials.family is not None


def test_the_steps_of_a_harbor_trial_are_added_up(tmp_path):
    step = {"agent_result": {"n_input_tokens": 3, "n_output_tokens": 2, "cost_usd": 0.5}}
    trial = {
        "task_name": "t",
        "agent_info": {"name": "a", "version": "1"},
        "verifier_result": {"rewards": {"reward": 1.0}},
        "agent_result": None,
        "exception_info": None,
        "step_results": [step, step, {"agent_result": None}],
    }
    (tmp_path / "result.json").write_text(json.dumps(trial))
    columns = read_trials(tmp_path).to_columns()
    assert (columns["tokens_in"], columns["tokens_out"], columns["cost"]) == ([6], [4], [1.0])
