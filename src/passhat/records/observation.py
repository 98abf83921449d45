"""What was seen of one attempt, before and after it is graded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from passhat.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool: what was asked, and what came back.

    `arguments` is what the model sent, parsed if it was an object; `result` is the text that
    the model saw. `error` is the tool's or the server's message when the call failed.
    """

    name: str
    arguments: Any = field(default_factory=dict)
    result: Any = None
    error: str | None = None
    server: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """Tokens of one attempt. `cached_in` of the tokens that went in were read from a cache.

    >>> TokenUsage(tokens_in=1200, tokens_out=80, cached_in=1000).total
    1280
    """

    tokens_in: int = 0
    tokens_out: int = 0
    cached_in: int = 0
    cache_written: int = 0

    @property
    def total(self) -> int:
        return self.tokens_in + self.tokens_out

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            cached_in=self.cached_in + other.cached_in,
            cache_written=self.cache_written + other.cache_written,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything a grader may look at: the answer, the tool calls, and what the attempt took.

    `stop_reason` is `done`, `max_turns`, `max_tokens`, `budget`, `exit` (a command) or the model's
    own. `files` is the directory the attempt worked in; `reported` is what the system reported (the
    JSON line of a command, the body of an HTTP answer, the value of a function). `messages` is the
    conversation as the system reported it; `error` is what went wrong by its own account, so that
    the attempt is neither a pass nor a failure.
    """

    answer: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage | None = None
    cost: float | None = None
    seconds: float | None = None
    turns: int = 0
    stop_reason: str = "done"
    exit_code: int | None = None
    stderr: str = ""
    files: Path | None = None
    reported: Mapping[str, Any] = field(default_factory=dict)
    score: float | None = None
    messages: tuple[Mapping[str, Any], ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one expectation: its share of the credit, and a sentence that says why."""

    target: str
    matcher: str
    score: float
    weight: float
    message: str
    disagreement: float | None = None

    @property
    def passed(self) -> bool:
        return self.score >= 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What the graders say of one attempt."""

    score: float
    passed: bool
    details: tuple[CheckResult, ...] = ()
