"""The journal of a run: what is in it is never paid for again."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, Self

from passhat.records.ledger import (
    AcceptedCall,
    Amount,
    Answer,
    CallIntent,
    CallKey,
    Entry,
    Finished,
    LostAnswer,
    Refused,
    Ticket,
    UnansweredCalls,
)

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

    def write(self, entries: Sequence[Entry], /) -> Collection[int] | None: ...

    def mark_sent(self, call: CallKey, /) -> None: ...

    def unmark_sent(self, call: CallKey, /) -> None: ...


class Journal(Writing, Protocol):
    """The ledger of one run, in the history store or, as a `MemoryJournal`, in memory.

    Everything but `write` is called before the run begins, on the thread that starts it. `key`
    names the run in its store; it is empty without a store.
    """

    @property
    def key(self) -> str: ...

    def launched(self) -> Sequence[Ticket]:
        """All tickets, by number."""
        ...

    def answered(self) -> Sequence[Answer]:
        """The answers of trials that were launched and did not finish."""
        ...

    def finished(self) -> Sequence[Finished]:
        """All finished trials, by the number of their ticket."""
        ...

    def calls(self) -> int:
        """How many model calls were answered so far."""
        ...

    def asked_again(self) -> UnansweredCalls:
        """All calls that earlier starts sent and left unanswered, and that are asked again."""
        ...

    def found(self) -> int:
        """How many of those had an answer that the provider still has."""
        ...

    def given_up(self) -> UnansweredCalls:
        """All calls of earlier starts whose answers were lost, and that are not asked again."""
        ...

    def remotes(self) -> Mapping[CallKey, str]:
        """The provider's names of answers that it prepares in the background for lost calls."""
        ...


class MemoryJournal:
    """A journal in memory, which is gone when the process ends.

    >>> journal = MemoryJournal()
    >>> journal.write([Ticket(number=0, system="a", task="t", trial=0)])
    >>> len(journal.launched()), len(journal.finished())
    (1, 0)
    """

    key = ""

    def __init__(self) -> None:
        self._tickets: dict[int, Ticket] = {}
        self._answers: dict[CallKey, Answer] = {}
        self._finished: dict[int, Finished] = {}
        self._open: dict[CallKey, CallIntent] = {}
        self._remotes: dict[CallKey, str] = {}
        self._again = UnansweredCalls()
        self._given_up = UnansweredCalls()
        self._found = 0

    def write(self, entries: Sequence[Entry], /) -> None:
        for entry in entries:
            match entry:
                case Ticket():
                    self._tickets[entry.number] = entry
                case CallIntent():
                    self._open[entry.call] = entry
                case Refused():
                    self._open.pop(entry.call, None)
                case LostAnswer():
                    self._given_up += _one_call(entry.most)
                case AcceptedCall():
                    self._remotes[entry.call] = entry.remote
                case Answer():
                    self._open.pop(entry.call, None)
                    self._remotes.pop(entry.call, None)
                    self._answers[entry.call] = entry
                    self._found += entry.found
                case Finished():
                    self._finished[entry.ticket.number] = entry

    def launched(self) -> Sequence[Ticket]:
        return [self._tickets[number] for number in sorted(self._tickets)]

    def answered(self) -> Sequence[Answer]:
        done = self._done()
        return [answer for key, answer in self._answers.items() if key[:3] not in done]

    def finished(self) -> Sequence[Finished]:
        return [self._finished[number] for number in sorted(self._finished)]

    def calls(self) -> int:
        return sum(answer.request.startswith("model:") for answer in self._answers.values())

    def asked_again(self) -> UnansweredCalls:
        done = self._done()
        paid = {entry.trial.system for entry in self._finished.values() if entry.trial.cost}
        for key in [key for key in self._open if key[:3] not in done]:
            intent = self._open.pop(key)
            if intent.request.startswith("agent:") and intent.call.system not in paid:
                continue  # an agent that makes its own calls and never reported a cost
            self._again += _one_call(intent.most)
        for key in [key for key, one in self._open.items() if one.request[:6] != "agent:"]:
            self._given_up += _one_call(self._open.pop(key).most)
        return self._again

    def found(self) -> int:
        return self._found

    def given_up(self) -> UnansweredCalls:
        return self._given_up

    def remotes(self) -> Mapping[CallKey, str]:
        return dict(self._remotes)

    def mark_sent(self, call: CallKey, /) -> None:
        """Does nothing: this journal does not outlive the process."""

    def unmark_sent(self, call: CallKey, /) -> None:
        """Does nothing: no call is marked."""

    def _done(self) -> set[tuple[str, str, int]]:
        return {(f.trial.system, f.trial.task, f.trial.trial) for f in self._finished.values()}


class BudgetRefused(Exception):
    """The budget that the store keeps has nothing left for a call."""


class Scribe:
    """Writes to a journal from many tasks at once, in batches.

    `keep` returns when the entry is durable. While one batch is written the next one is collected,
    so that a hundred trials share one flush of the disk.
    """

    def __init__(self, journal: Writing, *, thread: ThreadPoolExecutor | None = None) -> None:
        self._journal = journal
        self._waiting: list[tuple[Entry, asyncio.Future[None] | None]] = []
        self._writing: asyncio.Task[None] | None = None
        self._own = thread is None
        self._thread = thread or ThreadPoolExecutor(1, thread_name_prefix="passhat-journal")
        self._sent: dict[CallKey, bool] = {}
        self.found: set[CallKey] = set()
        """Lost calls whose answers the provider still had; they are kept as found."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._writing is not None:
            await asyncio.wait([self._writing])
        if self._own:
            self._thread.shutdown()

    async def keep(self, entry: Entry) -> None:
        """Write an entry; it is durable on return. BudgetRefused if the store refuses it."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._add(entry, written)
        # A cancelled trial must not cancel the write that others wait for too.
        await asyncio.shield(written)

    def note(self, entry: Entry) -> None:
        """Write an entry before any later one, without waiting for it."""
        self._add(entry, None)

    async def intend(self, intent: CallIntent) -> None:
        """Write the intent of a call, which may be sent after this."""
        self._sent[intent.call] = False
        await self.keep(intent)

    def mark_sent(self, call: CallKey) -> None:
        """Mark an intended call as sent, just before its bytes go out."""
        if call in self._sent:
            self._journal.mark_sent(call)
            self._sent[call] = True

    def unmark_sent(self, call: CallKey) -> None:
        """Remove the mark: the provider refused the call, which has cost nothing so far."""
        if self._sent.get(call):
            self._sent[call] = False
            self._journal.unmark_sent(call)

    def is_sent(self, call: CallKey) -> bool:
        """Whether a call is on the wire."""
        return self._sent.get(call, False)

    def forget(self, call: CallKey) -> None:
        """A call is over: its answer is here, or it costs nothing."""
        self._sent.pop(call, None)

    async def lose(self, call: CallKey, most: Amount) -> None:
        """Write that a call was sent and its answer lost; durable before it is sent again."""
        if call in self._sent:
            self._sent[call] = False
        await self.keep(LostAnswer(call=call, most=most))

    async def accept(self, call: CallKey, remote: str) -> None:
        """Write the provider's name for an answer that it prepares in the background."""
        if call in self._sent:
            await self.keep(AcceptedCall(call=call, remote=remote))

    def _add(self, entry: Entry, written: asyncio.Future[None] | None) -> None:
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
    batch: Sequence[tuple[Entry, asyncio.Future[None] | None]], error: BaseException | None
) -> None:
    for _, written in batch:
        if written is None or written.done():
            continue
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)
            written.exception()  # so that asyncio does not complain if its trial was cancelled


def _one_call(most: Amount) -> UnansweredCalls:
    return UnansweredCalls(calls=1, cost=most.cost or 0.0, unpriced=int(most.cost is None))
