"""Storing and replaying answers: of models, of agents and of tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, Protocol

import msgspec

from passhat.records import Observation, Trial
from passhat.records.ledger import Amount, Answer, CallKey
from passhat.records.redaction import Redactor
from passhat.runner.agents.attempt_request import Agent, AttemptRequest
from passhat.runner.journal import Scribe
from passhat.runner.models.exchange import ChatModel, Reply, Request, ToolSpec
from passhat.runner.tools import ToolRequest, ToolResult, Tools

Kind = Literal["model", "tool", "agent"]

JUDGE_STEP = 1_000_000
"""The step of a trial's first exchange with its judge."""

NOTHING_SECRET = Redactor({})
"""Knows no secret value, but still the shapes of keys."""

_UNSORTED = msgspec.json.Encoder(enc_hook=str)
_SORTED = msgspec.json.Encoder(order="sorted", enc_hook=str)
_reply = msgspec.json.Decoder(Reply).decode
_result = msgspec.json.Decoder(ToolResult).decode
_observation = msgspec.json.Decoder(Observation, dec_hook=lambda kind, text: kind(text)).decode


def json_bytes(value: Any, *, encoder: msgspec.json.Encoder = _UNSORTED) -> bytes:
    r"""A value as JSON; half a character, which no file can hold, becomes a question mark.

    >>> json_bytes({"answer": "cut \ud83d"})
    b'{"answer": "cut ?"}'
    """
    try:
        return encoder.encode(value)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, order="sorted", str_keys=True, enc_hook=str)
        return json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace")


_sorted_json = partial(json_bytes, encoder=_SORTED)


class Memory(Protocol):
    """The exchanges of a trial by their place, in the journal of a run or in a cassette.

    `clean` takes secrets out of JSON text: exchanges are compared and kept without them.
    """

    @property
    def clean(self) -> Callable[[str], str]: ...

    def recall(self, kind: Kind, place: CallKey, fingerprint: str, /) -> bytes | None: ...

    async def keep(self, kind: Kind, place: CallKey, fingerprint: str, reply: bytes, /) -> None: ...


class Cassettes:
    """The recordings that a run uses; in this form, none."""

    replaying = False
    """Whether all answers come from recordings."""

    def holds(self, request: AttemptRequest, /) -> bool:
        """Whether a trial is answered from a recording."""
        return False

    def memory(self, request: AttemptRequest, /) -> Memory | None:
        """Where the exchanges of a trial are recorded, or come from."""
        return None

    def tools(self, request: AttemptRequest, /) -> Tools | None:
        """The tools of a trial whose results are recorded."""
        return None

    def note_tools(self, system: str, specs: tuple[ToolSpec, ...], /) -> None:
        """Called with the tools that a system has."""

    def ending(self, request: AttemptRequest, /) -> Mapping[str, Any] | None:
        """How a recorded trial ended: `seed`, `seconds`, and `error` or `stop_reason`."""
        return None

    def finished(self, request: AttemptRequest, trial: Trial, stop_reason: str, /) -> None:
        """Called when a trial is over and has a row."""


class RememberingModel:
    """A model whose answers are kept before anything else sees them, and recalled when known."""

    def __init__(self, model: ChatModel, memory: Memory) -> None:
        self._model = model
        self._memory = memory

    async def complete(self, request: Request, /) -> Reply:
        fingerprint = request.fingerprint(self._memory.clean)
        known = self._memory.recall("model", request.place, fingerprint)
        if known is not None:
            return _reply(known)
        reply = await self._model.complete(request)
        await self._memory.keep("model", request.place, fingerprint, _sorted_json(reply))
        return reply


class RememberingTools:
    """Tools whose results are kept and recalled.

    Where `rebuild` says so, a recalled call is made anyway and its result dropped: a server that
    was started anew has to get into the state of the one before it.
    """

    def __init__(
        self, tools: Tools, memory: Memory, *, rebuild: Callable[[str], bool] | None = None
    ) -> None:
        self._tools = tools
        self._memory = memory
        self._rebuild = rebuild

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._tools.specs

    async def call(self, request: ToolRequest, /) -> ToolResult:
        fingerprint = request.fingerprint(self._memory.clean)
        known = self._memory.recall("tool", request.place, fingerprint)
        if known is not None:
            if self._rebuild is not None and self._rebuild(request.name):
                await self._tools.call(request)
            return _result(known)
        result = await self._tools.call(request)
        await self._memory.keep("tool", request.place, fingerprint, _sorted_json(result))
        return result


class RememberingAgent:
    """An agent whose whole attempt is kept and recalled as one exchange."""

    def __init__(self, agent: Agent, memory: Memory) -> None:
        self._agent = agent
        self._memory = memory

    async def attempt(self, request: AttemptRequest, /) -> Observation:
        fingerprint = request.fingerprint(self._memory.clean)
        known = self._memory.recall("agent", request.place, fingerprint)
        if known is not None:
            return _observation(known)
        seen = await self._agent.attempt(request)
        await self._memory.keep("agent", request.place, fingerprint, _sorted_json(seen))
        return seen


class JournalMemory:
    """The answers of one trial: those of an interrupted run, and new ones as they come."""

    def __init__(
        self,
        scribe: Scribe,
        answers: dict[int, Answer] | None = None,
        *,
        redactor: Redactor = NOTHING_SECRET,
    ) -> None:
        self._scribe = scribe
        self._answers = answers or {}
        self._restore = redactor.restore
        self.clean = redactor.clean_reply

    def recall(self, kind: Kind, place: CallKey, fingerprint: str, /) -> bytes | None:
        answer = self._answers.get(place.step)
        if answer is None:
            return None
        if answer.request != f"{kind}:{fingerprint}":
            # Another question at this place: from here on the conversation is a different one.
            self._answers = {}
            return None
        return self._restore(answer.reply.decode()).encode()

    async def keep(self, kind: Kind, place: CallKey, fingerprint: str, reply: bytes, /) -> None:
        request = f"{kind}:{fingerprint}"
        answer = Answer(
            call=place,
            request=request,
            reply=self.clean(reply.decode()).encode(),
            spent=reply_spent(request, reply),
            found=bool(self._scribe.found) and place in self._scribe.found,
        )
        await self._scribe.keep(answer)


def reply_spent(request: str, reply: bytes) -> Amount:
    """What a kept answer cost; only one of a model costs anything."""
    return _reply(reply).spent if request.startswith("model:") else Amount(cost=0.0)
