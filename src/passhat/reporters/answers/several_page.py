"""What the page of several systems shows: the answer at each k, facts, all tasks in one table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from passhat.analysis.reports.metrics import common_k, is_judged
from passhat.analysis.reports.report import Report, SystemReport, TaskRow
from passhat.dataclass import dataclass
from passhat.messages import plural
from passhat.records.trial import natural_key
from passhat.reporters import headline
from passhat.reporters.answers.systems_table import most_reliable_first, systems_table
from passhat.reporters.blocks import Chip, Table
from passhat.reporters.numbers import amount, percent, points, value_of
from passhat.reporters.page_transcripts import MOST_ROWS
from passhat.stats.estimate import Unavailable

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure

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
    chip: Chip
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
    facts.append((f"{never} of {len(rates):,}", "tasks that no system passed even once"))
    rows = [row for of_task in rates.values() for row in of_task.values()]
    errored, runs = sum(row.errored for row in rows), sum(row.runs for row in rows)
    if errored:
        facts.append((f"{errored:,} of {runs:,}", "runs that ended in an error"))
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
    lowest = sorted(rates, key=lambda task: (_mean_rate(rates[task]), natural_key(task)))
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
    level = min(3, math.ceil(value / 0.2 - 1e-9))  # up to 20 %, up to 40 %, more
    return TagCell(shown=shown, level=level, best=value == best > 0)


def _rates(report: Report) -> dict[str, dict[str, TaskRow]]:
    found: dict[str, dict[str, TaskRow]] = {}
    for system in report.systems:
        for row in system.tasks:
            found.setdefault(row.name, {})[system.name] = row
    return found


def _mean_rate(rows: Mapping[str, TaskRow]) -> float:
    return sum(row.rate.value for row in rows.values()) / len(rows)


def _runs(row: TaskRow | None) -> str:
    """Up to ten runs in order; the count of more, or where their order is not known."""
    if row is None:
        return "-"
    if row.sequence and len(row.sequence) <= 10:
        return row.sequence
    return f"{row.passed}/{row.runs}"
