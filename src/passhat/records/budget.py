"""What may be spent: money, tokens, calls, time, and how fast."""

from __future__ import annotations

from passhat.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that may be spent, on a suite or on one trial; None is without limit.

    >>> Budget(max_cost=5.0).limited, Budget().limited
    (True, False)
    """

    max_cost: float | None = None
    max_tokens: int | None = None
    max_minutes: float | None = None
    max_calls: int | None = None

    @property
    def limited(self) -> bool:
        limits = (self.max_cost, self.max_tokens, self.max_minutes, self.max_calls)
        return any(limit is not None for limit in limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """How hard one provider may be driven; None is without limit."""

    concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices in dollars per million tokens; `cached` None is the price of input."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
