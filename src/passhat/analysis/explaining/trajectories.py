"""How alike the runs of a task are, what they repeat and mend, and what failing ones cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, zip_longest

import numpy as np

from passhat.analysis.explaining.run_diff import Divergence, align
from passhat.analysis.explaining.runs import COSTS, ExplainedRun, NormalizedCall, runs_by_task
from passhat.dataclass import result_dataclass
from passhat.stats.estimate import TASKS_LIKE_THESE, Estimate, Number, Unavailable
from passhat.stats.proportions import share_estimate
from passhat.stats.suite_mean import score_estimate
from passhat.stats.usage import MOST_COMPARED, path_likeness

MOST_CALLS = 100
"""Calls of each run that are set against each other."""

NOTHING = ""
"""The entry in a matrix of tools if no tool was expected, or none was chosen."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Trajectories:
    """The ways that runs took: how alike they are, what they repeated, what failing ones cost.

    `tools`, `order` and `path` are how alike two runs of a task are in which tools they call, in
    which order, and whether both take the very same path; `costs` how alike they are in what they
    take (the smaller over the larger). All lie in [0, 1], and none of them says how reliable an
    agent is: runs may differ and all be right.
    """

    tools: Number
    order: Number
    path: Number
    costs: Mapping[str, Number]
    behaviours: tuple[ObservedBehaviour, ...]
    splits: tuple[CostSplit, ...]
    matrix: ToolMatrix


@result_dataclass(frozen=True, slots=True, kw_only=True)
class ObservedBehaviour:
    """Something that runs do along the way, and how often runs pass that do it."""

    words: str
    runs: int
    runs_of: int
    passed: int
    share: Estimate
    pass_rate: Estimate


@result_dataclass(frozen=True, slots=True, kw_only=True)
class CostSplit:
    """What passing and failing runs take: the mean of each, and the share that failing ones had."""

    name: str
    passing: float | None
    failing: float | None
    failing_share: float
    runs: int


@result_dataclass(frozen=True, slots=True, kw_only=True)
class ToolMatrix:
    """Tools expected against tools chosen: how often each stood in the place of each.

    Expected is what the nearest passing run of the task called, unless `given` says that the
    suite names it.
    """

    counts: Mapping[tuple[str, str], int]
    given: bool

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that were ever mistaken, most often first."""
        wrong: Counter[str] = Counter()
        for (expected, chosen), count in self.counts.items():
            if expected != chosen:
                wrong[expected] += count
                wrong[chosen] += count
        del wrong[NOTHING]
        return tuple(
            tool for tool, _ in sorted(wrong.items(), key=lambda item: (-item[1], item[0]))
        )


def trajectories(
    runs: Sequence[ExplainedRun],
    diverged: Sequence[Divergence],
    *,
    confidence: float,
    expected: Mapping[str, str] | None = None,
) -> Trajectories:
    """The ways of all runs with a transcript; `expected` names the right tool of a task."""
    groups = runs_by_task(run for run in runs if run.transcript is not None)
    several = [group[:MOST_COMPARED] for group in groups if len(group) > 1]
    calling = any(run.calls for group in several for run in group)
    known_order = cache(path_likeness)  # many runs of a task take the same path

    def alike(measure: Callable[[ExplainedRun, ExplainedRun], float | None]) -> Number:
        return _mean_likeness(several, measure, confidence)

    def called_alike(measure: Callable[[ExplainedRun, ExplainedRun], float | None]) -> Number:
        return alike(measure) if calling else Unavailable("no trial calls a tool")

    def order(run: ExplainedRun, other: ExplainedRun) -> float:
        return known_order(*sorted((run.tools, other.tools)))

    spoken = [run for group in groups for run in group]
    return Trajectories(
        tools=called_alike(lambda first, other: _dice(set(first.tools), set(other.tools))),
        order=called_alike(order),
        path=called_alike(lambda first, other: float(first.tools == other.tools)),
        costs=_cost_likeness(several, alike),
        behaviours=_find_behaviours(spoken, confidence),
        splits=_cost_splits(runs),
        matrix=_expected_matrix(spoken, expected) if expected else _seen_matrix(diverged),
    )


def _find_behaviours(
    runs: Sequence[ExplainedRun], confidence: float
) -> tuple[ObservedBehaviour, ...]:
    """Repeats, errors, retries and recoveries, each where some run has it."""
    doing: tuple[tuple[str, Callable[[ExplainedRun], bool]], ...] = (
        ("made the same call twice", lambda run: len({c.key for c in run.calls}) < len(run.calls)),
        ("got an error from a tool", lambda run: any(not call.worked for call in run.calls)),
        ("called a tool again after its error", lambda run: any(_calls_after_error(run))),
        (
            "got a success after an error of the same tool",
            lambda run: any(call.worked for call in _calls_after_error(run)),
        ),
    )
    behaviours = []
    for words, does in doing:
        those = [run for run in runs if does(run)]
        if those:
            passed = sum(run.passed for run in those)
            behaviours.append(
                ObservedBehaviour(
                    words=words,
                    runs=len(those),
                    runs_of=len(runs),
                    passed=passed,
                    share=share_estimate(len(those), len(runs), confidence=confidence),
                    pass_rate=share_estimate(passed, len(those), confidence=confidence),
                )
            )
    return tuple(behaviours)


def _cost_splits(runs: Sequence[ExplainedRun]) -> tuple[CostSplit, ...]:
    """What passing and failing runs took, of each cost that the log has."""
    splits = []
    for name in COSTS:
        passing = [run.costs[name] for run in runs if run.passed and name in run.costs]
        failing = [run.costs[name] for run in runs if not run.passed and name in run.costs]
        total = sum(passing) + sum(failing)
        if total > 0:
            splits.append(
                CostSplit(
                    name=name,
                    passing=_mean(passing),
                    failing=_mean(failing),
                    failing_share=sum(failing) / total,
                    runs=len(passing) + len(failing),
                )
            )
    return tuple(splits)


def _seen_matrix(diverged: Sequence[Divergence]) -> ToolMatrix:
    """What failing runs called where the nearest passing run called something."""
    counts: Counter[tuple[str, str]] = Counter()
    for divergence in diverged:
        expected: list[str] = []
        chosen: list[str] = []
        for pair in align(divergence.passing.calls[:MOST_CALLS], divergence.run.calls[:MOST_CALLS]):
            if pair.left and pair.right:
                counts.update(zip_longest(expected, chosen, fillvalue=NOTHING))
                expected, chosen = [], []
                counts[pair.left.tool, pair.right.tool] += 1
            elif pair.left:
                expected.append(pair.left.tool)
            elif pair.right:
                chosen.append(pair.right.tool)
        counts.update(zip_longest(expected, chosen, fillvalue=NOTHING))
    return ToolMatrix(counts=dict(counts), given=False)


def _expected_matrix(runs: Sequence[ExplainedRun], expected: Mapping[str, str]) -> ToolMatrix:
    """The tool that the suite names against the first one called, or that one if it ever was."""
    counts: Counter[tuple[str, str]] = Counter()
    for run in runs:
        if (wanted := expected.get(run.task)) is not None:
            first = run.tools[0] if run.tools else NOTHING
            counts[wanted, wanted if wanted in run.tools else first] += 1
    return ToolMatrix(counts=dict(counts), given=True)


def _mean_likeness(
    groups: Sequence[Sequence[ExplainedRun]],
    measure: Callable[[ExplainedRun, ExplainedRun], float | None],
    confidence: float,
) -> Number:
    """The mean over tasks of the mean over pairs of runs."""
    means = []
    for group in groups:
        values = [measure(first, other) for first, other in combinations(group, 2)]
        known = [value for value in values if value is not None]
        if known:
            means.append(sum(known) / len(known))
    if not means:
        return Unavailable("no task has two trials with what it takes to compare them")
    of_tasks = np.array(means)
    mean = score_estimate(
        np.ones(of_tasks.size, dtype=np.int64),
        of_tasks,
        of_tasks**2,
        scope=TASKS_LIKE_THESE,
        method="t",  # likeness is nowhere near 0 or 1 task by task, as outcomes are
        confidence=confidence,
    )
    return replace(mean, runs=sum(map(len, groups))) if isinstance(mean, Estimate) else mean


def _dice(first: set[str], other: set[str]) -> float:
    """Shared over mean size (Dice 1945, Sorensen 1948); two runs without calls are alike."""
    size = len(first) + len(other)
    return 2 * len(first & other) / size if size else 1.0


def _cost_likeness(
    groups: Sequence[Sequence[ExplainedRun]],
    alike: Callable[[Callable[[ExplainedRun, ExplainedRun], float | None]], Number],
) -> dict[str, Number]:
    def measure(name: str) -> Callable[[ExplainedRun, ExplainedRun], float | None]:
        return lambda f, other: _smaller_over_larger(f.costs.get(name), other.costs.get(name))

    named = {name for group in groups for run in group for name in run.costs}
    return {name: alike(measure(name)) for name in COSTS if name in named}


def _smaller_over_larger(first: float | None, other: float | None) -> float | None:
    if first is None or other is None or min(first, other) < 0:
        return None
    return min(first, other) / max(first, other) if max(first, other) else 1.0


def _calls_after_error(run: ExplainedRun) -> Iterator[NormalizedCall]:
    """The calls of tools that had returned an error before."""
    broken: set[str] = set()
    for call in run.calls:
        if call.tool in broken:
            yield call
        if not call.worked:
            broken.add(call.tool)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
