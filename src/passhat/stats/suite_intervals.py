"""Analytic intervals for a suite's mean pass^k: cells in, (low, high) out, many suites at once."""

from __future__ import annotations

import numpy as np
from scipy import special

from passhat.stats.arguments import Floats
from passhat.stats.betabinomial import fit_cells
from passhat.stats.cells import Cells
from passhat.stats.estimate import THIS_SUITE, Scope
from passhat.stats.mean_intervals import (
    SuiteSize,
    population_bounds,
    student_quantile,
    suite_bounds,
)
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.passk_noise import expected_mean, expected_noise, observed_noise, value_variance
from passhat.stats.proportions import Bounds, wilson_bounds


def default_bounds(
    cells: Cells,
    k: int,
    scope: Scope,
    confidence: float,
    prior: tuple[Floats, Floats] | None = None,
) -> Bounds:
    """The default interval for the scope; `prior` saves the fit where it was made before."""
    a, b = prior or fit_cells(cells)
    mean, variance = mean_and_variance(cells, k)
    size = SuiteSize(tasks=cells.task_count, runs=cells.run_count)
    if scope == THIS_SUITE:
        noise = np.maximum(expected_noise(cells, k, a, b), observed_noise(cells, k))
        return suite_bounds(
            mean, noise, size=size, model=expected_mean(cells, k, a, b), k=k, confidence=confidence
        )
    model = value_variance(cells, k, a, b)
    return population_bounds(mean, variance, size=size, model=model, confidence=confidence)


def student_bounds(cells: Cells, k: int, scope: Scope, confidence: float) -> Bounds:
    """Mean plus and minus a t quantile of standard errors."""
    return _around(cells, k, scope, student_quantile(cells.task_count - 1, confidence))


def normal_bounds(cells: Cells, k: int, scope: Scope, confidence: float) -> Bounds:
    """Mean plus and minus a normal quantile of standard errors: the CLT."""
    return _around(cells, k, scope, special.ndtri((1 + confidence) / 2))


def pooled_wilson_bounds(cells: Cells, k: int, scope: Scope, confidence: float) -> Bounds:
    """Wilson as if all runs were independent coin flips of one coin."""
    mean, _ = mean_and_variance(cells, k)
    return wilson_bounds(mean, cells.run_count, special.ndtri((1 + confidence) / 2))


def mean_and_variance(cells: Cells, k: int) -> tuple[Floats, Floats]:
    """The mean over tasks of pass^k, and the sample variance of a task's value (0 for one task)."""
    values = share_of_passing_subsets(cells.n, cells.c, k)
    mean, tasks = cells.mean(values), cells.task_count
    square = (cells.tasks * (values - mean[..., None]) ** 2).sum(axis=-1)
    return mean, np.asarray(square / np.maximum(tasks - 1, 1))


def _around(cells: Cells, k: int, scope: Scope, quantile: Floats | float) -> Bounds:
    mean, variance = mean_and_variance(cells, k)
    square = observed_noise(cells, k) if scope == THIS_SUITE else variance / cells.task_count
    reach = quantile * np.sqrt(square)
    return np.maximum(mean - reach, 0.0), np.minimum(mean + reach, 1.0)
