"""The interface between an agent and its tools."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Protocol

import msgspec

from passhat.dataclass import dataclass
from passhat.records.ledger import CallKey
from passhat.runner.models.exchange import Attachment, ToolSpec

READ_RESOURCE, GET_PROMPT = "resources/read", "prompts/get"
"""Requests that passhat makes itself, by their names in MCP. They are handled as tool calls, so
that they are recorded and resumed in the same way; models may not make them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest:
    """One call of a tool."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    place: CallKey = CallKey()

    def fingerprint(self, clean: Callable[[str], str] = str) -> str:
        """A hash of what is asked; `clean` takes secrets out."""
        text = clean(msgspec.json.encode((self.name, self.arguments), order="sorted").decode())
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a tool call, as the model sees it; `fault` names an injected fault."""

    text: str = ""
    is_error: bool = False
    server: str = ""
    seconds: float = 0.0
    fault: str | None = None
    attachments: tuple[Attachment, ...] = ()


class Tools(Protocol):
    """Tools that can be called: of MCP servers, of a recording, or none at all."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]: ...

    async def call(self, request: ToolRequest, /) -> ToolResult: ...


class NoTools:
    """The tools of an agent that has none."""

    specs: tuple[ToolSpec, ...] = ()

    async def call(self, request: ToolRequest, /) -> ToolResult:
        return unknown_tool(request.name, self.specs)


def unknown_tool(name: str, specs: tuple[ToolSpec, ...]) -> ToolResult:
    """The result of a call to a tool that does not exist.

    >>> unknown_tool("fly", (ToolSpec(name="walk"),)).text
    "There is no tool 'fly'. Tools: walk"
    """
    known = ", ".join(spec.name for spec in specs) or "none"
    return ToolResult(text=f"There is no tool {name!r}. Tools: {known}", is_error=True)
