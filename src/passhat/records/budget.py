"""What may be spent: money, tokens, calls, time, how fast, and what a trial takes of a machine."""

from __future__ import annotations

from passhat.dataclass import dataclass


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
        return limits != (None, None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """How hard one provider may be driven; None is without limit."""

    concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What one trial takes of the machine it runs on; `memory` in bytes, None is not known.

    >>> Resources(cpus=0.25, memory=2**29).times(8)
    Resources(cpus=2.0, memory=4294967296, gpus=0.0)
    """

    cpus: float | None = None
    memory: int | None = None
    gpus: float = 0.0

    def times(self, trials: int) -> Resources:
        """What this many trials take at the same time."""
        return Resources(
            cpus=None if self.cpus is None else self.cpus * trials,
            memory=None if self.memory is None else self.memory * trials,
            gpus=self.gpus * trials,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices in dollars per million tokens; `cached` None is the price of input."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
