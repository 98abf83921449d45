"""How much of the spread is skill and how much is luck: variance between and within tasks."""

from __future__ import annotations

from dataclasses import replace
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from passhat.defaults import CONFIDENCE
from passhat.errors import ArgumentError
from passhat.fast_dataclass import dataclass, short_dataclass
from passhat.stats import special
from passhat.stats.arguments import (
    Floats,
    confidence_level,
    count_array,
    one_of,
    probability,
    whole_number,
)
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
    """The one-way table, with what the jackknife needs of every task."""

    n: Floats
    total: Floats
    inside: Floats
    ms_between: float
    ms_within: float
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
    def within(self) -> float:
        return self.ms_within

    @property
    def between(self) -> float:
        return (self.ms_between - self.ms_within) / self.n0


def _anova(n: ArrayLike, total: ArrayLike, squares: ArrayLike | None) -> _Anova | Unavailable:
    runs, sums, squared = _checked_sums(n, total, squares)
    tasks, everything = runs.size, float(runs.sum())
    if tasks < 2:
        return Unavailable(f"variance between tasks needs at least 2 tasks, there is {tasks}")
    if everything == tasks:
        return Unavailable(
            "one run per task cannot tell skill from luck: run each task at least twice"
        )
    inside = np.maximum(squared - sums**2 / runs, 0.0)
    # Each addition may lose half a bit: of ten million equal scores that adds up.
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
        ms_within=float(inside.sum()) / (everything - tasks),
        n0=(everything - float((runs**2).sum()) / everything) / (tasks - 1),
    )


def _checked_sums(
    n: ArrayLike, total: ArrayLike, squares: ArrayLike | None
) -> tuple[Floats, Floats, Floats]:
    runs = count_array("n", n).astype(np.float64).ravel()
    sums = np.asarray(total, dtype=np.float64).ravel()
    squared = sums if squares is None else np.asarray(squares, dtype=np.float64).ravel()
    if not runs.size == sums.size == squared.size:
        sizes = (runs.size, sums.size, squared.size)
        raise ArgumentError("n, total and squares", "must have one entry per task", sizes)
    if (runs < 1).any():
        raise ArgumentError("n", "must be at least 1 run for every task", 0)
    slack = _ROUNDING * (1 + runs)
    if not ((sums >= -slack) & (sums <= runs + slack)).all():
        raise ArgumentError("total", "must sum scores in [0, 1] (0 <= total <= n)", sums.tolist())
    if not ((squared <= sums + slack) & (squared * runs >= sums**2 - slack * runs)).all():
        rule = "must sum squared scores in [0, 1] (total^2 / n <= squares <= total)"
        raise ArgumentError("squares", rule, squared.tolist())
    return runs, sums, squared


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
        log_f = float(np.log(table.ms_between / table.ms_within))
    low = log_f - float(np.log(special.fdtri(*degrees, 1 - tail)))
    high = log_f - float(np.log(special.fdtri(*degrees, tail)))
    if not widened:
        return low, high
    # Tasks more alike than luck alone would make them show no more than tasks that are as alike:
    # else the interval of equal ones would be the point 0 (power-constrained, Cowan et al. 2011).
    typical = float(np.log(special.fdtri(*degrees, 0.5) / special.fdtri(*degrees, tail)))
    down, up = _jackknife_errors(table)
    quantile = float(special.stdtrit(table.tasks - 1, 1 - tail))
    return min(low, log_f - quantile * down), max(high, typical, log_f + quantile * up)


def _jackknife_errors(table: _Anova) -> tuple[float, float]:
    """The jackknife standard errors of log F over tasks (Arvesen 1969), downward and upward.

    Where all of a variance hangs on one task, leaving that task out sends log F to infinity, and
    so is the error on that side. On the other, the luck of a single task that ever varied is a
    Poisson count of one, whose log has variance 1 (2 / (T - 1) is that of the log between tasks).
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
