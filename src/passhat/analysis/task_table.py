"""The table of tasks: how often each passed, what it can be called, what would settle it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from passhat.analysis.evidence import Counts, Evidence, Floats
from passhat.analysis.report import LABELS, TaskTable
from passhat.records import Tally
from passhat.stats.betabinomial import fit_beta_binomial
from passhat.stats.labels import label_tasks
from passhat.stats.proportions import proportion_bounds

BROKEN_BELOW, SOLID_ABOVE, CERTAINTY = 0.1, 0.95, 0.9

MOST_RUNS = 10_000
"""A label that more runs than this would be needed for is not promised."""

_UNSETTLED = LABELS.index("too few runs")


def tabulate_tasks(
    tally: Tally, evidence: Evidence, sequences: tuple[str, ...] | None, *, confidence: float
) -> TaskTable:
    """All tasks of a system that have a run."""
    low, high = proportion_bounds(evidence.passes, evidence.runs, confidence=confidence)
    labels, chance = _labels(evidence.runs, evidence.passes)
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
        more_runs=_more_runs(evidence.runs, evidence.passes, labels == _UNSETTLED),
        sequences=None if sequences is None else tuple(sequences[i] for i in rows),
        confidence=confidence,
    )


def _labels(runs: Counts, passes: Counts) -> tuple[NDArray[np.int8], Floats]:
    if not runs.size:
        return np.zeros(0, dtype=np.int8), np.zeros(0)
    found = label_tasks(
        runs, passes, broken_below=BROKEN_BELOW, solid_above=SOLID_ABOVE, certainty=CERTAINTY
    )
    codes = np.select([found.labels == label for label in LABELS], range(len(LABELS)))
    chance = np.max((found.solid, found.flaky, found.broken), axis=0)
    return codes.astype(np.int8), chance


def _more_runs(runs: Counts, passes: Counts, open_: NDArray[np.bool_]) -> Counts:
    """For each task without a label, the runs that would give it one if it goes on as it did."""
    needed = np.zeros(runs.size, dtype=np.int64)
    if not open_.any():
        return needed
    width = int(runs.max()) + 1
    keys, cell = np.unique(runs[open_] * width + passes[open_], return_inverse=True)
    prior = fit_beta_binomial(runs, passes)
    counts = (divmod(key, width) for key in keys.tolist())
    needed[open_] = np.array([_runs_to_label(n, c, prior.a, prior.b) for n, c in counts])[cell]
    return needed


def _runs_to_label(n: int, c: int, a: float, b: float) -> int:
    """The number of further runs at the expected rate that settles it; 0 if none does.

    Doubling, then halving: the posterior closes in on one rate, so what is settled stays so.
    """
    rate = (a + c) / (a + b + n)

    def settled(more: int) -> bool:
        above, below = a + c + rate * more, b + n - c + (1 - rate) * more
        broken = float(special.betainc(above, below, BROKEN_BELOW))
        solid = float(special.betaincc(above, below, SOLID_ABOVE))
        return max(broken, solid, 1 - broken - solid) >= CERTAINTY

    low, high = 0, 1
    while not settled(high):
        low, high = high, 2 * high
        if low >= MOST_RUNS:
            return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high
