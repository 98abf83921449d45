"""pass^k or pass@k of every task, and nan where a task has too few runs for it."""

from __future__ import annotations

import numpy as np

from passhat.stats.arguments import Counts, Floats
from passhat.stats.passk import pass_at_k, pass_hat_k


def task_values(runs: Counts, passes: Counts, k: int, *, metric: str = "pass^k") -> Floats:
    """A value a task, in the order of the tasks: what pairs and ranks are made of.

    >>> task_values(np.array([4, 1, 2]), np.array([3, 1, 2]), 2).tolist()
    [0.5, nan, 1.0]
    """
    formula = pass_at_k if metric == "pass@k" else pass_hat_k
    enough = runs >= k
    found = np.full(runs.size, np.nan)
    found[enough] = formula(runs[enough], passes[enough], k)
    return found
