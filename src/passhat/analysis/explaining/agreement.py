"""Tools in whose calls passing runs agree and failing runs differ from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.explaining.runs import ComparedRuns, ExplainedRun
from passhat.dataclass import dataclass
from passhat.stats.arguments import Counts, Floats
from passhat.stats.multiple_testing import standardised, step_down_p

FEWEST_PASSES = 2
"""With fewer passing runs of a task there is no saying what they agree on."""

Value = tuple[str, ...]
"""The successful calls of one tool in one run, in alphabetical order: a multiset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """A tool whose calls failing runs make differently, over the tasks in which they differ.

    `failing` of `failing_of` failing runs made calls of the tool that no passing run of their task
    made, and `passing` of `passing_of` passing runs calls that no other passing run made. `more`,
    `fewer` and `other` divide the failing ones by how they differ from the nearest passing run:
    calls added, left out, or replaced.
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
    runs: tuple[ExplainedRun, ...]


def departures(compared: ComparedRuns, shuffled: NDArray[np.bool_]) -> tuple[Departure, ...]:
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
    found = [
        _departure(compared, tools[i], values[tools[i]], kept, float(p[place]))
        for place, i in enumerate(varying.tolist())
    ]
    return tuple(sorted(found, key=lambda one: (one.p, -one.failing, one.tool)))


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
) -> Departure:
    failing: list[tuple[ExplainedRun, str]] = []
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
        failing += [
            (compared.runs[rows.start + i], _kind(here[i], good))
            for i, bad in enumerate(failed)
            if bad and here[i] not in good
        ]
    kinds = Counter(kind for _, kind in failing)
    return Departure(
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
        runs=tuple(run for run, _ in failing),
    )


def _kind(value: Value, passing: Sequence[Value]) -> str:
    """Whether calls were added, left out or replaced, against the most similar passing value."""
    mine = Counter(value)
    nearest = max(passing, key=lambda other: (mine & Counter(other)).total() * 2 - len(other))
    lacks, adds = Counter(nearest) - mine, mine - Counter(nearest)
    return "other" if lacks and adds else "more" if adds else "fewer"
