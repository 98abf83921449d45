"""Two runs as a page: the calls of every run, the two beside each other as cards, then each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from passhat.analysis.explaining.run_diff import AlignedCalls, SideBySide
from passhat.analysis.explaining.runs import ExplainedRun, NormalCall
from passhat.dataclass import dataclass
from passhat.messages import listed, plural
from passhat.records.trial import run_number
from passhat.reporters.safe_text import short, shorten
from passhat.reporters.transcript_cards import (
    Card,
    CheckCard,
    check_cards,
    ending_words,
    transcript_cards,
)
from passhat.reporters.transcript_text import safe_passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Cards of both runs up to a call that both made; `banner` where they part, `foot` below."""

    left: tuple[Card, ...]
    right: tuple[Card, ...]
    banner: str = ""
    foot: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run of the task: its cards, its checks, and the tools it called.

    `parting` is the first of its calls that the nearest passing run did not make.
    """

    trial: int
    number: str
    outcome: str
    tools: tuple[str, ...]
    parting: int | None
    checks: tuple[CheckCard, ...]
    cards: tuple[Card, ...]
    ending: str


def diff_values(found: SideBySide) -> dict[str, Any]:
    """What the template of two runs shows."""
    pair = pair_values(found)
    views = pair["views"]
    return {
        "headline": verdict(found),
        "subject": "two runs",
        **pair,
        "neighbours": list(zip(views, (None, *views), (*views[1:], None), strict=False)),
    }


def pair_values(found: SideBySide) -> dict[str, Any]:
    """Every run of the task, the two that are compared, and these in stretches."""
    views = run_views(found)
    by_trial = {view.trial: view for view in views}
    left, right = by_trial[found.left.trial], by_trial[found.right.trial]
    return {"views": views, "left": left, "right": right, "stretches": stretches(found)}


def stretches(found: SideBySide) -> tuple[Stretch, ...]:
    """The two runs in stretches side by side, divided at calls that both made."""
    left = _marked(_cards(found.left), {p.left.place: p for p in found.pairs if p.left})
    right = _marked(_cards(found.right), {p.right.place: p for p in found.pairs if p.right})
    rows: list[Stretch] = []
    at = [0, 0]
    parted = False
    for i, pair in enumerate(found.pairs):
        here = not parted and found.parting is not None and i >= found.parting
        if pair.left is None or pair.right is None:
            continue
        upto = _cards_up_to(left, pair.left.place), _cards_up_to(right, pair.right.place)
        rows.append(
            Stretch(
                left=left[at[0] : upto[0]],
                right=right[at[1] : upto[1]],
                banner=_banner(found) if here else "",
                foot=_foot(pair),
            )
        )
        parted, at = parted or here, [max(at[0], upto[0]), max(at[1], upto[1])]
    banner = _banner(found) if found.parting is not None and not parted else ""
    rest = Stretch(left=left[at[0] :], right=right[at[1] :], banner=banner)
    return (*rows, rest) if rest.left or rest.right else tuple(rows)


def run_views(found: SideBySide) -> tuple[RunView, ...]:
    """Every run of the task, those that passed first."""
    return tuple(
        RunView(
            trial=run.trial,
            number=run_number(run.trial, found.first_trial),
            outcome=OUTCOMES[run.outcome],
            tools=tuple(safe_passage(tool) for tool in run.tools),
            parting=found.partings.get(run.trial),
            checks=check_cards(run.checks),
            cards=_cards(run),
            ending=_ending(run),
        )
        for run in found.runs
    )


def _cards_up_to(cards: Sequence[Card], call: int) -> int:
    """How many cards there are up to a call and its result, and all calls before it."""
    places = (-1 if card.place is None else card.place for card in cards)
    return max(i for i, place in enumerate(places, 1) if 0 <= place <= call)


def _cards(run: ExplainedRun) -> tuple[Card, ...]:
    return () if run.transcript is None else transcript_cards(run.transcript)


def _marked(cards: Sequence[Card], pairs: Mapping[int, AlignedCalls]) -> tuple[Card, ...]:
    """The cards, those of calls that differ from the other run's marked with how."""
    return tuple(
        replace(card, differs=_difference(pairs[card.place]))
        if card.kind == "call" and card.place is not None
        else card
        for card in cards
    )


def _difference(pair: AlignedCalls) -> str:
    if pair.relation == "same":
        return ""
    if pair.relation == "other arguments":
        names = listed([name or "its argument" for name in pair.arguments], 3)
        return f"other {safe_passage(names)}"
    return pair.relation if pair.relation == "other result" else "only here"


def _banner(found: SideBySide) -> str:
    assert found.parting is not None, "asked only where the runs part"
    before = plural(found.parting, "identical call")
    said = parting_words(found.pairs[found.parting])
    return f"After {before}: {said}."


def _foot(pair: AlignedCalls) -> str:
    if pair.relation == "same":
        return "same call"
    return "same call, another result" if pair.relation == "other result" else "other arguments"


def _ending(run: ExplainedRun) -> str:
    error = f"error: {safe_passage(shorten(run.error, 5 * LONGEST_CALL))}" if run.error else ""
    ending = "" if run.transcript is None else ending_words(run.transcript)
    return ", ".join(part for part in (plural(len(run.calls), "call"), error, ending) if part)


OUTCOMES = ("failed", "passed", "errored")
"""Outcomes in words, by their code."""

LONGEST_CALL = 60
"""Columns of a call on one line."""


def verdict(found: SideBySide) -> str:
    """Where two runs first differ, in one sentence."""
    left, right = (
        f"{run_number(run.trial, found.first_trial)} ({OUTCOMES[run.outcome]})"
        for run in (found.left, found.right)
    )
    names = f"{left} and {right} of task {short(found.left.task)}"
    if found.parting is None:
        calls = len(found.pairs)
        made = f"made the same {plural(calls, 'call')}" if calls else "made no calls"
        return f"{names} {made}: read what they said."
    differs = parting_words(found.pairs[found.parting])
    return f"{names} first differ at row {found.parting + 1}: {differs}."


def parting_words(pair: AlignedCalls) -> str:
    """What differs in a pair of calls."""
    if pair.left is not None and pair.right is not None:
        if pair.relation == "other result":
            if pair.left.worked and pair.right.worked:
                return f"{pair.left.tool} returned nothing in one and a result in the other"
            return f"{pair.left.tool} worked in one and failed in the other"
        names = listed([name or "its argument" for name in pair.arguments], 4)
        return f"{pair.left.tool} with another {names}"
    only, side = (pair.left, "first") if pair.left is not None else (pair.right, "second")
    return f"only the {side} calls {only.tool if only else ''}"


def call_words(call: NormalCall | None) -> str:
    """A call on one short line.

    >>> call_words(None)
    ''
    """
    if call is None:
        return ""
    given = ", ".join(
        f"{name}={value}" if name else value for name, value in call.arguments.items()
    )
    failed = " !error" if call.error is not None else ""
    return shorten(f"{call.tool}({given})", LONGEST_CALL) + failed
