"""A profile against the field in blocks."""

from __future__ import annotations

from passhat.analysis.comparing.profile import Norm, Profile
from passhat.messages import listed, plural
from passhat.reporters.blocks import (
    Bar,
    Block,
    Headline,
    Paragraph,
    Table,
    blocks_markdown,
    blocks_text,
)
from passhat.reporters.ink import Ink
from passhat.reporters.numbers import interval_of, percent, points, span, value_of
from passhat.reporters.wording import short
from passhat.stats.estimate import Estimate, Interval


def render_profile(profile: Profile, ink: Ink | None = None) -> str:
    """The profile as text for a terminal."""
    return blocks_text(profile_blocks(profile), ink)


def render_profile_markdown(profile: Profile) -> str:
    """The profile as Markdown."""
    return blocks_markdown(profile_blocks(profile))


def profile_blocks(profile: Profile) -> list[Block]:
    """Where the agent stands, number by number."""
    blocks: list[Block] = [Headline(verdict(profile)), _table(profile)]
    blocks.append(
        Paragraph(
            "Read",
            "The field: its median and its middle half, the line in the picture. Above: the "
            "share of the field that the agent, the point, is above, with its interval.",
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


def verdict(profile: Profile) -> str:
    """Where the agent stands, in one sentence."""
    known = [norm for norm in profile.norms if norm.percentile and "/" not in norm.name]
    known = [norm for norm in known if norm.name.startswith("pass^")]
    name, field = short(profile.system), plural(len(profile.agents), "reference agent")
    if not known:
        return f"{name} cannot be placed among {field}."
    parts = [f"{_above(norm)} at {norm.name}" for norm in (known[0], known[-1])]
    return f"{name} is above {' and '.join(dict.fromkeys(parts))} of {field}."


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
    if value is None:
        return "-"
    return f"{points(value, digits=digits)} {span(interval, digits=digits)}".rstrip()
