"""Resources and prompts of MCP servers: in the context, as the question, and as tools."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from tests.runner.test_mcp_servers import npm_server

from passhat.cli import main
from passhat.errors import SuiteError
from passhat.records import (
    Expectation,
    Model,
    ModelSystem,
    Pairing,
    ServerPrompt,
    ServerResource,
    Suite,
    Task,
)
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.models.exchange import CallRequest, Reply
from passhat.suite import load_suite
from passhat.testing import WireServer

DOCUMENT = "demo://resource/static/document/features.md"
OTHER = "demo://resource/static/document/startup.md"


def run(task, server, **fields):
    """One trial of a task with the server of the protocol's authors: its row and transcript."""
    everything = replace(npm_server("server-everything"), **fields)
    model = Model(name="m", base_url=server.url)
    system = ModelSystem(name="agent", model=model, servers=(everything.name,))
    pairing = Pairing(system=system, task=task, runs=1, label=task.name)
    suite = Suite(name="s", pairings=(pairing,), servers={everything.name: everything})
    journal = MemoryJournal()
    (trial,) = run_trials(suite, journal=journal).trials
    return trial, json.loads(journal.finished()[0].transcript)


def test_the_text_of_a_resource_stands_before_the_question():
    task = Task(
        name="t",
        prompt="Name one feature.",
        resources=(ServerResource(uri=DOCUMENT), ServerResource(uri=OTHER)),
        expect=(Expectation(matcher="contains", value="Hello"),),
    )
    with WireServer() as server:
        trial, _ = run(task, server)
        assert trial.error is None
        (asked,) = server.asked
    said = asked.body["messages"][0]["content"]
    assert said.startswith(f'<resource uri="{DOCUMENT}">\n# ')
    assert said.count("</resource>") == 2
    assert said.endswith("\n\nName one feature.")
    assert trial.tools == ()


def test_a_prompt_of_a_server_is_the_question_of_the_task():
    prompt = ServerPrompt(name="args-prompt", arguments={"city": "Rome"})
    with WireServer() as server:
        trial, transcript = run(Task(name="t", server_prompt=prompt), server)
        assert trial.error is None
        (asked,) = server.asked
    assert asked.body["messages"] == [{"role": "user", "content": "What's weather in Rome?"}]
    assert transcript["messages"][0]["text"] == "What's weather in Rome?"


@pytest.mark.slow("starts the same real server once more")
def test_a_prompt_with_a_resource_in_it_is_said_in_order():
    given = {"resourceType": "Text", "resourceId": "1"}
    task = Task(name="t", server_prompt=ServerPrompt(name="resource-prompt", arguments=given))
    with WireServer() as server:
        run(task, server)
        (asked,) = server.asked
    said = [turn["content"] for turn in asked.body["messages"]]
    assert "plaintext resource" in said[-1]
    assert len(said) == 2


ONE_MORE_SERVER = pytest.mark.slow("starts one more server")


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (Task(name="t", prompt="?", resources=(ServerResource(uri="demo://none"),)),
         "no server has the resource demo://none"),
        pytest.param(Task(name="t", server_prompt=ServerPrompt(name="none")),
                     "no server has the prompt none", marks=ONE_MORE_SERVER),
        pytest.param(Task(name="t", prompt="?",
                          resources=(ServerResource(uri=DOCUMENT, server="other"),)),
                     "there is no server 'other'", marks=ONE_MORE_SERVER),
    ],
)  # fmt: skip
def test_what_no_server_has_is_an_error_of_the_trial(task, message):
    with WireServer() as server:
        trial, _ = run(task, server)
        assert server.asked == []
    assert message in trial.error


def calling(*calls):
    """A model that makes these calls, one a turn, and then says what the last one returned."""

    def answer(asked):
        done = [m for m in asked.body["messages"] if m["role"] == "tool"]
        if len(done) < len(calls):
            name, arguments = calls[len(done)]
            return Reply(calls=(CallRequest(id=f"c{len(done)}", name=name, arguments=arguments),))
        return Reply(text=done[-1]["content"])

    return answer


def test_a_model_lists_and_reads_resources_where_the_server_allows_it():
    calls = (("list_mcp_resources", {}), ("read_mcp_resource", {"uri": DOCUMENT}))
    with WireServer(calling(*calls)) as server:
        trial, transcript = run(Task(name="t", prompt="?"), server, resource_tools=True)
        offered = {tool["function"]["name"] for tool in server.asked[0].body["tools"]}
    assert trial.tools == ("list_mcp_resources", "read_mcp_resource")
    assert {"list_mcp_resources", "read_mcp_resource"} <= offered
    results = [turn["text"] for turn in transcript["messages"] if turn["role"] == "tool"]
    assert DOCUMENT in results[0]
    assert "demo://resource/dynamic/text/{resourceId}" in results[0]
    assert results[1].startswith(f'<resource uri="{DOCUMENT}">')


@pytest.mark.slow("starts the same real server once more")
def test_a_model_cannot_read_resources_that_it_was_not_offered():
    calls = (("resources/read", {"uri": DOCUMENT}), ("read_mcp_resource", {"uri": DOCUMENT}))
    with WireServer(calling(*calls)) as server:
        _, transcript = run(Task(name="t", prompt="?"), server)
    results = [turn["text"] for turn in transcript["messages"] if turn["role"] == "tool"]
    assert all(text.startswith("There is no tool") for text in results)


SUITE = """\
name: contents
servers: {{everything: {{command: [{command}]}}}}
defaults: {{servers: [everything]}}
agents:
  - name: from a prompt
    model: m
    base_url: "{url}"
    prompt: {{name: args-prompt, arguments: {{city: Rome}}}}
    resources: ["{uri}"]
    expect: [{{contains: Hello}}]
"""


def test_a_recorded_run_needs_neither_the_server_nor_the_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    argv = npm_server("server-everything").argv
    with WireServer() as server:
        command = ", ".join(json.dumps(word) for word in argv)
        text = SUITE.format(command=command, url=server.url, uri=DOCUMENT)
        (tmp_path / "passhat.yml").write_text(text)
        recorded = CliRunner().invoke(main, ["run", "--record", "--no-store"])
        assert recorded.exit_code == 0, recorded.output
        assert len(server.asked) == 1
    gone = text.replace(command, '"node", "gone.js"')
    (tmp_path / "passhat.yml").write_text(gone)
    replayed = CliRunner().invoke(main, ["run", "--replay", "--no-store", "--allow-drift"])
    assert replayed.exit_code == 0, replayed.output


@pytest.mark.parametrize("line", ["prompt: {name: hello}", "prompt: hi\n    resources: [x://y]"])
def test_an_agent_without_servers_has_no_prompts_and_resources(tmp_path, line):
    path = tmp_path / "passhat.yml"
    path.write_text(f"name: s\nagents:\n  - name: a\n    model: claude-opus-5\n    {line}\n")
    with pytest.raises(
        SuiteError, match="of a server needs a model with servers: its agent has none"
    ):
        load_suite(path)
