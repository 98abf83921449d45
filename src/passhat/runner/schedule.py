"""The scheduler: runs the trials that a rule asks for, a number of them at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from passhat.errors import RunError
from passhat.records import Ticket
from passhat.runner.allocation import Allocation

Work = Callable[[Ticket], Awaitable[None]]


class Schedule:
    """Keeps up to `concurrency` trials under way.

    `launch` gets every new ticket, `work` runs one. A rule that waits for evidence is asked again
    after each trial.
    """

    def __init__(
        self,
        rule: Allocation,
        *,
        work: Work,
        launch: Callable[[Ticket], None],
        concurrency: int,
        first: Sequence[Ticket] = (),
    ) -> None:
        self._rule = rule
        self._work = work
        self._launch = launch
        self._concurrency = concurrency
        self._ready = deque(first)
        self._idle = 0
        self._over = False
        self._changed = asyncio.Event()
        self._workers: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Run trials until the rule ends the run, or `stop` is called."""
        try:
            async with asyncio.TaskGroup() as group:
                self._workers = [
                    group.create_task(self._worker()) for _ in range(self._concurrency)
                ]
        except BaseExceptionGroup as group_error:
            raise _first(group_error) from None

    def stop(self) -> None:
        """Start nothing more; let trials under way finish."""
        self._over = True
        self._wake()

    def abandon(self) -> None:
        """Cancel the trials under way."""
        self.stop()
        for worker in self._workers:
            worker.cancel()

    async def _worker(self) -> None:
        while (ticket := await self._take()) is not None:
            await self._work(ticket)
            self._wake()

    async def _take(self) -> Ticket | None:
        self._idle += 1
        try:
            while not self._over:
                # read before the rule is asked: a pause that ends meanwhile is not an error
                pause: float = getattr(self._rule, "pause_seconds", 0.0)
                if not self._ready:
                    self._refill()
                if self._ready:
                    return self._ready.popleft()
                await self._evidence(pause)
            return None
        finally:
            self._idle -= 1

    def _refill(self) -> None:
        """Ask the rule for as many tickets as there are idle workers."""
        batch = self._rule.next(self._idle)
        if batch is None:
            self.stop()
            return
        for ticket in batch:
            self._launch(ticket)
        self._ready.extend(batch)
        if len(batch) > 1:
            self._wake()

    async def _evidence(self, pause: float) -> None:
        """Wait until another trial has ended, or the run, or the pause for an outage."""
        if self._over:
            return
        if self._idle == len(self._workers) and not pause:
            raise RunError(
                "the stopping rule waits for evidence, but no trial is under way: its `next` must "
                "return tickets, or None to end the run"
            )
        # not wait_for, which in 3.11 loses a cancellation that comes with what it waits for
        with suppress(TimeoutError):
            async with asyncio.timeout(pause or None):
                await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _first(error: BaseExceptionGroup[BaseException]) -> BaseException:
    inner = error.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
