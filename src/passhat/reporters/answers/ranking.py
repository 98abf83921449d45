"""A ranking: who leads, who is tied, and every rank that a system may truly have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypedDict

from passhat.analysis.comparing.ranking import PairDifference, RankedSystem, RankReport, Unranked
from passhat.messages import listed, plural
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Facts, Records
from passhat.reporters.blocks import Bar, Block, Chip, Headline, Paragraph, Steps, Table
from passhat.reporters.data import ProvenanceObject, shaped
from passhat.reporters.headline import held_for, not_for_others
from passhat.reporters.next_steps import advise, at_confidence, only
from passhat.reporters.numbers import both_intervals, percent, points, scope_cells, span
from passhat.reporters.safe_text import LONGEST_NAME, short, shorten_apart
from passhat.stats.estimate import Scope

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure

MOST_NAMES = 4


class RankingObject(TypedDict):
    """Systems from best to worst, bands of ties, and every pairwise difference."""

    schema: Literal["passhat.ranking/1"]
    verdict: str
    metric: str
    systems: list[RankedSystem]
    tie_bands: list[list[str]]
    pairs: list[PairDifference]
    tasks: int
    unshared: list[str]
    unranked: list[Unranked]
    scope: Scope
    method: str
    confidence: float
    provenance: ProvenanceObject
    notes: list[str]


def ranking_blocks(report: RankReport, options: DisplayOptions) -> list[Block]:
    """Who leads, the table, the ties, and how to look closer."""
    blocks: list[Block] = [Headline(verdict(report)), _table(report)]
    called = _called(report)
    blocks += [
        Paragraph(
            "Tied",
            f"{_listed([called[name] for name in band])} cannot be told apart for {report.scope}.",
        )
        for band in report.tie_bands
        if len(band) > 1
    ]
    if report.unshared:
        shown = listed(report.unshared, 5, show=short)
        k = _attempts(report)
        why = "not run by all" if k == 1 else f"without {k} runs of each"
        text = f"{plural(len(report.unshared), 'task')} {why}: {shown}."
        blocks.append(Paragraph("Left out", text))
    for one in report.unranked:
        blocks.append(Paragraph("Left out", f"{short(one.name)} has {one.reason}."))
    level = points(report.confidence)
    blocks.append(
        Paragraph(
            "How",
            f"The ranks and ties are for {report.scope} and all true at once with {level} % "
            f"confidence ({report.method}, {plural(report.tasks, 'shared task')}).",
        )
    )
    if options.results is not None:
        why = "Look at the two at the top by themselves, on these tasks and on others like them"
        blocks.append(Steps("Next", (advise(why, _comparing(report, options.results)),)))
    return blocks


def ranking_object(report: RankReport) -> RankingObject:
    """Schema "passhat.ranking/1"."""
    head = {"schema": "passhat.ranking/1", "verdict": verdict(report)}
    return shaped(report, RankingObject, **head)


def verdict(report: RankReport) -> str:
    """Who is ahead, in one sentence."""
    best, called = report.systems[0], _called(report)
    name = report.metric.replace("_", " ")
    first = _may_be_first(report)
    value = percent(best.value, digits=1)
    held = held_for(report.scope, len(report.systems))
    if len(first) == 1:
        return f"{called[best.name]} leads alone, with a {name} of {value} {held}."
    rivals = _names([called[system.name] for system in first[1:]])
    top = f"{called[best.name]} has the highest {name} ({value})"
    if report.here is not None:
        ahead = f"{top} and is ahead of {rivals} on these tasks"
        return f"{ahead}, though {not_for_others(report.tasks)}."
    return f"{top}, but {rivals} may be as good {held}."


def _may_be_first(report: RankReport) -> list[RankedSystem]:
    return [system for system in report.systems if system.ranks[0] == 1]


def _attempts(report: RankReport) -> int:
    """The k that the metric asks for; one run will do for a mean."""
    return int(report.metric[5:]) if report.metric.startswith("pass") else 1


def _comparing(report: RankReport, results: str) -> str:
    """The command that compares the first two, by the same metric if it is a pass^k."""
    close = only(*(system.name for system in report.systems[:2]))
    by = f" --k {_attempts(report)}" if report.metric.startswith("pass^") else ""
    return f"passhat compare {results} {close}{by}{at_confidence(report.confidence)}"


def _table(report: RankReport) -> Table:
    return Table(
        header=("system", "in %", "this suite", "tasks like these", "true rank", ""),
        rows=tuple(
            (
                system.name,
                points(system.value, digits=1),
                *map(span, both_intervals(system.metric)),
                _ranks(system.ranks),
                Bar.of(system.metric),
            )
            for system in report.systems
        ),
        left=(0, 2, 3),
    )


def _ranks(ranks: tuple[int, int]) -> str:
    return str(ranks[0]) if ranks[0] == ranks[1] else f"{ranks[0]} to {ranks[1]}"


def _called(report: RankReport) -> dict[str, str]:
    """What the systems are called in sentences: cut if they are long, and never alike."""
    names = [system.name for system in report.systems]
    return dict(zip(names, shorten_apart(names, LONGEST_NAME), strict=True))


def _names(names: list[str]) -> str:
    if len(names) > MOST_NAMES + 1:  # "and 1 more" is as long as its name
        names = [*names[:MOST_NAMES], f"{len(names) - MOST_NAMES} more"]
    return _listed(names)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"


def _rows(report: RankReport) -> Records:
    return [
        {
            "system": system.name,
            "number": report.metric,
            "value": system.value,
            **scope_cells(system.metric),
            "best_rank": system.ranks[0],
            "worst_rank": system.ranks[1],
        }
        for system in report.systems
    ]


def _figures(report: RankReport) -> Mapping[str, Figure]:
    from passhat.analysis.comparing.plots import plot_ranks

    return {"ranks": plot_ranks(report)}


def _title(report: RankReport) -> str:
    first = len(_may_be_first(report))
    best = _called(report)[report.systems[0].name]
    return f"{best} leads" if first == 1 else f"{first} tied at the top"


def _chip(report: RankReport) -> Chip:
    first = len(_may_be_first(report))
    return Chip("One leads", "good") if first == 1 else Chip(f"{first} tied at the top", "open")


def _facts(report: RankReport) -> Facts:
    """The highest value, how many may be first, and what the ranking is from."""
    best, name = report.systems[0], report.metric.replace("_", " ")
    return [
        (percent(best.value, digits=1), f"the highest {name}, {best.name}"),
        (f"{len(_may_be_first(report))} of {len(report.systems)}", "systems may be the best"),
        (f"{report.tasks:,}", "tasks that all of them ran"),
    ]


KIND = AnswerKind(
    name="ranking",
    blocks=ranking_blocks,
    data=ranking_object,
    rows=_rows,
    figures=_figures,
    provenance=lambda report: report.provenance,
    title=_title,
    chip=_chip,
    facts=_facts,
)
