"""OpenAI Chat Completions, which most other servers offer too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from passhat.errors import ModelBusy
from passhat.records import TokenUsage
from passhat.runner.models.dialect import Body, Dialect, attachments_of, bearer, cut_off, effort
from passhat.runner.models.exchange import (
    CallRequest,
    Message,
    Reply,
    Request,
    ToolSpec,
    call_request,
)

STOP_REASONS = {
    "stop": "done",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "max_tokens",
    "content_filter": "refused",
}


def encode(model: str, request: Request, stream: bool) -> dict[str, Any]:
    """The body of a request."""
    given = request.parameters
    body: dict[str, Any] = {"model": model, "messages": _conversation(request)}
    optional = {
        "temperature": given.temperature,
        "top_p": given.top_p,
        "seed": given.seed,
        # OpenAI's reasoning models refuse max_tokens; other servers know only that.
        "max_completion_tokens" if _from_openai(model) else "max_tokens": given.max_tokens,
        "stop": list(given.stop) or None,
        "reasoning_effort": None if given.reasoning is None else effort(given.reasoning),
    }
    body |= {key: value for key, value in optional.items() if value is not None}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["tool_choice"] = _tool_choice(given.tool_choice or "auto")
        if given.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = given.parallel_tool_calls
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body | dict(given.extra)


def decode(body: Body) -> Reply:
    """The reply in the body of an answer."""
    choice = body["choices"][0]
    message = choice["message"]
    calls = tuple(_call(index, call) for index, call in enumerate(message.get("tool_calls") or ()))
    reason = choice.get("finish_reason")
    return Reply(
        text=_text(message.get("content")) or message.get("refusal") or _transcript(message),
        calls=calls,
        stop_reason="tool_calls" if calls and reason == "stop" else _stop_reason(reason),
        usage=_usage(body.get("usage") or {}),
        model=body.get("model") or "",
    )


def _text(content: Any) -> Any:
    """The text of a message; some servers send a list of parts, with thinking among them."""
    if not isinstance(content, list):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")


def _transcript(message: Mapping[str, Any]) -> str:
    """What a model said that answers in audio."""
    return (message.get("audio") or {}).get("transcript") or ""


def assemble(events: Iterable[Body]) -> Body:
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
                _extend(calls.setdefault(part.get("index", len(calls)), {}), part)
            reason = choice.get("finish_reason") or reason
    if reason is None:
        raise cut_off("finish_reason")
    message = {
        "content": "".join(text),
        "refusal": "".join(refusal),
        "tool_calls": [calls[index] for index in sorted(calls)],
    }
    return {**whole, "choices": [{"message": message, "finish_reason": reason}]}


def _extend(call: dict[str, Any], part: Mapping[str, Any]) -> None:
    if part.get("id"):
        call["id"] = part["id"]
    function = call.setdefault("function", {"name": "", "arguments": ""})
    given = part.get("function") or {}
    function["name"] += given.get("name") or ""
    function["arguments"] += given.get("arguments") or ""


def _conversation(request: Request) -> list[dict[str, Any]]:
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


def _parts(message: Message) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    for each in attachments_of(message, "image", "audio", wire="openai-chat"):
        if each.kind == "image":
            parts.append({"type": "image_url", "image_url": {"url": each.url}})
        else:
            sound = {"data": each.data, "format": each.format}
            parts.append({"type": "input_audio", "input_audio": sound})
    return parts


def _turn(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
    turn: dict[str, Any] = {"role": message.role, "content": message.text}
    if parts := _parts(message):
        turn["content"] = [{"type": "text", "text": message.text}, *parts]
    if message.calls:
        turn["content"] = message.text or None
        turn["tool_calls"] = [_sent_call(call) for call in message.calls]
    return turn


def _sent_call(call: CallRequest) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.sent_text}
    return {"id": call.id, "type": "function", "function": function}


def _call(index: int, call: Mapping[str, Any]) -> CallRequest:
    function = call["function"]
    # Some servers leave the id out; a stable one keeps the request the same when it is replayed.
    arguments = function.get("arguments")
    return call_request(
        call.get("id") or f"call_{index}", function["name"], "" if arguments is None else arguments
    )


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    return {"type": "function", "function": function}


def _stop_reason(reason: Any) -> str:
    return STOP_REASONS.get(reason, str(reason))


def _tool_choice(word: str) -> str | dict[str, Any]:
    if word in ("auto", "required", "none"):
        return word
    return {"type": "function", "function": {"name": word}}


def _from_openai(model: str) -> bool:
    return model.startswith(("gpt-", "o1", "o3", "o4", "chatgpt"))


def _usage(usage: Mapping[str, Any]) -> TokenUsage:
    details = usage.get("prompt_tokens_details") or {}
    return TokenUsage(
        tokens_in=usage.get("prompt_tokens") or 0,
        tokens_out=usage.get("completion_tokens") or 0,
        cached_in=details.get("cached_tokens") or 0,
        cache_written=details.get("cache_write_tokens") or 0,
    )


def _error_text(error: Any) -> str:
    return str(error.get("message", error)) if isinstance(error, Mapping) else str(error)


OPENAI_CHAT = Dialect(
    name="openai-chat",
    path="/chat/completions",
    list_path="/models",
    headers=bearer,
    encode=encode,
    decode=decode,
    assemble=assemble,
)
