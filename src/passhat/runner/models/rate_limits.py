"""The rate limits of a provider: requests at once, requests and tokens per minute."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from passhat.records import RateLimit
from passhat.runner.deadline import excused

MINUTE = 60.0

Draw = Callable[[str, float, float], Awaitable[float]]
"""Draw an amount from a rate per minute that several processes share, by its name: how many
seconds to wait before it may be used."""


class Throttle:
    """Lets requests to one provider through no faster than its limits allow.

    Rates are buckets that refill evenly and hold at most the amount of a minute. The tokens of an
    answer are known only afterwards: they are taken then, and the next request waits until the
    bucket is above zero again. With `draw` all processes share the rates; each has its own slots.
    """

    def __init__(
        self,
        limit: RateLimit,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        name: str = "",
        draw: Draw | None = None,
    ) -> None:
        self._limit = limit
        self._name = name
        self._draw = draw
        self._drawing: set[asyncio.Task[float]] = set()
        self._slots = asyncio.Semaphore(limit.concurrency) if limit.concurrency else None
        self._requests = _Bucket(None if draw else limit.requests_per_minute, now)
        self._tokens = _Bucket(None if draw else limit.tokens_per_minute, now)
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
        if self._draw is not None and self._limit.tokens_per_minute is not None:
            drawing = asyncio.ensure_future(
                self._draw(f"{self._name} tokens", self._limit.tokens_per_minute, tokens)
            )
            self._drawing.add(drawing)
            drawing.add_done_callback(self._drawing.discard)

    async def _wait(self) -> None:
        if self._draw is not None:
            await self._wait_for_all(self._draw)
        # No await between the last look and `take`, so that no two requests share an allowance.
        while (delay := max(self._requests.wait_for(1), self._tokens.wait_for(0))) > 0:
            await self._sleep(delay)
        self._requests.take(1)

    async def _wait_for_all(self, draw: Draw) -> None:
        """Wait until the rates that all processes share allow another request."""
        for what, rate, amount in (
            ("requests", self._limit.requests_per_minute, 1.0),
            ("tokens", self._limit.tokens_per_minute, 0.0),
        ):
            if rate is not None and (delay := await draw(f"{self._name} {what}", rate, amount)) > 0:
                await self._sleep(delay)


class _Bucket:
    __slots__ = ("_level", "_now", "_rate", "_size", "_when")

    def __init__(self, per_minute: float | None, now: Callable[[], float]) -> None:
        self._now = now
        self._rate = None if per_minute is None else per_minute / MINUTE
        self._size = self._level = max(per_minute or 0.0, 1.0)
        self._when: float | None = None

    def wait_for(self, amount: float) -> float:
        """Seconds until `amount` is there; below zero, even an amount of 0 has to wait."""
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
