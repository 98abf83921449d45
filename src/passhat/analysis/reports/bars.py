"""Which tasks clear the bar set for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from passhat.analysis.reports.evidence import Evidence
from passhat.analysis.reports.parts import BarCount
from passhat.arguments import probability
from passhat.errors import ArgumentError
from passhat.messages import typo_hint
from passhat.stats.task_labels import bars_cleared

Bars = Mapping[str, float] | float | None


def checked_bars(bars: Bars, tasks: Iterable[str]) -> Bars:
    """The bars, each a share in [0, 1] for a task that some system ran."""
    if bars is None:
        return None
    if not isinstance(bars, Mapping):
        return probability("bars", bars)
    known = list(tasks)
    if unknown := set(bars) - set(known):
        wrong = min(unknown)
        raise ArgumentError(
            "bars", f"must name tasks that were run{typo_hint(wrong, known)}", wrong
        )
    return {task: probability(f"bar of {task!r}", bar) for task, bar in bars.items()}


def count_bars(
    evidence: Evidence, ks: Sequence[int], bars: Bars, *, confidence: float
) -> tuple[BarCount, ...]:
    """For each k, the tasks certified above and below their bar, and those that are neither.

    Tasks without a bar are left out, and bars of tasks that this system did not run.
    """
    if bars is None or not evidence.tasks:
        return ()
    if not isinstance(bars, Mapping):
        own, one = dict.fromkeys(evidence.tasks, bars), bars
    else:
        ran = set(evidence.tasks)
        own, one = {name: bar for name, bar in bars.items() if name in ran}, None
        evidence = evidence.only([name for name in evidence.tasks if name in own])
    return tuple(_count(evidence, own, k, one, confidence) for k in ks)


def _count(
    evidence: Evidence, bars: dict[str, float], k: int, bar: float | None, confidence: float
) -> BarCount:
    found = bars_cleared(
        evidence.runs,
        evidence.passes,
        k=k,
        bars=[bars[name] for name in evidence.tasks],
        confidence=confidence,
    )

    def named(verdict: str) -> tuple[str, ...]:
        return tuple(evidence.tasks[i] for i in np.flatnonzero(found.verdicts == verdict).tolist())

    return BarCount(
        k=k,
        bar=bar,
        bars=bars,
        above=named("above"),
        below=named("below"),
        undetermined=named("undetermined"),
        model_share=found.model_share,
    )
