"""Which tasks clear the bar set for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from passhat.analysis.reports.evidence import Evidence
from passhat.analysis.reports.parts import BarCount
from passhat.errors import ArgumentError
from passhat.stats.arguments import probability
from passhat.stats.bars import bars_cleared

Bars = Mapping[str, float] | float | None


def checked_bars(bars: Bars, tasks: Iterable[str]) -> Bars:
    """The bars, each a share in [0, 1] for a task that some system ran."""
    if bars is None:
        return None
    if not isinstance(bars, Mapping):
        return probability("bars", bars)
    if unknown := set(bars) - set(tasks):
        raise ArgumentError("bars", "must name tasks that were run", min(unknown))
    return {task: probability(f"bar of {task!r}", bar) for task, bar in bars.items()}


def count_bars(
    evidence: Evidence, ks: Sequence[int], bars: Bars, *, confidence: float
) -> tuple[BarCount, ...]:
    """For each k, the tasks certified above and below their bar, and those that are neither.

    Tasks without a bar are left out, and bars of tasks that this system did not run.
    """
    if bars is None or not evidence.tasks:
        return ()
    chosen = _bar_of_each(evidence, bars)
    one = None if isinstance(bars, Mapping) else bars
    return tuple(_count(evidence, chosen, k, one=one, confidence=confidence) for k in ks)


def _bar_of_each(evidence: Evidence, bars: Mapping[str, float] | float) -> dict[str, float]:
    if not isinstance(bars, Mapping):
        return dict.fromkeys(evidence.tasks, bars)
    return {name: bar for name, bar in bars.items() if name in evidence.tasks}


def _count(
    evidence: Evidence, bars: Mapping[str, float], k: int, *, one: float | None, confidence: float
) -> BarCount:
    rows = np.array([i for i, name in enumerate(evidence.tasks) if name in bars], dtype=np.intp)
    names = [evidence.tasks[i] for i in rows]
    found = bars_cleared(
        evidence.runs[rows],
        evidence.passes[rows],
        k=k,
        bars=[bars[name] for name in names],
        confidence=confidence,
    )

    def named(verdict: str) -> tuple[str, ...]:
        return tuple(names[i] for i in np.flatnonzero(found.verdicts == verdict).tolist())

    return BarCount(
        k=k,
        bar=one,
        bars=dict(bars),
        above=named("above"),
        below=named("below"),
        undetermined=named("undetermined"),
        model_share=found.model_share,
    )
