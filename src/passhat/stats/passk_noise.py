"""How far a suite's mean pass^k strays when its runs, or its tasks, are drawn again.

Every function answers for several k at once: the last axis of what it returns runs over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells
from passhat.stats.hypergeometric import log_probability

# A moment is read off the tasks with enough runs for it if they are at least this share.
_ENOUGH_TASKS = 0.5
# Moments held at once.
_BLOCK = 1 << 20

Prior = tuple[Floats, Floats]
"""The shapes (a, b) of each suite's beta prior."""


def expected_noise_and_mean(cells: Cells, ks: Sequence[int], prior: Prior) -> tuple[Floats, Floats]:
    """What a Beta(a, b) prior expects after the suite's runs.

    That is the variance of the suite's mean pass^k over new runs, and the suite's mean p^k.
    """
    totals, tasks = expected_totals(cells, 2 * max(ks), prior), cells.task_count[..., None]
    noise = run_covariances(cells.lengths, [(k, k) for k in ks], totals)
    variance = np.stack([one.sum(axis=-1) for one in noise], axis=-1)
    return variance / tasks**2, np.stack([totals[k].sum(axis=-1) for k in ks], axis=-1) / tasks


def observed_noise(cells: Cells, ks: Sequence[int]) -> Floats:
    """The same variance from the suite's own moments, without a prior."""
    moments = _observed_moments(cells, 2 * max(ks))
    per_task = [_mean_over_overlaps(cells, k, moments - moments[2 * k]) for k in ks]
    return np.stack(per_task, axis=-1) / cells.task_count[..., None]


def expected_totals(cells: Cells, most: int, prior: Prior) -> Floats:
    """E[p^m] after a task's runs, summed over the tasks of each of `cells.lengths`, for each m."""
    a, b = (shape[..., None] for shape in prior)

    def moments(some: Cells) -> Floats:
        return beta_moments(a + some.c, a + b + _runs(some), most)

    return _totals(cells, most, moments)


def run_covariances(n: Floats, pairs: Sequence[tuple[int, int]], moments: Floats) -> list[Floats]:
    """E[Cov(pass^k, pass^j of the same n runs | p)], where moments[m] = E[p^m], for k <= j.

    A k-subset and a j-subset of n runs that share m of them all pass with chance p^(k + j - m),
    and m is hypergeometric: so Cov = sum over m of P(m) (p^(k + j - m) - p^(k + j)), every term
    positive. A column stands for a task of n runs, or for the sum over several tasks.

    >>> moments = beta_moments(np.array([1.0]), np.array([2.0]), 2)
    >>> [float(found[0]) for found in run_covariances(np.array([10.0]), [(1, 1)], moments)]
    [0.01666...]
    """

    def covariance(k: int, j: int) -> Floats:
        shared, chance = overlaps(n, k, j)
        gain = moments[k + j - shared[-1] : k + j - shared[0] + 1] - moments[k + j]
        return np.asarray(np.einsum("mj,m...j->...j", chance[::-1], gain))

    return [covariance(*pair) for pair in pairs]


def value_variance(cells: Cells, ks: Sequence[int], prior: Prior) -> Floats:
    """The variance of a task's pass^k, over tasks drawn from Beta(a, b) and over their runs."""
    a, b = prior
    moments = beta_moments(a, a + b, 2 * max(ks))
    variance = [_mean_over_overlaps(cells, k, moments) - moments[k] ** 2 for k in ks]
    return np.asarray(np.maximum(np.stack(variance, axis=-1), 0.0))


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
    # Where runs have run out so have passes: 0 of 1 is as good as 0 of none.
    left /= np.maximum(_runs(cells) - m, 1)
    return _running_product(moments)


def overlaps(n: Floats, k: int, j: int) -> tuple[NDArray[np.intp], Floats]:
    """The likely numbers m of runs that a k-subset and a j-subset of n share, with their chances.

    Hypergeometric: C(j, m) C(n - j, k - m) / C(n, k), for k <= j <= n. A row an m, a column an n.
    """
    if n.size == 1:
        return _remembered_overlaps(float(n[0]), k, j)
    distinct, place = np.unique(n, return_inverse=True)
    shared, chance = _overlaps(distinct, k, j)
    return shared, chance[:, place]


def _runs(cells: Cells) -> Floats:
    """The runs of each cell; one number where all have the same."""
    return cells.lengths if cells.lengths.size == 1 else cells.n


def _observed_moments(cells: Cells, most: int) -> Floats:
    """The suite's mean p^m, along the first axis, by its cells' moments.

    Where too few tasks have m runs, moments are log-convex: going on with the last ratio bounds
    p^(2k) from below and the variance from above.
    """
    suites = tuple(range(1, cells.tasks.ndim))

    def shared(some: Cells) -> Floats:
        return np.expand_dims(cell_moments(some, most), suites)

    totals = _totals(cells, most, shared).sum(axis=-1)
    moments, tasks = totals / cells.task_count, cells.tasks_by_length
    for m in range(int(cells.lengths.min()) + 1, most + 1):
        count, last = (tasks * (cells.lengths >= m)).sum(axis=-1), moments[m - 1]
        fresh = _ratio(totals[m] / np.maximum(count, 1.0), last)
        enough = count >= _ENOUGH_TASKS * cells.task_count
        going_on = _ratio(last, moments[m - 2])
        moments[m] = last * np.where(enough, np.minimum(fresh, 1.0), going_on)
    return np.asarray(moments)


def _totals(cells: Cells, most: int, moments: Callable[[Cells], Floats]) -> Floats:
    """Moments 0 .. most, summed over the tasks of each of `cells.lengths`.

    All that is asked of moments is linear in them, so nothing else of them is kept: with a block
    of cells at a time, memory is bounded however many tasks there are.
    """
    suites = cells.tasks.shape[:-1]
    totals = np.zeros((most + 1, *suites, cells.lengths.size))
    for some, place in cells.blocks(max(1, _BLOCK // totals[..., 0].size)):
        totals[..., place : place + some.lengths.size] += some.by_length(moments(some))
    return totals


def _running_product(rows: Floats) -> Floats:
    """Each row times all before it, in place; the first, whatever it holds, becomes 1."""
    rows[0] = 1
    # Row by row: numpy's cumprod along the first axis takes twice the time.
    for i in range(1, len(rows)):
        rows[i : i + 1] *= rows[i - 1 : i]
    return rows


def _mean_over_overlaps(cells: Cells, k: int, moments: Floats) -> Floats:
    """The mean over tasks of `moments[2k - m]`, m the runs that two k-subsets share."""
    shared, chance = overlaps(cells.lengths, k, k)
    weights = np.moveaxis(cells.tasks_by_length @ chance.T, -1, 0)
    return np.asarray((weights * moments[2 * k - shared]).sum(axis=0) / cells.task_count)


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros(np.shape(below)), where=below > 0)


# A report asks for the same chances once a number, scope and curve.
@lru_cache(maxsize=512)
def _remembered_overlaps(n: float, k: int, j: int) -> tuple[NDArray[np.intp], Floats]:
    return _overlaps(np.array([n]), k, j)


def _overlaps(n: Floats, k: int, j: int) -> tuple[NDArray[np.intp], Floats]:
    shared = _likely_overlaps(n, k, j)
    # The k runs of one subset hold m of the j runs of the other.
    return shared, np.exp(log_probability(shared[:, None], k, n - k, j))


def _likely_overlaps(n: Floats, k: int, j: int) -> NDArray[np.intp]:
    """The numbers of shared runs that can happen: within ten standard deviations of the mean."""
    mean = k * j / n
    reach = 10 * np.sqrt(mean) * (1 - k / n) + 20
    return np.arange(max(0, int(np.min(mean - reach))), min(k, int(np.max(mean + reach))) + 1)
