"""Distinct (runs, passes) cells: statistics over tasks read these, so their cost is flat in T."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, update_wrapper
from typing import Any, Self, TypeVar, TypeVarTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.dataclass import result_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats, score_array, score_sums, trial_counts

# Below this many possible keys per task, counting is faster than sorting.
_KEYS_PER_TASK = 8
# Runs and passes fit into one 64-bit number below this many runs.
_LONGEST_KEY = 2**31
# The keys of 64 suites of this size take 15 MB; answers about larger ones are not kept.
_CACHED_CELLS = 10_000

Found = TypeVar("Found")
More = TypeVarTuple("More")


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """Cell j holds `tasks[..., j]` tasks that passed `c[j]` of `n[j]` runs.

    Leading axes of `tasks` are independent suites over the same cells: a simulation has thousands
    of them at once and runs the same code as a single suite.
    """

    n: Floats
    c: Floats
    tasks: Floats

    @cached_property
    def task_count(self) -> Floats:
        return np.asarray(self.tasks.sum(axis=-1))

    @cached_property
    def run_count(self) -> Floats:
        return np.asarray(self.tasks @ self.n)

    @cached_property
    def lengths(self) -> Floats:
        """The n of each stretch of cells with equally many runs."""
        return np.asarray(self.n[self._starts])

    def mirrored(self) -> Cells:
        """The same cells with failures for passes: pass@k of these is 1 - pass^k of those."""
        return Cells(n=self.n, c=self.n - self.c, tasks=self.tasks)

    def both_ways(self) -> Cells:
        """One suite as two over the same cells: as it is, and `mirrored`."""
        return stack(self, self.mirrored())

    def mean(self, values: Floats) -> Floats:
        """The mean over tasks of a value per cell."""
        return np.asarray((self.tasks * values).sum(axis=-1) / self.task_count)

    @cached_property
    def tasks_by_length(self) -> Floats:
        return self.by_length(np.ones(self.n.shape))

    def by_length(self, values: Floats) -> Floats:
        """The sum over tasks of a value per cell, one for each of `lengths` (the last axis)."""
        if self._starts.size == 1:
            return np.asarray(np.vecdot(self.tasks, values))[..., None]
        return np.asarray(np.add.reduceat(self.tasks * values, self._starts, axis=-1))

    def blocks(self, size: int) -> Iterator[tuple[Cells, int]]:
        """At most `size` cells at a time, with the place in `lengths` where they begin."""
        for start in range(0, self.n.size, size):
            place = int(np.searchsorted(self._starts, start, side="right")) - 1
            yield self.taken(slice(start, start + size)), place

    def place(self, runs: Counts, passes: Counts) -> NDArray[np.intp]:
        """The cell of each task: it turns results per cell into results per task."""
        width = self.n.max() + 1
        place = np.searchsorted(self.n * width + self.c, runs * width + passes)
        return np.asarray(place, dtype=np.intp)

    def having(self, runs: int) -> Cells:
        """The cells with at least `runs` runs."""
        kept = self.n >= runs
        return self if kept.all() else self.taken(kept)

    def taken(self, kept: NDArray[np.bool_] | slice) -> Cells:
        """Some of the cells."""
        return Cells(n=self.n[kept], c=self.c[kept], tasks=self.tasks[..., kept])

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        fresh = np.ones(self.n.size, dtype=bool)
        np.not_equal(self.n[1:], self.n[:-1], out=fresh[1:])
        return np.flatnonzero(fresh)


def cached(find: Callable[[Cells, *More], Found]) -> Callable[[Cells, *More], Found]:
    """`find`, with a cache for one suite or two: a report asks for the same answers many times.

    The arguments after the cells must be hashable.
    """

    @lru_cache(maxsize=64)
    def again(n: bytes, c: bytes, tasks: bytes, *more: *More) -> Found:
        runs, passes, counts = (np.frombuffer(part) for part in (n, c, tasks))
        suites = counts if counts.size == runs.size else counts.reshape(-1, runs.size)
        return find(Cells(n=runs, c=passes, tasks=suites), *more)

    def answer(cells: Cells, *more: *More) -> Found:
        few = cells.tasks.ndim == 1 or cells.tasks.shape[:-1] == (2,)
        if few and cells.n.size <= _CACHED_CELLS:
            return again(cells.n.tobytes(), cells.c.tobytes(), cells.tasks.tobytes(), *more)
        return find(cells, *more)

    update_wrapper(answer, find)
    return answer


def count_cells(n: object, c: object) -> Cells:
    """The distinct (n, c) of a suite, with the number of tasks in each.

    >>> cells = count_cells([5, 5, 3], [4, 4, 0])
    >>> [(int(n), int(c), int(t)) for n, c, t in zip(cells.n, cells.c, cells.tasks)]
    [(3, 0, 1), (5, 4, 2)]
    """
    runs, passes = task_counts(n, c)
    width = int(runs.max(initial=0)) + 1
    if width > _LONGEST_KEY:
        order, fresh = _ordered(runs, passes)
        starts = np.flatnonzero(fresh)
        counts = runs[order][fresh], passes[order][fresh], np.diff(starts, append=runs.size)
        return _cells(*counts)
    keys = runs * width + passes
    if width * width <= _KEYS_PER_TASK * runs.size:
        tallies = np.bincount(keys)
        keys = np.flatnonzero(tallies)
        tallies = tallies[keys]
    else:
        keys, tallies = np.unique(keys, return_counts=True)
    return _cells(*np.divmod(keys, width), tallies)


def stack(*suites: Cells) -> Cells:
    """Several suites, each over the cells of all of them.

    >>> stack(count_cells([5], [4]), count_cells([5], [5])).tasks.tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    runs, passes, tallies = (
        np.concatenate(parts)
        for parts in zip(*((suite.n, suite.c, suite.tasks) for suite in suites), strict=True)
    )
    order, fresh = _ordered(runs, passes)
    place = np.empty(runs.size, dtype=np.intp)
    place[order] = np.cumsum(fresh) - 1
    tasks = np.zeros((len(suites), int(fresh.sum())))
    tasks[np.repeat(np.arange(len(suites)), [suite.n.size for suite in suites]), place] = tallies
    return Cells(n=runs[order][fresh], c=passes[order][fresh], tasks=tasks)


def task_counts(n: object, c: object) -> tuple[Counts, Counts]:
    """Runs and passes as one-dimensional arrays, an entry per task."""
    runs, passes = trial_counts(n, c)  # type: ignore[arg-type]  # checked there, whatever comes
    if runs.ndim > 1:
        raise ArgumentError("n", "must have one entry per task (one dimension)", runs.shape)
    return np.atleast_1d(runs), np.atleast_1d(passes)


def _ordered(
    runs: NDArray[Any], passes: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The order by runs and then passes, and which places in it differ from the one before."""
    order = np.lexsort((passes, runs))
    n, c = runs[order], passes[order]
    fresh = np.ones(n.size, dtype=bool)
    fresh[1:] = (n[1:] != n[:-1]) | (c[1:] != c[:-1])
    return order, fresh


def _cells(runs: Counts, passes: Counts, tasks: Counts) -> Cells:
    n, c, tallies = (part.astype(np.float64) for part in (runs, passes, tasks))
    return Cells(n=n, c=c, tasks=tallies)


# The runs, scores and squared scores of one system on each task, summed.

Mask = NDArray[np.bool_]


@result_dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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
        runs, passes = task_counts(n, c)
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
        sums = score_sums(self.runs, self.total, self.squares, runs_name="runs")
        for name, column in zip(("runs", "total", "squares"), sums, strict=True):
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
