"""What people scored in other tools: labels beside the verdict, never in its place."""

import copy
import json
import zipfile
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from passhat.errors import ReadError
from passhat.ingest import ColumnMap, read_trials
from passhat.ingest.document import Archive, Limits
from passhat.records.labels import Label
from passhat.records.trial import graded_by_judge

ANN = {"author": "ann", "timestamp": "2026-11-16T09:00:00Z", "reason": "misread"}
MANUAL = "Manual result (overrides all other grading results)"


def test_edited_scores_of_an_inspect_archive_are_labels_and_the_scorer_decides(samples):
    trials = read_trials(samples / "rated" / "inspect.eval")
    found = {(task, trial): label for (_, task, trial), (label,) in trials.labels().items()}
    assert {key: (label.passed, label.by) for key, label in found.items()} == {
        ("asked/q0", 1): (True, "ann"),
        ("asked/q1", 2): (False, "ann"),
        ("asked/q2", 3): (True, "ann"),
        ("asked/q3", 1): (True, "ben"),
    }
    assert found["asked/q0", 1].note == "the judge misread"
    assert found["asked/q0", 1].at.startswith("2026-11-16T09")
    verdicts = {(one.task, one.trial): one.outcome.name for one in trials}
    assert verdicts["asked/q0", 1] == "FAILED"
    assert verdicts["asked/q1", 2] == "PASSED"
    assert trials.systems == ("mockllm/model",)


def test_ratings_by_hand_of_promptfoo_are_labels_and_the_assertions_decide(samples):
    trials = read_trials(samples / "rated" / "promptfoo.json")
    found = {(task, trial): (label.passed, label.note) for (_, task, trial), (label,) in
             trials.labels().items()}  # fmt: skip
    assert found == {
        ("shoes", 0): (False, "no receipt"),
        ("lamp", 0): (True, ""),
        ("book", 1): (True, "fine"),
    }
    assert [one.outcome.name[0] for one in trials] == list("PPFPFF")


def test_a_csv_of_promptfoo_says_that_it_lost_the_verdicts_that_people_replaced(samples):
    trials = read_trials(samples / "rated" / "promptfoo.csv")
    assert [one.outcome.name[0] for one in trials] == list("FPPPFP")
    assert "3 verdicts were replaced by hand" in trials.sources[0].notes[0]


def inspect_log(base, said):
    for sample, passed in zip(base["samples"], said, strict=True):
        score = (sample["scores"] or {}).get("includes")
        if passed is None or score is None:
            continue
        first = {key: score.get(key) for key in ("value", "answer", "explanation")}
        edit = {"value": "C" if passed else "I", "answer": "UNCHANGED", "provenance": ANN}
        score |= {"value": edit["value"], "history": [first, edit]}
    return base


def promptfoo_results(base, said):
    for result, passed in zip(base["results"]["results"], said, strict=True):
        if passed is None or not result.get("gradingResult"):
            continue
        rating = {"pass": passed, "score": int(passed), "reason": MANUAL}
        parts = [*result["gradingResult"]["componentResults"],
                 {**rating, "assertion": {"type": "human"}}]  # fmt: skip
        result["gradingResult"] |= {**rating, "componentResults": parts}
        result |= {"success": passed, "score": int(passed)}
    return base


def langfuse_scores(base, said):
    own = [score for score in base if score["name"] == "correct"]
    for score, passed in zip(own, said, strict=False):
        if passed is not None:
            base.append({**score, "source": "ANNOTATION", "value": int(passed),
                         "stringValue": str(passed), "authorUserId": "ann"})  # fmt: skip
    return base


def phoenix_runs(base, said):
    for run, passed in zip(base, said, strict=False):
        if passed is not None:
            by_ann = {"name": "correct", "annotator_kind": "HUMAN", "score": int(passed)}
            run["annotations"].append(by_ann)
    return base


def braintrust_spans(base, said):
    roots = [span for span in base if not span["span_parents"]]
    for root, passed in zip(roots, said, strict=False):
        if passed is not None:
            scores = {"correct": int(passed)}
            root["scores"] = {**root.get("scores", {}), **scores}  # the mean of the reviewers
            base.append({**root, "span_id": f"review-{root['span_id']}", "scores": scores,
                         "span_parents": [root["span_id"]],
                         "span_attributes": {"type": "review"}})  # fmt: skip
    return base


LOGS = {
    "inspect": ("inspect/flaky_5x5_two_scorers_1error.json", inspect_log),
    "promptfoo": ("promptfoo/out.json", promptfoo_results),
    "langfuse": ("langfuse/scores.json", langfuse_scores),
    "phoenix": ("phoenix/experiment.json", phoenix_runs),
    "braintrust": ("braintrust/experiment.jsonl", braintrust_spans),
}


@pytest.fixture(scope="module")
def logs(samples):
    found = {}
    for name, (path, _) in LOGS.items():
        text = (samples / path).read_text()
        lines = path.endswith("jsonl")
        found[name] = (
            [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
        )
    return found


@pytest.mark.parametrize("tool", LOGS)
@settings(max_examples=15)  # the rules are few, and a log takes a while to read
@given(data=st.data())
def test_whatever_people_say_no_verdict_and_no_score_changes(tool, logs, data):
    base, add = logs[tool], LOGS[tool][1]
    before = read_trials(json.dumps(base).encode())
    size = len(before)
    said = data.draw(st.lists(st.sampled_from([None, True, False]), min_size=size, max_size=size))
    after = read_trials(json.dumps(add(copy.deepcopy(base), said)).encode())
    assert after.outcome.tolist() == before.outcome.tolist()
    assert repr(after.score) == repr(before.score)
    labels = [label.passed for own in after.labels().values() for label in own]
    given_labels = [one for one in said if one is not None]
    assert len(labels) <= len(given_labels)
    assert all(label.chosen is None for own in after.labels().values() for label in own)
    if tool in ("langfuse", "phoenix", "braintrust"):
        assert sorted(labels) == sorted(given_labels[: len(labels)])


def passed(trials):
    return [one.outcome.name == "PASSED" for one in trials]


def langfuse(*scores):
    rows = [{"dataType": "NUMERIC", "traceId": trace, "name": name, "value": value,
             "source": source} for trace, name, value, source in scores]  # fmt: skip
    return json.dumps(rows).encode()


def test_where_people_alone_scored_their_scores_are_the_verdict():
    trials = read_trials(langfuse(("a", "ok", 1, "ANNOTATION"), ("b", "ok", 0, "ANNOTATION")))
    assert passed(trials) == [True, False]
    assert trials.labels() == {}


def test_a_score_of_people_that_the_user_chose_decides():
    log = langfuse(("a", "judge", 1, "EVAL"), ("a", "mine", 0, "ANNOTATION"))
    trials = read_trials(log, mapping=ColumnMap(scorer="mine"))
    assert (passed(trials), trials.labels()) == ([False], {})


def test_a_score_with_another_name_is_a_label_if_it_is_the_only_one_or_named():
    one = ("a", "judge", 1, "EVAL"), ("a", "taste", 0, "ANNOTATION")
    assert len(read_trials(langfuse(*one)).labels()) == 1
    several = (*one, ("a", "tone", 1, "ANNOTATION"))
    unnamed = read_trials(langfuse(*several))
    assert unnamed.labels() == {}
    assert any("name the label with `human_labels`" in note for note in unnamed.sources[0].notes)
    named = read_trials(langfuse(*several), mapping=ColumnMap(human_labels="tone"))
    assert [own[0].passed for own in named.labels().values()] == [True]
    with pytest.raises(ReadError, match=r'nobody gave a score "other"; people gave taste, tone'):
        read_trials(langfuse(*several), mapping=ColumnMap(human_labels="other"))


def test_a_rating_between_fail_and_pass_is_no_label_until_it_is_said_what_passes():
    log = langfuse(("a", "judge", 1, "EVAL"), ("a", "human", 0.7, "ANNOTATION"))
    trials = read_trials(log)
    assert trials.labels() == {}
    said = "of the scores that people gave (human), 1 is neither 0 nor 1, and no label; say"
    assert said in " ".join(trials.sources[0].notes)
    told = read_trials(log, mapping=ColumnMap(pass_if="score>=0.6"))
    assert [own[0].passed for own in told.labels().values()] == [True]


def test_a_column_of_langsmith_that_is_called_human_or_named_is_a_label():
    text = b"example_id,feedback.judge,feedback.human,feedback.other\n1,1,0,1\n2,0,,0\n3,1,1,1\n"
    by_name = read_trials(text)
    assert passed(by_name) == [True, False, True]
    assert [own[0].passed for own in by_name.labels().values()] == [False, True]
    told = read_trials(text, mapping=ColumnMap(human_labels="other", label_chosen="random"))
    assert {own[0] for own in told.labels().values()} == {
        Label(passed=True, chosen="random"),
        Label(passed=False, chosen="random"),
    }


def test_an_archive_that_was_written_while_its_trials_ran_is_not_opened_sample_by_sample(
    samples, tmp_path, monkeypatch
):
    """Summaries do not say that a score was edited; when members were written does."""
    with (samples / "rated" / "inspect.eval").open("rb") as stream:
        archive = Archive("log", stream, Limits())
        members = {name: archive.read(name) for name in archive.names("")}
    header = json.loads(members["header.json"])
    start = datetime(2026, 11, 16, 9, 0, 0)  # noqa: DTZ001 # as archives have it
    header["stats"] |= {"started_at": "2026-11-16T07:00:00+00:00",
                        "completed_at": "2026-11-16T07:10:00+00:00"}  # fmt: skip
    members["header.json"] = json.dumps(header).encode()
    opened = []
    read = Archive.read
    monkeypatch.setattr(Archive, "read", lambda self, name: opened.append(name) or read(self, name))
    for took, edited in ((timedelta(minutes=10), False), (timedelta(seconds=4), True)):
        file = tmp_path / f"{edited}.eval"
        with zipfile.ZipFile(file, "w") as log:
            for name, data in members.items():
                at = start if name.startswith("_journal/start") else start + took
                log.writestr(zipfile.ZipInfo(name, at.timetuple()[:6]), data)
        opened.clear()
        labels = read_trials(file).labels()
        assert any(name.startswith("samples/") for name in opened) is edited
        assert (len(labels) > 1) is edited  # the score that a person added is in the summary


# Scores that models gave: said of the trials, and each a condition where there are several.

GRADED_BY_A_MODEL = {
    "inspect/flaky_5x5_two_scorers_1error.json": (b'"includes"', b'"model_graded_qa"'),
    "promptfoo/out.json": (b'"equals"', b'"llm-rubric"'),
    "deepeval/latest_test_run.json": (b'Data":[{"name"', b'Data":[{"evaluationModel":"m","name"'),
    "langsmith/experiment.csv": (b"feedback.correct", b"feedback.llm_judge"),
}


@pytest.mark.parametrize("sample", GRADED_BY_A_MODEL)
def test_a_log_that_a_model_graded_says_so(samples, tmp_path, sample):
    plain = (samples / sample).read_bytes()
    assert not graded_by_judge(read_trials(samples / sample).sources)
    if sample.startswith("deepeval"):
        plain = json.dumps(json.loads(plain), separators=(",", ":")).encode()
    old, new = GRADED_BY_A_MODEL[sample]
    assert old in plain
    path = tmp_path / sample.rpartition("/")[2]
    path.write_bytes(plain.replace(old, new))
    assert graded_by_judge(read_trials(path).sources)


@pytest.mark.parametrize(
    "sample",
    [
        "inspect/flaky_5x5_two_scorers_1error.eval",
        "inspect/flaky_5x5_two_scorers_1error.json",
        "braintrust/experiment.jsonl",
        "langsmith/experiment.csv",
        "weave/calls.jsonl",
        "phoenix/experiment.json",
    ],
)
@pytest.mark.parametrize("name", ["judge", "scorer"])
def test_a_log_with_several_judges_has_each_as_a_level_as_if_it_were_chosen(samples, sample, name):
    path = samples / sample
    every = read_trials(path, mapping=ColumnMap(factor=name))
    scores = read_trials(path).sources[0].scores
    assert len(scores) > 1
    assert len(every) == sum(len(read_trials(path, scorer=score)) for score in scores)
    for score in scores:
        level = f" [{name}={score}]"
        alone = read_trials(path, scorer=score)
        wanted = {(one.task + level, one.trial): one.outcome for one in alone}
        found = {(one.task, one.trial): one.outcome for one in every if one.task.endswith(level)}
        assert found == wanted
