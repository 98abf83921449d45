"""The Anthropic Messages API, of Anthropic itself and on Vertex AI."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from passhat.dataclass import replace
from passhat.errors import ModelBusy
from passhat.records import ModelParameters, TokenUsage
from passhat.runner.models import exchange

DEFAULT_MAX_TOKENS = 4096
"""The API requires a number; this is enough for any tool call and a long answer."""

BUDGETS: dict[str, int] = {"low": 1_024, "medium": 4_096, "high": 16_384}
"""Tokens of thinking for each effort; 1,024 is the least that the API takes."""

STOP_REASONS = {
    "end_turn": "done",
    "stop_sequence": "done",
    "tool_use": "tool_calls",
    "max_tokens": "max_tokens",
    "refusal": "refused",
}


def encode(model: str, request: exchange.Request, stream: bool) -> dict[str, Any]:
    """The body of a request."""
    given = request.parameters
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": given.max_tokens or DEFAULT_MAX_TOKENS,
        "messages": exchange.joined_turns(request.messages, _blocks),
    }
    optional = {
        "system": request.system,
        "temperature": given.temperature,
        "top_p": given.top_p,
        "stop_sequences": list(given.stop),
        "stream": stream,
    }
    body |= {key: value for key, value in optional.items() if value not in (None, "", [], False)}
    if given.reasoning:
        budget = thinking_budget(given.reasoning)
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}
        body["max_tokens"] += budget  # the API counts thinking as part of the answer
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
        body["tool_choice"] = _tool_choice(given)
    if given.prompt_cache:
        _mark_for_cache(body)
    return body | dict(given.extra)


def thinking_budget(reasoning: str | int) -> int:
    """How many tokens an effort stands for; a number is taken as it is."""
    return int(BUDGETS.get(str(reasoning), reasoning))


def _mark_for_cache(body: dict[str, Any]) -> None:
    """Mark the end of what stays the same from turn to turn: tools, system, the conversation."""
    mark = {"cache_control": {"type": "ephemeral"}}
    if body.get("tools"):
        body["tools"][-1] |= mark
    if body.get("system"):
        body["system"] = [{"type": "text", "text": body["system"], **mark}]
    if body["messages"]:
        last = body["messages"][-1]["content"]
        last[-1] = {**last[-1], **mark}


def decode(body: exchange.Body) -> exchange.Reply:
    """The reply in the body of an answer."""
    blocks = body["content"]
    reason = body.get("stop_reason")
    return exchange.Reply(
        text="".join(block["text"] for block in blocks if block["type"] == "text"),
        calls=tuple(_call(block) for block in blocks if block["type"] == "tool_use"),
        stop_reason=STOP_REASONS.get(str(reason), str(reason)),
        usage=_usage(body.get("usage") or {}),
        model=body.get("model", ""),
        raw=tuple(blocks),
    )


def assemble(events: Iterable[exchange.Body]) -> exchange.Body:
    """The body that a stream of events amounts to."""
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    partial: dict[int, str] = {}
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            message = dict(event["message"])
        elif kind == "content_block_start":
            blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            _extend(blocks[event["index"]], event["delta"], partial, event["index"])
        elif kind == "message_delta":
            message |= event["delta"]
            message["usage"] = {**message.get("usage", {}), **(event.get("usage") or {})}
        elif kind == "message_stop":
            for index, text in partial.items():
                blocks[index]["input"] = text
            return {**message, "content": [blocks[index] for index in sorted(blocks)]}
        elif kind == "error":
            raise ModelBusy(f"the stream broke off: {event['error'].get('message')}")
    raise exchange.cut_off("message_stop")


def _extend(
    block: dict[str, Any], delta: Mapping[str, Any], partial: dict[int, str], index: int
) -> None:
    if delta["type"] == "input_json_delta":
        partial[index] = partial.get(index, "") + delta["partial_json"]
        return
    for key in ("text", "thinking", "signature"):
        if key in delta:
            block[key] = block.get(key, "") + delta[key]


def _blocks(message: exchange.Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_use_id": message.call_id,
            "content": _with_images(message) if message.attachments else message.text,
        }
        return [result | ({"is_error": True} if message.is_error else {})]
    if message.raw:
        return [_sendable(block) for block in message.raw]
    return _with_images(message) + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
        for call in message.calls
    ]


def _with_images(message: exchange.Message) -> list[dict[str, Any]]:
    text: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
    return text + [
        {"type": "image", "source": {"type": "base64", "media_type": each.mime, "data": each.data}}
        for each in exchange.attachments_of(message, "image", wire="anthropic")
    ]


def _sendable(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block as it came, except that the API takes the input of a call only as an object."""
    if block["type"] == "tool_use" and not isinstance(block["input"], Mapping):
        return {**block, "input": dict(_call(block).arguments)}
    return dict(block)


def _call(block: Mapping[str, Any]) -> exchange.CallRequest:
    given = block["input"]
    if not isinstance(given, (str, Mapping)):
        given = msgspec.json.encode(given).decode()
    return exchange.call_request(block["id"], block["name"], given)


def _tool_choice(given: ModelParameters) -> dict[str, Any]:
    word = given.tool_choice or "auto"
    known = {"auto": "auto", "required": "any", "none": "none"}
    choice: dict[str, Any] = (
        {"type": known[word]} if word in known else {"type": "tool", "name": word}
    )
    if given.parallel_tool_calls is not None and word != "none":
        choice["disable_parallel_tool_use"] = not given.parallel_tool_calls
    return choice


def _usage(usage: Mapping[str, Any]) -> TokenUsage | None:
    if not usage:
        return None
    # input_tokens leaves out what was read from or written to the cache.
    read = usage.get("cache_read_input_tokens") or 0
    written = usage.get("cache_creation_input_tokens") or 0
    return TokenUsage(
        tokens_in=(usage.get("input_tokens") or 0) + read + written,
        tokens_out=usage.get("output_tokens") or 0,
        cached_in=read,
        cache_written=written,
    )


def _headers(key: str) -> dict[str, str]:
    return {"x-api-key": key, "anthropic-version": "2023-06-01"}


def _encode_for_vertex(model: str, request: exchange.Request, stream: bool) -> dict[str, Any]:
    """The body of a request on Vertex AI, where the address names the model."""
    body = {key: value for key, value in encode(model, request, stream).items() if key != "model"}
    return {"anthropic_version": "vertex-2023-10-16", **body}


ANTHROPIC = exchange.WireFormat(
    name="anthropic",
    path="/v1/messages",
    list_path="/v1/models",
    headers=_headers,
    encode=encode,
    decode=decode,
    assemble=assemble,
)

ANTHROPIC_ON_VERTEX = replace(
    ANTHROPIC,
    name="anthropic-vertex",
    path="/publishers/anthropic/models/{model}:rawPredict",
    stream_path="/publishers/anthropic/models/{model}:streamRawPredict",
    list_path="/publishers/anthropic/models",
    headers=exchange.bearer,
    encode=_encode_for_vertex,
)
