"""Tools expected against tools chosen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from passhat.analysis.explaining.divergence import Divergence
from passhat.analysis.explaining.runs import ExplainedRun
from passhat.analysis.explaining.side_by_side import align
from passhat.messages import repr_fields

MOST_CALLS = 100
"""Calls of each run that are set against each other."""

NOTHING = ""
"""What stands in a matrix of tools where no tool was expected, or none was chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMatrix:
    """Tools expected against tools chosen: how often each stood in the place of each.

    Expected is what the nearest passing run of the task called, unless `given` says that the
    suite names it.
    """

    counts: Mapping[tuple[str, str], int]
    given: bool

    __repr__ = repr_fields

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools that were ever mistaken, most often first."""
        wrong: Counter[str] = Counter()
        for (expected, chosen), count in self.counts.items():
            if expected != chosen:
                wrong[expected] += count
                wrong[chosen] += count
        del wrong[NOTHING]
        return tuple(tool for tool, _ in sorted(wrong.items(), key=lambda one: (-one[1], one[0])))


def seen_matrix(found: Sequence[Divergence]) -> ToolMatrix:
    """What failing runs called where the nearest passing run called something."""
    counts: Counter[tuple[str, str]] = Counter()
    for one in found:
        expected: list[str] = []
        chosen: list[str] = []
        for pair in align(one.passing.calls[:MOST_CALLS], one.run.calls[:MOST_CALLS]):
            if pair.left and pair.right:
                counts.update(_replaced(expected, chosen))
                expected, chosen = [], []
                counts[pair.left.tool, pair.right.tool] += 1
            elif pair.left:
                expected.append(pair.left.tool)
            elif pair.right:
                chosen.append(pair.right.tool)
        counts.update(_replaced(expected, chosen))
    return ToolMatrix(counts=dict(counts), given=False)


def expected_matrix(runs: Sequence[ExplainedRun], expected: Mapping[str, str]) -> ToolMatrix:
    """The tool that the suite names against the first one called, or that one if it ever was."""
    counts: Counter[tuple[str, str]] = Counter()
    for run in runs:
        if (wanted := expected.get(run.task)) is not None:
            first = run.tools[0] if run.tools else NOTHING
            counts[wanted, wanted if wanted in run.tools else first] += 1
    return ToolMatrix(counts=dict(counts), given=True)


def _replaced(expected: Sequence[str], chosen: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Calls of a stretch without a common one, each beside the one in its place."""
    for i in range(max(len(expected), len(chosen))):
        yield (
            expected[i] if i < len(expected) else NOTHING,
            chosen[i] if i < len(chosen) else NOTHING,
        )
