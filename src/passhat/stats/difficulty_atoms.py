"""Task difficulty as a beta with tasks that always or never pass, where counts ask for them."""

from __future__ import annotations

import numpy as np

from passhat.fast_dataclass import dataclass
from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.betabinomial import fit_cells, refit_cells
from passhat.stats.cells import Cells, remembered

# Twice the log-likelihood that two more shares must gain: chi-squared with 2 degrees, 5 %.
_ASKED_FOR = 5.99
# Steps of expectation and maximisation: the shares move by less than 1e-3 after these.
_STEPS = 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DifficultyModel:
    """A share `solid` of tasks at 1, a share `broken` at 0, and the rest from Beta(a, b)."""

    a: Floats
    b: Floats
    solid: float = 0.0
    broken: float = 0.0

    @property
    def atoms(self) -> bool:
        return self.solid + self.broken > 0


@remembered
def fit_with_atoms(cells: Cells) -> DifficultyModel:
    """The beta fitted to one suite, and the shares of tasks at its ends that it cannot explain.

    The shares are found by expectation and maximisation (Dempster, Laird and Rubin 1977).
    """
    a, b = fit_cells(cells)
    plain = _log_chance(cells, a, b)
    ends = np.stack((cells.c == cells.n, cells.c == 0))
    # No model can gain more than the one that gives every count its observed share.
    most = 2 * float(cells.tasks @ (_observed(cells) - plain))
    if most <= _ASKED_FOR or not ends.any():
        return DifficultyModel(a=a, b=b)
    total = float(cells.task_count)
    shares = 0.5 * (ends * cells.tasks).sum(axis=1) / total
    first, second = a, b
    for _ in range(_STEPS):
        chance = np.exp(_log_chance(cells, first, second)) * (1 - shares.sum())
        own = np.where(ends, shares[:, None], 0.0)
        taken = own / np.maximum(chance + own.sum(axis=0), 1e-300)
        shares = (taken * cells.tasks).sum(axis=1) / total
        left = cells.tasks * (1 - taken.sum(axis=0))
        rest = Cells(n=cells.n, c=cells.c, tasks=np.maximum(left, 1e-9))
        first, second = refit_cells(rest, first, second)
    mixed = np.exp(_log_chance(cells, first, second)) * (1 - shares.sum())
    mixed += np.where(ends, shares[:, None], 0.0).sum(axis=0)
    gained = 2 * float(cells.tasks @ (np.log(np.maximum(mixed, 1e-300)) - plain))
    if gained <= _ASKED_FOR:
        return DifficultyModel(a=a, b=b)
    return DifficultyModel(a=first, b=second, solid=float(shares[0]), broken=float(shares[1]))


def _observed(cells: Cells) -> Floats:
    """Ln of the share that each count has among the tasks with as many runs."""
    places = np.searchsorted(cells.lengths, cells.n)
    return np.log(np.maximum(cells.tasks / cells.tasks_by_length[places], 1e-300))


def _log_chance(cells: Cells, a: Floats, b: Floats) -> Floats:
    """Ln of the beta-binomial chance of each cell's passes, given its runs."""
    n, c = cells.n, cells.c
    ways = special.gammaln(n + 1) - special.gammaln(c + 1) - special.gammaln(n - c + 1)
    return np.asarray(ways + special.betaln(a + c, b + n - c) - special.betaln(a, b))
