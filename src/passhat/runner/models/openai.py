"""OpenAI Chat Completions, which most other servers offer too, and OpenAI Responses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from passhat.dataclass import replace
from passhat.errors import ModelBusy, ModelError
from passhat.records import TokenUsage
from passhat.runner.models import exchange

OWN_MODELS = ("gpt-", "o1", "o3", "o4", "chatgpt")

TOOL_CHOICES = ("auto", "required", "none")

STOP_REASONS = {
    "stop": "done",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "max_tokens",
    "content_filter": "refused",
}


def encode_chat(model: str, request: exchange.Request, stream: bool) -> dict[str, Any]:
    """The body of a request."""
    given = request.parameters
    body: dict[str, Any] = {"model": model, "messages": _conversation(request)}
    optional = {
        "temperature": given.temperature,
        "top_p": given.top_p,
        "seed": given.seed,
        # OpenAI's reasoning models refuse max_tokens; other servers know only that.
        "max_completion_tokens" if model.startswith(OWN_MODELS) else "max_tokens": given.max_tokens,
        "stop": list(given.stop) or None,
        "reasoning_effort": None if given.reasoning is None else exchange.effort(given.reasoning),
    }
    body |= {key: value for key, value in optional.items() if value is not None}
    if request.tools:
        functions = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.tools
        ]
        body["tools"] = [{"type": "function", "function": function} for function in functions]
        choice = given.tool_choice or "auto"
        named = {"type": "function", "function": {"name": choice}}
        body["tool_choice"] = choice if choice in TOOL_CHOICES else named
        if given.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = given.parallel_tool_calls
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body | dict(given.extra)


def decode_chat(body: exchange.Body) -> exchange.Reply:
    """The reply in the body of an answer."""
    choice = body["choices"][0]
    message = choice["message"]
    text, audio = message.get("content"), message.get("audio") or {}
    if isinstance(text, list):  # some servers send parts, with thinking among them
        text = "".join(part["text"] for part in text if part["type"] == "text")
    calls = tuple(
        _chat_call(index, call) for index, call in enumerate(message.get("tool_calls") or ())
    )
    reason = choice.get("finish_reason")
    return exchange.Reply(
        text=text or message.get("refusal") or audio.get("transcript") or "",
        calls=calls,
        stop_reason="tool_calls"
        if calls and reason == "stop"
        else STOP_REASONS.get(reason, str(reason)),
        usage=_usage(body.get("usage") or {}, read="prompt", written="completion"),
        model=body.get("model") or "",
    )


def assemble_chat(events: Iterable[exchange.Body]) -> exchange.Body:
    """The body that a stream of chunks amounts to."""
    text, refusal = [], []
    calls: dict[int, dict[str, Any]] = {}
    reason: str | None = None
    whole: dict[str, Any] = {}
    for event in events:
        if event.get("error"):
            raise ModelBusy(f"the stream broke off: {_error_text(event['error'])}")
        whole |= {key: event[key] for key in ("model", "usage") if event.get(key)}
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            text.append(delta.get("content") or "")
            refusal.append(delta.get("refusal") or "")
            for part in delta.get("tool_calls") or ():
                call = calls.setdefault(part.get("index", len(calls)), {})
                if part.get("id"):
                    call["id"] = part["id"]
                function = call.setdefault("function", {"name": "", "arguments": ""})
                given = part.get("function") or {}
                function["name"] += given.get("name") or ""
                function["arguments"] += given.get("arguments") or ""
            reason = choice.get("finish_reason") or reason
    if reason is None:
        raise exchange.cut_off("finish_reason")
    message = {
        "content": "".join(text),
        "refusal": "".join(refusal),
        "tool_calls": [calls[index] for index in sorted(calls)],
    }
    return {**whole, "choices": [{"message": message, "finish_reason": reason}]}


def _conversation(request: exchange.Request) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    if request.system:
        turns.append({"role": "system", "content": request.system})
    waiting: list[dict[str, Any]] = []
    for message in request.messages:
        if waiting and message.role != "tool":
            turns.append({"role": "user", "content": waiting})
            waiting = []
        turns.append(_turn(message))
        if message.role == "tool":
            # A tool's turn holds only text: its images follow as the user's.
            waiting = waiting + _parts(message)
    return [*turns, {"role": "user", "content": waiting}] if waiting else turns


def _parts(message: exchange.Message) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for each in exchange.attachments_of(message, "image", "audio", wire="openai-chat"):
        if each.kind == "image":
            parts.append({"type": "image_url", "image_url": {"url": each.url}})
        else:
            sound = {"data": each.data, "format": each.format}
            parts.append({"type": "input_audio", "input_audio": sound})
    return parts


def _turn(message: exchange.Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    turn: dict[str, Any] = {"role": message.role, "content": message.text}
    if parts := _parts(message):
        turn["content"] = [{"type": "text", "text": message.text}, *parts]
    if message.calls:
        turn["content"] = message.text or None
        turn["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.sent_text},
            }
            for call in message.calls
        ]
    return turn


def _chat_call(index: int, call: Mapping[str, Any]) -> exchange.CallRequest:
    function = call["function"]
    # Some servers leave the id out; a stable one keeps the request the same when it is replayed.
    arguments = function.get("arguments")
    return exchange.call_request(
        call.get("id") or f"call_{index}", function["name"], "" if arguments is None else arguments
    )


def _usage(usage: Mapping[str, Any], *, read: str, written: str) -> TokenUsage | None:
    if not usage:
        return None
    details = usage.get(f"{read}_tokens_details") or {}
    return TokenUsage(
        tokens_in=usage.get(f"{read}_tokens") or 0,
        tokens_out=usage.get(f"{written}_tokens") or 0,
        cached_in=details.get("cached_tokens") or 0,
        cache_written=details.get("cache_write_tokens") or 0,
    )


def _error_text(error: Any) -> str:
    return str(error.get("message", error)) if isinstance(error, Mapping) else str(error)


OPENAI_CHAT = exchange.WireFormat(
    name="openai-chat",
    path="/chat/completions",
    list_path="/models",
    headers=exchange.bearer,
    encode=encode_chat,
    decode=decode_chat,
    assemble=assemble_chat,
)


# OpenAI Responses without state at the provider: each request has the whole conversation.

REASONING_MODEL = re.compile(r"o\d|gpt-[5-9](?!.*chat)")
ENDED = ("response.completed", "response.incomplete", "response.failed")


def encode_responses(model: str, request: exchange.Request, stream: bool) -> dict[str, Any]:
    """The body of a request."""
    given = request.parameters
    body: dict[str, Any] = {
        "model": model,
        "input": [item for message in request.messages for item in _items(message)],
        # Only an answer that the provider keeps can be prepared in the background.
        "store": bool(given.extra.get("background")),
    }
    if REASONING_MODEL.match(model):
        # Nothing is stored at the provider, so its reasoning must travel with the conversation.
        body["include"] = ["reasoning.encrypted_content"]
    optional = {
        "instructions": request.system or None,
        "temperature": given.temperature,
        "top_p": given.top_p,
        "max_output_tokens": given.max_tokens,
        "reasoning": None
        if given.reasoning is None
        else {"effort": exchange.effort(given.reasoning)},
        "stream": stream or None,
    }
    body |= {key: value for key, value in optional.items() if value is not None}
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in request.tools
        ]
        choice = given.tool_choice or "auto"
        named = {"type": "function", "name": choice}
        body["tool_choice"] = choice if choice in TOOL_CHOICES else named
        if given.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = given.parallel_tool_calls
    return body | dict(given.extra)


def decode_responses(body: exchange.Body) -> exchange.Reply:
    """The reply in the body of an answer."""
    if body.get("status") == "failed":
        raise _failure(body.get("error") or {})
    items = body["output"]
    calls = tuple(
        exchange.call_request(item["call_id"], item["name"], item.get("arguments") or "")
        for item in items
        if item["type"] == "function_call"
    )
    spoken = [part for item in items if item["type"] == "message" for part in item["content"]]
    return exchange.Reply(
        text="".join(part.get("text") or part.get("refusal") or "" for part in spoken),
        calls=calls,
        stop_reason=_responses_stop_reason(body, calls),
        usage=_usage(body.get("usage") or {}, read="input", written="output"),
        model=body.get("model") or "",
        raw=tuple(items),
    )


def assemble_responses(events: Iterable[exchange.Body]) -> exchange.Body:
    """The body that a stream of events amounts to: its last event carries all of it."""
    for event in events:
        if event.get("type") in ENDED:
            whole: exchange.Body = event["response"]
            return whole
        if event.get("type") == "error":
            raise ModelBusy(f"the stream broke off: {event.get('message')}")
    raise exchange.cut_off("response.completed")


def _items(message: exchange.Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        output = _content(message)
        return [{"type": "function_call_output", "call_id": message.call_id, "output": output}]
    if message.raw:
        return [dict(item) for item in message.raw]
    content = message.text or message.attachments
    text = [{"role": message.role, "content": _content(message)}] if content else []
    return text + [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.sent_text,
        }
        for call in message.calls
    ]


def _content(message: exchange.Message) -> str | list[dict[str, Any]]:
    images = exchange.attachments_of(message, "image", wire="openai-responses")
    if not images:
        return message.text
    parts: list[dict[str, Any]] = [{"type": "input_text", "text": message.text}]
    return parts + [{"type": "input_image", "image_url": image.url} for image in images]


def _responses_stop_reason(body: exchange.Body, calls: tuple[exchange.CallRequest, ...]) -> str:
    if body.get("status") == "incomplete":
        reason = (body.get("incomplete_details") or {}).get("reason") or "incomplete"
        return {"max_output_tokens": "max_tokens", "content_filter": "refused"}.get(reason, reason)
    return "tool_calls" if calls else "done"


def _failure(error: Mapping[str, Any]) -> ModelError:
    text = f"the response failed: {error.get('message') or error.get('code') or 'no reason given'}"
    busy = error.get("code") in ("server_error", "rate_limit_exceeded")
    return ModelBusy(text) if busy else ModelError(text)


OPENAI_RESPONSES = replace(
    OPENAI_CHAT,
    name="openai-responses",
    path="/responses",
    encode=encode_responses,
    decode=decode_responses,
    assemble=assemble_responses,
)
