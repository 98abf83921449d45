"""Why runs fail: what failing runs do that passing ones do not, and two runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passhat import arguments
from passhat.arguments import CONFIDENCE, SEED
from passhat.errors import ArgumentError
from passhat.journeys.results import Names, ResultsLike, as_results, choose_systems, chosen_names
from passhat.messages import listed, one_of_rule
from passhat.records.trial import first_number

if TYPE_CHECKING:
    from passhat.analysis.explaining.explain import Explanation
    from passhat.analysis.explaining.run_diff import SideBySide
    from passhat.records import Transcripts, Trials

ALPHA = 0.05
"""How often a cause may be named although failing is pure luck."""

MOST_RUNS = 12
"""Numbers of runs that a message lists."""

MOST_TASKS = 5
"""Tasks that a message names."""


def explain_results(
    results: ResultsLike,
    *,
    task: str | None = None,
    only: Names = (),
    alpha: float = ALPHA,
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> Explanation:
    """What do failing runs do that passing runs of the same task do not?

    `results` have transcripts: they are files, or stored runs.
    """
    from passhat.analysis.explaining.explain import explain

    trials, said = _with_transcripts(results)
    chosen = choose_systems(trials, only)
    if task is not None:
        if task not in chosen.tasks:
            raise ArgumentError("task", one_of_rule(task, chosen.tasks, MOST_TASKS), task)
        chosen = chosen.where(task=task)
    return explain(chosen, said, alpha=alpha, confidence=confidence, seed=seed)


def diff_trials(
    results: ResultsLike,
    task: str,
    left: int | None = None,
    right: int | None = None,
    *,
    only: Names = None,
) -> SideBySide:
    """Two runs of a task side by side; by default a failing run and the nearest passing one.

    `left` and `right` are the numbers that people see, counted from 1.
    """
    from passhat.analysis.explaining.run_diff import side_by_side

    trials, said = _with_transcripts(results)
    system = arguments.one_name("only", only)
    chosen_names(system, trials.systems)  # refuses one that is not there
    first = first_number(trials.trial.tolist())
    known = [trial - first + 1 for trial in sorted(set(trials.where(task=task).trial.tolist()))]
    for name, number in (("left", left), ("right", right)):
        if number is not None and known and number not in known:
            rule = f"must be the number of a run: {listed([str(one) for one in known], MOST_RUNS)}"
            raise ArgumentError(name, rule, number)
    numbers = (None if number is None else number - 1 + first for number in (left, right))
    return side_by_side(trials, said, task, *numbers, system=system)


def _with_transcripts(given: ResultsLike) -> tuple[Trials, Transcripts]:
    """The trials of results that hold transcripts too: files or stored runs."""
    from passhat.records import Trials

    if isinstance(given, Trials):
        rule = "must be paths or names of runs, which have transcripts; trials have none"
        raise ArgumentError("results", rule, given)
    return as_results(given).with_transcripts()
