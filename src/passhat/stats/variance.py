"""How much of the spread is skill and how much is luck: variance between and within tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, probability, whole_number
from passhat.dataclass import dataclass, short_dataclass
from passhat.errors import ArgumentError
from passhat.stats import special
from passhat.stats.arguments import Floats, confidence_level, one_of, score_sums
from passhat.stats.estimate import Estimate, Interval, Unavailable

WIDENED_F = "F, widened by a jackknife over tasks"

# Sums of squares of scores in [0, 1] lose about this much to rounding; less than it is zero.
_ROUNDING = 1e-10
_EPSILON = float(np.finfo(float).eps)


@short_dataclass(frozen=True, slots=True, kw_only=True)
class VarianceComponents:
    """The variance of a single run's score, split into tasks (skill) and repetition (luck)."""

    between: float
    within: float
    icc: Estimate
    mean: float
    effective_runs: float
    tasks: int
    runs: int
    method: str = "one-way random effects, n0 for unequal runs"
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        return self.between + self.within

    @property
    def luck(self) -> Estimate:
        """The share of the variance that repetition alone makes: 1 - ICC."""
        return _complement(self.icc)


def variance_components(
    n: ArrayLike,
    total: ArrayLike,
    squares: ArrayLike | None = None,
    *,
    confidence: float = CONFIDENCE,
) -> VarianceComponents | Unavailable:
    """Split the variance of the scores into tasks and luck, from per-task sums.

    `n` counts the runs of each task, `total` sums their scores, `squares` their squared scores
    (left out for pass/fail, where both sums are the passes).

    >>> split = variance_components([4, 4, 4], [4, 2, 0])
    >>> round(split.between, 3), round(split.within, 3)
    (0.222, 0.111)
    >>> variance_components([1, 1], [1, 0])
    Unavailable(reason='one run per task cannot tell skill from luck: run each task at least twice')
    """
    level = confidence_level(confidence)
    table = _anova(n, total, squares)
    if isinstance(table, Unavailable):
        return table
    return VarianceComponents(
        between=max(0.0, table.between),
        within=table.within,
        icc=_icc_of(table, method=WIDENED_F, confidence=level),
        mean=table.mean,
        effective_runs=table.n0,
        tasks=table.tasks,
        runs=table.runs,
        notes=_negative_note(table),
    )


def icc(
    n: ArrayLike,
    total: ArrayLike,
    squares: ArrayLike | None = None,
    *,
    method: str = WIDENED_F,
    confidence: float = CONFIDENCE,
) -> Estimate | Unavailable:
    """ICC(1): the share of a single run's variance that the task explains.

    The F interval (Searle, with n0 for unequal runs) supposes normal effects; with pass/fail data
    and skewed difficulty it covers too little, so by default it is widened to hold the jackknife
    interval of log F as well. `method="F"` gives the textbook interval alone.

    >>> answer = icc([10] * 8, [10, 9, 9, 7, 5, 2, 1, 0])
    >>> round(answer.value, 3), round(answer.interval.low, 3), round(answer.interval.high, 3)
    (0.539, 0.185, 0.841)
    """
    one_of("method", method, ("F", WIDENED_F))
    level = confidence_level(confidence)
    table = _anova(n, total, squares)
    if isinstance(table, Unavailable):
        return table
    return _icc_of(table, method=method, confidence=level)


@overload
def spearman_brown(icc: Estimate, runs: int) -> Estimate: ...
@overload
def spearman_brown(icc: float, runs: int) -> float: ...
def spearman_brown(icc: float | Estimate, runs: int) -> float | Estimate:
    """The reliability of the mean of several runs, from that of one run (Spearman, Brown 1910).

    >>> round(spearman_brown(0.404, 10), 3)
    0.871
    """
    times = whole_number("runs", runs)
    if not isinstance(icc, Estimate):
        return _stepped_up(probability("icc", icc), times)
    bounds = icc.interval and Interval(
        _stepped_up(icc.interval.low, times), _stepped_up(icc.interval.high, times)
    )
    method = f"Spearman-Brown for {times} runs of {icc.method}"
    return replace(icc, value=_stepped_up(icc.value, times), interval=bounds, method=method)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Anova:
    """The one-way analysis of variance, with the sums of every task for the jackknife."""

    n: Floats
    total: Floats
    inside: Floats
    ms_between: float
    within: float
    n0: float

    @property
    def tasks(self) -> int:
        return self.n.size

    @property
    def runs(self) -> int:
        return int(self.n.sum())

    @property
    def mean(self) -> float:
        return float(self.total.sum() / self.n.sum())

    @property
    def between(self) -> float:
        return (self.ms_between - self.within) / self.n0


def _anova(n: ArrayLike, total: ArrayLike, squares: ArrayLike | None) -> _Anova | Unavailable:
    counts, sums, squared = score_sums(n, total, total if squares is None else squares)
    runs = counts.astype(np.float64)
    if (runs < 1).any():
        raise ArgumentError("n", "must be at least 1 run for every task", 0)
    tasks, everything = runs.size, float(runs.sum())
    if tasks < 2:
        return Unavailable(f"variance between tasks needs at least 2 tasks, there is {tasks}")
    if everything == tasks:
        return Unavailable(
            "one run per task cannot tell skill from luck: run each task at least twice"
        )
    inside = np.maximum(squared - sums**2 / runs, 0.0)
    # Each addition may lose half a bit, which adds up over ten million equal scores.
    inside[inside <= (_ROUNDING + _EPSILON * runs) * squared] = 0.0
    centred = sums / runs - sums.sum() / everything
    between = float((runs * centred**2).sum())
    if between <= _ROUNDING * float(squared.sum()) and not inside.any():
        return Unavailable("there is no variance to split: every run scored the same")
    return _Anova(
        n=runs,
        total=sums,
        inside=inside,
        ms_between=between / (tasks - 1),
        within=float(inside.sum()) / (everything - tasks),
        n0=(everything - float((runs**2).sum()) / everything) / (tasks - 1),
    )


def _icc_of(table: _Anova, *, method: str, confidence: float) -> Estimate:
    value = max(0.0, table.between / (table.between + table.within))
    notes = _negative_note(table)
    if table.within == 0:
        notes = (*notes, "no task varied between its runs, so no interval can be given")
        bounds = None
    else:
        low, high = _log_f_interval(table, widened=method != "F", confidence=confidence)
        bounds = Interval(
            min(value, max(0.0, _icc_from_f(np.exp(low), table.n0))),
            max(value, _icc_from_f(np.exp(high), table.n0)),
        )
    return Estimate(
        value=value,
        interval=bounds,
        method=f"ICC(1), {method}",
        confidence=confidence,
        tasks=table.tasks,
        runs=table.runs,
        notes=notes,
    )


def _log_f_interval(table: _Anova, *, widened: bool, confidence: float) -> tuple[float, float]:
    tail = (1 - confidence) / 2
    degrees = table.tasks - 1, table.runs - table.tasks
    with np.errstate(divide="ignore"):  # equal task means: F is 0 and its log -inf
        log_f = float(np.log(table.ms_between / table.within))
    low = log_f - float(np.log(special.fdtri(*degrees, 1 - tail)))
    high = log_f - float(np.log(special.fdtri(*degrees, tail)))
    if not widened:
        return low, high
    # Tasks that are more alike than luck explains count as if luck explained them: else the
    # interval of equal tasks would be the point 0 (power-constrained, Cowan et al. 2011).
    typical = float(np.log(special.fdtri(*degrees, 0.5) / special.fdtri(*degrees, tail)))
    down, up = _jackknife_errors(table)
    quantile = float(special.stdtrit(table.tasks - 1, 1 - tail))
    return min(low, log_f - quantile * down), max(high, typical, log_f + quantile * up)


def _jackknife_errors(table: _Anova) -> tuple[float, float]:
    """The jackknife standard errors of log F over tasks (Arvesen 1969), downward and upward.

    If one task has all of a variance, leaving it out sends log F to infinity, and the error on
    that side is infinite. On the other side, a single task that ever varied is a Poisson count of
    one, whose log has variance 1 (2 / (T - 1) is the variance of the log between tasks).
    """
    tasks = table.tasks
    runs = table.n.sum() - table.n
    total = table.total.sum() - table.total
    spread = table.total**2 / table.n
    between = spread.sum() - spread - total**2 / runs
    inside = table.inside.sum() - table.inside
    freedom = runs - (tasks - 1)
    floor = _ROUNDING * table.runs
    lost_between = tasks < 3 or bool((between <= floor).any())
    lost_inside = bool((freedom <= 0).any() or (inside <= floor).any())
    if lost_between:
        return np.inf, np.inf if lost_inside else 0.0
    if lost_inside:
        return float(np.sqrt(1 + 2 / (tasks - 1))), np.inf
    log_f = np.log(between / (tasks - 2) * freedom / inside)
    error = float(np.sqrt((tasks - 1) / tasks * ((log_f - log_f.mean()) ** 2).sum()))
    return error, error


def _icc_from_f(ratio: float, n0: float) -> float:
    return 1.0 if np.isinf(ratio) else float((ratio - 1) / (ratio + n0 - 1))


def _negative_note(table: _Anova) -> tuple[str, ...]:
    if table.between >= 0:
        return ()
    return (f"the estimate between tasks is negative ({table.between:.3g}), shown as 0",)


def _complement(estimate: Estimate) -> Estimate:
    bounds = estimate.interval
    flipped = bounds and Interval(1 - bounds.high, 1 - bounds.low)
    method = estimate.method.replace("ICC(1)", "1 - ICC(1)")
    return replace(estimate, value=1 - estimate.value, interval=flipped, method=method)


def _stepped_up(reliability: float, runs: int) -> float:
    return runs * reliability / (1 + (runs - 1) * reliability)
