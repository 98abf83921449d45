"""Intervals for a mean that hold at every moment at once, however often one looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, log1p, sqrt
from typing import Self

from scipy.special import betaln, xlog1py, xlogy

from passhat.errors import ArgumentError
from passhat.stats.arguments import confidence_level
from passhat.stats.estimate import Interval

_BISECTIONS = 60
_LARGEST_WEIGHT = 0.5
# The weights are best at 95 %; the interval holds at any confidence.
_TUNED_FOR = log(2 / 0.05)


@dataclass(frozen=True, slots=True, kw_only=True)
class BernsteinSequence:
    """A running mean of scores in [0, 1] whose interval narrows with their variance.

    The predictable plug-in empirical Bernstein sequence of Waudby-Smith & Ramdas (2024, theorem 2).

    >>> sequence = BernsteinSequence()
    >>> for x in [0.75, 0.8, 0.85, 0.8] * 50:
    ...     sequence = sequence.after(x)
    >>> sequence.interval(confidence=0.95)
    Interval(low=0.7..., high=0.8...)
    """

    runs: int = 0
    total: float = 0.0
    squares: float = 0.0
    weights: float = 0.0
    weighted: float = 0.0
    penalty: float = 0.0

    def after(self, x: float) -> Self:
        """One more score; its weight depends on earlier ones only."""
        n = self.runs + 1
        mean, variance = (0.5 + self.total) / n, (0.25 + self.squares) / n
        weight = min(_LARGEST_WEIGHT, sqrt(2 * _TUNED_FOR / (variance * n * log1p(n))))
        total = self.total + x
        return type(self)(
            runs=n,
            total=total,
            squares=self.squares + (x - (0.5 + total) / (n + 1)) ** 2,
            weights=self.weights + weight,
            weighted=self.weighted + weight * x,
            penalty=self.penalty + (x - mean) ** 2 * (-log1p(-weight) - weight),
        )

    def interval(self, *, confidence: float) -> Interval:
        """The means not yet refuted."""
        if not self.runs:
            return Interval(0.0, 1.0)
        miss = 1 - confidence_level(confidence)
        centre = self.weighted / self.weights
        radius = (log(2 / miss) + self.penalty) / self.weights
        return Interval(max(0.0, centre - radius), min(1.0, centre + radius))


def confidence_sequence(runs: int, total: float, *, confidence: float = 0.95) -> Interval:
    """The rates that a uniform mixture of likelihood ratios has not yet refuted (Robbins 1970).

    `total` is the sum of `runs` observations in [0, 1] with a common mean: passes, or scores
    (a power likelihood of a bounded variable lies below the chord, so the ratio stays fair).

    >>> confidence_sequence(100, 80)
    Interval(low=0.651..., high=0.907...)
    """
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


def _edge(refuted: Callable[[float], bool], *, outside: float, inside: float) -> float:
    if not refuted(outside):
        return outside
    for _ in range(_BISECTIONS):
        middle = (outside + inside) / 2
        if refuted(middle):
            outside = middle
        else:
            inside = middle
    return outside
