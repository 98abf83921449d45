"""Task difficulty as a beta with tasks that always or never pass, where counts ask for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from passhat.fast_dataclass import dataclass
from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.betabinomial import Likelihood, fit_cells, refit
from passhat.stats.cells import Cells, remembered

# Twice the log-likelihood that a share must gain: chi-squared with 2 degrees, 5 %, for the better
# of the two ends, and with 1 degree for the other beside it.
_ASKED_FOR = 5.99, 3.84
# Steps of expectation and maximisation: the shares move by less than 1e-3 after these.
_STEPS = 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DifficultyModel:
    """A share `solid` of tasks at 1, a share `broken` at 0, and the rest from Beta(a, b).

    `rest` are the cells with as many tasks in each as are not at an end.
    """

    a: Floats
    b: Floats
    rest: Cells
    solid: float = 0.0
    broken: float = 0.0

    @property
    def atoms(self) -> bool:
        return self.solid + self.broken > 0


@remembered
def fit_with_atoms(cells: Cells) -> DifficultyModel:
    """The beta fitted to one suite, and the shares of tasks at its ends that it cannot explain.

    One end is asked for alone first: a beta close to 1 explains tasks that always passed, and a
    share of them would only take its place.
    """
    a, b = fit_cells(cells)
    best, fit = DifficultyModel(a=a, b=b, rest=cells), _fit(cells, a, b, np.zeros(2))
    ends = np.stack((cells.c == cells.n, cells.c == 0))
    # No model can gain more than the one that gives every count its observed share.
    if 2 * (float(cells.tasks @ _observed(cells)) - fit) <= _ASKED_FOR[0]:
        return best
    either = [np.eye(2, dtype=bool)[:, end, None] for end in (0, 1) if ends[end].any()]
    both = [np.ones((2, 1), dtype=bool)] if len(either) == 2 else []
    for tried, asked_for in zip((either, both), _ASKED_FOR, strict=True):
        found = [_with_ends(cells, ends & at, best) for at in tried]
        gained = [
            _fit(cells, one.a, one.b, np.array([one.solid, one.broken])) - fit for one in found
        ]
        if not found or 2 * max(gained) <= asked_for:
            break
        best = found[int(np.argmax(gained))]
        fit += max(gained)
    return best


def _with_ends(cells: Cells, ends: NDArray[np.bool_], start: DifficultyModel) -> DifficultyModel:
    """Shares of tasks at these ends, by expectation and maximisation (Dempster and others 1977)."""
    total = float(cells.task_count)
    shares = 0.5 * (ends * cells.tasks).sum(axis=1) / total
    a, b, rest, likelihood = start.a, start.b, cells, Likelihood(cells)
    for _ in range(_STEPS):
        chance = np.exp(log_chance(cells.n, cells.c, a, b)) * (1 - shares.sum())
        own = np.where(ends, shares[:, None], 0.0)
        taken = own / np.maximum(chance + own.sum(axis=0), 1e-300)
        shares = (taken * cells.tasks).sum(axis=1) / total
        left = cells.tasks * (1 - taken.sum(axis=0))
        rest = Cells(n=cells.n, c=cells.c, tasks=np.maximum(left, 1e-9))
        a, b = refit(likelihood.reweighted(rest.tasks), a, b)
    return DifficultyModel(a=a, b=b, rest=rest, solid=float(shares[0]), broken=float(shares[1]))


def _fit(cells: Cells, a: Floats, b: Floats, shares: Floats) -> float:
    """The log-likelihood of a beta with these shares at 1 and at 0."""
    chance = np.exp(log_chance(cells.n, cells.c, a, b)) * (1 - shares.sum())
    chance += shares[0] * (cells.c == cells.n) + shares[1] * (cells.c == 0)
    return float(cells.tasks @ np.log(np.maximum(chance, 1e-300)))


def _observed(cells: Cells) -> Floats:
    """Ln of the share that each count has among the tasks with as many runs."""
    places = np.searchsorted(cells.lengths, cells.n)
    return np.log(np.maximum(cells.tasks / cells.tasks_by_length[places], 1e-300))


def log_chance(n: Floats, c: Floats, a: Floats, b: Floats) -> Floats:
    """Ln of the beta-binomial chance of each count of passes, given the runs."""
    ways = special.gammaln(n + 1) - special.gammaln(c + 1) - special.gammaln(n - c + 1)
    return np.asarray(ways + special.betaln(a + c, b + n - c) - special.betaln(a, b))
