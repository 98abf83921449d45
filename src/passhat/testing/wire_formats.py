"""Replies written the way each provider writes them, whole and streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from passhat.runner.models.exchange import CallRequest, Reply

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WireForm:
    """How one provider writes an answer: its whole body, and the events of a stream.

    Without `events` nothing is streamed; where `streams` is True everything is. Otherwise the
    request asks for it.
    """

    name: str
    whole: Callable[[Reply, str], Body]
    events: Callable[[Reply, str], Iterator[tuple[str, Body]]] | None = None
    streams: bool = False


def form_of(path: str) -> WireForm | None:
    """The wire format that is spoken under a path."""
    for ending, form in FORMS.items():
        if path.endswith(ending):
            return form
    return None


def _chat(reply: Reply, model: str) -> Body:
    message: Body = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = [_chat_call(call) for call in reply.calls]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": _chat_reason(reply)}],
        "usage": _chat_usage(reply),
    }


def _chat_events(reply: Reply, model: str) -> Iterator[tuple[str, Body]]:
    def chunk(delta: Body, reason: str | None = None) -> tuple[str, Body]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        whole = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0}
        return "", {**whole, "model": model, "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(reply.text):
        yield chunk({"content": piece})
    for index, call in enumerate(reply.calls):
        begun = {"name": call.name, "arguments": ""}
        head = {"index": index, "id": call.id, "type": "function", "function": begun}
        yield chunk({"tool_calls": [head]})
        for piece in _pieces(call.sent_text):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _chat_reason(reply))
    last: Body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0}
    yield "", {**last, "model": model, "choices": [], "usage": _chat_usage(reply)}


def _chat_call(call: CallRequest) -> Body:
    function = {"name": call.name, "arguments": call.sent_text}
    return {"id": call.id, "type": "function", "function": function}


def _chat_reason(reply: Reply) -> str:
    words = {"done": "stop", "max_tokens": "length", "refused": "content_filter"}
    return "tool_calls" if reply.calls else words.get(reply.stop_reason, reply.stop_reason)


def _chat_usage(reply: Reply) -> Body:
    usage = reply.usage
    return {
        "prompt_tokens": usage.tokens_in,
        "completion_tokens": usage.tokens_out,
        "total_tokens": usage.total,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_in,
            "cache_write_tokens": usage.cache_written,
        },
    }


def _messages(reply: Reply, model: str) -> Body:
    content: list[Body] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.sent}
        for call in reply.calls
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": _messages_reason(reply),
        "stop_sequence": None,
        "usage": _messages_usage(reply),
    }


def _messages_events(reply: Reply, model: str) -> Iterator[tuple[str, Body]]:
    whole = _messages(reply, model)
    start = {**whole, "content": [], "stop_reason": None}
    start["usage"] = {**whole["usage"], "output_tokens": 1}
    yield "message_start", {"message": start}
    for index, block in enumerate(whole["content"]):
        begun = {**block, "input": {}} if block["type"] == "tool_use" else {**block, "text": ""}
        yield "content_block_start", {"index": index, "content_block": begun}
        for delta in _deltas(block):
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": delta, "usage": {"output_tokens": reply.usage.tokens_out}}
    yield "message_stop", {}


def _deltas(block: Body) -> Iterator[Body]:
    if block["type"] == "text":
        for piece in _pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}
        return
    given = block["input"]
    text = given if isinstance(given, str) else msgspec.json.encode(given).decode()
    for piece in _pieces(text):
        yield {"type": "input_json_delta", "partial_json": piece}


def _messages_reason(reply: Reply) -> str:
    words = {"done": "end_turn", "refused": "refusal"}
    return "tool_use" if reply.calls else words.get(reply.stop_reason, reply.stop_reason)


def _messages_usage(reply: Reply) -> Body:
    usage = reply.usage
    return {
        "input_tokens": usage.tokens_in - usage.cached_in - usage.cache_written,
        "output_tokens": usage.tokens_out,
        "cache_read_input_tokens": usage.cached_in,
        "cache_creation_input_tokens": usage.cache_written,
    }


def _responses(reply: Reply, model: str) -> Body:
    output: list[Body] = []
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        output.append(
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [part],
            }
        )
    output += [
        {
            "type": "function_call",
            "id": f"fc_{index}",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.sent_text,
            "status": "completed",
        }
        for index, call in enumerate(reply.calls)
    ]
    cut = reply.stop_reason == "max_tokens"
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": model,
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": reply.usage.tokens_in,
            "output_tokens": reply.usage.tokens_out,
            "total_tokens": reply.usage.total,
            "input_tokens_details": {
                "cached_tokens": reply.usage.cached_in,
                "cache_write_tokens": reply.usage.cache_written,
            },
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _responses_events(reply: Reply, model: str) -> Iterator[tuple[str, Body]]:
    whole = _responses(reply, model)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    events: list[tuple[str, Body]] = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
    ]
    for index, item in enumerate(whole["output"]):
        events += _item_events(item, index)
    events.append((f"response.{whole['status']}", {"response": whole}))
    for number, (kind, body) in enumerate(events):
        yield kind, {**body, "sequence_number": number}


def _item_events(item: Body, index: int) -> Iterator[tuple[str, Body]]:
    """An item of the output as it grows: it is added, filled piece by piece, and done."""
    at = {"output_index": index, "item_id": item["id"]}
    is_call = item["type"] == "function_call"
    empty: Body = {"arguments": ""} if is_call else {"content": []}
    added = {**item, **empty, "status": "in_progress"}
    yield "response.output_item.added", {"output_index": index, "item": added}
    if is_call:
        kind = "response.function_call_arguments"
        for piece in _pieces(item["arguments"]):
            yield f"{kind}.delta", {**at, "delta": piece}
        yield f"{kind}.done", {**at, "arguments": item["arguments"], "name": item["name"]}
    else:
        yield from _part_events(item["content"][0], {**at, "content_index": 0})
    yield "response.output_item.done", {"output_index": index, "item": item}


def _part_events(part: Body, at: Body) -> Iterator[tuple[str, Body]]:
    yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
    for piece in _pieces(part["text"]):
        yield "response.output_text.delta", {**at, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**at, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**at, "part": part}


def _pieces(text: str, size: int = 7) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


def _converse(reply: Reply, model: str) -> Body:
    blocks: list[Body] = [{"text": reply.text}] if reply.text else []
    blocks += [
        {"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.sent}}
        for call in reply.calls
    ]
    reason = {"done": "end_turn", "tool_calls": "tool_use"}.get(reply.stop_reason)
    used = reply.usage
    return {
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": "tool_use" if reply.calls else reason or reply.stop_reason,
        "usage": {
            "inputTokens": used.tokens_in - used.cached_in - used.cache_written,
            "outputTokens": used.tokens_out,
            "cacheReadInputTokens": used.cached_in,
            "cacheWriteInputTokens": used.cache_written,
        },
    }


def _gemini(reply: Reply, model: str) -> Body:
    parts: list[Body] = [{"text": reply.text}] if reply.text else []
    parts += [
        {"functionCall": {"id": call.id, "name": call.name, "args": call.sent}}
        for call in reply.calls
    ]
    words = {"done": "STOP", "tool_calls": "STOP", "max_tokens": "MAX_TOKENS", "refused": "SAFETY"}
    candidate = {
        "index": 0,
        "content": {"role": "model", "parts": parts},
        "finishReason": words.get(reply.stop_reason, "OTHER"),
    }
    usage = {
        "promptTokenCount": reply.usage.tokens_in,
        "candidatesTokenCount": reply.usage.tokens_out,
        "cachedContentTokenCount": reply.usage.cached_in,
        "totalTokenCount": reply.usage.total,
    }
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}


def _gemini_events(reply: Reply, model: str) -> Iterator[tuple[str, Body]]:
    for piece in _pieces(reply.text):
        content = {"role": "model", "parts": [{"text": piece}]}
        yield "", {"candidates": [{"index": 0, "content": content}], "modelVersion": model}
    yield "", _gemini(replace(reply, text=""), model)


FORMS: dict[str, WireForm] = {
    ":generateContent": WireForm(name="gemini", whole=_gemini, events=_gemini_events),
    ":streamGenerateContent": WireForm(
        name="gemini", whole=_gemini, events=_gemini_events, streams=True
    ),
    ":rawPredict": WireForm(name="anthropic", whole=_messages, events=_messages_events),
    ":streamRawPredict": WireForm(
        name="anthropic", whole=_messages, events=_messages_events, streams=True
    ),
    "/converse": WireForm(name="bedrock-converse", whole=_converse),
    "/chat/completions": WireForm(name="openai-chat", whole=_chat, events=_chat_events),
    "/messages": WireForm(name="anthropic", whole=_messages, events=_messages_events),
    "/responses": WireForm(name="openai-responses", whole=_responses, events=_responses_events),
}
