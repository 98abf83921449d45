"""Coherent bounds for the mean pass^k of the very tasks that were run: only runs are random.

Each task's pass^k gets a law that moves to the right with every pass (task_laws), the laws are
added up, and a low quantile of the mean bounds it from below. What no count can show, a failure
or a pass that did not happen yet, multiplies the mean by the law of the runs without one. All
parts move one way with a pass, so a bound never gets better by a failure.
"""

from __future__ import annotations

import numpy as np

from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells
from passhat.stats.few_runs import few_runs_law, few_runs_quantile
from passhat.stats.lattice_sums import SumLaw, sum_law
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.proportions import Bounds
from passhat.stats.roots import crossing
from passhat.stats.task_laws import lattice_steps, task_laws

# One failure more than was seen, and half of one to be safe: how high the rate of a task may
# lie that did not pass every time, for what a further pass of it would add to pass^k.
_UNSEEN_PASSES = 1.5


class SuiteLaw:
    """The bounds of one suite, or of many over the same cells, for each k and confidence.

    The law of the mean is kept for every k that was asked for: it serves both ends, every
    confidence, and the larger k that lean on it.
    """

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self._laws: dict[int, SumLaw] = {}

    def bounds(self, k: int, confidence: float) -> Bounds:
        """The interval for the mean pass^k; every task has at least k runs."""
        tail, cells = (1 - confidence) / 2, self.cells
        values = share_of_passing_subsets(cells.n, cells.c, k)
        mean = cells.mean(values)
        fewest = int(cells.n.min())
        if cells.n.max() < 2 * k:
            low, high = self._of_few_runs(values, mean, k, tail)
        else:
            low, high = self._of_law(k, tail)
        if 2 <= fewest < 2 * k:
            # Tasks with too few runs to show the spread of p^k show that of p^j, and by Jensen
            # (mean p^j)^(k/j) <= mean p^k <= mean p^j.
            j = fewest // 2
            lower, upper = self.bounds(j, confidence)
            low, high = np.maximum(low, lower ** (k / j)), np.minimum(high, upper)
        return np.minimum(low, mean), np.maximum(high, mean)

    def _of_law(self, k: int, tail: float) -> Bounds:
        law = self._law(k)
        fewer, more = self._unseen(k)
        low = _shrunk_quantile(law.positions, law.chances, fewer, tail)
        high = 1 - _shrunk_quantile(1 - law.positions, law.chances, more, tail)
        return low, high

    def _of_few_runs(self, values: Floats, mean: Floats, k: int, tail: float) -> Bounds:
        """Every task has fewer than 2k runs: no law of its own, and one for all together."""
        fewer, more = self._unseen(k)
        weight = float((self.cells.n / (2 * k - self.cells.n)).min())
        tasks = self.cells.tasks
        low = few_runs_quantile(values, tasks, weight, tail)
        high = 1 - few_runs_quantile(1 - values, tasks, weight, tail)
        with np.errstate(divide="ignore"):
            low = np.minimum(low, mean * tail ** (1 / fewer))
            high = np.maximum(high, 1 - (1 - mean) * tail ** (1 / more))
        return low, high

    def _law(self, k: int) -> SumLaw:
        """The law of the mean, in [0, 1]."""
        if k not in self._laws:
            cells, steps = self.cells, lattice_steps(self.cells.n, k)
            long = cells.n >= 2 * k
            laws = task_laws(cells.n[long], cells.c[long], k, steps)
            part = None if long.all() else few_runs_law(_taken(cells, ~long), k, steps)
            law = sum_law(laws, cells.tasks[..., long], part)
            share = law.positions / (steps * cells.task_count[..., None])
            self._laws[k] = SumLaw(positions=np.clip(share, 0.0, 1.0), chances=law.chances)
        return self._laws[k]

    def _unseen(self, k: int) -> tuple[Floats, Floats]:
        """How many groups of k runs speak against an unseen failure, and against an unseen pass.

        Runs count for the first where pass^k is above 0, and for the second where it is below 1.
        A pass of a task that mostly fails adds little to pass^k: about k p^(k-1) / n, so groups
        are larger there. u lies halfway between the mean of p^(k-1) and its largest.
        """
        n, c, tasks = self.cells.n, self.cells.c, self.cells.tasks
        fewer = tasks @ (n * (c >= k)) / k
        reach = np.minimum(1.0, (c + _UNSEEN_PASSES) / n) ** (k - 1)
        largest = np.where(tasks > 0, reach, 0.0).max(axis=-1)
        u = (self.cells.mean(reach) + largest) / 2
        return fewer, tasks @ (n * (c < n)) / (k * u)


def _taken(cells: Cells, kept: Floats) -> Cells:
    return Cells(n=cells.n[kept], c=cells.c[kept], tasks=cells.tasks[..., kept])


def _shrunk_quantile(places: Floats, chances: Floats, groups: Floats, tail: float) -> Floats:
    """The `tail` quantile of U^(1/groups) X, for X at `places` and U uniform: that of no failure."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(places)
        reach = np.log(tail) / groups
    held = np.where(chances > 0, logs, np.inf)
    least = np.where(np.isfinite(held), held, np.inf).min(axis=-1)
    sure = (chances * (places <= 0)).sum(axis=-1) >= tail
    nothing = sure | (groups <= 0) | ~np.isfinite(least)
    low = np.where(nothing, -1.0, least + np.where(groups > 0, reach, 0.0) - 1.0)
    size = np.where(nothing, 1.0, groups)[..., None]

    def short(log: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            chance = np.exp(np.minimum(size * (log[..., None] - logs), 0.0))
        return np.asarray(tail - (chances * chance).sum(axis=-1))

    found = np.exp(crossing(short, low, np.zeros_like(low)))
    return np.where(nothing, 0.0, found)
