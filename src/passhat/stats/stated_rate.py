"""What a stated pass rate, with its interval, says about k attempts."""

from __future__ import annotations

from dataclasses import replace

from passhat.defaults import CONFIDENCE
from passhat.errors import ArgumentError
from passhat.stats.arguments import confidence_level, probability, whole_number
from passhat.stats.estimate import Estimate, Interval


def pass_hat_k_of_rate(
    rate: float | Estimate,
    k: int,
    *,
    interval: Interval | None = None,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """p^k: the chance that k independent attempts at the same pass rate all succeed.

    p^k grows with p, so the ends of the interval of p become those of p^k, at the same confidence.
    `interval` belongs to a plain number; an Estimate brings its own.

    >>> found = pass_hat_k_of_rate(0.8, 3, interval=Interval(0.62, 0.98))
    >>> round(found.value, 3), round(found.interval.low, 2), round(found.interval.high, 2)
    (0.512, 0.24, 0.94)
    """
    times = whole_number("k", k)
    stated = _stated(rate, interval, confidence)
    low_is = "a suite whose tasks differ has a larger pass^k than its mean rate to the power of k"
    return replace(
        stated,
        value=stated.value**times,
        interval=stated.interval
        and Interval(stated.interval.low**times, stated.interval.high**times),
        method=_method(f"p^{times}", stated),
        notes=(*stated.notes, *((low_is,) if times > 1 else ())),
    )


def pass_at_k_of_rate(
    rate: float | Estimate,
    k: int,
    *,
    interval: Interval | None = None,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """1 - (1 - p)^k: the chance that at least one of k independent attempts succeeds.

    >>> found = pass_at_k_of_rate(0.8, 3, interval=Interval(0.62, 0.98))
    >>> round(found.value, 3), round(found.interval.low, 3)
    (0.992, 0.945)
    """
    times = whole_number("k", k)
    stated = _stated(rate, interval, confidence)
    high_is = "a suite whose tasks differ has a smaller pass@k than its mean rate would give"
    return replace(
        stated,
        value=_any_of(stated.value, times),
        interval=stated.interval
        and Interval(_any_of(stated.interval.low, times), _any_of(stated.interval.high, times)),
        method=_method(f"1 - (1 - p)^{times}", stated),
        notes=(*stated.notes, *((high_is,) if times > 1 else ())),
    )


def _stated(rate: float | Estimate, interval: Interval | None, confidence: float) -> Estimate:
    """The rate as an Estimate, if it is one between 0 and 1 inside its interval."""
    if isinstance(rate, Estimate):
        if interval is not None:
            raise ArgumentError("interval", "must be left out: the estimate has its own", interval)
        probability("rate", rate.value)
        return rate
    value, level = probability("rate", rate), confidence_level(confidence)
    if interval is not None:
        if not 0 <= interval.low <= interval.high <= 1:
            raise ArgumentError("interval", "must lie within [0, 1]", (interval.low, interval.high))
        if value not in interval:
            rule = f"must hold the rate {value:g}"
            raise ArgumentError("interval", rule, (interval.low, interval.high))
    return Estimate(value=value, interval=interval, method="as stated", confidence=level)


def _method(formula: str, stated: Estimate) -> str:
    return f"{formula} of one rate for all attempts ({stated.method})"


def _any_of(rate: float, k: int) -> float:
    return 1 - (1 - rate) ** k
