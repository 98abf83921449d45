"""pass@k and pass^k: of a task from its runs and passes, of a stated rate, by other formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.arguments import CONFIDENCE, confidence_level, probability, whole_number
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats, refuse_trials, trial_counts
from passhat.stats.estimate import Estimate, Interval
from passhat.stats.numerics import log_probability
from passhat.stats.sufficient_statistics import Cells, task_counts

# Ratios multiplied at once: bounds the memory of the product, whatever k and the array.
_BLOCK = 1 << 16
# From so many ratios on, a cached table is quicker; up to so many runs it takes 256 KB.
_WORTH_A_TABLE = 1 << 13
_LONGEST_TABLE = 1 << 15


@overload
def pass_hat_k(n: int, c: int, k: int) -> float: ...


@overload
def pass_hat_k(n: ArrayLike, c: ArrayLike, k: int) -> Any: ...


def pass_hat_k(n: ArrayLike, c: ArrayLike | None = None, k: int | None = None) -> Any:
    """The chance that k runs drawn from these n, c of them passed, all pass: C(c, k) / C(n, k).

    Unbiased for p^k (Yao et al. 2024, tau-bench). A float, or an array where n or c is one.

    >>> round(pass_hat_k(10, 8, 3), 4)
    0.4667
    """
    refuse_trials(n, f"report(trials).pass_hat({c if k is None else k})")
    runs, passes, draws = _checked(n, c, k)
    return _plain(share_of_passing_subsets(runs, passes, draws))


@overload
def pass_at_k(n: int, c: int, k: int) -> float: ...


@overload
def pass_at_k(n: ArrayLike, c: ArrayLike, k: int) -> Any: ...


def pass_at_k(n: ArrayLike, c: ArrayLike | None = None, k: int | None = None) -> Any:
    """The chance that k runs drawn from these n hold at least one pass: 1 - C(n - c, k) / C(n, k).

    Unbiased for 1 - (1 - p)^k (Chen et al. 2021, HumanEval).

    >>> round(pass_at_k(10, 8, 2), 4)
    0.9778
    """
    refuse_trials(n, f"report(trials).pass_at({c if k is None else k})")
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
        raise ArgumentError("k", f"must not exceed the {passed.size} trials of the sequence", k)
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
        shares = {k: _table_of_shares(runs, k)[passes] for k in many}
        few = [k for k in ks if k not in shares]
        shares |= dict(zip(few, shares_of_passing_subsets(n, c, few) if few else (), strict=True))
        return np.stack([shares[k] for k in ks])
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
    values = np.full(runs.size, np.nan)
    values[enough] = formula(runs[enough], passes[enough], k)
    return values


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

    >>> pass_hat = pass_hat_k_of_rate(0.8, 3, interval=Interval(0.62, 0.98))
    >>> round(pass_hat.value, 3), round(pass_hat.interval.low, 2), round(pass_hat.interval.high, 2)
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

    >>> pass_at = pass_at_k_of_rate(0.8, 3, interval=Interval(0.62, 0.98))
    >>> round(pass_at.value, 3), round(pass_at.interval.low, 3)
    (0.992, 0.945)
    """
    note = "a suite whose tasks differ has a smaller pass@k than its mean rate would give"
    stated, times = _stated(rate, interval, confidence), whole_number("k", k)
    return _of_rate(stated, times, lambda p: 1 - (1 - p) ** times, f"1 - (1 - p)^{times}", note)


def _checked(n: ArrayLike, c: ArrayLike | None, k: int | None) -> tuple[Counts, Counts, int]:
    # both may be left out only so that trials in the place of counts are answered in words
    if c is None or k is None:
        missing = "c" if c is None else "k"
        raise ArgumentError(missing, "must be given: pass_hat_k(runs, passes, k)", None)
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
        raise ArgumentError("n", "must hold at least one task, each with a trial", runs.tolist())
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


# How far a suite's mean pass^k strays when its runs, or its tasks, are drawn again.
#
# Every function answers for several k at once: variances and means have them along the last axis,
# moments and covariances along the first.

# A moment is read off the tasks with enough runs for it if they are at least this share.
_ENOUGH_TASKS = 0.5

# Moments in memory at once.
_NOISE_BLOCK = 1 << 20
# From this width on, a loop over rows is faster than numpy's accumulate.
_WIDE_ROW = 400
# Up to so many distinct numbers of runs, the chances for several k are in memory together.
_FEW_LENGTHS = 64

Prior = tuple[Floats, Floats]
"""The shapes (a, b) of each suite's beta prior."""
Pairs = Sequence[tuple[int, int]]


def observed_noise_and_values(cells: Cells, ks: Sequence[int]) -> tuple[Floats, Floats]:
    """The variance of the suite's mean pass^k over new runs, and pass^k of each cell.

    The variance comes from the suite's own moments, without a prior. The values have a row for
    each k.
    """
    most, suites = 2 * max(ks), tuple(range(1, cells.tasks.ndim))
    values: list[Floats] = []

    def moments(some: Cells) -> Floats:
        moments = cell_moments(some, most)
        values.append(moments[list(ks)])
        return np.expand_dims(moments, suites)  # they are those of every suite

    totals = _totals(cells, most, moments).sum(axis=-1)
    noise = _mean_noise(cells, ks, _continued(cells, totals)) / cells.task_count
    return np.moveaxis(noise, 0, -1), np.concatenate(values, axis=-1)


def expected_totals(cells: Cells, most: int, prior: Prior) -> Floats:
    """E[p^m] after a task's runs, summed over the tasks of each of `cells.lengths`, for each m."""
    a, b = (shape[..., None] for shape in prior)

    def moments(some: Cells) -> Floats:
        return beta_moments(a + some.c, a + b + _runs(some), most)

    return _totals(cells, most, moments)


def run_covariances(n: Floats, pairs: Pairs, moments: Floats) -> Floats:
    """E[Cov(pass^k, pass^j of the same n runs | p)], where moments[m] = E[p^m]: a row a (k, j).

    A column is a task of n runs, or the sum over several. A k-subset and a j-subset
    of n runs that share m of them all pass with chance p^(k + j - m), and m is hypergeometric: so
    Cov = sum over m of P(m) (p^(k + j - m) - p^(k + j)). Summed by parts, that is the sum over i
    of (p^i - p^(i + 1)) P(m >= k + j - i), every term positive.

    >>> moments = beta_moments(np.array([1.0]), np.array([2.0]), 2)
    >>> float(run_covariances(np.array([10.0]), [(1, 1)], moments)[0, 0])
    0.01666...
    """
    distinct, place = np.unique(n, return_inverse=True)
    falls = moments[:-1] - moments[1:]
    covariances = [
        np.einsum("pij,i...j->p...j", chances[..., place], falls[: chances.shape[1]])
        for chances in _sharing(distinct, pairs)
    ]
    return np.concatenate(covariances)


def beta_moments(a: Floats, whole: Floats, most: int) -> Floats:
    """E[p^m] under Beta(a, whole - a), along the first axis for m = 0 .. most."""
    m = np.arange(float(most)).reshape(-1, *(1 for _ in np.shape(a)))
    moments = np.empty((most + 1, *np.shape(a)))
    np.add(a, m, out=moments[1:])
    moments[1:] *= 1 / (whole + m)
    return _running_product(moments)


def cell_moments(cells: Cells, most: int) -> Floats:
    """C(c, m) / C(n, m), unbiased for p^m: a row for each m = 0 .. most, a column a cell.

    Beyond a cell's runs it is 0: nothing is known there.
    """
    m = np.arange(float(most))[:, None]
    moments = np.empty((most + 1, cells.n.size))
    left = np.subtract(cells.c, m, out=moments[1:])
    np.maximum(left, 0, out=left)
    # If runs have run out so have passes: 0 of 1 is as good as 0 of none.
    left /= np.maximum(_runs(cells) - m, 1)
    return _running_product(moments)


def _runs(cells: Cells) -> Floats:
    """The runs of each cell; one number where all have the same."""
    return cells.lengths if cells.lengths.size == 1 else cells.n


def _continued(cells: Cells, totals: Floats) -> Floats:
    """The suite's mean p^m, along the first axis, from the totals of its cells' moments.

    Where too few tasks have m runs, the last ratio of moments is used again. Moments are
    log-convex, so that bounds p^(2k) from below and the variance from above.
    """
    moments, tasks = totals / cells.task_count, cells.tasks_by_length
    for m in range(int(cells.lengths.min()) + 1, len(totals)):
        count, last = (tasks * (cells.lengths >= m)).sum(axis=-1), moments[m - 1]
        fresh = _ratio(totals[m] / np.maximum(count, 1.0), last)
        enough = count >= _ENOUGH_TASKS * cells.task_count
        repeated = _ratio(last, moments[m - 2])
        moments[m] = last * np.where(enough, np.minimum(fresh, 1.0), repeated)
    return np.asarray(moments)


def _totals(cells: Cells, most: int, moments: Callable[[Cells], Floats]) -> Floats:
    """Moments 0 .. most, summed over the tasks of each of `cells.lengths`.

    Everything computed from moments is linear in them, so their sums are enough: with a block of
    cells at a time, memory is bounded however many tasks there are.
    """
    suites = cells.tasks.shape[:-1]
    totals = np.zeros((most + 1, *suites, cells.lengths.size))
    for some, place in cells.blocks(max(1, _NOISE_BLOCK // totals[..., 0].size)):
        totals[..., place : place + some.lengths.size] += some.by_length(moments(some))
    return totals


def _running_product(rows: Floats) -> Floats:
    """Each row times all before it, in place; the first, whatever it holds, becomes 1."""
    rows[0] = 1
    if rows[0].size < _WIDE_ROW:
        return np.multiply.accumulate(rows, axis=0, out=rows)
    # For wide rows, numpy's accumulate takes twice the time.
    for i in range(1, len(rows)):
        rows[i : i + 1] *= rows[i - 1 : i]
    return rows


def _mean_noise(cells: Cells, ks: Sequence[int], moments: Floats) -> Floats:
    """The mean over tasks of Var(pass^k), along the first axis, all with the same moments."""
    falls, tasks = moments[:-1] - moments[1:], cells.tasks_by_length
    noise = [
        np.einsum("pij,...j,i...->p...", chances, tasks, falls[: chances.shape[1]])
        for chances in _sharing(cells.lengths, [(k, k) for k in ks])
    ]
    return np.asarray(np.concatenate(noise) / cells.task_count)


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros(np.shape(below)), where=below > 0)


def _sharing(n: Floats, pairs: Pairs) -> Iterator[Floats]:
    """`_find_sharing` of all pairs at once, or of one after the other where there are many n."""
    if n.size <= _FEW_LENGTHS:
        yield _sharing_chances(n.tobytes(), tuple(pairs))
    else:
        for pair in pairs:
            yield _find_sharing(n, (pair,))


# A report needs the same ones for each metric and system.
@lru_cache(maxsize=16)
def _sharing_chances(lengths: bytes, pairs: tuple[tuple[int, int], ...]) -> Floats:
    return _find_sharing(np.frombuffer(lengths), pairs)


def _find_sharing(n: Floats, pairs: Pairs) -> Floats:
    """P(a k-subset and a j-subset of n runs share k + j - i or more), for a pair, an i and an n.

    The runs they share are hypergeometric: C(j, m) C(n - j, k - m) / C(n, k), for k <= j <= n.
    """
    # More shared runs than ten standard deviations above the mean need no counting.
    means = ((k, k * j / n) for k, j in pairs)
    most = [min(k, int(np.max(mean + 10 * np.sqrt(mean) * (1 - k / n) + 20))) for k, mean in means]
    m = np.arange(max(most) + 1)[:, None]
    k, j = np.array(pairs).T[..., None, None]
    # The k runs of one subset hold m of the j runs of the other.
    chance = np.exp(log_probability(m, k, n - k, j))
    tails = np.cumsum(chance[:, ::-1], axis=1)[:, ::-1]
    sharing = np.zeros((len(pairs), int((k + j).max()), n.size))
    for row, tail, last, (first, other) in zip(sharing, tails, most, pairs, strict=True):
        row[first + other - last : first + other] = tail[last:0:-1]
    return sharing
