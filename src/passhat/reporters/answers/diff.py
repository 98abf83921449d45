"""Two runs beside each other: what each called, where they part, how each ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from passhat.analysis.explaining.run_diff import AlignedCalls, Relation, RunDiff
from passhat.analysis.explaining.runs import ExplainedRun, NormalizedCall
from passhat.dataclass import dataclass
from passhat.messages import listed, plural
from passhat.records.trial import run_number
from passhat.reporters.answer import (
    Answer,
    Block,
    DisplayOptions,
    Headline,
    Paragraph,
    Records,
    Remark,
    Table,
)
from passhat.reporters.data import JsonShape
from passhat.reporters.formatting import short, shorten
from passhat.reporters.page_parts import (
    Card,
    CheckCard,
    check_cards,
    ending_text,
    safe_passage,
    transcript_cards,
)

MARKS: dict[Relation, str] = {
    "same": "=",
    "other result": "!",
    "other arguments": "≠",
    "left only": "<",
    "right only": ">",
}
"""The mark between two calls."""

OUTCOMES = ("failed", "passed", "errored")
"""Outcomes in words, by their code."""

LONGEST_CALL = 60
"""Columns of a call on one line."""

_MOST_DETAILS = 5


class DiffAnswer(Answer[RunDiff]):
    """Two runs of a task, call by call."""

    name = "diff"
    template = "diff.html"

    def title(self) -> str:
        return verdict(self.result)

    def blocks(self, options: DisplayOptions) -> list[Block]:
        """Where they part, the calls side by side, what differs in them, how each ended."""
        diff = self.result
        blocks: list[Block] = [Headline(verdict(diff))]
        if diff.pairs:
            blocks.append(_table(diff))
        blocks += [Paragraph(f"Row {row}", text) for row, text in _details(diff)]
        blocks += [Paragraph(side, _ending(run)) for side, run in _sides(diff)]
        return blocks

    def screen(self, options: DisplayOptions) -> list[Block]:
        """Where they part, the calls around it side by side, and what failed."""
        diff = self.result
        blocks: list[Block] = [Headline(verdict(diff))]
        first = max(0, (diff.parting or 0) - 2)
        shown = list(enumerate(diff.pairs, 1))[first : first + MOST_CALLS]
        heads = [
            f"trial {number.removeprefix('#')}, {OUTCOMES[run.outcome]}"
            for number, run in _sides(diff)
        ]
        rows = tuple(
            (f"{i}", MARKS[pair.relation], call_text(pair.left), call_text(pair.right))
            for i, pair in shown
        )
        if rows:
            table = Table(
                header=("", "", *heads), rows=rows, left=(1, 2, 3), cut=((2, 20), (3, 20))
            )
            more = len(diff.pairs) - len(shown)
            blocks += [table, *([Remark(f"{plural(more, 'more call')}: -v")] if more else [])]
        for number, run in _sides(diff):
            if not run.passed:
                blocks += [Remark(text, apart=True) for text in _failed(run, number)[:1]]
        if diff.parting is None:
            blocks += [
                Remark(f'Trial {number.removeprefix("#")} said "{shorten(last, 2 * LONGEST_CALL)}"')
                for number, run in _sides(diff)
                if (last := _last_text(run))
            ]
        return blocks

    def rows(self) -> Records:
        """A row for each pair of calls."""
        return [
            {
                "row": i,
                "relation": pair.relation,
                "left": call_text(pair.left),
                "right": call_text(pair.right),
            }
            for i, pair in enumerate(self.result.pairs, 1)
        ]

    def data(self) -> dict[str, Any]:
        return DIFF(self.result)

    def page(self, options: DisplayOptions) -> Mapping[str, Any]:
        return diff_values(self.result)


MOST_CALLS = 8
"""Calls on the first screen, from shortly before the two part."""


def _failed(run: ExplainedRun, number: str) -> list[str]:
    """Why a trial failed, as its checks have it."""
    if run.error:
        return [f"Error: {shorten(' '.join(run.error.split()), 4 * LONGEST_CALL)}"]
    broken = [check for check in run.checks if check.score is not None and check.score < 1]
    return [f"Failed check: {check.message or check.target}." for check in broken]


def _sides(diff: RunDiff) -> list[tuple[str, ExplainedRun]]:
    return [(run_number(run.trial, diff.first_trial), run) for run in (diff.left, diff.right)]


def _table(diff: RunDiff) -> Table:
    (left, before), (right, other) = _sides(diff)
    return Table(
        header=(
            f"{left}, {OUTCOMES[before.outcome]}",
            "",
            "row",
            "",
            f"{right}, {OUTCOMES[other.outcome]}",
        ),
        rows=tuple(
            (
                _side_text(pair.left),
                MARKS[pair.relation],
                str(i),
                "<- first difference" if diff.parting == i - 1 else "",
                _side_text(pair.right),
            )
            for i, pair in enumerate(diff.pairs, 1)
        ),
        left=(0, 1, 3, 4),
        cut=((4, 12),),
    )


def _side_text(call: NormalizedCall | None) -> str:
    if call is None:
        return ""
    marks = [word for word, is_so in (("error", not call.worked), ("empty", call.empty)) if is_so]
    return short(call.tool) + "".join(f" ({word})" for word in marks)


def _details(diff: RunDiff) -> list[tuple[int, str]]:
    """The first rows that differ, with what differs in them."""
    rows = [(i, pair) for i, pair in enumerate(diff.pairs, 1) if pair.relation != "same"]
    return [(i, _detail(pair)) for i, pair in rows[:_MOST_DETAILS]]


def _detail(pair: AlignedCalls) -> str:
    if pair.left is None or pair.right is None:
        return call_text(pair.left or pair.right)
    if pair.relation == "other result":
        before, other = (
            call.error or ("empty result" if call.empty else "worked")
            for call in (pair.left, pair.right)
        )
        return f"{call_text(pair.left)}: {before} | {other}"
    texts = [
        f"{name or 'its argument'}: {_value(pair.left, name)} | {_value(pair.right, name)}"
        for name in pair.arguments
    ]
    return f"{pair.left.tool}: {'; '.join(texts)}"


def _value(call: NormalizedCall, name: str) -> str:
    return shorten(call.arguments.get(name, "(not given)"), 4 * LONGEST_CALL)


def _ending(run: ExplainedRun) -> str:
    texts = [f"{OUTCOMES[run.outcome]} after {plural(len(run.calls), 'call')}"]
    if run.error:
        texts.append(f"error: {shorten(' '.join(run.error.split()), 5 * LONGEST_CALL)}")
    if run.stop_reason:
        texts.append(f"stopped with {short(run.stop_reason)}")
    texts += [
        f"check {short(' '.join(p for p in (check.target, check.matcher) if p))} failed: "
        f"{check.message}"
        for check in run.checks
        if check.score is not None and check.score < 1
    ]
    if text := _last_text(run):
        texts.append(f'last said "{shorten(text, 5 * LONGEST_CALL)}"')
    return "; ".join(texts) + "."


def _last_text(run: ExplainedRun) -> str:
    if run.transcript is None:
        return ""
    spoken = [t.text for t in run.transcript.messages if t.role == "assistant" and t.text]
    last = run.transcript.answer or (spoken[-1] if spoken else "")
    return " ".join(last.split())


def verdict(diff: RunDiff) -> str:
    """Where two trials of a task first differ, in one sentence."""
    left, right = (
        f"{run_number(run.trial, diff.first_trial).removeprefix('#')} ({OUTCOMES[run.outcome]})"
        for run in (diff.left, diff.right)
    )
    task = short(diff.left.task)
    if diff.parting is None:
        calls = len(diff.pairs)
        made = f"made the same {plural(calls, 'call')}" if calls else "made no calls"
        return f"{task}: trials {left} and {right} {made}; read what they said."
    pair = diff.pairs[diff.parting]
    after = diff.pairs[diff.parting + 1 : diff.parting + 2]
    if pair.right is None and after and after[0].left is None:
        instead = short(after[0].right.tool) if after[0].right else ""
        return f"{task}: trial {left} called {_tool(pair)}, trial {right} {instead}."
    if pair.right is None:
        return f"{task}: trial {left} called {_tool(pair)}, which trial {right} did not."
    if pair.left is None:
        return f"{task}: trial {left} did not call {_tool(pair)}, as trial {right} did."
    if pair.relation == "other result":
        return f"{task}: {_tool(pair)} answered trial {left} otherwise than trial {right}."
    what = f"another {pair.arguments[0]}" if len(pair.arguments) == 1 else "other arguments"
    return f"{task}: trial {left} called {_tool(pair)} with {what} than trial {right}."


def _tool(pair: AlignedCalls) -> str:
    call = pair.left or pair.right
    assert call is not None, "a pair holds a call"
    return short(call.tool)


# Two runs as a page: the calls of every run, the two beside each other as cards, then each run.


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


def diff_values(diff: RunDiff) -> dict[str, Any]:
    """What the template of two runs shows."""
    pair = pair_values(diff)
    views = pair["views"]
    return {
        "headline": f"Task {verdict(diff)}",
        "subject": "two trials",
        **pair,
        "neighbours": list(zip(views, (None, *views), (*views[1:], None), strict=False)),
    }


def pair_values(diff: RunDiff) -> dict[str, Any]:
    """Every run of the task, the two that are compared, and these in stretches."""
    views = run_views(diff)
    by_trial = {view.trial: view for view in views}
    left, right = by_trial[diff.left.trial], by_trial[diff.right.trial]
    return {"views": views, "left": left, "right": right, "stretches": stretches(diff)}


def stretches(diff: RunDiff) -> tuple[Stretch, ...]:
    """The two runs in stretches side by side, divided at calls that both made."""
    left = _marked(_cards(diff.left), {p.left.place: p for p in diff.pairs if p.left})
    right = _marked(_cards(diff.right), {p.right.place: p for p in diff.pairs if p.right})
    rows: list[Stretch] = []
    at = [0, 0]
    parted = False
    for i, pair in enumerate(diff.pairs):
        here = not parted and diff.parting is not None and i >= diff.parting
        if pair.left is None or pair.right is None:
            continue
        upto = _cards_up_to(left, pair.left.place), _cards_up_to(right, pair.right.place)
        rows.append(
            Stretch(
                left=left[at[0] : upto[0]],
                right=right[at[1] : upto[1]],
                banner=_banner(diff) if here else "",
                foot=_foot(pair),
            )
        )
        parted, at = parted or here, [max(at[0], upto[0]), max(at[1], upto[1])]
    banner = _banner(diff) if diff.parting is not None and not parted else ""
    rest = Stretch(left=left[at[0] :], right=right[at[1] :], banner=banner)
    return (*rows, rest) if rest.left or rest.right else tuple(rows)


def run_views(diff: RunDiff) -> tuple[RunView, ...]:
    """Every run of the task, those that passed first."""
    return tuple(
        RunView(
            trial=run.trial,
            number=run_number(run.trial, diff.first_trial),
            outcome=OUTCOMES[run.outcome],
            tools=tuple(safe_passage(tool) for tool in run.tools),
            parting=diff.partings.get(run.trial),
            checks=check_cards(run.checks),
            cards=_cards(run),
            ending=_ending_on_page(run),
        )
        for run in diff.runs
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


def _banner(diff: RunDiff) -> str:
    assert diff.parting is not None, "asked only where the trials part"
    before = plural(diff.parting, "identical call")
    text = difference_text(diff.pairs[diff.parting])
    return f"After {before}: {text}."


def _foot(pair: AlignedCalls) -> str:
    if pair.relation == "same":
        return "same call"
    return "same call, another result" if pair.relation == "other result" else "other arguments"


def _ending_on_page(run: ExplainedRun) -> str:
    error = f"error: {safe_passage(shorten(run.error, 5 * LONGEST_CALL))}" if run.error else ""
    ending = "" if run.transcript is None else ending_text(run.transcript)
    return ", ".join(part for part in (plural(len(run.calls), "call"), error, ending) if part)


def difference_text(pair: AlignedCalls) -> str:
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


def call_text(call: NormalizedCall | None) -> str:
    """A call on one short line.

    >>> call_text(None)
    ''
    """
    if call is None:
        return ""
    given = ", ".join(
        f"{name}={value}" if name else value for name, value in call.arguments.items()
    )
    failed = " !error" if call.error is not None else ""
    return shorten(f"{call.tool}({given})", LONGEST_CALL) + failed


def _outcome(run: ExplainedRun) -> str:
    return OUTCOMES[run.outcome]


def _calls(run: ExplainedRun) -> int:
    return len(run.calls)


_CALL = JsonShape(
    "call",
    NormalizedCall,
    "One call: the tool, its arguments with free text masked, the masked error if it failed.",
    "tool arguments error place",
)
_PAIR = JsonShape(
    "pair",
    AlignedCalls,
    "A call of each trial; null where only the other trial made it.",
    "left right relation arguments",
    parts=[_CALL],
)
_SIDE = JsonShape(
    "side",
    ExplainedRun,
    "One of the two trials; `error` is empty if none broke it off.",
    "system task trial outcome error stop_reason calls",
    outcome=_outcome,
    calls=_calls,
)
DIFF = JsonShape(
    "diff",
    RunDiff,
    "Two trials of a task, call by call; `parting` is the place of the first pair that differs.",
    "schema verdict left right parting pairs",
    verdict=verdict,
    parts=[_SIDE, _PAIR],
)
