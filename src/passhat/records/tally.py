"""Sufficient statistics: what the analysis needs of any number of trials, one row a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from passhat.records.trial import ErrorPolicy

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureSums:
    """Count, sum and sum of squares of one feature; rows are outcomes, columns are tasks."""

    count: Counts
    total: Floats
    squares: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The trials of one system, counted per task.

    `score_total` and `score_squares` run over completed (passed or failed) trials.
    """

    system: str
    tasks: tuple[str, ...]
    passed: Counts
    failed: Counts
    errored: Counts
    score_total: Floats
    score_squares: Floats
    features: Mapping[str, FeatureSums] = field(default_factory=dict)

    @property
    def completed(self) -> Counts:
        return self.passed + self.failed

    @property
    def trials(self) -> int:
        return int(self.completed.sum() + self.errored.sum())

    def runs(self, errors: ErrorPolicy = "fail") -> Counts:
        """Runs per task: an errored one is a failure, or is left out."""
        return self.completed + self.errored if errors == "fail" else self.completed

    def binary_scores(self) -> bool:
        """Whether every score is 0 or 1 and says the same as the outcome."""
        return bool(
            np.array_equal(self.score_total, self.passed)
            and np.array_equal(self.score_squares, self.passed)
        )
