"""The Converse API of Amazon Bedrock, with a Bedrock API key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from passhat.records import ModelParameters, TokenUsage
from passhat.runner.models.dialect import Body, Dialect
from passhat.runner.models.exchange import Message, Reply, Request, call_request

STOP_REASONS = {
    "end_turn": "done",
    "stop_sequence": "done",
    "tool_use": "tool_calls",
    "max_tokens": "max_tokens",
    "guardrail_intervened": "refused",
    "content_filtered": "refused",
}


def encode(model: str, request: Request, stream: bool) -> dict[str, Any]:
    """The body of a request; the model stands in the address."""
    given = request.parameters
    limits = {
        "maxTokens": given.max_tokens,
        "temperature": given.temperature,
        "topP": given.top_p,
        "stopSequences": list(given.stop) or None,
    }
    body: dict[str, Any] = {"messages": _conversation(request.messages)}
    if request.system:
        body["system"] = [{"text": request.system}]
    if config := {key: value for key, value in limits.items() if value is not None}:
        body["inferenceConfig"] = config
    if request.tools and given.tool_choice != "none":
        body["toolConfig"] = {
            "tools": [
                {
                    "toolSpec": {
                        "name": tool.name,
                        "description": tool.description or tool.name,
                        "inputSchema": {"json": tool.parameters},
                    }
                }
                for tool in request.tools
            ],
            "toolChoice": _tool_choice(given),
        }
    return body | dict(given.extra)


def decode(body: Body) -> Reply:
    """The reply in the body of an answer."""
    blocks = body["output"]["message"]["content"]
    usage = body.get("usage") or {}
    reason = str(body.get("stopReason"))
    used = [block["toolUse"] for block in blocks if "toolUse" in block]
    return Reply(
        text="".join(block["text"] for block in blocks if "text" in block),
        calls=tuple(call_request(u["toolUseId"], u["name"], u.get("input") or {}) for u in used),
        stop_reason=STOP_REASONS.get(reason, reason),
        usage=_usage(usage),
        raw=tuple(blocks),
    )


def assemble(events: Iterable[Body]) -> Body:
    """The body of the one event: Bedrock streams in a binary format, and is asked for all."""
    return next(iter(events))


def _conversation(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    """The messages, with neighbours of one role joined: tool results form one user turn."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += _blocks(message)
        else:
            turns.append({"role": role, "content": _blocks(message)})
    return turns


def _blocks(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        status = "error" if message.is_error else "success"
        content: list[dict[str, Any]] = [{"text": message.text or " "}, *_images(message)]
        result = {"toolUseId": message.call_id, "content": content, "status": status}
        return [{"toolResult": result}]
    if message.raw:
        return [dict(block) for block in message.raw]
    text: list[dict[str, Any]] = [{"text": message.text}] if message.text else []
    return [*text, *_images(message)] + [
        {"toolUse": {"toolUseId": call.id, "name": call.name, "input": dict(call.arguments)}}
        for call in message.calls
    ]


def _images(message: Message) -> list[dict[str, Any]]:
    return [
        {"image": {"format": each.format, "source": {"bytes": each.data}}}
        for each in message.attachments
        if each.kind == "image"
    ]


def _tool_choice(given: ModelParameters) -> dict[str, Any]:
    word = given.tool_choice or "auto"
    known: dict[str, dict[str, Any]] = {"auto": {"auto": {}}, "required": {"any": {}}}
    return known.get(word, {"tool": {"name": word}})


def _usage(usage: Mapping[str, Any]) -> TokenUsage:
    # inputTokens leaves out what was read from or written to the cache.
    read = usage.get("cacheReadInputTokens") or 0
    written = usage.get("cacheWriteInputTokens") or 0
    return TokenUsage(
        tokens_in=(usage.get("inputTokens") or 0) + read + written,
        tokens_out=usage.get("outputTokens") or 0,
        cached_in=read,
        cache_written=written,
    )


def _headers(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


BEDROCK = Dialect(
    name="bedrock-converse",
    path="/model/{model}/converse",
    list_path="/foundation-models",
    headers=_headers,
    encode=encode,
    decode=decode,
    assemble=assemble,
    streams=False,
)
