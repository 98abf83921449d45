"""What runs repeat and mend along the way, and what failing ones cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from passhat.analysis.explaining.runs import COSTS, ExplainedRun
from passhat.messages import repr_fields
from passhat.stats.estimate import Estimate
from passhat.stats.proportions import share_estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedBehaviour:
    """Something that runs do along the way, and how often runs pass that do it."""

    words: str
    runs: int
    runs_of: int
    passed: int
    share: Estimate
    pass_rate: Estimate

    __repr__ = repr_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSplit:
    """What passing and failing runs take: the mean of each, and the share that failing ones had."""

    name: str
    passing: float | None
    failing: float | None
    failing_share: float
    runs: int

    __repr__ = repr_fields


def find_behaviours(
    runs: Sequence[ExplainedRun], confidence: float
) -> tuple[ObservedBehaviour, ...]:
    """Repeats, errors, retries and recoveries, each where some run has it."""
    doing: tuple[tuple[str, Callable[[ExplainedRun], bool]], ...] = (
        ("made the same call twice", _repeats),
        ("got an error from a tool", lambda run: any(not call.worked for call in run.calls)),
        ("called a tool again after its error", lambda run: bool(_retried(run))),
        ("got a success after an error of the same tool", lambda run: bool(_mended(run))),
    )
    found = []
    for words, does in doing:
        those = [run for run in runs if does(run)]
        if those:
            passed = sum(run.passed for run in those)
            found.append(
                ObservedBehaviour(
                    words=words,
                    runs=len(those),
                    runs_of=len(runs),
                    passed=passed,
                    share=share_estimate(len(those), len(runs), confidence=confidence),
                    pass_rate=share_estimate(passed, len(those), confidence=confidence),
                )
            )
    return tuple(found)


def cost_splits(runs: Sequence[ExplainedRun]) -> tuple[CostSplit, ...]:
    """What passing and failing runs took, of each cost that the log has."""
    found = []
    for name in COSTS:
        passing = [run.costs[name] for run in runs if run.passed and name in run.costs]
        failing = [run.costs[name] for run in runs if not run.passed and name in run.costs]
        total = sum(passing) + sum(failing)
        if total > 0:
            found.append(
                CostSplit(
                    name=name,
                    passing=_mean(passing),
                    failing=_mean(failing),
                    failing_share=sum(failing) / total,
                    runs=len(passing) + len(failing),
                )
            )
    return tuple(found)


def _repeats(run: ExplainedRun) -> bool:
    return len({call.key for call in run.calls}) < len(run.calls)


def _retried(run: ExplainedRun) -> set[str]:
    """Tools that were called again after an error."""
    broken: set[str] = set()
    again: set[str] = set()
    for call in run.calls:
        if call.tool in broken:
            again.add(call.tool)
        if not call.worked:
            broken.add(call.tool)
    return again


def _mended(run: ExplainedRun) -> set[str]:
    """Tools that worked after an error."""
    broken: set[str] = set()
    mended: set[str] = set()
    for call in run.calls:
        if not call.worked:
            broken.add(call.tool)
        elif call.tool in broken:
            mended.add(call.tool)
    return mended


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
