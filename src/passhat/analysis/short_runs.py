"""Why a system has no pass^k: how many runs its tasks have instead."""

from __future__ import annotations

import numpy as np

from passhat.analysis.evidence import Counts
from passhat.errors import plural


def too_few_runs(runs: Counts, k: int) -> str:
    """What a system has whose tasks lack k runs, some or all.

    >>> too_few_runs(np.array([1, 1]), 4)
    '1 run of every task'
    >>> too_few_runs(np.array([1, 3]), 4)
    'at most 3 runs of any task'
    >>> too_few_runs(np.array([1, 4]), 4)
    'fewer than 4 runs of 1 of 2 tasks'
    """
    if not runs.size:
        return "no run that did not error"
    short, most = int(np.count_nonzero(runs < k)), int(runs.max())
    if short < runs.size:
        return f"fewer than {k} runs of {short:,} of {runs.size:,} tasks"
    if most == int(runs.min()):
        return f"{plural(most, 'run')} of every task"
    return f"at most {plural(most, 'run')} of any task"
