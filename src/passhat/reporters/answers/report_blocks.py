"""A report: the answer and the few numbers that matter in one screen, and in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from passhat.analysis.reports.dependence import disturbance_advice
from passhat.analysis.reports.factors import Factor, FactorLevel
from passhat.analysis.reports.parts import (
    LABELS,
    Metric,
    ResourceUse,
    SystemReport,
    TaskRow,
    TaskTable,
    all_errored,
    common_k,
    is_judged,
)
from passhat.analysis.reports.report import Report
from passhat.arguments import DEPENDABLE
from passhat.messages import few, plural
from passhat.records.trial import (
    ALIKE_NAMES,
    COPIED_ROWS,
    NEVER_MET,
    OTHER_SCALE,
    NaturalKey,
    natural_key,
)
from passhat.reporters import headline, wording
from passhat.reporters.answer import (
    RESULTS,
    SCREEN_LINES,
    SHORTEST_HEADING,
    Bar,
    Block,
    Cell,
    DisplayOptions,
    HeadingRow,
    Headline,
    Hints,
    Judged,
    Marks,
    NextStep,
    Paragraph,
    Remark,
    Section,
    Shares,
    Steps,
    Table,
    added_remarks,
    file_name,
    has_room,
    paragraphs,
)
from passhat.reporters.formatting import (
    LONGEST_NAME,
    TerminalStyle,
    amount,
    both_intervals,
    decimals,
    metric_label,
    percent,
    percent_range,
    points,
    safe_text,
    short,
    shorten_apart,
    signed_points,
    signed_span,
    span,
    value_of,
)
from passhat.reporters.next_steps import advise, at_confidence, next_steps, only, results_of
from passhat.reporters.wording import (
    LABEL_RULE,
    common_design,
    family_split,
    luck_and_icc,
    meaning,
    noise_sentence,
)
from passhat.stats.estimate import TASKS_LIKE_THESE, Estimate, Number, Unavailable

if TYPE_CHECKING:
    from passhat.analysis.reports.targets import Value
    from passhat.drawing.figure import Figure

MOST_STEPS = 3
FEWEST_ROWS = 2
"""Agents on the first screen, however much else it has to say."""

LOWEST_TASKS = 5
"""Tasks named on the first screen."""

MORE_TASKS = 20
FEW_TASKS = 8
"""Up to so many tasks are all listed."""


def report_screen(report: Report, options: DisplayOptions) -> list[Block]:
    """The answer, the numbers that most readers need, the lowest tasks, what to do next."""
    first, *others = report.systems
    if first.counts_only:
        return _stopped_screen(report, options)
    notes = _note_remarks(report)
    blocks = _screen_of(report, options) if others else _system_screen(first, options)
    at = next((i for i, block in enumerate(blocks) if isinstance(block, Hints)), len(blocks))
    return [*blocks[:at], *notes, *blocks[at:]]


MOST_GATES = 5
"""Gates of a run that ended early on the first screen."""


def _stopped_screen(report: Report, options: DisplayOptions) -> list[Block]:
    """A run that its gates ended early: counts, what they decided, and how to come to rates."""
    first, *others = report.systems
    gates = stopped_gates(report, options)
    brief = [replace(gate, sentence=gate.sentence.partition("; ")[0]) for gate in gates]
    counts: list[Block] = [counts_table(report.systems)] if others else []
    counts += [] if others else [Remark(f"Tasks: {task_counts(first)}", apart=True)]
    notes = [Remark(f"Note: {n}.", note=True) for n in report.notes]
    more = [Remark(f"{plural(len(gates) - MOST_GATES, 'more gate')}: -v")][
        : len(gates) > MOST_GATES
    ]
    steps = [advise("For rates", "passhat run")]
    if options.results is not None and any(
        system.design.trials > system.tasks.passed.sum() for system in report.systems
    ):
        steps.append(advise("Why it fails", f"passhat why {options.results}"))
    opening: list[Block] = [Headline(headline.stopped(report.systems))]
    return [*opening, *brief[:MOST_GATES], *more, *counts, *notes, Hints(tuple(steps), apart=True)]


def stopped_gates(report: Report, options: DisplayOptions) -> list[Judged]:
    """What the gates decided that ended a stored run early."""
    judged = () if options.verdict is None else options.verdict.gates
    alone = f"{report.systems[0].name}: " if len(report.systems) == 1 else ""
    return [
        Judged(
            word=word,
            sentence=text.removeprefix(alone).replace(f": {word} after ", ", after ", 1),
        )
        for word, text in judged
    ]


def counts_table(systems: Sequence[SystemReport]) -> Table:
    """How many trials of each agent passed, and of how many tasks all, some or none."""
    return Table(
        header=("", "passed", "tasks"),
        rows=tuple(
            (
                system.name,
                f"{int(system.tasks.passed.sum()):,}/{int(system.tasks.runs.sum()):,}",
                task_counts(system).partition(". ")[0].removesuffix("."),
            )
            for system in systems
        ),
        left=(0, 2),
        cut=((0, SHORTEST_HEADING), (2, 20)),
    )


def _note_remarks(report: Report) -> list[Remark]:
    """What is to be known beside the numbers.

    That one agent may be two, that rows may be copies, or that no trial or nearly every one could
    pass, is never left to -v.
    """
    first, *others = report.systems
    notes = report.notes if others else (*first.notes, *report.notes)
    firm = ALIKE_NAMES, COPIED_ROWS, NEVER_MET, OTHER_SCALE
    return [Remark(f"Note: {n}.", note=not any(words in n for words in firm)) for n in notes]


def _system_screen(system: SystemReport, options: DisplayOptions) -> list[Block]:
    blocks: list[Block] = [Headline(headline.verdict(system, scope=options.scope))]
    if all_errored(system):
        return [*blocks, *_error_kinds(system)]
    k = wording.headline_k(system)
    rows = [("pass@1", system.metrics.get("pass^1"))]
    if k > 1:
        rows.append((f"pass^{k}", system.pass_hat(k)))
        if system.pass_hat(k).value != 1:  # where all k pass, so does one of them
            rows.append((f"pass@{k}", system.pass_at(k)))
    metrics = [(name, metric) for name, metric in rows if metric is not None]
    known = [metric for _, metric in metrics]
    header = ("", "value", "these tasks", "similar tasks", wording.design(system))
    cells = [_screen_row(name, metric) for name, metric in metrics]
    # One task says nothing of similar ones: no column of dashes.
    columns = [i for i in range(5) if i != 3 or any(row[i] != "-" for row in cells)]
    table = Table(
        header=tuple(header[i] for i in columns),
        rows=tuple(tuple(row[i] for i in columns) for row in cells),
        left=(0, *range(2, len(columns))),
        spare=(len(columns) - 1,),
    )
    blocks += [
        table,
        *([Remark(f"{_level(known)} {SCOPES}")] if _has_scopes(known) else []),
        *map(Remark, dict.fromkeys(wording.missing_notes(system, known))),
        *_screen_remarks(system, known),
    ]
    whose = ", by the judge" if system.is_corrected else ""  # the numbers above are not
    tasks = Remark(f"Tasks{whose}: {task_counts(system)}", apart=not _is_calm(system))
    every: list[Block] = []
    if options.wider_than is not None:
        every = wide_tasks(system, options.wider_than)
    elif options.all_tasks:
        every = [task_table(list(system.tasks), labelled=False)]
    return [*blocks, tasks, *every, *_screen_hints(system, options)]


SCOPES = "these tasks: run again. similar tasks: others of their kind."
"""What the two columns of intervals are for."""


def _level(metrics: Iterable[Metric | None]) -> str:
    """The confidence of the intervals shown: "95% CI."."""
    numbers = (
        number
        for metric in metrics
        if metric
        for number in (metric.this_suite, metric.tasks_like_these)
    )
    levels = [number.confidence for number in numbers if isinstance(number, Estimate)]
    return f"{100 * levels[0]:g}% CI." if levels else "CI."


def _screen_row(name: str, metric: Metric) -> tuple[str, ...]:
    name += " *" * wording.is_partial(metric)
    value = "-" if metric.value is None else percent(metric.value, digits=1)
    spans = [span(interval) or "-" for interval in both_intervals(metric)]
    return (name, value, *spans, "")


def _has_scopes(metrics: Sequence[Metric]) -> bool:
    return any(None not in both_intervals(metric) for metric in metrics)


def _screen_remarks(system: SystemReport, metrics: Sequence[Metric]) -> list[Block]:
    """What a reader must not miss: errors, tasks without a number, the bars that were asked for."""
    starred = any(wording.is_partial(metric) for metric in metrics)
    firm = (
        wording.partial_note(system) if starred else None,
        wording.screen_errors(system),
        *wording.exclusions(
            [left_out for left_out in system.excluded if left_out.what == "all metrics"]
        ),
        *(moved_sentence(factor) for factor in system.factors[:1] if factor.matters),
        headline.other_line(system),
    )
    notes = (
        *map(disturbance_advice, system.disturbances[:1]),
        wording.headline_bars(system),
    )
    return [
        *(Remark(text) for text in firm if text),
        *(Remark(text, note=True) for text in notes if text),
    ]


def _is_calm(system: SystemReport) -> bool:
    """Whether every task passed every trial: then there is little to say of them."""
    return bool((system.tasks.passed == system.tasks.runs).all())


def task_counts(system: SystemReport) -> str:
    """How many tasks passed every trial, some or none, and the lowest of them by name."""
    table = system.tasks
    passing = table.passed == table.runs
    failing = (table.passed == 0) & ~passing
    counts = {
        "passing": int(passing.sum()),
        "flaky": int((~passing & ~failing).sum()),
        "failing": int(failing.sum()),
    }
    text = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)
    low = lowest_tasks(system)
    if any(" [" in row.name for row in low):
        low = low[:2]  # names that say at which levels are long
    if not low:
        return f"{text}."
    called = shorten_apart([row.name for row in low], LONGEST_NAME)
    names = ", ".join(
        f"{name} {row.passed}/{row.runs}" for name, row in zip(called, low, strict=True)
    )
    if len(low) == len(table) - counts["passing"] == 1:
        return f"{text} ({names})."
    return f"{text}. Lowest: {names}."


def lowest_tasks(system: SystemReport) -> list[TaskRow]:
    """The tasks that pass least often, of those that failed at all."""
    table = system.tasks
    rate = table.passed / np.maximum(table.runs, 1)
    order = [int(i) for i in np.argsort(rate, kind="stable") if table.passed[i] < table.runs[i]]
    return [table[i] for i in order[:LOWEST_TASKS]]


def _screen_hints(system: SystemReport, options: DisplayOptions) -> list[Block]:
    results = options.results
    if results is None:
        return []
    k = wording.headline_k(system)
    streak = system.pass_hat(k)
    if headline.is_dependable(streak):
        return [Hints(tuple(next_steps(system, results)[:1]), apart=True)]
    if k > 1 and not headline.is_refuted(streak):
        asks = f"passhat plan {results} --k {k}"
        if system.design.tasks == 1:  # it has no mean over tasks to know more exactly
            asks = f'passhat plan {results} --gate "pass^{k} >= {DEPENDABLE}"'
        steps = [advise("How many more", asks)]
        return [Hints(tuple(steps), apart=True)]
    steps = [
        advise("More", f"{options.command or f'passhat report {results}'} -v"),
        advise("Why it fails", f"passhat why {results}"),
    ]
    return [Hints(tuple(steps))]


def _error_kinds(system: SystemReport) -> list[Block]:
    """The commonest errors, where there is nothing else."""
    kinds = list(system.errors.kinds.items())[:MOST_STEPS]
    rows = tuple((f"{count:,}x", kind) for kind, count in kinds)
    return [Table(header=("", ""), rows=rows, left=(1,), cut=((1, 20),))] if rows else []


def _screen_of(report: Report, options: DisplayOptions) -> list[Block]:
    """Several agents: a row each, of as many as there is room for."""
    systems = most_reliable_first(report.systems)
    opening = headline.overview(report, scope=options.scope)
    errors = wording.screen_errors_of(systems)
    asked = report.provenance.options.ks
    ks = shown_ks(systems, asked)
    design = common_design(systems)
    differ = design is None
    shown = systems[:SCREEN_LINES]  # others may have intervals that nobody computed yet
    header = [
        "",
        *(["tasks", "trials"] if differ else []),
        *(metric_label(f"pass^{k}") for k in ks),
        "these tasks",
        "similar tasks",
        design or "",
    ]
    scopes = len(header) - 3, len(header) - 2
    table = Table(
        header=tuple(header),
        rows=tuple(_agent_row(system, ks, differ=differ) for system in shown),
        left=(0, *scopes, len(header) - 1),
        spare=(len(header) - 1, scopes[1]),
    )
    whose = metric_label(f"pass^{ks[-1]}")
    level = _level(_streak(system, ks[-1]) for system in shown).removesuffix(".")
    under = [f"{level} of {whose}.", headline.ties_hold_for(report.leaders, options.scope)]
    above: list[Block] = [Headline(opening)]
    below: list[Block] = [
        Remark(" ".join(text for text in under if text)),
        *([Remark(errors)] if errors else []),
        *_pair_hint(report, systems, options),
    ]
    notes, around = _note_remarks(report), added_remarks(report.provenance, options)
    beside = [*(note for note in notes if not note.note), *around[0], *around[1]]
    rows = most_rows(table, len(systems), above, [*below, *beside], notes, options)
    return [*above, *rows, *below]


def most_rows(
    table: Table,
    agents: int,
    above: Sequence[Block],
    below: Sequence[Block],
    notes: Sequence[Remark],
    options: DisplayOptions,
) -> list[Block]:
    """A table of so many agents with as many rows as one screen has room for; how many more."""
    for rows in range(min(len(table.rows), SCREEN_LINES), FEWEST_ROWS - 1, -1):
        more = agents - rows
        shown: list[Block] = [
            replace(table, rows=table.rows[:rows]),
            *([Remark(f"{more:,} more: -v")] if more else []),
        ]
        if has_room([*above, *shown, *below], notes, options.line_count):
            break
    return shown


def _pair_hint(
    report: Report, systems: Sequence[SystemReport], options: DisplayOptions
) -> list[Block]:
    """How to compare the first two alone, or two of those that are tied, at the same k.

    Agents that share too few tasks are not compared: there it is why the lowest one fails.
    """
    if options.results is None:
        return []
    if not _can_be_ranked(systems):
        lowest = only(systems[-1].name)
        return [Hints((advise("Why it fails", f"passhat why {options.results} {lowest}"),))]
    leaders = report.leaders
    first, at = systems[:2], at_confidence(report.provenance.options.confidence)
    if not isinstance(leaders, Unavailable):
        at = f" --k {leaders.k}{at}" if leaders.k > 1 else at
        if len(leaders.names) > 1:
            first = [system for system in systems if system.name in leaders.names[:2]]
    pair = only(*(system.name for system in first))
    step = advise("Two at a time", f"passhat compare {options.results} {pair}{at}")
    return [Hints((step,))]


def _agent_row(system: SystemReport, ks: Sequence[int], *, differ: bool) -> tuple[str, ...]:
    lead = _streak(system, ks[-1])
    design = [f"{system.design.tasks:,}", _runs(system)] if differ else []
    values = [_rate(system) if k == 1 else _value(_streak(system, k)) for k in ks]
    shown = (percent(value, digits=1) for value in values)
    spans = (span(interval) or "-" for interval in both_intervals(lead))
    return (system.name, *design, *shown, *spans, "")


def _value(metric: Metric | None) -> float | None:
    return None if metric is None else metric.value


def _rate(system: SystemReport) -> float | None:
    """pass@1; the mean rate of the tasks where only larger k were asked for."""
    known = _value(system.metrics.get("pass^1"))
    return float(system.tasks.rate.mean()) if known is None and len(system.tasks) else known


def report_blocks(report: Report, options: DisplayOptions) -> list[Block]:
    """One system in full, or several side by side and then each in full."""
    if len(report.systems) == 1:
        blocks = system_blocks(report.systems[0], options)
    else:
        blocks = several_blocks(report, options)
    if report.systems[0].counts_only:
        blocks[1:1] = stopped_gates(report, options)
    blocks += paragraphs("Note", *(f"{note}." for note in report.notes))
    return [*blocks, Paragraph("Made from", origin(report))]


def system_blocks(system: SystemReport, options: DisplayOptions) -> list[Block]:
    """One system: the answer, the numbers, the tasks, what to do next."""
    if system.counts_only:
        return [
            Headline(headline.verdict(system)),
            Section(short(system.name), wording.design(system)),
            task_counts_table(system.tasks),
            *paragraphs("Left out", *wording.exclusions(system.excluded)),
            *paragraphs("Note", *(f"{note}." for note in system.notes)),
        ]
    blocks: list[Block] = [
        Headline(headline.verdict(system, scope=options.scope)),
        Section(short(system.name), wording.design(system)),
        *_every_number(system),
        *_explanations(system),
        *_task_blocks(system, options),
        *factor_blocks(system),
        *_hal_blocks(system),
        *_resource_blocks(system),
        *(
            systems_table(group, title)
            for title, group in (("level", system.levels), ("tag", system.tags))
            if group
        ),
    ]
    blocks += paragraphs("Left out", *wording.exclusions(system.excluded))
    blocks += paragraphs("Note", *(f"{note}." for note in system.notes))
    steps = next_steps(system, options.results, options.more_runs)[:MOST_STEPS]
    return [*blocks, Steps("Next", tuple(steps))]


def several_blocks(report: Report, options: DisplayOptions) -> list[Block]:
    """Several systems in one table, then each of them."""
    systems = most_reliable_first(report.systems)
    if systems[0].counts_only:
        each = (block for system in systems for block in system_blocks(system, options)[1:])
        return [Headline(headline.stopped(systems)), counts_table(systems), *each]
    blocks: list[Block] = [
        Headline(headline.overview(report)),
        systems_table(
            {system.name: system for system in systems}, "in %", asked=report.provenance.options.ks
        ),
        *paragraphs("Each", (design := common_design(systems)) and f"{design}."),
        *paragraphs("Note", wording.errors_note(systems)),
    ]
    if steps := _steps_for_several(report, systems, options):
        blocks.append(Steps("Next", steps))
    for system in systems:
        results = results_of(report, system, options.results)
        own = DisplayOptions(results=results, verbose=True, all_tasks=options.all_tasks)
        opening, section, *rest = system_blocks(system, own)
        rest = rest if system is systems[0] else [*_without_meanings(rest)]
        blocks += [section, opening, *rest]
    return blocks


def _without_meanings(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks of another agent: what the words mean stands beside the first."""
    for block in blocks:
        if isinstance(block, Paragraph):
            text = block.text
            for sentence in (LABEL_RULE, *map(meaning, ("reliable", "luck", "ICC"))):
                text = text.replace(sentence, "")
            block = replace(block, text=text.strip())
        if block != Paragraph(getattr(block, "label", ""), ""):
            yield block


def worst_tasks(table: TaskTable, most: int) -> list[TaskRow]:
    """Flaky tasks, then broken ones; if none has such a label, those that failed at all."""
    worst = table.labelled("flaky", most) + table.labelled("broken", most)
    return worst[:most] or table.failing(most)


def origin(report: Report, *, folders: bool = True) -> str:
    """What the report was made from: enough to make it again.

    A page is passed around: it names files without their `folders`.
    """
    origin = report.provenance
    names = [source.name for source in origin.sources]
    if not folders:
        names = [file_name(name) for name in names]
    return (
        f"{', '.join(names) or 'counts'}; passhat {origin.versions['passhat']}, "
        f"confidence {origin.options.confidence:g}, errors {origin.options.errors}, "
        f"seed {origin.options.seed}, fingerprint of the trials {origin.input_sha256[:12]}."
    )


def _every_number(system: SystemReport) -> list[Block]:
    rows: list[tuple[str | Bar, ...] | HeadingRow] = []
    groups = [
        ("a trial passes (pass@1)", [system.pass_at(k) for k in system.ks if k == 1]),
        (
            "all k trials pass (pass^k, also called reliability@k)",
            [system.pass_hat(k) for k in system.ks if k > 1],
        ),
        (
            "at least one of k trials passes (pass@k)",
            [system.pass_at(k) for k in system.ks if k > 1],
        ),
    ]
    if wording.gives_partial_credit(system):
        groups.insert(0, ("average score, partial credit counted", [system.mean_score]))
    for title, metrics in groups:
        if metrics:
            rows.append(HeadingRow(title))
            rows += [_number_row(wording.metric_name(metric), metric) for metric in metrics]
    return [_number_table(rows), *paragraphs("Starred", wording.partial_note(system))]


def _number_table(rows: Sequence[tuple[str | Bar, ...] | HeadingRow]) -> Table:
    header = ("in %", "", "these tasks", "similar tasks", "")
    return Table(header=header, rows=tuple(rows), left=(0, 2, 3))


def _number_row(name: str, metric: Metric) -> tuple[str | Bar, ...]:
    if metric.value is None:
        return name, "-", metric.reason or "", "", Bar(value=None)
    spans = (span(interval) or "-" for interval in both_intervals(metric))
    return name, points(metric.value, digits=1), *spans, Bar.of(metric)


def _explanations(system: SystemReport) -> list[Block]:
    """What the numbers alone do not say; each term with its meaning."""
    texts = (
        ("Verdict", " ".join(filter(None, (meaning("reliable"), headline.other_line(system)))), ()),
        ("Luck", luck_and_icc(system.variance), ("luck", "ICC")),
        ("Families", family_split(system.variance), ()),
        ("Width", _width(system), ()),
        ("Errors", wording.errors(system), ()),
        ("Steps", wording.steps(system.steps), ()),
        ("Re-runs", wording.seeds(system.seeds), ()),
        ("By trial", wording.rounds(system.rounds), ()),
        ("Beyond", wording.beyond(system), ()),
        *(("Bars", wording.bars(bar), ()) for bar in system.bars),
    )
    return [
        Paragraph(label, " ".join([text, *(meaning(term) for term in terms)]))
        for label, text, terms in texts
        if text
    ]


def _width(system: SystemReport) -> str:
    """What makes the intervals wide; nothing if it is not known (the JSON gives the reason)."""
    sources = None if isinstance(system.noise, Unavailable) else noise_sentence(system.noise)
    return " ".join(filter(None, (wording.short_of_2k(system), sources)))


def _task_blocks(system: SystemReport, options: DisplayOptions) -> list[Block]:
    table = system.tasks
    if not len(table):
        return [Paragraph("Tasks", f"{wording.labels(system)}.")]
    counted = tuple((label, table.count(label)) for label in LABELS)
    blocks: list[Block] = [
        Paragraph("Tasks", task_counts(system).partition(". Lowest: ")[0].rstrip(".") + "."),
        Paragraph("Shown", f"{wording.labels(system)}."),
        Shares(counts=counted),
        Paragraph("", LABEL_RULE),
    ]
    if options.wider_than is not None:
        return [*blocks, *wide_tasks(system, options.wider_than)]
    every = options.all_tasks or 1 < len(table) <= FEW_TASKS
    shown = list(table) if every else worst_tasks(table, MORE_TASKS)
    if shown:
        blocks.append(task_table(shown))
    unlisted = len(table) - table.count("solid") - sum(row.label != "solid" for row in shown)
    if system.design.most_runs == 1:  # none has a label yet: those that passed are not news
        unlisted = int((table.passed < table.runs).sum()) - len(shown)
    if unlisted > 0 and len(table) > 1 and not options.all_tasks:
        blocks += _unlisted(unlisted, bool(shown), options)
    return blocks


def wide_tasks(system: SystemReport, width: float) -> list[Block]:
    """The tasks whose interval is wider than asked for, widest first: those to run more often."""
    rows = system.tasks.wider_than(width)
    wide = f"{points(width)} points"
    if not rows:
        return [Remark(f"No task has an interval wider than {wide}.")]
    of = plural(len(system.tasks), "task")
    have = f"{'has' if len(rows) == 1 else 'have'} an interval wider than {wide}"
    text = f"{len(rows):,} of {of} {have}, widest first: more trials would narrow them."
    return [Remark(text), task_table(rows, labelled=False)]


def task_counts_table(rows: Iterable[TaskRow]) -> Table:
    """A row a task of a run without rates: how often it passed, and its trials in order."""
    return Table(
        header=("task", "passed", "trials"),
        rows=tuple(
            (row.name, f"{row.passed}/{row.runs}", Marks(row.sequence or "")) for row in rows
        ),
        left=(0, 1, 2),
    )


def task_table(rows: Sequence[TaskRow], *, labelled: bool = True) -> Table:
    """A row a task: its label, how often it passed, and its trials in order."""
    marked = any(row.sequence for row in rows)
    label = ["shown"] if labelled else []
    return Table(
        header=("task", *label, "passed", "rate in %", "", *(["trials"] if marked else [])),
        rows=tuple(
            (
                row.name,
                *([row.label] if labelled else []),
                f"{row.passed}/{row.runs}",
                span(row.rate.interval, digits=0),
                Bar(value=row.rate.value, inner=row.rate.interval),
                *([Marks(row.sequence or "")] if marked else []),
            )
            for row in rows
        ),
        left=(0, 1, 2, 3, 5) if labelled else (0, 1, 2, 4),
    )


def _unlisted(count: int, some: bool, options: DisplayOptions) -> list[Block]:
    more = f"{count:,} more" if some else f"{plural(count, 'task')} not listed"
    if options.results is None:
        return [Paragraph("", f"{more}.")]
    command = options.command or f"passhat report {options.results}"
    way = f"{command} --tasks" if options.results != RESULTS else "`all_tasks=True`"
    return [Paragraph("", f"{more}: {way} lists every task.")]


# What moves the result: luck, and each factor that trials were crossed with.


def factor_blocks(system: SystemReport) -> list[Block]:
    """How often two trials of a task differ, by luck and by each factor; then its levels."""
    if not system.factors:
        return []
    luck = next((factor.effect.luck for factor in system.factors if factor.effect), None)
    differ = partial(points, digits=1)
    known = [("luck alone", "", _rounded(luck, differ), "")] if luck else []
    rows = [
        (
            f"another {short(factor.name)}",
            str(len(factor.levels)),
            _rounded(factor.effect.moved, lambda p: f"+{differ(p)}") if factor.effect else "-",
            "-" if factor.p_value is None else wording.p_value(factor.p_value),
        )
        for factor in system.factors
    ]
    header = ("two trials differ by", "levels", "in %", "matters?")
    blocks: list[Block] = [
        Section("What moves the result", "how often two trials of a task differ"),
        Table(header=header, rows=(*known, *rows), left=(0, 2, 3)),
    ]
    for factor in system.factors:
        name, first = short(factor.name), short(factor.levels[0].name)
        columns = (name, "trials", "pass@1", "these tasks", f"against {first}", "", "keeps")
        levels = tuple(_level_row(level) for level in factor.levels)
        blocks += [
            Table(header=columns, rows=levels, left=(0, 3, 4, 5, 6), spare=(6, 5)),
            *paragraphs(name.capitalize(), " ".join(_factor_sentences(factor))),
        ]
    return blocks


def _rounded(number: Number, show: Callable[[float], str] = percent) -> str:
    """A share with its interval, in whole percent."""
    if isinstance(number, Unavailable):
        return "-"
    return f"{show(number.value)} {span(number.interval, digits=0)}"


def _worst_level(factor: Factor) -> str:
    rate, names = _rounded(factor.worst), factor.worst_levels
    if len(names) < 2:
        return f"{short(names[0])}, {rate}" if names else rate
    which = " and ".join(map(short, names)) if len(names) == 2 else few(names, 3)
    return f"{'all' if len(names) == len(factor.levels) else which} alike, {rate}"


def moved_sentence(factor: Factor, *, gated: bool = False) -> str:
    """The one line of the first screen on a factor that matters.

    Beside gates it does not say which levels numbers are over: they say which they judged.
    """
    over = "" if gated else _judged_levels(factor)
    if isinstance(factor.effect, Unavailable) or isinstance(factor.effect.luck, Unavailable):
        depends = f"It depends on the {short(factor.name)}: worst with {_worst_level(factor)}."
        return depends + over
    luck, moved = factor.effect.luck.value, value_of(factor.effect.moved) or 0.0
    return (
        f"It depends on the {short(factor.name)}: two trials of a task differ {percent(luck)} of "
        f"the time, {percent(luck + moved)} with another. Worst: {_worst_level(factor)}.{over}"
    )


def _judged_levels(factor: Factor) -> str:
    """That numbers are over all levels of a factor without a reference, and how to name one."""
    if factor.sampled or len(factor.judged) == 1:
        return ""
    level = f"{factor.name}={factor.levels[0].name}"
    return f" Numbers are over all {len(factor.judged)}; `reference_level={level!r}` judges one."


def _level_row(level: FactorLevel) -> tuple[str, ...]:
    rate, apart = level.rate, level.difference
    shown = ("-", "-")
    if isinstance(rate, Estimate):
        shown = percent(rate.value, digits=1), span(rate.interval)
    cells = (short(level.name), f"{level.runs:,}", *shown)
    if apart is None or isinstance(apart, Unavailable) or level.p_value is None:
        return (*cells, "", "", "")
    difference = f"{signed_points(apart.value)} {signed_span(apart.interval, digits=0)}"
    return (*cells, difference, wording.p_value(level.p_value), _rounded(level.kept))


def _factor_sentences(factor: Factor) -> list[str]:
    """What tables do not say: the worst level, shares, streaks with one level and others, tasks."""
    effect, like, sentences = factor.effect, factor.like_these, []
    if factor.worst:
        sentences.append(f"Worst: {_worst_level(factor)}.")
    if isinstance(effect, Unavailable):
        sentences.append(f"No size: {effect.reason}.")
    elif isinstance(effect.share, Estimate) and effect.share.interval is not None:
        share, most = effect.share, effect.share.interval.high
        between = "the differences between trials with different levels"
        sentences.append(
            f"Of {between}, {percent(share.value)} ({percent_range(share.interval)}) come from the "
            "level."
            if factor.matters
            else f"At most {percent(most)} of {between} come from the level."
        )
    if isinstance(factor.test, Unavailable):
        sentences.append(f"No test: {factor.test.reason}.")
    if factor.k > 1 and factor.with_one and factor.with_others:
        sentences.append(
            f"{factor.k} trials in a row pass {_rounded(factor.with_one)} with one level and "
            f"{_rounded(factor.with_others)} with another each time."
        )
    if isinstance(like, Estimate):
        about = f"pass^{factor.k} of these tasks is {_rounded(like)}"
        sentences.append(f"For levels like these, {about}.")
    elif factor.sampled:
        sentences.append(f"No number for levels like these: {like.reason}.")
    if factor.matters and factor.apart:
        task, rates = next(iter(factor.apart.items()))
        shown = ", ".join(f"{short(name)} {percent(rate)}" for name, rate in rates.items())
        sentences.append(f"Levels are furthest apart in {short(task)}: {shown}.")
    return [*sentences, *filter(None, [_judged_levels(factor).strip()])]


def _hal_blocks(system: SystemReport) -> list[Block]:
    """The metrics of HAL, with what its own formulas give."""
    rows = []
    for name, metric in system.hal.items():
        by_hal = "-" if metric.hal_value is None else f"{metric.hal_value:.3f}"
        shown, why = "-", getattr(metric.number, "reason", "")
        if isinstance(metric.number, Estimate):
            shown = f"{metric.number.value:.3f}{decimals(metric.number.interval)}"
        rows.append((name, shown, by_hal, why))
    header = ("under HAL's names", "similar tasks", "by HAL's formula", "")
    table = Table(header=header, rows=tuple(rows), left=(0, 1, 2, 3), spare=(3,))
    return [table] if rows else []


def _resource_blocks(system: SystemReport) -> list[Block]:
    if not system.features:
        return []
    term = "correlation with passing"
    header = ("per trial", "mean", "when passed", "when failed", term)
    rows = tuple(_resource_row(feature) for feature in system.features.values())
    return [
        Table(header=header, rows=rows, left=(0, 4)),
        *paragraphs("Effort", meaning(term), wording.across_tasks(system)),
        *paragraphs("Cost", wording.cost(system)),
    ]


def _resource_row(feature: ResourceUse) -> tuple[str, ...]:
    means = (amount(value_of(mean)) for mean in (feature.mean, feature.passed, feature.failed))
    return feature.name.replace("_", " "), *means, correlation(feature.association)


def correlation(link: Number) -> str:
    """A correlation with its interval."""
    return f"{link.value:+.2f}{decimals(link.interval)}" if isinstance(link, Estimate) else "-"


def _steps_for_several(
    report: Report, systems: Sequence[SystemReport], options: DisplayOptions
) -> tuple[NextStep, ...]:
    results = options.results
    if results is None:
        return ()
    steps = [advise("See one in full", f"passhat report {results} {only(systems[0].name)} -v")]
    if _can_be_ranked(systems):
        those = f" {only(*(system.name for system in systems))}" if options.narrowed else ""
        command = f"passhat compare {results}{those}{_rank_options(report)}"
        steps.append(advise("See which are ahead and which are tied", command))
    return tuple(steps)


def _can_be_ranked(systems: Sequence[SystemReport]) -> bool:
    """Whether `rank` finds two systems, and two tasks that all of those with a run share."""
    ran = [set(system.tasks.names) for system in systems if len(system.tasks)]
    return len(ran) > 1 and len(set.intersection(*ran)) > 1


def _rank_options(report: Report) -> str:
    """The options with which `rank` agrees with the opening sentence; none if no options do.

    It cannot agree if it would also rank a system that the sentence leaves out.
    """
    leaders = report.leaders
    if isinstance(leaders, Unavailable) or leaders.scope != TASKS_LIKE_THESE:
        return ""
    others = [system for system in report.systems if system.name not in leaders.compared]
    if any(system.design.typical_runs >= leaders.k for system in others):
        return ""
    return f" --by pass^{leaders.k}{at_confidence(leaders.confidence)}"


def report_figures(report: Report) -> Mapping[str, Figure]:
    """The pictures of a report by name: of one system its own, of several one of all."""
    drawn = drawn_or_why_not(report).items()
    return {name: figure for name, figure in drawn if not isinstance(figure, Unavailable)}


def drawn_or_why_not(report: Report) -> Mapping[str, Figure | Unavailable]:
    """Every picture of a report by name, or the reason why it has none."""
    plots = report.plots
    figures: dict[str, Figure | Unavailable]
    if len(report.systems) == 1:
        names = ("decay", "forest", "runs", "variance")
        figures = {name: getattr(plots, name)() for name in names}
    else:
        figures = {
            "systems": plots.compared(report.leaders),
            "curves": plots.curves(report.leaders),
            "matrix": plots.matrix(),
            "cost": plots.cost(),
        }
        if isinstance(figures["cost"], Unavailable):  # tokens are what many logs know of the price
            figures["cost"] = plots.cost(feature="tokens")
    return figures


def render_targets(report: Report, ink: TerminalStyle | None = None) -> str:
    """Name, value and interval in the scope "this suite"."""
    from passhat.analysis.reports.targets import targets

    ink = ink or TerminalStyle()
    numbers = {safe_text(path): number for path, number in targets(report).items()}
    width = min(44, max(map(len, numbers)))
    return ink.finish(
        [f"{path:<{width}}  {_target_value(number)}" for path, number in numbers.items()]
    )


def _target_value(number: Value) -> str:
    if isinstance(number, Unavailable):
        return f"- ({safe_text(number.reason)})"
    if isinstance(number, Estimate):
        bounds = number.interval
        between = f"  [{amount(bounds.low)}, {amount(bounds.high)}]" if bounds else ""
        return f"{amount(number.value)}{between}"
    return amount(number)


# Several systems, levels or tags in one table, a row each.


def most_reliable_first(
    systems: Iterable[SystemReport], *, k: int | None = None
) -> list[SystemReport]:
    """The systems by the number their table leads with, those without one last; ties by name."""
    ordered = list(systems)
    k = common_k(ordered) if k is None else k

    def place(system: SystemReport) -> tuple[bool, float, NaturalKey]:
        value = system.pass_hat(k).value if is_judged(system, k) else None
        # What differs by a rounding error of a sum is shown alike.
        return value is None, -round(value or 0.0, 12), natural_key(system.name)

    return sorted(ordered, key=place)


def systems_table(
    systems: Mapping[str, SystemReport],
    title: str,
    *,
    asked: Sequence[int] | None = None,
    ranks: Mapping[str, tuple[int, int]] | None = None,
) -> Table:
    """pass^k of each, and both intervals at the last k; what errors do to it, if there are any.

    The k are 1 and that of the headline, or every one that was `asked` for. Tasks and runs have
    columns only if they differ. With `ranks`, the places that each may hold, columns stand in the
    order of a page.
    """
    ks = shown_ks(systems.values(), asked)
    errors = any(system.errors.count for system in systems.values())
    differ = common_design(list(systems.values())) is None
    header = [title, *(["tasks", "trials"] if differ else [])]
    header += [metric_label(f"pass^{k}") for k in ks]
    scopes = len(header), len(header) + 1
    header += ["these tasks", "similar tasks"]
    if errors:
        policy = next(iter(systems.values())).errors.policy
        header += ["errors", "excl. errors" if policy == "fail" else "incl. errors"]
    rows = tuple(
        _row(name, system, ks, differ=differ, errors=errors) for name, system in systems.items()
    )
    last = header[-1]
    if ranks:
        # What a reader of a page asks first stands first; how many trials there are, last.
        late = 3 if differ else 1
        alike = differ and len({system.design.tasks for system in systems.values()}) == 1
        header = [title, "rank", *header[late:], *header[1 + alike : late]]
        rows = tuple(
            (
                name,
                rank_words(ranks.get(str(name))),
                *cells[late - 1 :],
                *cells[alike : late - 1],
                bar,
            )
            for name, *cells, bar in rows
        )
        scopes = header.index("these tasks"), header.index("similar tasks")
    spare = (header.index(last), scopes[1]) if errors else (scopes[1],)
    return Table(header=(*header, ""), rows=rows, left=(0, *scopes), spare=spare)


def rank_words(ranks: tuple[int, int] | None) -> str:
    """The places that an agent may hold.

    >>> rank_words((1, 2)), rank_words((3, 3)), rank_words(None)
    ('1 to 2', '3', '-')
    """
    if ranks is None:
        return "-"
    return str(ranks[0]) if ranks[0] == ranks[1] else f"{ranks[0]} to {ranks[1]}"


def numbers_table(systems: Sequence[SystemReport], ks: Sequence[int]) -> Table:
    """A row for each agent and number: pass^k and pass@k of each k, with both intervals.

    Last what errors do to the longest streak, of agents that have some.
    """
    differ = common_design(list(systems)) is None
    rows = []
    for system in most_reliable_first(systems):
        design = [f"{system.design.tasks:,}", _runs(system)] if differ else []
        streaks = {k: _streak(system, k) for k in ks}
        numbers = [("pass@1", points(_rate(system), digits=1), streaks[ks[0]])] * (ks[0] == 1)
        for k in ks[len(numbers) :]:
            numbers.append((f"pass^{k}", _points(streaks[k]), streaks[k]))
            at = system.pass_at(k) if streaks[k] else None
            numbers.append((f"pass@{k}", _points(at), at))
        if system.errors.count:
            without = system.errors.otherwise.get(f"pass^{ks[-1]}") if streaks[ks[-1]] else None
            which = "excl." if system.errors.policy == "fail" else "incl."
            last = metric_label(f"pass^{ks[-1]}")
            numbers.append(("errors", points(value_of(system.errors.rate), digits=1), None))
            numbers.append((f"{last} {which} errors", _points(without), without))
        for place, (label, value, streak) in enumerate(numbers):
            about = [system.name, *design] if place == 0 else [""] * (1 + len(design))
            rows.append((*about, label, value, *map(span, both_intervals(streak))))
    header = ["in %", *(["tasks", "trials"] if differ else []), "", "", "these tasks"]
    words = len(header) - 3
    return Table(
        header=(*header, "similar tasks"), rows=tuple(rows), left=(0, words, words + 2, words + 3)
    )


def shown_ks(systems: Iterable[SystemReport], asked: Sequence[int] | None) -> list[int]:
    """The k of a table of several agents: 1 and that of the headline, or those asked for."""
    systems = list(systems)
    if asked is None:
        return sorted({1, common_k(systems)})
    measured = {k for system in systems for k in system.ks}
    return sorted({1, *asked} & (measured | {1}))


def _row(
    name: str, system: SystemReport, ks: Sequence[int], *, differ: bool, errors: bool
) -> tuple[Cell, ...]:
    lead = _streak(system, ks[-1])
    cells: list[Cell] = [name]
    if differ:
        cells += [f"{system.design.tasks:,}", _runs(system)]
    cells += [
        points(_rate(system), digits=1) if k == 1 else _points(_streak(system, k)) for k in ks
    ]
    cells += map(span, both_intervals(lead))
    if errors:
        other = system.errors.otherwise.get(f"pass^{ks[-1]}", lead)
        cells += [percent(value_of(system.errors.rate)), _points(other if lead else None)]
    return (*cells, Bar.of(lead))


def _streak(system: SystemReport, k: int) -> Metric | None:
    """pass^k where it is judged, or where nothing but errors count as failures."""
    metric = system.metrics.get(f"pass^{k}")
    return metric if is_judged(system, k) or all_errored(system) else None


def _runs(system: SystemReport) -> str:
    shape = system.design
    return str(shape.most_runs) if shape.equal_runs else f"{shape.fewest_runs}-{shape.most_runs}"


def _points(metric: Metric | None) -> str:
    return points(_value(metric), digits=1)
