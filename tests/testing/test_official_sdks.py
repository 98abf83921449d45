"""The providers' own SDKs as oracles: they read our server, and say what our providers say.

With strict validation an SDK refuses an answer that is not what the API documents, and a keyword
that the API does not have is a TypeError before anything is sent.
"""

import asyncio
import json
from importlib.util import find_spec

import pytest

from passhat.records import ModelParameters, TokenUsage
from passhat.runner.models.catalog import WIRE_FORMATS
from passhat.runner.models.endpoint import Endpoint, ModelAddress, http_client
from passhat.runner.models.exchange import CallRequest, Message, Reply, Request, ToolSpec
from passhat.testing import WireServer

# Imported by the tests that need them: together they take two seconds of whoever runs other tests.
pytestmark = pytest.mark.skipif(
    not (find_spec("openai") and find_spec("anthropic")),
    reason="the SDKs of OpenAI and Anthropic are not installed",
)

USAGE = TokenUsage(tokens_in=120, tokens_out=30, cached_in=40, cache_written=20)
CALLS = (
    CallRequest(id="c1", name="get_weather", arguments={"city": "Paris", "days": [1, 2]}),
    CallRequest(id="c2", name="get_time", arguments={}),
)
REPLIES = {
    "text": Reply(text="Sunny, 24 °C.", usage=USAGE),
    "tool calls": Reply(calls=CALLS, usage=USAGE),
    "both": Reply(text="Let me look.", calls=CALLS, usage=USAGE),
    "cut short": Reply(text="Sun", stop_reason="max_tokens", usage=USAGE),
}
TOOLS = tuple(
    ToolSpec(
        name=name,
        description="Something about a city.",
        parameters={"type": "object", "properties": {"city": {"type": "string"}}},
    )
    for name in ("get_weather", "get_time")
)
CONVERSATION = Request(
    messages=(
        Message(role="user", text="Weather in Paris?"),
        Message(role="assistant", text="Let me look.", calls=CALLS),
        Message(role="tool", text="Sunny", call_id="c1"),
        Message(role="tool", text="no clock", call_id="c2", is_error=True),
    ),
    system="Be brief.",
    tools=TOOLS,
    parameters=ModelParameters(
        temperature=0.5, top_p=0.9, seed=7, max_tokens=99, parallel_tool_calls=False,
        tool_choice="get_weather", stop=("END",),
    ),
)  # fmt: skip
ASK = [{"role": "user", "content": "Weather in Paris?"}]

every_reply = pytest.mark.parametrize("said", REPLIES.values(), ids=REPLIES)


def openai_client(server):
    import openai

    return openai.OpenAI(
        api_key="k", base_url=server.url, max_retries=0, _strict_response_validation=True
    )


def anthropic_client(server):
    import anthropic

    return anthropic.Anthropic(
        api_key="k",
        base_url=server.url.removesuffix("/v1"),
        max_retries=0,
        _strict_response_validation=True,
    )


def calls_of(pairs):
    return [(name, json.loads(text) if isinstance(text, str) else text) for name, text in pairs]


def wanted(said):
    return [(call.name, dict(call.arguments)) for call in said.calls]


@pytest.mark.slow("loads the vendor's own library")
@every_reply
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_openais_sdk_reads_chat_completions(said, stream):
    with WireServer(lambda asked: said) as server, openai_client(server) as client:
        if stream:
            options = {"stream_options": {"include_usage": True}}
            with client.chat.completions.stream(model="m", messages=ASK, **options) as events:
                done = drained(events, lambda: events.current_completion_snapshot)
        else:
            done = client.chat.completions.create(model="m", messages=ASK)
    (choice,) = done.choices
    assert (choice.message.content or "") == said.text
    found = [(c.function.name, c.function.arguments) for c in choice.message.tool_calls or ()]
    assert calls_of(found) == wanted(said)
    reason = (
        "length" if said.stop_reason == "max_tokens" else "tool_calls" if said.calls else "stop"
    )
    assert choice.finish_reason == reason
    assert done.usage.total_tokens == USAGE.total
    assert done.usage.prompt_tokens_details.cached_tokens == USAGE.cached_in
    assert done.usage.prompt_tokens_details.cache_write_tokens == USAGE.cache_written


def drained(events, result):
    """Read a stream to its end; a length that was hit is the SDK's own exception."""
    import openai

    try:
        for _ in events:
            pass
    except openai.LengthFinishReasonError as error:
        return error.completion
    return result()


@pytest.mark.slow("loads the vendor's own library")
@every_reply
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_openais_sdk_reads_responses(said, stream):
    with WireServer(lambda asked: said) as server, openai_client(server) as client:
        if stream:
            with client.responses.stream(model="m", input="Weather in Paris?") as events:
                told = list(events)
            assert told[0].type == "response.created"
            assert [event.sequence_number for event in told] == list(range(len(told)))
            done = told[-1].response
        else:
            done = client.responses.create(model="m", input="Weather in Paris?")
    assert done.output_text == said.text
    found = [(item.name, item.arguments) for item in done.output if item.type == "function_call"]
    assert calls_of(found) == wanted(said)
    assert done.status == ("incomplete" if said.stop_reason == "max_tokens" else "completed")
    assert (done.usage.input_tokens, done.usage.output_tokens) == (120, 30)


@pytest.mark.slow("loads the vendor's own library")
@every_reply
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_anthropics_sdk_reads_messages(said, stream):
    with WireServer(lambda asked: said) as server, anthropic_client(server) as client:
        if stream:
            with client.messages.stream(model="m", max_tokens=99, messages=ASK) as events:
                done = events.get_final_message()
        else:
            done = client.messages.create(model="m", max_tokens=99, messages=ASK)
    assert "".join(block.text for block in done.content if block.type == "text") == said.text
    found = [(block.name, block.input) for block in done.content if block.type == "tool_use"]
    assert calls_of(found) == wanted(said)
    reason = "tool_use" if said.calls else "end_turn"
    assert done.stop_reason == ("max_tokens" if said.stop_reason == "max_tokens" else reason)
    assert done.usage.output_tokens == 30


# Our request is of the API's version 2023-06-01, in which older models have a temperature; the
# SDK's is of 2026-10-21, which has no such thing, and sends the key as a bearer token. Both ways
# to send a key are good with both versions.
BUT = {"anthropic": ("temperature", "top_p")}
CREATE = {
    "openai-chat": (openai_client, lambda client: client.chat.completions.create),
    "openai-responses": (openai_client, lambda client: client.responses.create),
    "anthropic": (anthropic_client, lambda client: client.messages.create),
}


@pytest.mark.slow("loads the vendors' own libraries")
@pytest.mark.parametrize("name", sorted(CREATE))
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_what_our_providers_send_is_what_the_sdks_would_send(name, stream):
    """The SDK takes our body as its keywords, and puts the same request on the wire."""
    make, create = CREATE[name]
    with WireServer(lambda asked: REPLIES["text"]) as server, make(server) as client:
        ask(server, name, stream=stream)
        ours = server.asked[0]
        body = {key: value for key, value in ours.body.items() if key not in BUT.get(name, ())}
        validated(name, body)
        answer = create(client)(**body)
        list(answer) if stream else None
    theirs = server.asked[1]
    assert theirs.body == body
    assert theirs.path == ours.path
    assert theirs.headers["content-type"] == ours.headers["content-type"]
    assert key_in(theirs.headers) == key_in(ours.headers) == "k"


def key_in(headers):
    return headers.get("x-api-key") or headers["authorization"].removeprefix("Bearer ")


def ask(server, name, *, stream):
    async def main():
        async with http_client(timeout=5) as client:
            at = ModelAddress(
                model="m", wire_format=WIRE_FORMATS[name], base_url=server.url, key="k"
            )
            endpoint = Endpoint(at, client=client, stream=stream)
            await endpoint.complete(CONVERSATION)

    asyncio.run(main())


def validated(name, body):
    """Refuse a body that is not of the type the SDK documents for it."""
    from anthropic.types import message_create_params as messages
    from openai.types.chat import completion_create_params as chat
    from openai.types.responses import response_create_params as responses
    from pydantic import TypeAdapter

    kinds = {
        "openai-chat": (
            chat.CompletionCreateParamsNonStreaming, chat.CompletionCreateParamsStreaming
        ),
        "openai-responses": (
            responses.ResponseCreateParamsNonStreaming, responses.ResponseCreateParamsStreaming
        ),
        "anthropic": (
            messages.MessageCreateParamsNonStreaming, messages.MessageCreateParamsStreaming
        ),
    }  # fmt: skip
    TypeAdapter(kinds[name][bool(body.get("stream"))]).validate_python(body)
