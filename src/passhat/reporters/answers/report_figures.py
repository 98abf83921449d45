"""The pictures of a report by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from passhat.analysis.reports.report import Report
from passhat.stats.estimate import Unavailable

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure


def report_figures(report: Report) -> Mapping[str, Figure]:
    """The pictures of a report by name: of one system its own, of several one of all."""
    plots = report.plots
    found: dict[str, Figure | Unavailable]
    if len(report.systems) == 1:
        names = ("decay", "forest", "runs", "variance")
        found = {name: getattr(plots, name)() for name in names}
    else:
        found = {
            "systems": plots.compared(report.leaders),
            "curves": plots.curves(report.leaders),
            "matrix": plots.matrix(),
            "cost": plots.cost(),
        }
        if isinstance(found["cost"], Unavailable):  # tokens are what many logs know of the price
            found["cost"] = plots.cost(feature="tokens")
    return {name: one for name, one in found.items() if not isinstance(one, Unavailable)}
