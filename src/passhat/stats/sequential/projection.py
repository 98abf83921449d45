"""Bets on a randomly drawn task: per-task predictions projected onto the hypothesis on their mean.

All functions take any leading axes (the two sides of a gate, repetitions of a simulation); the
last axis runs over tasks. A bet multiplies the wealth by 1 + stake (x - centre of the task drawn).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from passhat.dataclass import dataclass
from passhat.stats.arguments import Counts, Floats
from passhat.stats.special import expit, logit

# The index of the task drawn: (task,), or (repetitions, tasks) in a simulation.
Drawn = tuple[int] | tuple[Counts, Counts]

# The first axis of a wealth: the bet that the suite is good, and the bet that it is not.
PASS_SIDE, FAIL_SIDE = 0, 1

# How alike the runs of one task may be (intraclass correlation), and the weight of each before any
# run: suites of agents have about 0.7; 0 costs nothing when tasks are in fact alike.
ICCS = np.array([0.0, 0.1, 0.3, 0.7])
ICC_LOG_WEIGHTS = np.log([0.15, 0.1, 0.15, 0.6])

# A bet never risks all wealth, which rounding could then lose.
_LARGEST_LOSS = 0.999
# Any bet is fair, so these need no more digits than the stake is worth.
_NEWTON_STEPS = 60
_TILT_TOLERANCE = 1e-5
_MEAN_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wealth(ABC):
    """Two wealths, and everything that the next bets depend on; the first axis is PASS, FAIL.

    The FAIL side is the PASS side for x turned into 1 - x: it bets that the mean of 1 - x, which
    is at most `null` = 1 - mu1 under its hypothesis, is `alternative` = 1 - mu0.
    Further axes may come between the side and the tasks: a simulation has one for repetitions.
    """

    null: Floats
    alternative: Floats
    log: Floats
    runs: Floats
    sums: Floats
    icc_log_weights: Floats
    stake: Floats
    centres: Floats

    @classmethod
    def start(cls, mu0: float, mu1: float | Floats, shape: tuple[int, ...]) -> Self:
        """Wealth 1 on both sides, and the first bets; `shape` ends with the number of tasks.

        Where `shape` has an axis before the tasks, `mu1` may differ along it.
        """
        sides = np.zeros((2, *shape[:-1]))
        null, alternative = np.empty(sides.shape), np.empty(sides.shape)
        null[PASS_SIDE], null[FAIL_SIDE] = mu0, 1 - mu1
        alternative[PASS_SIDE], alternative[FAIL_SIDE] = mu1, 1 - mu0
        wealth = cls(
            null=null,
            alternative=alternative,
            log=sides,
            runs=np.zeros(shape),
            sums=np.zeros((2, *shape)),
            icc_log_weights=np.broadcast_to(ICC_LOG_WEIGHTS, (*sides.shape, ICC_LOG_WEIGHTS.size)),
            stake=(alternative - null) / (null * (1 - null)),
            centres=np.broadcast_to(null[..., None], (2, *shape)),
            **cls._first(shape),
        )
        return wealth.with_new_bets()

    def after(self, drawn: Drawn, x: Floats | float) -> Self:
        """The wealth after the tasks drawn were scored x, bets unchanged."""
        scores, both = np.array([x, 1 - x]), (slice(None), *drawn)
        factor = 1 + self.stake * (scores - self.centres[both])
        rates = shrunk(
            self.runs[drawn][..., None], self.sums[both][..., None], self.grand_mean[..., None]
        )
        runs, sums = self.runs.copy(), self.sums.copy()
        runs[drawn] += 1
        sums[both] += scores
        return replace(
            self,
            log=self.log + np.log(factor),
            runs=runs,
            sums=sums,
            icc_log_weights=self.icc_log_weights + self._log_fit(scores[..., None], rates),
            **self._learnt(scores, both),
        )

    def rows(self, kept: ArrayLike) -> Self:
        """These repetitions only: rows of the axis between the sides and the tasks."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        chosen = {
            name: array[kept] if name == "runs" else array[:, kept]
            for name, array in arrays.items()
        }
        return replace(self, **chosen)

    @abstractmethod
    def with_new_bets(self) -> Self:
        """The same wealth with bets that use all the evidence so far."""

    @property
    @abstractmethod
    def grand_mean(self) -> Floats:
        """The mean that tasks without a record are predicted to have."""

    @abstractmethod
    def _log_fit(self, scores: Floats, rates: Floats) -> Floats:
        """The log-likelihood of scores under the rates that each correlation predicts."""

    @classmethod
    def _first(cls, shape: tuple[int, ...]) -> dict[str, Any]:
        """The fields that a subclass adds, before any draw."""
        return {}

    def _learnt(self, scores: Floats, both: tuple[Any, ...]) -> dict[str, Any]:
        """The fields that a subclass updates after a draw."""
        return {}


def predicted(runs: Floats, sums: Floats, icc_log_weights: Floats, mean: Floats) -> Floats:
    """Each task's chance of passing: its own record, shrunk to `mean` as far as tasks are alike.

    The posterior mean under beta priors, averaged over their intraclass correlations.
    """
    weights = np.exp(icc_log_weights - icc_log_weights.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    rates = shrunk(runs[..., None], sums[..., None], mean[..., None, None])
    return np.asarray((weights[..., None, :] * rates).sum(axis=-1))


def shrunk(runs: Floats, sums: Floats, mean: Floats) -> Floats:
    """The posterior mean of a task's rate under each intraclass correlation (last axis)."""
    return np.asarray(((1 - ICCS) * mean + ICCS * sums) / (1 - ICCS + ICCS * runs))


def tilted(rates: Floats, mean: Floats, shift: Floats) -> tuple[Floats, Floats]:
    """The rates moved together on the logit scale to the given mean, and the shift that does it.

    `shift` is where the search starts: the previous answer makes it short.
    """
    logits = logit(rates)
    for _ in range(_NEWTON_STEPS):
        moved = expit(logits + shift[..., None])
        missing = mean - _mean(moved)
        if np.abs(missing).max() < _TILT_TOLERANCE:
            break
        shift = shift + np.clip(missing / _mean(moved * (1 - moved)), -1, 1)
    return moved, shift


def projected(rates: Floats, mean: Floats, stake: Floats) -> tuple[Floats, Floats]:
    """The stake and the centres with the given mean that lie nearest to the rates.

    The reverse information projection (Grunwald, de Heide & Koolen 2024): it minimises the mean
    divergence from the rates r to the centres m, so r - m = stake m (1 - m), and the likelihood
    ratio of a run is 1 + stake (x - m). `stake` is where the search starts.
    """
    for _ in range(_NEWTON_STEPS):
        centres = _centres(rates, stake)
        excess = _mean(centres) - mean
        if np.abs(excess).max() < _MEAN_TOLERANCE:
            break
        slope = _mean(centres * (1 - centres) / (1 + stake[..., None] * (1 - 2 * centres)))
        stake = np.maximum(stake + np.clip(excess / slope, -0.5, 0.5 + stake), 0.0)
    # The guarantee needs the mean exactly and the factor not below 0; the rest is only power.
    centres = centres + (mean - _mean(centres))[..., None]
    return np.minimum(stake, _LARGEST_LOSS / centres.max(axis=-1)), centres


def _centres(rates: Floats, stake: Floats) -> Floats:
    stake = stake[..., None]
    grown = 1 + stake
    return np.asarray(2 * rates / (grown + np.sqrt(grown * grown - 4 * stake * rates)))


def _mean(values: Floats) -> Floats:
    # Several times faster than np.mean on a few tasks, and this is the hot path.
    return np.asarray(values.sum(axis=-1) / values.shape[-1])
