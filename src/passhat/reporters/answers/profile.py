"""A profile: an agent among reference agents, number by number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypedDict

from passhat.analysis.comparing.ranking import Norm, Profile
from passhat.messages import listed, plural
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Records
from passhat.reporters.blocks import Bar, Block, Headline, Paragraph, Table
from passhat.reporters.data import ProvenanceObject, shaped
from passhat.reporters.numbers import end_cells, interval_of, percent, points, span, value_of
from passhat.reporters.safe_text import short
from passhat.stats.estimate import Estimate, Interval, Number

if TYPE_CHECKING:
    from passhat.drawing.figure import Figure


class NormObject(TypedDict):
    """One number of the agent, and the same number of every reference agent."""

    name: str
    value: Number
    field: dict[str, float]
    missing: list[str]
    percentile: Number
    high_is_good: bool | None
    quartiles: tuple[float, float, float] | None


class ProfileObject(TypedDict):
    """An agent against the field, number by number."""

    schema: Literal["passhat.profile/1"]
    verdict: str
    system: str
    agents: list[str]
    norms: list[NormObject]
    provenance: ProvenanceObject
    notes: list[str]


def profile_blocks(profile: Profile, options: DisplayOptions) -> list[Block]:  # as all answers
    """The agent among the field, number by number."""
    blocks: list[Block] = [Headline(verdict(profile)), _table(profile)]
    blocks.append(
        Paragraph(
            "Read",
            "The field is all reference agents: its median, and in brackets its middle half, the "
            "line in the picture. The point is this agent; above is the share of the field that "
            "it is above. The other brackets are intervals. A ratio such as pass^4/pass^1 says how "
            "much of one attempt's rate is left after so many in a row; icc is the share of the "
            "variation that comes from the task; flaky share is the share of tasks labelled flaky.",
        )
    )
    lacking: dict[tuple[str, ...], list[str]] = {}
    for norm in profile.norms:
        if norm.missing:
            lacking.setdefault(norm.missing, []).append(norm.name)
    for agents, names in lacking.items():
        shown = listed(agents, 4, show=short)
        blocks.append(Paragraph("Missing", f"{shown} cannot give {', '.join(names)}."))
    return blocks + [Paragraph("Note", f"{note}.") for note in profile.notes]


def profile_object(profile: Profile) -> ProfileObject:
    """Schema "passhat.profile/1"."""
    norms = [shaped(norm, NormObject, field=dict(norm.field)) for norm in profile.norms]
    head = {"schema": "passhat.profile/1", "verdict": verdict(profile)}
    return shaped(profile, ProfileObject, norms=norms, **head)


def verdict(profile: Profile) -> str:
    """The agent among the field, in one sentence."""
    known = [norm for norm in profile.norms if norm.percentile and "/" not in norm.name]
    known = [norm for norm in known if norm.name.startswith("pass^")]
    name, field = short(profile.system), plural(len(profile.agents), "reference agent")
    if not known:
        return f"{name} cannot be placed among {field}."
    parts = [f"{_above(norm)} at {norm.name}" for norm in (known[0], known[-1])]
    return f"Of {field}, {name} is above {' and '.join(dict.fromkeys(parts))}."


def _above(norm: Norm) -> str:
    assert isinstance(norm.percentile, Estimate)
    return percent(norm.percentile.value)


def _table(profile: Profile) -> Table:
    return Table(
        header=("in %", "this agent", "the field", "above", ""),
        rows=tuple(_row(norm) for norm in profile.norms),
        left=(0, 1, 2, 3),
    )


def _row(norm: Norm) -> tuple[str | Bar, ...]:
    value, quartiles, place = value_of(norm.value), norm.quartiles, value_of(norm.percentile)
    middle = None if quartiles is None else Interval(quartiles[0], quartiles[2])
    return (
        norm.name,
        _with_span(value, interval_of(norm.value), 1),
        _with_span(None if quartiles is None else quartiles[1], middle, 1),
        _with_span(place, interval_of(norm.percentile), 0),
        Bar(value=value, inner=middle),
    )


def _with_span(value: float | None, interval: Interval | None, digits: int) -> str:
    return f"{points(value, digits=digits)} {span(interval, digits=digits)}".rstrip()


def _rows(profile: Profile) -> Records:
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
        for norm in profile.norms
    ]


def _figures(profile: Profile) -> Mapping[str, Figure]:
    """The agent's numbers between the quartiles of the field."""
    from passhat.drawing import IntervalRow, interval_rows

    known = [norm for norm in profile.norms if norm.quartiles and value_of(norm.value) is not None]
    rows = [
        IntervalRow(
            name=norm.name,
            value=value_of(norm.value) or 0.0,
            low=norm.quartiles[0],
            high=norm.quartiles[2],
        )
        for norm in known
        if norm.quartiles
    ]
    figure = interval_rows(
        rows,
        title=f"{short(profile.system)} among {plural(len(profile.agents), 'reference agent')}",
        finding=verdict(profile),
        x_label="● this agent, on the middle half of the field",
        x_range=(0, 1),
        x_kind="percent",
    )
    return {"field": figure} if rows else {}


KIND = AnswerKind(
    name="profile",
    blocks=profile_blocks,
    data=profile_object,
    rows=_rows,
    figures=_figures,
    provenance=lambda profile: profile.provenance,
    title=lambda profile: f"{short(profile.system)} among {plural(len(profile.agents), 'agent')}",
)
