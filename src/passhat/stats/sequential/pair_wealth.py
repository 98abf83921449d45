"""Evidence about the difference of two systems that run the same tasks, one pair of runs at a time.

A bettor who doubts a null hypothesis multiplies her wealth by 1 + lambda (d - delta - m) after each
pair, d the difference of the two scores on a task that was drawn at random, delta the difference
under the null, m the part of d that is known from the task. The factor has mean 1 or less if the
null is true, so by Ville's inequality the wealth ever reaches 1 / alpha with chance alpha at most:
whenever one looks (Waudby-Smith and Ramdas 2024).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from passhat.stats.arguments import Floats

# A task's own difference is drawn to 0 by as much as six pairs would: few pairs say little of it.
_BORROWED_PAIRS = 6
# The variance of what is left starts at 0.3, as if ten pairs had shown it.
_FIRST_PAIRS, _FIRST_SQUARES = 10, 3.0
# At most this share of the wealth is at stake: one pair never ruins it.
_MOST_AT_STAKE = 0.9
# Wealth is split over bets for half, all and twice the difference that was planned for.
_SPLIT = np.array([0.5, 1.0, 2.0])


@dataclass(frozen=True, slots=True, eq=False)
class TaskCentres:
    """Pairs run of each task and the sums of their differences."""

    pairs: Floats
    sums: Floats

    @classmethod
    def of(cls, tasks: int) -> TaskCentres:
        return cls(np.zeros(tasks), np.zeros(tasks))

    @property
    def values(self) -> Floats:
        """How much each task's difference is taken to lie above the mean: 0 on average."""
        expected = self.sums / (self.pairs + _BORROWED_PAIRS)
        return np.asarray(expected - expected.mean())

    def after(self, task: int, d: float) -> TaskCentres:
        pairs, sums = self.pairs.copy(), self.sums.copy()
        pairs[task] += 1
        sums[task] += d
        return TaskCentres(pairs, sums)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairWealth:
    """The wealth of a bettor against one null: the difference is at most (or at least) `null`.

    `side` is +1 where she bets that it is more, -1 where she bets that it is less; `planned` is how
    far from the null she thinks it may lie.
    """

    null: float
    side: int
    planned: float
    logs: Floats
    squares: float = _FIRST_SQUARES
    pairs: int = 0

    @classmethod
    def against(cls, null: float, *, side: int, planned: float) -> PairWealth:
        return cls(null=null, side=side, planned=planned, logs=np.zeros(_SPLIT.size))

    @property
    def log(self) -> float:
        """The logarithm of the wealth, its bets together."""
        top = float(self.logs.max())
        return top + float(np.log(np.exp(self.logs - top).mean()))

    def after(self, d: float, centre: float, furthest: float) -> PairWealth:
        """The wealth after a pair; `centre` is its task's, `furthest` the largest of all."""
        surprise = d - self.null - centre
        variance = self.squares / (_FIRST_PAIRS + self.pairs)
        safe = _MOST_AT_STAKE / (1 + abs(self.null) + furthest)
        stakes = np.minimum(_SPLIT * self.planned / variance, safe)
        return replace(
            self,
            logs=self.logs + np.log1p(self.side * stakes * surprise),
            squares=self.squares + surprise**2,
            pairs=self.pairs + 1,
        )
