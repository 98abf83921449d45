"""The difference of two independent estimates, from the interval of each."""

from __future__ import annotations

from math import hypot

from passhat.stats.estimate import Estimate, Interval, Unavailable


def independent_difference(a: Estimate, b: Estimate) -> Estimate | Unavailable:
    """The first minus the second, where nothing but chance links the two.

    The limits are recovered from those of each estimate (MOVER: Zou and Donner 2008), which keeps
    what was right about them, their skew included.

    >>> a = Estimate(value=0.6, interval=Interval(0.5, 0.7), method="m", confidence=0.95)
    >>> b = Estimate(value=0.4, interval=Interval(0.3, 0.5), method="m", confidence=0.95)
    >>> answer = independent_difference(a, b)
    >>> round(answer.value, 3), round(answer.interval.low, 3), round(answer.interval.high, 3)
    (0.2, 0.059, 0.341)
    """
    if a.interval is None or b.interval is None:
        return Unavailable("a difference needs an interval on both sides")
    value = a.value - b.value
    low = value - hypot(a.value - a.interval.low, b.interval.high - b.value)
    high = value + hypot(a.interval.high - a.value, b.value - b.interval.low)
    return Estimate(
        value=value,
        interval=Interval(max(-1.0, low), min(1.0, high)),
        method=f"MOVER on {a.method}",
        confidence=a.confidence,
        scope=a.scope,
        tasks=a.tasks,
        runs=None if a.runs is None or b.runs is None else a.runs + b.runs,
    )
