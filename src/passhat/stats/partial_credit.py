"""Coherent bounds for the mean score of the tasks that were run, with partial credit.

A higher score of any run must never lower a bound. Write a score as 1 minus a loss: every sum of
losses, and every sum of squared losses, can only fall when a score rises. So the lower end is made
a function that falls with both, and it is enough to know the two sums of each task:

- both sums give the noise of the mean, and with it a bound (Wilson's, or the one for few stray
  runs). Smaller losses can mean more noise and a worse bound, so the worst bound over all smaller
  losses is taken, which falls with both sums by construction;
- that bound is kept between two coherent bounds for scores of 0 and 1 (suite_law): one as if the
  losses were failures (no score varies more, Bhatia and Davis 2000), one as if the squared losses
  were. Where every score is 0 or 1 the two are the same, so this needs no special case.

The upper end is the lower end of the losses.
"""

from __future__ import annotations

import numpy as np

from passhat.dataclass import dataclass
from passhat.stats.arguments import Floats
from passhat.stats.cells import count_cells, together
from passhat.stats.mean_intervals import few_strays_bound, student_quantile
from passhat.stats.proportions import Bounds, wilson_bounds
from passhat.stats.suite_law import suite_bounds

# Sums of scores are off by their last digits: a sum this close to a whole number is that number.
_ROUNDING = 1e-9
# Below this there is no noise: Wilson's interval is a point there.
_NO_NOISE = 1e-12
# A single run of a single task does not show its variance: the largest possible is assumed.
_LARGEST_VARIANCE = 0.25
# Points at which the worst smaller loss is looked for, and how often the best stretch is divided
# again: 24 and 3 times 24 find it to 1e-5 of its range, and the bound, flat there, to 1e-9.
_POINTS, _TIMES = 24, 4
# With so many tasks a single score moves the noise so little that one division is enough.
_MANY = 4096


def score_bounds(runs: Floats, total: Floats, squares: Floats, confidence: float) -> Bounds:
    """The interval for the mean over tasks, from runs, summed scores and summed squares of each.

    >>> low, high = score_bounds(np.full(3, 4.0), np.full(3, 2.0), np.full(3, 1.5), 0.95)
    >>> round(float(low), 2), round(float(high), 2)
    (0.25, 0.75)
    """
    sides = (
        _Losses.of(runs, runs - total, runs - 2 * total + squares),
        _Losses.of(runs, total, squares),
    )
    limits = _limits(sides, confidence)
    low, missing = (
        float(np.clip(_worst_bound(side, confidence), *ends))
        for side, ends in zip(sides, limits, strict=True)
    )
    mean = float((total / runs).mean())
    return np.array(min(low, mean)), np.array(max(1 - missing, mean))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Losses:
    """Runs, summed losses and summed squared losses of each task."""

    runs: Floats
    sums: Floats
    squares: Floats

    @classmethod
    def of(cls, runs: Floats, sums: Floats, squares: Floats) -> _Losses:
        """With squares that losses in [0, 1] can have: rounding may have left them outside."""
        sums = np.clip(sums, 0.0, runs)
        return cls(runs=runs, sums=sums, squares=np.clip(squares, sums**2 / runs, sums))


def _limits(sides: tuple[_Losses, _Losses], confidence: float) -> list[tuple[float, float]]:
    """For each side, the bounds as if losses, and as if squared losses, were failures."""
    failures = [
        count
        for side in sides
        for count in (np.ceil(side.sums - _ROUNDING), np.floor(side.squares + _ROUNDING))
    ]
    runs = sides[0].runs
    every = [count_cells(runs.astype(np.int64), (runs - one).astype(np.int64)) for one in failures]
    low = suite_bounds(together(*every), (1,), confidence)[0][..., 0]
    return [(float(low[0]), float(low[1])), (float(low[2]), float(low[3]))]


def _worst_bound(side: _Losses, confidence: float) -> float:
    """The lowest bound over all losses, and squared losses, up to those seen.

    For a given mean loss the noise is largest where sum a^2 y^2 / (n - 1) is smallest, a being the
    share of a task: where every loss y is a common multiple of (n - 1) / a, or as near to it as
    its own limits allow (Lagrange). So a search over one number, that multiple, is enough.
    """
    strata = _Strata.of(side)
    runs = float(side.runs.sum())
    quantile = float(
        student_quantile(np.array(max(runs - side.runs.size, side.runs.size - 1)), confidence)
    )

    def bound(multiple: Floats) -> Floats:
        mean, noise = strata.at(multiple)
        level = np.maximum(mean * (1 - mean), _NO_NOISE)
        flips = np.clip(level / np.maximum(noise, _NO_NOISE), side.runs.size, 1 / _NO_NOISE)
        low = wilson_bounds(mean, flips, quantile)[0]
        few = few_strays_bound(mean, noise, runs, np.array(quantile), confidence)
        return np.asarray(np.minimum(low, few))

    points = np.union1d(*(np.linspace(0, end, _POINTS + 1) for end in strata.multiples))
    for _ in range(_TIMES if strata.share.size < _MANY else 1):
        values = bound(points)
        best = int(np.argmin(values))
        around = points[max(best - 1, 0)], points[min(best + 1, points.size - 1)]
        points = np.linspace(*around, _POINTS + 1)
    return float(values.min())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Strata:
    """Tasks with at least two runs, each alone, and all tasks of one run as if they were one task.

    (The scores of tasks with one run differ by chance and by task: their spread is no less than
    the noise.) `share` is the weight of a stratum in the mean, `loss` and `square` are its means.
    """

    share: Floats
    runs: Floats
    loss: Floats
    square: Floats

    @classmethod
    def of(cls, side: _Losses) -> _Strata:
        once = side.runs == 1
        parts = [np.ones(side.runs.size), side.runs, side.sums, side.squares]
        if once.any():
            parts = [np.append(part[~once], part[once].sum()) for part in parts]
        tasks, runs, sums, squares = parts
        return cls(share=tasks / side.runs.size, runs=runs, loss=sums / runs, square=squares / runs)

    @property
    def multiples(self) -> tuple[float, float]:
        """Below the first every loss is 0, beyond the second every loss is as it was seen."""
        return -0.5 / float(self._reach.min()), float((self.loss / self._reach).max())

    @property
    def _reach(self) -> Floats:
        return np.maximum(self.runs - 1, 1) / self.share

    def at(self, multiple: Floats) -> Bounds:
        """The mean score, and the variance of it, for losses of so many times (n - 1) / a."""
        reach = multiple[:, None] * self._reach
        # Squares exceed no loss: below its square a loss takes the square along, and its variance
        # is the y (1 - y) of zeros and ones.
        as_failures = np.clip(0.5 + reach, 0.0, self.square)
        loss = np.minimum(self.loss, np.maximum(reach, as_failures))
        alone = self.runs == 1
        loss = np.where(alone, self.loss, loss)
        spread = np.minimum(self.square, loss) - loss**2
        variance = np.where(alone, _LARGEST_VARIANCE, spread / np.maximum(self.runs - 1, 1))
        noise = np.maximum(variance, 0.0) @ self.share**2
        return 1 - loss @ self.share, noise
