"""Analytic intervals for a suite's mean pass^k: cells in, (low, high) out, many suites at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from passhat.stats import special
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
from passhat.stats.passk_noise import (
    Prior,
    expected_noise_and_mean,
    observed_noise_and_values,
    value_variance,
)
from passhat.stats.proportions import Bounds, wilson_bounds


class SuiteCurve:
    """A suite's mean pass^k for several k, and what its default intervals are made of.

    Each part is computed when first asked for, for all k at once (along the last axis), and
    serves every scope and confidence. `prior` saves the fit where it was made before.
    """

    def __init__(self, cells: Cells, ks: Sequence[int], prior: Prior | None = None) -> None:
        self.cells, self.ks = cells, tuple(ks)
        self.prior = prior or fit_cells(cells)
        self._size = SuiteSize(tasks=cells.task_count[..., None], runs=cells.run_count[..., None])

    @property
    def mean(self) -> Floats:
        """The mean over tasks."""
        return self._observed[0]

    def bounds(self, scope: Scope, confidence: float) -> Bounds:
        """The default intervals for the scope."""
        mean, variance, noise = self._observed
        if scope == THIS_SUITE:
            expected, level = expected_noise_and_mean(self.cells, self.ks, self.prior)
            return suite_bounds(
                mean,
                np.maximum(noise, expected),
                size=self._size,
                model=level,
                k=np.array(self.ks),
                confidence=confidence,
            )
        model = value_variance(self.cells, self.ks, self.prior)
        return population_bounds(
            mean, variance, size=self._size, model=model, confidence=confidence
        )

    @cached_property
    def _observed(self) -> tuple[Floats, Floats, Floats]:
        """The mean, the sample variance of a task's value (0 for one task), and the run noise."""
        noise, values = observed_noise_and_values(self.cells, self.ks)
        tasks = self._size.tasks
        mean = np.asarray(self.cells.tasks @ values.T / tasks)
        square = (self.cells.tasks[..., None, :] * (values - mean[..., None]) ** 2).sum(axis=-1)
        return mean, square / np.maximum(tasks - 1, 1), noise


def default_bounds(
    cells: Cells, k: int, scope: Scope, confidence: float, prior: Prior | None = None
) -> Bounds:
    """The default interval for one k."""
    low, high = SuiteCurve(cells, (k,), prior).bounds(scope, confidence)
    return low[..., 0], high[..., 0]


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
    square = variance / cells.task_count
    if scope == THIS_SUITE:
        square = observed_noise_and_values(cells, (k,))[0][..., 0]
    reach = quantile * np.sqrt(square)
    return np.maximum(mean - reach, 0.0), np.minimum(mean + reach, 1.0)
