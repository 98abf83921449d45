"""What each tool's own file says, read from a file that the tool wrote."""

import zipfile

import msgspec
import pytest

from passhat import render_terminal
from passhat.analysis.reports.measure import measure
from passhat.errors import ReadError
from passhat.ingest import ColumnMap, Limits, read_trials
from passhat.ingest.document import Archive
from passhat.records.trial import GRADED_BY_JUDGE

FLAKY_INSPECT = {
    "flaky_task/t0": (5, 0, 0),
    "flaky_task/t1": (5, 0, 0),
    "flaky_task/t2": (1, 4, 0),
    "flaky_task/t3": (4, 0, 1),
    "flaky_task/t4": (0, 5, 0),
}
ONLY_ONE = "no verdicts, only scores: a \"{}\" of 1 passes (or use `pass_if='score>=...'`)"


def test_inspect_archives_and_json_logs_say_the_same(samples, counts):
    for name in ("flaky_5x5_two_scorers_1error.eval", "flaky_5x5_two_scorers_1error.json"):
        trials = read_trials(samples / "inspect" / name)
        assert trials.systems == ("mockllm/model",)
        assert counts(trials) == FLAKY_INSPECT
        assert sorted(set(trials.trial.tolist())) == [1, 2, 3, 4, 5]


def test_the_first_inspect_scorer_is_read_and_said_and_another_can_be_chosen(samples):
    log = samples / "inspect" / "flaky_5x5_two_scorers_1error.eval"
    first = read_trials(log)
    assert first.sources[0].notes == (
        'scorer "includes" was read; there is also partial_credit (choose with `scorer`)',
    )
    partial = read_trials(log, mapping=ColumnMap(scorer="partial_credit"))
    assert partial.sources[0].notes == (ONLY_ONE.format("partial_credit"),)
    failed_score = {0.25}
    assert {s for s in partial.score.tolist() if s < 1} == failed_score
    with pytest.raises(ReadError, match=r'no scorer "nope"; it has includes, partial_credit'):
        read_trials(log, mapping=ColumnMap(scorer="nope"))


def test_a_screen_says_once_which_scorers_were_not_read(samples):
    log = samples / "inspect" / "flaky_5x5_two_scorers_1error.eval"
    for chosen, other in ((None, "partial_credit"), ("partial_credit", "includes")):
        text = render_terminal(measure(read_trials(log, mapping=ColumnMap(scorer=chosen))))
        assert text.count(other) == 1, text


def test_inspect_trials_carry_tokens_seconds_turns_error_and_start(samples):
    trials = read_trials(samples / "inspect" / "flaky_5x5_two_scorers_1error.eval")
    broken = next(trial for trial in trials if trial.error)
    assert broken.error == "RuntimeError('tool server crashed (synthetic)')"
    assert (broken.task, broken.trial, broken.score) == ("flaky_task/t3", 3, None)
    assert (broken.tokens_in, broken.tokens_out, broken.turns) == (4, 33, 1)
    assert broken.seconds == 0.666
    assert broken.started == "2026-11-15T01:25:14.842570+00:00"


def test_a_crashed_inspect_log_without_header_reads_from_its_journal(samples, tmp_path, counts):
    whole = samples / "inspect" / "flaky_5x5_two_scorers_1error.eval"
    for kept in ("_journal/", "samples/"):
        crashed = _archive_of(
            whole,
            tmp_path / "crashed.eval",
            lambda name, kept=kept: name == "_journal/start.json" or name.startswith(kept),
        )
        trials = read_trials(crashed)
        assert counts(trials) == FLAKY_INSPECT
        assert any('status is "started"' in note for note in trials.sources[0].notes)


def test_old_inspect_archives_were_deflated(samples, tmp_path, counts):
    whole = samples / "inspect" / "flaky_5x5_two_scorers_1error.eval"
    old = _archive_of(whole, tmp_path / "old.eval", lambda name: True)
    assert counts(read_trials(old)) == FLAKY_INSPECT


def test_samples_of_an_inspect_archive_stay_unread_where_there_is_a_summary(samples, tmp_path):
    whole = samples / "inspect" / "flaky_5x5_two_scorers_1error.eval"
    broken = _archive_of(
        whole, tmp_path / "broken.eval", lambda name: True, replaced={"samples/": b"not json"}
    )
    assert len(read_trials(broken)) == 25


def test_inspect_scores_of_several_parts_are_chosen_by_part():
    scores = {"judge": {"value": {"tone": 1, "facts": 0}}}
    sample = {"id": 1, "epoch": 1, "scores": scores}
    log = _inspect_json([sample])
    assert read_trials(log).tally().passed.tolist() == [1]
    facts = read_trials(log, mapping=ColumnMap(scorer="judge.facts"))
    assert facts.tally().failed.tolist() == [1]


def test_an_inspect_score_that_is_not_a_number_is_errored_not_failed():
    log = _inspect_json([{"id": 1, "epoch": 1, "scores": {"s": {"value": "NAN"}}}])
    unscored = log.replace(b'"NAN"', b"NaN")
    tally = read_trials(unscored).tally()
    assert (tally.failed.tolist(), tally.errored.tolist()) == ([0], [1])


def test_inspect_grades_outside_zero_and_one_need_a_bar():
    graded = [{"id": i, "epoch": 1, "scores": {"s": {"value": 3 * i}}} for i in range(4)]
    with pytest.raises(
        ReadError, match=r"input, sample 1, field score: must lie in \[0, 1\], got 3"
    ):
        read_trials(_inspect_json(graded))
    judged = read_trials(_inspect_json(graded), mapping=ColumnMap(pass_if="score>=6"))
    assert judged.tally().passed.sum() == 2
    assert set(judged.score.tolist()) == {0.0, 1.0}
    assert any("only whether score>=6 holds" in note for note in judged.sources[0].notes)


@pytest.mark.parametrize("name", ["out.json", "out.jsonl", "out.csv", "out.junit.xml"])
def test_promptfoo_repeats_are_matched_by_test_whatever_the_export(samples, counts, name):
    trials = read_trials(samples / "promptfoo" / name)
    assert counts(trials) == {
        "always": (5, 0, 0),
        "often": (4, 1, 0),
        "half": (4, 1, 0),
        "crashy": (4, 0, 1),
        "never": (0, 5, 0),
    }


def test_promptfoo_keeps_partial_scores_cost_tokens_and_latency(samples):
    trials = read_trials(samples / "promptfoo" / "out.json")
    failed = next(t for t in trials if t.task == "often" and t.outcome.name == "FAILED")
    assert failed.score == 0.5
    first = next(iter(trials))
    assert (first.cost, first.tokens_in, first.tokens_out, first.seconds) == (0.0001, 8, 4, 0.013)


def test_promptfoo_prompts_of_one_provider_are_two_systems_and_same_names_two_tasks():
    def line(prompt, variables, success):
        return {
            "success": success, "score": float(success), "promptIdx": 0, "gradingResult": {},
            "provider": {"id": "gpt"}, "promptId": prompt, "prompt": {"label": prompt},
            "testCase": {"description": "case", "vars": variables}, "failureReason": 0,
        }  # fmt: skip

    lines = [line("p1", {"x": 1}, True), line("p1", {"x": 2}, False), line("p2", {"x": 1}, True)]
    trials = read_trials(b"\n".join(map(msgspec.json.encode, lines)))
    assert trials.systems == ("gpt [p1]", "gpt [p2]")
    assert trials.tasks == ("case (x=1)", "case (x=2)")


def promptfoo_result(prompt, variables):
    return {
        "provider": {"id": "openai:x"},
        "promptId": prompt,
        "prompt": {"raw": prompt, "label": prompt},
        "vars": variables,
        "testCase": {"vars": variables, "assert": []},
        "success": True,
        "score": 1,
    }


def test_promptfoo_prompts_are_called_by_their_files_and_not_by_their_text():
    prompts = ["prompts/brief.txt: You are brief.\nAnswer.", "prompts/long.txt: You are long."]
    results = [promptfoo_result(prompt, {"q": "1", "_conversation": []}) for prompt in prompts]
    log = {"evalId": "e", "results": {"version": 3, "results": results}, "config": {}}
    trials = read_trials(msgspec.json.encode(log))
    assert trials.systems == ("openai:x [prompts/brief.txt]", "openai:x [prompts/long.txt]")
    assert trials.tasks == ("q=1",)


def test_a_promptfoo_csv_says_the_same_as_its_json(samples):
    table, whole = (read_trials(samples / "promptfoo" / name) for name in ("out.csv", "out.json"))
    assert (table.systems, table.tasks) == (whole.systems, whole.tasks)
    assert table.sources[0].format == "promptfoo"

    def told(trials):
        return [(t.task, t.trial, t.outcome, t.score) for t in trials]

    assert told(table) == told(whole)


def test_a_promptfoo_csv_has_a_block_of_columns_for_each_provider():
    rows = (
        "x,[gpt] ask,Status,Score,Comment,[claude] ask,Status,Score,Comment",
        "1,ok,PASS,1.00,,no,FAIL,0.00,",
        "1,ok,PASS,1.00,,,ERROR,0.00,",
    )
    trials = read_trials("\n".join(rows).encode())
    assert trials.tasks == ("x=1",)
    endings = {(t.system, t.trial): t.outcome.name for t in trials}
    assert endings == {
        ("gpt", 0): "PASSED", ("gpt", 1): "PASSED", ("claude", 0): "FAILED",
        ("claude", 1): "ERRORED",
    }  # fmt: skip
    with pytest.raises(ReadError, match=r"input, line 2: has 2 cells where the header has 4"):
        read_trials(b"x,[gpt] ask,Status,Score\n1,ok\n")
    with pytest.raises(ReadError, match=r'has no columns "\[provider\] prompt", Status and Score'):
        read_trials(b"task,passed\na,1\n", format="promptfoo")
    with pytest.raises(ReadError, match=r"input, line 2, column Score: 'full' is not a number"):
        read_trials(b"x,[gpt] ask,Status,Score\n1,ok,PASS,full\n")


def test_answers_from_promptfoos_cache_are_said_to_be_copies():
    result = {
        "success": True, "promptIdx": 0, "gradingResult": {}, "provider": "p", "promptId": "1",
        "testCase": {"description": "a"}, "response": {"cached": True},
    }  # fmt: skip
    lines = b"\n".join([msgspec.json.encode(result)] * 2)
    assert "2 results came from promptfoo's cache" in read_trials(lines).sources[0].notes[0]


def test_deepeval_runs_read_alike_bare_and_wrapped(samples, counts):
    expected = {"always": (3, 0, 0), "often": (2, 1, 0), "never": (0, 3, 0)}
    for name in ("latest_test_run.json", "test_run_20261115_015519.json"):
        assert counts(read_trials(samples / "deepeval" / name)) == expected


def test_one_run_given_twice_is_refused_unless_kept(samples, tmp_path):
    run = (samples / "deepeval" / "test_run_20261115_015519.json").read_bytes()
    for name in ("one.json", "two.json"):
        (tmp_path / name).write_bytes(run)
    with pytest.raises(
        ReadError, match=r"two\.json: says the same as .*one\.json, trial for trial"
    ):
        read_trials(tmp_path)
    assert len(read_trials(tmp_path, duplicates="keep")) == 18
    assert len(read_trials(tmp_path, duplicates="last")) == 9


def test_the_copy_that_deepeval_keeps_of_its_latest_run_is_left_out_beside_that_run(samples):
    trials = read_trials(samples / "deepeval")
    assert len(trials) == 9
    note = "latest_test_run.json holds the same run and is left out"
    assert note in trials.sources[0].notes


def test_the_copy_that_deepeval_keeps_of_an_older_run_is_one_more_run(samples, tmp_path):
    run = msgspec.json.decode((samples / "deepeval" / "test_run_20261115_015519.json").read_bytes())
    (tmp_path / "test_run_1.json").write_bytes(msgspec.json.encode(run))
    run["testCases"][0]["runDuration"] = 12.5
    (tmp_path / "latest_test_run.json").write_bytes(msgspec.json.encode({"testRunData": run}))
    assert len(read_trials(tmp_path)) == 18


def test_a_deepeval_metric_that_broke_makes_the_trial_errored():
    metric = {"name": "Judge", "error": "429 Too Many Requests\ntrace", "success": False}
    case = {"name": "a", "success": False, "metricsData": [metric]}
    run = msgspec.json.encode({"testCases": [case], "testPassed": 0})
    trial = next(iter(read_trials(run)))
    assert (trial.outcome.name, trial.error) == ("ERRORED", "429 Too Many Requests")


def test_pydantic_evals_failures_are_errored_trials_of_their_case(samples, counts):
    trials = read_trials(samples / "pydantic_evals" / "report.json")
    assert counts(trials) == {
        "always": (5, 0, 0),
        "often": (3, 2, 0),
        "crash": (4, 0, 1),
        "never": (0, 5, 0),
    }
    broken = next(trial for trial in trials if trial.error)
    assert (broken.trial, broken.error) == (3, "RuntimeError: tool server crashed (synthetic)")


def test_openai_evals_events_are_trials_with_the_runs_seed(samples):
    trials = read_trials(samples / "openai_evals" / "251115_dummy_flaky.jsonl")
    tally = trials.tally("dummy")
    assert (tally.passed.sum(), tally.failed.sum(), tally.errored.sum()) == (4, 1, 0)
    assert set(trials.seed.tolist()) == {1}


def test_an_openai_evals_sample_that_was_never_judged_is_errored(samples):
    lines = (samples / "openai_evals" / "251115_dummy_flaky.jsonl").read_bytes().splitlines()
    judged_once_less = b"\n".join(line for line in lines if b'"event_id": 9' not in line)
    trials = read_trials(judged_once_less)
    assert trials.tally().errored.sum() == 1


def test_lm_eval_documents_are_one_trial_each_and_unscored_repeats_are_said(samples):
    folder = samples / "lm_eval"
    trials = read_trials(folder)
    assert trials.systems == ("hpbhprii",)
    assert trials.tasks[:2] == ("flaky_demo/0", "flaky_demo/1")
    assert (trials.tally().failed.tolist(), len(trials)) == ([1] * 6, 6)
    assert "answered 4 times, but the log scores only one" in trials.sources[0].notes[0]


def test_the_means_of_an_lm_eval_run_point_to_its_samples(samples):
    (means,) = (samples / "lm_eval").glob("results_*.json")
    with pytest.raises(ReadError, match=r"not its trials; run it with --log_samples and give the"):
        read_trials(means)


def test_spans_ask_which_attributes_say_task_and_outcome(samples):
    spans = samples / "otel_genai" / "pydantic_ai_spans.jsonl"
    two = spans.read_bytes().replace(b'"task.id":', b'"case.id": "c", "task.id":')
    with pytest.raises(
        ReadError, match=r"spans name no task.*such as.*'case\.id'.*task\.id, trial"
    ):
        read_trials(two)
    with pytest.raises(ReadError, match=r'no span has "task.name"; attributes seen'):
        read_trials(spans, mapping=ColumnMap(task="task.name"))
    with pytest.raises(ReadError, match=r"nothing says whether it passed.*`passed='status'`"):
        read_trials(spans)


def test_the_only_attribute_of_spans_that_is_like_a_task_is_the_task(samples):
    spans = samples / "otel_genai" / "pydantic_ai_spans.jsonl"
    alone = read_trials(spans, mapping=ColumnMap(passed="status"))
    named = read_trials(spans, mapping=ColumnMap(task="task.id", passed="status"))
    assert list(alone) == list(named)
    assert dict(alone.sources[0].read_as)["task"] == 'attribute "task.id"'


def test_spans_read_by_chosen_attributes_with_what_their_children_did(samples):
    chosen = ColumnMap(task="task.id", trial="trial.index", passed="status")
    trials = read_trials(samples / "otel_genai" / "pydantic_ai_spans.jsonl", mapping=chosen)
    first = next(iter(trials))
    assert trials.systems == ("weather_agent",)
    assert (first.turns, first.tool_calls, first.tools) == (2, 2, ("get_weather", "broken"))
    assert (first.tokens_in, first.tokens_out) == (114, 24)
    assert trials.trial.tolist() == list(range(len(trials)))


def test_otlp_spans_read_like_the_sdks_own_and_use_evaluation_events():
    def attribute(key, **value):
        return {"key": key, "value": value}

    def span(number, parent, attributes, events=()):
        return {
            "traceId": "t", "spanId": str(number), "parentSpanId": parent, "name": "s",
            "startTimeUnixNano": "1000000000", "endTimeUnixNano": "3500000000",
            "attributes": attributes, "events": list(events), "status": {},
        }  # fmt: skip

    graded = {"name": "gen_ai.evaluation.result", "attributes": [
        attribute("gen_ai.evaluation.score.label", stringValue="pass"),
        attribute("gen_ai.evaluation.score.value", doubleValue=0.9),
    ]}  # fmt: skip
    spans = [
        span(1, "", [attribute("case", stringValue="refund"), attribute("n", intValue="4")]),
        span(2, "1", [attribute("gen_ai.operation.name", stringValue="chat"),
                      attribute("gen_ai.usage.input_tokens", intValue="7")], [graded]),
    ]  # fmt: skip
    export = msgspec.json.encode({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    trial = next(iter(read_trials(export, mapping=ColumnMap(task="case", trial="n"))))
    assert (trial.task, trial.trial, trial.outcome.name, trial.score) == (
        "refund",
        4,
        "PASSED",
        0.9,
    )
    assert (trial.tokens_in, trial.turns, trial.seconds) == (7, 1, 2.5)


def test_mcpmark_run_folders_read_like_its_task_files(tmp_path, counts):
    meta = {
        "task_name": "desktop__report", "model_name": "gpt-5", "mcp": "filesystem",
        "execution_result": {"success": True, "error_message": None},
        "token_usage": {"input_tokens": 5, "output_tokens": 2}, "turn_count": 3,
        "agent_execution_time": 1.5, "time": {"start": "2026-01-01T00:00:00"},
    }  # fmt: skip
    for run, (success, error) in enumerate([(True, None), (False, None), (False, "timeout")], 1):
        folder = tmp_path / "gpt-5__filesystem" / f"run-{run}" / "desktop__report"
        folder.mkdir(parents=True)
        result = {"success": success, "error_message": error}
        content = msgspec.json.encode(meta | {"execution_result": result})
        (folder / "meta.json").write_bytes(content)
        (folder / "messages.json").write_text('[{"role": "user", "content": "hi"}]')
    trials = read_trials(tmp_path)
    assert counts(trials) == {"desktop__report": (1, 1, 1)}
    assert trials.trial.tolist() == [1, 2, 3]
    assert trials.words("tags") == ("filesystem",)


def test_swebench_reports_are_a_trial_of_every_instance_each(tmp_path, counts):
    for run, resolved in enumerate((["a"], ["a", "b"])):
        unresolved = sorted({"a", "b"} - set(resolved))
        report = {
            "resolved_ids": resolved, "unresolved_ids": unresolved, "submitted_ids": ["a", "b"],
            "error_ids": ["c"], "empty_patch_ids": ["d"], "incomplete_ids": ["e"],
        }  # fmt: skip
        (tmp_path / f"gpt-4.1.run{run}.json").write_bytes(msgspec.json.encode(report))
    trials = read_trials(tmp_path)
    assert trials.systems == ("gpt-4.1",)
    assert counts(trials) == {"a": (2, 0, 0), "b": (1, 1, 0), "c": (0, 0, 2), "d": (0, 2, 0)}
    assert trials.sources[0].notes == ("1 instances were not submitted and are no trials",)


def test_tau2_folders_read_by_their_index_and_else_by_their_files(tmp_path, counts):
    info = {"agent_info": {"llm": "gpt", "implementation": "llm_agent"},
            "environment_info": {"domain_name": "retail"}}  # fmt: skip
    index = [
        {"id": "x", "task_id": "0", "trial": 0, "reward": 1.0, "termination_reason": "user_stop"},
        {"id": "y", "task_id": "0", "trial": 1, "termination_reason": "infrastructure_error"},
    ]
    expected = {"retail/0": (1, 0, 1)}
    results = tmp_path / "results.json"
    simulations = tmp_path / "simulations"
    simulations.mkdir()
    (simulations / "x.json").write_text("must stay unread")
    results.write_bytes(msgspec.json.encode({"info": info, "tasks": [], "simulation_index": index}))
    assert counts(read_trials(tmp_path)) == expected
    results.write_bytes(msgspec.json.encode({"info": info, "tasks": [], "simulation_index": None}))
    for entry in index:
        reward = {"reward": entry.pop("reward", None)}
        content = msgspec.json.encode(entry | {"reward_info": reward})
        (simulations / f"{entry['id']}.json").write_bytes(content)
    assert counts(read_trials(tmp_path)) == expected


def test_a_terminal_bench_run_folder_is_named_by_its_metadata_and_read_once(tmp_path, counts):
    def result(name, resolved):
        return {
            "task_id": "t",
            "trial_name": name,
            "is_resolved": resolved,
            "failure_mode": "unset",
        }

    results = [result("t.1-of-2.run", True), result("t.2-of-2.run", None)]
    run = {"results": results, "pass_at_k": {}, "n_resolved": 1, "n_unresolved": 1}
    (tmp_path / "results.json").write_bytes(msgspec.json.encode(run))
    metadata = {"agent_name": "terminus", "model_name": "gpt-5"}
    (tmp_path / "run_metadata.json").write_bytes(msgspec.json.encode(metadata))
    leaf = tmp_path / "t" / "t.1-of-2.run"
    leaf.mkdir(parents=True)
    (leaf / "results.json").write_bytes(msgspec.json.encode(results[0]))
    trials = read_trials(tmp_path)
    assert trials.systems == ("terminus/gpt-5",)
    assert counts(trials) == {"t": (1, 1, 0)}
    assert read_trials(leaf).systems == ("terminus/gpt-5",)


def _archive_of(source, target, keep, replaced=()):
    with source.open("rb") as stream, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new:
        old = Archive(str(source), stream, Limits())
        for name in old.names(""):
            if keep(name):
                other = [text for prefix, text in dict(replaced).items() if name.startswith(prefix)]
                new.writestr(name, other[0] if other else old.read(name))
    return target


def _inspect_json(samples):
    log = {
        "version": 2,
        "status": "success",
        "eval": {"task": "t", "model": "m"},
        "samples": samples,
    }
    return msgspec.json.encode(log)


def test_lm_eval_filters_and_metrics_are_chosen_and_said():
    def line(filter_name, **scores):
        return {
            "doc_id": 0, "resps": [["x"]], "filtered_resps": ["x"], "filter": filter_name,
            "metrics": list(scores), **scores,
        }  # fmt: skip

    both = [line("strict", exact=0.0, loose=1.0), line("flexible", exact=1.0, loose=1.0)]
    log = b"\n".join(map(msgspec.json.encode, both))
    trials = read_trials(log)
    assert trials.outcome.tolist() == [0]
    assert trials.sources[0].notes == (
        'filter "strict" was read; the log also has flexible',
        'metric "exact" was read; there is also loose (choose with `scorer`)',
    )
    assert read_trials(log, mapping=ColumnMap(scorer="loose")).outcome.tolist() == [1]
    with pytest.raises(ReadError, match=r'has no metric "bleu"; it has exact, loose'):
        read_trials(log, mapping=ColumnMap(scorer="bleu"))
    odd = msgspec.json.encode(line("none", perplexity=[1, 2]))
    with pytest.raises(ReadError, match=r"line 1, field perplexity: must be a number"):
        read_trials(odd + b"\n", format="lm-eval")


def test_openai_evals_metrics_are_scores_by_name():
    spec = {"spec": {"completion_fns": ["gpt"], "run_config": {}}}
    event = {"sample_id": "s.0", "type": "metrics", "data": {"f1": 0.5, "em": True}}
    log = b"\n".join(map(msgspec.json.encode, [spec, event]))
    assert read_trials(log).score.tolist() == [0.5]
    assert read_trials(log, mapping=ColumnMap(scorer="em")).outcome.tolist() == [1]
    with pytest.raises(ReadError, match=r"line 2: no score bleu; it has f1, em"):
        read_trials(log, mapping=ColumnMap(scorer="bleu"))
    broken = log.replace(b'"metrics"', b'"match"')
    with pytest.raises(ReadError, match=r"line 2, field data.correct: must be true or false"):
        read_trials(broken)


def test_pydantic_evals_pass_when_all_assertions_hold_or_by_the_score_asked_for():
    case = {
        "name": "a [2/3]", "source_case_name": "a", "metrics": {"input_tokens": 7, "requests": 2},
        "assertions": {"x": {"value": True}, "y": {"value": False}}, "scores": {"s": {"value": 1}},
    }  # fmt: skip
    scored = {"name": "b", "scores": {"s": {"value": 0.5}, "r": {"value": 0.1}}}
    crashed = {"name": "c", "evaluator_failures": [{"name": "judge", "error_message": "boom"}]}

    def report(*cases):
        return msgspec.json.encode({"name": "exp", "cases": cases, "failures": []})

    first, second, third = read_trials(report(case, scored, crashed))
    assert (first.task, first.trial, first.outcome.name) == ("a", 2, "FAILED")
    assert (first.tokens_in, first.turns) == (7, 2)
    assert (second.outcome.name, second.score) == ("FAILED", 0.5)
    assert (third.outcome.name, third.error) == ("ERRORED", "boom")
    note = "a case passes when all its assertions hold: x, y"
    assert read_trials(report(case)).sources[0].notes == (note,)
    assert read_trials(report(scored)).sources[0].notes == (
        'score "s" was read; there is also r (choose with `scorer`)',
        ONLY_ONE.format("s"),
    )
    chosen = read_trials(report(case, scored), mapping=ColumnMap(scorer="s"))
    assert chosen.score.tolist() == [1.0, 0.5]
    with pytest.raises(ReadError, match=r'case "b": no evaluator "z"; it has s, r'):
        read_trials(report(scored), mapping=ColumnMap(scorer="z"))


def test_harbor_trials_without_a_verdict_are_errored_and_other_rewards_can_be_chosen():
    trial = {
        "task_name": "t", "agent_info": {"name": "agent"}, "verifier_result": None,
        "exception_info": {"exception_type": "AgentTimeoutError", "exception_message": "late"},
    }  # fmt: skip
    broken = next(iter(read_trials(msgspec.json.encode(trial))))
    assert (broken.outcome.name, broken.error) == ("ERRORED", "AgentTimeoutError: late")
    rewards = {"reward": 0.5, "style": 1.0}
    scored = msgspec.json.encode(trial | {"verifier_result": {"rewards": rewards}})
    assert read_trials(scored).score.tolist() == [0.5]
    assert ONLY_ONE.format("reward") in read_trials(scored).sources[0].notes
    assert read_trials(scored, mapping=ColumnMap(scorer="style")).outcome.tolist() == [1]
    with pytest.raises(ReadError, match=r'has no reward "speed"; it has reward, style'):
        read_trials(scored, mapping=ColumnMap(scorer="speed"))


def test_scores_that_no_verdict_goes_with_pass_at_1_and_this_is_said():
    def notes(value, **chosen):
        log = _inspect_json([{"id": 1, "epoch": 1, "scores": {"grade": {"value": value}}}])
        return read_trials(log, mapping=ColumnMap(**chosen)).sources[0].notes

    assert notes(0.9) == notes("P") == (ONLY_ONE.format("grade"),)
    assert notes(0.9, pass_if="score>=0.8") == notes("C") == notes(0) == ()
    parts = _inspect_json([{"id": 1, "epoch": 1, "scores": {"judge": {"value": {"facts": 0.5}}}}])
    assert read_trials(parts).sources[0].notes == (GRADED_BY_JUDGE, ONLY_ONE.format("judge.facts"))


def test_tau_bench_runs_that_broke_are_errored():
    runs = [
        {"task_id": 1, "reward": 0.0, "trial": 0, "info": {"error": "boom\ntrace"}, "traj": []},
        {"task_id": 1, "reward": 0.9999999, "trial": 1, "info": {}, "traj": []},
    ]
    broken, passed = read_trials(msgspec.json.encode(runs))
    assert (broken.outcome.name, broken.error) == ("ERRORED", "boom")
    assert passed.outcome.name == "PASSED"


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (
            b'{"doc_id": 1, "resps": 3, "filtered_resps": []}\n' * 2,
            "line 1, field resps: must be a list, got a whole number",
        ),
        (b'{"doc_id": 1, "resps": [], "filtered_resps": [], "metrics": 1}\n' * 2, "metrics"),
        (
            b'{"spec": {"completion_fns": ["m"]}}\n{"sample_id": "a", "type": "match", "data": 4}',
            "line 2, field data: must be an object, got a whole number",
        ),
        (b'{"agent": "m", "runs": [{"task": "t", "passed": true}, 7]}', '"runs" must hold objects'),
    ],
    ids=["lm-eval", "lm-eval metrics", "openai-evals", "inner list"],
)
def test_a_field_of_the_wrong_shape_is_refused_by_its_name(data, fault):
    with pytest.raises(ReadError, match=fault):
        read_trials(data)
