"""Faults injected where real ones occur: in models and tools."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from passhat.errors import ModelBusy, ServerError
from passhat.records import Fault, ToolCall
from passhat.runner.models.exchange import ChatModel, Reply, Request, ToolSpec
from passhat.runner.tools import ToolRequest, ToolResult, Tools

DEFAULT_LATENCY = 2.0
MALFORMED = '{"result": "ok", "value": 4'
WRONG_SCHEMA = '{"unexpected": [null, {"status": 418}]}'

Reaction = Literal["retried", "other tool", "gave up", "looped", "made up a result"]

LOOP = 3
"""Calls of the same tool after its fault that count as a loop, not as a retry."""

ADMISSIONS = (
    "unable", "cannot", "can't", "could not", "couldn't", "error", "fail", "sorry",
    "unavailable", "try again", "timed out", "not able", "problem",
)  # fmt: skip
"""Words of an answer that admits a failure; without any of them the agent made something up."""


class FaultyModel:
    """A model some of whose requests fail: seeded, so that a trial fails the same way again.

    Each trial has its own instance, because it counts the calls.
    """

    def __init__(self, model: ChatModel, faults: Sequence[Fault], *, seed: int) -> None:
        self._model = model
        self._dice = _Dice(faults, seed=seed)

    async def complete(self, request: Request, /) -> Reply:
        fault = self._dice.roll(None)
        if fault is None:
            return await self._model.complete(request)
        if fault.kind == "rate_limit":
            raise ModelBusy(fault.message or "429 rate limited on purpose", retry_after=0.0)
        if fault.kind == "timeout":
            raise ModelBusy(fault.message or "no answer, on purpose")
        if fault.kind == "latency":
            await asyncio.sleep(_seconds(fault))
            reply = await self._model.complete(request)
        else:
            reply = _truncated(await self._model.complete(request))
        return replace(reply, faults=(fault.kind,))


class FaultyTools:
    """Tools some of whose calls fail. Each trial has its own instance."""

    def __init__(self, tools: Tools, faults: Mapping[str, Sequence[Fault]], *, seed: int) -> None:
        self._tools = tools
        self._dice = {
            server: _Dice(given, seed=seed, salt=server) for server, given in faults.items()
        }

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._tools.specs

    async def call(self, request: ToolRequest, /) -> ToolResult:
        for server, dice in self._dice.items():
            if (fault := dice.roll(request.name)) is not None:
                return await self._break(request, fault, server)
        return await self._tools.call(request)

    async def _break(self, request: ToolRequest, fault: Fault, server: str) -> ToolResult:
        match fault.kind:
            case "latency":
                await asyncio.sleep(_seconds(fault))
                return replace(await self._tools.call(request), fault=fault.kind)
            case "server_crash":
                raise ServerError(fault.message or f'server "{server}" crashed, on purpose')
            case "timeout":
                text = fault.message or f"{request.name} timed out"
                return ToolResult(text=text, is_error=True, server=server, fault=fault.kind)
            case "malformed_result":
                text = fault.message or MALFORMED
            case "wrong_schema":
                text = fault.message or WRONG_SCHEMA
            case "empty_result":
                text = ""
            case _:
                text = fault.message or f"{request.name} failed: internal error"
                return ToolResult(text=text, is_error=True, server=server, fault=fault.kind)
        return ToolResult(text=text, server=server, fault=fault.kind)


def reaction(calls: Sequence[ToolCall], broken: int, answer: str) -> Reaction:
    """What an agent did after call number `broken` failed.

    >>> failed = ToolCall(name="search", error="down")
    >>> reaction([failed, ToolCall(name="search", result="42")], 0, "42")
    'retried'
    >>> reaction([failed], 0, "The answer is 42.")
    'made up a result'
    """
    after = calls[broken + 1 :]
    same = [call for call in after if call.name == calls[broken].name]
    if len(same) >= LOOP:
        return "looped"
    if same:
        return "retried"
    if after:
        return "other tool"
    return "gave up" if _admits(answer) else "made up a result"


def _admits(answer: str) -> bool:
    text = answer.lower()
    return not text.strip() or any(word in text for word in ADMISSIONS)


class _Dice:
    """Decides for each call which fault happens; the chances depend only on the seed."""

    def __init__(self, faults: Sequence[Fault], *, seed: int, salt: str = "") -> None:
        self._faults = faults
        self._rng = random.Random(f"{seed}\x1ffaults\x1f{salt}")  # noqa: S311 - faults are seeded
        self._seen = [0] * len(faults)

    def roll(self, tool: str | None) -> Fault | None:
        struck: Fault | None = None
        for index, fault in enumerate(self._faults):
            if fault.tool is not None and fault.tool != tool:
                continue
            self._seen[index] += 1
            # Every fault draws at every call, so that none changes the draws of another.
            chance = self._rng.random()
            hit = (
                self._seen[index] == fault.nth
                if fault.nth is not None
                else chance < (1.0 if fault.probability is None else fault.probability)
            )
            struck = fault if hit and struck is None else struck
        return struck


def _seconds(fault: Fault) -> float:
    return DEFAULT_LATENCY if fault.seconds is None else fault.seconds


def _truncated(reply: Reply) -> Reply:
    """A reply that stops in the middle; a tool call keeps half of its arguments."""
    import msgspec

    calls = tuple(
        replace(call, arguments={}, broken=_half(msgspec.json.encode(call.arguments).decode()))
        for call in reply.calls
    )
    raw: tuple[Mapping[str, Any], ...] = ()
    return replace(reply, text=_half(reply.text), calls=calls, raw=raw, stop_reason="max_tokens")


def _half(text: str) -> str:
    return text[: len(text) // 2]
