"""Intervals for a mean that hold after every run at once, however often one looks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import log, log1p, sqrt
from typing import Self

import numpy as np

from passhat.arguments import CONFIDENCE, finite_number, whole_number
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Floats, confidence_level
from passhat.stats.estimate import Estimate, Interval
from passhat.stats.passk import pass_hat_k
from passhat.stats.roots import bisected
from passhat.stats.special import betaln, xlog1py, xlogy

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
    against = _log_evidence(np.asarray(runs, float)[:, None], np.asarray(passes, float)[:, None])
    limit = -np.log(1 - confidence)
    share = _RATES**k / len(runs)
    values = [pass_hat_k(n, c, k) for n, c in zip(runs, passes, strict=True)]
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
    return bisected(lambda rate: not refuted(rate), outside, inside)[0]


def _log_evidence(runs: Floats, passes: Floats) -> Floats:
    """The log of the mixture likelihood ratio of each task against every rate."""
    fit = xlogy(passes, _RATES) + xlog1py(runs - passes, -_RATES)
    return np.asarray(betaln(passes + 1, runs - passes + 1) - fit)


def _least_sum(part: Floats, against: Floats, limit: float) -> float:
    """A lower bound on the sum of `part` over tasks, where the evidence stays within `limit`.

    By Lagrange duality: every price of evidence gives a bound.
    """
    bounds = [np.min(part + price * against, axis=1).sum() - price * limit for price in _PRICES]
    return float(max(bounds))
