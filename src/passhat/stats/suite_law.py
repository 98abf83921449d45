"""Coherent bounds for the mean pass^k of the very tasks that were run: only runs are random.

Each task's pass^k gets a law that moves to the right with every pass (task_laws), the laws are
added up, and a low quantile of the mean bounds it from below. What no count can show, a failure
that did not happen yet, multiplies the mean by the law of runs without one. All parts move one
way with a pass, so a failure never improves a bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells, remembered
from passhat.stats.cumulant_sums import sum_of_long_tasks
from passhat.stats.few_runs import few_runs_quantile
from passhat.stats.lattice_sums import TABLED_RUNS, sum_of_tasks
from passhat.stats.passk import shares_of_passing_subsets
from passhat.stats.proportions import Bounds
from passhat.stats.shrunk_law import ShrunkLaw
from passhat.stats.sum_law import SumLaw
from passhat.stats.task_laws import lattice_steps

# One pass more than was seen, and half of one to be safe: how high the rate of a task may lie
# that did not pass every time, for what a further pass of it would add to pass^k.
_UNSEEN_PASSES = 1.5


def suite_bounds(cells: Cells, ks: Sequence[int], confidence: Floats | float) -> Bounds:
    """The intervals for the mean pass^k of these tasks, k along the last axis.

    Every task has at least k runs, for every k. `confidence` may differ from suite to suite: it
    is broadcast against the result.
    """
    tail = (1 - confidence) / 2
    helpers = sorted({*ks, *(_helper(cells, k) for k in ks)} - {0})
    low, high = _own_bounds(cells, helpers, tail)
    for place, k in enumerate(helpers):
        j = _helper(cells, k)
        if j:
            # Tasks with too few runs to show the spread of p^k show that of p^j, and by Jensen
            # (mean p^j)^(k/j) <= mean p^k <= mean p^j.
            lower, upper = (ends[..., helpers.index(j)] for ends in (low, high))
            low[..., place] = np.maximum(low[..., place], lower ** (k / j))
            high[..., place] = np.minimum(high[..., place], upper)
    values = shares_of_passing_subsets(cells.n, cells.c, ks)
    means = cells.tasks @ values.T / cells.task_count[..., None]
    asked = [helpers.index(k) for k in ks]
    return np.minimum(low[..., asked], means), np.maximum(high[..., asked], means)


def _helper(cells: Cells, k: int) -> int:
    """The largest j for which every task has 2j runs, if it has not 2k; 0 for none."""
    fewest = int(cells.n.min())
    return fewest // 2 if fewest < 2 * k else 0


def _own_bounds(cells: Cells, ks: Sequence[int], tail: Floats | float) -> Bounds:
    low, high = (np.empty((*cells.tasks.shape[:-1], len(ks))) for _ in range(2))
    fewest, most = cells.n.min(), cells.n.max()
    kinds = [0 if fewest >= 2 * k else 1 if most < 2 * k else 2 for k in ks]
    for kind, bounds in enumerate((_bounds_of_laws, _bounds_together, _bounds_of_both)):
        places = [place for place, one in enumerate(kinds) if one == kind]
        if places:
            found = bounds(cells, [ks[place] for place in places], tail)
            low[..., places], high[..., places] = found
    return low, high


def _bounds_of_both(cells: Cells, ks: Sequence[int], tail: Floats | float) -> Bounds:
    """Some tasks have fewer than 2k runs: such have no law of their own, but one together.

    Tasks with more runs may join them, or be bounded by their laws, each part at the same level:
    the better of the two bounds is taken.
    """
    low, high = _bounds_together(cells, ks, tail)
    for place, k in enumerate(ks):
        short = cells.n < 2 * k
        rest, these = (_taken(cells, kept) for kept in (~short, short))
        ends = _bounds_of_laws(rest, (k,), tail), _bounds_together(these, (k,), tail)
        share = these.task_count / cells.task_count
        lower, upper = (
            (1 - share) * one[..., 0] + share * other[..., 0]
            for one, other in zip(*ends, strict=True)
        )
        low[..., place] = np.maximum(low[..., place], lower)
        high[..., place] = np.minimum(high[..., place], upper)
    return low, high


def _bounds_together(cells: Cells, ks: Sequence[int], tail: Floats | float) -> Bounds:
    """Tasks with fewer than 2k runs, each k along the last axis."""
    values = shares_of_passing_subsets(cells.n, cells.c, ks)
    tasks = cells.tasks[..., None, :]
    mean = (tasks * values).sum(axis=-1) / cells.task_count[..., None]
    runs = np.minimum(cells.n, 2 * np.array(ks)[:, None] - 1)
    weight = (runs / (2 * np.array(ks)[:, None] - runs)).min(axis=-1)
    # Both ends at once: the upper is the lower of what is missing to 1.
    sides = np.stack((values, 1 - values)).reshape(2, *(1,) * (cells.tasks.ndim - 1), *values.shape)
    found = few_runs_quantile(sides, tasks, weight, tail)
    fewer, more = _unseen_groups(cells, ks)
    with np.errstate(divide="ignore"):
        low = np.minimum(found[0], mean * tail ** (1 / fewer))
        high = np.maximum(1 - found[1], 1 - (1 - mean) * tail ** (1 / more))
    return low, high


def _bounds_of_laws(cells: Cells, ks: Sequence[int], tail: Floats | float) -> Bounds:
    """Every task has at least 2k runs: the sum of their laws, and a failure not yet seen."""
    low, high = (np.empty((*cells.tasks.shape[:-1], len(ks))) for _ in range(2))
    for places, law in _laws_of_means(cells, tuple(ks)):
        found = law.quantile(tail)
        low[..., places], high[..., places] = found[0], 1 - found[1]
    return low, high


@remembered
def _laws_of_means(cells: Cells, ks: tuple[int, ...]) -> list[tuple[list[int], ShrunkLaw]]:
    """The laws of the mean pass^k and of what it lacks to 1, for all k with as many points."""
    fewer, more = _unseen_groups(cells, ks)
    laws = [_sum(cells, k) for k in ks]
    found = []
    for points in {law.chances.shape[-1] for law in laws}:
        places = [place for place, law in enumerate(laws) if law.chances.shape[-1] == points]
        sums = np.stack([laws[place].positions for place in places], axis=-2)
        shares = np.clip(sums / cells.task_count[..., None, None], 0.0, 1.0)
        chances = np.stack([laws[place].chances for place in places], axis=-2)
        sides = np.stack((shares, 1 - shares[..., ::-1]))
        both = np.stack((chances, chances[..., ::-1]))
        groups = np.stack((fewer[..., places], more[..., places]))
        found.append((places, ShrunkLaw(sides, both, groups)))
    return found


@remembered
def _sum(cells: Cells, k: int) -> SumLaw:
    found = sum_of_long_tasks(cells, k) if cells.n.max() > TABLED_RUNS else None
    return found or sum_of_tasks(cells, k, lattice_steps(cells.n, k))


def _unseen_groups(cells: Cells, ks: Sequence[int]) -> Bounds:
    """`_unseen` for each k, along the last axis."""
    found = zip(*(_unseen(cells, k) for k in ks), strict=True)
    fewer, more = (np.stack(groups, axis=-1) for groups in found)
    return fewer, more


def _unseen(cells: Cells, k: int) -> tuple[Floats, Floats]:
    """How many groups of k runs speak against an unseen failure, and against an unseen pass.

    Runs count for the first where pass^k is above 0, and for the second where it is below 1. A
    pass of a task that mostly fails adds little to pass^k, about k p^(k-1) / n, so groups are
    larger there: p^(k-1) is taken halfway between its mean and its largest.
    """
    n, c, tasks = cells.n, cells.c, cells.tasks
    fewer = tasks @ (n * (c >= k)) / k
    reach = np.minimum(1.0, (c + _UNSEEN_PASSES) / n) ** (k - 1)
    largest = np.where(tasks > 0, reach, 0.0).max(axis=-1)
    halfway = (cells.mean(reach) + largest) / 2
    return fewer, tasks @ (n * (c < n)) / (k * halfway)


def _taken(cells: Cells, kept: NDArray[np.bool_]) -> Cells:
    return Cells(n=cells.n[kept], c=cells.c[kept], tasks=cells.tasks[..., kept])
