"""Analytic intervals for a suite's mean pass^k: cells in, (low, high) out, many suites at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells, remembered
from passhat.stats.estimate import THIS_SUITE, Scope
from passhat.stats.mean_intervals import student_quantile
from passhat.stats.passk import share_of_passing_subsets, shares_of_passing_subsets
from passhat.stats.passk_noise import observed_noise_and_values
from passhat.stats.population_mean import population_bounds
from passhat.stats.proportions import Bounds, wilson_bounds
from passhat.stats.suite_law import suite_bounds

# Up to so many cells, of tasks this short, most of the time goes into calls of numpy: there pass@k
# costs little beside pass^k.
_FEW_CELLS, _FEW_RUNS = 64, 128


class SuiteCurve:
    """A suite's mean pass^k for several k, and its default intervals.

    Each part is computed when first asked for and serves every scope and confidence; k run along
    the last axis. If `mirrored`, all is about failures in the place of passes.
    """

    def __init__(self, cells: Cells, ks: Sequence[int], *, mirrored: bool = False) -> None:
        self.cells, self.ks = cells.mirrored() if mirrored else cells, tuple(ks)
        self._given, self._side = cells, int(mirrored)

    @cached_property
    def mean(self) -> Floats:
        """The mean over tasks."""
        return np.asarray(self.cells.tasks @ self._values.T / self.cells.task_count[..., None])

    def bounds(self, scope: Scope, confidence: float) -> Bounds:
        """The default intervals for the scope."""
        if _is_small(self._given):
            # Of one attempt pass@k is pass^k, and reports ask for it once: with it, both ask alike.
            every = tuple(sorted({1, *self.ks}))
            asked = [every.index(k) for k in self.ks]
            low, high = _both_ways(self._given, every, scope, confidence)
            return low[self._side, asked], high[self._side, asked]
        return _bounds(self.cells, self.ks, scope, confidence)

    @cached_property
    def _values(self) -> Floats:
        """pass^k of each cell, a row for each k."""
        return shares_of_passing_subsets(self.cells.n, self.cells.c, self.ks)


def bounds_both_ways(
    cells: Cells, ks: Sequence[int], scope: Scope, confidences: tuple[float, float]
) -> Bounds:
    """The intervals of one suite, and in a second row of the mirrored one at its confidence."""
    if scope == THIS_SUITE and _is_small(cells):
        return suite_bounds(cells.both_ways(), ks, np.array(confidences)[:, None])
    sides = zip((False, True), confidences, strict=True)
    found = [SuiteCurve(cells, ks, mirrored=side).bounds(scope, level) for side, level in sides]
    low, high = (np.stack(ends) for ends in zip(*found, strict=True))
    return low, high


def _is_small(cells: Cells) -> bool:
    few = cells.tasks.ndim == 1 and cells.n.size <= _FEW_CELLS
    return few and bool(cells.n.max() <= _FEW_RUNS)


@remembered
def _both_ways(cells: Cells, ks: tuple[int, ...], scope: Scope, confidence: float) -> Bounds:
    return _bounds(cells.both_ways(), ks, scope, confidence)


def _bounds(cells: Cells, ks: Sequence[int], scope: Scope, confidence: float) -> Bounds:
    if scope == THIS_SUITE:
        return suite_bounds(cells, ks, confidence)
    values = shares_of_passing_subsets(cells.n, cells.c, ks)
    return population_bounds(values, cells.tasks[..., None, :], confidence)


def default_bounds(cells: Cells, k: int, scope: Scope, confidence: float) -> Bounds:
    """The default interval for one k."""
    low, high = SuiteCurve(cells, (k,)).bounds(scope, confidence)
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
