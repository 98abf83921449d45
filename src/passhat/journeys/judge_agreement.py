"""How far the judge of a run disagrees with itself, for the notes of its report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from passhat.messages import plural

if TYPE_CHECKING:
    from passhat.journeys.run_store import RunStore
    from passhat.records import Expectation, Suite
    from passhat.runner import RunResult

MOST_TRIALS = 1_000
"""Trials whose checks are read."""


def judge_notes(suite: Suite, result: RunResult, opened: RunStore) -> Iterator[str]:
    """What is known of the judge's reliability; nothing for a suite without a judge."""
    rubrics = [e for e in _expectations(suite) if e.matcher == "judge"]
    if not rubrics:
        return
    if all(int(rubric.options.get("repeats") or 1) < 2 for rubric in rubrics):
        yield (
            "the judge was asked once about each answer, so its agreement with itself is unknown: "
            "`judge: {repeats: 3}` measures it"
        )
        return
    judged = {task.name for task in suite.tasks if any(_is_judged(e) for e in task.expect)}
    judged |= {task.name for task in suite.tasks if task.steps}
    trials = tuple(trial for trial in result.trials if trial.task in judged)[:MOST_TRIALS]
    found = [
        check["disagreement"]
        for text in opened.transcripts(trials).values()
        for check in json.loads(text).get("checks", ())
        if check.get("disagreement") is not None
    ]
    if found:
        mean, split = sum(found) / len(found), sum(value > 0 for value in found)
        yield (
            f"the judge disagreed with itself in {100 * mean:.0f} % of pairs of readings; its "
            f"readings of {split:,} of {plural(len(found), 'answer')} were split"
        )


def _is_judged(expectation: Expectation) -> bool:
    return expectation.matcher == "judge"


def _expectations(suite: Suite) -> Iterator[Expectation]:
    for task in suite.tasks:
        yield from task.expect
        for step in task.steps:
            yield from step.expect
