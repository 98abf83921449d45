"""Intervals that include what moved whole rounds of a suite: an outage, a drift, a bad day."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from passhat.stats.arguments import Counts, Floats
from passhat.stats.estimate import Estimate, Interval
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.proportions import wilson_bounds
from passhat.stats.special import stdtrit

Ratios = tuple[float, float]

NOTE = "includes the spread between rounds"


def round_variance(scores: Floats) -> float:
    """The variance of the mean over tasks, from how far it moves when one round is left out.

    Scores have a row for each task and a column for each round, NaN where there is no run. In a
    full table this is the variance of the round means over their number.

    >>> import numpy as np
    >>> table = np.array([[1, 1, 0], [1, 0, 0.0]])
    >>> round(round_variance(table), 4), round(float(table.mean(axis=0).var(ddof=1)) / 3, 4)
    (0.0833, 0.0833)
    """
    seen = ~np.isnan(scores)
    total, runs = np.nansum(scores, axis=1), seen.sum(axis=1)
    without = total[:, None] - np.nan_to_num(scores)
    left = runs[:, None] - seen
    means = np.divide(without, left, out=np.full(scores.shape, np.nan), where=left > 0)
    return _jackknife(means)


def streak_round_variance(passed: Floats, k: int) -> float | None:
    """The same for the mean pass^k; None where leaving out a round leaves fewer than k runs."""
    seen = ~np.isnan(passed)
    left: Counts = (seen.sum(axis=1)[:, None] - seen).astype(np.int64)
    if (left < k).any():
        return None
    passes = (np.nansum(passed, axis=1)[:, None] - np.nan_to_num(passed)).astype(np.int64)
    return _jackknife(share_of_passing_subsets(left, passes, k))


def widened(found: Estimate, variance: float, rounds: int) -> Estimate:
    """An estimate for this suite, its interval no narrower than the rounds' own spread allows.

    Wilson's formula with as many runs as would give this variance, and t with rounds - 1 degrees
    of freedom.
    """
    value, interval = found.value, found.interval
    if interval is None or variance <= 0 or not 0 < value < 1:
        return found
    quantile = float(stdtrit(rounds - 1, (1 + found.confidence) / 2))
    runs = np.asarray(value * (1 - value) / variance)
    low, high = wilson_bounds(np.asarray(value), runs, quantile)
    wider = Interval(min(interval.low, float(low)), max(interval.high, float(high)))
    return replace(
        found,
        interval=wider,
        method=f"{found.method}; {NOTE}, t({rounds - 1})",
        notes=(*found.notes, NOTE),
    )


def with_excess(found: Estimate, before: Estimate, after: Estimate) -> Estimate:
    """An estimate for tasks like these, given what was added to the one for this suite.

    Each end moves out by the square root of the added squares, as independent errors add up
    (Zou and Donner 2008 recover variances from limits in this way).
    """
    if found.interval is None or before.interval is None or after.interval is None:
        return found
    value, old, new = found.value, before.interval, after.interval
    down = np.sqrt(max(0.0, (value - new.low) ** 2 - (value - old.low) ** 2))
    up = np.sqrt(max(0.0, (new.high - value) ** 2 - (old.high - value) ** 2))
    low = value - float(np.hypot(value - found.interval.low, down))
    high = value + float(np.hypot(found.interval.high - value, up))
    interval = Interval(max(0.0, min(low, new.low)), min(1.0, max(high, new.high)))
    return replace(
        found,
        interval=interval,
        method=f"{found.method}; {NOTE}",
        notes=(*found.notes, NOTE),
    )


def stretched(found: Estimate, by: Ratios) -> Estimate:
    """An interval whose two arms are so many times as long, and stay inside [0, 1]."""
    if found.interval is None:
        return found
    low = found.value - by[0] * (found.value - found.interval.low)
    high = found.value + by[1] * (found.interval.high - found.value)
    return replace(
        found,
        interval=Interval(max(0.0, low), min(1.0, high)),
        method=f"{found.method}; {NOTE}",
        notes=(*found.notes, NOTE),
    )


def arm_ratios(before: Estimate, after: Estimate) -> Ratios:
    """How many times as long the two arms of an interval became."""
    if before.interval is None or after.interval is None:
        return 1.0, 1.0
    value = before.value
    pairs = (
        (value - before.interval.low, value - after.interval.low),
        (before.interval.high - value, after.interval.high - value),
    )
    low, high = (new / old if old > 0 else 1.0 for old, new in pairs)
    return low, high


def _jackknife(without: Floats) -> float:
    """Tukey's variance of a mean over tasks, from its values without each round in turn."""
    means = np.nanmean(without, axis=0)
    rounds = means.size
    return float((rounds - 1) / rounds * ((means - means.mean()) ** 2).sum())
