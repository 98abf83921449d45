"""What one system did on each task, in the three numbers that its mean and noise need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.errors import ArgumentError
from passhat.fast_dataclass import short_dataclass
from passhat.stats.arguments import Counts, Floats, count_array, score_array, trial_counts

Mask = NDArray[np.bool_]


@short_dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskSums:
    """What one system did on each task: its runs, the sum of their scores and of the squares.

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
        runs = count_array("runs", self.runs)
        total, squares = np.asarray(self.total, float), np.asarray(self.squares, float)
        if not runs.shape == total.shape == squares.shape or runs.ndim != 1:
            shapes = (runs.shape, total.shape, squares.shape)
            raise ArgumentError("runs, total and squares", "must be of one length", shapes)
        # 0 <= x <= 1 makes 0 <= sum of squares <= sum <= runs, and Cauchy-Schwarz the rest.
        least = total * total / np.maximum(runs, 1)
        room = 1e-9 * np.maximum(runs, 1)
        legal = (least <= squares + room) & (squares <= total + room) & (total <= runs + room)
        if not (legal & (total >= 0)).all():
            at = int(np.argmin(legal & (total >= 0)))
            came = (int(runs[at]), float(total[at]), float(squares[at]))
            raise ArgumentError("runs, total and squares", "must be of scores in [0, 1]", came)

    @property
    def means(self) -> Floats:
        """The mean score of each task; 0 where it was not run."""
        return self.total / np.maximum(self.runs, 1)

    @property
    def variances(self) -> Floats:
        """The sample variance of each task's scores; 0 where there are fewer than two."""
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
