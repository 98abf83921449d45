"""The runs, scores and squared scores of one system on each task, summed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.dataclass import short_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats, score_array, score_sums, trial_counts

Mask = NDArray[np.bool_]


@short_dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskSums:
    """The runs of one system on each task, the sum of their scores and that of their squares.

    >>> TaskSums.of_passes([5, 5], [4, 0]).means.tolist()
    [0.8, 0.0]
    """

    runs: Counts
    total: Floats
    squares: Floats

    @classmethod
    def of_passes(cls, n: ArrayLike, c: ArrayLike) -> Self:
        """From runs and passes per task."""
        runs, passes = (np.atleast_1d(x) for x in trial_counts(n, c))
        if runs.ndim > 1:
            raise ArgumentError("n", "must have one entry per task (one dimension)", runs.shape)
        return cls(runs=runs, total=passes.astype(float), squares=passes.astype(float))

    @classmethod
    def of_scores(cls, scores: Sequence[ArrayLike]) -> Self:
        """From the scores of each task's runs.

        >>> TaskSums.of_scores([[1.0, 0.5], [0.25]]).runs.tolist()
        [2, 1]
        """
        rows = [np.atleast_1d(score_array("scores", row)) for row in scores]
        return cls(
            runs=np.array([row.size for row in rows], dtype=np.int64),
            total=np.array([row.sum() for row in rows], dtype=float),
            squares=np.array([(row * row).sum() for row in rows], dtype=float),
        )

    def __post_init__(self) -> None:
        found = score_sums(self.runs, self.total, self.squares, runs_name="runs")
        for name, column in zip(("runs", "total", "squares"), found, strict=True):
            object.__setattr__(self, name, column)

    @property
    def means(self) -> Floats:
        """The mean score of each task; 0 if it was not run."""
        return self.total / np.maximum(self.runs, 1)

    @property
    def variances(self) -> Floats:
        """The sample variance of each task's scores; 0 if there are fewer than two."""
        spread = np.maximum(self.squares - self.total * self.means, 0.0)
        return spread / np.maximum(self.runs - 1, 1)

    @property
    def binary(self) -> bool:
        """Whether every score was 0 or 1."""
        whole = np.array_equal(self.total, np.round(self.total))
        return whole and np.array_equal(self.total, self.squares)

    def taken(self, kept: Mask) -> TaskSums:
        """These tasks only."""
        return TaskSums(runs=self.runs[kept], total=self.total[kept], squares=self.squares[kept])
