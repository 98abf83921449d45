"""Two runs beside each other: what each called, where they part, how each ended."""

from __future__ import annotations

from typing import Literal, TypedDict

from passhat.analysis.explaining.run_diff import AlignedCalls, Relation, SideBySide
from passhat.analysis.explaining.runs import ExplainedRun, NormalCall
from passhat.messages import plural
from passhat.records.trial import run_number
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Records
from passhat.reporters.answers.diff_page import (
    LONGEST_CALL,
    OUTCOMES,
    call_words,
    diff_values,
    verdict,
)
from passhat.reporters.blocks import Block, Headline, Paragraph, Table
from passhat.reporters.data import shaped
from passhat.reporters.safe_text import short, shorten

MARKS: dict[Relation, str] = {
    "same": "=",
    "other result": "!",
    "other arguments": "≠",
    "left only": "<",
    "right only": ">",
}
"""The mark between two calls."""

_MOST_DETAILS = 5


class CallObject(TypedDict):
    """One call: the tool, its arguments with free text masked, the masked error if it failed."""

    tool: str
    arguments: dict[str, str]
    error: str | None
    place: int


class PairObject(TypedDict):
    """A call of each run; null where only the other run made it."""

    left: CallObject | None
    right: CallObject | None
    relation: Relation
    arguments: list[str]


class SideObject(TypedDict):
    """One of the two runs; `error` is empty if none broke it off."""

    system: str
    task: str
    trial: int
    outcome: str
    error: str
    stop_reason: str
    calls: int


class SideBySideObject(TypedDict):
    """Two runs of a task, call by call; `parting` is the place of the first pair that differs."""

    schema: Literal["passhat.diff/1"]
    verdict: str
    left: SideObject
    right: SideObject
    parting: int | None
    pairs: list[PairObject]


def side_by_side_blocks(found: SideBySide, options: DisplayOptions) -> list[Block]:
    """Where they part, the calls beside each other, what differs in them, and how each ended."""
    blocks: list[Block] = [Headline(verdict(found))]
    if found.pairs:
        blocks.append(_table(found))
    blocks += [Paragraph(f"Row {row}", text) for row, text in _details(found)]
    blocks += [Paragraph(side, _ending(run)) for side, run in _sides(found)]
    return blocks


def side_by_side_object(found: SideBySide) -> SideBySideObject:
    """Schema "passhat.diff/1"."""
    return {
        "schema": "passhat.diff/1",
        "verdict": verdict(found),
        "left": _side(found.left),
        "right": _side(found.right),
        "parting": found.parting,
        "pairs": [
            shaped(pair, PairObject, left=_call(pair.left), right=_call(pair.right))
            for pair in found.pairs
        ],
    }


def _sides(found: SideBySide) -> list[tuple[str, ExplainedRun]]:
    return [(run_number(run.trial, found.first_trial), run) for run in (found.left, found.right)]


def _table(found: SideBySide) -> Table:
    (left, one), (right, other) = _sides(found)
    return Table(
        header=(
            f"{left}, {OUTCOMES[one.outcome]}",
            "",
            "row",
            "",
            f"{right}, {OUTCOMES[other.outcome]}",
        ),
        rows=tuple(
            (
                _side_words(pair.left),
                MARKS[pair.relation],
                str(i),
                "<- first difference" if found.parting == i - 1 else "",
                _side_words(pair.right),
            )
            for i, pair in enumerate(found.pairs, 1)
        ),
        left=(0, 1, 3, 4),
        cut=((4, 12),),
    )


def _side_words(call: NormalCall | None) -> str:
    if call is None:
        return ""
    marks = [word for word, is_so in (("error", not call.worked), ("empty", call.empty)) if is_so]
    return short(call.tool) + "".join(f" ({word})" for word in marks)


def _details(found: SideBySide) -> list[tuple[int, str]]:
    """The first rows that differ, with what differs in them."""
    rows = [(i, pair) for i, pair in enumerate(found.pairs, 1) if pair.relation != "same"]
    return [(i, _detail(pair)) for i, pair in rows[:_MOST_DETAILS]]


def _detail(pair: AlignedCalls) -> str:
    if pair.left is None or pair.right is None:
        return call_words(pair.left or pair.right)
    if pair.relation == "other result":
        one, other = (
            call.error or ("empty result" if call.empty else "worked")
            for call in (pair.left, pair.right)
        )
        return f"{call_words(pair.left)}: {one} | {other}"
    texts = [
        f"{name or 'its argument'}: {_value(pair.left, name)} | {_value(pair.right, name)}"
        for name in pair.arguments
    ]
    return f"{pair.left.tool}: {'; '.join(texts)}"


def _value(call: NormalCall, name: str) -> str:
    return shorten(call.arguments.get(name, "(not given)"), 4 * LONGEST_CALL)


def _ending(run: ExplainedRun) -> str:
    texts = [f"{OUTCOMES[run.outcome]} after {plural(len(run.calls), 'call')}"]
    if run.error:
        texts.append(f"error: {shorten(' '.join(run.error.split()), 5 * LONGEST_CALL)}")
    if run.stop_reason:
        texts.append(f"stopped with {short(run.stop_reason)}")
    texts += [
        f"check {short(' '.join(p for p in (one.target, one.matcher) if p))} failed: {one.message}"
        for one in run.checks
        if one.score is not None and one.score < 1
    ]
    if said := _last_words(run):
        texts.append(f'last said "{shorten(said, 5 * LONGEST_CALL)}"')
    return "; ".join(texts) + "."


def _last_words(run: ExplainedRun) -> str:
    if run.transcript is None:
        return ""
    spoken = [t.text for t in run.transcript.messages if t.role == "assistant" and t.text]
    last = run.transcript.answer or (spoken[-1] if spoken else "")
    return " ".join(last.split())


def _side(run: ExplainedRun) -> SideObject:
    return shaped(run, SideObject, outcome=OUTCOMES[run.outcome], calls=len(run.calls))


def _call(call: NormalCall | None) -> CallObject | None:
    return None if call is None else shaped(call, CallObject)


def _rows(found: SideBySide) -> Records:
    """A row for each pair of calls."""
    return [
        {
            "row": i,
            "relation": pair.relation,
            "left": call_words(pair.left),
            "right": call_words(pair.right),
        }
        for i, pair in enumerate(found.pairs, 1)
    ]


KIND = AnswerKind(
    name="diff",
    blocks=side_by_side_blocks,
    data=side_by_side_object,
    rows=_rows,
    page=lambda found, _: diff_values(found),
    template="diff.html",
    title=verdict,
)
