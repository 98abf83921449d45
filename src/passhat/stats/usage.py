"""What trials took and the ways they went: quantiles, ratios of totals, likeness, association."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.arguments import CONFIDENCE, confidence_level, probability
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.stats import special
from passhat.stats.arguments import Floats, float_array
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Estimate, Interval, Unavailable
from passhat.stats.numerics import jackknife_variance
from passhat.stats.population_bounds import ratio_estimate


def quantile_estimate(
    values: ArrayLike, share: float, *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """The value below which `share` of the trials fall, with its order-statistics interval.

    Thompson (1936): the ranks between which a binomial count falls. It supposes independent
    draws; with the same runs for every task it errs on the wide side.

    >>> answer = quantile_estimate(range(1, 101), 0.5)
    >>> answer.value, answer.interval
    (50.5, Interval(low=40.0, high=61.0))
    """
    level = confidence_level(confidence)
    target = probability("share", share, open_ends=True)
    known = float_array("values", values).ravel()
    known = known[~np.isnan(known)]
    if known.size == 0:
        return Unavailable("no trial recorded it")
    low, high = _ranks(known.size, target, (1 - level) / 2)
    enough = low >= 1 and high <= known.size
    # Only these places are read: the rest need not be in order.
    below = int(target * (known.size - 1))
    places = {below, min(below + 1, known.size - 1), *((low - 1, high - 1) if enough else ())}
    known = np.partition(known, sorted(places))
    return Estimate(
        value=_between(known, target),
        interval=Interval(float(known[low - 1]), float(known[high - 1])) if enough else None,
        method="order statistics",
        confidence=level,
        scope=THIS_SUITE,
        runs=int(known.size),
        notes=() if enough else (f"{known.size} trials are too few for an interval",),
    )


def _between(ordered: Floats, share: float) -> float:
    """The quantile between the two nearest values: np.quantile of one number, much faster."""
    place = share * (ordered.size - 1)
    below = int(place)
    above = min(below + 1, ordered.size - 1)
    return float(ordered[below] + (place - below) * (ordered[above] - ordered[below]))


def _ranks(size: int, share: float, tail: float) -> tuple[int, int]:
    """Ranks l < u with P(B < l) <= tail and P(B >= u) <= tail, B binomial(size, share)."""
    ranks = range(size + 2)
    low = bisect_right(ranks, tail, key=lambda rank: _below(rank, size, share)) - 1
    high = bisect_left(ranks, True, key=lambda rank: 1 - _below(rank, size, share) <= tail)
    return low, high


def _below(rank: int, size: int, share: float) -> float:
    """P(B < rank)."""
    if rank <= 0:
        return 0.0
    return 1.0 if rank > size else float(special.bdtr(rank - 1, size, share))


# A correlation within tasks needs this many tasks that both passed and failed.
FEWEST_TASKS = 3

# An interval that reaches a million times further than its value says nothing.
_WIDEST = float(np.log(1e6))
# A relative error this small is rounding: the value did not vary.
_ROUNDING = 1e-12


def ratio_of_totals(
    numerator: ArrayLike,
    denominator: ArrayLike,
    *,
    what: str = "the ratio",
    confidence: float = CONFIDENCE,
) -> Estimate | Unavailable:
    """Sum over sum, such as cost per success, with tasks as the sampled units.

    The ratio estimator of Cochran (1977, chapter 6), with t on tasks - 1 degrees of freedom on
    the log scale, because what is spent is positive and skewed.

    >>> answer = ratio_of_totals([10.0, 14.0, 12.0, 11.0], [5, 7, 4, 6])
    >>> round(answer.value, 3), round(answer.interval.low, 2), round(answer.interval.high, 2)
    (2.136, 1.55, 2.94)
    >>> ratio_of_totals([3.0, 4.0], [0, 0], what="cost per success")
    Unavailable(reason='cost per success has no value: nothing to divide by')
    """
    top, bottom = _columns(numerator, denominator)
    level = confidence_level(confidence)
    if not bottom.sum() > 0:
        return Unavailable(f"{what} has no value: nothing to divide by")
    value = float(top.sum() / bottom.sum())
    error = _root_of_squares((top - value * bottom) / bottom.sum())
    interval = _log_interval(value, error, top.size, level)
    return Estimate(
        value=value,
        interval=interval,
        method="ratio of totals over tasks, log-t",
        confidence=level,
        scope=TASKS_LIKE_THESE,
        tasks=top.size,
        notes=() if interval else _why_no_interval(value, error, top.size),
    )


def difference_of_ratios(
    numerator: ArrayLike,
    denominator: ArrayLike,
    other_numerator: ArrayLike,
    other_denominator: ArrayLike,
    *,
    confidence: float = CONFIDENCE,
) -> Estimate | Unavailable:
    """The first ratio of totals minus the other, over the same tasks, so that pairing counts.

    >>> difference_of_ratios([4.0, 6.0], [2, 2], [1.0, 1.0], [1, 1]).value
    1.5
    """
    top, bottom = _columns(numerator, denominator)
    other_top, other_bottom = _columns(other_numerator, other_denominator)
    level = confidence_level(confidence)
    if not (bottom.sum() > 0 and other_bottom.sum() > 0):
        return Unavailable("a difference needs trials on both sides")
    value, other = top.sum() / bottom.sum(), other_top.sum() / other_bottom.sum()
    residual = (top - value * bottom) / bottom.sum()
    residual -= (other_top - other * other_bottom) / other_bottom.sum()
    error, tasks = _root_of_squares(residual), top.size
    difference = float(value - other)
    margin = _student(tasks, level) * error if tasks > 1 else 0.0
    interval = Interval(difference - margin, difference + margin) if margin > 0 else None
    return Estimate(
        value=difference,
        interval=interval,
        method="difference of ratios over tasks, t",
        confidence=level,
        scope=TASKS_LIKE_THESE,
        tasks=tasks,
        notes=() if interval else _why_no_interval(1.0, error, tasks),
    )


def smaller_ratio_p(
    numerator: ArrayLike,
    denominator: ArrayLike,
    other_numerator: ArrayLike,
    other_denominator: ArrayLike,
) -> float:
    """The one-sided p-value that the first ratio of totals is not below the other.

    Student's t on the difference of logarithms over the same tasks, so that pairing counts: the
    test that belongs to the interval of `ratio_of_totals`. 1 where it cannot be known.

    >>> cheap, dear = [1.0, 1.2, 0.9, 1.1], [2.0, 2.6, 1.7, 2.2]
    >>> round(smaller_ratio_p(cheap, [1] * 4, dear, [1] * 4), 5)
    8e-05
    """
    sides = _columns(numerator, denominator), _columns(other_numerator, other_denominator)
    totals = [(top.sum(), bottom.sum()) for top, bottom in sides]
    tasks = sides[0][0].size
    if tasks < FEWEST_TASKS or min(min(pair) for pair in totals) <= 0:
        return 1.0
    shares = [
        top / all_top - bottom / all_bottom
        for (top, bottom), (all_top, all_bottom) in zip(sides, totals, strict=True)
    ]
    error = _root_of_squares(shares[0] - shares[1])
    logs = [math.log(top / bottom) for top, bottom in totals]
    if error <= _ROUNDING:
        return 1.0  # the same in every task: nothing says how it varies
    return float(special.stdtr(tasks - 1, (logs[0] - logs[1]) / error))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeSums:
    """Count, total and sum of squares of one feature per task, of passed and of failed trials."""

    passed_count: NDArray[np.int64]
    failed_count: NDArray[np.int64]
    passed_total: Floats
    failed_total: Floats
    squares: Floats


def association_with_passing(
    sums: OutcomeSums, *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """The correlation of a feature with passing inside tasks: do passes of a task take more?

    Task means are removed from both sides, so it does not matter that hard tasks take longer. The
    interval is a jackknife over tasks of Fisher's z.
    """
    level = confidence_level(confidence)
    both = (sums.passed_count > 0) & (sums.failed_count > 0)
    parts = _inside_tasks(sums)[:, both]
    tasks = int(np.count_nonzero(both))
    if tasks < FEWEST_TASKS:
        return Unavailable(
            f"association with passing needs {FEWEST_TASKS} tasks that both passed and failed, "
            f"there {'is' if tasks == 1 else 'are'} {tasks}"
        )
    value = float(_correlation(parts.sum(axis=1)))
    if np.isnan(value):
        return Unavailable("association with passing has no value: the feature never varied")
    return Estimate(
        value=value,
        interval=_jackknife_z(parts, value, level),
        method="correlation inside tasks, jackknife of Fisher's z",
        confidence=level,
        scope=TASKS_LIKE_THESE,
        tasks=tasks,
        notes=() if abs(value) < 1 else ("a perfect correlation has no interval",),
    )


def _columns(numerator: ArrayLike, denominator: ArrayLike) -> tuple[Floats, Floats]:
    top = float_array("numerator", numerator).ravel()
    bottom = float_array("denominator", denominator).ravel()
    if top.size != bottom.size or top.size == 0:
        raise ArgumentError(
            "numerator and denominator", "must have one entry per task", (top.size, bottom.size)
        )
    bad = ~(np.isfinite(top) & np.isfinite(bottom) & (bottom >= 0))
    if bad.any():
        came = float(top[bad][0]), float(bottom[bad][0])
        rule = "must be finite, and the denominator >= 0"
        raise ArgumentError("numerator and denominator", rule, came)
    return top, bottom


def _root_of_squares(residuals: Floats) -> float:
    """The standard error of a sum of residuals over tasks."""
    tasks, largest = residuals.size, float(np.abs(residuals).max())
    if largest == 0:
        return 0.0
    squares = float(((residuals / largest) ** 2).sum())  # unscaled, 1e200 would overflow
    return largest * math.sqrt(squares * tasks / max(1, tasks - 1))


def _log_interval(value: float, error: float, tasks: int, confidence: float) -> Interval | None:
    if tasks < 2 or value <= 0 or error <= _ROUNDING * value:
        return None
    spread = _student(tasks, confidence) * (error / value)
    if spread > _WIDEST:
        return None
    return Interval(value * float(np.exp(-spread)), value * float(np.exp(spread)))


def _student(tasks: int, confidence: float) -> float:
    return float(special.stdtrit(tasks - 1, (1 + confidence) / 2))


def _why_no_interval(value: float, error: float, tasks: int) -> tuple[str, ...]:
    if tasks < 2:
        return ("one task gives no interval over tasks",)
    if value <= 0 or error <= _ROUNDING * value:
        return ("every task gives the same value: no interval",)
    return ("too few tasks, which differ too much: no interval",)


def _inside_tasks(sums: OutcomeSums) -> Floats:
    """Rows: covariance, variance of the feature, variance of passing; columns: tasks."""
    passed, failed = sums.passed_count.astype(np.float64), sums.failed_count.astype(np.float64)
    runs = np.maximum(passed + failed, 1.0)
    total = sums.passed_total + sums.failed_total
    covariance = sums.passed_total - passed * total / runs
    spread = np.maximum(sums.squares - total**2 / runs, 0.0)
    spread[spread <= 1e-12 * sums.squares] = 0.0
    return np.stack((covariance, spread, passed * failed / runs))


def _correlation(parts: Floats) -> Floats:
    scale = np.sqrt(parts[1] * parts[2])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.clip(np.where(scale > 0, parts[0] / scale, np.nan), -1, 1))


def _jackknife_z(parts: Floats, value: float, confidence: float) -> Interval | None:
    tasks = parts.shape[1]
    left_out = _correlation(parts.sum(axis=1, keepdims=True) - parts)
    if abs(value) >= 1 or np.isnan(left_out).any() or (np.abs(left_out) >= 1).any():
        return None
    margin = _student(tasks, confidence) * math.sqrt(jackknife_variance(np.arctanh(left_out)))
    centre = np.arctanh(value)
    return Interval(float(np.tanh(centre - margin)), float(np.tanh(centre + margin)))


# How alike two trials of a task are, in what they took and in the steps they went.

MOST_COMPARED = 10
"""Trials of a task whose paths are compared pair by pair: 45 pairs say enough of one task."""


def amount_likeness(values: ArrayLike) -> float:
    """The smaller over the larger of two amounts, over all pairs; two of nothing are alike.

    >>> amount_likeness([2, 1]), amount_likeness([0, 0, 3])
    (0.5, 0.3333333333333333)
    """
    amounts = np.sort(np.asarray(values, dtype=np.float64))
    # Each amount is the larger one of its pairs with those before it.
    before = np.cumsum(amounts) - amounts
    alike = np.divide(before, amounts, out=np.arange(amounts.size) * 1.0, where=amounts > 0)
    return float(alike.sum() / math.comb(amounts.size, 2))


def path_likeness(first: Sequence[str], other: Sequence[str]) -> float:
    """One minus the share of steps to change to turn one path into the other (Levenshtein 1966).

    >>> path_likeness("abcd", "abd")
    0.75
    """
    if first == other:
        return 1.0
    if not first or not other:
        return 0.0
    # Myers (1999) in the form of Hyyro (2003): the bits of one integer are where the distance rises
    # along a column of the table, those of another where it falls, so that a whole column is a
    # dozen operations however long the path.
    places: dict[str, int] = {}
    for place, step in enumerate(first):
        places[step] = places.get(step, 0) | 1 << place
    column, last = (1 << len(first)) - 1, 1 << (len(first) - 1)
    rises, falls, distance = column, 0, len(first)
    for step in other:
        match = places.get(step, 0) | falls
        diagonal = (((match & rises) + rises) ^ rises) | match
        right = falls | (column & ~(diagonal | rises))
        left = diagonal & rises
        distance += (right & last > 0) - (left & last > 0)
        right = right << 1 | 1
        rises = column & (left << 1 | ~(diagonal | right))
        falls = column & right & diagonal
    return 1 - distance / max(len(first), len(other))


def mix_likeness(first: Sequence[str], other: Sequence[str]) -> float:
    """One minus the Jensen-Shannon divergence, in bits, of the shares of each step (Lin 1991).

    >>> mix_likeness("ab", "ba"), mix_likeness("a", "b")
    (1.0, 0.0)
    """
    here, there = Counter(first), Counter(other)
    divergence = 0.0
    for step in here | there:
        share, opposite = here[step] / len(first), there[step] / len(other)
        for own in (share, opposite):
            divergence += own * math.log2(2 * own / (share + opposite)) if own else 0.0
    return min(1.0, max(0.0, 1 - divergence / 2))


def mean_over_pairs(
    sums: ArrayLike, pairs: ArrayLike, *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """The mean of a likeness in [0, 1] over pairs of trials, from each task's sum and pairs.

    A task with more pairs counts for more, so it is about two trials that can be compared at all
    (two that both pass), however many there are of each task.
    """
    level = confidence_level(confidence)
    total, count = (np.asarray(column, dtype=np.float64) for column in (sums, pairs))
    total, count = total[count > 0], count[count > 0]
    if count.size < 2:
        return Unavailable("it needs two tasks with two trials that can be compared")
    method = "Dirichlet over tasks, pairs of trials"
    return ratio_estimate(total, count, confidence=level, method=method)
