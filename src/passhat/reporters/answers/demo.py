"""The demonstration: two made-up agents, three surprises, three next commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from passhat.analysis.planning.simulate import Demonstration
from passhat.analysis.reports.parts import SystemReport
from passhat.messages import plural
from passhat.reporters.answer import (
    Answer,
    Block,
    DisplayOptions,
    Headline,
    Hints,
    NextStep,
    Records,
    Remark,
    Table,
)
from passhat.reporters.answers.report import ReportAnswer
from passhat.reporters.answers.report_blocks import report_figures
from passhat.reporters.formatting import (
    interval_of,
    percent,
    short,
    signed_span,
    span,
)
from passhat.stats.estimate import Unavailable

if TYPE_CHECKING:
    from passhat.analysis.reports.evidence import Provenance
    from passhat.drawing.figure import Figure


class DemoAnswer(Answer[Demonstration]):
    """Two made-up agents, and what surprises in them."""

    name = "demo"

    def title(self) -> str:
        return "A demonstration with two made-up agents"

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """What was simulated, what it shows, what to do next."""
        found = self.result
        design = found.report.systems[0].design
        return [
            Headline(
                f"Two made-up agents, {plural(design.tasks, 'task')}, "
                f"{plural(design.typical_runs, 'trial')} of each. No key, no network."
            ),
            _table(found),
            Remark(f"1. {_able(found)}", apart=True),
            Remark(f"2. {_lead(found)}"),
            Remark(f"3. {_not_proof(found)}"),
            Hints((NextStep("Next", "passhat report YOUR_RESULTS"),)),
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
        header=("", "pass@1", f"pass@{k}", f"pass^{k}", "95% CI"),
        rows=tuple(_row(system, k) for system in found.report.systems),
        left=(0, 4),
    )


def _row(system: SystemReport, k: int) -> tuple[str, ...]:
    streak = system.pass_hat(k)
    numbers = (system.pass_hat(1), system.pass_at(k), streak)
    values = (percent(number.value, digits=1) for number in numbers)
    return (short(system.name), *values, span(interval_of(streak.this_suite)))


def _able(found: Demonstration) -> str:
    """pass@k flatters."""
    system, k = found.report.systems[0], found.k
    once, always = system.pass_at(k).value or 0.0, system.pass_hat(k).value or 0.0
    return (
        f"Able is not reliable: {short(system.name)} solves {percent(once)} of tasks given {k} "
        f"tries (pass@{k}), but only {percent(always)} of them {k} times in a row (pass^{k})."
    )


def _lead(found: Demonstration) -> str:
    """A lead that may be noise."""
    comparison = found.comparison
    number = comparison.mean_score.this_suite
    if isinstance(number, Unavailable):
        return f"The two cannot be compared: {number.reason}."
    first, size = short(comparison.first), f"{100 * number.value:.1f} points"
    shown = comparison.mean_score.answer("this suite") != "undecided"
    verdict = "a clear difference" if shown else "no clear difference"
    return f"{first} is {size} ahead {signed_span(number.interval)}: {verdict}."


def _not_proof(found: Demonstration) -> str:
    """Passing every time so far does not make a task safe."""
    system = found.report.systems[0]
    few = [row for row in system.tasks.labelled("undecided") if row.passed == row.runs]
    if not few:
        return "A task that always passed so far may still fail: passhat says how sure it is."
    row = min(few, key=lambda row: (row.more_runs or 10**9, row.name))
    more = f"about {plural(row.more_runs, 'more trial')}" if row.more_runs else "more trials"
    return f"{row.passed} of {row.runs} is not proof: {short(row.name)} needs {more}."
