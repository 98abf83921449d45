"""One attempt by one system at one task."""

from __future__ import annotations

import enum
from typing import Literal

from passhat.dataclass import short_dataclass

Duplicates = Literal["error", "keep", "last"]
ErrorPolicy = Literal["fail", "exclude"]

FEATURES = ("tokens_in", "tokens_out", "tokens", "cost", "seconds", "turns", "tool_calls")
"""What an attempt took, in numbers; `tokens` is the total of logs that do not tell in from out."""


class Outcome(enum.IntEnum):
    """How an attempt ended. An error (infrastructure, grader) is neither a pass nor a failure."""

    FAILED = 0
    PASSED = 1
    ERRORED = 2


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One attempt: who tried what, how it ended, and what it took.

    >>> Trial(system="gpt-5", task="refund", trial=0, outcome=Outcome.PASSED).score
    1.0
    """

    system: str
    task: str
    trial: int
    outcome: Outcome
    score: float | None = None
    seed: int | None = None
    tokens_in: float | None = None
    tokens_out: float | None = None
    tokens: float | None = None
    cost: float | None = None
    seconds: float | None = None
    turns: float | None = None
    tool_calls: float | None = None
    tools: tuple[str, ...] = ()
    level: str | None = None
    tags: tuple[str, ...] = ()
    family: str | None = None
    weight: float | None = None
    error: str | None = None
    started: str | None = None

    def __post_init__(self) -> None:
        if self.score is None and self.outcome is not Outcome.ERRORED:
            object.__setattr__(self, "score", float(self.outcome))
