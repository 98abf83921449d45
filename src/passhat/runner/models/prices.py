"""What an exchange cost: by the prices in the suite, or by the table of genai-prices (offline)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from passhat.errors import MissingExtra
from passhat.records import Prices, TokenUsage

Pricing = Callable[[TokenUsage], float | None]

PER = 1_000_000


def pricing(model: str, *, provider: str | None, prices: Prices | None = None) -> Pricing:
    """The function from tokens to dollars for one model; it gives None if no price is known.

    >>> cost = pricing("mine", provider=None, prices=Prices(input=1.0, output=10.0, cached=0.5))
    >>> cost(TokenUsage(tokens_in=1_000_000, tokens_out=100_000, cached_in=400_000))
    1.8
    """
    if prices is not None:
        return lambda usage: _by_rates(usage, prices)
    if provider is None or not has_price(model, provider):
        return lambda usage: None
    return lambda usage: _by_table(usage, model, provider)


@lru_cache(maxsize=1024)
def has_price(model: str, provider: str) -> bool:
    """Whether the price table knows the model."""
    try:
        _snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return False
    return True


def _by_rates(usage: TokenUsage, prices: Prices) -> float:
    cached = prices.input if prices.cached is None else prices.cached
    written = prices.input if prices.cache_write is None else prices.cache_write
    fresh = usage.tokens_in - usage.cached_in - usage.cache_written
    return (
        fresh * prices.input
        + usage.cached_in * cached
        + usage.cache_written * written
        + usage.tokens_out * prices.output
    ) / PER


def _by_table(usage: TokenUsage, model: str, provider: str) -> float | None:
    from genai_prices import Usage, calc_price

    given = Usage(
        input_tokens=usage.tokens_in,
        output_tokens=usage.tokens_out,
        cache_read_tokens=usage.cached_in,
        cache_write_tokens=usage.cache_written,
    )
    try:
        return float(calc_price(given, model, provider_id=provider).total_price)
    except (LookupError, ValueError):
        return None


def _snapshot() -> Any:
    try:
        from genai_prices import data_snapshot
    except ImportError:
        raise MissingExtra("knowing what models cost", "run") from None
    return data_snapshot.get_snapshot()
