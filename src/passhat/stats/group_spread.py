"""Intervals that include what moved runs together: an outage, a drift, a seed, a bad day."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from passhat.dataclass import dataclass
from passhat.stats.arguments import Counts, Floats
from passhat.stats.derived_intervals import hull
from passhat.stats.estimate import Estimate, Interval
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.proportions import wilson_bounds
from passhat.stats.roots import bisected
from passhat.stats.special import ndtr, ndtri, stdtrit

Arms = tuple[float, float]
"""Two lengths or two factors: of the arm below a value, and of the arm above it."""

# Day-to-day standard deviations of 0 to 0.6 logit, with a half-normal prior. Over 100 calm points
# whose days move by 0.3 logit a scale of 0.25 raises a false alarm in 6.6 % of histories, one of
# 0.5 in 5.0 % (bench/calibrate/dependence.py); from 0.5 on the scale hardly matters.
_SIGMAS = np.arange(0, 0.6001, 0.05)
_PRIOR_SD = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupedRuns:
    """Runs and total scores of each task (rows) in each group of runs (columns): rounds, seeds."""

    runs: Counts
    total: Floats

    @classmethod
    def of(cls, task: ArrayLike, group: ArrayLike, score: ArrayLike) -> GroupedRuns:
        """From columns with one entry for each run.

        >>> GroupedRuns.of(["a", "a", "b"], [1, 2, 2], [1, 0, 1]).runs.tolist()
        [[1, 1], [0, 1]]
        """
        tasks, rows = np.unique(np.asarray(task), return_inverse=True)
        groups, columns = np.unique(np.asarray(group), return_inverse=True)
        shape = (tasks.size, groups.size)
        cells = rows.ravel() * groups.size + columns.ravel()
        runs = np.bincount(cells, minlength=shape[0] * shape[1])
        total = np.bincount(cells, np.asarray(score, float), shape[0] * shape[1]).astype(np.float64)
        return cls(runs=runs.reshape(shape), total=total.reshape(shape))

    @classmethod
    def of_table(cls, scores: Floats) -> GroupedRuns:
        """From a row for each task and a column for each group, NaN if there is no run."""
        return cls(runs=(~np.isnan(scores)).astype(np.int64), total=np.nan_to_num(scores))

    @property
    def groups(self) -> int:
        return int(self.runs.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class DaySpread:
    """What is known of the standard deviation between days: a weight for each value of a grid.

    A day shifts the whole suite by some amount on the logit scale: a provider's load, a new build
    of the same model. The weights are a half-normal prior times the likelihood of the days seen.
    """

    log_weights: Floats
    days: int = 0

    @classmethod
    def unknown(cls) -> DaySpread:
        """Before any history.

        >>> round(DaySpread.unknown().sigma, 2)
        0.26
        """
        return cls(-(_SIGMAS**2) / (2 * _PRIOR_SD**2))

    @property
    def weights(self) -> Floats:
        found = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray(found / found.sum())

    @property
    def sigma(self) -> float:
        """The expected standard deviation, in logits."""
        return float(self.weights @ _SIGMAS)

    def after(self, values: Floats, noise: Floats, slope: float) -> DaySpread:
        """The same after days with these means, each with its variance from runs.

        `slope` is how much the mean moves per logit. Restricted likelihood: the level itself is
        not known (Patterson and Thompson 1971).
        """
        if values.size < 2 or slope <= 0:
            return self
        variance = noise + (_SIGMAS[:, None] * slope) ** 2
        variance = np.maximum(variance, 1e-12)
        precision = 1 / variance
        level = (precision * values).sum(axis=1) / precision.sum(axis=1)
        squares = (precision * (values - level[:, None]) ** 2).sum(axis=1)
        logs = -0.5 * (np.log(variance).sum(axis=1) + np.log(precision.sum(axis=1)) + squares)
        return replace(self, log_weights=self.log_weights + logs, days=self.days + int(values.size))

    def p_value(
        self,
        difference: float,
        noise: float,
        slope: float,
        days: float,
        *,
        plain_p: float | None = None,
    ) -> float:
        """The two-sided p of a difference whose runs give it the variance `noise`.

        `days` is 1 / new + 1 / old, over the days on each side. `plain_p` is the exact p without a
        spread between days, if it is known.
        """
        variance = np.maximum(noise + (_SIGMAS * slope) ** 2 * days, 1e-300)
        tails = 2 * ndtr(-abs(difference) / np.sqrt(variance))
        if plain_p is not None:
            tails[0] = plain_p
        return min(1.0, float(self.weights @ tails))

    def half_width(self, noise: float, slope: float, days: float, confidence: float) -> float:
        """Half the interval of such a difference, by bisection on its p-value."""

        def within(half: float) -> bool:
            return self.p_value(half, noise, slope, days) <= 1 - confidence

        high = 1.0
        while not within(high) and high < 1e6:
            high *= 2
        return bisected(within, 0.0, high)[1]

    def arms(self, interval: Interval, slope: float, days: float, confidence: float) -> Arms:
        """What the spread between days adds to the arms of an interval, as squares add up."""
        half = interval.width / 2
        noise = (half / float(ndtri((1 + confidence) / 2))) ** 2
        wider = self.half_width(noise, slope, days, confidence)
        more = float(np.sqrt(max(0.0, wider**2 - half**2)))
        return more, more


def mean_variance(found: GroupedRuns) -> float | None:
    """The variance of the mean over tasks, from how far it moves when one group is left out.

    With one run in every cell this is the variance of the group means over their number. None
    where leaving out a group leaves a task without a run.

    >>> import numpy as np
    >>> table = np.array([[1, 1, 0], [1, 0, 0.0]])
    >>> round(mean_variance(GroupedRuns.of_table(table)), 4)
    0.0833
    """
    left = found.runs.sum(axis=1)[:, None] - found.runs
    if (left < 1).any():
        return None
    return _jackknife((found.total.sum(axis=1)[:, None] - found.total) / left)


def streak_variance(found: GroupedRuns, k: int) -> float | None:
    """The same for the mean pass^k of passes; None if too few runs are left for one."""
    left = found.runs.sum(axis=1)[:, None] - found.runs
    if (left < k).any():
        return None
    passes = (found.total.sum(axis=1)[:, None] - found.total).astype(np.int64)
    return _jackknife(share_of_passing_subsets(left, passes, k))


def widened(found: Estimate, variance: float, groups: int, note: str) -> Estimate:
    """An estimate for this suite, its interval at least as wide as the spread between groups needs.

    Wilson's formula with as many runs as would give this variance, and t with groups - 1 degrees
    of freedom. `note` says what the groups are.
    """
    value, interval = found.value, found.interval
    if interval is None or variance <= 0 or not 0 < value < 1:
        return found
    quantile = float(stdtrit(groups - 1, (1 + found.confidence) / 2))
    runs = np.asarray(value * (1 - value) / variance)
    low, high = wilson_bounds(np.asarray(value), runs, quantile)
    wider = hull(interval, Interval(float(low), float(high)))
    return _noted(found, wider, note, f"{note}, t({groups - 1})")


def with_excess(found: Estimate, before: Estimate, after: Estimate, note: str) -> Estimate:
    """An estimate for tasks like these, given what was added to the one for this suite.

    Each end moves out by the square root of the added squares, as independent errors add up
    (Zou and Donner 2008 recover variances from limits in this way).
    """
    new = after.interval
    if found.interval is None or new is None:
        return found
    outer = hull(longer_arms(found.interval, found.value, excess(before, after)), new)
    return _noted(found, Interval(max(0.0, outer.low), min(1.0, outer.high)), note)


def excess(before: Estimate, after: Estimate) -> Arms:
    """How much the two arms of an interval grew, as squares add up."""
    if before.interval is None or after.interval is None:
        return 0.0, 0.0
    value, old, new = before.value, before.interval, after.interval
    return (
        float(np.sqrt(max(0.0, (value - new.low) ** 2 - (value - old.low) ** 2))),
        float(np.sqrt(max(0.0, (new.high - value) ** 2 - (old.high - value) ** 2))),
    )


def longer_arms(interval: Interval, value: float, more: Arms) -> Interval:
    """An interval whose arms grew by independent errors of so much.

    >>> longer_arms(Interval(0.2, 0.8), 0.5, (0.4, 0.0))
    Interval(low=0.0, high=0.8)
    """
    return Interval(
        value - float(np.hypot(max(0.0, value - interval.low), more[0])),
        value + float(np.hypot(max(0.0, interval.high - value), more[1])),
    )


def stretched(found: Estimate, by: Arms, note: str) -> Estimate:
    """An estimate whose interval has arms so many times as long, cut off at 0 and 1."""
    if found.interval is None:
        return found
    low = found.value - by[0] * (found.value - found.interval.low)
    high = found.value + by[1] * (found.interval.high - found.value)
    return _noted(found, Interval(max(0.0, low), min(1.0, high)), note)


def arm_ratios(before: Estimate, after: Estimate) -> Arms:
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


def _noted(found: Estimate, interval: Interval, note: str, method: str | None = None) -> Estimate:
    """The estimate with another interval, and a note that says why."""
    how = f"{found.method}; {method or note}"
    return replace(found, interval=interval, method=how, notes=(*found.notes, note))


def _jackknife(without: Floats) -> float:
    """Tukey's variance of a mean over tasks, from its values without each group in turn."""
    means = without.mean(axis=0)
    return float((means.size - 1) / means.size * ((means - means.mean()) ** 2).sum())
