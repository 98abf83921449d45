"""Candidates for the default interval of "tasks like these", so that the choice can be redone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from passhat.stats.arguments import Floats
from passhat.stats.estimate import Scope
from passhat.stats.mean_intervals import (
    default_bounds,
    guarded_wilson,
    mean_and_variance,
    student_quantile,
)
from passhat.stats.passk import beta_moments, run_covariances
from passhat.stats.proportions import Bounds, wilson_bounds
from passhat.stats.sufficient_statistics import Cells

Variance = Callable[[Floats, Floats], Floats]


def _candidate(
    cells: Cells,
    k: int,
    scope: Scope,
    confidence: float,
    prior: tuple[Floats, Floats],
    *,
    used: Variance,
    guard: bool,
) -> Bounds:
    """Wilson with t on n_eff = mean (1 - mean) T / variance (T - 3) / (T - 1), at most the runs."""
    del scope
    mean, variance = mean_and_variance(cells, k)
    tasks = cells.task_count
    square = used(variance, _value_variance(cells, k, *prior))
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = mean * (1 - mean) * tasks / square * (tasks - 3) / (tasks - 1)
    constant = variance <= 1e-15
    effective = np.where(constant, 1.0, np.minimum(effective, cells.run_count))
    ends = guarded_wilson if guard else wilson_bounds
    low, high = ends(mean, effective, student_quantile(tasks - 1, confidence))
    seen = ((1 - confidence) / 2) ** (1 / tasks)
    return np.where(constant, seen * mean, low), np.where(constant, seen * mean + 1 - seen, high)


def _value_variance(cells: Cells, k: int, a: Floats, b: Floats) -> Floats:
    """The variance of a task's pass^k, over tasks drawn from Beta(a, b) and over their runs."""
    moments = beta_moments(a, a + b, 2 * k)
    between = np.maximum(moments[2 * k] - moments[k] ** 2, 0.0)
    each = np.repeat(moments[..., None], cells.lengths.size, axis=-1)
    noise = run_covariances(cells.lengths, [(k, k)], each)[0] * cells.tasks_by_length
    return np.asarray(between + noise.sum(axis=-1) / cells.task_count)


CANDIDATES = {
    "s2": partial(_candidate, used=lambda s2, m2: s2, guard=False),
    "max(s2, sqrt(s2 m2))": partial(
        _candidate, used=lambda s2, m2: np.maximum(s2, np.sqrt(s2 * m2)), guard=False
    ),
    "m2": partial(_candidate, used=lambda s2, m2: m2, guard=False),
    "s2, guarded": partial(_candidate, used=lambda s2, m2: s2, guard=True),
    "max(s2, sqrt(s2 m2)), guarded": partial(
        _candidate, used=lambda s2, m2: np.maximum(s2, np.sqrt(s2 * m2)), guard=True
    ),
    "max(s2, m2), guarded": partial(_candidate, used=np.maximum, guard=True),
    "s2 raised half-way to m2, guarded": partial(
        _candidate, used=lambda s2, m2: np.maximum(s2, (s2 + m2) / 2), guard=True
    ),
    "s2 raised 2/5 of the way to m2, guarded (the default of 0.1)": partial(
        _candidate, used=lambda s2, m2: np.maximum(s2, s2 + 0.4 * (m2 - s2)), guard=True
    ),
    "Dirichlet weights, 3/4 of a task not seen (default)": lambda cells, k, scope, level, _: (
        default_bounds(cells, k, scope, level)
    ),
}
