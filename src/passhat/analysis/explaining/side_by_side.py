"""Two runs of one task next to each other, call by call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import takewhile
from typing import Literal

from passhat.analysis.explaining.divergence import differing_arguments, nearest_passing
from passhat.analysis.explaining.normal_calls import NormalCall
from passhat.analysis.explaining.runs import ExplainedRun, explained_runs
from passhat.dataclass import Displayed, dataclass, short_dataclass
from passhat.errors import ArgumentError, InputError
from passhat.messages import listed, one_of_rule, short
from passhat.records import Trials
from passhat.records.transcript import Transcripts
from passhat.records.trial import first_number, run_number

Relation = Literal["same", "other result", "other arguments", "left only", "right only"]

MOST_CALLS = 1_000
"""Calls of each run that are aligned; later ones are shown on their own."""

# Two calls of one tool pair up, but never at the expense of two equal calls.
_SAME, _SAME_TOOL = 4, 2


@short_dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide(Displayed):
    """Two runs call by call; `parting` is the place of the first pair that is not the same.

    `runs` are all runs of the task that left a transcript, passing ones first, and `partings` says
    for each that failed which of its calls is the first that the nearest passing run did not make.
    `first_trial` is the number that the log gives its first trial: people see runs counted from 1.
    """

    left: ExplainedRun
    right: ExplainedRun
    pairs: tuple[AlignedCalls, ...]
    parting: int | None
    runs: tuple[ExplainedRun, ...] = ()
    partings: Mapping[int, int] = field(default_factory=dict)
    first_trial: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedCalls:
    """A call of the left run beside one of the right; `arguments` are those that differ."""

    left: NormalCall | None
    right: NormalCall | None
    relation: Relation
    arguments: tuple[str, ...] = ()


def side_by_side(
    trials: Trials,
    transcripts: Transcripts,
    task: str,
    left: int | None = None,
    right: int | None = None,
    *,
    system: str | None = None,
    first_trial: int | None = None,
) -> SideBySide:
    """Two trials of a task, aligned call by call.

    Without `right` it is the passing run nearest to `left`; without both, the first failing run
    and the passing run nearest to it. The numbers are those of `trials`, and so is the first of
    them unless `first_trial` names it.
    """
    runs = _runs_of(trials, transcripts, task, system)
    one = _numbered(runs, left, "left") if left is not None else _first_failing(runs, task)
    other = _numbered(runs, right, "right") if right is not None else _nearest(one, runs)
    first = first_number(trials.trial.tolist()) if first_trial is None else first_trial
    for run in (one, other):
        if run.transcript is None:
            number = run_number(run.trial, first)
            error = f"; it ended with the error: {short(run.error)}" if run.error else ""
            raise InputError(f"run {number} of task {task} has no transcript to compare{error}")
    return aligned_runs(one, other, runs, first_trial=first)


def aligned_runs(
    one: ExplainedRun, other: ExplainedRun, runs: Sequence[ExplainedRun], *, first_trial: int
) -> SideBySide:
    """Two runs of a task call by call, among all `runs` of it."""
    pairs = align(one.calls, other.calls)
    kept = [run for run in runs if run.transcript is not None]
    return SideBySide(
        left=one,
        right=other,
        pairs=pairs,
        parting=first_parting(pairs),
        runs=tuple(sorted(kept, key=lambda run: (not run.passed, run.trial))),
        partings=dict(_partings(kept)),
        first_trial=first_trial,
    )


def align(left: Sequence[NormalCall], right: Sequence[NormalCall]) -> tuple[AlignedCalls, ...]:
    """The calls of two runs in order, with as many equal calls paired as possible.

    Only calls of the same tool are paired (Needleman and Wunsch 1970, with free gaps).
    """
    shared = _shared_start(left, right)
    middle = _aligned(left[shared:MOST_CALLS], right[shared:MOST_CALLS])
    start = [_pair(left[i], right[i]) for i in range(shared)]
    tail = [_alone(call, "left only") for call in left[max(shared, MOST_CALLS) :]]
    tail += [_alone(call, "right only") for call in right[max(shared, MOST_CALLS) :]]
    return (*start, *middle, *tail)


def first_parting(pairs: Sequence[AlignedCalls]) -> int | None:
    """The place of the first pair that is not the same; None if all are."""
    return next((i for i, pair in enumerate(pairs) if pair.relation != "same"), None)


def _partings(runs: Sequence[ExplainedRun]) -> Iterator[tuple[int, int]]:
    """The first call of each failing run that has no equal in the nearest passing run."""
    passing = [run for run in runs if run.passed]
    tools = frozenset(tool for run in runs for tool in run.tools)
    for run in runs:
        if run.failed and passing:
            pairs = align(run.calls, nearest_passing(run, passing, tools).calls)
            differing = (p.left for p in pairs if p.left is not None and p.relation != "same")
            if first := next(differing, None):
                yield run.trial, first.place


def _runs_of(
    trials: Trials, transcripts: Transcripts, task: str, system: str | None
) -> tuple[ExplainedRun, ...]:
    if task not in trials.tasks:
        raise ArgumentError("task", one_of_rule(task, trials.tasks, 5), task)
    here = trials.where(task=task)
    systems = tuple(dict.fromkeys(name or "" for name in here.system.texts()))
    if system is None and len(systems) > 1:
        rule = f"must be given: task {task} was tried by {listed(systems, 5)}"
        raise ArgumentError("system", rule, system)
    chosen = system if system is not None else systems[0]
    if chosen not in systems:
        raise ArgumentError("system", f"must be one of {listed(systems, 5)}", chosen)
    return explained_runs(here.where(system=chosen), transcripts)


def _numbered(runs: Iterable[ExplainedRun], number: int, side: str) -> ExplainedRun:
    found = {run.trial: run for run in runs}
    if number not in found:
        known = listed([str(one) for one in sorted(found)], 12)
        raise ArgumentError(side, f"must be the number of a trial: {known}", number)
    return found[number]


def _first_failing(runs: Sequence[ExplainedRun], task: str) -> ExplainedRun:
    failing = [run for run in runs if not run.passed and run.transcript is not None]
    if not failing and any(not run.passed for run in runs):
        raise InputError(f"no failed run of task {task} has a transcript to compare")
    if not failing:
        raise InputError(f"no run of task {task} failed: name the two runs to compare")
    return min(failing, key=lambda run: run.trial)


def _nearest(one: ExplainedRun, runs: Iterable[ExplainedRun]) -> ExplainedRun:
    passing = [r for r in runs if r.passed and r.transcript is not None and r is not one]
    if not passing:
        raise InputError(f"no other run of task {one.task} passed: name the trial to compare with")
    tools = frozenset(tool for run in (one, *passing) for tool in run.tools)
    return nearest_passing(one, passing, tools)


def _shared_start(left: Sequence[NormalCall], right: Sequence[NormalCall]) -> int:
    """How many calls are the same from the first on."""
    pairs = zip(left, right, strict=False)
    return len(list(takewhile(lambda pair: pair[0].key == pair[1].key, pairs)))


def _aligned(left: Sequence[NormalCall], right: Sequence[NormalCall]) -> list[AlignedCalls]:
    best = _best_scores(left, right)
    pairs: list[AlignedCalls] = []
    i = j = 0
    while i < len(left) and j < len(right):
        score = _score(left[i], right[j])
        if score and best[i][j] == score + best[i + 1][j + 1]:
            pairs.append(_pair(left[i], right[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            pairs.append(_alone(left[i], "left only"))
            i += 1
        else:
            pairs.append(_alone(right[j], "right only"))
            j += 1
    pairs += [_alone(call, "left only") for call in left[i:]]
    return pairs + [_alone(call, "right only") for call in right[j:]]


def _best_scores(left: Sequence[NormalCall], right: Sequence[NormalCall]) -> list[list[int]]:
    """The best score that the calls from (i, j) on can reach."""
    best = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        here, below = best[i], best[i + 1]
        for j in range(len(right) - 1, -1, -1):
            score = _score(left[i], right[j])
            apart = below[j] if below[j] > here[j + 1] else here[j + 1]
            here[j] = max(apart, score + below[j + 1]) if score else apart
    return best


def _score(one: NormalCall, other: NormalCall) -> int:
    if one.tool != other.tool:
        return 0
    return _SAME if one.key == other.key else _SAME_TOOL


def _pair(left: NormalCall, right: NormalCall) -> AlignedCalls:
    relation: Relation = "other arguments"
    if left.key == right.key:
        alike = (left.error, left.empty) == (right.error, right.empty)
        relation = "same" if alike else "other result"
    return AlignedCalls(
        left=left, right=right, relation=relation, arguments=differing_arguments(left, right)
    )


def _alone(call: NormalCall, relation: Literal["left only", "right only"]) -> AlignedCalls:
    here = relation == "left only"
    left, right = (call, None) if here else (None, call)
    return AlignedCalls(left=left, right=right, relation=relation)
