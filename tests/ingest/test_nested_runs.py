"""Rows that list the runs of their task are read as those runs."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passhat.errors import ReadError
from passhat.ingest import ColumnMap, read_trials, read_with_transcripts
from passhat.ingest.reshape import _OUTER
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
    assert f'whose rows list trials ("{key}")' in how_read(trials.sources[0])


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


# An object is one run with its messages, or holds a list with a row for each run.

NAMES = st.sampled_from(["messages", "steps", "trace", "log", "chat", "turns", "events", "data"])
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]), "content": st.text(max_size=5)},
    optional={"success": st.booleans(), "score": st.floats(0, 1), "name": st.text(max_size=3)},
)
STEP = st.fixed_dictionaries(
    {"action": st.text(max_size=5)},
    optional={"passed": st.booleans(), "result": st.sampled_from(["ok", "fail"])},
)


@given(
    key=NAMES,
    listed=st.lists(MESSAGE, min_size=1, max_size=4),
    more=st.dictionaries(NAMES, st.lists(MESSAGE, max_size=3), max_size=2),
    ok=st.booleans(),
    nested=st.booleans(),
)
def test_no_list_that_holds_messages_is_ever_the_runs(key, listed, more, ok, nested):
    verdict = {"evaluation": {"utility": ok}} if nested else {"utility": ok}
    document = {"task_name": "a", "agent": "m", **more, key: listed, **verdict}
    column = "evaluation.utility" if nested else "utility"
    named = read_trials(json.dumps(document).encode(), mapping=ColumnMap(passed=column))
    assert (named.systems, named.outcome.tolist()) == (("m",), [ok])
    known = json.dumps({"task": "a", **more, key: listed, "passed": ok}).encode()
    assert read_trials(known).outcome.tolist() == [ok]


@given(
    key=st.sampled_from(["messages", "steps", "turns", "events", "trace", "checks", "tool_calls"]),
    listed=st.lists(STEP | MESSAGE, min_size=1, max_size=4),
)
def test_what_happened_within_a_run_is_never_the_runs(key, listed):
    with pytest.raises(ReadError, match="not a file that passhat can read"):
        read_trials(json.dumps({"task": "a", key: listed}).encode())


@given(key=st.sampled_from(["log", "parts", "calls"]), listed=st.lists(STEP, min_size=1))
def test_verdicts_in_a_list_of_unknown_name_are_asked_about(key, listed):
    listed[0]["passed"] = True
    content = json.dumps({"task": "a", key: listed}).encode()
    with pytest.raises(ReadError, match=f'a list "{key}" of '):
        read_trials(content)


def test_how_a_whole_file_ended_is_no_verdict_on_each_of_its_rows():
    rows = [{"task": "a", "fine": False}, {"task": "b", "fine": True}]
    content = json.dumps({"success": True, "results": rows}).encode()
    with pytest.raises(ReadError, match="no column says whether a trial passed"):
        read_trials(content)
    assert read_trials(content, mapping=ColumnMap(passed="fine")).outcome.tolist() == [0, 1]


def test_a_key_inside_an_object_that_all_rows_share_can_be_named():
    rows = [{"task": "a", "passed": True}]
    content = json.dumps({"meta": {"model": "m"}, "results": rows}).encode()
    assert read_trials(content, mapping=ColumnMap(system="meta.model")).systems == ("m",)


def test_a_value_is_read_the_same_from_yaml_as_from_json_whatever_its_keys_are(tmp_path):
    """Also under keys that a suite has: what lies there tells results and suites apart."""
    runs = {"a": {"x": [1, 0, 1], "z": [0, 0, 1]}, "b": {"x": [1, 1, 1], "z": [0, 1, 1]}}
    rows = [{"task": task, "passed": passed} for task in "ab" for passed in (True, False)]
    for key in (*_OUTER, "results"):
        for value in ({"a": [1, 0], "b": [1, 1]}, rows, *([runs] if key in _OUTER else [])):
            text = json.dumps(value)
            (tmp_path / "r.json").write_text(f'{{"{key}": {text}}}')
            (tmp_path / "r.yaml").write_text(f"{key}: {text}\n")  # JSON is YAML
            read = [read_trials(tmp_path / name) for name in ("r.json", "r.yaml")]
            told = [[(one.system, one.task, one.outcome) for one in trials] for trials in read]
            assert told[0] == told[1], key


ROOT = Path(__file__).parents[2]
SUITES = [
    *ROOT.glob("examples/*/*.yml"),
    *ROOT.glob("src/passhat/suite/templates/*.yml"),
    *ROOT.glob("tests/suite/*.yml"),
]


def test_a_suite_is_never_read_as_results(tmp_path):
    texts = [path.read_text() for path in SUITES]
    suites = [text for text in texts if re.search(r"^(agents|tasks):", text, re.MULTILINE)]
    assert len(suites) >= 4
    for text in suites:
        for end in ("", "\nbroken: [\n", f"\nname: {'x' * 400_000}\n"):
            (tmp_path / "s.yml").write_text(f"{text}{end}")
            with pytest.raises(ReadError, match="is a suite, not results"):
                read_trials(tmp_path / "s.yml")
