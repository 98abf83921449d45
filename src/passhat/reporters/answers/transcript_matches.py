"""Trials in which a text was said, each with the words around it."""

from __future__ import annotations

from typing import Literal, TypedDict

from passhat.messages import plural
from passhat.records.transcript import TranscriptMatch, TranscriptMatches
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Records
from passhat.reporters.blocks import Block, Headline, Line
from passhat.reporters.data import plain, shaped
from passhat.reporters.safe_text import safe_text

SCHEMA: Literal["passhat.search/1"] = "passhat.search/1"


class MatchRow(TypedDict):
    """One trial in which the text was said; `where` is whose words they are."""

    run: str
    system: str
    task: str
    trial: int
    outcome: str | None
    where: str
    text: str


class SearchObject(TypedDict):
    """Where a text was said; `transcripts_read` counts those that were looked at.

    `more` is true where the search ended at its limit.
    """

    schema: Literal["passhat.search/1"]
    text: str
    transcripts_read: int
    more: bool
    matches: list[MatchRow]


def _blocks(found: TranscriptMatches, options: DisplayOptions) -> list[Block]:
    lines = [
        Line(_trial(match), detail=safe_text(f"{match.excerpt.where}: {match.excerpt.text}"))
        for match in found.matches
    ]
    return [Headline(_headline(found)), *lines]


def _headline(found: TranscriptMatches) -> str:
    read = plural(found.read, "transcript")
    if not found.matches:
        return f"{safe_text(found.wanted)!r} does not occur in {read}."
    trials = plural(len(found.matches), "trial")
    if found.more:
        return f"The first {trials} with {safe_text(found.wanted)!r}; `limit` shows more."
    return f"{trials} with {safe_text(found.wanted)!r}, of {read}."


def _trial(match: TranscriptMatch) -> str:
    ended = f" {_outcome(match)}" if match.outcome is not None else ""
    which = f" / trial {match.trial}" if match.number is None else f" #{match.number}"
    return safe_text(f"{match.run} / {match.system} / {match.task}{which}{ended}")


def _rows(found: TranscriptMatches) -> Records:
    return [dict(row) for row in _data(found)["matches"]]


def _data(found: TranscriptMatches) -> SearchObject:
    rows = [
        shaped(match, MatchRow, outcome=_outcome(match), **plain(match.excerpt))
        for match in found.matches
    ]
    return shaped(
        found,
        SearchObject,
        schema=SCHEMA,
        text=found.wanted,
        transcripts_read=found.read,
        matches=rows,
    )


def _outcome(match: TranscriptMatch) -> str | None:
    return None if match.outcome is None else match.outcome.name.lower()


KIND = AnswerKind(
    name="transcript matches",
    blocks=_blocks,
    data=_data,
    rows=_rows,
    title=lambda found: plural(len(found.matches), "trial"),
)
