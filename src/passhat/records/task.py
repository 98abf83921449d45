"""One thing the agent is asked to do, with the way to tell whether it was done."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from passhat.dataclass import dataclass
from passhat.records.budget import Budget

Level = Literal["function", "task", "system"]

_OWN_TARGETS = (
    *("answer", "tool_calls", "tool_names", "tokens", "cost", "seconds", "turns", "stop_reason"),
    *("exit_code", "stderr", "files", "reported", "score", "duration_ms"),
)
_NAMES_OF_ANSWERS = ("final_answer", "final_text", "output", "response", "text")
"""What other tools call the answer."""

TARGETS = {name: name for name in _OWN_TARGETS} | dict.fromkeys(_NAMES_OF_ANSWERS, "answer")
"""The first words of the paths an expectation may check, and what each means."""


def target_root(path: str) -> str:
    """The first word of a path; suites written for other tools put `conversation.` before it.

    >>> target_root("conversation.tool_calls[0].name")
    'tool_calls'
    """
    return re.split(r"[.\[]", path.removeprefix("conversation."), maxsplit=1)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One thing demanded of an observation: a target, a matcher, and the value to match.

    `options` are the matcher's own words (`tolerance` of `number`, `repeats` of `judge`).
    """

    matcher: str
    value: Any = None
    target: str = "answer"
    options: Mapping[str, Any] = field(default_factory=dict)
    weight: float = 1.0
    negate: bool = False
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSelection:
    """The floor under how often the right tool is picked.

    With `bound`, the lower end of the interval must reach `min_selection_rate`, not the point.
    """

    expected_tool: str
    min_selection_rate: float = 1.0
    max_total_tokens: int | None = None
    bound: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a conversation: the next prompt, graded on its own."""

    name: str
    prompt: str
    expect: tuple[Expectation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPrompt:
    """A prompt that an MCP server has; `server` None means the first server that has it."""

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    server: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerResource:
    """A resource of an MCP server; `server` None means the first server that has it."""

    uri: str
    server: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is asked, what is expected, and what the task may take.

    A task has a `prompt`, a `server_prompt` or `steps`; the text of `resources` comes before the
    prompt. `expected_tool` is the one that a good run calls. `values` are the columns of the
    dataset row that the task came from. None in `timeout` (seconds), `max_turns` or
    `system_prompt` leaves it to the system.
    """

    name: str
    prompt: str = ""
    expect: tuple[Expectation, ...] = ()
    steps: tuple[Step, ...] = ()
    pass_score: float = 1.0
    bar: float | None = None
    level: Level | None = None
    family: str | None = None
    weight: float | None = None
    tags: tuple[str, ...] = ()
    timeout: float | None = None
    max_turns: int | None = None
    system_prompt: str | None = None
    tool_selection: ToolSelection | None = None
    budget: Budget = field(default_factory=Budget)
    values: Mapping[str, Any] = field(default_factory=dict)
    images: tuple[Path, ...] = ()
    expected_tool: str | None = None
    server_prompt: ServerPrompt | None = None
    resources: tuple[ServerResource, ...] = ()

    def expectations(self) -> Iterator[Expectation]:
        """What is expected of the task and of each of its steps."""
        yield from self.expect
        for step in self.steps:
            yield from step.expect

    @property
    def right_tool(self) -> str | None:
        """The tool that the task says is right: itself, by its floor, or by its expectations."""
        if self.expected_tool is not None:
            return self.expected_tool
        if self.tool_selection is not None:
            return self.tool_selection.expected_tool
        called = {
            str(one.value)
            for one in self.expect
            if one.matcher in ("called", "called_with") and not one.negate
        }
        return called.pop() if len(called) == 1 else None
