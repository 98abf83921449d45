"""Many tests at once, adjusted by what shuffling the outcomes inside their strata would give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from passhat.stats.arguments import Counts, Floats

if TYPE_CHECKING:
    from numpy.random import Generator

# Statistics that should be equal differ by rounding, and a tie counts as at least as extreme.
_TIE = 1e-9


def shuffled_in_strata(
    labels: NDArray[np.bool_], strata: Counts, *, shuffles: int, rng: Generator
) -> NDArray[np.bool_]:
    """The labels as they are, in the first row, then shuffled inside their strata, row by row.

    Each stratum is a block of consecutive labels.

    >>> rng = np.random.default_rng(0)
    >>> rows = shuffled_in_strata(np.array([1, 0, 1, 1], bool), np.array([0, 0, 1, 1]),
    ...                           shuffles=5, rng=rng)
    >>> rows.shape, rows[:, :2].sum(axis=1).tolist()
    ((6, 4), [1, 1, 1, 1, 1, 1])
    """
    rows = np.empty((shuffles + 1, labels.size), dtype=bool)
    rows[0] = labels
    bounds = np.flatnonzero(np.r_[True, np.diff(strata) != 0, True])
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        block = np.broadcast_to(labels[start:end], (shuffles, end - start))
        rows[1:, start:end] = rng.permuted(block, axis=1)
    return rows


def standardised(statistics: Floats) -> Floats:
    """Statistics in units of their spread over all rows, the observed row among them.

    With the observed row left out, extreme values would be measured by a spread that does not hold
    them, and false positives exceed their level. A statistic that never varies becomes 0.
    """
    centred = statistics - statistics.mean(axis=0)
    spread = np.sqrt(np.mean(centred**2, axis=0))
    return np.where(spread > _TIE, centred / np.where(spread > _TIE, spread, 1.0), 0.0)


def step_down_p(statistics: Floats) -> Floats:
    """P-values of the first row, adjusted so that any false rejection has probability alpha.

    Rows are the observed statistics and those of shuffled outcomes, columns are hypotheses, and
    larger is more extreme: Westfall and Young (1993), algorithms 2.8 and 4.1 (free step-down
    maxT; hand in the negative of p-values for minP). The shuffles keep how the tests depend on one
    another, which is what makes it stronger than Holm.

    >>> step_down_p(np.array([[3.0, 0.5], [1.0, 0.7], [0.2, 0.1], [0.3, 0.4]])).tolist()
    [0.25, 0.5]
    """
    observed = statistics[0]
    order = np.argsort(-observed, kind="stable")
    # The most extreme of each hypothesis and all that were less extreme than it as observed.
    most = np.maximum.accumulate(statistics[:, order[::-1]], axis=1)[:, ::-1]
    reached = (most >= observed[order] - _TIE).mean(axis=0)
    adjusted = np.empty(observed.size)
    adjusted[order] = np.maximum.accumulate(reached)
    return adjusted
