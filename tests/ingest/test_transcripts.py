"""What was said, out of each tool's own files, beside the trial it was said in."""

import json
import re
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import msgspec
import pytest

from passhat.errors import ReadError
from passhat.ingest import READERS, ColumnMap, Limits, read_trials, read_with_transcripts
from passhat.ingest.formats.inspect_log import SpokenSample, sample_transcript
from passhat.ingest.sources import NO_TRANSCRIPTS
from passhat.ingest.transcripts import transcript_of
from passhat.records.transcript import Transcript
from passhat.reporters.page_parts import transcript_page

INSPECT = "inspect/flaky_5x5_two_scorers_1error"
LM_EVAL = "lm_eval/samples_flaky_demo_2026-11-15T01-57-02.617156.jsonl"
SPANS = ColumnMap(task="gen_ai.agent.name", passed="status")


def conversation(said, key):
    """Each message of a trial as its role and words."""
    kept = json.loads(said[key])
    return [(message["role"], message.get("text", "")) for message in kept.get("messages", ())]


@pytest.mark.parametrize("ending", [".eval", ".json"])
def test_an_inspect_sample_tells_its_messages_its_answer_and_its_scores(samples, ending):
    trials, said = read_with_transcripts(samples / (INSPECT + ending))
    assert len(said) == len(trials) == 25
    kept = json.loads(said["mockllm/model", "flaky_task/t4", 5])
    assert kept["messages"] == [
        {"role": "user", "text": "say ok 4"},
        {"role": "assistant", "text": "Default output from mockllm/model"},
    ]
    assert kept["answer"] == "wrong"
    assert [(check["target"], check["score"]) for check in kept["checks"]] == [
        ("includes", 0.0),
        ("partial_credit", 0.25),
    ]
    broken = json.loads(said["mockllm/model", "flaky_task/t3", 3])
    assert broken["error"].endswith("RuntimeError: tool server crashed (synthetic)\n")


def test_archives_and_json_logs_of_inspect_tell_the_same(samples):
    told = [read_with_transcripts(samples / (INSPECT + end))[1] for end in (".eval", ".json")]
    assert told[0] == told[1]


SAMPLES = Path(__file__).parents[1] / "samples"


@pytest.mark.parametrize("format_name", READERS)
def test_asking_for_transcripts_changes_no_trial(samples, shared, format_name):
    path, mapping = files_of(samples, shared).get(format_name) or (sample_of(format_name), None)
    trials = read_trials(path, mapping=mapping)
    also, said = read_with_transcripts(path, mapping=mapping)
    assert also.to_columns() == trials.to_columns()
    keys = {(trial.system, trial.task, trial.trial) for trial in trials}
    assert said.keys() <= keys
    silent = any(note.endswith("no transcripts") for note in also.sources[0].notes)
    assert bool(said) != silent


def sample_of(format_name):
    """The sample of a format that keeps no transcripts."""
    folder = format_name.replace("-", "_")
    return next(path for path in SAMPLES.glob("**/*") if path.name == folder and path.is_dir())


def files_of(samples, shared):
    """A file of each format, most of them written by the tool itself."""
    return {
        "passhat": (samples / "passhat" / "report.json", None),
        "inspect": (samples / f"{INSPECT}.eval", None),
        "tau-bench": (shared / "tau_bench" / "gpt-4o-airline.json", None),
        "tau2-bench": (shared / "tau2_bench" / "whissle_airline_1trial_v1.0_format.json", None),
        "promptfoo": (samples / "promptfoo" / "out.json", None),
        "deepeval": (samples / "deepeval" / "latest_test_run.json", None),
        "pydantic-evals": (samples / "pydantic_evals" / "report.json", None),
        "openai-evals": (samples / "openai_evals" / "251115_dummy_flaky.jsonl", None),
        "lm-eval": (samples / LM_EVAL, None),
        "humaneval": (shared / "humaneval" / "example_samples.jsonl_results.jsonl", None),
        "terminal-bench": (
            shared / "terminal_bench" / "results_1of1_droid_opus_run1.json",
            None,
        ),
        "harbor": (shared / "harbor", None),
        "swe-bench": (shared / "swebench" / "report_schema2_example.json", None),
        "mcpmark": (shared / "mcpmark" / "model_results_sample", None),
        "otel": (samples / "otel_genai" / "pydantic_ai_spans.jsonl", SPANS),
        "junit": (samples / "junit" / "junit_reruns.xml", None),
        "inspect-dataframe": (samples / "inspect_dataframe" / "samples.csv", None),
        "hal": (samples / "handmade" / "hal" / "swebench_agent_UPLOAD.json", None),
        "ctrf": (samples / "ctrf" / "jest.json", None),
        "table": (b"task,passed,answer\na,1,yes\nb,0,\n", None),
    }


def test_a_tau_bench_trajectory_is_told_with_its_calls(shared):
    _, said = read_with_transcripts(shared / "tau_bench" / "gpt-4o-airline.json")
    kept = json.loads(said["gpt-4o-airline", "0", 0])["messages"]
    assert [message["role"] for message in kept[:4]] == ["system", "user", "assistant", "user"]
    calls = [call for message in kept for call in message.get("calls", ())]
    assert calls[0] == {
        "name": "get_user_details",
        "arguments": '{"user_id":"mia_li_3668"}',
        "id": "call_oIHazX6yQrB8hUwl4cRilFKj",
    }
    answers = [message for message in kept if message["role"] == "tool"]
    assert answers[0]["name"] == "get_user_details"
    assert len(said) == 200


def test_a_tau2_folder_is_opened_simulation_by_simulation(shared, tmp_path):
    log = shared / "tau2_bench" / "gpt-4.1_telecom_no-user_4trials_5tasks.json"
    _, whole = read_with_transcripts(log)
    results = json.loads(log.read_bytes())
    simulations = results.pop("simulations")
    (tmp_path / "simulations").mkdir()
    for simulation in simulations:  # called by random ids: their order is not that of the index
        name = f"{simulation['id']}.json"
        (tmp_path / "simulations" / name).write_text(json.dumps(simulation))
    index = [{k: v for k, v in one.items() if k != "messages"} for one in simulations]
    (tmp_path / "results.json").write_text(json.dumps(results | {"simulation_index": index}))
    _, indexed = read_with_transcripts(tmp_path)
    assert indexed == whole
    (tmp_path / "results.json").write_text(json.dumps(results | {"simulations": []}))
    assert read_with_transcripts(tmp_path)[1] == whole


def test_a_tau2_simulation_tells_what_its_reward_rests_on(shared):
    log = shared / "tau2_bench" / "gpt-4.1_telecom_no-user_4trials_5tasks.json"
    _, said = read_with_transcripts(log)
    checks = [json.loads(text)["checks"] for text in said.values()]
    failed = [check for one in checks for check in one if check["score"] < 1]
    assert {check["target"] for check in failed} == {"assert internet speed"}
    assert failed[0]["expected"] == (
        "assert_internet_speed(expected_speed=200, expected_desc=excellent)"
    )
    assert len(failed) == 4  # as many as trials that failed
    assert all(one and all("expected" not in c for c in one if c["score"] == 1) for one in checks)


def test_a_terminal_bench_trial_whose_tests_said_nothing_tells_why(shared):
    folder = shared / "terminal_bench" / "leaderboard" / "20250911_chaterm_claude-4-sonnet"
    _, said = read_with_transcripts(folder)
    checks = [json.loads(text)["checks"] for text in said.values()]
    assert all(checks)  # every trial of every run says how its tests ended
    silent = [one[0]["message"] for one in checks if one[0]["target"] == "tests"]
    assert {"parse error", "test timeout"} >= set(silent) != set()


@pytest.mark.parametrize("name", ["out.json", "out.jsonl"])
def test_a_promptfoo_result_tells_prompt_output_and_assertions(samples, name):
    _, said = read_with_transcripts(samples / "promptfoo" / name)
    kept = json.loads(said["flaky-js", "never", 4])
    assert [m["text"] for m in kept["messages"]] == ["task t4", "wrong"]
    assert kept["checks"] == [
        {
            "target": "equals",
            "score": 0,
            "message": 'Expected output "wrong" to equal "ok"',
            "expected": "ok",
            "found": "wrong",
        }
    ]
    assert "error" not in kept  # it would only repeat the assertion


def test_a_promptfoo_table_tells_the_template_with_its_variables(samples):
    _, said = read_with_transcripts(samples / "promptfoo" / "out.csv")
    asked, answered = conversation(said, ("flaky-js", "never", 4))
    assert asked == ("user", "task {{name}}\nDescription: never\nname: t4\np: 0")
    assert answered == ("assistant", "wrong")


def test_a_deepeval_case_tells_input_output_and_reasons(samples):
    _, said = read_with_transcripts(samples / "deepeval" / "latest_test_run.json")
    key = ("system", "never", 2)
    assert conversation(said, key) == [("user", "task never"), ("assistant", "wrong")]
    assert json.loads(said[key])["checks"][0]["message"] == "exact"


def test_a_deepeval_conversation_is_told_turn_by_turn():
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Bye"}]
    case = {"name": "talk", "success": True, "metricsData": [], "turns": turns}
    run = {"testCases": [], "conversationalTestCases": [case], "testPassed": 1}
    _, said = read_with_transcripts(json.dumps(run).encode())
    assert conversation(said, ("system", "talk", 0)) == [("user", "Hi"), ("assistant", "Bye")]


def test_a_pydantic_evals_case_that_broke_tells_its_stack(samples):
    _, said = read_with_transcripts(samples / "pydantic_evals" / "report.json")
    kept = json.loads(said["task", "crash", 3])
    assert kept["messages"] == [{"role": "user", "text": "crash:1.0"}]
    assert kept["error"].startswith("Traceback (most recent call last)")
    assert conversation(said, ("task", "always", 1))[1] == ("assistant", "ok")


def test_openai_evals_samples_tell_what_was_sampled_before_they_were_judged(samples):
    _, said = read_with_transcripts(samples / "openai_evals" / "251115_dummy_flaky.jsonl")
    key = ("dummy", "flaky.dev.2", 0)
    assert conversation(said, key) == [("user", "say ok 2"), ("assistant", "wrong")]
    assert json.loads(said[key])["checks"][0]["score"] == 0.0


def test_an_lm_eval_document_tells_every_answer_and_the_one_that_counted(samples):
    _, said = read_with_transcripts(samples / LM_EVAL)
    key = next(iter(said))
    asked, *answers = conversation(said, key)
    assert asked == ("user", "say ok 0")
    assert [role for role, _ in answers] == ["assistant"] * 4
    assert json.loads(said[key])["answer"] == answers[0][1]


def test_spans_tell_each_message_once_in_the_order_of_time(samples):
    _, said = read_with_transcripts(
        samples / "otel_genai" / "pydantic_ai_spans.jsonl", mapping=SPANS
    )
    kept = json.loads(said["weather_agent", "weather_agent", 0])["messages"]
    assert [message["role"] for message in kept] == [
        "user", "assistant", "tool", "tool", "assistant",
    ]  # fmt: skip
    assert [call["name"] for call in kept[1]["calls"]] == ["get_weather", "broken"]
    assert kept[2]["text"] == "sunny"


def test_messages_that_otlp_wraps_in_their_types_are_unwrapped():
    text = {"kvlistValue": {"values": [
        {"key": "type", "value": {"stringValue": "text"}},
        {"key": "content", "value": {"stringValue": "Hi"}},
    ]}}  # fmt: skip
    message = {"kvlistValue": {"values": [
        {"key": "role", "value": {"stringValue": "user"}},
        {"key": "parts", "value": {"arrayValue": {"values": [text]}}},
    ]}}  # fmt: skip
    attributes = [
        {"key": "task", "value": {"stringValue": "greet"}},
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.input.messages", "value": {"arrayValue": {"values": [message]}}},
    ]
    span = {"traceId": "a", "spanId": "b", "name": "chat", "attributes": attributes}
    file = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    mapping = ColumnMap(task="task", passed="status")
    _, said = read_with_transcripts(json.dumps(file).encode(), mapping=mapping)
    assert conversation(said, ("input", "greet", 0)) == [("user", "Hi")]


def test_junit_attempts_tell_what_they_printed_and_how_each_failed():
    xml = b"""<testsuite name="s" tests="1"><testcase name="t">
    <rerunFailure message="first">one<system-out>out 1</system-out></rerunFailure>
    <failure message="last">two</failure><system-out>out 2</system-out></testcase>
    <testcase name="quiet"/><system-out>of the suite</system-out></testsuite>"""
    _, said = read_with_transcripts(xml)
    assert [json.loads(text) for text in said.values()] == [
        {"messages": [{"role": "system-out", "text": "out 1"}], "error": "one"},
        {"messages": [{"role": "system-out", "text": "out 2"}], "error": "two"},
    ]
    assert list(said) == [("s", "t", 0), ("s", "t", 1)]


def test_every_junit_failure_of_pytest_is_told_in_full(samples):
    trials, said = read_with_transcripts(samples / "junit" / "junit_repeat.xml")
    assert len(said) == sum(trial.outcome != 1 for trial in trials) == 20
    assert "sandbox setup failed" in said["pytest", "test_flaky::test_setup_error", 0]


def test_an_mcpmark_run_reads_the_messages_beside_it(tmp_path):
    for number in (1, 2):
        folder = tmp_path / "model" / f"run-{number}" / "task"
        folder.mkdir(parents=True)
        meta = {"task_name": "t", "model_name": "m", "execution_result": {"success": True}}
        (folder / "meta.json").write_text(json.dumps(meta))
        message = {"role": "user", "content": f"run {number}"}
        (folder / "messages.json").write_text(json.dumps([message]))
    trials, said = read_with_transcripts(tmp_path)
    assert conversation(said, ("m", "t", 1)) == [("user", "run 1")]
    assert conversation(said, ("m", "t", 2)) == [("user", "run 2")]
    assert trials.sources[0].notes == ()  # messages are no result file that was left out


def test_a_folder_says_how_many_of_its_files_hold_no_transcripts(tmp_path):
    for number, words in enumerate(("Yes.", "", "")):
        rows = f"system,task,trial,passed,answer\ns,a,{number},1,{words}\n"
        (tmp_path / f"{number}.csv").write_text(rows)
    trials, said = read_with_transcripts(tmp_path)
    assert list(said) == [("s", "a", 0)]
    assert trials.sources[0].notes == ("2 of 3 files hold no transcripts",)


@pytest.mark.slow("starts pytest")
def test_pytest_itself_writes_what_a_test_printed(tmp_path):
    (tmp_path / "test_talk.py").write_text(
        "def test_talk():\n    print('hello from the agent')\n    assert 1 == 2, 'no refund'\n"
    )
    options = ["-q", "--junitxml=log.xml", "-o", "junit_logging=all", "-p", "no:cacheprovider"]
    run = [sys.executable, "-m", "pytest", *options, "test_talk.py"]
    subprocess.run(run, cwd=tmp_path, capture_output=True, check=False)
    _, said = read_with_transcripts(tmp_path / "log.xml")
    kept = json.loads(said["pytest", "test_talk::test_talk", 0])
    assert "hello from the agent" in kept["messages"][0]["text"]
    assert "AssertionError: no refund" in kept["error"]


def test_a_harbor_trial_reads_its_trajectory_and_what_its_verifier_printed(tmp_path):
    agent = {"name": "a"}
    result = {"task_name": "t", "agent_info": agent, "verifier_result": {"rewards": {"r": 1}}}
    (tmp_path / "result.json").write_text(json.dumps(result))
    steps = [
        {"step_id": 1, "source": "user", "message": "Do it"},
        {
            "step_id": 2,
            "source": "agent",
            "message": "Running.",
            "tool_calls": [{"function_name": "bash", "arguments": {"cmd": "ls"}}],
            "observation": {"results": [{"content": "a.txt"}]},
        },
    ]
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "trajectory.json").write_text(json.dumps({"steps": steps}))
    (tmp_path / "verifier").mkdir()
    (tmp_path / "verifier" / "test-stdout.txt").write_text("1 passed")
    _, said = read_with_transcripts(tmp_path)
    kept = json.loads(said["a", "t", 0])
    assert conversation(said, ("a", "t", 0)) == [
        ("user", "Do it"), ("assistant", "Running."), ("tool", "a.txt"),
    ]  # fmt: skip
    assert kept["messages"][1]["calls"] == [{"name": "bash", "arguments": '{"cmd":"ls"}'}]
    assert kept["checks"][0]["message"] == "1 passed"


def terminal_bench_run(folder, trial_name):
    trial = {"task_id": "t", "trial_name": trial_name, "is_resolved": True, "instruction": "Go"}
    results = {"results": [trial], "pass_at_k": {}, "n_resolved": 1}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(results))
    return folder


def test_a_terminal_bench_trial_reads_its_episodes_and_its_terminal(tmp_path):
    name = "t.1-of-1"
    logs = terminal_bench_run(tmp_path, name) / "t" / name
    for number in (10, 9):
        episode = logs / "agent-logs" / f"episode-{number}"
        episode.mkdir(parents=True)
        (episode / "prompt.txt").write_text(f"$ {number}")
        (episode / "response.txt").write_text(f"ls {number}")
    (logs / "panes").mkdir()
    (logs / "panes" / "post-agent.txt").write_text("root@box:~# \n")
    _, said = read_with_transcripts(tmp_path / "results.json")
    assert conversation(said, next(iter(said))) == [
        ("user", "Go"),
        *[("terminal", "$ 9"), ("assistant", "ls 9"), ("terminal", "$ 10"), ("assistant", "ls 10")],
        ("terminal", "root@box:~#"),
    ]


@pytest.mark.parametrize("name", ["../../outside", "link", "a\0b", "x" * 5000])
def test_a_name_in_a_file_leads_nowhere_outside_its_folder(tmp_path, name):
    secret = tmp_path / "outside" / "panes"
    secret.mkdir(parents=True)
    (secret / "post-agent.txt").write_text("a secret")
    run = terminal_bench_run(tmp_path / "log", name)
    (run / "t").mkdir()
    (run / "t" / "link").symlink_to(tmp_path / "outside")
    trials, said = read_with_transcripts(run / "results.json")
    assert said == {}
    assert trials.sources[0].notes == (NO_TRANSCRIPTS,)


def test_a_table_has_a_usual_column_of_what_was_said_or_one_that_is_named():
    rows = (
        b'task,passed,output,words\na,1,yes,"[{""role"": ""user"", ""content"": ""Hi""}]"\nb,0,,\n'
    )
    _, said = read_with_transcripts(rows)
    assert said == {("input", "a", 0): '{"answer": "yes"}'}
    _, said = read_with_transcripts(rows, mapping=ColumnMap(transcript="words"))
    assert conversation(said, ("input", "a", 0)) == [("user", "Hi")]
    with pytest.raises(ReadError, match='no column "wrods" for `transcript`'):
        read_with_transcripts(rows, mapping=ColumnMap(transcript="wrods"))


def test_passhats_own_file_may_carry_transcripts():
    lines = [
        {"schema": "passhat.trials/1"},
        {"task": "a", "trial": 0, "outcome": "passed", "transcript": "It went well."},
    ]
    own = b"\n".join(map(msgspec.json.encode, lines))
    assert list(read_with_transcripts(own)[1].values()) == ['{"answer": "It went well."}']


def test_files_that_go_on_numbering_keep_each_transcript_with_its_trial(tmp_path):
    for name, rows in {"1.csv": "a,1,first\n", "2.csv": "a,0,second\n"}.items():
        (tmp_path / name).write_text("system,task,passed,answer\n" + f"s,{rows}")
    _, said = read_with_transcripts(tmp_path)
    assert {key: json.loads(text)["answer"] for key, text in said.items()} == {
        ("s", "a", 0): "first",
        ("s", "a", 1): "second",
    }


@pytest.mark.parametrize(
    ("duplicates", "told"), [("last", {1: "again"}), ("keep", {0: "once", 1: "again"})]
)
def test_settled_duplicates_keep_the_words_of_the_trials_that_stay(duplicates, told):
    rows = b"task,trial,passed,answer\na,1,1,once\na,1,0,again\n"
    _, said = read_with_transcripts(rows, duplicates=duplicates)
    assert {key[2]: json.loads(text)["answer"] for key, text in said.items()} == told


def test_a_long_transcript_is_cut_at_the_limit_with_a_mark():
    rows = b"task,passed,answer\na,1," + b"x" * 5_000 + b"\n"
    _, said = read_with_transcripts(rows, limits=Limits(max_transcript=1_000))
    answer = json.loads(said["input", "a", 0])["answer"]
    assert answer == "x" * 1_000 + " [cut here: 4,000 more characters]"


def test_references_into_attachments_are_followed_and_bounded():
    digest = "0" * 32
    sample = {
        "id": 1,
        "epoch": 1,
        "scores": {"s": {"value": "C"}},
        "messages": [{"role": "user", "content": f"attachment://{digest}"}],
        "attachments": {digest: "y" * 9_000},
    }
    log = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
    data = json.dumps(log | {"samples": [sample]}).encode()
    assert conversation(read_with_transcripts(data)[1], ("m", "t/1", 1)) == [("user", "y" * 9_000)]
    _, said = read_with_transcripts(data, limits=Limits(max_transcript=100))
    assert len(said["m", "t/1", 1]) < 300


def test_an_attachment_that_is_named_again_and_again_is_brought_in_no_further_than_it_fits():
    digest = "0" * 32
    named = " ".join([f"attachment://{digest}"] * 20)
    sample = SpokenSample(
        messages=[{"role": "user", "content": named}] * 20, attachments={digest: "y" * 1_000}
    )
    found = sample_transcript(sample, 2_500)
    assert sum(turn.text.count("y") for turn in found.messages) == 2_500
    assert found.messages[-1].text == named


def test_samples_that_together_expand_too_far_are_refused(tmp_path):
    path = tmp_path / "bomb.eval"
    padding = b'{"messages": []}' + b" " * (8 * 2**20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", '{"eval": {"task": "t", "model": "m"}}')
        summaries = [{"id": n, "epoch": 1, "scores": {"s": {"value": "C"}}} for n in range(9)]
        archive.writestr("summaries.json", json.dumps(summaries))
        for number in range(9):  # each is small enough to be beyond suspicion
            archive.writestr(f"samples/{number}_epoch_1.json", padding)
    assert len(read_trials(path)) == 9
    with pytest.raises(ReadError, match="above max_ratio = 150: it may be a decompression bomb"):
        read_with_transcripts(path)
    assert len(zlib.compress(padding)) * 9 * 100 < 9 * len(padding)


def test_words_nested_without_end_are_refused_not_followed():
    depth = 100_000
    deep = b"[" * depth + b"]" * depth
    rows = b'[{"task_id": 1, "reward": 1, "traj": [{"role": "user", "content": ' + deep + b"}]}]"
    with pytest.raises(ReadError, match="nested too deeply"):
        read_with_transcripts(rows)


@pytest.mark.parametrize(
    ("trial", "words"),
    [
        ({"task_id": "a", "completion": 7, "passed": True, "result": None}, "7"),
        (
            {
                "doc_id": 1,
                "doc": "Hi",
                "arguments": 5,
                "resps": ["no"],
                "filtered_resps": 3,
                "metrics": ["acc"],
                "acc": 1,
            },
            "no",
        ),
        (
            {
                "success": True,
                "provider": "p",
                "prompt": {"raw": "Hi"},
                "vars": {},
                "testIdx": 0,
                "promptIdx": 0,
                "response": {"output": "yes"},
                "gradingResult": {"componentResults": [None, {"score": "x", "reason": 4}]},
            },
            "yes",
        ),
    ],
    ids=["humaneval", "lm-eval", "promptfoo"],
)
def test_words_of_an_odd_shape_never_keep_a_trial_from_being_read(trial, words):
    data = (json.dumps(trial) + "\n").encode() * 2
    assert len(read_trials(data)) == 2
    trials, said = read_with_transcripts(data)
    assert len(trials) == len(said) == 2
    assert all(words in text for text in said.values())


def test_a_trajectory_that_was_left_half_written_is_told_and_the_others_are_read(tmp_path):
    for name, steps in (("a", '{"steps": [{"source": "user", "message": "Hi"}]}'), ("b", '{"st')):
        folder = tmp_path / f"{name}__1"
        (folder / "agent").mkdir(parents=True)
        (folder / "agent" / "trajectory.json").write_text(steps)
        result = {
            "task_name": name,
            "trial_name": f"{name}__1",
            "agent_info": {"name": "claude"},
            "verifier_result": {"rewards": {"reward": 1.0}},
        }
        (folder / "result.json").write_text(json.dumps(result))
    _, said = read_with_transcripts(tmp_path)
    kept = {task: json.loads(text) for (_, task, _), text in said.items()}
    assert kept["a"]["messages"] == [{"role": "user", "text": "Hi"}]
    assert "agent/trajectory.json" in kept["b"]["error"]


def test_transcripts_of_json_lines_are_read_line_by_line_as_they_are_in_a_json_array():
    rows = [
        {"task": "a", "passed": True, "output": "yes"},
        {"task": "b", "passed": False},
        {"task": "c", "passed": False, "output": {"role": "user", "content": "Hi"}},
        {"task": "d", "passed": True, "output": None},
    ]
    lines = "\n".join(map(json.dumps, rows)).encode()
    assert read_with_transcripts(lines)[1] == read_with_transcripts(json.dumps(rows).encode())[1]


@pytest.mark.parametrize("name", ["name", "tool", "tool_name"])
@pytest.mark.parametrize("kind", ["tool_call", "tool_use", "function_call"])
def test_a_flat_list_of_typed_items_has_its_calls(kind, name):
    items = [
        {"type": "message", "content": "the question"},
        {"type": kind, name: "search", "status": "completed"},
        {"type": "plan", "content": "of a kind that nobody knows"},
    ]
    turns = transcript_of(items).messages
    assert [call.name for turn in turns for call in turn.calls] == ["search"]
    assert turns[0].text == "the question"


def test_a_list_of_a_shape_that_nobody_knows_stays_an_answer():
    said = transcript_of([{"type": "plan", "what": "x"}])
    assert (said.messages, said.answer) == ((), '[{"type":"plan","what":"x"}]')


def big_log(tasks=12, runs=30):
    """JSON Lines in which failing runs call bad_tool; task t0 always passes, t1 never."""
    lines = []
    for task in range(tasks):
        for run in range(runs):
            passed = task == 0 or (task > 1 and run % 12 > task % 5)
            call = {"type": "tool_call", "name": "good_tool" if passed else "bad_tool"}
            said = [{"role": "user", "content": "x" * 200}, call]
            row = {"task": f"t{task}", "trial": run, "passed": passed, "messages": said}
            lines.append(json.dumps(row))
    return "\n".join(lines).encode()


def test_of_a_big_log_passing_and_failing_trials_of_the_same_tasks_are_read():
    log = big_log()
    trials, every = read_with_transcripts(log)
    some_trials, some = read_with_transcripts(log, most=len(log) // 3)
    assert some_trials.tally().passed.tolist() == trials.tally().passed.tolist()
    assert set(some) | some.unread == set(every)
    assert not set(some) & some.unread
    assert len(every) / 4 < len(some) < len(every) / 2
    assert all(some[key] == every[key] for key in some)
    for task in {task for _, task, _ in some} - {"t0", "t1"}:
        calls = {json.loads(some[key])["messages"][1]["calls"][0]["name"] for key in some
                 if key[1] == task}  # fmt: skip
        assert calls == {"good_tool", "bad_tool"}, task


def test_a_log_below_the_bound_is_read_whole():
    log = big_log()
    assert read_with_transcripts(log, most=len(log))[1] == read_with_transcripts(log)[1]


def test_the_transcripts_of_one_task_are_read_alone():
    _, said = read_with_transcripts(big_log(), task="t3")
    assert {task for _, task, _ in said} == {"t3"}
    assert len(said) == 30
    assert len(said.unread) == 330
    _, every = read_with_transcripts(big_log(), task="no such task")
    assert len(every) == 360


def test_transcripts_that_are_not_wanted_are_not_decoded(monkeypatch):
    decoded = []

    def counted(cell):
        decoded.append(cell)
        return transcript_of(cell)

    monkeypatch.setattr("passhat.ingest.formats.tables.transcript_of", counted)
    _, said = read_with_transcripts(big_log(), task="t3")
    assert len(decoded) == len(said) == 30


CANCEL, BOOK = ("cancel", {"id": 7}), ("book", {"to": "SEA", "bags": 3})


@pytest.mark.parametrize(
    ("wanted", "made", "fault", "expected", "found"),
    [
        ([], [CANCEL], "changed something it should have refused", "no other", "cancel(id=7)"),
        ([CANCEL], [], "never made the change", "cancel(id=7)", "no other"),
        ([CANCEL], [("transfer_to_human_agents", {})], "handed over", "cancel(id=7)", "no other"),
        ([BOOK], [("book", {"to": "SEA", "bags": 1})], "right change, wrong details",
         "book(bags=3)", "book(bags=1)"),
        ([CANCEL], [CANCEL, BOOK], "made extra changes", "no other", "book(bags=3, to=SEA)"),
        ([CANCEL, BOOK], [CANCEL], "left part of the job undone", "book(", "no other"),
        ([CANCEL], [BOOK], "made different changes", "cancel(id=7)", "book("),
        ([CANCEL], [CANCEL, ("get_user", {})], "right changes, wrong answer",
         "no other", "no other"),
    ],
)  # fmt: skip
def test_a_failed_tau_bench_trial_says_what_was_expected_and_what_was_done(
    wanted, made, fault, expected, found
):
    calls = [{"function": {"name": name, "arguments": json.dumps(args)}} for name, args in made]
    row = {
        "task_id": 1,
        "reward": 0.0,
        "info": {"reward_info": {"actions": [{"name": n, "kwargs": a} for n, a in wanted]}},
        "traj": [{"role": "assistant", "content": None, "tool_calls": calls}],
    }
    _, said = read_with_transcripts(json.dumps([row]).encode())
    (check,) = Transcript.from_json(next(iter(said.values()))).checks
    assert check.message.startswith(fault)
    assert check.expected.startswith(expected)
    assert check.found.startswith(found)


@pytest.mark.parametrize(
    ("wanted", "made", "says"),
    [
        ([], [], "changed nothing, as expected"),
        ([CANCEL, BOOK], [BOOK, CANCEL], "made the expected changes"),
        ([CANCEL], [CANCEL, BOOK], ""),  # how it came to the same end is not known
    ],
)
def test_a_tau_bench_trial_that_passed_says_whether_it_made_the_changes_expected(
    wanted, made, says
):
    calls = [{"function": {"name": name, "arguments": json.dumps(args)}} for name, args in made]
    actions = [{"name": name, "kwargs": args} for name, args in wanted]
    row = {
        "task_id": 1,
        "reward": 1.0,
        "info": {"reward_info": {"actions": actions}},
        "traj": [{"role": "assistant", "content": None, "tool_calls": calls}],
    }
    _, said = read_with_transcripts(json.dumps([row]).encode())
    (check,) = Transcript.from_json(next(iter(said.values()))).checks
    assert (check.score, check.message) == (1.0, says)
    words = re.sub(r"<[^>]*>", "", transcript_page(next(iter(said.values())), 1000))
    assert f"✓ held {says or 'the check of the log'}" in " ".join(words.split())


def test_a_change_that_a_tool_refused_does_not_count_as_made():
    call = {"id": "1", "function": {"name": "cancel", "arguments": "{}"}}
    traj = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "name": "cancel", "content": "Error: not yours"},
    ]
    info = {"reward_info": {"actions": [{"name": "cancel", "kwargs": {}}]}}
    log = [{"task_id": 1, "reward": 0.0, "info": info, "traj": traj}]
    _, said = read_with_transcripts(json.dumps(log).encode())
    (check,) = Transcript.from_json(next(iter(said.values()))).checks
    assert check.message == "never made the change"
