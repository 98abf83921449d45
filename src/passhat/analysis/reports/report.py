"""The answer: everything measured about some trials, one SystemReport a system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING

from passhat.analysis.reports.headline_k import common_k
from passhat.analysis.reports.lazy_value import Later
from passhat.analysis.reports.parts import Leaders
from passhat.analysis.reports.provenance import Provenance
from passhat.analysis.reports.system_report import SystemReport, system_named
from passhat.display import Displayed
from passhat.fast_dataclass import dataclass
from passhat.messages import first_few, plural, quoted, rounded, short_repr
from passhat.stats.estimate import Unavailable

if TYPE_CHECKING:
    from passhat.analysis.reports.plots import Plots
    from passhat.analysis.reports.tasks import TaskMatrix

_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Displayed):
    """Everything measured about the systems of one table of trials."""

    systems: tuple[SystemReport, ...]
    provenance: Provenance
    found_leaders: Later[Leaders | Unavailable] = field(repr=False, compare=False)
    notes: tuple[str, ...] = ()
    find_leaders: Callable[..., Leaders | Unavailable] | None = field(
        default=None, repr=False, compare=False
    )

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
        """Who is ahead, as `rank` has it at the same pass^k."""
        return self.found_leaders.look()

    def leaders_at(self, k: int) -> Leaders | Unavailable:
        """Who is ahead at another pass^k than that of the headline."""
        if k == common_k(self.systems) or self.find_leaders is None:
            return self.leaders
        return self.find_leaders(k=k)

    @property
    def plots(self) -> Plots:
        """The pictures of this report."""
        from passhat.analysis.reports.plots import Plots  # drawing is loaded by those who draw

        return Plots(self.systems)

    def matrix(self) -> TaskMatrix:
        """Every task against every system."""
        from passhat.analysis.reports.tasks import task_matrix

        return task_matrix({one.name: one.tasks for one in self.systems}, self.plots.matrix())

    def system(self, name: str | None = None) -> SystemReport:
        """The report of one system (the only one, if none is named)."""
        return system_named(self.systems, name)
