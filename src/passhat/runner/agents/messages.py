"""Messages, tool calls and token counts of other tools, in the form that passhat keeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import msgspec

from passhat.records import TokenUsage, ToolCall

ROLES = {
    "human": "user",
    "ai": "assistant",
    "model": "assistant",
    "function": "tool",
    "developer": "system",
    "AIMessageChunk": "assistant",
}
"""The roles that have another name elsewhere."""

TEXT_BLOCKS = frozenset({"text", "input_text", "output_text", "refusal"})
MOST_MESSAGES = 1000
MOST_TEXT = 20_000
TOO_MUCH = 1e18
"""Amounts of an attempt are smaller: a store holds whole numbers of 64 bits."""

TOKENS_IN = ("tokens_in", "input_tokens", "prompt_tokens", "prompt_token_count", "request_tokens")
TOKENS_OUT = (
    "tokens_out",
    "output_tokens",
    "completion_tokens",
    "candidates_token_count",
    "response_tokens",
)
CACHED = ("cached_in", "cache_read_input_tokens", "cache_read_tokens", "cached_input_tokens")
CACHE_WRITTEN = ("cache_written", "cache_creation_input_tokens", "cache_write_tokens")


def fields_of(value: object) -> Mapping[str, Any]:
    """What is in an object by name: a mapping, a pydantic model, a dataclass, or anything else.

    >>> fields_of({"a": 1}), fields_of(3)
    ({'a': 1}, {})
    """
    if isinstance(value, Mapping):
        return value
    if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
        dumped = dump()
        return dumped if isinstance(dumped, Mapping) else {}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return getattr(value, "__dict__", {})


def plain_messages(value: object) -> tuple[dict[str, Any], ...]:
    """A list of messages in the form of a transcript, from the format of any provider.

    >>> plain_messages([{"type": "human", "content": [{"type": "text", "text": "Hi"}]}])
    ({'role': 'user', 'text': 'Hi'},)
    """
    return tuple(turn for each in _list(value)[:MOST_MESSAGES] for turn in _turns(fields_of(each)))


def plain_calls(value: object) -> tuple[ToolCall, ...]:
    """Tool calls in any of the usual shapes.

    >>> call = {"function": {"name": "add", "arguments": '{"a": 1}'}, "type": "function"}
    >>> plain_calls([call])[0].arguments
    {'a': 1}
    """
    return tuple(call for each in _list(value) if (call := _call(each)) is not None)


def calls_in(messages: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    """The tool calls in a transcript, with their results if it has them."""
    results = {m["call_id"]: m for m in messages if m["role"] == "tool" and m.get("call_id")}
    return tuple(
        _with_result(call, results.get(call.get("id")))
        for message in messages
        for call in message.get("calls", ())
    )


def last_words(messages: Sequence[Mapping[str, Any]]) -> str:
    """What the agent said last."""
    spoken = (m["text"] for m in reversed(messages) if m["role"] == "assistant" and m.get("text"))
    return next(spoken, "")


def token_usage(value: object) -> TokenUsage | None:
    """Token counts under any of their usual names; None if there are none.

    >>> token_usage({"prompt_tokens": 30, "completion_tokens": 4})
    TokenUsage(tokens_in=30, tokens_out=4, cached_in=0, cache_written=0)
    """
    found = fields_of(value)
    spent_in, spent_out = _count(found, TOKENS_IN), _count(found, TOKENS_OUT)
    if spent_in is None and spent_out is None:
        return None
    read, written = _count(found, CACHED) or 0, _count(found, CACHE_WRITTEN) or 0
    if "cache_read_input_tokens" in found:
        # Anthropic's input_tokens leaves out what was read from or written to the cache.
        spent_in = (spent_in or 0) + read + written
    return TokenUsage(
        tokens_in=spent_in or 0, tokens_out=spent_out or 0, cached_in=read, cache_written=written
    )


def usage_in(value: object) -> TokenUsage | None:
    """The token counts that messages carry themselves, added up."""
    messages = map(fields_of, _list(value))
    return total_usage(m.get("usage_metadata") or m.get("usage") or {} for m in messages)


def is_amount(value: object) -> TypeGuard[float]:
    """Whether it can be a count of tokens, a cost or a time.

    >>> [is_amount(value) for value in (5, 0.5, -1, True, 10**18, float("nan"))]
    [True, True, False, False, False, False]
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value < TOO_MUCH


def total_usage(values: Iterable[object]) -> TokenUsage | None:
    """Several token counts added up; None if there are none.

    >>> total_usage([{"input_tokens": 3}, {}, {"input_tokens": 4, "output_tokens": 1}]).total
    8
    """
    found = [usage for usage in map(token_usage, values) if usage is not None]
    return sum(found[1:], found[0]) if found else None


def _turns(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One message as one turn, or as several: Anthropic puts tool results into a user's turn."""
    kind = str(message.get("type", ""))
    if kind == "function_call":
        yield {"role": "assistant", "calls": [_plain_call(message)]}
        return
    if kind == "function_call_output":
        yield _result_turn(message.get("output"), message.get("call_id"))
        return
    role = str(message.get("role") or kind or "unknown")
    content = message.get("content", message.get("text", message.get("parts", "")))
    if not isinstance(content, list | tuple):
        content = ["" if content is None else str(content)]
    found = [{"text": b} if isinstance(b, str) else fields_of(b) for b in content]
    results = [b for b in found if b.get("type") == "tool_result"]
    yield from (_result_turn(b.get("content"), b.get("tool_use_id"), b) for b in results)
    turn: dict[str, Any] = {"role": ROLES.get(role, role)}
    if text := "\n".join(str(b.get("text", "")) for b in found if _is_text(b))[:MOST_TEXT]:
        turn["text"] = text
    calls = [b for b in found if b.get("type") in ("tool_use", "tool_call", "toolCall")]
    calls += _list(message.get("tool_calls") or message.get("calls"))
    if plain := [_plain_call(fields_of(call)) for call in calls]:
        turn["calls"] = plain
    if message.get("tool_call_id"):
        turn["call_id"] = str(message["tool_call_id"])
    if turn["role"] == "tool" and message.get("name"):
        turn["name"] = str(message["name"])
    if message.get("is_error") or message.get("status") == "error":
        turn["is_error"] = True
    if len(turn) > 1 or not results:
        yield turn


def _list(value: object) -> list[Any]:
    """The value as a list; empty if it is none, for agents report anything."""
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else []


def _is_text(block: Mapping[str, Any]) -> bool:
    return str(block.get("type", "text")) in TEXT_BLOCKS


def _result_turn(
    content: object, call_id: object, block: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    inner = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    text = "\n".join(str(fields_of(part).get("text", "")) for part in inner)
    turn = {"role": "tool", "text": text[:MOST_TEXT], "call_id": str(call_id or "")}
    return turn | ({"is_error": True} if block and block.get("is_error") else {})


def _plain_call(call: Mapping[str, Any]) -> dict[str, Any]:
    found = _call(call)
    plain = {"name": found.name, "arguments": found.arguments} if found else {"name": "unknown"}
    call_id = call.get("id") or call.get("call_id") or call.get("tool_call_id")
    return plain | ({"id": str(call_id)} if call_id else {})


def _with_result(call: Mapping[str, Any], result: Mapping[str, Any] | None) -> ToolCall:
    text = None if result is None else result.get("text", "")
    failed = result is not None and result.get("is_error")
    return ToolCall(
        name=call["name"],
        arguments=call.get("arguments", {}),
        result=text,
        error=text if failed else None,
    )


def _call(value: object) -> ToolCall | None:
    if isinstance(value, str):
        return ToolCall(name=value)
    given = fields_of(value)
    if isinstance(function := given.get("function"), Mapping):
        given = {**given, **function}
    name = given.get("name") or given.get("tool_name") or given.get("tool")
    if not isinstance(name, str):
        return None
    keys = ("arguments", "args", "input", "parameters", "tool_kwargs", "tool_args")
    arguments: object = next((given[key] for key in keys if given.get(key) is not None), {})
    return ToolCall(
        name=name,
        arguments=_parsed(arguments),
        result=given.get("result"),
        error=given.get("error"),
        seconds=given.get("seconds"),
    )


def _parsed(arguments: object) -> object:
    if not isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return arguments


def _count(found: Mapping[str, Any], names: Sequence[str]) -> int | None:
    return next((int(v) for name in names if is_amount(v := found.get(name))), None)
