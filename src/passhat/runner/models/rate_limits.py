"""How hard a provider is driven: requests at once, requests and tokens per minute."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from passhat.records import RateLimit
from passhat.runner.deadline import excused

MINUTE = 60.0


class Throttle:
    """Lets requests to one provider through no faster than its limits allow.

    Rates are buckets that refill evenly and hold at most a minute's worth. Tokens are known only
    afterwards, so they are taken then, and the next request waits until the debt is paid.
    """

    def __init__(
        self,
        limit: RateLimit,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._slots = asyncio.Semaphore(limit.concurrency) if limit.concurrency else None
        self._requests = _Bucket(limit.requests_per_minute, now)
        self._tokens = _Bucket(limit.tokens_per_minute, now)
        self._sleep = sleep

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold one of the slots, once the rates allow another request."""
        if self._slots is None:
            with excused():
                await self._wait()
            yield
            return
        with excused():
            await self._slots.acquire()
        try:
            with excused():
                await self._wait()
            yield
        finally:
            self._slots.release()

    def spent(self, tokens: int) -> None:
        """Take the tokens that an answer cost."""
        self._tokens.take(tokens)

    async def _wait(self) -> None:
        # One look and one take without an await in between: no two requests share an allowance.
        while (delay := max(self._requests.wait_for(1), self._tokens.wait_for(0))) > 0:
            await self._sleep(delay)
        self._requests.take(1)


class _Bucket:
    __slots__ = ("_level", "_now", "_rate", "_size", "_when")

    def __init__(self, per_minute: float | None, now: Callable[[], float]) -> None:
        self._now = now
        self._rate = None if per_minute is None else per_minute / MINUTE
        self._size = self._level = max(per_minute or 0.0, 1.0)
        self._when: float | None = None

    def wait_for(self, amount: float) -> float:
        """Seconds until `amount` is there; a bucket in debt makes even nothing wait."""
        if self._rate is None:
            return 0.0
        now = self._now()
        if self._when is not None:
            self._level = min(self._size, self._level + (now - self._when) * self._rate)
        self._when = now
        return max(0.0, (amount - self._level) / self._rate)

    def take(self, amount: float) -> None:
        if self._rate is not None:
            self._level -= amount
