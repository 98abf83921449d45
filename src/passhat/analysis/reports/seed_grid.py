"""Seeds: how far whole runs of the suite differ by them, and every run laid out under its seed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.reports.disturbances import LETTERS, place_in_group
from passhat.arguments import CONFIDENCE
from passhat.dataclass import dataclass, short_dataclass
from passhat.records import ErrorPolicy, Outcome, Trials
from passhat.stats.dependent_runs import SeedVariance, seed_variance
from passhat.stats.estimate import TASKS_LIKE_THESE, Scope, Unavailable

MOST_CELLS = 200_000
"""Beyond this many cells nothing is laid out: the picture would be unreadable."""


@short_dataclass(frozen=True, slots=True, kw_only=True)
class SeedGrid:
    """The runs of each task as P, F and E, in columns that belong to a seed.

    `columns` gives each seed's first column. A space marks a run that is missing.
    """

    columns: Mapping[int, int]
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeededRuns:
    """The seed, the task (by code), the score and the outcome of each run that carries a seed."""

    seed: NDArray[np.int64]
    task: NDArray[np.int32]
    score: NDArray[np.float64]
    passed: NDArray[np.bool_]

    def variance(
        self, *, scope: Scope = TASKS_LIKE_THESE, confidence: float = CONFIDENCE
    ) -> SeedVariance | Unavailable:
        """How far seeds move the mean score."""
        columns = self.seed, self.task, self.score
        return seed_variance(*columns, scope=scope, confidence=confidence)


@short_dataclass(frozen=True, slots=True, kw_only=True)
class SeedSpread:
    """How far whole runs of the suite differ by their seed, beside the error within a seed."""

    means: Mapping[int, float]
    variance: SeedVariance | Unavailable
    grid: SeedGrid | None = None


def seeded_runs(trials: Trials, errors: ErrorPolicy) -> SeededRuns | None:
    """The runs of one system that carry a seed and count; None if there are none."""
    if trials.seed is None:
        return None
    kept = trials.seeded
    if errors == "exclude":
        kept = kept & (trials.outcome != Outcome.ERRORED)
    if not kept.any():
        return None
    return SeededRuns(
        seed=trials.seed[kept],
        task=trials.task.codes[kept],
        score=np.nan_to_num(trials.score[kept]),  # an error that counts scores nothing
        passed=trials.outcome[kept] == Outcome.PASSED,
    )


def lay_out_seeds(trials: Trials) -> SeedGrid | None:
    """The runs of one system under their seeds; None if seeds do not group them.

    >>> found = lay_out_seeds(
    ...     Trials.from_columns(
    ...         task=["a", "a", "a", "b", "b"], seed=[7, 7, 1, 1, 7],
    ...         outcome=["passed", "failed", "passed", "errored", "passed"],
    ...     )
    ... )
    >>> found.columns, found.cells
    ({1: 0, 7: 1}, {'a': 'PPF', 'b': 'EP '})
    """
    if trials.seed is None or not len(trials) or not trials.seeded.all():
        return None
    task = trials.task.codes
    seeds, column = np.unique(trials.seed, return_inverse=True)
    # If every run has another seed (the usual default), seeds group nothing.
    if not 2 <= len(seeds) <= np.bincount(task).max():
        return None
    place, widths = _places(task, column, trials.trial, len(seeds))
    size = len(trials.tasks), int(widths.sum())
    if size[0] * size[1] > MOST_CELLS:
        return None
    first = np.r_[0, np.cumsum(widths)[:-1]]
    grid = np.full(size, ord(" "), dtype=np.uint8)
    grid[task, first[column] + place] = LETTERS[trials.outcome]
    rows = (row.tobytes().decode("ascii") for row in grid)
    return SeedGrid(
        columns=dict(zip(seeds.tolist(), first.tolist(), strict=True)),
        cells=dict(zip(trials.tasks, rows, strict=True)),
    )


def _places(
    task: NDArray[np.int32], column: NDArray[np.intp], trial: NDArray[np.int64], seeds: int
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Each run's place among those of its task and seed; and the most runs under each seed."""
    cell = task.astype(np.intp) * seeds + column
    counts = np.bincount(cell, minlength=(int(task.max()) + 1) * seeds)
    return place_in_group(cell, trial), counts.reshape(-1, seeds).max(axis=0)
