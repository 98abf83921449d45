"""The counts of one system under an error policy: what every statistic of a report reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from passhat.records import ErrorPolicy, Tally
from passhat.stats.arguments import one_of

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence:
    """Runs, passes and sums of scores of the tasks that have a run; `without` names the others.

    `rows` are the places of the tasks in the tally.
    """

    tasks: tuple[str, ...]
    runs: Counts
    passes: Counts
    score_total: Floats
    score_squares: Floats
    rows: NDArray[np.intp]
    without: tuple[str, ...]

    @property
    def typical_runs(self) -> int:
        return typical_runs(self.runs)

    @property
    def all_or_nothing(self) -> bool:
        """Whether every score is its outcome's: 1 for a pass, 0 for a failure.

        Scores in [0, 1] whose squares add up to as much as they do are 0 or 1.
        """
        passes = self.passes
        return bool((self.score_total == passes).all() and (self.score_squares == passes).all())

    def short_of(self, k: int) -> tuple[str, ...]:
        """The tasks with fewer than k runs."""
        return tuple(self.tasks[i] for i in np.flatnonzero(self.runs < k))


def error_policy(errors: str) -> ErrorPolicy:
    """`errors`, if it says what an errored trial counts as.

    >>> error_policy("ignore")
    Traceback (most recent call last):
    passhat.errors.ArgumentError: errors must be one of 'fail', 'exclude', got 'ignore'
    """
    return "fail" if one_of("errors", errors, ("fail", "exclude")) == "fail" else "exclude"


def gather(tally: Tally, errors: ErrorPolicy) -> Evidence:
    """An errored trial is a run that failed with score 0, or is no run at all."""
    runs = tally.runs(error_policy(errors))
    rows = np.flatnonzero(runs > 0)
    every = rows.size == runs.size
    return Evidence(
        tasks=tally.tasks if every else tuple(tally.tasks[i] for i in rows),
        runs=runs[rows],
        passes=tally.passed[rows],
        score_total=tally.score_total[rows],
        score_squares=tally.score_squares[rows],
        rows=rows,
        without=tuple(tally.tasks[i] for i in np.flatnonzero(runs == 0)),
    )


def typical_runs(runs: Counts) -> int:
    """The lower median: at least half of the tasks have that many runs.

    >>> typical_runs(np.array([4, 4, 1, 9]))
    4
    """
    middle = (runs.size - 1) // 2
    return int(np.partition(runs, middle)[middle]) if runs.size else 0
