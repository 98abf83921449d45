"""Why runs fail: everything that trials and their transcripts say about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

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
from passhat.analysis.explaining.divergence import divergences
from passhat.analysis.explaining.runs import (
    ComparedRuns,
    ExplainedRun,
    compared_runs,
    explained_runs,
    runs_by_task,
)
from passhat.analysis.explaining.side_by_side import SideBySide, aligned_runs
from passhat.analysis.explaining.suite_review import SuiteReview, review_suite
from passhat.analysis.explaining.trajectories import Trajectories, trajectories
from passhat.analysis.reports.provenance import Provenance, ReportOptions, stamp
from passhat.arguments import CONFIDENCE, probability, whole_number
from passhat.dataclass import Displayed, short_dataclass
from passhat.errors import ArgumentError
from passhat.records import Outcome, Trials
from passhat.records.transcript import Transcripts
from passhat.records.trial import first_number
from passhat.stats.arguments import confidence_level

MOST_PAIRS = 4
"""Examples that are aligned call by call: of causes, and of groups of failures."""

SHUFFLES = 4_999
"""Shuffles that a cause is compared with: p is a multiple of 1 / 5,000, doubled for two tests."""


@short_dataclass(frozen=True, slots=True, kw_only=True)
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


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Displayed):
    """Why runs fail, as far as their calls show it.

    `causes` go together with failing beyond what luck would give; if failing were pure luck
    anything would be named with probability `alpha` at most. `could_name` says whether these runs
    were enough to name anything, had there been a perfect cause. `categories` hold every failed
    run once; `divergences` hold those of tasks that also passed, by their first difference from
    the nearest passing run, and `partings` has one example of it for each run. `pairs` are the
    examples of causes and of the largest groups, call by call. `first_trial` is the number that the
    log gives its first trial: people see runs counted from 1.
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
    pairs: tuple[SideBySide, ...] = field(default=(), repr=False)
    first_trial: int = 0


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
    """Explain why runs fail: what failing runs do that passing runs of the same task do not.

    `transcripts` are those that `read_with_transcripts` gives. `expected` names the tool that each
    task should choose (default: what the suite named when it ran). No model is asked.

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
    causes = find_causes(compared, found, alpha=alpha, shuffles=shuffles, rng=rng)
    groups = divergence_categories(found, confidence=confidence)
    partings = tuple(Example.of(one) for one in found)
    first = first_number(trials.trial.tolist())
    return Explanation(
        systems=trials.systems,
        counts=_counts(runs, compared),
        causes=causes,
        could_name=smallest_possible_p(compared) <= alpha,
        categories=failure_categories(runs, found, confidence=confidence),
        divergences=groups,
        partings=partings,
        trajectories=trajectories(runs, found, confidence=confidence, expected=expected),
        review=review_suite(runs, confidence=confidence),
        alpha=alpha,
        confidence=confidence,
        shuffles=shuffles,
        provenance=stamp(
            trials,
            ReportOptions(ks=None, confidence=confidence, errors="exclude", bars=None, seed=seed),
        ),
        pairs=tuple(_pairs(causes, groups, partings, runs, first)),
        first_trial=first,
    )


def _counts(runs: Sequence[ExplainedRun], compared: ComparedRuns) -> RunCounts:
    groups = runs_by_task(run for run in runs if run.outcome is not Outcome.ERRORED)
    never = [group for group in groups if not any(run.passed for run in group)]
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


def _pairs(
    causes: Sequence[Cause],
    groups: Sequence[Category],
    partings: Sequence[Example],
    runs: Sequence[ExplainedRun],
    first_trial: int,
) -> Iterator[SideBySide]:
    """The example of each cause, then one of each of the largest groups, call by call."""
    by_key = {run.key: run for run in runs}
    nearest = {one.failing: one for one in partings}
    examples = [cause.example for cause in causes[:MOST_PAIRS]]
    largest = [group.example for group in groups[:MOST_PAIRS]]
    examples += [nearest[key] for key in largest if key in nearest]
    seen = {(one.failing, one.passing): one for one in examples}
    for failing, passing in seen:
        one, other = by_key[failing], by_key[passing]
        if one.transcript is not None and other.transcript is not None:
            beside = [run for run in runs if run.group == one.group]
            yield aligned_runs(one, other, beside, first_trial=first_trial)
