"""What the order of a task's runs looks like: descriptions that mcptest's documentation gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from passhat.errors import ArgumentError
from passhat.messages import repr_fields
from passhat.stats.arguments import Counts, Floats
from passhat.stats.estimate import Unavailable

Flags = NDArray[np.bool_]

TOO_SHORT_TO_HALVE = Unavailable("variance amplification compares two halves: it needs 2 runs")
NOTHING_TO_AMPLIFY = Unavailable(
    "the earlier half of the runs did not vary, so nothing can be amplified"
)
TOO_SHORT_TO_FLIP = Unavailable("flips between neighbouring runs need 2 runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceDecay:
    """What mcptest's documentation says of one task's runs, in the order they were made.

    Whole percentages, rounded down. `curve` is (passes so far / runs so far)^(runs so far);
    `graceful_degradation` the share of passes where run i weighs i; `variance_amplification` the
    variance of the later half against that of the earlier; `flips` the share of neighbours that
    differ (the documentation's P F P F = 100 fits both readings of amplification).

    All of them depend on the order of the runs. Where runs are exchangeable, so that nothing but
    chance tells the third from the seventh, the order says nothing, amplification is noise, and
    `DecayCurve` is what to read.
    """

    curve: tuple[int, ...]
    variance_amplification: int | Unavailable
    graceful_degradation: int
    flips: int | Unavailable
    runs: int
    passes: int

    __repr__ = repr_fields


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceColumns:
    """`SequenceDecay` of many tasks with equally many runs, a row a task; NaN is unavailable."""

    curve: Counts
    variance_amplification: Floats
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
        variance_amplification=_amplification(so_far),
        graceful_degradation=100 * (passed @ place) // place.sum(),
        flips=100 * changes // (runs - 1) * 1.0 if runs > 1 else np.full(len(passed), np.nan),
        passes=so_far[:, -1],
    )


def by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of the tasks with equally many runs, one list a length."""
    sizes = np.asarray(lengths)
    order = np.argsort(sizes, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
        yield places.tolist()


def _amplification(so_far: Counts) -> Floats:
    """The variance of the later half of the runs as a percentage of that of the earlier half."""
    runs = so_far.shape[1]
    half = runs // 2
    if half < 1:
        return np.full(len(so_far), np.nan)
    early = so_far[:, half - 1] / half
    late = (so_far[:, -1] - so_far[:, half - 1]) / (runs - half)
    before, after = early * (1 - early), late * (1 - late)
    percent = np.divide(100 * after, before, out=np.full(early.shape, np.nan), where=before > 0)
    return np.asarray(np.floor(percent + 1e-9))


def _rows(columns: SequenceColumns) -> Iterator[SequenceDecay]:
    runs = columns.curve.shape[1]
    still = TOO_SHORT_TO_HALVE if runs < 2 else NOTHING_TO_AMPLIFY
    for i, curve in enumerate(columns.curve.tolist()):
        amplified, flips = columns.variance_amplification[i], columns.flips[i]
        yield SequenceDecay(
            curve=tuple(curve),
            variance_amplification=still if np.isnan(amplified) else int(amplified),
            graceful_degradation=int(columns.graceful_degradation[i]),
            flips=TOO_SHORT_TO_FLIP if np.isnan(flips) else int(flips),
            runs=runs,
            passes=int(columns.passes[i]),
        )
