"""The demonstration: two made-up agents, three surprises, three next commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from passhat.analysis.planning.simulate import Demonstration
from passhat.analysis.reports.parts import SystemReport
from passhat.messages import plural
from passhat.reporters.answer import (
    Answer,
    Bar,
    Block,
    DisplayOptions,
    Headline,
    NextStep,
    Records,
    Steps,
    Table,
)
from passhat.reporters.answers.report import ReportAnswer
from passhat.reporters.answers.report_blocks import report_figures
from passhat.reporters.formatting import (
    interval_of,
    percent,
    points,
    short,
    signed_points,
    signed_span,
    span,
)
from passhat.stats.estimate import Unavailable

if TYPE_CHECKING:
    from passhat.analysis.reports.evidence import Provenance
    from passhat.drawing.figure import Figure

NEXT_COMMANDS = (
    NextStep("Report on your own results", "passhat report YOUR_RESULTS"),
    NextStep("Compare two agents", "passhat compare NEW_RESULTS OLD_RESULTS"),
    NextStep("Plan how much to run", "passhat plan --tasks 24 --half-width 0.05"),
)


class DemoAnswer(Answer[Demonstration]):
    """Two made-up agents, and what surprises in them."""

    name = "demo"

    def title(self) -> str:
        return "A demonstration with two made-up agents"

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """What was simulated, what it shows, what to do next."""
        found = self.result
        design = found.report.systems[0].design
        surprises = _streaks(found), _lead(found), _undecided(found)
        return [
            Headline(
                f"Two made-up agents, {plural(design.tasks, 'task')}, "
                f"{plural(design.typical_runs, 'run')} of each: no key, no network, "
                f"seed {found.report.provenance.options.seed}."
            ),
            _table(found),
            Steps("Three surprises", tuple(map(NextStep, surprises))),
            Steps("Next", NEXT_COMMANDS),
        ]

    def rows(self) -> Records:
        return ReportAnswer(self.result.report).rows()

    def data(self) -> Any:
        return ReportAnswer(self.result.report).data()

    def figures(self) -> Mapping[str, Figure]:
        return report_figures(self.result.report)

    def provenance(self) -> Provenance | None:
        return self.result.report.provenance


def _table(found: Demonstration) -> Table:
    k = found.k
    return Table(
        header=("in %", "pass^1", f"pass@{k}", f"pass^{k}", "this suite", ""),
        rows=tuple(_row(system, k) for system in found.report.systems),
        left=(0, 4),
    )


def _row(system: SystemReport, k: int) -> tuple[str | Bar, ...]:
    streak = system.pass_hat(k)
    numbers = (system.pass_hat(1), system.pass_at(k), streak)
    return (
        short(system.name),
        *(points(number.value, digits=1) for number in numbers),
        span(interval_of(streak.this_suite)),
        Bar.of(streak),
    )


def _streaks(found: Demonstration) -> str:
    """pass@k flatters."""
    system, k = found.report.systems[0], found.k
    once, always = system.pass_at(k).value or 0.0, system.pass_hat(k).value or 0.0
    return (
        f'"Can it" is not "does it": given {k} tries, {short(system.name)} solves a task '
        f"{percent(once)} of the time (pass@{k}); {k} times out of {k}, only {percent(always)} "
        f"(pass^{k})."
    )


def _lead(found: Demonstration) -> str:
    """A lead that may be noise."""
    comparison = found.comparison
    number = comparison.mean_score.this_suite
    if isinstance(number, Unavailable):
        return f"The two cannot be compared: {number.reason}."
    first, second = short(comparison.first), short(comparison.second)
    size = f"{signed_points(number.value, digits=1)} points {signed_span(number.interval)}"
    if comparison.mean_score.answer("this suite") == "undecided":
        return f"{first} beats {second} by {size}, which is within noise: neither has won yet."
    return f"{first} differs from {second} by {size}: more than noise."


def _undecided(found: Demonstration) -> str:
    """Some tasks need more runs."""
    system = found.report.systems[0]
    table = system.tasks
    few = table.labelled("undecided")
    runs = plural(system.design.typical_runs, "run")
    if not few:
        return f"{runs} were enough to call every task of {short(system.name)}."
    row = min(few, key=lambda row: (row.more_runs or 10**9, row.name))
    more = f"about {row.more_runs:,} more runs" if row.more_runs else "more runs than are worth it"
    return (
        f"{runs} are not enough for {plural(len(few), 'task')} of {len(table)}: {short(row.name)} "
        f"passed {row.passed} of {row.runs}, and needs {more} to be called solid or flaky."
    )
