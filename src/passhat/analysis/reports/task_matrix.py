"""Every task against every system: how often it passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from passhat.display import Displayed
from passhat.messages import plural, short_repr
from passhat.records.natural_order import natural_key

if TYPE_CHECKING:
    from passhat.analysis.reports.system_report import SystemReport
    from passhat.drawing.figure import Figure
    from passhat.stats.estimate import Unavailable


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
    """A row a task, a cell a system; None where a system did not run a task."""

    systems: tuple[str, ...]
    tasks: tuple[str, ...]
    cells: tuple[tuple[MatrixCell | None, ...], ...]
    figure: Figure | Unavailable

    def __repr__(self) -> str:
        size = f"{plural(len(self.tasks), 'task')} x {plural(len(self.systems), 'system')}"
        return short_repr("TaskMatrix", size, see=".cells, .figure, .to_frame()")


def task_matrix(systems: tuple[SystemReport, ...], figure: Figure | Unavailable) -> TaskMatrix:
    """The tasks of some systems side by side, in the natural order of their names."""
    found = [
        {
            name: MatrixCell(passed=passed, runs=runs)
            for name, passed, runs in zip(
                one.tasks.names, one.tasks.passed.tolist(), one.tasks.runs.tolist(), strict=True
            )
        }
        for one in systems
    ]
    tasks = sorted({name for cells in found for name in cells}, key=natural_key)
    return TaskMatrix(
        systems=tuple(one.name for one in systems),
        tasks=tuple(tasks),
        cells=tuple(tuple(cells.get(task) for cells in found) for task in tasks),
        figure=figure,
    )
