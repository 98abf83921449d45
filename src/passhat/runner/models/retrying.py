"""Asking again when a provider is busy: with growing random waits, up to a limit."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from passhat.dataclass import dataclass
from passhat.errors import ModelBusy, ModelError
from passhat.records import RateLimit
from passhat.runner.deadline import excused
from passhat.runner.models.exchange import ChatModel, Reply, Request
from passhat.runner.models.rate_limits import Throttle

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
                with excused():
                    await asyncio.sleep(wait)
            else:
                self._throttle.spent(reply.usage.total)
                return reply

    def _wait(self, attempt: int, error: ModelBusy) -> float:
        policy = self._policy
        if attempt >= policy.retries:
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
        return _seconds_until(headers.get("retry-after", ""), headers.get("date", ""))


def _seconds_until(date: str, sent: str) -> float | None:
    """The seconds to a date, by the clock of the server that named it: ours may be wrong."""
    when, now = _moment(date), _moment(sent) or datetime.now(UTC)
    return None if when is None else max(0.0, (when - now).total_seconds())


def _moment(date: str) -> datetime | None:
    try:
        when = parsedate_to_datetime(date)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)
