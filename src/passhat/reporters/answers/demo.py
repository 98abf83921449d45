"""The demonstration: two made-up agents, three surprises, three next commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from passhat.analysis.planning.simulate import Demonstration
from passhat.analysis.reports.parts import SystemReport, TaskRow
from passhat.messages import halves_away, plural, points
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
from passhat.reporters.answers.comparison import called, comparison_numbers
from passhat.reporters.answers.report import ReportAnswer
from passhat.reporters.answers.report_blocks import report_figures
from passhat.reporters.formatting import (
    interval_of,
    percent,
    short,
    signed_span,
    span,
    value_of,
)
from passhat.stats.estimate import Unavailable

if TYPE_CHECKING:
    from passhat.analysis.reports.evidence import Provenance
    from passhat.drawing.figure import Figure


class DemoAnswer(Answer[Demonstration]):
    """Two made-up agents, and what surprises in them."""

    name = "demo"
    template = "demo.html"

    def title(self) -> str:
        return "A demonstration with two made-up agents"

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """What was simulated, what it shows, what to do next."""
        demo = self.result
        return [
            Headline(_made_of(demo)),
            _table(demo),
            Remark(f"1. {_able(demo)}", apart=True),
            Remark(f"2. {_lead(demo)}"),
            Remark(f"3. {_not_proof(demo)}"),
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

    def page(self, options: DisplayOptions) -> Mapping[str, Any]:
        """Two shares as two times a hundred squares, at every k; then the other two surprises."""
        demo = self.result
        system = demo.report.systems[0]
        once = {point.k: value_of(point.estimate) for point in system.decay.pass_at}
        streaks = {point.k: value_of(point.estimate) for point in system.decay.pass_hat}
        at_k = [
            _at_k(k, can, always)
            for k, can in once.items()
            if can is not None and (always := streaks.get(k)) is not None
        ]
        row = _unproven(system)
        return {
            "headline": f"{at_k[0]['can']} can." if at_k else self.title(),
            "at_k": at_k,
            "k": demo.k,
            "made_of": _made_of(demo),
            "decay": demo.report.plots.decay(system.name),
            "lead": _lead(demo),
            "number": next(iter(comparison_numbers(demo.comparison))),
            "names": called(demo.comparison),
            "not_proof": _not_proof(demo),
            "row": row,
            "ways": WAYS_ON,
        }


WAYS_ON = (
    (
        "You have results",
        "A log of any tool: Inspect, promptfoo, tau-bench, JUnit, CSV.",
        "passhat report YOUR_RESULTS",
    ),
    ("You have an agent", "A suite that runs at once; then put your agent in.", "passhat init"),
    ("You changed something", "Is the new one better, or is it noise?", "passhat compare NEW OLD"),
)
"""What to do after the demonstration."""


def _made_of(demonstration: Demonstration) -> str:
    design = demonstration.report.systems[0].design
    tasks, trials = plural(design.tasks, "task"), plural(design.typical_runs, "trial")
    return f"Two made-up agents, {tasks}, {trials} of each. No key, no network."


def _at_k(k: int, can: float, always: float) -> dict[str, Any]:
    """The two shares at one k, in words and in squares; at k = 1 they are one number."""
    once, streak = percent(can), percent(always)
    both = {"k": k, "can": once, "always": streak, "squares": [_squares(can), _squares(always)]}
    if k == 1:
        text = f"It works {once} of the time. How often does it work every time?"
        return {**both, "title": [text], "text": ""}
    return {
        **both,
        "title": [f"{once} can.", f"{streak} always."],
        "text": f"Give it {k} tries and it solves a task {once} of the time (pass@{k}). Ask "
        f"it {k} times and it is right every time for only {streak} (pass^{k}). Benchmarks "
        "print the first number; your users live with the second.",
    }


def _squares(share: float) -> int:
    """A share as so many of a hundred squares; all or none only where that is reached.

    >>> _squares(0.962), _squares(0.999), _squares(0.001), _squares(1.0)
    (96, 99, 1, 100)
    """
    rounded = round(halves_away(100 * share))
    return rounded if share in (0, 1) else min(99, max(1, rounded))


def _table(demonstration: Demonstration) -> Table:
    k = demonstration.k
    return Table(
        header=("", "pass@1", f"pass@{k}", f"pass^{k}", "95% CI"),
        rows=tuple(_row(system, k) for system in demonstration.report.systems),
        left=(0, 4),
    )


def _row(system: SystemReport, k: int) -> tuple[str, ...]:
    streak = system.pass_hat(k)
    numbers = (system.pass_hat(1), system.pass_at(k), streak)
    values = (percent(number.value, digits=1) for number in numbers)
    return (short(system.name), *values, span(interval_of(streak.this_suite)))


def _able(demonstration: Demonstration) -> str:
    """pass@k flatters."""
    system, k = demonstration.report.systems[0], demonstration.k
    once, always = system.pass_at(k).value or 0.0, system.pass_hat(k).value or 0.0
    return (
        f"Able is not reliable: {short(system.name)} solves {percent(once)} of tasks given {k} "
        f"tries (pass@{k}), but only {percent(always)} of them {k} times in a row (pass^{k})."
    )


def _lead(demonstration: Demonstration) -> str:
    """A lead that may be noise."""
    comparison = demonstration.comparison
    number = comparison.mean_score.this_suite
    if isinstance(number, Unavailable):
        return f"The two cannot be compared: {number.reason}."
    first, size = short(comparison.first), f"{points(number.value, digits=1)} points"
    shown = comparison.mean_score.answer("this suite") != "undecided"
    verdict = "a clear difference" if shown else "no clear difference"
    return f"{first} is {size} ahead {signed_span(number.interval)}: {verdict}."


def _not_proof(demonstration: Demonstration) -> str:
    """Passing every time so far does not make a task safe."""
    row = _unproven(demonstration.report.systems[0])
    if row is None:
        return "A task that always passed so far may still fail: passhat says how sure it is."
    more = f"about {plural(row.more_runs, 'more trial')}" if row.more_runs else "more trials"
    return f"{row.passed} of {row.runs} is not proof: {short(row.name)} needs {more}."


def _unproven(system: SystemReport) -> TaskRow | None:
    """The task that passed every trial and needs the fewest more to be called solid."""
    few = [row for row in system.tasks.labelled("undecided") if row.passed == row.runs]
    return min(few, key=lambda row: (row.more_runs or 10**9, row.name), default=None)
