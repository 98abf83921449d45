"""What the page of an explanation shows: causes, each with two runs side by side, then the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from passhat.analysis.explaining.causes import Example
from passhat.analysis.explaining.explain import Explanation
from passhat.analysis.explaining.run_diff import SideBySide
from passhat.dataclass import dataclass
from passhat.messages import plural
from passhat.records.trial import run_number
from passhat.reporters.answer_kind import DisplayOptions, Facts
from passhat.reporters.answers.diff_page import RunView, Stretch, pair_values, parting_words
from passhat.reporters.answers.explanation_blocks import (
    MOST_CATEGORIES,
    category_tables,
    caution,
    compared_words,
    next_commands,
    verdict,
)
from passhat.reporters.answers.explanation_ways import way_blocks
from passhat.reporters.blocks import Block, Chip, Steps
from passhat.reporters.safe_text import short

LONGEST_PAIR = 200_000
"""Characters of two transcripts up to which a page shows them beside each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairView:
    """Two runs side by side, opened from a page."""

    title: str
    task: str
    views: tuple[RunView, ...]
    left: RunView
    right: RunView
    stretches: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseView:
    """A cause, its evidence, and the runs to read."""

    sentence: str
    detail: str
    example: PairView | None


def explanation_page(explanation: Explanation, options: DisplayOptions) -> Mapping[str, Any]:
    """The values of the template."""
    pairs = {(one.left.key, one.right.key): one for one in explanation.pairs}
    causes = [
        CauseView(
            sentence=cause.sentence,
            detail=f"p = {cause.p:.2g}. {cause.detail}".strip(),
            example=_pair_view(
                pairs.pop((cause.example.failing, cause.example.passing), None),
                _call(cause.example),
            ),
        )
        for cause in explanation.causes
    ]
    steps = next_commands(explanation, options.results)
    rest: list[Block] = [*way_blocks(explanation)]
    return {
        "subject": "why runs fail",
        "headline": verdict(explanation),
        "compared": compared_words(explanation),
        "causes": causes,
        "caution": caution(explanation),
        "tables": category_tables(explanation),
        "shares": [
            [one.share for one in categories[:MOST_CATEGORIES]]
            for categories in (explanation.categories, explanation.divergences)
            if categories
        ],
        "examples": [view for one in pairs.values() if (view := _pair_view(one, "")) is not None],
        "rest": [*rest, Steps("Next", tuple(steps))] if steps else rest,
    }


def chip(explanation: Explanation) -> Chip:
    """Whether anything is named."""
    if explanation.causes:
        count = len(explanation.causes)
        return Chip("One cause named" if count == 1 else f"{count} causes named", "bad")
    counts = explanation.counts
    if counts.failed + counts.errored == 0:
        return Chip("No run failed", "good")
    return Chip("No cause named", "open")


def facts(explanation: Explanation) -> Facts:
    """How many runs failed, and how many tasks can tell why."""
    counts = explanation.counts
    said = "have transcripts of passing and failing runs"
    both = said if counts.without_transcript else "both pass and fail"
    found = [
        (f"{counts.failed + counts.errored:,} of {counts.runs:,}", "runs did not pass"),
        (f"{counts.mixed_tasks:,} of {counts.tasks:,}", f"tasks {both}"),
    ]
    if never := counts.never_passed_tasks:
        found.append((plural(never, "task"), "without a passing run: nothing to compare with"))
    return found


def _call(example: Example) -> str:
    return "" if example.call is None else f": look at call {example.call + 1}"


def _pair_view(found: SideBySide | None, where: str) -> PairView | None:
    """None if the two are too long for a page that shows several."""
    if found is None:
        return None
    said = (found.left.transcript, found.right.transcript)
    if sum(one.size() for one in said if one is not None) > LONGEST_PAIR:
        return None
    if not where and found.parting is not None:
        where = f": {parting_words(found.pairs[found.parting])}"
    numbers = (run_number(run.trial, found.first_trial) for run in (found.left, found.right))
    return PairView(
        title=f"Read {short(found.left.task)} {' beside '.join(numbers)}, which passed{where}",
        task=found.left.task,
        **pair_values(found),
    )
