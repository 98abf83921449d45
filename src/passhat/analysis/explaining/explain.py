"""Why do runs fail? Everything that trials and their transcripts say about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from passhat.analysis.explaining.categories import (
    Category,
    divergence_categories,
    failure_categories,
)
from passhat.analysis.explaining.causes import (
    FEWEST_SHUFFLES,
    Cause,
    Example,
    find_causes,
    smallest_possible_p,
)
from passhat.analysis.explaining.divergence import Divergence, divergences
from passhat.analysis.explaining.runs import (
    ComparedRuns,
    ExplainedRun,
    compared_runs,
    explained_runs,
)
from passhat.analysis.explaining.suite_review import SuiteReview, review_suite
from passhat.analysis.explaining.trajectories import Trajectories, trajectories
from passhat.analysis.reports.provenance import Provenance, ReportOptions, stamp
from passhat.defaults import CONFIDENCE
from passhat.display import Displayed
from passhat.errors import ArgumentError
from passhat.messages import repr_fields
from passhat.records import Outcome, Trials
from passhat.records.transcript import Transcripts
from passhat.stats.arguments import confidence_level, probability, whole_number

SHUFFLES = 4_999
"""Shuffled outcomes that a cause is held against: p is a multiple of 1 / 5,000, twice that told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """How many runs there are of each sort, and how many could be compared.

    `mixed_tasks` both passed and failed; `failing` and `passing` are their runs. Of
    `never_passed_tasks` all `never_passed_runs` failed: there is nothing to compare them with.
    """

    runs: int
    failed: int
    errored: int
    without_transcript: int
    tasks: int
    mixed_tasks: int
    failing: int
    passing: int
    never_passed_tasks: int
    never_passed_runs: int

    __repr__ = repr_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Displayed):
    """Why runs fail, as far as their calls show it.

    `causes` go together with failing beyond what luck would give; if failing were pure luck
    anything would be named with probability `alpha` at most. `could_name` says whether these runs
    were enough to name anything, had there been a perfect cause. `categories` hold every failed
    run once; `divergences` hold those of tasks that also passed, by their first difference from
    the nearest passing run, and `partings` has one example of it for each run.
    """

    systems: tuple[str, ...]
    counts: RunCounts
    causes: tuple[Cause, ...]
    could_name: bool
    categories: tuple[Category, ...]
    divergences: tuple[Category, ...]
    partings: tuple[Example, ...]
    trajectories: Trajectories
    review: SuiteReview
    alpha: float
    confidence: float
    shuffles: int
    provenance: Provenance

    __repr__ = repr_fields


def explain(
    trials: Trials,
    transcripts: Transcripts | None = None,
    *,
    alpha: float = 0.05,
    confidence: float = CONFIDENCE,
    shuffles: int = SHUFFLES,
    seed: int = 0,
    expected: Mapping[str, str] | None = None,
) -> Explanation:
    """Why do runs fail? What failing runs do that passing runs of the same task do not.

    `transcripts` are those that `read_with_transcripts` gives. `expected` names the tool that each
    task should choose; where it is left out, it is what the suite said when it ran. No model is
    asked.

    >>> table = Trials.from_columns(task=["a", "a"], passed=[True, False])
    >>> explain(table, {}).categories[0].what
    'nothing to read'
    """
    if not isinstance(trials, Trials):
        raise ArgumentError("trials", "must be Trials, as read_with_transcripts gives", trials)
    if not isinstance(transcripts, Mapping):
        rule = (
            "must be texts by (system, task, trial): "
            "`trials, said = passhat.read_with_transcripts(FILE)` gives both"
        )
        raise ArgumentError("transcripts", rule, transcripts)
    alpha = probability("alpha", alpha, open_ends=True)
    confidence = confidence_level(confidence)
    shuffles = whole_number("shuffles", shuffles, least=FEWEST_SHUFFLES)
    rng = np.random.default_rng(whole_number("seed", seed, least=0))
    runs = explained_runs(trials, transcripts)
    if expected is None:
        expected = {run.task: run.expected_tool for run in runs if run.expected_tool} or None
    compared = compared_runs(runs)
    found = divergences(compared)
    return Explanation(
        systems=trials.systems,
        counts=_counts(runs, compared),
        causes=find_causes(compared, found, alpha=alpha, shuffles=shuffles, rng=rng),
        could_name=smallest_possible_p(compared) <= alpha,
        categories=failure_categories(runs, found, confidence=confidence),
        divergences=divergence_categories(found, confidence=confidence),
        partings=tuple(_parting(one) for one in found),
        trajectories=trajectories(runs, found, confidence=confidence, expected=expected),
        review=review_suite(runs, confidence=confidence),
        alpha=alpha,
        confidence=confidence,
        shuffles=shuffles,
        provenance=stamp(
            trials,
            ReportOptions(ks=None, confidence=confidence, errors="exclude", bars=None, seed=seed),
        ),
    )


def _counts(runs: Sequence[ExplainedRun], compared: ComparedRuns) -> RunCounts:
    judged: dict[tuple[str, str], list[bool]] = {}
    for run in runs:
        if run.outcome is not Outcome.ERRORED:
            judged.setdefault(run.group, []).append(run.passed)
    never = [passes for passes in judged.values() if not any(passes)]
    failing = int(compared.failed.sum())
    return RunCounts(
        runs=len(runs),
        failed=sum(run.failed for run in runs),
        errored=sum(run.outcome is Outcome.ERRORED for run in runs),
        without_transcript=sum(run.transcript is None for run in runs),
        tasks=len({run.group for run in runs}),
        mixed_tasks=compared.strata,
        failing=failing,
        passing=len(compared.runs) - failing,
        never_passed_tasks=len(never),
        never_passed_runs=sum(map(len, never)),
    )


def _parting(one: Divergence) -> Example:
    return Example(
        failing=one.run.key,
        passing=one.passing.key,
        call=None if one.call is None else one.call.place,
    )
