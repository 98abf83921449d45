"""A ranking: who leads and who is tied; and a profile: an agent among reference agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from passhat.analysis.comparing.ranking import (
    PRICES,
    Frontier,
    FrontierSystem,
    Norm,
    Profile,
    RankedSystem,
    RankReport,
)
from passhat.messages import listed, plural
from passhat.records.trial import natural_key
from passhat.reporters.answer import (
    SHORTEST_HEADING,
    Answer,
    Bar,
    Block,
    DisplayOptions,
    Facts,
    Headline,
    Hints,
    NextStep,
    Paragraph,
    Records,
    Remark,
    Section,
    StatusLabel,
    Steps,
    Table,
    added_remarks,
)
from passhat.reporters.answers.report_blocks import most_rows, rank_words
from passhat.reporters.data import IntervalObject, JsonShape, interval_object
from passhat.reporters.formatting import (
    LONGEST_NAME,
    amount,
    both_intervals,
    end_cells,
    interval_of,
    metric_label,
    percent,
    points,
    scope_cells,
    short,
    shorten_apart,
    signed_points,
    signed_span,
    span,
    value_of,
)
from passhat.reporters.headline import not_for_others, scope_words, too_few_tasks
from passhat.reporters.next_steps import advise, at_confidence, only
from passhat.reporters.wording import p_value
from passhat.stats.estimate import Interval

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure

MOST_NAMES = 4


class RankingAnswer(Answer[RankReport]):
    """Who leads, who is tied, and every rank that a system may truly have."""

    name = "ranking"

    @property
    def shown(self) -> RankReport:
        """What people read: the ranking as they would have graded, where there are labels."""
        return self.result.corrected or self.result

    def title(self) -> str:
        report = self.shown
        first = len(_may_be_first(report))
        best = _called(report)[report.systems[0].name]
        return f"{best} leads" if first == 1 else f"{first} tied at the top"

    def chip(self) -> StatusLabel:
        first = len(_may_be_first(self.shown))
        if first == 1:
            return StatusLabel("One leads", "good")
        return StatusLabel(f"{first} tied at the top", "open")

    def facts(self) -> Facts:
        """The highest value, how many may be first, and what the ranking is from."""
        report = self.shown
        best, name = report.systems[0], report.metric_name
        return [
            (percent(best.value, digits=1), f"the highest {name}, {best.name}"),
            (f"{len(_may_be_first(report))} of {len(report.systems)}", "agents may be the best"),
            (f"{report.tasks:,}", "tasks that all of them ran"),
        ]

    def agents(self) -> list[str]:
        return [system.name for system in self.shown.systems]

    def caption(self) -> str:
        """What is ranked by what, and how far that is known."""
        report = self.shown
        level = f"{points(report.confidence)}%"
        return (
            f"{report.metric_name} of {plural(len(report.systems), 'agent')} on "
            f"{plural(report.tasks, 'shared task')}, in percent. Brackets are {level} confidence "
            "intervals: for these tasks, if they were run again, and for similar tasks. The true "
            f"ranks hold together with {level} confidence."
        )

    def methods(self) -> str:
        """How the ranks were found, in sentences that a reviewer can check."""
        from passhat.reporters.answers.report import RELIABILITY

        report, origin = self.shown, self.result.provenance
        level, counted = f"{points(report.confidence)}%", origin.options.errors
        made_from = f"seed {origin.options.seed}, fingerprint {origin.input_sha256[:12]}"
        return (
            f"We ranked {plural(len(report.systems), 'agent')} by {report.metric_name} on the "
            f"{plural(report.tasks, 'task')} that all of them ran. The ranks and ties are for "
            f"{scope_words(report.scope)} and hold together with {level} confidence "
            f"({report.method}). {RELIABILITY} Trials that errored were "
            f"{'counted as failures' if counted == 'fail' else 'left out'}. Computed with passhat "
            f"{origin.versions['passhat']} ({made_from})."
        )

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """Who leads, the table, the ties, and how to look closer."""
        report = self.shown
        blocks: list[Block] = [Headline(verdict(report)), _table(report)]
        called = _called(report)
        ties = [[called[name] for name in band] for band in report.tie_bands if len(band) > 1]
        where = f"(for {scope_words(report.scope)})."
        blocks += [Paragraph("Tied", f"{_listed(names)} {where}") for names in ties]
        if report.unshared:
            shown = listed(report.unshared, 5, show=short)
            k = _attempts(report)
            why = "not run by all" if k == 1 else f"without {k} trials of each"
            text = f"{plural(len(report.unshared), 'task')} {why}: {shown}."
            blocks.append(Paragraph("Left out", text))
        blocks += [
            Paragraph("Left out", f"{short(system.name)} has {system.reason}.")
            for system in report.unranked
        ]
        blocks += _pairs_blocks(report)
        level = points(report.confidence)
        blocks.append(
            Paragraph(
                "How",
                f"The ranks and ties are for {scope_words(report.scope)} and all true at once "
                f"with {level}% confidence ({report.method}, "
                f"{plural(report.tasks, 'shared task')}).",
            )
        )
        blocks += [Paragraph("Note", f"{text}.") for text in _screen_notes(report)]
        if options.results is not None:
            why = "Look at the two at the top by themselves, on these tasks and on others like them"
            blocks.append(Steps("Next", (advise(why, _comparing(report, options.results)),)))
        return blocks

    def screen(self, options: DisplayOptions) -> list[Block]:
        """Who leads and who is tied, and a row each."""
        report = self.shown
        called = _called(report)
        level = points(report.confidence)
        left_out = [f"{short(system.name)} has {system.reason}" for system in report.unranked[:1]]
        if report.unshared:
            k = _attempts(report)
            why = "that not all of them ran" if k == 1 else f"without {k} trials of each"
            left_out.insert(0, f"{plural(len(report.unshared), 'task')} {why}")
        table = Table(
            header=("rank", "agent", report.metric_name, "these tasks", "similar tasks"),
            rows=tuple(
                (
                    rank_words(system.ranks),
                    called[system.name],
                    percent(system.value, digits=1),
                    *(span(interval) or "-" for interval in both_intervals(system.metric)),
                )
                for system in report.systems
            ),
            left=(1, 3, 4),
            cut=((1, SHORTEST_HEADING),),
        )
        above: list[Block] = [Headline(verdict(report))]
        below: list[Block] = [
            Remark(f"{level}% CI; the ranks hold together with {level}% confidence."),
            *(Remark(f"Left out: {text}.") for text in left_out),
            *(Remark(f"Note: {text}.") for text in _screen_notes(report)),
        ]
        if options.results is not None:
            below.append(Hints((_next_look(report, options.results, narrowed=options.narrowed),)))
        read = added_remarks(self.provenance(), options)[1]
        return [
            *above,
            *most_rows(table, len(table.rows), above, [*below, *read], (), options),
            *below,
        ]

    def rows(self) -> Records:
        report = self.result
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

    def data(self) -> dict[str, Any]:
        return RANKING(self.result)

    def figures(self) -> Mapping[str, Figure]:
        from passhat.analysis.comparing.plots import plot_ranks

        return {"ranks": plot_ranks(self.shown)}

    def on_page(self, options: DisplayOptions) -> list[Block]:
        """What the picture does not show: it joins those that are tied."""
        blocks = self.worded_blocks(options)
        return [
            block
            for block in blocks
            if not (isinstance(block, Paragraph) and block.label == "Tied")
        ]


_LONGEST_STREAK = 5
"""The k of a ranking that is advised, where every task has as many trials."""

_PLACES = ("first", "second", "third", "fourth", "fifth")


def verdict(report: RankReport) -> str:
    """Who is ahead and who is tied, in one sentence."""
    if not report.labels:
        return _verdict(report)
    return f"{_verdict(report)} Corrected with {plural(report.labels, 'label')} of people."


def _screen_notes(report: RankReport) -> list[str]:
    """What must be known of the agents and of their judges; of several agents that moved, one."""
    moved, more = list(report.agent_notes), len(report.agent_notes) - 1
    if more > 0:
        moved = [f"{moved[0]}; so are trials of {plural(more, 'more agent')} (-v)"]
    left_out = {*report.agent_notes, *(() if report.labels else report.method_notes)}
    verdict = _verdict(report)
    return moved + [n for n in report.notes if n not in left_out and n not in verdict]


def _verdict(report: RankReport) -> str:
    called, name = _called(report), report.metric_name
    where = f"({name}, on {scope_words(report.scope)})"
    first = [called[system.name] for system in _may_be_first(report)]
    value = percent(report.systems[0].value, digits=1)
    if len(first) == 1:
        return f"{first[0]} leads alone, with {value} {where}."
    if report.here is not None:
        ahead = f"{first[0]} has the highest {name} ({value}) and is ahead of {_names(first[1:])}"
        return f"{ahead} on these tasks; {not_for_others(report.tasks)}."
    if len(first) == len(report.systems):
        few = f": {too_few_tasks(report.tasks)}" if report.too_few_tasks else ""
        return f"All {len(first)} are tied {where}{few}."
    rest = [
        f"{called[system.name]} is {_PLACES[system.ranks[0] - 1]}"
        for system in report.systems
        if 1 < system.ranks[0] == system.ranks[1] <= len(_PLACES)
    ]
    tied = f"{_names(first)} are tied for first"
    return f"{'; '.join([tied, *rest[:1]])} {where}."


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


def _next_look(report: RankReport, results: str, *, narrowed: bool) -> NextStep:
    """The same ranking by a streak that every task has the trials for, or the first two alone."""
    k = min(report.fewest_runs, _LONGEST_STREAK)
    if report.metric.startswith("pass^") or k == 1:
        return advise("Two at a time", _comparing(report, results))
    those = f" {only(*(system.name for system in report.systems))}" if narrowed else ""
    level = at_confidence(report.confidence)
    return advise(f"By pass^{k}", f"passhat compare {results}{those} --by pass^{k}{level}")


def _table(report: RankReport) -> Table:
    return Table(
        header=("agent", "in %", "these tasks", "similar tasks", "true rank", ""),
        rows=tuple(
            (
                system.name,
                points(system.value, digits=1),
                *map(span, both_intervals(system.metric)),
                rank_words(system.ranks),
                Bar.of(system.metric),
            )
            for system in report.systems
        ),
        left=(0, 2, 3),
        spare=(2,),
    )


_MOST_PAIRS = 28
"""The pairs of eight agents."""


def _pairs_blocks(report: RankReport) -> list[Block]:
    """Each pair with its p, which allows for all of them; of many agents the first pairs."""
    called, pairs = _called(report), report.pairs[:_MOST_PAIRS]
    if len(report.systems) < 3 or any(pair.p_value is None for pair in pairs):
        return []
    rows = tuple(
        (
            f"{called[pair.first]} - {called[pair.second]}",
            signed_points(pair.value, digits=1),
            signed_span(pair.interval),
            p_value(pair.p_value or 0.0).removeprefix("p").removeprefix(" = ").strip(),
        )
        for pair in pairs
    )
    more = len(report.pairs) - len(pairs)
    rest = [Remark(f"{plural(more, 'more pair')}: `pairs` in JSON.")] if more else []
    header = ("pair", "points", scope_words(report.scope), "p (all pairs)")
    return [Table(header=header, rows=rows, left=(0, 2)), *rest]


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


_HOW_TO_READ_A_PROFILE = (
    "The field is all reference agents: its median, and in brackets its middle half, the line in "
    "the picture. The point is this agent; above is the share of the field that it is above. The "
    "other brackets are intervals. A ratio such as pass^4/pass@1 says how much of the pass "
    "rate is left after so many in a row; icc is the share of the variation that comes from the "
    "task; flaky share is the share of tasks labelled flaky."
)


class ProfileAnswer(Answer[Profile]):
    """An agent among reference agents, number by number."""

    name = "profile"

    def title(self) -> str:
        return f"{short(self.result.system)} among {plural(len(self.result.agents), 'agent')}"

    def facts(self) -> Facts:
        """The first and last number that the headline places, beside the median of the field."""
        return [
            (
                f"{percent(value_of(norm.value), digits=1)} {metric_label(norm.name)}",
                f"the median of the others is {percent(norm.quartiles[1], digits=1)}",
            )
            for norm in _placed(self.result)
            if norm.quartiles
        ]

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """The agent among the field, number by number."""
        profile = self.result
        blocks: list[Block] = [
            Headline(profile_verdict(profile)),
            Table(
                header=("in %", "this agent", "the field", "above", ""),
                rows=tuple(_row(norm) for norm in profile.norms),
                left=(0, 1, 2, 3),
                spare=(2,),
            ),
            Paragraph("Read", _HOW_TO_READ_A_PROFILE),
        ]
        lacking: dict[tuple[str, ...], list[str]] = {}
        for norm in profile.norms:
            if norm.missing:
                lacking.setdefault(norm.missing, []).append(norm.name)
        for agents, names in lacking.items():
            shown = listed(agents, 4, show=short)
            blocks.append(
                Paragraph("Missing", f"{shown} cannot give {', '.join(map(metric_label, names))}.")
            )
        return blocks + [Paragraph("Note", f"{note}.") for note in profile.notes]

    def screen(self, options: DisplayOptions) -> list[Block]:
        """The same, with how to read it in a line; what is missing, and notes, where they fit."""
        answer, table, _, *rest = self.blocks(options)
        how = "The field: the median of the others and their middle half. Above: the share of them."
        return [
            *(answer, table, Remark(how)),
            *(Remark(block.text, note=True) for block in rest if isinstance(block, Paragraph)),
        ]

    def rows(self) -> Records:
        quartiles = ("field_first_quartile", "field_median", "field_third_quartile")
        return [
            {
                "number": norm.name,
                "value": value_of(norm.value),
                **end_cells("", interval_of(norm.value)),
                **dict(zip(quartiles, norm.quartiles or (None, None, None), strict=True)),
                "above": value_of(norm.percentile),
                **end_cells("above", interval_of(norm.percentile)),
            }
            for norm in self.result.norms
        ]

    def data(self) -> dict[str, Any]:
        return PROFILE(self.result)

    def on_page(self, options: DisplayOptions) -> list[Block]:
        return [*self.worded_blocks(options), *_field_table(self.result)]

    def figures(self) -> Mapping[str, Figure]:
        """The agent's numbers among those of the field, and between its quartiles."""
        from passhat.drawing import IntervalRow, interval_rows

        profile = self.result
        rows = [
            IntervalRow(
                name=metric_label(norm.name),
                value=value,
                low=norm.quartiles[0],
                high=norm.quartiles[2],
                others=tuple(dict(norm.field).items()),
            )
            for norm in profile.norms
            if norm.quartiles and (value := value_of(norm.value)) is not None
        ]
        figure = interval_rows(
            rows,
            title=f"{short(profile.system)} among {plural(len(profile.agents), 'reference agent')}",
            finding="A ring is a reference agent, which says its name when pointed at; the line is "
            "the middle half of them.",
            x_label="● this agent ○ the others",
            x_range=(0, 1),
            x_kind="percent",
        )
        return {"field": figure} if rows else {}


def profile_verdict(profile: Profile) -> str:
    """The agent among the field, in one sentence."""
    name, field = short(profile.system), plural(len(profile.agents), "reference agent")
    ends = _placed(profile)
    if not ends:
        return f"{name} cannot be placed among {field}."
    shares = [
        f"{percent(value_of(norm.percentile))} {span(interval_of(norm.percentile), digits=0)}"
        for norm in ends
    ]
    first, *last = (
        f"{share} of {who} at {metric_label(norm.name)}"
        for share, norm, who in zip(shares, ends, (field, "them"), strict=False)
    )
    return f"{name} is above {' and above '.join([first, *last])}."


def _placed(profile: Profile) -> list[Norm]:
    """The shortest and the longest streak at which the agent has a place; none if it has none."""
    known = [
        norm
        for norm in profile.norms
        if norm.percentile and norm.name.startswith("pass^") and "/" not in norm.name
    ]
    return known[:1] + known[1:][-1:]


def _field_table(profile: Profile) -> list[Block]:
    """The agent, then every reference agent with its numbers, the highest first."""
    norms = [norm for norm in profile.norms if norm.field]
    if not norms:
        return []
    values = [dict(norm.field) for norm in norms]
    order = sorted(profile.agents, key=lambda name: (-values[0].get(name, -1.0), natural_key(name)))
    rows = [(name, *(points(value.get(name), digits=1) for value in values)) for name in order]
    own = (profile.system, *(points(value_of(norm.value), digits=1) for norm in norms))
    header = ("in %", *(metric_label(norm.name) for norm in norms))
    return [Section("Each agent"), Table(header=header, rows=(own, *rows))]


def _row(norm: Norm) -> tuple[str | Bar, ...]:
    value, quartiles, place = value_of(norm.value), norm.quartiles, value_of(norm.percentile)
    middle = None if quartiles is None else Interval(quartiles[0], quartiles[2])
    return (
        metric_label(norm.name),
        _with_span(value, interval_of(norm.value), 1),
        _with_span(None if quartiles is None else quartiles[1], middle, 1),
        _with_span(place, interval_of(norm.percentile), 0),
        Bar(value=value, inner=middle),
    )


def _with_span(value: float | None, interval: Interval | None, digits: int) -> str:
    return f"{points(value, digits=digits)} {span(interval, digits=digits)}".rstrip()


def _field(norm: Norm) -> dict[str, float]:
    return dict(norm.field)


class FrontierAnswer(Answer[Frontier]):
    """Which agents may be on the frontier of a price and pass^k."""

    name = "frontier"

    def title(self) -> str:
        frontier = self.result
        return f"{len(frontier.candidates)} of {len(frontier.systems)} may be on the frontier"

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """Who may be on the frontier, a row an agent, and how that was tested."""
        frontier = self.result
        k, price = metric_label(f"pass^{frontier.k}"), PRICES[frontier.feature]
        blocks: list[Block] = [
            Headline(frontier_verdict(frontier)),
            Table(
                header=("", k, "these tasks", price, "", "beaten by"),
                rows=tuple(_frontier_row(system) for system in frontier.systems),
                left=(0, 2, 4, 5),
                spare=(4, 2),
            ),
            Remark(
                f"{points(frontier.confidence)}% confidence for similar tasks, all agents at once; "
                f"{plural(frontier.tasks, 'task')} that all of them ran."
            ),
        ]
        blocks += [
            Paragraph("Left out", f"{short(system.name)} has {system.reason}.")
            for system in frontier.left_out
        ]
        if not options.brief:
            blocks.append(Paragraph("How", f"Beaten: {frontier.method}."))
        return blocks

    def rows(self) -> Records:
        return [
            {
                "system": system.name,
                "pass_hat": system.reliability.value,
                **scope_cells(system.reliability),
                "price": value_of(system.price),
                **end_cells("price", interval_of(system.price)),
                "beaten_by": system.beaten_by,
                "p_value": system.p_value,
            }
            for system in self.result.systems
        ]

    def data(self) -> dict[str, Any]:
        return FRONTIER(self.result)

    def figures(self) -> Mapping[str, Figure]:
        """Price against reliability; those that may be on the frontier by name in the caption."""
        from passhat.drawing import Point, scatter

        frontier = self.result
        drawn = [
            Point(
                name=system.name,
                x=price,
                y=system.reliability.value or 0.0,
                x_interval=_both_ends(interval_of(system.price)),
                y_interval=_both_ends(interval_of(system.reliability.tasks_like_these)),
            )
            for system in frontier.systems
            if (price := value_of(system.price)) is not None
        ]
        figure = scatter(
            drawn,
            title=self.title(),
            finding=frontier_verdict(frontier),
            x_label=PRICES[frontier.feature],
            y_label=metric_label(f"pass^{frontier.k}"),
            y_range=(0, 1),
            y_kind="percent",
        )
        return {"frontier": figure} if drawn else {}


def frontier_verdict(frontier: Frontier) -> str:
    """Who may be on the frontier, in one sentence."""
    every, some = plural(len(frontier.systems), "agent"), len(frontier.candidates)
    may_be = (
        f"may be on the frontier of {frontier.feature} and {metric_label(f'pass^{frontier.k}')}"
    )
    if some == len(frontier.systems):
        return f"Any of the {every} {may_be}: none is shown to be beaten on both."
    names = _listed([short(candidate.name) for candidate in frontier.candidates])
    return f"{some} of {every} {may_be}: {names}."


def _frontier_row(system: FrontierSystem) -> tuple[str, ...]:
    price = interval_of(system.price)
    ends = f"[{amount(price.low)}, {amount(price.high)}]" if price else ""
    beaten = (
        f"{short(system.beaten_by)} ({p_value(system.p_value or 0)})" if system.beaten_by else ""
    )
    rate = percent(system.reliability.value, digits=1)
    here = span(interval_of(system.reliability.this_suite))
    return short(system.name), rate, here, amount(value_of(system.price)), ends, beaten


def _both_ends(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (interval.low, interval.high)


class CorrectedRank(TypedDict):
    """An agent as people would have graded it, and the ranks that it may then have."""

    name: str
    value: float
    this_suite: IntervalObject | None
    tasks_like_these: IntervalObject | None
    ranks: list[int]


class CorrectedRanking(TypedDict):
    """The ranking as people would have graded the trials, from so many of their labels."""

    systems: list[CorrectedRank]
    tie_bands: list[list[str]]
    labels: int
    method: str


def _shown_verdict(report: RankReport) -> str:
    return verdict(report.corrected or report)


def _corrected(report: RankReport) -> CorrectedRanking | None:
    corrected = report.corrected
    if corrected is None:
        return None
    return {
        "systems": [
            {
                "name": system.name,
                "value": system.value,
                "this_suite": interval_object(interval_of(system.metric.this_suite)),
                "tasks_like_these": interval_object(interval_of(system.metric.tasks_like_these)),
                "ranks": list(system.ranks),
            }
            for system in corrected.systems
        ],
        "tie_bands": [list(band) for band in corrected.tie_bands],
        "labels": corrected.labels,
        "method": corrected.method,
    }


RANKING = JsonShape(
    "ranking",
    RankReport,
    "Systems from best to worst, bands of ties, and every pairwise difference.",
    "schema verdict metric systems tie_bands pairs tasks unshared unranked scope method confidence "
    "provenance notes corrected",
    verdict=_shown_verdict,
    corrected=_corrected,
)
FRONTIER = JsonShape(
    "frontier",
    Frontier,
    "Agents by a price and pass^k, and those that may be on the frontier of both.",
    "schema verdict feature k systems left_out tasks method confidence provenance",
    verdict=frontier_verdict,
)
PROFILE = JsonShape(
    "profile",
    Profile,
    "An agent against the field, number by number.",
    "schema verdict system agents norms provenance notes",
    verdict=profile_verdict,
    parts=[
        JsonShape(
            "norm",
            Norm,
            "One number of the agent, and the same number of every reference agent.",
            "name value field missing percentile high_is_good quartiles",
            field=_field,
        )
    ],
)
