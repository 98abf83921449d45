"""Whether the pass rate moved along the runs of a sequential gate, which assumes it did not."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from passhat.dataclass import dataclass
from passhat.stats.special import ndtr

DRIFT_ALARMS = 0.01
"""The largest share of steady runs in which a drift is reported at the end of a gate."""

# The level of the test. A gate stops when passes (or failures) have piled up, so its runs lean a
# little towards their end: at this level at most 1 % of steady runs are called a drift
# (bench/calibrate/outages.py).
_LEVEL = 0.005
# With fewer runs of tasks that both passed and failed, the normal law is too far off.
_FEWEST_RUNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The pass rates of the first and the second half of runs that moved beyond chance."""

    first_half: float
    second_half: float
    p_value: float


def find_drift(task: Sequence[int], passed: Sequence[bool]) -> Drift | None:
    """A drift along runs in the order they were started; None if chance explains it.

    The correlation of results with their place, task by task: given how often each task passed,
    every order of its results is equally likely if nothing moves (Mantel 1963). So it does not
    matter which tasks were drawn early.

    >>> find_drift([0] * 60, [True] * 35 + [False, True] * 5 + [False] * 15).second_half < 0.5
    True
    >>> find_drift([0] * 60, [True, True, False] * 20) is None
    True
    """
    codes, x = np.asarray(task, dtype=np.intp), np.asarray(passed, dtype=np.float64)
    place = np.arange(x.size, dtype=np.float64)
    if x.size < _FEWEST_RUNS:
        return None
    runs = np.bincount(codes).astype(np.float64)
    centred = [
        part - (np.bincount(codes, part) / np.maximum(runs, 1))[codes] for part in (x, place)
    ]
    squares = [np.bincount(codes, part**2) for part in centred]
    telling = squares[0] > 0
    variance = float((squares[0] * squares[1] / np.maximum(runs - 1, 1))[telling].sum())
    if variance <= 0 or runs[telling].sum() < _FEWEST_RUNS:
        return None
    z = float((centred[0] * centred[1]).sum()) / sqrt(variance)
    p = float(2 * ndtr(-abs(z)))
    if p >= _LEVEL:
        return None
    half = x.size // 2
    return Drift(first_half=float(x[:half].mean()), second_half=float(x[half:].mean()), p_value=p)
