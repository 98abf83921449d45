"""Two runs of one task call by call, and where failing runs part from passing ones."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import takewhile
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.explaining.runs import (
    ComparedRuns,
    ExplainedRun,
    NormalizedCall,
    explained_runs,
)
from passhat.dataclass import Displayed, dataclass, result_dataclass
from passhat.errors import ArgumentError, InputError
from passhat.messages import listed, no_task, short
from passhat.records import Trials
from passhat.records.transcript import Transcripts
from passhat.records.trial import first_number, run_number
from passhat.stats.arguments import Counts, Floats
from passhat.stats.multiple_testing import standardised, step_down_p

Relation = Literal["same", "other result", "other arguments", "left only", "right only"]

MOST_CALLS = 1_000
"""Calls of each run that are aligned; later ones are shown on their own."""

# Two calls of one tool pair up, but never at the expense of two equal calls.
_SAME, _SAME_TOOL = 4, 2


@result_dataclass(frozen=True, slots=True, kw_only=True)
class RunDiff(Displayed):
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

    left: NormalizedCall | None
    right: NormalizedCall | None
    relation: Relation
    arguments: tuple[str, ...] = ()


def diff_runs(
    trials: Trials,
    transcripts: Transcripts,
    task: str,
    left: int | None = None,
    right: int | None = None,
    *,
    system: str | None = None,
    first_trial: int | None = None,
) -> RunDiff:
    """Two trials of a task, aligned call by call.

    Without `right` it is the passing run nearest to `left`; without both, the first failing run
    and the passing run nearest to it. The numbers are those of `trials`, and so is the first of
    them unless `first_trial` names it.
    """
    runs = _runs_of(trials, transcripts, task, system)
    failing = _numbered(runs, left, "left") if left is not None else _first_failing(runs, task)
    other = _numbered(runs, right, "right") if right is not None else _nearest(failing, runs)
    first = first_number(trials.trial.tolist()) if first_trial is None else first_trial
    for run in (failing, other):
        if run.transcript is None:
            number = run_number(run.trial, first)
            error = f"; it ended with the error: {short(run.error)}" if run.error else ""
            raise InputError(f"trial {number} of task {task} has no transcript to compare{error}")
    return aligned_runs(failing, other, runs, first_trial=first)


def aligned_runs(
    first: ExplainedRun, other: ExplainedRun, runs: Sequence[ExplainedRun], *, first_trial: int
) -> RunDiff:
    """Two runs of a task call by call, among all `runs` of it."""
    pairs = align(first.calls, other.calls)
    kept = [run for run in runs if run.transcript is not None]
    return RunDiff(
        left=first,
        right=other,
        pairs=pairs,
        parting=first_differing_pair(pairs),
        runs=tuple(sorted(kept, key=lambda run: (not run.passed, run.trial))),
        partings=dict(_first_differing_calls(kept)),
        first_trial=first_trial,
    )


def align(
    left: Sequence[NormalizedCall], right: Sequence[NormalizedCall]
) -> tuple[AlignedCalls, ...]:
    """The calls of two runs in order, with as many equal calls paired as possible.

    Only calls of the same tool are paired (Needleman and Wunsch 1970, with free gaps).
    """
    both = zip(left, right, strict=False)
    shared = len(list(takewhile(lambda pair: pair[0].key == pair[1].key, both)))
    middle = _aligned(left[shared:MOST_CALLS], right[shared:MOST_CALLS])
    start = [_pair(left[i], right[i]) for i in range(shared)]
    tail = [_alone(call, "left only") for call in left[max(shared, MOST_CALLS) :]]
    tail += [_alone(call, "right only") for call in right[max(shared, MOST_CALLS) :]]
    return (*start, *middle, *tail)


def first_differing_pair(pairs: Sequence[AlignedCalls]) -> int | None:
    """The place of the first pair that is not the same; None if all are."""
    return next((i for i, pair in enumerate(pairs) if pair.relation != "same"), None)


def _first_differing_calls(runs: Sequence[ExplainedRun]) -> Iterator[tuple[int, int]]:
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
        sentence = no_task(task, trials.tasks)
        raise ArgumentError("task", "must be a task of the results", task, sentence=sentence)
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
    by_number = {run.trial: run for run in runs}
    if number not in by_number:
        known = listed([str(number) for number in sorted(by_number)], 12)
        raise ArgumentError(side, f"must be the number of a trial: {known}", number)
    return by_number[number]


def _first_failing(runs: Sequence[ExplainedRun], task: str) -> ExplainedRun:
    failing = [run for run in runs if not run.passed and run.transcript is not None]
    if not failing and any(not run.passed for run in runs):
        raise InputError(f"no failed trial of task {task} has a transcript to compare")
    if not failing:
        raise InputError(f"no trial of task {task} failed: name the two trials to compare")
    return min(failing, key=lambda run: run.trial)


def _nearest(failing: ExplainedRun, runs: Iterable[ExplainedRun]) -> ExplainedRun:
    passing = [r for r in runs if r.passed and r.transcript is not None and r is not failing]
    if not passing:
        raise InputError(
            f"no other trial of task {failing.task} passed: name the trial to compare with"
        )
    tools = frozenset(tool for run in (failing, *passing) for tool in run.tools)
    return nearest_passing(failing, passing, tools)


def _aligned(left: Sequence[NormalizedCall], right: Sequence[NormalizedCall]) -> list[AlignedCalls]:
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


def _best_scores(
    left: Sequence[NormalizedCall], right: Sequence[NormalizedCall]
) -> list[list[int]]:
    """The best score that the calls from (i, j) on can reach."""
    best = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        here, below = best[i], best[i + 1]
        for j in range(len(right) - 1, -1, -1):
            score = _score(left[i], right[j])
            apart = below[j] if below[j] > here[j + 1] else here[j + 1]
            here[j] = max(apart, score + below[j + 1]) if score else apart
    return best


def _score(call: NormalizedCall, other: NormalizedCall) -> int:
    if call.tool != other.tool:
        return 0
    return _SAME if call.key == other.key else _SAME_TOOL


def _pair(left: NormalizedCall, right: NormalizedCall) -> AlignedCalls:
    relation: Relation = "other arguments"
    if left.key == right.key:
        alike = (left.error, left.empty) == (right.error, right.empty)
        relation = "same" if alike else "other result"
    return AlignedCalls(
        left=left, right=right, relation=relation, arguments=differing_arguments(left, right)
    )


def _alone(call: NormalizedCall, relation: Literal["left only", "right only"]) -> AlignedCalls:
    here = relation == "left only"
    left, right = (call, None) if here else (None, call)
    return AlignedCalls(left=left, right=right, relation=relation)


# Where a failing run first differs from the nearest passing run of its task.

Kind = Literal["extra call", "other argument", "call missing", "no difference"]

MOST_DISAGREEMENT = 0.2
"""A tool counts if passing runs differ in it at most this many times as often as failing ones."""

FEWEST_TASKS = 2
"""In fewer tasks with differing calls, the name of a tool decides whether it counts."""

LOOKING = ("get", "list", "search", "find", "read", "check", "calculate", "think")
"""Names of tools that only look begin with these: runs may differ in them and all be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first difference of a failing run from its nearest passing run.

    `call` is the failing run's call and `passing_call` the passing run's; either may be missing.
    `arguments` are the names in which the two differ.
    """

    run: ExplainedRun
    passing: ExplainedRun
    kind: Kind
    tool: str = ""
    call: NormalizedCall | None = None
    passing_call: NormalizedCall | None = None
    arguments: tuple[str, ...] = ()


def divergences(compared: ComparedRuns) -> tuple[Divergence, ...]:
    """The first difference of every failing run of a task that also passed."""
    counting = counting_tools(compared)
    differences = []
    for rows in compared.blocks():
        here = compared.runs[rows]
        passing = [run for run in here if run.passed]
        for run in here:
            if run.failed:
                nearest = nearest_passing(run, passing, counting)
                differences.append(first_difference(run, nearest, counting))
    return tuple(differences)


def counting_tools(compared: ComparedRuns) -> frozenset[str]:
    """The tools whose calls matter: passing runs agree on them, or their names say that they act.

    >>> from passhat.analysis.explaining.runs import compared_runs
    >>> sorted(counting_tools(compared_runs([])))
    []
    """
    shares: dict[str, list[tuple[float, float]]] = defaultdict(list)
    tools = {call.tool for run in compared.runs for call in run.calls}
    for rows in compared.blocks():
        here = compared.runs[rows]
        if sum(run.passed for run in here) < FEWEST_PASSES:
            continue
        for tool in {call.tool for run in here for call in run.calls}:
            passing, crossed = _differing_shares(here, tool)
            if passing or crossed:
                shares[tool].append((passing, crossed))
    return frozenset(tool for tool in tools if _counts(tool, shares[tool]))


def nearest_passing(
    run: ExplainedRun, passing: Sequence[ExplainedRun], counting: frozenset[str]
) -> ExplainedRun:
    """The passing run with the most counting calls in common, by Jaccard's index over multisets.

    Of several, the one that is nearest in all its calls.
    """
    mine, every = _calls_of(run, counting), Counter(call.key for call in run.calls)

    def likeness(other: ExplainedRun) -> tuple[float, float]:
        theirs = _calls_of(other, counting)
        return _jaccard(mine, theirs), _jaccard(every, Counter(call.key for call in other.calls))

    return max(passing, key=likeness)


def first_difference(
    run: ExplainedRun, passing: ExplainedRun, counting: frozenset[str]
) -> Divergence:
    """The first call of `run` that `passing` lacks, or else the first that it lacks itself."""
    mine = [call for call in run.calls if call.worked and call.tool in counting]
    theirs = [call for call in passing.calls if call.worked and call.tool in counting]
    lacking = _beyond(theirs, mine)
    for call in _beyond(mine, theirs):
        other = next((c for c in lacking if c.tool == call.tool), None)
        return Divergence(
            run=run,
            passing=passing,
            kind="extra call" if other is None else "other argument",
            tool=call.tool,
            call=call,
            passing_call=other,
            arguments=differing_arguments(call, other) if other else (),
        )
    if lacking:
        return Divergence(
            run=run,
            passing=passing,
            kind="call missing",
            tool=lacking[0].tool,
            passing_call=lacking[0],
        )
    return Divergence(run=run, passing=passing, kind="no difference")


def differing_arguments(call: NormalizedCall, other: NormalizedCall) -> tuple[str, ...]:
    """The names of the arguments in which two calls differ."""
    names = sorted({*call.arguments, *other.arguments})
    return tuple(name for name in names if call.arguments.get(name) != other.arguments.get(name))


def _differing_shares(runs: Sequence[ExplainedRun], tool: str) -> tuple[float, float]:
    """Shares of passing pairs, and of passing-failing pairs, that differ in a tool's calls."""
    passing, failing = (
        Counter(tool_calls(run, tool) for run in runs if run.passed is wanted)
        for wanted in (True, False)
    )
    passes, fails = passing.total(), failing.total()
    alike = sum(count * (count - 1) for count in passing.values())
    crossed = sum(count * failing[value] for value, count in passing.items())
    return 1 - alike / (passes * (passes - 1)), 1 - crossed / (passes * fails)


def _counts(tool: str, shares: Sequence[tuple[float, float]]) -> bool:
    if len(shares) < FEWEST_TASKS:
        return not tool.lower().startswith(LOOKING)
    passing = sum(share for share, _ in shares)
    return passing <= MOST_DISAGREEMENT * sum(share for _, share in shares)


def _calls_of(run: ExplainedRun, counting: frozenset[str]) -> Counter[str]:
    return Counter(call.key for call in run.calls if call.worked and call.tool in counting)


def _jaccard(first: Counter[str], other: Counter[str]) -> float:
    """Shared over all, of two multisets (Jaccard 1912); two empty ones are alike."""
    every = (first | other).total()
    return (first & other).total() / every if every else 1.0


def _beyond(
    calls: Sequence[NormalizedCall], others: Sequence[NormalizedCall]
) -> list[NormalizedCall]:
    """The calls that are made more often here than there, in order."""
    left = Counter(call.key for call in others)
    extra = []
    for call in calls:
        if left[call.key]:
            left[call.key] -= 1
        else:
            extra.append(call)
    return extra


# Tools in whose calls passing runs agree and failing runs differ from them.

FEWEST_PASSES = 2
"""With fewer passing runs of a task there is no saying what they agree on."""

Value = tuple[str, ...]
"""The successful calls of one tool in one run, in alphabetical order: a multiset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDisagreement:
    """A tool whose calls failing runs make differently, over the tasks in which they differ.

    `failing` of `failing_of` failing runs made calls of the tool that no passing run of their task
    made, and `passing` of `passing_of` passing runs calls that no other passing run made. `more`,
    `fewer` and `other` divide the failing ones by how they differ from the nearest passing run:
    calls added, left out, or replaced, which then differ in these `arguments`.
    """

    tool: str
    p: float
    failing: int
    failing_of: int
    passing: int
    passing_of: int
    tasks: int
    more: int
    fewer: int
    other: int
    arguments: tuple[str, ...]
    runs: tuple[ExplainedRun, ...]


def departures(compared: ComparedRuns, shuffled: NDArray[np.bool_]) -> tuple[ToolDisagreement, ...]:
    """Every tool that was called, the smallest p first; p is adjusted for all of them.

    `shuffled` are the outcomes (True for failing), first as observed and then shuffled inside the
    tasks. A tool's statistic is the sum over tasks of how much more often its calls differ between
    a passing and a failing run than between two passing ones, in units of its spread.
    """
    tools = sorted({call.tool for run in compared.runs for call in run.calls})
    values = {tool: [tool_calls(run, tool) for run in compared.runs] for tool in tools}
    kept = [b for b in compared.blocks() if (~compared.failed[b]).sum() >= FEWEST_PASSES]
    statistics = _statistics(list(values.values()), kept, shuffled)
    varying = np.flatnonzero(np.ptp(statistics, axis=0) > 0) if values else np.array([], int)
    if not varying.size:
        return ()
    p = step_down_p(standardised(statistics[:, varying]))
    disagreements = [
        _departure(compared, tools[i], values[tools[i]], kept, float(p[place]))
        for place, i in enumerate(varying.tolist())
    ]
    return tuple(sorted(disagreements, key=lambda d: (d.p, -d.failing, d.tool)))


def tool_calls(run: ExplainedRun, tool: str) -> Value:
    """The successful calls of a tool in a run."""
    return tuple(sorted(call.key for call in run.calls if call.tool == tool and call.worked))


def _statistics(
    values: Sequence[Sequence[Value]], blocks: Sequence[slice], shuffled: NDArray[np.bool_]
) -> Floats:
    """One row for each shuffle, one column for each tool."""
    total = np.zeros((len(shuffled), len(values)))
    for rows in blocks:
        passing = ~shuffled[:, rows]
        for column, of_tool in enumerate(values):
            codes = _codes(of_tool[rows])
            if codes.max():
                total[:, column] += _disagreement(codes, passing)
    return total


def _codes(values: Sequence[Value]) -> Counts:
    numbers: dict[Value, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def _disagreement(codes: Counts, passing: NDArray[np.bool_]) -> Floats:
    """Share of passing-failing pairs that differ, minus that of passing pairs, for each row.

    Pairs that agree are counted by value: of c passing runs with the same value, c(c - 1) ordered
    pairs agree, and with f failing ones of that value c f more.
    """
    passes = int(passing[0].sum())
    fails = codes.size - passes
    members = np.eye(int(codes.max()) + 1, dtype=np.float32)[codes]
    counts = passing.astype(np.float32) @ members
    failing = members.sum(axis=0) - counts
    alike_passing = ((counts * (counts - 1)).sum(axis=1)) / (passes * (passes - 1))
    alike_crossed = (counts * failing).sum(axis=1) / (passes * fails)
    return np.asarray(alike_passing - alike_crossed, dtype=np.float64)


def _departure(
    compared: ComparedRuns, tool: str, values: list[Value], blocks: Sequence[slice], p: float
) -> ToolDisagreement:
    failing: list[ExplainedRun] = []
    kinds, arguments = Counter[str](), Counter[str]()
    failing_of = passing = passing_of = tasks = 0
    for rows in blocks:
        here = values[rows]
        if len(set(here)) == 1:
            continue  # the tool's calls do not differ here: counting would blur the contrast
        failed = compared.failed[rows].tolist()
        good = [value for value, bad in zip(here, failed, strict=True) if not bad]
        tasks += 1
        failing_of += len(here) - len(good)
        passing_of += len(good)
        passing += sum(count == 1 for count in Counter(good).values()) * (len(good) > 1)
        for i, bad in enumerate(failed):
            if bad and here[i] not in good:
                kind, names = _difference(tool, here[i], good)
                kinds[kind] += 1
                arguments.update(sorted(names))
                failing.append(compared.runs[rows.start + i])
    return ToolDisagreement(
        tool=tool,
        p=p,
        failing=len(failing),
        failing_of=failing_of,
        passing=passing,
        passing_of=passing_of,
        tasks=tasks,
        more=kinds["more"],
        fewer=kinds["fewer"],
        other=kinds["other"],
        arguments=tuple(name for name, _ in arguments.most_common()),
        runs=tuple(failing),
    )


def _difference(tool: str, value: Value, passing: Sequence[Value]) -> tuple[str, set[str]]:
    """Whether calls were added, left out or replaced, against the most similar passing value.

    Of calls that were replaced, with the names of the arguments in which they differ.
    """
    mine = Counter(value)
    nearest = max(passing, key=lambda other: (mine & Counter(other)).total() * 2 - len(other))
    lacks, adds = Counter(nearest) - mine, mine - Counter(nearest)
    if not (lacks and adds):
        return "more" if adds else "fewer", set()
    pairs = zip(adds.elements(), lacks.elements(), strict=False)
    given = [[json.loads(key[len(tool) + 1 :]) for key in pair] for pair in pairs]
    return "other", {name for a, b in given for name in {*a, *b} if a.get(name) != b.get(name)}
