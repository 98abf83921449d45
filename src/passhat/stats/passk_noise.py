"""How far a suite's mean pass^k strays when its runs, or its tasks, are drawn again.

Every function answers for several k at once: the last axis of what it returns runs over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells
from passhat.stats.hypergeometric import log_probability

# A moment is read off the tasks with enough runs for it if they are at least this share.
_ENOUGH_TASKS = 0.5


def expected_noise_and_mean(
    cells: Cells, ks: Sequence[int], a: Floats, b: Floats
) -> tuple[Floats, Floats]:
    """What a Beta(a, b) prior expects after the suite's runs.

    That is the variance of the suite's mean pass^k over new runs, and the suite's mean p^k.
    """
    moments = posterior_moments(cells, a[..., None], b[..., None], 2 * max(ks))
    per_task = run_covariances(cells.n, [(k, k) for k in ks], moments)
    noise = np.stack([cells.mean(one) for one in per_task], axis=-1) / cells.task_count[..., None]
    return noise, np.stack([cells.mean(moments[k]) for k in ks], axis=-1)


def observed_noise(cells: Cells, ks: Sequence[int], values: Floats) -> Floats:
    """The same variance from the suite's own moments (`cell_moments`), without a prior."""
    moments = _observed_moments(cells, values)
    per_task = [_mean_over_overlaps(cells, k, moments - moments[2 * k]) for k in ks]
    return np.stack(per_task, axis=-1) / cells.task_count[..., None]


def run_covariances(n: Floats, pairs: Sequence[tuple[int, int]], moments: Floats) -> list[Floats]:
    """E[Cov(pass^k, pass^j of the same n runs | p)], where moments[m] = E[p^m], for k <= j.

    A k-subset and a j-subset of n runs that share m of them all pass with chance p^(k + j - m),
    and m is hypergeometric: so Cov = sum over m of P(m) (p^(k + j - m) - p^(k + j)), every term
    positive.

    >>> moments = beta_moments(np.array([1.0]), np.array([2.0]), 2)
    >>> [float(found[0]) for found in run_covariances(np.array([10.0]), [(1, 1)], moments)]
    [0.01666...]
    """
    alike = bool((n == n[0]).all())

    def covariance(k: int, j: int) -> Floats:
        shared, chance = overlaps(n, k, j)
        gain = moments[k + j - shared[-1] : k + j - shared[0] + 1] - moments[k + j]
        if alike:
            return np.asarray(np.tensordot(chance[::-1, 0], gain, axes=1))
        return np.asarray(np.einsum("mj,m...j->...j", chance[::-1], gain))

    return [covariance(*pair) for pair in pairs]


def value_variance(cells: Cells, ks: Sequence[int], a: Floats, b: Floats) -> Floats:
    """The variance of a task's pass^k, over tasks drawn from Beta(a, b) and over their runs."""
    moments = beta_moments(a, a + b, 2 * max(ks))
    variance = [_mean_over_overlaps(cells, k, moments) - moments[k] ** 2 for k in ks]
    return np.asarray(np.maximum(np.stack(variance, axis=-1), 0.0))


def posterior_moments(cells: Cells, a: Floats, b: Floats, most: int) -> Floats:
    """`beta_moments` of each cell's p after its runs, under a Beta(a, b) prior."""
    n = cells.n[:1] if (cells.n == cells.n[0]).all() else cells.n
    return beta_moments(a + cells.c, a + b + n, most)


def beta_moments(a: Floats, whole: Floats, most: int) -> Floats:
    """E[p^m] under Beta(a, whole - a), along the first axis for m = 0 .. most."""
    j = np.arange(float(most)).reshape(-1, *(1 for _ in np.shape(a)))
    return _running_product((a + j) * (1 / (whole + j)))


def cell_moments(cells: Cells, most: int) -> Floats:
    """C(c, m) / C(n, m), unbiased for p^m: a row for each m = 0 .. most, a column a cell.

    Beyond a cell's runs it is 0: nothing is known there.
    """
    j = np.arange(float(most))[:, None]
    n = cells.n[:1] if (cells.n == cells.n[0]).all() else cells.n
    ratios = cells.c - j
    np.maximum(ratios, 0, out=ratios)
    # Where runs have run out so have passes: 0 of 1 is as good as 0 of none.
    ratios /= np.maximum(n - j, 1)
    return _running_product(ratios)


def overlaps(n: Floats, k: int, j: int) -> tuple[NDArray[np.intp], Floats]:
    """The likely numbers m of runs that a k-subset and a j-subset of n share, with their chances.

    Hypergeometric: C(j, m) C(n - j, k - m) / C(n, k), for k <= j <= n. A row an m, a column an n.
    """
    if (n == n[0]).all():
        shared, chance = _remembered_overlaps(float(n[0]), k, j)
        return shared, np.broadcast_to(chance, (shared.size, n.size))
    distinct, place = np.unique(n, return_inverse=True)
    shared, chance = _overlaps(distinct, k, j)
    return shared, chance[:, place]


def _observed_moments(cells: Cells, values: Floats) -> Floats:
    """The suite's mean p^m, along the first axis, by its cells' moments.

    Where too few tasks have m runs, moments are log-convex: going on with the last ratio bounds
    p^(2k) from below and the variance from above.
    """
    most, fewest = len(values) - 1, int(cells.n.min())
    moments = _over_tasks(cells, values) / cells.task_count
    for m in range(min(most, fewest) + 1, most + 1):
        able = cells.tasks * (cells.n >= m)
        count, last = able.sum(axis=-1), moments[m - 1]
        fresh = _ratio(moments[m] * cells.task_count / np.maximum(count, 1.0), last)
        enough = count >= _ENOUGH_TASKS * cells.task_count
        going_on = _ratio(last, moments[m - 2])
        moments[m] = last * np.where(enough, np.minimum(fresh, 1.0), going_on)
    return moments


def _running_product(ratios: Floats) -> Floats:
    """1, and the products of the first 1, 2, ... rows."""
    products = np.ones((len(ratios) + 1, *ratios.shape[1:]))
    # Row by row: numpy's cumprod along the first axis takes twice the time.
    for i in range(len(ratios)):
        np.multiply(products[i : i + 1], ratios[i : i + 1], out=products[i + 1 : i + 2])
    return products


def _over_tasks(cells: Cells, values: Floats) -> Floats:
    """The sum over tasks of each row of values per cell, along the first axis."""
    return np.moveaxis(cells.tasks @ values.T, -1, 0)


def _mean_over_overlaps(cells: Cells, k: int, moments: Floats) -> Floats:
    """The mean over tasks of `moments[2k - m]`, m the runs that two k-subsets share."""
    shared, chance = overlaps(cells.n, k, k)
    total = (_over_tasks(cells, chance) * moments[2 * k - shared]).sum(axis=0)
    return np.asarray(total / cells.task_count)


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
