"""Each wire format against a server that speaks it, whole and streamed."""

import asyncio

import pytest

from passhat.errors import ModelBusy, ModelError
from passhat.records import ModelParameters, TokenUsage
from passhat.runner.models.catalog import DIALECTS
from passhat.runner.models.endpoint import Endpoint, http_client
from passhat.runner.models.exchange import CallRequest, Message, Reply, Request, ToolSpec
from passhat.testing import WireServer

WEATHER = ToolSpec(
    name="get_weather",
    description="The weather in a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}},
)
QUESTION = Request(
    messages=(Message(role="user", text="Weather in Paris?"),),
    system="Be brief.",
    tools=(WEATHER,),
    parameters=ModelParameters(temperature=0.5, seed=7, max_tokens=99, parallel_tool_calls=False),
)
USAGE = TokenUsage(tokens_in=120, tokens_out=30, cached_in=40, cache_written=20)
CALL = CallRequest(id="c1", name="get_weather", arguments={"city": "Paris"})

every_format = pytest.mark.parametrize("name", sorted(DIALECTS))
whole_or_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def ask(server, name, request, *, stream=False, model="test-model", key="k"):
    async def main():
        async with http_client(timeout=5) as client:
            endpoint = Endpoint(
                DIALECTS[name], model=model, base_url=server.url, client=client, key=key,
                stream=stream, key_variable="SOME_KEY",
            )  # fmt: skip
            return await endpoint.complete(request)

    return asyncio.run(main())


@every_format
@whole_or_streamed
def test_text_and_usage_arrive(name, stream):
    with WireServer(lambda asked: Reply(text="Sunny, 24 °C.", usage=USAGE)) as server:
        reply = ask(server, name, QUESTION, stream=stream)
    assert reply.text == "Sunny, 24 °C."
    assert reply.usage == USAGE
    assert reply.stop_reason == "done"
    assert reply.seconds > 0


@every_format
@whole_or_streamed
def test_tool_calls_arrive_with_their_arguments(name, stream):
    two = (CALL, CallRequest(id="c2", name="get_weather", arguments={"city": "Rome"}))
    with WireServer(lambda asked: Reply(calls=two)) as server:
        reply = ask(server, name, QUESTION, stream=stream)
    assert reply.calls == two
    assert reply.stop_reason == "tool_calls"


@every_format
@whole_or_streamed
def test_broken_arguments_are_kept_as_they_came(name, stream):
    broken = CallRequest(id="c1", name="get_weather", broken='{"city": "Par')
    with WireServer(lambda asked: Reply(calls=(broken,))) as server:
        reply = ask(server, name, QUESTION, stream=stream)
    assert reply.calls == (broken,)


@every_format
@whole_or_streamed
def test_an_answer_that_ran_out_of_tokens_says_so(name, stream):
    with WireServer(lambda asked: Reply(text="Sun", stop_reason="max_tokens")) as server:
        assert ask(server, name, QUESTION, stream=stream).stop_reason == "max_tokens"


@every_format
def test_the_conversation_goes_out_with_calls_and_results(name):
    with WireServer(
        lambda asked: Reply(calls=(CALL,)) if asked.number == 0 else Reply(text="ok")
    ) as server:
        reply = ask(server, name, QUESTION)
        messages = (
            *QUESTION.messages,
            reply.message(),
            Message(role="tool", text="24 degrees", call_id="c1"),
        )
        assert ask(server, name, Request(messages=messages, tools=(WEATHER,))).text == "ok"
    body = server.asked[1].body
    expected = {
        "anthropic": [
            {"role": "user", "content": [{"type": "text", "text": "Weather in Paris?"}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": "c1", "name": "get_weather",
                 "input": {"city": "Paris"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "24 degrees"}]},
        ],
        "openai-chat": [
            {"role": "user", "content": "Weather in Paris?"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function",
                 "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "24 degrees"},
        ],
        "openai-responses": [
            {"role": "user", "content": "Weather in Paris?"},
            {"type": "function_call", "id": "fc_0", "call_id": "c1", "name": "get_weather",
             "arguments": '{"city":"Paris"}', "status": "completed"},
            {"type": "function_call_output", "call_id": "c1", "output": "24 degrees"},
        ],
    }  # fmt: skip
    assert body["input" if name == "openai-responses" else "messages"] == expected[name]


def test_parameters_go_out_in_the_words_of_each_provider():
    bodies, headers = {}, {}
    with WireServer() as server:
        for name in DIALECTS:
            ask(server, name, QUESTION, key="secret")
    for asked in server.asked:
        bodies[asked.form], headers[asked.form] = asked.body, asked.headers
    chat, responses, claude = (
        bodies[name] for name in ("openai-chat", "openai-responses", "anthropic")
    )
    assert (chat["temperature"], chat["seed"], chat["max_tokens"]) == (0.5, 7, 99)
    assert chat["parallel_tool_calls"] is False
    assert chat["messages"][0] == {"role": "system", "content": "Be brief."}
    assert chat["tools"][0]["function"]["parameters"] == WEATHER.parameters
    assert (responses["max_output_tokens"], responses["instructions"]) == (99, "Be brief.")
    assert responses["store"] is False
    assert (claude["max_tokens"], claude["system"]) == (99, "Be brief.")
    assert claude["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}
    assert claude["tools"][0]["input_schema"] == WEATHER.parameters
    assert headers["anthropic"]["x-api-key"] == "secret"
    assert headers["openai-chat"]["authorization"] == "Bearer secret"


@every_format
@pytest.mark.parametrize(
    "trouble", ["429", "429-date", "500", "503", "529", "cut", "garbage", "wrong-json"]
)
def test_trouble_that_may_pass_is_a_busy_model(name, trouble):
    with (
        WireServer(troubles={trouble: 1.0}, retry_after=60) as server,
        pytest.raises(ModelBusy, match=r"test-model at 127\.0\.0\.1") as caught,
    ):
        ask(server, name, QUESTION)
    if trouble == "429":
        assert caught.value.retry_after == 60
    if trouble == "429-date":
        assert 57 < caught.value.retry_after <= 61


@every_format
@pytest.mark.parametrize("trouble", ["cut", "early-end"])
def test_a_stream_that_ends_early_is_never_taken_for_an_answer(name, trouble):
    with (
        WireServer(lambda asked: Reply(text="All of it."), troubles={trouble: 1.0}) as server,
        pytest.raises(ModelBusy, match=r"ended before|RemoteProtocolError|ReadError"),
    ):
        ask(server, name, QUESTION, stream=True)


def test_an_answer_that_never_comes_is_a_busy_model():
    async def main(url):
        async with http_client(timeout=0.2) as client:
            endpoint = Endpoint(DIALECTS["openai-chat"], model="m", base_url=url, client=client)
            await endpoint.complete(QUESTION)

    with (
        WireServer(troubles={"hang": 1.0}) as server,
        pytest.raises(ModelBusy, match="ReadTimeout"),
    ):
        asyncio.run(main(server.url))


@every_format
def test_a_model_that_the_endpoint_does_not_have_lists_those_it_has(name):
    with (
        WireServer(models=("big", "small")) as server,
        pytest.raises(ModelError, match=r"404 model huge does not exist. Models there: big, small"),
    ):
        ask(server, name, QUESTION, model="huge")
