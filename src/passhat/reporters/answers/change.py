"""A change under review: the verdict, before and after, tasks that moved, why, and the cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from passhat.analysis.comparing.comparison import Comparison, Difference, as_people_compare
from passhat.analysis.gates.run_answer import ChangeReview
from passhat.reporters.answer import (
    Answer,
    Block,
    DisplayOptions,
    Headline,
    Paragraph,
    Records,
    Section,
    Table,
    paragraphs,
    verdict_text,
)
from passhat.reporters.answers.comparison import ComparisonAnswer, differing_tasks
from passhat.reporters.answers.explanation import verdict as cause_sentence
from passhat.reporters.answers.report_blocks import task_table, worst_tasks
from passhat.reporters.answers.verdicts import judged
from passhat.reporters.formatting import (
    both_intervals,
    metric_label,
    percent,
    signed_points,
    signed_span,
)
from passhat.reporters.headline import overview
from passhat.reporters.wording import cost

if TYPE_CHECKING:
    from passhat.analysis.reports.evidence import Provenance
    from passhat.reporters.test_cases import TestSuite

MOST_FILES = 5

MOST_TASKS = 10
"""Tasks that a comment lists; the page of the run lists all."""


class ChangeAnswer(Answer[ChangeReview]):
    """A change as its reviewer reads it."""

    name = "change"

    def title(self) -> str:
        outcome = overview(self.result.report)
        return f"{self.result.word}: {outcome}" if self.result.word else outcome

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """What a reviewer reads, the most important first."""
        review = self.result
        verdicts, outcome = review.verdicts, overview(review.report)
        blocks: list[Block] = [Headline(outcome if verdicts is None else verdicts.sentence)]
        blocks += [judged(verdict) for verdict in review.judged]
        if review.edits:
            blocks.append(Paragraph("Note", _edits_sentence(review.edits)))
        for name, comparison in review.comparisons.items():
            whose = f" of {name}" if len(review.report.systems) > 1 else ""
            blocks.append(Section(f"Before and after{whose}", f"against {review.baseline}"))
            blocks += _before_and_after(comparison)
        if not review.comparisons:
            blocks.append(Paragraph("Report", outcome))
        blocks += _worst(review)
        blocks += paragraphs("Earlier runs", verdict_text(review.run_verdict))
        if review.explanation is not None:
            blocks.append(Paragraph("Why", cause_sentence(review.explanation)))
        blocks += paragraphs("Cost", *map(cost, review.report.systems))
        if review.informational:
            blocks.append(Paragraph("Note", "For information only: it does not fail the change."))
        return blocks

    def rows(self) -> Records:
        """The rows of each comparison, with the name of its system."""
        return [
            {"system": name, **row}
            for name, comparison in self.result.comparisons.items()
            for row in ComparisonAnswer(comparison).rows()
        ]

    def cases(self) -> Sequence[TestSuite]:
        from passhat.reporters.test_cases import gate_suite, task_suites

        review = self.result
        gates = [] if review.verdicts is None else [gate_suite(review.verdicts)]
        return [*task_suites(review.report), *gates]

    def provenance(self) -> Provenance | None:
        return self.result.report.provenance


def _edits_sentence(files: Sequence[str]) -> str:
    listed = ", ".join(files[:MOST_FILES])
    more = f" and {len(files) - MOST_FILES:,} more" if len(files) > MOST_FILES else ""
    return (
        f"This change edits what decides about it: {listed}{more}. Read that part before you trust "
        "the verdict."
    )


def _before_and_after(compared: Comparison) -> list[Block]:
    comparison = as_people_compare(compared)
    rows = tuple(
        _difference_row(one) for one in comparison.differences.values() if one.value is not None
    )
    header = ("in %", "before", "after", "change", "these tasks", "similar tasks")
    blocks: list[Block] = [Table(header=header, rows=rows)]
    if moved := differing_tasks(comparison):
        counts = tuple(
            (one.name, *(f"{passed}/{runs}" for passed, runs in (one.second, one.first)))
            for one in moved[:MOST_TASKS]
        )
        blocks.append(Table(header=("tasks that moved", "before", "after"), rows=counts))
    if len(moved) > MOST_TASKS:
        blocks.append(Paragraph("Tasks", f"{len(moved) - MOST_TASKS:,} more moved."))
    return blocks


def _difference_row(one: Difference) -> tuple[str, ...]:
    return (
        metric_label(one.name),
        percent(one.second, digits=1),
        percent(one.first, digits=1),
        signed_points(one.value, digits=1),
        *(signed_span(interval) or "-" for interval in both_intervals(one)),
    )


def _worst(review: ChangeReview) -> Iterator[Block]:
    for system in review.report.systems:
        failing = [row for row in worst_tasks(system.tasks, MOST_TASKS) if row.passed < row.runs]
        if failing and system.name not in review.comparisons:
            yield Section(f"Least reliable tasks of {system.name}")
            yield task_table(failing)
