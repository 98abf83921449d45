"""Each wire format against a server that speaks it, whole and streamed."""

import asyncio

import pytest

from passhat.errors import ModelBusy, ModelError
from passhat.records import ModelParameters, TokenUsage
from passhat.runner.models.catalog import WIRE_FORMATS
from passhat.runner.models.endpoint import Endpoint, ModelAddress, http_client
from passhat.runner.models.exchange import (
    Attachment,
    CallRequest,
    Message,
    Reply,
    Request,
    ToolSpec,
)
from passhat.runner.models.retrying import retry_after
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

every_format = pytest.mark.parametrize("name", sorted(WIRE_FORMATS))
every_stream = pytest.mark.parametrize(
    "name", sorted(n for n in WIRE_FORMATS if WIRE_FORMATS[n].assemble)
)
whole_or_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def ask(server, name, request, *, stream=False, model="test-model", key="k"):
    async def main():
        async with http_client(timeout=5) as client:
            at = ModelAddress(
                model=model, wire_format=WIRE_FORMATS[name], base_url=server.url, key=key,
                key_variable="SOME_KEY",
            )  # fmt: skip
            endpoint = Endpoint(at, client=client, stream=stream)
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
        "bedrock-converse": [
            {"role": "user", "content": [{"text": "Weather in Paris?"}]},
            {"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "c1", "name": "get_weather",
                             "input": {"city": "Paris"}}}]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "c1", "content": [{"text": "24 degrees"}],
                                "status": "success"}}]},
        ],
    }  # fmt: skip
    said = body["input" if name == "openai-responses" else "messages"]
    assert said == expected["anthropic" if name == "anthropic-vertex" else name]


def test_parameters_go_out_in_the_words_of_each_provider():
    bodies, headers = {}, {}
    with WireServer() as server:
        for name in WIRE_FORMATS:
            ask(server, name, QUESTION, key="secret")
    for asked in server.asked:
        where = "anthropic-vertex" if asked.path.endswith(":rawPredict") else asked.form
        bodies[where], headers[where] = asked.body, asked.headers
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
    on_vertex = {**claude, "anthropic_version": "vertex-2023-10-16"}
    assert {"model": "test-model", **bodies["anthropic-vertex"]} == on_vertex
    assert headers["anthropic-vertex"]["authorization"] == "Bearer secret"
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


@every_stream
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
            at = ModelAddress(model="m", wire_format=WIRE_FORMATS["openai-chat"], base_url=url)
            endpoint = Endpoint(at, client=client)
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


PIXEL = Attachment(mime="image/png", data="aWNvbg==")


def sent(name, *messages, **parameters):
    """The body that a conversation goes out as."""
    request = Request(messages=messages, parameters=ModelParameters(**parameters))
    return WIRE_FORMATS[name].encode("m", request, False)


def test_an_image_goes_out_in_the_words_of_each_provider():
    said = Message(role="user", text="What is this?", attachments=(PIXEL,))
    url = "data:image/png;base64,aWNvbg=="
    claude = sent("anthropic", said)["messages"][0]["content"][1]
    assert claude["source"] == {"type": "base64", "media_type": "image/png", "data": "aWNvbg=="}
    chat = sent("openai-chat", said)["messages"][0]["content"]
    assert chat[1] == {"type": "image_url", "image_url": {"url": url}}
    responses = sent("openai-responses", said)["input"][0]["content"]
    assert responses[1] == {"type": "input_image", "image_url": url}
    bedrock = sent("bedrock-converse", said)["messages"][0]["content"]
    assert bedrock[1] == {"image": {"format": "png", "source": {"bytes": "aWNvbg=="}}}


def test_the_image_of_a_tool_reaches_the_model_behind_all_results():
    calls = (CALL, CallRequest(id="c2", name="get_weather"))
    said = (
        Message(role="user", text="?"),
        Message(role="assistant", calls=calls),
        Message(role="tool", text="[image]", call_id="c1", attachments=(PIXEL,)),
        Message(role="tool", text="ok", call_id="c2"),
    )
    roles = [turn["role"] for turn in sent("openai-chat", *said)["messages"]]
    assert roles == ["user", "assistant", "tool", "tool", "user"]
    claude = sent("anthropic", *said)["messages"][2]["content"]
    assert [block["type"] for block in claude[0]["content"]] == ["text", "image"]


def with_sound(mime):
    return Message(role="user", text="?", attachments=(Attachment(mime=mime, data="aWNvbg=="),))


@pytest.mark.parametrize(("mime", "form"), [("audio/x-wav", "wav"), ("audio/mpeg", "mp3")])
def test_a_sound_goes_out_where_it_is_understood(mime, form):
    chat = sent("openai-chat", with_sound(mime))["messages"][0]["content"][1]
    assert chat == {"type": "input_audio", "input_audio": {"data": "aWNvbg==", "format": form}}
    bedrock = sent("bedrock-converse", with_sound(mime))["messages"][0]["content"][1]
    assert bedrock == {"audio": {"format": form, "source": {"bytes": "aWNvbg=="}}}


@pytest.mark.parametrize("name", ["anthropic", "anthropic-vertex", "openai-responses"])
def test_a_sound_of_the_user_is_refused_where_no_model_could_hear_it(name):
    wire = name.removesuffix("-vertex")
    refusal = f"audio/wav cannot be sent: the wire format {wire} takes image files"
    with pytest.raises(ModelError, match=refusal):
        sent(name, with_sound("audio/wav"))
    sound = Attachment(mime="audio/wav", data="aWNvbg==")
    told = Message(role="tool", text="[audio audio/wav]", call_id="c1", attachments=(sound,))
    assert "aWNvbg==" not in str(sent(name, Message(role="user", text="?"), told))


def test_the_words_of_a_spoken_answer_are_the_answer():
    spoken = {"role": "assistant", "content": None, "audio": {"data": "x", "transcript": "Sunny."}}
    body = {"choices": [{"message": spoken, "finish_reason": "stop"}]}
    assert WIRE_FORMATS["openai-chat"].decode(body).text == "Sunny."


def test_bedrock_takes_reasoning_and_caching_in_its_own_words():
    request = Request(
        messages=(Message(role="user", text="?"),),
        system="Be brief.",
        tools=(WEATHER,),
        parameters=ModelParameters(reasoning="low", prompt_cache=True, max_tokens=100),
    )
    body = WIRE_FORMATS["bedrock-converse"].encode("eu.anthropic.claude-opus-5", request, False)
    point = {"cachePoint": {"type": "default"}}
    assert body["system"][-1] == point
    assert body["toolConfig"]["tools"][-1] == point
    assert body["messages"][-1]["content"][-1] == point
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
    assert body["additionalModelRequestFields"] == thinking
    assert body["inferenceConfig"]["maxTokens"] == 1124
    with pytest.raises(ModelError, match="on Bedrock only Claude takes `reasoning:`"):
        WIRE_FORMATS["bedrock-converse"].encode("amazon.nova-pro-v1:0", request, False)


def test_reasoning_goes_out_in_the_words_of_each_provider():
    said = Message(role="user", text="?")
    assert sent("openai-chat", said, reasoning="high")["reasoning_effort"] == "high"
    assert sent("openai-responses", said, reasoning=2000)["reasoning"] == {"effort": "low"}
    claude = sent("anthropic", said, reasoning="medium", max_tokens=100)
    assert claude["thinking"] == {"type": "enabled", "budget_tokens": 4096}
    assert claude["max_tokens"] == 4196


def test_a_cached_prompt_is_marked_at_the_end_of_each_stable_part():
    request = Request(
        messages=(Message(role="user", text="?"),),
        system="Be brief.",
        tools=(WEATHER,),
        parameters=ModelParameters(prompt_cache=True),
    )
    body = WIRE_FORMATS["anthropic"].encode("m", request, False)
    marked = [body["tools"][-1], body["system"][-1], body["messages"][-1]["content"][-1]]
    assert all(part["cache_control"] == {"type": "ephemeral"} for part in marked)


def test_a_request_of_the_first_cassettes_still_has_their_fingerprint():
    call = CallRequest(id="1", name="f", arguments={"a": 1})
    request = Request(
        messages=(
            Message(role="user", text="Hello"),
            Message(role="assistant", calls=(call,)),
            Message(role="tool", text="é", call_id="1"),
        ),
        system="s",
        tools=(ToolSpec(name="f"),),
        parameters=ModelParameters(temperature=0.5, seed=3, extra={"x": 1}),
    )
    # Computed before images, reasoning and caching were added.
    assert request.fingerprint() == "92d0c00c142f55d05b7eddf5f64bc6ff"


@every_stream
@pytest.mark.parametrize("ending", ["\u2028", "\u0085", "\x0b", "\x1c"])
def test_a_stream_is_cut_at_ends_of_lines_and_nowhere_else(name, ending):
    text = f"before{ending}after"
    with WireServer(lambda asked: Reply(text=text, usage=USAGE)) as server:
        assert ask(server, name, QUESTION, stream=True).text == text


@pytest.mark.parametrize("headers", [{"retry-after-ms": "soon"}, {"retry-after": "soon"}])
def test_a_wait_that_is_neither_number_nor_date_is_none(headers):
    assert retry_after(headers) is None


CHAT = {"choices": [{"message": {"content": "Sunny."}, "finish_reason": "stop"}]}


@pytest.fixture
def read_chat(serving):
    """What an endpoint makes of the body of an answer."""

    async def ask_at(url, stream):
        at = ModelAddress(model="m", wire_format=WIRE_FORMATS["openai-chat"], base_url=f"{url}/v1")
        async with http_client(timeout=5) as client:
            return await Endpoint(at, client=client, stream=stream).complete(QUESTION)

    def read(body, *, stream=False):
        with serving(lambda path, asked, headers: (200, body)) as url:
            return asyncio.run(ask_at(url, stream))

    return read


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        (CHAT | {"usage": {"prompt_tokens": "12", "completion_tokens": 3.0}}, 15),
        (CHAT | {"model": None, "usage": {"prompt_tokens": None, "total_tokens": 9}}, 0),
    ],
)
def test_numbers_are_read_however_a_server_writes_them(read_chat, body, tokens):
    reply = read_chat(body)
    assert (reply.text, reply.usage.total) == ("Sunny.", tokens)


def test_a_byte_that_is_no_utf8_does_not_spoil_a_streamed_answer(read_chat):
    chunk = b'{"choices": [{"delta": {"content": "Sun\xff"}, "finish_reason": "stop"}]}'
    assert read_chat(b"data: " + chunk + b"\n\ndata: [DONE]\n\n", stream=True).text == "Sun\ufffd"


def test_a_text_in_parts_is_joined_and_thinking_is_left_out(read_chat):
    parts = [{"type": "thinking", "thinking": []}, *({"type": "text", "text": t} for t in "ab")]
    message = {"message": {"content": parts}, "finish_reason": "stop"}
    assert read_chat({"choices": [message]}).text == "ab"


@pytest.mark.parametrize(
    "body",
    [
        CHAT | {"usage": {"prompt_tokens": "many"}},
        CHAT | {"usage": {"prompt_tokens": 1.5}},
        CHAT | {"model": 5},
        {"choices": [{"message": {"content": {"deep": 1}}, "finish_reason": "stop"}]},
    ],
)
def test_an_answer_with_the_wrong_types_is_not_in_the_wire_format(read_chat, body):
    with pytest.raises(ModelBusy, match="the answer is not openai-chat") as raised:
        read_chat(body)
    assert raised.value.perhaps_paid
