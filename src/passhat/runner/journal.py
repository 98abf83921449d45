"""Storing and replaying answers: of models, of agents and of tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, Protocol, Self

import msgspec

from passhat.records import Observation, Trial, ledger
from passhat.records.redaction import Redactor
from passhat.runner.agents.conversation import Agent, AttemptRequest
from passhat.runner.models.exchange import (
    ChatModel,
    Reply,
    Request,
    ToolRequest,
    ToolResult,
    Tools,
    ToolSpec,
)

Kind = Literal["model", "tool", "agent", "wire"]

USER_STEP = 500_000
"""The step of a trial's first exchange with its user: between those of the agent and the judge."""

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


class ResponseCache(Protocol):
    """The exchanges of a trial by their place, in the journal of a run or in a cassette.

    `clean` takes secrets out of JSON text: exchanges are compared and kept without them.
    """

    @property
    def clean(self) -> Callable[[str], str]: ...

    def recall(self, kind: Kind, place: ledger.CallKey, fingerprint: str, /) -> bytes | None: ...

    async def keep(
        self, kind: Kind, place: ledger.CallKey, fingerprint: str, reply: bytes, /
    ) -> None: ...


class Cassettes:
    """The recordings that a run uses; in this form, none."""

    replaying = False
    """Whether all answers come from recordings."""

    def holds(self, request: AttemptRequest, /) -> bool:
        """Whether a trial is answered from a recording."""
        return False

    def cache(self, request: AttemptRequest, /) -> ResponseCache | None:
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


class CachedModel:
    """A model whose answers are kept before anything else sees them, and recalled when known."""

    def __init__(self, model: ChatModel, cache: ResponseCache) -> None:
        self._model = model
        self._cache = cache

    async def complete(self, request: Request, /) -> Reply:
        known, keep = _recall("model", request, self._cache)
        if known is not None:
            return _reply(known)
        reply = await self._model.complete(request)
        await keep(reply)
        return reply


class CachedTools:
    """Tools whose results are kept and recalled.

    Where `rebuild` says so, a recalled call is made anyway and its result dropped: a server that
    was started anew has to get into the state of the one before it.
    """

    def __init__(
        self, tools: Tools, cache: ResponseCache, *, rebuild: Callable[[str], bool] | None = None
    ) -> None:
        self._tools = tools
        self._cache = cache
        self._rebuild = rebuild

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return self._tools.specs

    async def call(self, request: ToolRequest, /) -> ToolResult:
        known, keep = _recall("tool", request, self._cache)
        if known is not None:
            if self._rebuild is not None and self._rebuild(request.name):
                await self._tools.call(request)
            return _result(known)
        result = await self._tools.call(request)
        await keep(result)
        return result


class CachedAgent:
    """An agent whose whole attempt is kept and recalled as one exchange."""

    def __init__(self, agent: Agent, cache: ResponseCache) -> None:
        self._agent = agent
        self._cache = cache

    async def attempt(self, request: AttemptRequest, /) -> Observation:
        known, keep = _recall("agent", request, self._cache)
        if known is not None:
            return _observation(known)
        seen = await self._agent.attempt(request)
        await keep(seen)
        return seen


def _recall(
    kind: Kind, request: Request | ToolRequest | AttemptRequest, cache: ResponseCache
) -> tuple[bytes | None, Callable[[object], Awaitable[None]]]:
    """The answer to a request if it is known, and what keeps a new one."""
    fingerprint = request.fingerprint(cache.clean)

    async def keep(answer: object) -> None:
        encoded = json_bytes(answer, encoder=_SORTED)
        await cache.keep(kind, request.place, fingerprint, encoded)

    return cache.recall(kind, request.place, fingerprint), keep


class JournalCache:
    """The answers of one trial: those of an interrupted run, and new ones as they come."""

    def __init__(
        self,
        writer: JournalWriter,
        answers: dict[int, ledger.Answer] | None = None,
        *,
        redactor: Redactor = NOTHING_SECRET,
    ) -> None:
        self._writer = writer
        self._answers = answers or {}
        self._restore = redactor.restore
        self.clean = redactor.clean_reply

    @property
    def next_step(self) -> int:
        """The agent's first step after all that an earlier start of the trial has answers of."""
        return max((step for step in self._answers if step < USER_STEP), default=-1) + 1

    def recall(self, kind: Kind, place: ledger.CallKey, fingerprint: str, /) -> bytes | None:
        answer = self._answers.get(place.step)
        if answer is None:
            return None
        if answer.request != f"{kind}:{fingerprint}":
            # Another question at this place: from here on the conversation is a different one.
            self._answers = {}
            return None
        return self._restore(answer.reply.decode()).encode()

    async def keep(
        self, kind: Kind, place: ledger.CallKey, fingerprint: str, reply: bytes, /
    ) -> None:
        request = f"{kind}:{fingerprint}"
        answer = ledger.Answer(
            call=place,
            request=request,
            reply=self.clean(reply.decode()).encode(),
            spent=reply_spent(request, reply),
            recovered=bool(self._writer.recovered) and place in self._writer.recovered,
        )
        await self._writer.keep(answer)


def reply_spent(request: str, reply: bytes) -> ledger.Amount:
    """What a kept answer cost; only one of a model costs anything."""
    return _reply(reply).spent if request.startswith("model:") else ledger.Amount(cost=0.0)


# The journal of a run: what is in it is never paid for again.

MOST_AT_ONCE = 4096


class Writing(Protocol):
    """Where entries are written.

    `write` is called from one thread at a time, not always the same. When it returns, everything
    is durable except the intents (`CallIntent`) whose places it returns: the budget that the store
    keeps refuses those. A `Finished` replaces an earlier one of the same trial.

    `mark_sent` is called just before the bytes of a call are sent. The mark survives the death of
    this process, so that the next start can tell calls that were sent from those that were only
    intended. `unmark_sent` removes it.
    """

    def write(self, entries: Sequence[ledger.Entry], /) -> Collection[int] | None: ...

    def mark_sent(self, call: ledger.CallKey, /) -> None: ...

    def unmark_sent(self, call: ledger.CallKey, /) -> None: ...


class Journal(Writing, Protocol):
    """The ledger of one run, in the history store or, as a `MemoryJournal`, in memory.

    Everything but `write` is called before the run begins, on the thread that starts it. `key`
    names the run in its store; it is empty without a store.
    """

    @property
    def key(self) -> str: ...

    def launched(self) -> Sequence[ledger.Ticket]:
        """All tickets, by number."""
        ...

    def answered(self) -> Sequence[ledger.Answer]:
        """The answers of trials that were launched and did not finish."""
        ...

    def finished(self) -> Sequence[ledger.Finished]:
        """All finished trials, by the number of their ticket."""
        ...

    def calls(self) -> int:
        """How many model calls were answered so far."""
        ...

    def asked_again(self) -> ledger.UnansweredCalls:
        """All calls that earlier starts sent and left unanswered, and that are asked again."""
        ...

    def recovered(self) -> int:
        """How many of those had an answer that the provider still has."""
        ...

    def given_up(self) -> ledger.UnansweredCalls:
        """All calls of earlier starts whose answers were lost, and that are not asked again."""
        ...

    def remotes(self) -> Mapping[ledger.CallKey, str]:
        """The provider's names of answers that it prepares in the background for lost calls."""
        ...


class MemoryJournal:
    """A journal in memory, which is gone when the process ends.

    >>> journal = MemoryJournal()
    >>> journal.write([ledger.Ticket(number=0, system="a", task="t", trial=0)])
    >>> len(journal.launched()), len(journal.finished())
    (1, 0)
    """

    key = ""

    def __init__(self) -> None:
        self._tickets: dict[int, ledger.Ticket] = {}
        self._answers: dict[ledger.CallKey, ledger.Answer] = {}
        self._finished: dict[int, ledger.Finished] = {}
        self._open: dict[ledger.CallKey, ledger.CallIntent] = {}
        self._remotes: dict[ledger.CallKey, str] = {}
        self._again = ledger.UnansweredCalls()
        self._given_up = ledger.UnansweredCalls()
        self._recovered = 0

    def write(self, entries: Sequence[ledger.Entry], /) -> None:
        for entry in entries:
            match entry:
                case ledger.Ticket():
                    self._tickets[entry.number] = entry
                case ledger.CallIntent():
                    self._open[entry.call] = entry
                case ledger.Refused():
                    self._open.pop(entry.call, None)
                case ledger.LostAnswer():
                    self._given_up += _one_call(entry.most)
                case ledger.AcceptedCall():
                    self._remotes[entry.call] = entry.remote
                case ledger.Answer():
                    self._open.pop(entry.call, None)
                    self._remotes.pop(entry.call, None)
                    self._answers[entry.call] = entry
                    self._recovered += entry.recovered
                case ledger.Finished():
                    self._finished[entry.ticket.number] = entry

    def launched(self) -> Sequence[ledger.Ticket]:
        return [self._tickets[number] for number in sorted(self._tickets)]

    def answered(self) -> Sequence[ledger.Answer]:
        done = self._done()
        return [answer for key, answer in self._answers.items() if key[:3] not in done]

    def finished(self) -> Sequence[ledger.Finished]:
        return [self._finished[number] for number in sorted(self._finished)]

    def calls(self) -> int:
        return sum(answer.request.startswith("model:") for answer in self._answers.values())

    def asked_again(self) -> ledger.UnansweredCalls:
        done = self._done()
        paid = {entry.trial.system for entry in self._finished.values() if entry.trial.cost}
        for key in [key for key in self._open if key[:3] not in done]:
            intent = self._open.pop(key)
            if intent.request.startswith("agent:") and intent.call.system not in paid:
                continue  # an agent that makes its own calls and never reported a cost
            self._again += _one_call(intent.most)
        for key in [key for key, call in self._open.items() if call.request[:6] != "agent:"]:
            self._given_up += _one_call(self._open.pop(key).most)
        return self._again

    def recovered(self) -> int:
        return self._recovered

    def given_up(self) -> ledger.UnansweredCalls:
        return self._given_up

    def remotes(self) -> Mapping[ledger.CallKey, str]:
        return dict(self._remotes)

    def mark_sent(self, call: ledger.CallKey, /) -> None:
        """Does nothing: this journal does not outlive the process."""

    def unmark_sent(self, call: ledger.CallKey, /) -> None:
        """Does nothing: no call is marked."""

    def _done(self) -> set[tuple[str, str, int]]:
        return {f.trial.key for f in self._finished.values()}


class BudgetRefused(Exception):
    """The budget that the store keeps has nothing left for a call."""


class JournalWriter:
    """Writes to a journal from many tasks at once, in batches.

    `keep` returns when the entry is durable. While one batch is written the next one is collected,
    so that a hundred trials share one flush of the disk.
    """

    def __init__(self, journal: Writing, *, thread: ThreadPoolExecutor | None = None) -> None:
        self._journal = journal
        self._waiting: list[tuple[ledger.Entry, asyncio.Future[None] | None]] = []
        self._writing: asyncio.Task[None] | None = None
        self._own = thread is None
        self._thread = thread or ThreadPoolExecutor(1, thread_name_prefix="passhat-journal")
        self._sent: dict[ledger.CallKey, bool] = {}
        self.recovered: set[ledger.CallKey] = set()
        """Lost calls whose answers the provider still had; they are kept as found."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._writing is not None:
            await asyncio.wait([self._writing])
        if self._own:
            self._thread.shutdown()

    async def keep(self, entry: ledger.Entry) -> None:
        """Write an entry; it is durable on return. BudgetRefused if the store refuses it."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._add(entry, written)
        # A cancelled trial must not cancel the write that others wait for too.
        await asyncio.shield(written)

    def note(self, entry: ledger.Entry) -> None:
        """Write an entry before any later one, without waiting for it."""
        self._add(entry, None)

    async def intend(self, intent: ledger.CallIntent) -> None:
        """Write the intent of a call, which may be sent after this."""
        self._sent[intent.call] = False
        await self.keep(intent)

    def mark_sent(self, call: ledger.CallKey) -> None:
        """Mark an intended call as sent, just before its bytes go out."""
        if call in self._sent:
            self._journal.mark_sent(call)
            self._sent[call] = True

    def unmark_sent(self, call: ledger.CallKey) -> None:
        """Remove the mark: the provider refused the call, which has cost nothing so far."""
        if self._sent.get(call):
            self._sent[call] = False
            self._journal.unmark_sent(call)

    def is_sent(self, call: ledger.CallKey) -> bool:
        """Whether a call is on the wire."""
        return self._sent.get(call, False)

    def forget(self, call: ledger.CallKey) -> None:
        """A call is over: its answer is here, or it costs nothing."""
        self._sent.pop(call, None)

    async def lose(self, call: ledger.CallKey, most: ledger.Amount) -> None:
        """Write that a call was sent and its answer lost; durable before it is sent again."""
        if call in self._sent:
            self._sent[call] = False
        await self.keep(ledger.LostAnswer(call=call, most=most))

    async def accept(self, call: ledger.CallKey, remote: str) -> None:
        """Write the provider's name for an answer that it prepares in the background."""
        if call in self._sent:
            await self.keep(ledger.AcceptedCall(call=call, remote=remote))

    def _add(self, entry: ledger.Entry, written: asyncio.Future[None] | None) -> None:
        self._waiting.append((entry, written))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())

    async def _write_all(self) -> None:
        # One pass of the loop first: trials that are ready at the same time share the batch.
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
                entries = [entry for entry, _ in batch]
                try:
                    write = self._journal.write
                    refused = await loop.run_in_executor(self._thread, write, entries)
                except Exception as error:
                    _settle(batch, error)
                except BaseException:
                    _settle(batch, asyncio.CancelledError())
                    raise
                else:
                    _settle([batch[i] for i in refused or ()], BudgetRefused())
                    _settle(batch, None)
        finally:
            self._writing = None


def _settle(
    batch: Sequence[tuple[ledger.Entry, asyncio.Future[None] | None]], error: BaseException | None
) -> None:
    for _, written in batch:
        if written is None or written.done():
            continue
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)
            written.exception()  # so that asyncio does not complain if its trial was cancelled


def _one_call(most: ledger.Amount) -> ledger.UnansweredCalls:
    return ledger.UnansweredCalls(calls=1, cost=most.cost or 0.0, unpriced=int(most.cost is None))
