"""A report on one screen, read from top to bottom: the answer, the numbers, what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from passhat.analysis.reports.parts import Feature, Metric
from passhat.analysis.reports.report import Report
from passhat.analysis.reports.system_report import SystemReport
from passhat.analysis.reports.tasks import LABELS, TaskRow, TaskTable
from passhat.messages import plural
from passhat.reporters import wording
from passhat.reporters.advice import RESULTS, advise, at_confidence, only
from passhat.reporters.blocks import (
    LABEL_WIDTH,
    NARROWEST_BAR,
    Block,
    Headline,
    Paragraph,
    Steps,
    block_lines,
    blocks_lines,
)
from passhat.reporters.ink import Ink
from passhat.reporters.next_steps import next_steps
from passhat.reporters.numbers import amount, interval_of, points, span, value_of
from passhat.reporters.safe_text import display_width, safe_text, shorten, wrap
from passhat.reporters.systems_table import most_reliable_first, systems_table
from passhat.reporters.task_lines import LABEL_COLORS, task_lines
from passhat.reporters.text_bars import interval_bar, stacked_bar
from passhat.stats.estimate import TASKS_LIKE_THESE, Estimate, Number, Unavailable

MOST_TASKS = 8
MOST_STEPS = 3

_INDENT = "  "
_WIDEST_BAR = 60


def render_terminal(
    report: Report,
    ink: Ink | None = None,
    *,
    all_tasks: bool = False,
    narrowed: bool = False,
    results: str | None = RESULTS,
) -> str:
    """The report as text for a terminal (or for a file, without colour).

    `results` is what the commands it advises are to read; None where nothing was kept. They hold
    more systems than the report where that is `narrowed` to several of them.
    """
    ink = ink or Ink()
    if len(report.systems) == 1:
        lines = _one_system(report.systems[0], ink, all_tasks=all_tasks, results=results)
    else:
        lines = _several_systems(report, results, ink, narrowed=narrowed)
    if report.notes:
        lines += ["", *_paragraphs("Note", (f"{note}." for note in report.notes), ink)]
    return ink.finish(lines)


def _one_system(
    system: SystemReport, ink: Ink, *, all_tasks: bool, results: str | None
) -> list[str]:
    lines = [ink.style(line, "bold") for line in wrap(wording.verdict(system), ink.width)]
    lines += ["", *_heading(system, ink), "", *_metric_table(system, ink), ""]
    lines += _explanations(system, ink)
    lines += _task_section(system, ink, all_tasks=all_tasks, results=results)
    lines += _effort_section(system, ink)
    lines += _parts_section("Levels", system.levels, ink)
    lines += _parts_section("Tags", system.tags, ink)
    lines += _exclusions(system, ink)
    steps = next_steps(system, results)[:MOST_STEPS]
    return lines + block_lines(Steps("Next", tuple(steps)), ink)


def _several_systems(report: Report, results: str | None, ink: Ink, *, narrowed: bool) -> list[str]:
    systems = most_reliable_first(report.systems)
    blocks: list[Block] = [
        Headline(wording.overview(report)),
        systems_table({system.name: system for system in systems}, "in %"),
        *(Paragraph("Each", f"{text}.") for text in _present(wording.common_design(systems))),
        *(Paragraph("Note", text) for text in _present(wording.errors_note(systems))),
    ]
    if results is not None:
        steps = [advise("See one in full", f"passhat report {results} {only(systems[0].name)}")]
        if _can_be_ranked(systems):
            those = f" {only(*(system.name for system in systems))}" if narrowed else ""
            command = f"passhat rank {results}{those}{_by(report)}"
            steps.append(advise("See which are ahead and which are tied", command))
        blocks.append(Steps("Next", tuple(steps)))
    return blocks_lines(blocks, ink)


def _can_be_ranked(systems: Sequence[SystemReport]) -> bool:
    """Whether `rank` finds two systems, and two tasks that all of those with a run share."""
    ran = [set(system.tasks.names) for system in systems if len(system.tasks)]
    return len(ran) > 1 and len(set.intersection(*ran)) > 1


def _by(report: Report) -> str:
    """What the opening sentence ranks by, where `rank` leaves out the same and says the same."""
    found = report.leaders
    if isinstance(found, Unavailable) or found.scope != TASKS_LIKE_THESE:
        return ""
    others = [one for one in report.systems if one.name not in found.compared]
    if any(one.design.typical_runs >= found.k for one in others):
        return ""
    return f" --by pass^{found.k}{at_confidence(found.confidence)}"


def _heading(system: SystemReport, ink: Ink) -> list[str]:
    name, design = wording.short(system.name), wording.design(system)
    if display_width(name) + 2 + len(design) <= ink.width:
        return [f"{ink.style(name, 'bold')}  {design}"]
    return [ink.style(name, "bold"), *wrap(design, ink.width)]


def _metric_table(system: SystemReport, ink: Ink) -> list[str]:
    bar = min(_WIDEST_BAR, ink.width - 58)
    bar = bar if bar >= NARROWEST_BAR else 0
    scale = "0" + "100".rjust(bar - 1) if bar else ""
    here, there = f"this suite {2 * ink.pen.inner}", f"tasks like these {ink.pen.outer}"
    lines = [ink.style(f"{_INDENT}{'in %':<17}  {here:<14}  {there:<18}  {scale}", "dim")]
    groups = [
        ("all k attempts succeed", [system.pass_hat(k) for k in system.ks]),
        ("at least one of k succeeds", [system.pass_at(k) for k in system.ks if k > 1]),
    ]
    if wording.gives_partial_credit(system):
        groups.insert(0, ("partial credit", [system.mean_score]))
    for title, metrics in groups:
        if metrics:
            lines.append(ink.style(_INDENT + title, "dim"))
            lines += [_metric_line(metric, bar, ink) for metric in metrics]
    return lines + [
        ink.style(_INDENT + line, "dim")
        for text in _present(wording.partial_note(system))
        for line in wrap(text, ink.width - 2)
    ]


def _metric_line(metric: Metric, bar: int, ink: Ink) -> str:
    name = wording.metric_name(metric)
    if metric.value is None:
        return f"{_INDENT}{name:<11}{'-':>6}  {shorten(metric.reason or '', ink.width - 21)}"
    inner, outer = interval_of(metric.this_suite), interval_of(metric.tasks_like_these)
    drawn = interval_bar(metric.value, inner, outer, width=bar, pen=ink.pen)
    value = ink.style(f"{points(metric.value, digits=1):>6}", "bold")
    return (
        f"{_INDENT}{name:<11}{value}  {span(inner):<14}  {span(outer):<18}  "
        f"{ink.style(drawn, 'cyan')}"
    )


def _explanations(system: SystemReport, ink: Ink) -> list[str]:
    lines = _paragraphs("Luck", [wording.luck_and_icc(system.variance)], ink)
    lines += _paragraphs("Errors", _present(wording.errors(system)), ink)
    lines += _paragraphs("Seeds", _present(wording.seeds(system.seeds)), ink)
    lines += _paragraphs("Rounds", _present(wording.rounds(system.rounds)), ink)
    lines += _paragraphs("Beyond", _present(wording.beyond(system)), ink)
    return lines + _paragraphs("Bars", _present(wording.headline_bars(system)), ink)


def _task_section(
    system: SystemReport, ink: Ink, *, all_tasks: bool, results: str | None
) -> list[str]:
    table = system.tasks
    lines = _paragraphs("Tasks", [f"{wording.labels(system)}."], ink)
    if not len(table):
        return [*lines, ""]
    lines += [" " * LABEL_WIDTH + line for line in _label_bar(table, ink)]
    shown = list(table) if all_tasks else _worst(table)
    lines += task_lines(shown, ink)
    unlisted = len(table) - table.count("solid") - sum(row.label != "solid" for row in shown)
    if unlisted > 0 and not all_tasks:
        more = f"and {unlisted:,} more" if shown else f"{plural(unlisted, 'task')} not listed"
        lines += [ink.style(_INDENT + line, "dim") for line in _way_to_list(more, results, ink)]
    return [*lines, ""]


def _label_bar(table: TaskTable, ink: Ink) -> list[str]:
    """How many tasks have which label, as a bar, and what its pieces mean, beside it or below."""
    counts = [table.count(label) for label in LABELS]
    pieces = stacked_bar(counts, width=min(40, max(10, ink.width - 60)), pen=ink.pen)
    found = [(piece, label) for piece, label in zip(pieces, LABELS, strict=True) if piece]
    drawn = "".join(ink.style(piece, LABEL_COLORS[label]) for piece, label in found)
    meaning = "  ".join(
        f"{ink.style(piece[0], LABEL_COLORS[label])} {label}" for piece, label in found
    )
    plain = "  ".join(f"{piece[0]} {label}" for piece, label in found)
    beside = LABEL_WIDTH + sum(map(len, pieces)) + 2 + len(plain) <= ink.width
    return [f"{drawn}  {meaning}"] if beside else [drawn, meaning]


def _way_to_list(more: str, results: str | None, ink: Ink) -> list[str]:
    """How many are not listed, and what lists them; a command is not broken over lines."""
    if results is None:
        return [more]
    command = "" if results == RESULTS else f"passhat report {results} "
    line = f"{more} ({command}--all-tasks lists every task)"
    if display_width(safe_text(line)) <= ink.width - len(_INDENT):
        return [line]
    return [f"{more}; this lists every task:", safe_text(f"{command}--all-tasks")]


def _worst(table: TaskTable) -> list[TaskRow]:
    """Flaky tasks, then broken ones; where none has a label, those that went both ways."""
    found = table.labelled("flaky", MOST_TASKS) + table.labelled("broken", MOST_TASKS)
    return found[:MOST_TASKS] or table.mixed(MOST_TASKS)


def _effort_section(system: SystemReport, ink: Ink) -> list[str]:
    if not system.features:
        return []
    head, *lines = _in_columns(
        [
            ("per trial", "mean", "passed", "failed", wording.GOES_WITH_PASSING),
            *(_effort_cells(feature) for feature in system.features.values()),
        ]
    )
    lines = [ink.style(shorten(head, ink.width), "dim"), *lines]
    lines += _paragraphs("Effort", _present(wording.across_tasks(system)), ink)
    return [*lines, *_paragraphs("Cost", _present(wording.cost(system)), ink), ""]


def _in_columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """A name to the left, numbers to the right, and a last column as it is."""
    name, *widths = (max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1])
    return [
        f"{_INDENT}{first:<{max(name, 12)}}"
        + "".join(f"  {cell:>{max(width, 8)}}" for cell, width in zip(cells, widths, strict=True))
        + f"  {last}"
        for first, *cells, last in rows
    ]


def _effort_cells(feature: Feature) -> tuple[str, ...]:
    means = (_amount(number) for number in (feature.mean, feature.passed, feature.failed))
    link = feature.association
    goes = f"{link.value:+.2f}{_bracketed(link)}" if isinstance(link, Estimate) else "-"
    return feature.name.replace("_", " "), *means, goes


def _parts_section(title: str, parts: Mapping[str, SystemReport], ink: Ink) -> list[str]:
    if not parts:
        return []
    return [*block_lines(systems_table(parts, title), ink), ""]


def _exclusions(system: SystemReport, ink: Ink) -> list[str]:
    texts = [wording.exclusion(one) for one in system.excluded]
    return [*_paragraphs("Left out", texts, ink), ""] if texts else []


def _paragraphs(label: str, texts: Iterable[str], ink: Ink) -> list[str]:
    return [line for text in texts for line in block_lines(Paragraph(label, text), ink)]


def _present(text: str | None) -> list[str]:
    return [] if text is None else [text]


def _amount(number: Number) -> str:
    value = value_of(number)
    return "-" if value is None else amount(value)


def _bracketed(number: Estimate) -> str:
    bounds = number.interval
    return "" if bounds is None else f" [{bounds.low:.2f}, {bounds.high:.2f}]"
