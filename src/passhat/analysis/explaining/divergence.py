"""Where a failing run first differs from the nearest passing run of its task."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Literal

from passhat.analysis.explaining.agreement import FEWEST_PASSES, tool_calls
from passhat.analysis.explaining.normal_calls import NormalCall
from passhat.analysis.explaining.runs import ComparedRuns, ExplainedRun
from passhat.dataclass import dataclass

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
    call: NormalCall | None = None
    passing_call: NormalCall | None = None
    arguments: tuple[str, ...] = ()


def divergences(compared: ComparedRuns) -> tuple[Divergence, ...]:
    """The first difference of every failing run of a task that also passed."""
    counting = counting_tools(compared)
    found = []
    for rows in compared.blocks():
        here = compared.runs[rows]
        passing = [run for run in here if run.passed]
        for run in here:
            if run.failed:
                nearest = nearest_passing(run, passing, counting)
                found.append(first_difference(run, nearest, counting))
    return tuple(found)


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
        other = next((one for one in lacking if one.tool == call.tool), None)
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


def differing_arguments(one: NormalCall, other: NormalCall) -> tuple[str, ...]:
    """The names of the arguments in which two calls differ."""
    names = sorted({*one.arguments, *other.arguments})
    return tuple(name for name in names if one.arguments.get(name) != other.arguments.get(name))


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


def _jaccard(one: Counter[str], other: Counter[str]) -> float:
    """Shared over all, of two multisets (Jaccard 1912); two empty ones are alike."""
    every = (one | other).total()
    return (one & other).total() / every if every else 1.0


def _beyond(calls: Sequence[NormalCall], others: Sequence[NormalCall]) -> list[NormalCall]:
    """The calls that are made more often here than there, in order."""
    left = Counter(call.key for call in others)
    found = []
    for call in calls:
        if left[call.key]:
            left[call.key] -= 1
        else:
            found.append(call)
    return found
