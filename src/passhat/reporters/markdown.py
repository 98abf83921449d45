"""A report as Markdown, for pull requests and notes."""

from __future__ import annotations

from collections.abc import Mapping

from passhat.analysis.reports.parts import Feature, Metric
from passhat.analysis.reports.report import Report
from passhat.analysis.reports.system_report import SystemReport
from passhat.analysis.reports.tasks import TaskRow
from passhat.reporters import wording
from passhat.reporters.advice import RESULTS, results_of
from passhat.reporters.blocks import (
    Block,
    Headline,
    Paragraph,
    Steps,
    Table,
    blocks_markdown,
    escape_markdown,
)
from passhat.reporters.next_steps import next_steps
from passhat.reporters.numbers import amount, interval_of, points, span, value_of
from passhat.reporters.systems_table import most_reliable_first, systems_table

MOST_TASKS = 20
MOST_STEPS = 3


def render_markdown(report: Report, *, results: str | None = RESULTS) -> str:
    """The whole report; several systems begin with a table of all.

    `results` is what the commands it advises are to read; None where nothing was kept.
    """
    parts: list[str] = []
    systems = most_reliable_first(report.systems)
    if len(systems) > 1:
        table = systems_table({system.name: system for system in systems}, "in %")
        parts.append(blocks_markdown([Headline(wording.overview(report)), table]))
    for system in systems:
        title = escape_markdown(wording.short(system.name))
        blocks = system_blocks(system, results=results_of(report, system, results))
        parts.append(f"## {title}\n\n{blocks_markdown(blocks)}")
    parts += [blocks_markdown([Paragraph("Note", f"{note}.")]) for note in report.notes]
    parts.append(blocks_markdown([Paragraph("Made from", _origin(report))]))
    return "\n".join(parts)


def system_blocks(system: SystemReport, *, results: str | None = RESULTS) -> list[Block]:
    """One system: the answer, the numbers, the tasks, what to do next."""
    blocks: list[Block] = [
        Headline(wording.verdict(system)),
        Paragraph("Design", f"{wording.design(system)}."),
        _metric_table(system),
    ]
    if note := wording.partial_note(system):
        blocks.append(Paragraph("Starred", note))
    blocks.append(Paragraph("Luck", wording.luck_and_icc(system.variance)))
    sentences = (
        ("Errors", wording.errors(system)),
        ("Seeds", wording.seeds(system.seeds)),
        ("Rounds", wording.rounds(system.rounds)),
        ("Beyond", wording.beyond(system)),
        *(("Bars", wording.bars(bar)) for bar in system.bars),
        ("Tasks", f"{wording.labels(system)}."),
    )
    blocks += [Paragraph(label, text) for label, text in sentences if text]
    if rows := _notable(system):
        blocks.append(_task_table(rows))
    if system.features:
        blocks.append(_effort_table(system.features))
    if text := wording.across_tasks(system):
        blocks.append(Paragraph("Effort", text))
    if text := wording.cost(system):
        blocks.append(Paragraph("Cost", text))
    for title, group in (("level", system.levels), ("tag", system.tags)):
        if group:
            blocks.append(systems_table(group, title))
    blocks += [Paragraph("Left out", wording.exclusion(one)) for one in system.excluded]
    return [*blocks, Steps("Next", tuple(next_steps(system, results)[:MOST_STEPS]))]


def _metric_table(system: SystemReport) -> Table:
    return Table(
        header=("in %", "value", "this suite", "tasks like these"),
        rows=tuple(_metric_row(metric) for metric in wording.told_metrics(system)),
        left=(0, 2, 3),
    )


def _metric_row(metric: Metric) -> tuple[str, ...]:
    name = wording.metric_name(metric)
    if metric.value is None:
        return name, "-", metric.reason or "", ""
    value = points(metric.value, digits=1)
    return name, value, _span(metric, suite=True), _span(metric, suite=False)


def _span(metric: Metric, *, suite: bool) -> str:
    return span(interval_of(metric.this_suite if suite else metric.tasks_like_these)) or "-"


def _notable(system: SystemReport) -> list[TaskRow]:
    table = system.tasks
    found = table.labelled("flaky", MOST_TASKS) + table.labelled("broken", MOST_TASKS)
    return found[:MOST_TASKS] or table.mixed(MOST_TASKS)


def _task_table(rows: list[TaskRow]) -> Table:
    return Table(
        header=("task", "label", "passed", "rate in %"),
        rows=tuple(
            (row.name, row.label, f"{row.passed}/{row.runs}", span(row.rate.interval, digits=0))
            for row in rows
        ),
        left=(0, 1, 3),
    )


def _effort_table(features: Mapping[str, Feature]) -> Table:
    return Table(
        header=("per trial", "mean", "passed", "failed", wording.GOES_WITH_PASSING),
        rows=tuple(_effort_row(feature) for feature in features.values()),
    )


def _effort_row(feature: Feature) -> tuple[str, ...]:
    means = (value_of(n) for n in (feature.mean, feature.passed, feature.failed))
    link = value_of(feature.association)
    return (
        feature.name.replace("_", " "),
        *("-" if value is None else amount(value) for value in means),
        "-" if link is None else f"{link:+.2f}",
    )


def _origin(report: Report) -> str:
    origin = report.provenance
    names = ", ".join(source.name for source in origin.sources) or "counts"
    return (
        f"{names}; passhat {origin.versions['passhat']}, seed {origin.options.seed}, "
        f"input {origin.input_sha256[:12]}."
    )
