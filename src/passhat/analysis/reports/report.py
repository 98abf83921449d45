"""The answer: everything measured about some trials, by system, and by task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.reports.dependence import Disturbance, SeedSpread
from passhat.analysis.reports.evidence import Counts, Evidence, Floats, Provenance
from passhat.analysis.reports.metrics import common_k
from passhat.analysis.reports.parts import (
    BarCount,
    Decay,
    Design,
    ErrorSplit,
    Exclusion,
    Leaders,
    Metric,
    ResourceUse,
    Rounds,
    Unsettled,
    VarianceSplit,
    system_named,
)
from passhat.dataclass import Displayed, dataclass, lazy_field, result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import first_few, plural, quoted, rounded, short_repr
from passhat.records import Tally
from passhat.records.trial import natural_key
from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.proportions import proportion_bounds
from passhat.stats.task_labels import label_tasks, runs_to_label
from passhat.stats.variance import NoiseSources

if TYPE_CHECKING:
    from passhat.analysis.reports.plots import Plots
    from passhat.drawing.figure import Figure

_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Displayed):
    """Everything measured about the systems of one table of trials."""

    systems: tuple[SystemReport, ...]
    provenance: Provenance
    leaders_by_k: Mapping[int, Leaders | Unavailable]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        if len(self.systems) == 1:
            return f"<Report: {repr(self.systems[0])[1:-1]}; see .system(), .plots>"
        shown = first_few(f"{quoted(one.name)} {rounded(one.mean_score)}" for one in self.systems)
        head = f"Report of {plural(len(self.systems), 'system')} by mean_score"
        return short_repr(head, *shown, see=".systems, .plots, print()")

    def __str__(self) -> str:
        lines = [f"  {system!r}" for system in self.systems[:_MOST_SHOWN]]
        more = len(self.systems) - len(lines)
        lines += [f"  and {more:,} more"] if more else []
        return "\n".join([f"<Report: {plural(len(self.systems), 'system')}", *lines]) + ">"

    @property
    def leaders(self) -> Leaders | Unavailable:
        """Who is ahead at the pass^k of the headline, as `rank` has it."""
        return self.leaders_at(common_k(self.systems))

    def leaders_at(self, k: int) -> Leaders | Unavailable:
        """Who is ahead at this pass^k."""
        return self.leaders_by_k.get(k, Unavailable(f"pass^{k} was not measured"))

    @property
    def plots(self) -> Plots:
        """The pictures of this report."""
        from passhat.analysis.reports.plots import Plots  # imported only to draw

        return Plots(self.systems)

    def matrix(self) -> TaskMatrix:
        """Every task against every system."""
        return task_matrix({one.name: one.tasks for one in self.systems}, self.plots.matrix())

    def system(self, name: str | None = None) -> SystemReport:
        """The report of one system (the only one, if none is named)."""
        return system_named(self.systems, name)


_LARGEST_SHOWN_K = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemReport:
    """Everything measured about one system.

    Parts that few people look at (lazy fields, levels, tags) are measured on first use: `noise` is
    how much of the mean's interval comes from runs and how much from tasks, `decay` what more
    attempts at every task would show and in what order the runs came, `unsettled` what the trials
    do not decide and how many more runs would.
    """

    name: str
    design: Design
    metrics: Mapping[str, Metric]
    variance: VarianceSplit | Unavailable
    noise: lazy_field[NoiseSources | Unavailable] = lazy_field()
    seeds: SeedSpread | Unavailable
    rounds: Rounds | Unavailable
    disturbances: tuple[Disturbance, ...]
    decay: lazy_field[Decay] = lazy_field()
    tasks: TaskTable
    bars: tuple[BarCount, ...]
    errors: ErrorSplit
    features: Mapping[str, ResourceUse]
    tools: Mapping[str, Estimate]
    unsettled: lazy_field[tuple[Unsettled, ...]] = lazy_field()
    excluded: tuple[Exclusion, ...]
    levels: Mapping[str, SystemReport] = field(default_factory=dict)
    tags: Mapping[str, SystemReport] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        known = [k for k in self.ks if self.pass_hat(k).value is not None]
        shown = dict.fromkeys([*known[:1], *[k for k in known if k <= _LARGEST_SHOWN_K][-1:]])
        numbers = "".join(f", pass^{k} {rounded(self.pass_hat(k).this_suite)}" for k in shown)
        shape = f"{plural(self.design.tasks, 'task')}, {plural(self.design.trials, 'trial')}"
        return f"<SystemReport {quoted(self.name)}: {shape}{numbers}>"

    @property
    def ks(self) -> tuple[int, ...]:
        """The k for which the metrics are stated."""
        return tuple(int(name[5:]) for name in self.metrics if name.startswith("pass^"))

    @property
    def mean_score(self) -> Metric:
        """The mean score of a run."""
        return self.metrics["mean_score"]

    def pass_hat(self, k: int) -> Metric:
        """pass^k: the chance that k attempts at a task all succeed (reliability@k)."""
        return self._of_attempts("^", k)

    def pass_at(self, k: int) -> Metric:
        """pass@k: the chance that at least one of k attempts succeeds."""
        return self._of_attempts("@", k)

    def _of_attempts(self, sign: str, k: int) -> Metric:
        found = self.metrics.get(f"pass{sign}{k}")
        if found is None:
            known = ", ".join(map(str, self.ks)) or "none"
            raise ArgumentError("k", f"must be one that was measured ({known}; see ks=)", k)
        return found


Label = Literal["solid", "flaky", "broken", "undecided"]

LABELS: tuple[Label, ...] = ("solid", "flaky", "broken", "undecided")


@result_dataclass(frozen=True, slots=True, kw_only=True)
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
    judged: lazy_field[LabelColumns] = lazy_field()
    sequences: tuple[str, ...] | None
    confidence: float

    @property
    def labels(self) -> NDArray[np.int8]:
        """The place of each task's label in LABELS."""
        return self.judged.labels

    @property
    def chance(self) -> Floats:
        """The posterior chance of each task's likeliest label."""
        return self.judged.chance

    @property
    def more_runs(self) -> Counts:
        return self.judged.more_runs

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
        judged=partial(_labels, evidence.runs, evidence.passes),
        sequences=None if sequences is None else tuple(sequences[i] for i in rows),
        confidence=confidence,
    )


def task_matrix(tables: Mapping[str, TaskTable], figure: Figure | Unavailable) -> TaskMatrix:
    """The tasks of some systems side by side, in the natural order of their names."""
    columns = []
    for table in tables.values():
        rows = zip(table.names, table.passed.tolist(), table.runs.tolist(), strict=True)
        columns.append({name: MatrixCell(passed=c, runs=n) for name, c, n in rows})
    tasks = sorted({name for cells in columns for name in cells}, key=natural_key)
    return TaskMatrix(
        systems=tuple(tables),
        tasks=tuple(tasks),
        cells=tuple(tuple(cells.get(task) for cells in columns) for task in tasks),
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
