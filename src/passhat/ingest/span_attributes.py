"""What spans call things: OpenTelemetry's GenAI names, OpenInference's, Vercel's AI SDK's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

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


def operation(attributes: Mapping[str, Any]) -> str:
    """What a span does, in OpenTelemetry's words, whoever wrote it."""
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
