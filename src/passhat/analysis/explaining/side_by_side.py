"""Two runs of one task beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from passhat.analysis.explaining.alignment import AlignedCalls, align, first_parting
from passhat.analysis.explaining.divergence import nearest_passing
from passhat.analysis.explaining.runs import ExplainedRun, explained_runs
from passhat.display import Displayed
from passhat.errors import ArgumentError, InputError
from passhat.messages import closest, listed, repr_fields
from passhat.records import Trials
from passhat.records.run_numbers import first_number
from passhat.records.transcript import Transcripts


@dataclass(frozen=True, slots=True, kw_only=True)
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

    __repr__ = repr_fields


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
    for run in (one, other):
        if run.transcript is None:
            raise InputError(f"trial {run.trial} of task {task} has no transcript to compare")
    first = first_number(trials.trial.tolist()) if first_trial is None else first_trial
    return aligned_runs(one, other, runs, first_trial=first)


def aligned_runs(
    one: ExplainedRun, other: ExplainedRun, runs: Sequence[ExplainedRun], *, first_trial: int
) -> SideBySide:
    """Two runs of a task call by call, among all `runs` of it."""
    pairs = align(one.calls, other.calls)
    said = [run for run in runs if run.transcript is not None]
    return SideBySide(
        left=one,
        right=other,
        pairs=pairs,
        parting=first_parting(pairs),
        runs=tuple(sorted(said, key=lambda run: (not run.passed, run.trial))),
        partings=dict(_partings(said)),
        first_trial=first_trial,
    )


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
        near = closest(task, trials.tasks)
        guess = f" (did you mean {near}?)" if near else ""
        known = listed(trials.tasks, 5)
        raise ArgumentError("task", f"must be one of {known}{guess}", task)
    here = trials.where(task=task)
    systems = tuple(dict.fromkeys(name or "" for name in here.system.texts()))
    if system is None and len(systems) > 1:
        raise InputError(f"task {task} was tried by {listed(systems, 5)}: say which, --only AGENT")
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


def _first_failing(runs: Iterable[ExplainedRun], task: str) -> ExplainedRun:
    failing = [run for run in runs if not run.passed and run.transcript is not None]
    if not failing:
        raise InputError(f"no run of task {task} failed: name the two trials to compare")
    return min(failing, key=lambda run: run.trial)


def _nearest(one: ExplainedRun, runs: Iterable[ExplainedRun]) -> ExplainedRun:
    passing = [r for r in runs if r.passed and r.transcript is not None and r is not one]
    if not passing:
        raise InputError(f"no other run of task {one.task} passed: name the trial to compare with")
    tools = frozenset(tool for run in (one, *passing) for tool in run.tools)
    return nearest_passing(one, passing, tools)
