"""Asking again when a provider is busy: with growing random waits, up to a limit."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Self

from passhat.dataclass import dataclass
from passhat.errors import ModelBusy, ModelError
from passhat.records import RateLimit
from passhat.runner.models.exchange import ChatModel, Reply, Request

OnRetry = Callable[[Request, int, float, ModelBusy], None]
OnUnanswered = Callable[[Request, ModelBusy], Awaitable[None]]
"""Awaited after each attempt without an answer, before the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a request is repeated, and after which waits.

    The longest wait doubles from `first_wait` up to `longest_wait`; each wait is random between
    zero and that ("full jitter", so that callers that failed together do not return together). A
    provider's Retry-After is respected, unless it is above `patience` seconds.
    """

    retries: int = 8
    first_wait: float = 0.5
    longest_wait: float = 30.0
    patience: float = 300.0


class RetryBudget:
    """Retries that all requests to one provider share: a reserve, and one more for each request.

    In an outage every request fails; without a common limit each would be repeated `retries` times.
    """

    __slots__ = ("_left", "_per_request")

    def __init__(self, *, reserve: int = 100, per_request: float = 1.0) -> None:
        self._left: float = reserve
        self._per_request = per_request

    def earn(self) -> None:
        self._left += self._per_request

    def spend(self) -> bool:
        """Whether there was a retry left to take."""
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Retrying:
    """A model that is asked again while it is busy, within the limits of its provider."""

    def __init__(
        self,
        model: ChatModel,
        *,
        policy: RetryPolicy | None = None,
        throttle: Throttle | None = None,
        budget: RetryBudget | None = None,
        rng: random.Random | None = None,
        on_retry: OnRetry | None = None,
        on_unanswered: OnUnanswered | None = None,
    ) -> None:
        self._model = model
        self._policy = policy or RetryPolicy()
        self._throttle = throttle or Throttle(RateLimit())
        self._budget = budget or RetryBudget()
        self._rng = rng or random.Random()  # noqa: S311 - jitter guards no secret
        self._on_retry = on_retry
        self._on_unanswered = on_unanswered

    async def complete(self, request: Request, /) -> Reply:
        self._budget.earn()
        attempt = 0
        while True:
            try:
                async with self._throttle.turn():
                    reply = await self._model.complete(request)
            except ModelBusy as error:
                if self._on_unanswered is not None:
                    await self._on_unanswered(request, error)
                wait = self._wait(attempt, error)
                attempt += 1
                if self._on_retry is not None:
                    self._on_retry(request, attempt, wait, error)
                with paused():
                    await asyncio.sleep(wait)
            else:
                self._throttle.spent(0 if reply.usage is None else reply.usage.total)
                return reply

    def _wait(self, attempt: int, error: ModelBusy) -> float:
        policy = self._policy
        most = policy.retries if error.retries is None else min(error.retries, policy.retries)
        if attempt >= most:
            raise ModelError(f"{error} (asked {attempt + 1} times)") from error
        if not self._budget.spend():
            raise ModelError(f"{error} (no retries left: too many requests fail)") from error
        asked = error.retry_after
        if asked is not None and asked > policy.patience:
            raise ModelError(f"{error} (it asks to wait {asked:.0f} s)") from error
        longest = min(policy.longest_wait, policy.first_wait * 2**attempt)
        if asked is None:
            return self._rng.uniform(0, longest)
        return asked * self._rng.uniform(1.0, 1.1)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """How many seconds the provider asks to wait: given in milliseconds, seconds, or as a date.

    >>> retry_after({"retry-after": "1.5"}), retry_after({"retry-after-ms": "250"})
    (1.5, 0.25)
    >>> date = {"retry-after": "Wed, 21 Oct 2015 07:28:05 GMT"}
    >>> retry_after(date), retry_after({**date, "date": "Wed, 21 Oct 2015 07:28:00 GMT"})
    (0.0, 5.0)
    """
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        return max(0.0, float(headers["retry-after"]))
    except KeyError:
        return None
    except ValueError:
        # By the clock of the server that named the date: ours may be wrong.
        when = _moment(headers.get("retry-after", ""))
        now = _moment(headers.get("date", "")) or datetime.now(UTC)
        return None if when is None else max(0.0, (when - now).total_seconds())


def _moment(date: str) -> datetime | None:
    try:
        when = parsedate_to_datetime(date)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


# The rate limits of a provider: requests at once, requests and tokens per minute.

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
            with paused():
                await self._wait()
            yield
            return
        with paused():
            await self._slots.acquire()
        try:
            with paused():
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
        if (draw := self._draw) is not None:
            for what, rate, amount in (
                ("requests", self._limit.requests_per_minute, 1.0),
                ("tokens", self._limit.tokens_per_minute, 0.0),
            ):
                delay = 0.0 if rate is None else await draw(f"{self._name} {what}", rate, amount)
                if delay > 0:
                    await self._sleep(delay)
        # No await between the last look and `take`, so that no two requests share an allowance.
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


# The time that an attempt may take, without the time that it waits for providers.

_current: ContextVar[Deadline | None] = ContextVar("passhat_deadline", default=None)


class Deadline:
    """`async with Deadline(30)` ends its body with TimeoutError after 30 s, without pauses."""

    __slots__ = ("_scope", "_seconds", "_silent", "_token")

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._silent: float | None = None

    async def __aenter__(self) -> Self:
        self._scope = asyncio.timeout(self._seconds)
        await self._scope.__aenter__()
        self._token = _current.set(self)
        return self

    async def __aexit__(self, *error: Any) -> None:
        _current.reset(self._token)
        await self._scope.__aexit__(*error)

    @property
    def left(self) -> float | None:
        """The seconds left, or None without a limit."""
        when = self._scope.when()
        return None if when is None else when - asyncio.get_running_loop().time()

    @property
    def was_silence(self) -> bool:
        """Whether most of the time went by before the first byte of an answer that never came.

        Then a provider hangs. A call that was sent shortly before the end shows a slow agent.
        """
        if self._seconds is None or self._silent is None:
            return False
        return asyncio.get_running_loop().time() - self._silent > self._seconds / 2

    def asked(self) -> None:
        """A provider was asked, perhaps again; it has not sent a byte since."""
        if self._silent is None:
            self._silent = asyncio.get_running_loop().time()

    def heard(self) -> None:
        """The first bytes of an answer are there."""
        self._silent = None

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock for the body of a `with`."""
        left = self.left
        if left is None or left <= 0:
            yield
            return
        self._scope.reschedule(None)
        try:
            yield
        finally:
            if not self._scope.expired():
                self._scope.reschedule(asyncio.get_running_loop().time() + left)


def current_deadline() -> Deadline | None:
    """The clock of the attempt under way, if there is one."""
    return _current.get()


@contextmanager
def paused() -> Iterator[None]:
    """Stop the clock of the attempt under way, if there is one.

    The agent is not to blame for waiting for a rate limit or a busy provider.
    """
    deadline = _current.get()
    if deadline is None:
        yield
        return
    with deadline.stopped():
        yield
