"""Sufficient statistics: what the analysis needs of any number of trials, one row a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from passhat.fast_dataclass import dataclass
from passhat.messages import plural, quoted, repr_fields, short_repr
from passhat.records.labels import Codes, Labels
from passhat.records.source import Source
from passhat.records.trial import ErrorPolicy, Outcome

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSums:
    """Count, sum and sum of squares of one feature; rows are outcomes, columns are tasks."""

    count: Counts
    total: Floats
    squares: Floats

    __repr__ = repr_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The trials of one system, counted per task.

    `score_total` and `score_squares` run over completed (passed or failed) trials. `family` names
    the source that each task comes from, and `weight` says what it stands for, where any do.
    """

    system: str
    tasks: tuple[str, ...]
    passed: Counts
    failed: Counts
    errored: Counts
    score_total: Floats
    score_squares: Floats
    features: Mapping[str, FeatureSums] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()
    family: tuple[str | None, ...] | None = None
    weight: Floats | None = None

    def __repr__(self) -> str:
        ended = (("passed", self.passed), ("failed", self.failed), ("errored", self.errored))
        counts = ", ".join(f"{int(count.sum()):,} {word}" for word, count in ended)
        size = f"{plural(len(self.tasks), 'task')}, {plural(self.trials, 'trial')} ({counts})"
        return short_repr(f"Tally {quoted(self.system)}", size, see=".tasks, .passed, .runs()")

    @property
    def completed(self) -> Counts:
        return self.passed + self.failed

    @property
    def trials(self) -> int:
        return int(self.completed.sum() + self.errored.sum())

    def runs(self, errors: ErrorPolicy = "fail") -> Counts:
        """Runs per task: an errored one is a failure, or is left out."""
        return self.completed + self.errored if errors == "fail" else self.completed


def count_trials(
    system: str,
    *,
    task: Labels,
    outcome: NDArray[np.int8],
    score: Floats,
    features: Mapping[str, Floats],
    sources: tuple[Source, ...] = (),
    family: Labels | None = None,
    weight: Floats | None = None,
) -> Tally:
    """The tally of one system's trials, given by column."""
    size = len(task.names)

    def count(kind: Outcome) -> Counts:
        return np.bincount(task.codes[outcome == kind], minlength=size).astype(np.int64)

    known = np.nan_to_num(score)
    return Tally(
        system=system,
        tasks=task.names,
        passed=count(Outcome.PASSED),
        failed=count(Outcome.FAILED),
        errored=count(Outcome.ERRORED),
        score_total=_per_task(task.codes, known, size),
        score_squares=_per_task(task.codes, known * known, size),
        features={
            name: _feature_sums(column, outcome, task.codes, size)
            for name, column in features.items()
        },
        sources=sources,
        family=None if family is None else _task_families(task, family),
        weight=None if weight is None else _task_weights(task, weight),
    )


def _task_families(task: Labels, family: Labels) -> tuple[str | None, ...]:
    """The family of each task: the last one that its trials name."""
    found: list[str | None] = [None] * len(task.names)
    for code, name in zip(task.codes.tolist(), family.texts(), strict=True):
        if name:
            found[code] = name
    return tuple(found)


def _task_weights(task: Labels, weight: Floats) -> Floats:
    """The mean weight that the trials of a task name; 1 where they name none."""
    known = ~np.isnan(weight)
    size = len(task.names)
    count = np.bincount(task.codes[known], minlength=size)
    total = np.bincount(task.codes[known], weights=weight[known], minlength=size)
    return np.where(count > 0, total / np.maximum(count, 1), 1.0)


def _per_task(codes: Codes, weights: Floats, size: int) -> Floats:
    return np.bincount(codes, weights=weights, minlength=size).astype(np.float64)


def _feature_sums(values: Floats, outcome: NDArray[np.int8], task: Codes, size: int) -> FeatureSums:
    known = ~np.isnan(values)
    cell = outcome[known].astype(np.int64) * size + task[known]
    value = values[known]
    shape = (len(Outcome), size)

    def sums(weights: Floats | None) -> NDArray[Any]:
        return np.bincount(cell, weights=weights, minlength=shape[0] * size).reshape(shape)

    return FeatureSums(
        count=sums(None).astype(np.int64), total=sums(value), squares=sums(value * value)
    )
