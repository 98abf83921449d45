"""Judges see question, answer and rubric, answer by schema, and their disagreement is reported."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from passhat.cli import main
from passhat.runner.models.exchange import CallRequest, Reply
from passhat.testing import WireServer

SUITE = """\
name: j
judge: {{model: stub-1, base_url: "{url}", wire: openai-chat, repeats: {repeats}}}
defaults: {{runs: 4, model: scripted}}
agents:
  - name: a
    prompt: Capital of France?
    expect: [{{judge: {{rubric: Is the answer right?, transcript: {transcript}}}}}]
    script: [{{answer: Paris, calls: [{{tool: look_up, args: {{page: France}}}}]}}]
"""


def grade(score):
    arguments = {"score": score, "reason": "It is the capital."}
    return Reply(calls=(CallRequest(id="1", name="grade", arguments=arguments),))


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(answer, *, repeats=3, transcript="false", store=False):
        with WireServer(answer) as server:
            text = SUITE.format(url=server.url, repeats=repeats, transcript=transcript)
            (tmp_path / "passhat.yml").write_text(text)
            keeping = [] if store else ["--no-store"]
            done = CliRunner().invoke(main, ["run", "--json", *keeping])
            return done, server.asked

    return run


def test_a_judge_sees_the_question_and_answers_by_schema(run):
    done, asked = run(lambda asked: grade(1.0))
    assert done.exit_code == 0, done.output
    said = asked[0].body["messages"][0]["content"]
    assert "Capital of France?" in said
    assert "Paris" in said
    assert "Is the answer right?" in said
    assert "look_up" not in said
    schema = asked[0].body["tools"][0]["function"]["parameters"]
    assert schema["required"] == ["score", "reason"]
    assert asked[0].body["tool_choice"]["function"]["name"] == "grade"


def test_a_judge_reads_the_transcript_where_it_is_told_to(run):
    _, asked = run(lambda asked: grade(1.0), transcript="true")
    assert "look_up" in asked[0].body["messages"][0]["content"]


def test_a_judge_that_answers_in_words_is_understood_too(run):
    done, _ = run(lambda asked: Reply(text='{"score": 1, "reason": "right"}'))
    assert done.exit_code == 0, done.output


def test_a_model_that_cannot_call_tools_judges_without(tmp_path, monkeypatch, serving):
    monkeypatch.chdir(tmp_path)
    bodies = []

    def answer(path, body, headers):
        bodies.append(body)
        if "tools" in body:
            return 400, {"error": {"message": "this model does not support tools"}}
        message = {"role": "assistant", "content": '{"score": 1, "reason": "right"}'}
        return 200, {"choices": [{"message": message, "finish_reason": "stop"}]}

    with serving(answer) as url:
        suite = SUITE.format(url=f"{url}/v1", repeats=1, transcript="false")
        (tmp_path / "passhat.yml").write_text(suite)
        done = CliRunner().invoke(main, ["run", "--no-store", "--concurrency", "1"])
    assert done.exit_code == 0, done.output
    assert ["tools" in body for body in bodies] == [True, False, False, False, False]


def test_the_disagreement_of_a_judge_with_itself_is_in_the_report(run):
    done, _ = run(lambda asked: grade(0.0 if asked.body["seed"] % 3 == 0 else 1.0))
    notes = json.loads(done.stdout)["report"]["notes"]
    assert any("the judge disagreed with itself in 67% of pairs of readings" in n for n in notes)


def test_the_disagreement_of_a_judge_is_in_later_reports_of_the_run_too(run):
    done, _ = run(lambda asked: grade(0.0 if asked.body["seed"] % 3 == 0 else 1.0), store=True)
    assert done.exit_code in (0, 1), done.output
    for arguments in (["report", "latest"], ["report", "latest", "-o", "page.html"]):
        later = CliRunner().invoke(main, arguments)
        assert later.exit_code == 0, later.output
    shown = CliRunner().invoke(main, ["report", "latest"]).stdout
    assert "the judge disagreed with itself in 67%" in " ".join(shown.split())
    assert "the judge disagreed with itself in 67%" in Path("page.html").read_text()


def test_a_judge_that_is_asked_once_is_said_to_be_of_unknown_agreement(run):
    done, _ = run(lambda asked: grade(1.0), repeats=1)
    notes = json.loads(done.stdout)["report"]["notes"]
    assert any("its agreement with itself is unknown" in note for note in notes)
