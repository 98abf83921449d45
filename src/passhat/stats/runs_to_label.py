"""How many more runs would give a task its label at its current pass rate."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.fast_dataclass import dataclass
from passhat.stats import special
from passhat.stats.arguments import Counts, Floats
from passhat.stats.betabinomial import chance_above
from passhat.stats.cells import Cells, count_cells, task_counts
from passhat.stats.hyperposterior import prior_weights
from passhat.stats.labels import (
    BROKEN_BELOW,
    CERTAINTY,
    SOLID_ABOVE,
    UNDECIDED,
    earned_labels,
    excludes_both,
)

# Nobody plans to the single run, and each number tried takes time.
HORIZONS = np.array(
    (*range(1, 7), 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500, 1000, 10_000)
)
"""The numbers of further runs that are tried; a label beyond the last is not promised."""

# Priors times open cells at most, and the likeliest of them: the incomplete beta is slow. What
# they leave out moves few chances by more than the margin that a promise keeps from the border.
_EFFORT = 160
_COVERED = 0.98
_MARGIN = 0.005
# A promise takes priors with more of the weight than a label does, as few of them are looked at:
# with 0.93 it is kept for 99.7 % of the tasks that go on as they did, with 0.9 for 96.9 %.
_SHARE = 0.93


def runs_to_label(
    n: ArrayLike,
    c: ArrayLike,
    labels: NDArray[np.str_],
    *,
    broken_below: float = BROKEN_BELOW,
    solid_above: float = SOLID_ABOVE,
    certainty: float = CERTAINTY,
) -> Counts:
    """The further runs after which each task without a label has one; 0 where none promises it.

    Every such task is run that many times more and passes as often as it did. The priors are the
    ones that `label_tasks` weighs, weighed anew by those runs: left as they are now, they would
    have a suite of one or two tasks wait for several times too long.

    In 4,032 simulated suites of 1 to 40 tasks and 2 to 10 runs (bench/calibrate/labels.py), 92 %
    of the tasks that went on at the observed rate had a label within the runs promised, and 33 %
    of those that went on at their true one: one that looks clean after a few runs often is not.

    >>> from passhat.stats.labels import label_tasks
    >>> runs_to_label([60, 2], [60, 2], label_tasks([60, 2], [60, 2]).labels).tolist()
    [0, 20]
    """
    runs, passes = task_counts(n, c)
    open_ = (labels == UNDECIDED) & (runs > 0)
    needed = np.zeros(runs.size, dtype=np.int64)
    if open_.any():
        ahead = _look_ahead(count_cells(runs, passes).having(1), runs[open_], passes[open_])
        found = _first_settled(ahead, (broken_below, solid_above), certainty + _MARGIN)
        needed[open_] = found[ahead.cells.place(runs[open_], passes[open_])]
    return needed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ahead:
    """The open cells, the posterior of each under each prior, and every horizon's weights."""

    cells: Cells
    a: Floats
    b: Floats
    weights: Floats


def _look_ahead(every: Cells, runs: Counts, passes: Counts) -> _Ahead:
    cells = count_cells(runs, passes)
    priors = prior_weights(every).covering(_COVERED)
    priors = priors.heaviest(max(1, _EFFORT // cells.n.size))
    a, b = priors.a[:, None] + cells.c, priors.b[:, None] + cells.n - cells.c
    passed = HORIZONS[:, None, None] * (cells.c / cells.n)
    failed = HORIZONS[:, None, None] - passed
    # The marginal likelihood of the runs to come, over all open tasks at once.
    gained = special.betaln(a + passed, b + failed) - special.betaln(a, b)
    log = gained @ cells.tasks + np.log(priors.weight)
    weights = np.exp(log - log.max(axis=1, keepdims=True))
    return _Ahead(cells=cells, a=a, b=b, weights=weights / weights.sum(axis=1, keepdims=True))


def _first_settled(ahead: _Ahead, borders: tuple[float, float], certainty: float) -> Counts:
    """Halving: the posterior closes in on one rate, so what is settled stays so."""
    rate = ahead.cells.c / ahead.cells.n

    def settled(horizon: Counts) -> NDArray[np.bool_]:
        more = HORIZONS[horizon]
        a, b = ahead.a + rate * more, ahead.b + (1 - rate) * more
        weights = ahead.weights[horizon].T
        broken, solid = special.betainc(a, b, borders[0]), chance_above(a, b, borders[1])
        earned = earned_labels(weights, broken, solid, certainty, share=_SHARE)
        n, c = ahead.cells.n + more, ahead.cells.c + rate * more
        earned[1] &= excludes_both(n, c, *borders, 1 - certainty)
        return np.asarray(earned.any(axis=0))

    low = np.full(rate.size, -1)
    high = np.full(rate.size, HORIZONS.size - 1)
    never = ~settled(high)
    while (high - low > 1).any():
        middle = (low + high + 1) // 2  # of neighbours, the settled one: nothing moves
        enough = settled(middle)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(never, 0, HORIZONS[high])
