"""Intervals for a mean that hold after every run at once, however often one looks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import field, fields, replace
from math import log, log1p, sqrt
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, confidence_level, finite_number, whole_number
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats
from passhat.stats.estimate import Estimate, Interval
from passhat.stats.numerics import bisect
from passhat.stats.passk import pass_hat_k
from passhat.stats.special import betaln, expit, logit, xlog1py, xlogy

Ends = tuple[float, float]

# Each mean of this grid is bet against; the interval ends on it, rounded outwards.
_MEANS = np.linspace(0.0, 1.0, 401)
# A bet risks at most this share of the wealth; near the ends of [0, 1] the stake is capped.
_LARGEST_LOSS = 0.75
_MOST = 99.0
# The stakes are best at 95 %; the interval holds at any confidence.
_TUNED_FOR = 2 * log(2 / 0.05)

_RATES = np.linspace(0.0, 1.0, 2001)
"""Where the rate of a task is looked for: finer steps move no bound by more than 0.0001."""

_PRICES = np.geomspace(1e-5, 1e2, 240)
"""Multipliers of the likelihood constraint: each gives a valid bound, the best is the tightest."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BettingSequence:
    """A running mean of scores in [0, 1] whose interval narrows with what they vary within tasks.

    Bets against every mean of a grid from above and from below, with stakes for the variance seen
    (Waudby-Smith & Ramdas 2024, section 4.2). A score is bet on after subtracting the `offset` of
    its task, known beforehand and 0 on average over the tasks, so that hard and easy tasks do not
    widen the interval.

    >>> sequence = BettingSequence()
    >>> for x in [0.75, 0.8, 0.85, 0.8] * 25:
    ...     sequence = sequence.after(x)
    >>> sequence.interval(confidence=0.95)
    Interval(low=0.7..., high=0.8...)
    """

    runs: int = 0
    total: float = 0.0
    squares: float = 0.0
    log_above: Floats = field(default_factory=lambda: np.zeros(_MEANS.size), repr=False)
    log_below: Floats = field(default_factory=lambda: np.zeros(_MEANS.size), repr=False)

    def after(self, x: float, *, offset: float = 0.0, offsets: Ends = (0.0, 0.0)) -> Self:
        """One more score of a task with this offset; `offsets` are the lowest and the highest."""
        n = self.runs + 1
        variance = (0.25 + self.squares) / n
        stake = sqrt(_TUNED_FOR / (variance * n * log1p(n)))
        gain = x - offset - _MEANS
        # What a score of 0 on the easiest task, or of 1 on the hardest, could lose.
        above = _affordable(stake, _MEANS + offsets[1])
        below = _affordable(stake, 1 - _MEANS - offsets[0])
        total = self.total + x
        return type(self)(
            runs=n,
            total=total,
            squares=self.squares + (x - offset - (0.5 + total) / (n + 1)) ** 2,
            log_above=self.log_above + np.log1p(above * gain),
            log_below=self.log_below + np.log1p(-below * gain),
        )

    def interval(self, *, confidence: float) -> Interval:
        """The means refuted neither from above nor from below."""
        limit = log(2 / (1 - confidence_level(confidence)))
        # The wealth against a mean falls as the mean grows (rises, from below): what is refuted
        # lies at the ends.
        too_low = int((self.log_above >= limit).sum())
        too_high = int((self.log_below >= limit).sum())
        low = _MEANS[max(too_low - 1, 0)]
        high = _MEANS[min(_MEANS.size - too_high, _MEANS.size - 1)]
        return Interval(float(min(low, high)), float(max(low, high)))


def confidence_sequence(runs: int, total: float, *, confidence: float = CONFIDENCE) -> Interval:
    """The rates that a uniform mixture of likelihood ratios has not yet refuted (Robbins 1970).

    `total` is the sum of `runs` observations in [0, 1] with a common mean: passes, or scores
    (a power likelihood of a bounded variable lies below the chord, so the ratio stays fair).

    >>> confidence_sequence(100, 80)
    Interval(low=0.651..., high=0.907...)
    """
    runs, total = whole_number("runs", runs, least=0), finite_number("total", total)
    if not 0 <= total <= runs:
        raise ArgumentError("total", f"must lie in [0, {runs}]", total)
    limit = -log(1 - confidence_level(confidence))
    if runs == 0:
        return Interval(0.0, 1.0)
    mixture = float(betaln(total + 1, runs - total + 1))
    centre = total / runs

    def refuted(rate: float) -> bool:
        fit = float(xlogy(total, rate) + xlog1py(runs - total, -rate))
        return mixture - fit >= limit

    low = _edge(refuted, outside=0.0, inside=centre)
    high = _edge(refuted, outside=1.0, inside=centre)
    return Interval(low, high)


def suite_sequence(
    runs: Sequence[int], passes: Sequence[int], *, k: int = 1, confidence: float = CONFIDENCE
) -> Estimate:
    """The mean over tasks of p^k, with an interval that holds however each task was stopped.

    An interval for a fixed number of runs misses the truth too often here, because tasks stop when
    their counts look decided. For each task the mixture likelihood ratio of Robbins (1970) against
    its true rate is fair at any stopping time, and a product of such bets on independent tasks is
    fair too (Vovk and Wang 2021). So all rates at which the product stays below
    1 / (1 - confidence) form a confidence set, and the bounds are the least and the largest mean
    in it.

    >>> suite_sequence([40, 60], [40, 54], k=3).interval
    Interval(low=0.554..., high=0.986...)
    """
    n, c = np.asarray(runs, float)[:, None], np.asarray(passes, float)[:, None]
    # The log of the mixture likelihood ratio of each task against every rate.
    against = betaln(c + 1, n - c + 1) - (xlogy(c, _RATES) + xlog1py(n - c, -_RATES))
    limit = -np.log(1 - confidence)
    share = _RATES**k / len(runs)
    values = [pass_hat_k(*counts, k) for counts in zip(runs, passes, strict=True)]
    return Estimate(
        value=sum(values) / len(values),
        interval=Interval(
            max(0.0, _least_sum(share, against, limit)),
            min(1.0, -_least_sum(-share, against, limit)),
        ),
        method="product of mixture likelihood ratios (Robbins 1970; Vovk and Wang 2021)",
        confidence=confidence,
        scope="this suite",
        tasks=len(runs),
        runs=sum(runs),
    )


def _affordable(stake: float, worst: Floats) -> Floats:
    """The stake, lowered where the worst score would lose too much of the wealth."""
    return np.asarray(np.minimum(stake, _LARGEST_LOSS / np.maximum(worst, _LARGEST_LOSS / _MOST)))


def _edge(refuted: Callable[[float], bool], *, outside: float, inside: float) -> float:
    if not refuted(outside):
        return outside
    return bisect(lambda rate: not refuted(rate), outside, inside)[0]


def _least_sum(part: Floats, against: Floats, limit: float) -> float:
    """A lower bound on the sum of `part` over tasks, where the evidence stays within `limit`.

    By Lagrange duality: every price of evidence gives a bound.
    """
    bounds = [np.min(part + price * against, axis=1).sum() - price * limit for price in _PRICES]
    return float(max(bounds))


# Bets on a randomly drawn task: per-task predictions projected onto the hypothesis on their mean.
#
# All functions take any leading axes (the two sides of a gate, repetitions of a simulation); the
# last axis runs over tasks. A bet multiplies the wealth by 1 + stake (x - centre of the task
# drawn).

# The index of the task drawn: (task,), or (repetitions, tasks) in a simulation.
Drawn = tuple[int] | tuple[Counts, Counts]

# The first axis of a wealth: the bet that the suite is good, and the bet that it is not.
PASS_SIDE, FAIL_SIDE = 0, 1

# How alike the runs of one task may be (intraclass correlation), and the weight of each before any
# run: suites of agents have about 0.7; 0 costs nothing when tasks are in fact alike.
ICCS = np.array([0.0, 0.1, 0.3, 0.7])
ICC_LOG_WEIGHTS = np.log([0.15, 0.1, 0.15, 0.6])

# A bet never risks all wealth, which rounding could then lose.
_LARGEST_PROJECTION_LOSS = 0.999
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
        grown = 1 + stake[..., None]
        centres = 2 * rates / (grown + np.sqrt(grown * grown - 4 * stake[..., None] * rates))
        excess = _mean(centres) - mean
        if np.abs(excess).max() < _MEAN_TOLERANCE:
            break
        slope = _mean(centres * (1 - centres) / (1 + stake[..., None] * (1 - 2 * centres)))
        stake = np.maximum(stake + np.clip(excess / slope, -0.5, 0.5 + stake), 0.0)
    # The guarantee needs the mean exactly and the factor not below 0; the rest is only power.
    centres = centres + (mean - _mean(centres))[..., None]
    return np.minimum(stake, _LARGEST_PROJECTION_LOSS / centres.max(axis=-1)), centres


def _mean(values: Floats) -> Floats:
    # Several times faster than np.mean on a few tasks, and this is the hot path.
    return np.asarray(values.sum(axis=-1) / values.shape[-1])
