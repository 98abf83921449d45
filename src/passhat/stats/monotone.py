"""Intervals of numbers that are known to be in order, made to be so too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from passhat.stats.estimate import Estimate, Interval, Number, Unavailable


def rising(estimates: Sequence[Number]) -> list[Number]:
    """Estimates of numbers that cannot fall from one to the next, their ends tightened to agree.

    pass@10 is at least pass@5, so what bounds pass@5 from below bounds pass@10 too. Near k = n an
    interval by itself is far wider than those before it, for the last run of few tasks decides.
    Using several intervals at once may cost coverage; how little is told under "In the order of k"
    in docs/explanation/statistics.md.

    Numbers over different tasks (some have too few runs for the larger k) need not be in order,
    and are left as they are.

    >>> wide = Estimate(value=1.0, interval=Interval(0.5, 1.0), method="", confidence=0.95)
    >>> sure = Estimate(value=0.9, interval=Interval(0.8, 1.0), method="", confidence=0.95)
    >>> rising([sure, wide])[1].interval
    Interval(low=0.8, high=1.0)
    """
    found: list[Number] = []
    for bounded, group in groupby(estimates, key=_over):
        same = list(group)
        found += _tightened(same) if bounded else same
    return found


def _over(number: Number) -> tuple[int | None, int] | None:
    """How many tasks it speaks of (those with enough runs, so the same for the same count)."""
    if isinstance(number, Unavailable) or number.interval is None:
        return None
    return number.tasks, number.excluded_tasks


def _tightened(group: Sequence[Number]) -> list[Number]:
    known = [one for one in group if isinstance(one, Estimate) and one.interval is not None]
    low = np.array([one.interval.low for one in known if one.interval])
    high = np.array([one.interval.high for one in known if one.interval])
    lows = np.maximum.accumulate(low)
    # Values in order lie inside all of these, so ends can only cross in their last digit.
    highs = np.maximum(np.minimum.accumulate(high[::-1])[::-1], lows)
    return [
        replace(one, interval=Interval(lowest, highest))
        for one, lowest, highest in zip(known, lows.tolist(), highs.tolist(), strict=True)
    ]
