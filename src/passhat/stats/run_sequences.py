"""Descriptions of the order of a task's runs, as defined in mcptest's documentation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from passhat.dataclass import dataclass, short_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats
from passhat.stats.estimate import Unavailable

Flags = NDArray[np.bool_]

TOO_SHORT_TO_FLIP = Unavailable("flips between neighbouring runs need 2 runs")


@short_dataclass(frozen=True, slots=True, kw_only=True)
class SequenceDecay:
    """The measures of mcptest's documentation for one task's runs, in the order they were made.

    Whole percentages. `curve` is (passes so far / runs so far)^(runs so far), rounded down;
    `graceful_degradation` the share of passes where run i weighs i, rounded;
    `variance_amplification` the standard deviation of the outcomes against the largest it can be,
    1/2, rounded: 0 if all runs end alike, 100 if half of them pass; `flips` the share of
    neighbours that differ, rounded down.

    All but amplification depend on the order of the runs. If runs are exchangeable, the third
    and the seventh differ by chance alone and the order means nothing: read `DecayCurve` instead.
    """

    curve: tuple[int, ...]
    variance_amplification: int
    graceful_degradation: int
    flips: int | Unavailable
    runs: int
    passes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceColumns:
    """`SequenceDecay` of many tasks with equally many runs, a row a task; NaN is unavailable."""

    curve: Counts
    variance_amplification: Counts
    graceful_degradation: Counts
    flips: Floats
    passes: Counts


def describe_sequences(outcomes: Sequence[Sequence[bool]]) -> tuple[SequenceDecay, ...]:
    """Describe each task's runs.

    >>> describe_sequences([[True, True, True, False]])[0].curve
    (100, 100, 100, 31)
    """
    tasks = [np.asarray(entry) for entry in outcomes]
    for task in tasks:
        if task.ndim != 1 or task.size == 0 or not np.isin(task, (0, 1)).all():
            rule = "must be passes (True) and failures (False), at least one per task"
            raise ArgumentError("outcomes", rule, outcomes)
    found: dict[int, SequenceDecay] = {}
    for places in by_length([task.size for task in tasks]):
        columns = describe_columns(np.stack([tasks[i] for i in places]).astype(bool))
        found |= zip(places, _rows(columns), strict=True)
    return tuple(found[i] for i in range(len(tasks)))


def describe_columns(passed: Flags) -> SequenceColumns:
    """Describe tasks (rows) with equally many runs (columns, in order) all at once."""
    runs = passed.shape[1]
    place = np.arange(1, runs + 1)
    so_far = np.cumsum(passed, axis=1, dtype=np.int64)
    changes = (passed[:, 1:] != passed[:, :-1]).sum(axis=1)
    return SequenceColumns(
        curve=np.floor(100 * (so_far / place) ** place).astype(np.int64),
        variance_amplification=_amplification(so_far[:, -1], runs),
        graceful_degradation=np.rint(100 * (passed @ place) / place.sum()).astype(np.int64),
        flips=100 * changes // (runs - 1) * 1.0 if runs > 1 else np.full(len(passed), np.nan),
        passes=so_far[:, -1],
    )


def by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of the tasks with equally many runs, one list a length."""
    sizes = np.asarray(lengths)
    order = np.argsort(sizes, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
        yield places.tolist()


def _amplification(passes: Counts, runs: int) -> Counts:
    """The population standard deviation of the outcomes, in percent of the 1/2 it is at most."""
    rate = passes / runs
    return np.rint(np.sqrt(rate * (1 - rate)) / 0.5 * 100).astype(np.int64)


def _rows(columns: SequenceColumns) -> Iterator[SequenceDecay]:
    runs = columns.curve.shape[1]
    for i, curve in enumerate(columns.curve.tolist()):
        flips = columns.flips[i]
        yield SequenceDecay(
            curve=tuple(curve),
            variance_amplification=int(columns.variance_amplification[i]),
            graceful_degradation=int(columns.graceful_degradation[i]),
            flips=TOO_SHORT_TO_FLIP if np.isnan(flips) else int(flips),
            runs=runs,
            passes=int(columns.passes[i]),
        )
