"""pass@k and pass^k: of a task from its runs and passes, of a stated rate, by other formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.arguments import CONFIDENCE, probability, whole_number
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats, confidence_level, trial_counts
from passhat.stats.cells import task_counts
from passhat.stats.estimate import Estimate, Interval

# Ratios multiplied at once: bounds the memory of the product, whatever k and the array.
_BLOCK = 1 << 16
# From so many ratios on, a cached table is quicker; up to so many runs it takes 256 KB.
_WORTH_A_TABLE = 1 << 13
_LONGEST_TABLE = 1 << 15


@overload
def pass_hat_k(n: int, c: int, k: int) -> float: ...


@overload
def pass_hat_k(n: ArrayLike, c: ArrayLike, k: int) -> Any: ...


def pass_hat_k(n: ArrayLike, c: ArrayLike, k: int) -> Any:
    """The chance that k runs drawn from these n, c of them passed, all pass: C(c, k) / C(n, k).

    Unbiased for p^k (Yao et al. 2024, tau-bench). A float, or an array where n or c is one.

    >>> round(pass_hat_k(10, 8, 3), 4)
    0.4667
    """
    runs, passes, draws = _checked(n, c, k)
    return _plain(share_of_passing_subsets(runs, passes, draws))


@overload
def pass_at_k(n: int, c: int, k: int) -> float: ...


@overload
def pass_at_k(n: ArrayLike, c: ArrayLike, k: int) -> Any: ...


def pass_at_k(n: ArrayLike, c: ArrayLike, k: int) -> Any:
    """The chance that k runs drawn from these n hold at least one pass: 1 - C(n - c, k) / C(n, k).

    Unbiased for 1 - (1 - p)^k (Chen et al. 2021, HumanEval).

    >>> round(pass_at_k(10, 8, 2), 4)
    0.9778
    """
    runs, passes, draws = _checked(n, c, k)
    return _plain(1.0 - share_of_passing_subsets(runs, runs - passes, draws))


def plug_in_pass_hat_k(n: ArrayLike, c: ArrayLike, k: int) -> Estimate:
    """The mean over tasks of (c/n)^k: biased upward; only to reproduce others' numbers.

    >>> plug_in_pass_hat_k([5, 5], [4, 5], 5).method
    'plug-in: mean of (c/n)^k, biased'
    """
    runs, passes, draws = _suite_counts(n, c, k)
    value = float(np.mean((passes / runs) ** draws))
    return _alternative(value, "plug-in: mean of (c/n)^k, biased", runs)


def pooled_pass_hat_k(n: ArrayLike, c: ArrayLike, k: int) -> Estimate:
    """The pooled pass rate to the power k: ignores that tasks differ; only to reproduce others.

    >>> pooled_pass_hat_k([5, 5], [0, 5], 2).value
    0.25
    """
    runs, passes, draws = _suite_counts(n, c, k)
    value = float((passes.sum() / runs.sum()) ** draws)
    return _alternative(value, "pooled: (all passes / all runs)^k, blind to tasks", runs)


def window_pass_hat_k(outcomes: ArrayLike, k: int) -> Estimate:
    """The share of windows of k consecutive runs that all pass; depends on the order of the runs.

    >>> window_pass_hat_k([1, 1, 0, 1, 1, 1, 0, 1, 1, 1], 3).value
    0.25
    """
    passed, draws = _outcome_sequence(outcomes), whole_number("k", k)
    if draws > passed.size:
        raise ArgumentError("k", f"must not exceed the {passed.size} runs of the sequence", k)
    windows = np.lib.stride_tricks.sliding_window_view(passed, draws)
    value = float(windows.all(axis=1).mean())
    return _alternative(
        value, "sliding windows: depends on the order of runs", np.array([passed.size])
    )


def share_of_passing_subsets(n: NDArray[Any], c: NDArray[Any], k: int) -> Floats:
    """C(c, k) / C(n, k) for counts already checked (n >= k).

    A product of ratios: exact to rounding for any n, where the binomials would overflow.
    """
    if _tabled(n, c, k):
        return _table_of_shares(int(n.flat[0]), k)[c.astype(np.intp)]
    share = np.ones(np.shape(c))
    block = max(1, _BLOCK // max(1, share.size))
    for start in range(0, k, block):
        j = np.arange(start, min(k, start + block))
        ratios = np.maximum(c[..., None] - j, 0) / (n[..., None] - j)
        share *= ratios.prod(axis=-1)
    return share


def shares_of_passing_subsets(n: NDArray[Any], c: NDArray[Any], ks: Sequence[int]) -> Floats:
    """The same for several k, a row for each: one running product serves them all."""
    most = max(ks)
    if _tabled(n, c, most):
        many = [k for k in ks if c.size * k >= _WORTH_A_TABLE]
        runs, passes = int(n.flat[0]), c.astype(np.intp)
        found = {k: _table_of_shares(runs, k)[passes] for k in many}
        few = [k for k in ks if k not in found]
        found |= dict(zip(few, shares_of_passing_subsets(n, c, few) if few else (), strict=True))
        return np.stack([found[k] for k in ks])
    if c.size * most > _BLOCK:
        return np.stack([share_of_passing_subsets(n, c, k) for k in ks])
    j = np.arange(most)[:, None]
    # Beyond the last run there are no passes either: 0 of 1 gives the same as 0 of 0 should.
    ratios = np.maximum(c - j, 0) / np.maximum(n - j, 1)
    return np.asarray(np.multiply.accumulate(ratios, axis=0)[np.array(ks) - 1])


def task_values(runs: Counts, passes: Counts, k: int, *, metric: str = "pass^k") -> Floats:
    """pass^k (or pass@k) of each task, nan if it has too few runs: input of pairs and ranks.

    >>> task_values(np.array([4, 1, 2]), np.array([3, 1, 2]), 2).tolist()
    [0.5, nan, 1.0]
    """
    formula = pass_at_k if metric == "pass@k" else pass_hat_k
    enough = runs >= k
    found = np.full(runs.size, np.nan)
    found[enough] = formula(runs[enough], passes[enough], k)
    return found


def pass_hat_k_of_rate(
    rate: float | Estimate,
    k: int,
    *,
    interval: Interval | None = None,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """p^k: the chance that k independent attempts at the same pass rate all succeed.

    p^k grows with p, so the ends of the interval of p become those of p^k, at the same confidence.
    `interval` belongs to a plain number; an Estimate has its own.

    >>> found = pass_hat_k_of_rate(0.8, 3, interval=Interval(0.62, 0.98))
    >>> round(found.value, 3), round(found.interval.low, 2), round(found.interval.high, 2)
    (0.512, 0.24, 0.94)
    """
    note = "a suite whose tasks differ has a larger pass^k than its mean rate to the power of k"
    stated, times = _stated(rate, interval, confidence), whole_number("k", k)
    return _of_rate(stated, times, lambda p: p**times, f"p^{times}", note)


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
    note = "a suite whose tasks differ has a smaller pass@k than its mean rate would give"
    stated, times = _stated(rate, interval, confidence), whole_number("k", k)
    return _of_rate(stated, times, lambda p: 1 - (1 - p) ** times, f"1 - (1 - p)^{times}", note)


def _checked(n: ArrayLike, c: ArrayLike, k: int) -> tuple[Counts, Counts, int]:
    runs, passes = trial_counts(n, c)
    draws = whole_number("k", k)
    few = runs < draws
    if few.any():
        raise ArgumentError("n", f"must be at least k = {draws}", int(runs[few].flat[0]))
    return runs, passes, draws


def _tabled(n: NDArray[Any], c: NDArray[Any], k: int) -> bool:
    """Whether a table of every count is quicker: many counts of equal, whole runs."""
    if c.size * k < _WORTH_A_TABLE:
        return False
    runs = n.flat[0]
    return bool(runs <= _LONGEST_TABLE and (n == runs).all() and not (c % 1).any())


@lru_cache(maxsize=64)
def _table_of_shares(n: int, k: int) -> Floats:
    """C(c, k) / C(n, k) for c = 0 .. n: each is the one above it times (c - k) / c."""
    above = np.arange(float(n), 0.0, -1)
    table = np.concatenate(([1.0], np.cumprod(np.maximum(above - k, 0) / above)))[::-1].copy()
    table.flags.writeable = False
    return table


def _plain(values: Floats) -> Any:
    return float(values) if values.ndim == 0 else values


def _suite_counts(n: ArrayLike, c: ArrayLike, k: int) -> tuple[Counts, Counts, int]:
    runs, passes = task_counts(n, c)
    if runs.size == 0 or not runs.all():
        raise ArgumentError("n", "must hold at least one task, each with a run", runs.tolist())
    return runs, passes, whole_number("k", k)


def _outcome_sequence(outcomes: ArrayLike) -> NDArray[np.bool_]:
    sequence = np.asarray(outcomes)
    if sequence.ndim != 1 or not np.isin(sequence, (0, 1)).all():
        raise ArgumentError(
            "outcomes", "must be a sequence of passes (1) and failures (0)", outcomes
        )
    return sequence.astype(bool)


def _alternative(value: float, method: str, runs: Counts) -> Estimate:
    return Estimate(
        value=value,
        interval=None,
        method=method,
        confidence=CONFIDENCE,
        tasks=int(runs.size),
        runs=int(runs.sum()),
        notes=("computed to reproduce another tool's number: no interval is offered for it",),
    )


def _stated(rate: float | Estimate, interval: Interval | None, confidence: float) -> Estimate:
    """The rate as an Estimate, checked to lie between 0 and 1 and inside its interval."""
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


def _of_rate(
    stated: Estimate, k: int, chance: Callable[[float], float], formula: str, note: str
) -> Estimate:
    ends = stated.interval
    return replace(
        stated,
        value=chance(stated.value),
        interval=ends and Interval(chance(ends.low), chance(ends.high)),
        method=f"{formula} of one rate for all attempts ({stated.method})",
        notes=(*stated.notes, note) if k > 1 else stated.notes,
    )
