"""Endpoints of any shape, reached with a request template and answer paths alone."""

import pytest

from passhat.records import Outcome
from passhat.runner import MemoryJournal, run_trials
from passhat.suite import check_suite, load_suite

SYSTEMS = {
    "openai": """\
    http: "{url}/v1/chat/completions"
    request: {{model: stub-1, messages: "{{messages}}", seed: "{{seed}}"}}
""",
    "openai by paths": """\
    http: "{url}/v1/chat/completions"
    request: {{model: stub-1, messages: [{{role: user, content: "Q: {{prompt}}"}}]}}
    response: {{answer: "choices[0].message.content", usage: usage}}
""",
    "a2a": """\
    http: "{url}/a2a"
    request:
      jsonrpc: "2.0"
      id: "{{trial}}"
      method: message/send
      params:
        message:
          role: user
          messageId: "{{task}}-{{trial}}"
          parts: [{{kind: text, text: "{{prompt}}"}}]
    response:
      answer: ["result.artifacts[0].parts[0].text", "result.parts[0].text"]
      error: error.message
""",
    "langgraph": """\
    http: "{url}/runs/wait"
    request: {{assistant_id: agent, input: {{messages: "{{messages}}"}}}}
""",
}
SUITE = """\
name: endpoints
systems:
  - name: agent
{system}
tasks:
  - {{name: weather, prompt: "Weather in Rome?", expect: [{{contains: "24 in Rome"}}]}}
"""


def answer(path, body):
    said = "It is 24 in Rome."
    if path == "/v1/chat/completions":
        assert body["messages"][-1]["content"].endswith("Weather in Rome?")
        message = {"role": "assistant", "content": said}
        return {"choices": [{"message": message}], "usage": {"prompt_tokens": 7}}
    if path == "/a2a":
        assert body["params"]["message"]["parts"][0]["text"] == "Weather in Rome?"
        return {"result": {"kind": "message", "parts": [{"kind": "text", "text": said}]}}
    if path == "/runs/wait":
        assert body["input"]["messages"] == [{"role": "user", "content": "Weather in Rome?"}]
        return {"messages": [{"type": "human", "content": "?"}, {"type": "ai", "content": said}]}
    if path == "/failed":
        return {"error": {"message": "no such agent"}}
    return {"thoughts": "hm"}


@pytest.fixture(scope="module")
def url(serving):
    with serving(lambda path, body, headers: (200, answer(path, body))) as url:
        yield url


@pytest.fixture
def trial_of(tmp_path, url):
    def one(system):
        path = tmp_path / "suite.yml"
        path.write_text(SUITE.format(system=system.format(url=url)))
        journal = MemoryJournal()
        (trial,) = run_trials(load_suite(path), journal=journal).trials
        return trial

    return one


@pytest.mark.parametrize("shape", SYSTEMS)
def test_an_endpoint_of_any_shape_is_reached_without_glue(trial_of, shape):
    trial = trial_of(SYSTEMS[shape])
    assert trial.outcome is Outcome.PASSED, trial
    if "openai" in shape:
        assert trial.tokens_in == 7


def test_a_path_that_leads_nowhere_is_an_error_that_shows_the_answer(trial_of):
    trial = trial_of('    http: "{url}/odd"\n    response: data.text')
    assert trial.outcome is Outcome.ERRORED
    assert 'no answer: there is nothing at data.text in {"thoughts":"hm"}' in trial.error


def test_an_error_in_the_answer_is_an_error(trial_of):
    trial = trial_of('    http: "{url}/failed"\n    response: {{answer: a, error: error.message}}')
    assert trial.error == "agent reports an error: no such agent"


def test_a_path_that_is_none_is_told_with_its_line(tmp_path):
    path = tmp_path / "suite.yml"
    path.write_text(SUITE.format(system='    http: "http://x/"\n    response: "a..b"'))
    _, problems = check_suite(path)
    assert [(p.line, "is not a path" in p.message) for p in problems] == [(5, True)]
