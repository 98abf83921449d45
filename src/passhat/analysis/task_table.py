"""The table of tasks: how often each passed, what it can be called, what would settle it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from passhat.analysis.evidence import Counts, Evidence, Floats
from passhat.analysis.report import LABELS, TaskTable
from passhat.records import Tally
from passhat.stats.betabinomial import BetaPrior, chance_above, fit_beta_binomial
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
    needed[open_] = _runs_to_label(*np.divmod(keys, width), fit_beta_binomial(runs, passes))[cell]
    return needed


def _runs_to_label(n: Counts, c: Counts, prior: BetaPrior) -> Counts:
    """The number of further runs at the expected rate that settles each; 0 if none does.

    Doubling, then halving: the posterior closes in on one rate, so what is settled stays so.
    """
    rate = (prior.a + c) / (prior.a + prior.b + n)

    def settled(more: Counts) -> NDArray[np.bool_]:
        above, below = prior.a + c + rate * more, prior.b + n - c + (1 - rate) * more
        broken = special.betainc(above, below, BROKEN_BELOW)
        solid = chance_above(above, below, SOLID_ABOVE)
        return np.maximum(np.maximum(broken, solid), 1 - broken - solid) >= CERTAINTY

    low, high = np.zeros_like(n), np.ones_like(n)
    while (searching := ~settled(high) & (low < MOST_RUNS)).any():
        low, high = np.where(searching, high, low), np.where(searching, 2 * high, high)
    never = low >= MOST_RUNS
    while (high - low > 1).any():
        middle = (low + high + 1) // 2  # of neighbours, the settled one: nothing moves
        enough = settled(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(never, 0, high)
