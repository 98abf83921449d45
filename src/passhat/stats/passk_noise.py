"""How far a suite's mean pass^k strays when its runs, or its tasks, are drawn again.

Every function answers for several k at once: variances and means have them along the last axis,
moments and covariances along the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells
from passhat.stats.hypergeometric import log_probability

# A moment is read off the tasks with enough runs for it if they are at least this share.
_ENOUGH_TASKS = 0.5
# Moments in memory at once.
_BLOCK = 1 << 20
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
        found = cell_moments(some, most)
        values.append(found[list(ks)])
        return np.expand_dims(found, suites)  # they are those of every suite

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
    found = [
        np.einsum("pij,i...j->p...j", chances[..., place], falls[: chances.shape[1]])
        for chances in _sharing(distinct, pairs)
    ]
    return np.concatenate(found)


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
    for some, place in cells.blocks(max(1, _BLOCK // totals[..., 0].size)):
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
    found = [
        np.einsum("pij,...j,i...->p...", chances, tasks, falls[: chances.shape[1]])
        for chances in _sharing(cells.lengths, [(k, k) for k in ks])
    ]
    return np.asarray(np.concatenate(found) / cells.task_count)


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
    most = [_most_shared(n, k, j) for k, j in pairs]
    m = np.arange(max(most) + 1)[:, None]
    k, j = np.array(pairs).T[..., None, None]
    # The k runs of one subset hold m of the j runs of the other.
    chance = np.exp(log_probability(m, k, n - k, j))
    tails = np.cumsum(chance[:, ::-1], axis=1)[:, ::-1]
    found = np.zeros((len(pairs), int((k + j).max()), n.size))
    for row, tail, last, (one, other) in zip(found, tails, most, pairs, strict=True):
        row[one + other - last : one + other] = tail[last:0:-1]
    return found


def _most_shared(n: Floats, k: int, j: int) -> int:
    """The most shared runs that need counting: ten standard deviations above the mean."""
    mean = k * j / n
    return min(k, int(np.max(mean + 10 * np.sqrt(mean) * (1 - k / n) + 20)))
