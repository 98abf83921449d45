"""The interval of a wider question, made no narrower than that of the narrower one inside it."""

from __future__ import annotations

from dataclasses import replace

from passhat.stats.estimate import Interval, Number, Unavailable


def hull(one: Interval, other: Interval) -> Interval:
    """The smallest interval that holds both.

    >>> hull(Interval(0.2, 0.4), Interval(0.3, 0.7))
    Interval(low=0.2, high=0.7)
    """
    return Interval(min(one.low, other.low), max(one.high, other.high))


def to_zero(interval: Interval) -> Interval:
    """The interval, made to reach 0: for a difference that a test does not tell from none.

    >>> to_zero(Interval(0.1, 0.7))
    Interval(low=0.0, high=0.7)
    """
    return hull(interval, Interval(0.0, 0.0))


def no_narrower(wider: Number, narrower: Number) -> Number:
    """`wider`, with an interval that holds that of `narrower` too.

    How a suite would do on other tasks like these cannot be known better than how it does on its
    own: the runs are as random, and the tasks are besides. Yet the spread between a few tasks may
    by luck be smaller than the noise of their runs, and its interval narrower.

    >>> from passhat.stats.estimate import Estimate
    >>> own = Estimate(value=0.5, interval=Interval(0.3, 0.7), method="", confidence=0.95)
    >>> like = Estimate(value=0.5, interval=Interval(0.4, 0.8), method="", confidence=0.95)
    >>> no_narrower(like, own).interval
    Interval(low=0.3, high=0.8)
    """
    if isinstance(wider, Unavailable) or isinstance(narrower, Unavailable):
        return wider
    if wider.interval is None or narrower.interval is None:
        return wider
    return replace(wider, interval=hull(wider.interval, narrower.interval))
