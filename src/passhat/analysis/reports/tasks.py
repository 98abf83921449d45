"""The tasks of a system: how often each passed, its label, and tasks against systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.reports.evidence import Counts, Evidence, Floats
from passhat.dataclass import Displayed, Later, dataclass, short_dataclass
from passhat.messages import plural, short_repr
from passhat.records import Tally
from passhat.records.trial import natural_key
from passhat.stats.estimate import Estimate, Interval
from passhat.stats.proportions import proportion_bounds
from passhat.stats.task_labels import label_tasks, runs_to_label

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure
    from passhat.stats.estimate import Unavailable

Label = Literal["solid", "flaky", "broken", "undecided"]

LABELS: tuple[Label, ...] = ("solid", "flaky", "broken", "undecided")


@short_dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """One task: how often it passed, and its label.

    `sequence` writes the runs in order as P, F and E; it is None if only counts were read.
    """

    name: str
    runs: int
    passed: int
    failed: int
    errored: int
    rate: Estimate
    mean_score: float
    label: Label
    chance: float
    more_runs: int | None
    sequence: str | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelColumns:
    """The label of each task, its chance, and the runs that would give it one if it has none."""

    labels: NDArray[np.int8]
    chance: Floats
    more_runs: Counts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskTable(Sequence[TaskRow]):
    """The tasks of a system in columns; rows and labels are made on first use.

    `more_runs` is 0 where a task has its label, or where no number of runs would give it one.
    """

    names: tuple[str, ...]
    passed: NDArray[np.int64]
    failed: NDArray[np.int64]
    errored: NDArray[np.int64]
    runs: NDArray[np.int64]
    rate: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    mean_score: NDArray[np.float64]
    judged: Later[LabelColumns] = field(repr=False)
    sequences: tuple[str, ...] | None
    confidence: float

    @property
    def labels(self) -> NDArray[np.int8]:
        """The place of each task's label in LABELS."""
        return self.judged.look().labels

    @property
    def chance(self) -> Floats:
        """The posterior chance of each task's likeliest label."""
        return self.judged.look().chance

    @property
    def more_runs(self) -> Counts:
        return self.judged.look().more_runs

    def __repr__(self) -> str:
        found = ", ".join(f"{count:,} {label}" for label in LABELS if (count := self.count(label)))
        size = plural(len(self), "task") + (f" ({found})" if found else "")
        rate = [f"mean rate {self.rate.mean():.3g}"] if len(self) else []
        return short_repr("TaskTable", size, *rate, see="[0], .labelled('flaky'), .names")

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> TaskRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[TaskRow]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self._row(i) for i in range(*index.indices(len(self)))]
        return self._row(range(len(self))[index])

    def __iter__(self) -> Iterator[TaskRow]:
        return (self._row(i) for i in range(len(self)))

    def count(self, value: Any) -> int:
        """How many tasks have a label: solid, flaky, broken or undecided (or equal a row)."""
        if value in LABELS:
            return int(np.count_nonzero(self.labels == LABELS.index(value)))
        return sum(row == value for row in self)

    def labelled(self, label: Label, most: int | None = None) -> list[TaskRow]:
        """The tasks with a label (at most so many), the least settled first."""
        return [self._row(i) for i in self._places(label)[:most]]

    def names_labelled(self, label: Label) -> tuple[str, ...]:
        """Their names alone: cheap, however many there are."""
        return tuple(self.names[i] for i in self._places(label))

    def failing(self, most: int | None = None) -> list[TaskRow]:
        """The tasks that did not always pass (at most so many), those that also passed first."""
        rows = np.flatnonzero(self.passed < self.runs)
        return [self._row(i) for i in self._least_settled(rows)[:most]]

    def named(self, name: str) -> TaskRow:
        return self._row(self.names.index(name))

    def _places(self, label: Label) -> list[int]:
        return self._least_settled(np.flatnonzero(self.labels == LABELS.index(label)))

    def _least_settled(self, rows: NDArray[np.intp]) -> list[int]:
        """Those nearest to a coin flip first; of equals, by name as people sort names."""
        away = np.abs(self.rate - 0.5)
        return sorted(rows.tolist(), key=lambda i: (away[i], natural_key(self.names[i])))

    def _row(self, i: int) -> TaskRow:
        return TaskRow(
            name=self.names[i],
            runs=int(self.runs[i]),
            passed=int(self.passed[i]),
            failed=int(self.failed[i]),
            errored=int(self.errored[i]),
            rate=Estimate(
                value=float(self.rate[i]),
                interval=Interval(float(self.low[i]), float(self.high[i])),
                method="Wilson",
                confidence=self.confidence,
                scope="this suite",
                tasks=1,
                runs=int(self.runs[i]),
            ),
            mean_score=float(self.mean_score[i]),
            label=LABELS[self.labels[i]],
            chance=float(self.chance[i]),
            more_runs=int(self.more_runs[i]) or None,
            sequence=None if self.sequences is None else self.sequences[i],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """How often one system passed one task."""

    passed: int
    runs: int

    @property
    def rate(self) -> float:
        return self.passed / self.runs


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMatrix(Displayed):
    """One row per task, one cell per system; None if a system did not run a task."""

    systems: tuple[str, ...]
    tasks: tuple[str, ...]
    cells: tuple[tuple[MatrixCell | None, ...], ...]
    figure: Figure | Unavailable

    def __repr__(self) -> str:
        size = f"{plural(len(self.tasks), 'task')} x {plural(len(self.systems), 'system')}"
        return short_repr("TaskMatrix", size, see=".cells, .figure, .to_frame()")


def tabulate_tasks(
    tally: Tally, evidence: Evidence, sequences: tuple[str, ...] | None, *, confidence: float
) -> TaskTable:
    """All tasks of a system that have a run."""
    low, high = proportion_bounds(evidence.passes, evidence.runs, confidence=confidence)
    rows = evidence.rows
    return TaskTable(
        names=evidence.tasks,
        passed=evidence.passes,
        failed=tally.failed[rows],
        errored=tally.errored[rows],
        runs=evidence.runs,
        rate=evidence.passes / evidence.runs,
        low=low,
        high=high,
        mean_score=evidence.score_total / evidence.runs,
        judged=Later(partial(_labels, evidence.runs, evidence.passes)),
        sequences=None if sequences is None else tuple(sequences[i] for i in rows),
        confidence=confidence,
    )


def task_matrix(tables: Mapping[str, TaskTable], figure: Figure | Unavailable) -> TaskMatrix:
    """The tasks of some systems side by side, in the natural order of their names."""
    found = [
        {
            name: MatrixCell(passed=passed, runs=runs)
            for name, passed, runs in zip(
                one.names, one.passed.tolist(), one.runs.tolist(), strict=True
            )
        }
        for one in tables.values()
    ]
    tasks = sorted({name for cells in found for name in cells}, key=natural_key)
    return TaskMatrix(
        systems=tuple(tables),
        tasks=tuple(tasks),
        cells=tuple(tuple(cells.get(task) for cells in found) for task in tasks),
        figure=figure,
    )


def _labels(runs: Counts, passes: Counts) -> LabelColumns:
    if not runs.size:
        none = np.zeros(0, dtype=np.int64)
        return LabelColumns(labels=none.astype(np.int8), chance=np.zeros(0), more_runs=none)
    found = label_tasks(runs, passes)
    codes = np.select([found.labels == label for label in LABELS], range(len(LABELS)))
    return LabelColumns(
        labels=codes.astype(np.int8),
        chance=np.max((found.solid, found.flaky, found.broken), axis=0),
        more_runs=runs_to_label(runs, passes, found.labels),
    )
