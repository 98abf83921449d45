"""The names of span attributes, and the conversation in spans: each message once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from passhat.ingest.transcripts.messages import as_text, asked_and_answered, transcript_of
from passhat.records.transcript import Call, Transcript, Turn

MODEL_CALLS = ("chat", "text_completion", "generate_content")
TOOL_CALLS = ("execute_tool",)
SYSTEM_ATTRIBUTES = (
    *("gen_ai.agent.name", "agent.name", "gen_ai.request.model", "llm.model_name", "ai.model.id"),
    "service.name",
)
TOKENS_IN = (
    *("gen_ai.usage.input_tokens", "llm.token_count.prompt", "ai.usage.inputTokens"),
    "ai.usage.promptTokens",
)
TOKENS_OUT = (
    *("gen_ai.usage.output_tokens", "llm.token_count.completion", "ai.usage.outputTokens"),
    "ai.usage.completionTokens",
)
TOOL_NAMES = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name")
"""What OpenTelemetry's GenAI names, OpenInference and Vercel's AI SDK call these."""

WHOLE = ("pydantic_ai.all_messages", "all_messages_events", "gen_ai.conversation.messages")
"""Attributes in which frameworks keep a whole conversation."""

INPUTS = ("gen_ai.input.messages", "gen_ai.prompt", "input.value")
OUTPUTS = ("gen_ai.output.messages", "gen_ai.completion", "output.value")

Attributes = Mapping[str, Any]


def operation(attributes: Mapping[str, Any]) -> str:
    """What a span does, in OpenTelemetry's words."""
    kind = str(attributes.get("openinference.span.kind", "")).upper()
    if kind in ("LLM", "TOOL"):
        return MODEL_CALLS[0] if kind == "LLM" else TOOL_CALLS[0]
    vercel = str(attributes.get("ai.operationId", ""))
    if vercel.endswith((".doGenerate", ".doStream")):
        return MODEL_CALLS[0]
    if vercel == "ai.toolCall":
        return TOOL_CALLS[0]
    return str(attributes.get("gen_ai.operation.name", ""))


def first_of(attributes: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first of some attributes that a span has."""
    return next((attributes[name] for name in names if name in attributes), None)


def spans_transcript(spans: Sequence[Attributes], error: str = "") -> Transcript | None:
    """A conversation out of the attributes of a trial's spans, in the order of time.

    Each call of a model repeats the messages before it: only new ones are taken.
    """
    turns = tuple(_new_turns(spans)) or _whole(spans) or tuple(_tool_turns(spans))
    return Transcript(messages=turns, error=error if turns else "") or None


def _new_turns(spans: Sequence[Attributes]) -> Iterator[Turn]:
    said: tuple[Turn, ...] = ()
    for span in spans:
        given, gave = _find(span, INPUTS), _find(span, OUTPUTS)
        if not span.get("gen_ai.operation.name") or (given is None and gave is None):
            continue
        if said and span["gen_ai.operation.name"] == "invoke_agent":
            continue  # an agent's span sums up the calls that were taken already
        asked = asked_and_answered(given, None)
        yield from asked[len(said) :] if asked[: len(said)] == said else asked
        answered = asked_and_answered(None, gave)
        yield from answered
        said = (*asked, *answered)


def _whole(spans: Sequence[Attributes]) -> tuple[Turn, ...]:
    for span in spans:
        found = transcript_of(_find(span, WHOLE))
        if found is not None and found.messages:
            return found.messages
    return ()


def _tool_turns(spans: Sequence[Attributes]) -> Iterator[Turn]:
    for span in spans:
        arguments = _find(span, ("gen_ai.tool.call.arguments",))
        result = _find(span, ("gen_ai.tool.call.result",))
        if arguments is not None or result is not None:
            name = as_text(span.get("gen_ai.tool.name")) or "a tool"
            call = Call(name=name, arguments=as_text(arguments))
            yield Turn(role="assistant", calls=(call,))
            yield Turn(role="tool", name=name, text=as_text(result))


def _find(span: Attributes, names: Sequence[str]) -> Any:
    return next((_plain(span[name]) for name in names if span.get(name) is not None), None)


def _plain(value: Any) -> Any:
    """OTLP wraps each value inside a list or an object in its type, at every depth."""
    if not isinstance(value, Mapping) or set(value) != {"values"}:
        return value
    entries = value["values"] if isinstance(value["values"], list) else []
    if all(isinstance(entry, Mapping) and "key" in entry for entry in entries) and entries:
        return {str(entry["key"]): _unwrapped(entry.get("value")) for entry in entries}
    return [_unwrapped(entry) for entry in entries]


def _unwrapped(value: Any) -> Any:
    if isinstance(value, Mapping) and len(value) == 1:
        return _plain(next(iter(value.values())))
    return value
