"""The table of tasks: how often each passed, what it can be called, what would settle it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from passhat.analysis.evidence import Counts, Evidence, Floats
from passhat.analysis.report import LABELS, TaskTable
from passhat.records import Tally
from passhat.stats.labels import label_tasks
from passhat.stats.proportions import proportion_bounds
from passhat.stats.runs_to_label import runs_to_label

BROKEN_BELOW, SOLID_ABOVE, CERTAINTY = 0.1, 0.95, 0.9


def tabulate_tasks(
    tally: Tally, evidence: Evidence, sequences: tuple[str, ...] | None, *, confidence: float
) -> TaskTable:
    """All tasks of a system that have a run."""
    low, high = proportion_bounds(evidence.passes, evidence.runs, confidence=confidence)
    labels, chance, more_runs = _labels(evidence.runs, evidence.passes)
    rows = evidence.rows
    return TaskTable(
        names=evidence.tasks,
        passed=evidence.passes,
        failed=tally.failed[rows],
        errored=tally.errored[rows],
        runs=evidence.runs,
        rate=evidence.passes / evidence.runs,
        low=low,
        high=high,
        mean_score=evidence.score_total / evidence.runs,
        labels=labels,
        chance=chance,
        more_runs=more_runs,
        sequences=None if sequences is None else tuple(sequences[i] for i in rows),
        confidence=confidence,
    )


def _labels(runs: Counts, passes: Counts) -> tuple[NDArray[np.int8], Floats, Counts]:
    """Each task's label, the chance of it, and the runs that would give it one if it has none."""
    if not runs.size:
        return np.zeros(0, dtype=np.int8), np.zeros(0), np.zeros(0, dtype=np.int64)
    rule = {"broken_below": BROKEN_BELOW, "solid_above": SOLID_ABOVE, "certainty": CERTAINTY}
    found = label_tasks(runs, passes, **rule)
    codes = np.select([found.labels == label for label in LABELS], range(len(LABELS)))
    chance = np.max((found.solid, found.flaky, found.broken), axis=0)
    return codes.astype(np.int8), chance, runs_to_label(runs, passes, found.labels, **rule)
