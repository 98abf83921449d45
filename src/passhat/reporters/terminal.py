"""A report on one screen, read from top to bottom: the answer, the numbers, what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from passhat.analysis.report import (
    LABELS,
    Feature,
    Label,
    Metric,
    Number,
    Report,
    SystemReport,
    TaskRow,
    VarianceSplit,
)
from passhat.reporters import wording
from passhat.reporters.ink import Ink
from passhat.reporters.numbers import amount, interval_of, points, span, value_of
from passhat.reporters.safe_text import display_width, pad, wrap
from passhat.reporters.text_bars import interval_bar, run_marks, stacked_bar
from passhat.stats.estimate import Estimate

MOST_TASKS = 8
MOST_STEPS = 3

_COLORS: dict[Label, str] = {
    "solid": "green",
    "flaky": "magenta",
    "broken": "red",
    "too few runs": "dim",
}
_INDENT = "  "
_WIDEST_BAR = 60


def render_terminal(report: Report, ink: Ink | None = None, *, all_tasks: bool = False) -> str:
    """The report as text for a terminal (or for a file, without colour)."""
    ink = ink or Ink()
    if len(report.systems) == 1:
        lines = _one_system(report.systems[0], ink, all_tasks)
    else:
        lines = _several_systems(report.systems, wording.overview(report), ink)
    lines += _paragraphs("Note", report.notes, ink)
    return ink.finish(lines)


def _one_system(system: SystemReport, ink: Ink, all_tasks: bool) -> list[str]:
    lines = [ink.style(line, "bold") for line in wrap(wording.verdict(system), ink.width)]
    lines += ["", *_heading(system, ink), "", *_metric_table(system, ink), ""]
    lines += _explanations(system, ink)
    lines += _task_section(system, ink, all_tasks)
    lines += _effort_section(system, ink)
    lines += _parts_section("Levels", system.levels, ink)
    lines += _parts_section("Tags", system.tags, ink)
    lines += _exclusions(system, ink)
    return lines + _next_section(wording.next_steps(system), ink)


def _several_systems(systems: Sequence[SystemReport], answer: str, ink: Ink) -> list[str]:
    lines = [ink.style(line, "bold") for line in wrap(answer, ink.width)]
    lines += ["", *_systems_table(systems, ink), ""]
    for system in systems:
        if text := wording.errors(system):
            lines += _paragraphs("Errors", [f"{wording.short(system.name)}: {text}"], ink)
    steps = [
        "See one in full: passhat report RESULTS --only NAME",
        "See which are ahead and which are tied: passhat rank RESULTS",
    ]
    return lines + _next_section(steps, ink)


def _heading(system: SystemReport, ink: Ink) -> list[str]:
    return [f"{ink.style(wording.short(system.name), 'bold')}  {wording.design(system)}"]


def _metric_table(system: SystemReport, ink: Ink) -> list[str]:
    bar = min(_WIDEST_BAR, ink.width - 56)
    scale = "0" + "100".rjust(bar - 1)
    lines = [
        ink.style(
            f"{_INDENT}{'in %':<11}{'':>6}  {'this suite':<14}  {'tasks like these':<16}  {scale}",
            "dim",
        )
    ]
    groups = [
        ("all k attempts succeed", [system.pass_hat(k) for k in system.ks]),
        ("at least one of k succeeds", [system.pass_at(k) for k in system.ks if k > 1]),
    ]
    if not _same(system.mean_score, system.metrics.get("pass^1")):
        groups.insert(0, ("partial credit", [system.mean_score]))
    for title, metrics in groups:
        if metrics:
            lines.append(ink.style(_INDENT + title, "dim"))
            lines += [_metric_line(metric, bar, ink) for metric in metrics]
    return lines


def _metric_line(metric: Metric, bar: int, ink: Ink) -> str:
    name = metric.name.replace("_", " ")
    if metric.value is None:
        return f"{_INDENT}{name:<11}{'-':>6}  {metric.reason}"[: ink.width]
    inner, outer = interval_of(metric.this_suite), interval_of(metric.tasks_like_these)
    drawn = interval_bar(metric.value, inner, outer, width=bar, pen=ink.pen)
    value = ink.style(f"{points(metric.value, digits=1):>6}", "bold")
    return (
        f"{_INDENT}{name:<11}{value}  {span(inner):<14}  {span(outer):<16}  "
        f"{ink.style(drawn, 'cyan')}"
    )


def _explanations(system: SystemReport, ink: Ink) -> list[str]:
    correlation = system.variance.icc if isinstance(system.variance, VarianceSplit) else None
    text = wording.luck(system.variance)
    if isinstance(correlation, Estimate):
        text += f" ICC {correlation.value:.2f}{_bracketed(correlation)}."
    lines = _paragraphs("Luck", [text], ink)
    lines += _paragraphs("Errors", _present(wording.errors(system)), ink)
    lines += _paragraphs("Seeds", _present(wording.seeds(system.seeds)), ink)
    lines += _paragraphs("Beyond", _present(wording.beyond(system)), ink)
    return lines + _paragraphs("Bars", [wording.bars(bar) for bar in system.bars], ink)


def _task_section(system: SystemReport, ink: Ink, all_tasks: bool) -> list[str]:
    table = system.tasks
    counts = [table.count(label) for label in LABELS]
    pieces = stacked_bar(counts, width=min(40, max(10, ink.width - 60)), pen=ink.pen)
    drawn = "".join(
        ink.style(piece, _COLORS[label]) for piece, label in zip(pieces, LABELS, strict=True)
    )
    lines = _paragraphs("Tasks", [f"{wording.labels(system)}."], ink)
    lines.append(" " * 8 + drawn)
    rows = list(table) if all_tasks else table.labelled("flaky") + table.labelled("broken")
    shown = rows if all_tasks else rows[:MOST_TASKS]
    lines += [_task_line(row, ink) for row in shown]
    if len(rows) > len(shown):
        more = f"{_INDENT}and {len(rows) - len(shown)} more (--all-tasks lists every task)"
        lines.append(ink.style(more, "dim"))
    return [*lines, ""]


def _task_line(row: TaskRow, ink: Ink) -> str:
    marks = run_marks(row.sequence, pen=ink.pen) if row.sequence else ""
    room = ink.width - 2 - 14 - 8 - 13 - 3
    name = pad(row.name, min(36, room - min(20, len(marks)) - 2))
    counted = f"{row.passed}/{row.runs}"
    left = ink.width - (2 + display_width(name) + 2 + 12 + 2 + 8 + 14)
    marks = marks if len(marks) <= left else marks[: max(0, left - 1)] + "…"
    label = ink.style(f"{row.label:<12}", _COLORS[row.label])
    return f"{_INDENT}{name}  {label}  {counted:<8}{span(row.rate.interval, digits=0):<14}{marks}"


def _effort_section(system: SystemReport, ink: Ink) -> list[str]:
    if not system.features:
        return []
    columns = f"{'mean':>10}{'passed':>10}{'failed':>10}  goes with passing"
    head = f"{_INDENT}{'per trial':<12}{columns}"
    lines = [ink.style(head, "dim")]
    lines += [_effort_line(feature) for feature in system.features.values()]
    return [*lines, *_paragraphs("Cost", _present(wording.cost(system)), ink), ""]


def _effort_line(feature: Feature) -> str:
    cells = "".join(f"{_amount(n):>10}" for n in (feature.mean, feature.passed, feature.failed))
    link = feature.association
    goes = f"{link.value:+.2f}{_bracketed(link)}" if isinstance(link, Estimate) else "-"
    return f"{_INDENT}{feature.name.replace('_', ' '):<12}{cells}  {goes}"


def _parts_section(title: str, parts: Mapping[str, SystemReport], ink: Ink) -> list[str]:
    return [*_systems_table(list(parts.values()), ink, title, list(parts)), ""] if parts else []


def _systems_table(
    systems: Sequence[SystemReport],
    ink: Ink,
    title: str = "",
    names: Sequence[str] | None = None,
) -> list[str]:
    k = max(1, min(wording.headline_k(system) for system in systems))
    width = 22 if ink.width < 100 else 34
    bar = min(_WIDEST_BAR, ink.width - width - 47)
    scale = "0" + "100".rjust(bar - 1)
    columns = f"{'tasks':>6}{'runs':>6}{'pass^1':>8}{f'pass^{k}':>8}  {'this suite':<13}  {scale}"
    head = f"{_INDENT}{pad(title, width)}{columns}"
    lines = [ink.style(head, "dim")]
    for name, system in zip(names or [s.name for s in systems], systems, strict=True):
        streak, one = system.metrics.get(f"pass^{k}"), system.metrics.get("pass^1")
        numbers = "".join(f"{_points(metric):>8}" for metric in (one, streak))
        inner = interval_of(streak.this_suite) if streak else None
        outer = interval_of(streak.tasks_like_these) if streak else None
        drawn = interval_bar(streak.value if streak else None, inner, outer, width=bar, pen=ink.pen)
        lines.append(
            f"{_INDENT}{pad(name, width)}{system.design.tasks:>6}{system.design.typical_runs:>6}"
            f"{numbers}  {span(inner):<13}  {ink.style(drawn, 'cyan')}"
        )
    return lines


def _exclusions(system: SystemReport, ink: Ink) -> list[str]:
    return _paragraphs("Left out", [wording.exclusion(one) for one in system.excluded], ink)


def _next_section(steps: Sequence[str], ink: Ink) -> list[str]:
    lines = [ink.style("Next", "bold")]
    for i, step in enumerate(steps[:MOST_STEPS], 1):
        lines += [_INDENT + line for line in wrap(f"{i}. {step}", ink.width - 2, indent="   ")]
    return lines


def _paragraphs(label: str, texts: Iterable[str], ink: Ink) -> list[str]:
    """Each text behind its label, wrapped, with a hanging indent."""
    lines: list[str] = []
    for text in texts:
        first, *rest = wrap(text, ink.width - 8)
        lines += [ink.style(f"{label:<8}", "bold") + first, *(" " * 8 + line for line in rest)]
    return lines


def _present(text: str | None) -> list[str]:
    return [] if text is None else [text]


def _same(one: Metric, other: Metric | None) -> bool:
    return other is not None and one.value == other.value


def _points(metric: Metric | None) -> str:
    return "-" if metric is None or metric.value is None else points(metric.value, digits=1)


def _amount(number: Number) -> str:
    value = value_of(number)
    return "-" if value is None else amount(value)


def _bracketed(number: Estimate) -> str:
    bounds = number.interval
    return "" if bounds is None else f" [{bounds.low:.2f}, {bounds.high:.2f}]"
