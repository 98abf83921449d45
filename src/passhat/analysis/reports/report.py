"""The answer: everything measured about the systems of some trials, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from passhat.analysis.reports import parts
from passhat.analysis.reports.evidence import Provenance
from passhat.dataclass import Displayed, dataclass, lazy_field
from passhat.messages import plural, short_repr
from passhat.records.trial import STOPPED_EARLY, ended_early, natural_key
from passhat.stats.estimate import Unavailable

if TYPE_CHECKING:
    from passhat.analysis.reports.plots import Plots
    from passhat.drawing.figure import Figure

_MOST_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Displayed):
    """Everything measured about the systems of one table of trials.

    Where some k were asked for, `every_k` is the report of these and of those that the runs allow.
    """

    systems: tuple[parts.SystemReport, ...]
    provenance: Provenance
    every_k: lazy_field[Report | None] = lazy_field()
    leaders_by_k: Mapping[int, parts.Leaders | Unavailable]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        systems = self.as_read.systems[:_MOST_SHOWN]
        lines = [repr(system).removeprefix("<SystemReport ") for system in systems]
        if len(self.systems) == 1:
            return f"<Report {lines[0]}"
        more = len(self.systems) - len(lines)
        lines = [f"  {line.removesuffix('>')}" for line in lines]
        lines += [f"  and {more:,} more"] if more else []
        return "\n".join([f"<Report of {plural(len(self.systems), 'agent')}:", *lines]) + ">"

    @property
    def as_read(self) -> Report:
        """The report that people read: of a run that its gates ended early, counts and no rate."""
        if not self.provenance.stopped_early:
            return self
        none = dict.fromkeys(self.leaders_by_k, Unavailable(STOPPED_EARLY))
        known = ended_early(self.provenance.sources)  # its headline says so
        return replace(
            self,
            systems=tuple(map(parts.without_rates, self.systems)),
            every_k=None,
            leaders_by_k=none,
            notes=tuple(note for note in self.notes if note not in known),
        )

    def about(self, k: int | None, share: float | None = None) -> Report:
        """The report with its sentences about this k, where it was measured.

        `share` is the pass^k that a gate demands.
        """
        if k is None:
            return self
        asked = (replace(system, asked_k=k, asked_share=share) for system in self.systems)
        return replace(self, systems=tuple(asked))

    def pass_at(self, k: int) -> parts.Metric:
        """pass@k of the only agent."""
        return parts.system_named(self.systems, then=f".pass_at({k})").pass_at(k)

    def pass_hat(self, k: int) -> parts.Metric:
        """pass^k of the only agent."""
        return parts.system_named(self.systems, then=f".pass_hat({k})").pass_hat(k)

    @property
    def leaders(self) -> parts.Leaders | Unavailable:
        """Who is ahead at the pass^k of the headline, as `rank` has it."""
        return self.leaders_at(parts.common_k(self.systems))

    def leaders_at(self, k: int) -> parts.Leaders | Unavailable:
        """Who is ahead at this pass^k."""
        return self.leaders_by_k.get(k, Unavailable(f"pass^{k} was not measured"))

    @property
    def plots(self) -> Plots:
        """The pictures of this report."""
        from passhat.analysis.reports.plots import Plots  # imported only to draw

        return Plots(self.systems)

    def matrix(self) -> TaskMatrix:
        """Every task against every system."""
        return task_matrix({s.name: s.tasks for s in self.systems}, self.plots.matrix())

    def system(self, name: str | None = None) -> parts.SystemReport:
        """The report of one system (the only one, if none is named)."""
        return parts.system_named(self.systems, name)


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
        size = f"{plural(len(self.tasks), 'task')} x {plural(len(self.systems), 'agent')}"
        return short_repr("TaskMatrix", size, see=".cells, .figure, .to_frame()")


def task_matrix(tables: Mapping[str, parts.TaskTable], figure: Figure | Unavailable) -> TaskMatrix:
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
