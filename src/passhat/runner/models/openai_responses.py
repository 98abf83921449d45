"""OpenAI Responses without state at the provider: each request has the whole conversation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from passhat.errors import ModelBusy, ModelError
from passhat.records import TokenUsage
from passhat.runner.models.dialect import Body, Dialect, attachments_of, bearer, cut_off, effort
from passhat.runner.models.exchange import CallRequest, Message, Reply, Request, call_request

REASONING_MODEL = re.compile(r"o\d|gpt-[5-9](?!.*chat)")
ENDED = ("response.completed", "response.incomplete", "response.failed")


def encode(model: str, request: Request, stream: bool) -> dict[str, Any]:
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
        "reasoning": None if given.reasoning is None else {"effort": effort(given.reasoning)},
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
        body["tool_choice"] = _tool_choice(given.tool_choice or "auto")
        if given.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = given.parallel_tool_calls
    return body | dict(given.extra)


def decode(body: Body) -> Reply:
    """The reply in the body of an answer."""
    if body.get("status") == "failed":
        raise _failure(body.get("error") or {})
    items = body["output"]
    calls = tuple(_call(item) for item in items if item["type"] == "function_call")
    return Reply(
        text="".join(_text(item) for item in items if item["type"] == "message"),
        calls=calls,
        stop_reason=_stop_reason(body, calls),
        usage=_usage(body.get("usage") or {}),
        model=body.get("model") or "",
        raw=tuple(items),
    )


def assemble(events: Iterable[Body]) -> Body:
    """The body that a stream of events amounts to: its last event carries all of it."""
    for event in events:
        if event.get("type") in ENDED:
            whole: Body = event["response"]
            return whole
        if event.get("type") == "error":
            raise ModelBusy(f"the stream broke off: {event.get('message')}")
    raise cut_off("response.completed")


def _items(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        output = _content(message)
        return [{"type": "function_call_output", "call_id": message.call_id, "output": output}]
    if message.raw:
        return [dict(item) for item in message.raw]
    said = message.text or message.attachments
    text = [{"role": message.role, "content": _content(message)}] if said else []
    return text + [_sent_call(call) for call in message.calls]


def _content(message: Message) -> str | list[dict[str, Any]]:
    images = attachments_of(message, "image", wire="openai-responses")
    if not images:
        return message.text
    parts: list[dict[str, Any]] = [{"type": "input_text", "text": message.text}]
    return parts + [{"type": "input_image", "image_url": image.url} for image in images]


def _sent_call(call: CallRequest) -> dict[str, Any]:
    named = {"type": "function_call", "call_id": call.id, "name": call.name}
    return {**named, "arguments": call.sent_text}


def _call(item: Mapping[str, Any]) -> CallRequest:
    return call_request(item["call_id"], item["name"], item.get("arguments") or "")


def _text(item: Mapping[str, Any]) -> str:
    return "".join(part.get("text") or part.get("refusal") or "" for part in item["content"])


def _stop_reason(body: Body, calls: tuple[CallRequest, ...]) -> str:
    if body.get("status") == "incomplete":
        reason = (body.get("incomplete_details") or {}).get("reason") or "incomplete"
        return {"max_output_tokens": "max_tokens", "content_filter": "refused"}.get(reason, reason)
    return "tool_calls" if calls else "done"


def _failure(error: Mapping[str, Any]) -> ModelError:
    text = f"the response failed: {error.get('message') or error.get('code') or 'no reason given'}"
    busy = error.get("code") in ("server_error", "rate_limit_exceeded")
    return ModelBusy(text) if busy else ModelError(text)


def _tool_choice(word: str) -> str | dict[str, Any]:
    return word if word in ("auto", "required", "none") else {"type": "function", "name": word}


def _usage(usage: Mapping[str, Any]) -> TokenUsage:
    details = usage.get("input_tokens_details") or {}
    return TokenUsage(
        tokens_in=usage.get("input_tokens") or 0,
        tokens_out=usage.get("output_tokens") or 0,
        cached_in=details.get("cached_tokens") or 0,
        cache_written=details.get("cache_write_tokens") or 0,
    )


OPENAI_RESPONSES = Dialect(
    name="openai-responses",
    path="/responses",
    list_path="/models",
    headers=bearer,
    encode=encode,
    decode=decode,
    assemble=assemble,
)
