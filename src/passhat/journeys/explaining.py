"""Why do runs fail, and where do two runs of a task part?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from passhat.defaults import CONFIDENCE, SEED
from passhat.errors import ArgumentError
from passhat.journeys.results import Results, as_results, choose_systems
from passhat.messages import closest, listed
from passhat.records.task_names import first_number

if TYPE_CHECKING:
    from passhat.analysis.explaining.explain import Explanation
    from passhat.analysis.explaining.side_by_side import SideBySide
    from passhat.journeys.results import Place

ALPHA = 0.05
"""How often something may be named where failing is pure luck."""

MOST_RUNS = 12
"""Numbers of runs that a message lists."""

MOST_TASKS = 5
"""Tasks that a message names."""


def explain_results(
    results: Results | Place | Sequence[Place],
    *,
    task: str | None = None,
    only: Sequence[str] = (),
    alpha: float = ALPHA,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> Explanation:
    """What do failing runs do that passing runs of the same task do not?

    `results` keep what was said in each run: files, or runs of the history.
    """
    from passhat.analysis.explaining.explain import explain

    trials, said = as_results(results).with_transcripts()
    chosen = choose_systems(trials, only)
    if task is not None:
        if task not in chosen.tasks:
            near = closest(task, chosen.tasks)
            guess = f" (did you mean {near}?)" if near else ""
            rule = f"must be one of {listed(chosen.tasks, MOST_TASKS)}{guess}"
            raise ArgumentError("task", rule, task)
        chosen = chosen.where(task=task)
    return explain(chosen, said, alpha=alpha, confidence=confidence, seed=seed)


def diff_trials(
    results: Results | Place | Sequence[Place],
    task: str,
    left: int | None = None,
    right: int | None = None,
    *,
    only: str | None = None,
) -> SideBySide:
    """Two runs of a task side by side; by default a failing run and the nearest passing one.

    `left` and `right` are the numbers that people see, counted from 1.
    """
    from passhat.analysis.explaining.side_by_side import side_by_side

    trials, said = as_results(results).with_transcripts()
    first = first_number(trials.trial.tolist())
    known = [trial - first + 1 for trial in sorted(set(trials.where(task=task).trial.tolist()))]
    for name, number in (("left", left), ("right", right)):
        if number is not None and known and number not in known:
            rule = f"must be the number of a run: {listed([str(one) for one in known], MOST_RUNS)}"
            raise ArgumentError(name, rule, number)
    numbers = (None if number is None else number - 1 + first for number in (left, right))
    return side_by_side(trials, said, task, *numbers, system=only)
