"""A worker: claims tickets of a run, runs their trials, and writes them to the store."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol, TypeVar

from passhat.dataclass import dataclass
from passhat.errors import LostRun
from passhat.records import Budget, Suite, Ticket
from passhat.records.ledger import CallKey, Claim, Entry, TrialKey
from passhat.runner.attempt import Attempts
from passhat.runner.garbage_collection import rare_collections
from passhat.runner.interruption import signals_to
from passhat.runner.journal import Scribe
from passhat.runner.run import GRACE
from passhat.runner.run_resources import RunResources
from passhat.runner.spending import Exhausted, RunSpending

POLL_SECONDS = 0.3
"""How often a worker with nothing to do looks for tickets."""

UNSEEN_ANSWER = 4096
"""Tokens reserved for the first answer of a model whose requests set no limit: workers cannot
wait for one another as the calls of one process do. The value in most providers' examples."""


Answered = TypeVar("Answered")


class LeasedSession(Protocol):
    """A worker's session in the store; every call raises LostRun once others have closed it."""

    @property
    def key(self) -> str:
        """The key of the run."""
        ...

    @property
    def beat_seconds(self) -> float:
        """How often the lease is renewed while trials are silent."""
        ...

    def claim(self, count: int) -> Sequence[Claim]: ...

    def write(self, entries: Sequence[Entry], /) -> Collection[int]: ...

    def mark_sent(self, call: CallKey, /) -> None: ...

    def unmark_sent(self, call: CallKey, /) -> None: ...

    def give_back(self, ticket: Ticket) -> None: ...

    def renew(self) -> None: ...

    def draw(self, name: str, per_minute: float, amount: float) -> float: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone:
    """The result of a worker's session, and why it ended: idle, stopped by a signal, or lost."""

    trials: int
    ending: str
    signal: int | None = None


def run_worker(
    suite: Suite,
    session: LeasedSession,
    *,
    concurrency: int,
    idle_seconds: float | None = None,
    budget: Budget | None = None,
    environment: Mapping[str, str] | None = None,
    handle_signals: bool = True,
    stop: threading.Event | None = None,
) -> WorkDone:
    """Run tickets until none came for `idle_seconds` (None: no limit), or a signal arrives.

    If no signal can arrive, in a thread, setting `stop` does the same.
    """
    worker = _Worker(suite, session, concurrency=concurrency, idle_seconds=idle_seconds, stop=stop)
    with rare_collections():
        return asyncio.run(worker.go(budget or suite.budget, environment, handle_signals))


class _Worker:
    def __init__(
        self,
        suite: Suite,
        session: LeasedSession,
        *,
        concurrency: int,
        idle_seconds: float | None,
        stop: threading.Event | None,
    ) -> None:
        self._asked_to_stop = stop
        self._suite = suite
        self._session = session
        self._concurrency = concurrency
        self._idle_seconds = idle_seconds
        self._tasks: set[asyncio.Task[None]] = set()
        self._cut_short: dict[TrialKey, Mapping[int, str]] = {}
        self._changed = asyncio.Event()
        self._done = 0
        self._stopping = False
        self._signal: int | None = None
        self._error: BaseException | None = None
        # One connection, one thread: claims and batches take turns on it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="passhat-worker")

    async def go(
        self, budget: Budget, environment: Mapping[str, str] | None, handle_signals: bool
    ) -> WorkDone:
        # The store has the limits that all workers share; here calls are only given a bound.
        spending = RunSpending(Budget(), unseen=UNSEEN_ANSWER)
        async with (
            Scribe(self._session, thread=self._thread) as self._scribe,
            RunResources(
                self._suite,
                scribe=self._scribe,
                spending=spending,
                environment=environment,
                must_price=budget.max_cost is not None,
                draw=self._draw,
                count_free=budget.max_calls is not None,
                run=self._session.key,
                cut_short=self._cut_short,
            ) as resources,
        ):
            self._attempts = Attempts(self._suite, resources)
            beside = [asyncio.create_task(self._beat()), asyncio.create_task(self._listen())]
            try:
                with signals_to(self._stop, enabled=handle_signals):
                    await self._take_turns()
            finally:
                for task in beside:
                    task.cancel()
                await self._end()
        lost = isinstance(self._error, LostRun)
        if self._error is not None and not lost:
            raise self._error
        ending = "lost" if lost else "stopped" if self._signal else "idle"
        return WorkDone(trials=self._done, ending=ending, signal=self._signal)

    async def _take_turns(self) -> None:
        since = time.monotonic()
        while not self._stopping:
            free = self._concurrency - len(self._tasks)
            claims = await self._call(self._session.claim, free) if free else ()
            for claim in claims:
                self._start(claim)
            if claims or self._tasks:
                since = time.monotonic()
            elif self._idle_seconds is not None and time.monotonic() - since > self._idle_seconds:
                return
            if len(claims) < free or not free:
                await self._pause(free)

    def _start(self, claim: Claim) -> None:
        task = asyncio.create_task(self._run(claim))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or error
            self._stopping = True
        self._changed.set()

    async def _run(self, claim: Claim) -> None:
        ticket = claim.ticket
        if claim.cut_short:
            self._cut_short[ticket.key] = claim.remotes
        try:
            finished = await self._attempts.run(ticket, claim.answers)
        except Exhausted:
            await self._call(self._session.give_back, ticket)
            await asyncio.sleep(POLL_SECONDS)  # other calls may cost less than they reserved
            return
        await self._scribe.keep(finished)
        self._done += 1

    async def _pause(self, free: int) -> None:
        """Wait until a trial ends, or, if another could start, until the next look for tickets."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS if free else None):
                await self._changed.wait()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._session.beat_seconds)
            try:
                await self._call(self._session.renew)
            except Exception as error:
                self._error = self._error or error
                self._stopping = True
                self._changed.set()
                return

    async def _listen(self) -> None:
        while self._asked_to_stop is not None:
            if self._asked_to_stop.is_set():
                self._stop(signal.SIGTERM)
                return
            await asyncio.sleep(POLL_SECONDS)

    def _stop(self, signal_number: int) -> None:
        self._signal, self._stopping = signal_number, True
        self._changed.set()

    async def _end(self) -> None:
        """Give trials under way a moment to finish, then leave them to other workers."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=0 if self._error else GRACE)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _draw(self, name: str, per_minute: float, amount: float) -> float:
        return await self._call(self._session.draw, name, per_minute, amount)

    async def _call(self, function: Callable[..., Answered], *arguments: object) -> Answered:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
