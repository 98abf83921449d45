"""The ratio of two independent estimates, from their intervals."""

from __future__ import annotations

from math import sqrt

from passhat.stats.estimate import Estimate, Interval, Unavailable


def ratio_of(numerator: Estimate, denominator: Estimate) -> Estimate | Unavailable:
    """How many times the denominator the numerator is, for two rates estimated from other runs.

    The interval is put together from those of the two rates, so it needs no variance of its own
    and keeps their skew (MOVER-R: Donner and Zou, Statistical Methods in Medical Research 2012).

    >>> half = Estimate(value=0.4, interval=Interval(0.3, 0.5), method="given", confidence=0.95)
    >>> whole = Estimate(value=0.8, interval=Interval(0.7, 0.9), method="given", confidence=0.95)
    >>> found = ratio_of(half, whole)
    >>> round(found.value, 3), round(found.interval.low, 3), round(found.interval.high, 3)
    (0.5, 0.367, 0.649)
    """
    if denominator.value <= 0:
        return Unavailable("the rate to compare with is 0")
    if numerator.interval is None or denominator.interval is None:
        return Unavailable("a ratio needs the interval of both rates")
    return Estimate(
        value=numerator.value / denominator.value,
        interval=_mover(numerator, denominator, numerator.interval, denominator.interval),
        method="MOVER-R of two independent intervals",
        confidence=min(numerator.confidence, denominator.confidence),
        scope=numerator.scope,
        tasks=numerator.tasks,
        runs=(numerator.runs or 0) + (denominator.runs or 0) or None,
    )


def _mover(over: Estimate, under: Estimate, top: Interval, base: Interval) -> Interval | None:
    a, b = over.value, under.value
    # Both ends of the denominator must lie on its side of zero, or the ratio has no upper end.
    far, near = base.high * (2 * b - base.high), base.low * (2 * b - base.low)
    if far <= 0 or near <= 0:
        return None
    low = (a * b - sqrt(max(0.0, (a * b) ** 2 - top.low * (2 * a - top.low) * far))) / far
    high = (a * b + sqrt(max(0.0, (a * b) ** 2 - top.high * (2 * a - top.high) * near))) / near
    return Interval(max(0.0, low), high)
