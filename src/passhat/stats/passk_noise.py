"""How far a suite's mean pass^k strays when its runs, or its tasks, are drawn again."""

from __future__ import annotations

import numpy as np
from scipy import special

from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells

# A moment is read off the tasks with enough runs for it if they are at least this share.
_ENOUGH_TASKS = 0.5


def expected_noise(cells: Cells, k: int, a: Floats, b: Floats) -> Floats:
    """The variance of the suite's mean over new runs, expected under a Beta(a, b) prior."""
    posterior = a[..., None] + cells.c, b[..., None] + cells.n - cells.c
    per_task = run_variance(cells.n, k, *posterior)
    return np.asarray((cells.tasks * per_task).sum(axis=-1) / cells.task_count**2)


def observed_noise(cells: Cells, k: int) -> Floats:
    """The same variance from the suite's own moments, without a prior.

    The mean of C(c, m) / C(n, m) is unbiased for the mean of p^m while m <= n. Beyond, moments
    are log-convex, so going on with the last ratio bounds p^(2k) from below and the variance
    from above.
    """
    moments = _observed_moments(cells, 2 * k)
    per_task = sum(
        overlap(cells.n, k, m) * (moments[2 * k - m] - moments[2 * k])[..., None]
        for m in _likely_overlaps(cells.n, k, 1)
    )
    return np.asarray((cells.tasks * per_task).sum(axis=-1) / cells.task_count**2)


def run_variance(n: Floats, k: int, a: Floats, b: Floats) -> Floats:
    """E[Var(pass^k of n runs | p)] for p ~ Beta(a, b).

    Two k-subsets of n runs that share m of them all pass with chance p^(2k - m), and m is
    hypergeometric: so Var = sum over m of P(m) (p^(2k - m) - p^(2k)), every term positive.

    >>> float(run_variance(np.array(10.0), 1, np.array(1.0), np.array(1.0)))
    0.01666...
    """
    moments = beta_moments(a, b, 2 * k)
    likely = _likely_overlaps(n, k, 1)
    terms = (overlap(n, k, m) * (moments[2 * k - m] - moments[2 * k]) for m in likely)
    return np.asarray(sum(terms))


def value_variance(cells: Cells, k: int, a: Floats, b: Floats) -> Floats:
    """The variance of a task's pass^k, over tasks drawn from Beta(a, b) and over their runs."""
    moments = beta_moments(a, b, 2 * k)
    per_task = sum(
        overlap(cells.n, k, m) * moments[2 * k - m][..., None]
        for m in _likely_overlaps(cells.n, k, 0)
    )
    return np.maximum(cells.mean(np.asarray(per_task)) - moments[k] ** 2, 0.0)


def expected_mean(cells: Cells, k: int, a: Floats, b: Floats) -> Floats:
    """The suite's mean p^k that the posteriors under a Beta(a, b) prior expect."""
    posterior = a[..., None] + cells.c, b[..., None] + cells.n - cells.c
    return cells.mean(beta_moments(*posterior, k)[k])


def beta_moments(a: Floats, b: Floats, most: int) -> list[Floats]:
    """E[p^m] for m = 0 .. most under Beta(a, b)."""
    moments = [np.ones(np.broadcast_shapes(np.shape(a), np.shape(b)))]
    for j in range(most):
        moments.append(moments[-1] * ((a + j) / (a + b + j)))
    return moments


def overlap(n: Floats, k: int, m: int) -> Floats:
    """P(two k-subsets of n runs share m of them): hypergeometric."""
    possible = n - 2 * k + m >= 0
    rest = np.where(possible, n - k, float(k))
    log = _log_choose(float(k), m) + _log_choose(rest, k - m) - _log_choose(n, k)
    return np.where(possible, np.exp(log), 0.0)


def _observed_moments(cells: Cells, most: int) -> list[Floats]:
    shape = cells.tasks.shape[:-1]
    moments, ratio = [np.ones(shape)], np.ones(shape)
    values = np.ones(cells.n.size)
    for m in range(1, most + 1):
        able = cells.n >= m
        tasks = cells.tasks[..., able]
        values[able] *= np.maximum(cells.c[able] - m + 1, 0) / (cells.n[able] - m + 1)
        count, last = tasks.sum(axis=-1), moments[-1]
        seen = (tasks @ values[able]) / np.maximum(count, 1.0)
        fresh = np.divide(seen, last, out=np.zeros(shape), where=last > 0)
        ratio = np.where(count >= _ENOUGH_TASKS * cells.task_count, np.minimum(fresh, 1.0), ratio)
        moments.append(last * ratio)
    return moments


def _likely_overlaps(n: Floats, k: int, least: int) -> range:
    """The numbers of shared runs that can happen: within ten standard deviations of the mean."""
    mean = k * k / n
    reach = 10 * np.sqrt(mean) * (1 - k / n) + 20
    return range(max(least, int(np.min(mean - reach))), min(k, int(np.max(mean + reach))) + 1)


def _log_choose(n: Floats | float, k: int) -> Floats:
    return np.asarray(-special.betaln(1 + n - k, 1 + k) - np.log1p(n))
