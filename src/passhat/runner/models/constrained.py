"""Tool calls by a grammar, for models that are too small to make them without help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from passhat.runner.models.exchange import CallRequest, ChatModel, Message, Reply, Request, ToolSpec

CONSTRAINED = "constrained"
INSTRUCTIONS = """\
You can use these tools:
{tools}
Answer with the JSON of one tool call: {{"tool": NAME, "arguments": {{...}}}}"""


class Constrained:
    """Makes a model follow the JSON schema of its tools until it has called one.

    The tools are described in the system prompt, and the schema goes out as `response_format`,
    which llama.cpp, vLLM and OpenAI enforce token by token.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    async def complete(self, request: Request, /) -> Reply:
        if not request.tools:
            return await self._model.complete(_unconstrained(request))
        called = any(message.role == "tool" for message in request.messages)
        if called:
            return await self._model.complete(_unconstrained(_in_words(request)))
        reply = await self._model.complete(_constrained(request))
        return _with_call(reply, step=request.place.step)


def call_schema(tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The JSON schema of a call of one of the tools.

    >>> call_schema([ToolSpec(name="add")])["properties"]["tool"]
    {'const': 'add'}
    """
    forms = [
        {
            "type": "object",
            "properties": {"tool": {"const": tool.name}, "arguments": _closed(tool)},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for tool in tools
    ]
    return forms[0] if len(forms) == 1 else {"anyOf": forms}


def _closed(tool: ToolSpec) -> dict[str, Any]:
    """The parameters of a tool; others are not allowed."""
    return {"properties": {}, **tool.parameters, "additionalProperties": False}


def _constrained(request: Request) -> Request:
    schema = {"name": "tool_call", "strict": True, "schema": call_schema(request.tools)}
    given = request.parameters
    extra = {**given.extra, "response_format": {"type": "json_schema", "json_schema": schema}}
    tools = "\n".join(_line(tool) for tool in request.tools)
    instructions = INSTRUCTIONS.format(tools=tools)
    return replace(
        request,
        system=f"{request.system}\n\n{instructions}" if request.system else instructions,
        tools=(),
        parameters=replace(given, extra=extra, tool_choice=None),
    )


def _unconstrained(request: Request) -> Request:
    return replace(request, tools=(), parameters=replace(request.parameters, tool_choice=None))


def _in_words(request: Request) -> Request:
    """The conversation with tool calls written as text, for templates that have no tools."""
    return replace(request, messages=tuple(_spoken(message) for message in request.messages))


def _spoken(message: Message) -> Message:
    if message.role == "tool":
        return Message(role="user", text=f"The tool answered: {message.text}")
    if message.calls:
        return Message(role="assistant", text=_call_text(message.calls[0]))
    return message


def _call_text(call: CallRequest) -> str:
    return msgspec.json.encode({"tool": call.name, "arguments": call.arguments}).decode()


def _with_call(reply: Reply, *, step: int) -> Reply:
    """The reply with its text read as a call, if it is one."""
    try:
        said = msgspec.json.decode(reply.text, type=dict[str, Any])
        call = CallRequest(id=f"call_{step}", name=said["tool"], arguments=said["arguments"])
    except (msgspec.DecodeError, KeyError):
        return reply
    return replace(reply, text="", calls=(call,), stop_reason="tool_calls")


def _line(tool: ToolSpec) -> str:
    names = ", ".join(tool.parameters.get("properties", {}))
    return f"- {tool.name}({names}): {tool.description}"
