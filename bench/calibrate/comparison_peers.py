"""What others do when they compare systems, written out to stand in the same tables."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr

from passhat.stats.arguments import Floats


def percentile_bootstrap_rejects(
    differences: Floats, rng: np.random.Generator, *, alpha: float = 0.05, replicates: int = 500
) -> bool:
    """Whether the paired percentile bootstrap over tasks leaves out 0."""
    tasks = differences.size
    weights = rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=replicates)
    low, high = np.quantile(weights @ differences / tasks, (alpha / 2, 1 - alpha / 2))
    return bool(low > 0 or high < 0)


def welch_p_values(n: int) -> Floats:
    """Welch's t-test of every (c_a, c_b) with n runs a side, as agentrel 0.1.0 reads it.

    Two constant sides that differ get p = 0 there, which is where its family-wise error is from.
    """
    c = np.arange(n + 1)
    mean, variance = c / n, c * (n - c) / (n * (n - 1))
    gap = np.abs(mean[:, None] - mean)
    a, b = variance[:, None] / n, variance[None, :] / n
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = (a + b) ** 2 / ((a**2 + b**2) / (n - 1))
        p = 2 * stdtr(freedom, -gap / np.sqrt(a + b))
    return np.where(a + b > 0, p, np.where(gap > 0, 0.0, 1.0))


def naive_rank_sets(
    table: Floats, rng: np.random.Generator, *, confidence: float = 0.95, replicates: int = 500
) -> list[tuple[int, int]]:
    """Percentiles of each system's rank when tasks are resampled."""
    tasks = len(table)
    weights = rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=replicates)
    means = weights @ table
    ranks = 1 + (means[:, None, :] > means[:, :, None] + 1e-9).sum(axis=2)
    tail = (1 - confidence) / 2
    low = np.quantile(ranks, tail, axis=0, method="inverted_cdf")
    high = np.quantile(ranks, 1 - tail, axis=0, method="inverted_cdf")
    return list(zip(low.astype(int).tolist(), high.astype(int).tolist(), strict=True))
