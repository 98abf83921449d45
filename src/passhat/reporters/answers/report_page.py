"""What the page of a report shows beyond its sentences: figures, tables of tasks, transcripts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from passhat.analysis.reports.parts import SystemReport, TaskRow, common_k, is_judged
from passhat.analysis.reports.report import Report
from passhat.dataclass import dataclass
from passhat.drawing import lines
from passhat.drawing.figure import WIDTH
from passhat.drawing.lines import Scale
from passhat.messages import plural
from passhat.records.trial import natural_key, run_number
from passhat.reporters import headline, wording
from passhat.reporters.answer import Block, DisplayOptions, Judged, Paragraph, StatusLabel, Table
from passhat.reporters.answers.explanation import category_text, why_section
from passhat.reporters.answers.report_blocks import (
    factor_blocks,
    most_reliable_first,
    origin,
    report_figures,
    system_blocks,
    systems_table,
)
from passhat.reporters.formatting import (
    amount,
    both_intervals,
    percent,
    percent_range,
    points,
    value_of,
)
from passhat.reporters.next_steps import next_steps, results_of
from passhat.reporters.page_parts import (
    LETTERS,
    MOST_ROWS,
    PageTranscripts,
    fit_transcripts,
    headline_parts,
    outcomes_of,
)
from passhat.reporters.wording import meaning
from passhat.stats.estimate import Estimate, Unavailable

if TYPE_CHECKING:
    from passhat.analysis.explaining.explain import Explanation
    from passhat.drawing.figure import Figure

_RULES = ("Labels", "Verdict")
_EXPLAINED = ("luck", "ICC", "correlation with passing")


def page_of(
    report: Report,
    options: DisplayOptions,
    *,
    gates: Sequence[Judged] = (),
    after: Sequence[Block] = (),
) -> Mapping[str, Any]:
    """The values of the template; transcripts are shown run by run, rendered when asked for.

    If they may be too many for a page, `fit_transcripts` chooses among them.
    """
    transcripts = options.transcripts
    if not isinstance(transcripts, PageTranscripts):
        transcripts = fit_transcripts(report, transcripts or {}, trials=options.trials)
    many, why = len(report.systems) > 1, options.explanation
    shown = _by_task(transcripts, report, options)
    return {
        "subject": "reliability report",
        "chip": headline.overview_chip(report) if many else headline.chip(report.systems[0]),
        "hero": None if many else key_numbers(report.systems[0]),
        "facts": system_facts(report) if many else [],
        "at_k": at_each_k(report) if many else None,
        "change": options.change,
        "reasons": {} if why is None else reasons_by_task(why),
        "figures": report_figures(report) if many else {},
        "by_tag": tag_table(report) if many else None,
        "together": tasks_together(report, shown) if many else None,
        "report": report,
        "steps": {
            s.name: next_steps(
                s, results_of(report, s, options.results), options.more_runs, options.wording
            )
            for s in report.systems
        },
        "many": many,
        "answer": headline.opening(report),
        "gates": gates,
        "after": [*after, *([] if why is None else why_section(why))],
        "effort": effort_table(report) if many else None,
        "sentences": {s.name: page_sentences(s, among=many) for s in report.systems},
        "transcripts": shown,
        "blocks": transcripts.blocks,
        "packed": len(transcripts.places),
        "cut": transcripts.cut_note,
        "left_out": transcripts.left_out_note,
        "origin": origin(report),
    }


def key_numbers(system: SystemReport) -> dict[str, Any] | None:
    """What the slider of k shows at each k: numbers and places for the gauge, and all words.

    Beyond the runs there are, the value is the model's, and no interval of this suite is shown.
    """
    chosen = wording.headline_k(system)
    known = [_at_k(system, k) for k in system.ks if system.pass_hat(k).value is not None]
    if not known:
        return None
    known += [
        _not_measured(p.k, p.estimate)
        for p in system.decay.beyond
        if p.k > known[-1]["k"] and isinstance(p.estimate, Estimate)
    ]
    for one in known:
        k = one["k"]
        one["name"] = "one trial (pass@1)" if k == 1 else f"{k} in a row (pass^{k})"
        one |= _place_on_curve(system, k)
    start = next((i for i, one in enumerate(known) if one["k"] == chosen), 0)
    return {"ks": known, "start": start, "now": known[start]}


def _place_on_curve(system: SystemReport, k: int) -> dict[str, float]:
    """Where k is in the picture of the curve, so that the slider can mark it there."""
    shown = [p.k for p in system.decay.pass_hat if isinstance(p.estimate, Estimate)]
    if len(shown) < 2:
        return {}
    shown += [p.k for p in system.decay.beyond if p.k <= 2 * shown[-1]]
    scale = Scale(low=shown[0], high=max(shown), start=lines.LEFT, stop=WIDTH - lines.RIGHT)
    return {"x": round(scale(k), 1)} if shown[0] <= k <= max(shown) else {}


def _at_k(system: SystemReport, k: int) -> dict[str, Any]:
    metric = system.pass_hat(k)
    both = both_intervals(metric)
    scopes = (("suite", "these tasks"), ("like", "similar tasks"))
    return {
        "k": k,
        "value": metric.value,
        "shown": percent(metric.value, digits=1),
        **{name: one and [one.low, one.high] for (name, _), one in zip(scopes, both, strict=True)},
        "intervals": [
            (name, f"{scope} {percent_range(one, digits=1)}")
            for (name, scope), one in zip(scopes, both, strict=True)
            if one is not None
        ],
        "model": False,
        "answer": headline_parts(headline.verdict(system, k=k)),
        "chip": _shown_chip(headline.chip(system, k=k)),
    }


def _not_measured(k: int, estimate: Estimate) -> dict[str, Any]:
    answer = f"{k} in a row was not measured: a model of these trials puts it at about "
    return {
        "k": k,
        "value": estimate.value,
        "shown": f"≈ {percent(estimate.value, digits=1)}",
        "suite": None,
        "like": None,
        "intervals": [("", "extrapolated by a model, not measured")],
        "model": True,
        "answer": headline_parts(f"{answer}{percent(estimate.value)}."),
        "chip": _shown_chip(StatusLabel("Not measured", "none")),
    }


def _shown_chip(chip: StatusLabel) -> list[str]:
    return [chip.tone, f"{chip.sign} {chip.words}"]


def reasons_by_task(explanation: Explanation) -> dict[tuple[str, str], str]:
    """What went wrong in most failed runs of each task, in the words of the categories."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for category in explanation.categories:
        words = category_text(category).removesuffix(": nothing to compare with")
        for system, task, _ in category.runs:
            counts.setdefault((system, task), Counter())[words] += 1
    return {key: found.most_common(1)[0][0] for key, found in counts.items()}


def page_sentences(system: SystemReport, *, among: bool = False) -> list[Paragraph]:
    """The sentences of a report on one system that its page does not show as figures or tables.

    `among` several systems, rules and the meaning of terms are not repeated for each.
    """
    blocks = system_blocks(system, DisplayOptions(results=None, verbose=True))
    apart = factor_blocks(system)  # which the page shows beside their tables
    found = [
        block
        for block in blocks
        if isinstance(block, Paragraph) and block.label and block not in apart
    ]
    if not among:
        return found
    kept = [_without_meanings(one) for one in found if one.label not in _RULES]
    return [one for one in kept if one.text]


def _without_meanings(one: Paragraph) -> Paragraph:
    """A sentence without the meaning of its terms, which the page has in its list of words."""
    text = one.text
    for term in _EXPLAINED:
        text = text.replace(meaning(term), "")
    return replace(one, text=" ".join(text.split()))


def _by_task(transcripts: PageTranscripts, report: Report, options: DisplayOptions) -> RunLinks:
    """The transcripts of each task: the number and the mark of a run, and where its words are."""
    outcomes = (
        outcomes_of(report, list(transcripts.texts), options.trials) if transcripts.texts else {}
    )
    found: dict[tuple[str, str], list[RunLink]] = {}
    for key, page in transcripts.texts.items():
        system, task, trial = key
        block, place = transcripts.places.get(key, (0, 0))
        link = RunLink(
            title=run_number(trial, options.first_trial),
            mark=LETTERS.get(outcomes.get(key), ""),
            place="" if key in transcripts.written else f"{block}.{place}",
            page=page if key in transcripts.written else "",
        )
        found.setdefault((system, task), []).append(link)
    return found


# What the page of several systems shows: the answer at each k, facts, all tasks in one table.

MOST_OWN_ROWS = 150
"""Tasks times systems up to which each system has a table of its own, with its intervals.

A row takes about 650 bytes: 150 of them leave a page within 150 KB and 1 KB a task.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLink:
    """A transcript of a task: its run, how that ended, and its `page` or the place it is packed."""

    title: str
    mark: str
    place: str
    page: str


RunLinks = Mapping[tuple[str, str], Sequence[RunLink]]
"""The transcripts of each system and task."""

_MOST_ROWS_AT_K = 24  # systems times k: a row of a picture and a table takes a kilobyte
_MOST_TAGS = 8  # more columns do not fit beside a picture


@dataclass(frozen=True, slots=True, kw_only=True)
class TogetherRow:
    """A task: the runs of each system, and the systems that have transcripts of it."""

    name: str
    cells: tuple[str, ...]
    said: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Every task with every system; `tasks` counts them all, where the rows are the lowest."""

    systems: tuple[str, ...]
    rows: tuple[TogetherRow, ...]
    tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCell:
    """pass^k of a system on a tag: `level` says how dark its ground is, from 0 to 3."""

    shown: str
    level: int
    best: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TagTable:
    """pass^k of each system by tag; each of `tags` has a name and how many tasks it has."""

    k: int
    title: str
    tags: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, tuple[TagCell, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralAtK:
    """All systems at one k: the answer, the picture, and the table with links to each system."""

    k: int
    chip: StatusLabel
    answer: str
    figure: Figure
    table: Table
    links: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtEachK:
    """What the slider of k chooses from, and the k that the page opens with."""

    k: int
    each: tuple[SeveralAtK, ...]

    @property
    def first_shown(self) -> list[SeveralAtK]:
        """Each of them, the one that the page opens with first."""
        return sorted(self.each, key=lambda one: one.k != self.k)

    @property
    def start(self) -> int:
        return [one.k for one in self.each].index(self.k)


def at_each_k(report: Report) -> AtEachK | None:
    """The answer on several systems at every k; None if there is one k, or none to compare."""
    k = common_k(report.systems)
    found = [one for at in _offered(report, k) if (one := _several_at(report, at)) is not None]
    ks = [one.k for one in found]
    return AtEachK(k=k, each=tuple(found)) if k in ks and len(ks) > 1 else None


def system_facts(report: Report) -> list[tuple[str, str]]:
    """Three numbers for a first look: the best system, tasks that no system passes, errors."""
    k = common_k(report.systems)
    judged = [s for s in report.systems if is_judged(s, k)]
    facts = []
    if judged:
        best = max(judged, key=lambda s: s.pass_hat(k).value or 0.0)
        value = percent(best.pass_hat(k).value, digits=1)
        facts.append((value, f"the most reliable, {best.name}, {k} in a row (pass^{k})"))
    rates = _rates(report)
    never = sum(not any(row.passed for row in rows.values()) for rows in rates.values())
    facts.append((f"{never} of {len(rates):,}", "tasks that no agent passed even once"))
    rows = [row for of_task in rates.values() for row in of_task.values()]
    errored, runs = sum(row.errored for row in rows), sum(row.runs for row in rows)
    if errored:
        facts.append((f"{errored:,} of {runs:,}", "trials that ended in an error"))
    return facts


def tag_table(report: Report) -> TagTable | None:
    """pass^k of each system by tag, the hardest tag first; None without tags or with too many."""
    k = common_k(report.systems)
    judged = [s for s in most_reliable_first(report.systems) if is_judged(s, k)]
    tags = {tag for system in judged for tag in system.tags}
    if not judged or not 1 < len(tags) <= _MOST_TAGS:
        return None
    values = {(s.name, tag): _tag_value(s, tag, k) for s in judged for tag in tags}
    best = {tag: max(values[s.name, tag] or 0.0 for s in judged) for tag in tags}
    order = sorted(tags, key=lambda tag: (best[tag], natural_key(tag)))
    tasks = {tag: max(s.tags[tag].design.tasks for s in judged if tag in s.tags) for tag in tags}
    return TagTable(
        k=k,
        title=f"{order[0]} is the hardest tag: the best there manages {percent(best[order[0]])}",
        tags=tuple((tag, plural(tasks[tag], "task")) for tag in order),
        rows=tuple(
            (s.name, tuple(_tag_cell(values[s.name, tag], best[tag]) for tag in order))
            for s in judged
        ),
    )


def effort_table(report: Report) -> Table | None:
    """What a trial of each system takes on average; None if no log says."""
    ranked = most_reliable_first(report.systems)
    names = list(dict.fromkeys(name for system in ranked for name in system.features))[:_MOST_TAGS]
    if not names:
        return None
    rows = tuple((system.name, *(_mean_of(system, name) for name in names)) for system in ranked)
    heads = (f"{name.replace('_', ' ')}{', $' * (name == 'cost')}" for name in names)
    return Table(header=("per trial", *heads), rows=rows)


def tasks_together(report: Report, transcripts: RunLinks) -> Together | None:
    """All tasks in one table, where a table for each system would take too much of the page."""
    rates = _rates(report)
    if len(rates) * len(report.systems) <= MOST_OWN_ROWS:
        return None
    systems = tuple(s.name for s in most_reliable_first(report.systems))
    means = {
        task: sum(row.rate.value for row in rows.values()) / len(rows)
        for task, rows in rates.items()
    }
    lowest = sorted(rates, key=lambda task: (means[task], natural_key(task)))
    rows = tuple(
        TogetherRow(
            name=task,
            cells=tuple(_runs(rates[task].get(name)) for name in systems),
            said=tuple(name for name in systems if (name, task) in transcripts),
        )
        for task in lowest[:MOST_ROWS]
    )
    return Together(systems=systems, rows=rows, tasks=len(rates))


def _offered(report: Report, headline: int) -> list[int]:
    """The k that most systems have; with many systems only some of them, to keep the page small."""
    systems = report.systems
    every = sorted({k for system in systems for k in system.ks})
    known = [k for k in every if 2 * sum(is_judged(one, k) for one in systems) > len(systems)]
    most = max(4, _MOST_ROWS_AT_K // len(systems))
    first = [k for k in (1, headline, known[-1] if known else headline) if k in known]
    return sorted(list(dict.fromkeys([*first, *known]))[:most])


def _several_at(report: Report, k: int) -> SeveralAtK | None:
    figure = report.plots.compared(report.leaders_at(k), k=k)
    if isinstance(figure, Unavailable):
        return None
    page_order = [system.name for system in most_reliable_first(report.systems)]
    ranked = most_reliable_first(report.systems, k=k)
    return SeveralAtK(
        k=k,
        chip=headline.overview_chip(report, k=k),
        answer=headline.overview(report, k=k),
        figure=figure,
        table=systems_table({one.name: one for one in ranked}, "in %", asked=(k,)),
        links=tuple(f"#system-{page_order.index(one.name) + 1}" for one in ranked),
    )


def _tag_value(system: SystemReport, tag: str, k: int) -> float | None:
    part = system.tags.get(tag)
    return part.pass_hat(k).value if part is not None and k in part.ks else None


def _mean_of(system: SystemReport, feature: str) -> str:
    return amount(value_of(system.features[feature].mean)) if feature in system.features else "-"


def _tag_cell(value: float | None, best: float) -> TagCell:
    if value is None:
        return TagCell(shown="-", level=0, best=False)
    shown = points(value, digits=0)
    level = min(3, math.ceil(value / 0.2 - 1e-9))  # up to 20%, up to 40%, more
    return TagCell(shown=shown, level=level, best=value == best > 0)


def _rates(report: Report) -> dict[str, dict[str, TaskRow]]:
    found: dict[str, dict[str, TaskRow]] = {}
    for system in report.systems:
        for row in system.tasks:
            found.setdefault(row.name, {})[system.name] = row
    return found


def _runs(row: TaskRow | None) -> str:
    """Up to ten runs in order; the count of more, or where their order is not known."""
    if row is None:
        return "-"
    if row.sequence and len(row.sequence) <= 10:
        return row.sequence
    return f"{row.passed}/{row.runs}"
