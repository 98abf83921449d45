"""The exact law of a difference of means when each task's runs change sides by chance alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat.stats.arguments import Counts, Floats
from passhat.stats.hypergeometric import log_probability
from passhat.stats.passk import share_of_passing_subsets

# The law is kept on at least 2^13 points, over all that the difference can be.
_LEAST_BITS = 13
# A transform's rounding: smaller chances are not told apart.
_ROUNDING = 1e-14


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Law:
    """The chance of each number of new passes from `fewest` on, and the difference it makes."""

    chance: Floats
    moved: Floats
    fewest: int


def permutation_p(
    n_old: Counts, c_old: Counts, n_new: Counts, c_new: Counts, *, k: int = 1
) -> float:
    """Two-sided p of the mean pass^k of new runs against old ones, task by task.

    Given how many of a task's runs passed in all, the passes among the new ones are
    hypergeometric if the task did not change; the sum over tasks of new minus old then has a law
    that is known, and is computed on a fine grid by multiplying Fourier transforms.

    >>> round(permutation_p(*(np.array(x) for x in ([10], [9], [10], [3]))), 4)  # Fisher's
    0.0198
    """
    kinds, place, tasks = np.unique(
        np.column_stack((n_old, n_new, c_old + c_new)),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    laws = [_law(old, new, passes, k) for old, new, passes in kinds.tolist()]
    furthest = sum(float(np.abs(law.moved).max()) * m for law, m in zip(laws, tasks, strict=True))
    if furthest == 0:
        return 1.0
    points = 1 << max(_LEAST_BITS, (8 * len(n_old)).bit_length())
    # Rounding may add half a step a task; what fell off one end would come back at the other.
    step = furthest / (points // 2 - 1 - len(n_old) / 2)
    transform, observed = np.ones(points // 2 + 1, dtype=complex), 0
    for i, (law, times) in enumerate(zip(laws, tasks.tolist(), strict=True)):
        steps = np.rint(law.moved / step).astype(np.int64)
        grid = np.bincount(steps % points, weights=law.chance, minlength=points)
        transform *= np.fft.rfft(grid) ** times
        observed += int(steps[c_new[place == i] - law.fewest].sum())
    reach = np.abs(np.fft.fftfreq(points, 1 / points))
    total = np.fft.irfft(transform, points)
    # What rounding alone tells apart is a tie, and a tie is as far out as what was seen.
    tie = 2 * np.sqrt(len(n_old))
    return float(np.clip(total[reach >= abs(observed) - tie].sum(), _ROUNDING, 1.0))


def _law(n_old: int, n_new: int, passes: int, k: int) -> _Law:
    """What the new runs' passes may be if chance alone divides them, and what each would move."""
    fewest = max(0, passes - n_old)
    x = np.arange(fewest, min(n_new, passes) + 1)
    new = share_of_passing_subsets(np.full(x.size, n_new), x, k)
    old = share_of_passing_subsets(np.full(x.size, n_old), passes - x, k)
    chance = np.exp(log_probability(x, n_new, n_old, passes))
    return _Law(chance=chance, moved=new - old, fewest=fewest)
