"""The divergence "pass@k up while pass^k down": more can be done, less can be depended on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat.defaults import CONFIDENCE
from passhat.errors import ArgumentError
from passhat.messages import repr_fields
from passhat.stats.arguments import confidence_level
from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.series import MeanSeries
from passhat.stats.special import ndtr, ndtri
from passhat.stats.task_series import TaskSeries

Series = MeanSeries | TaskSeries


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergingTrend:
    """Whether pass@k rose while pass^k fell, and how much each moved from first to last.

    `p_value` is the larger of the two one-sided ones: both must hold, so neither is corrected
    (an intersection-union test; Berger, 1982).
    """

    name: str = "pass@k up while pass^k down"
    diverging: bool
    p_value: float
    rise: Estimate
    fall: Estimate
    method: str
    confidence: float
    observations: int

    __repr__ = repr_fields


def divergence(
    pass_at: Series, pass_hat: Series, *, confidence: float = CONFIDENCE
) -> DivergingTrend | Unavailable:
    """Whether a history shows pass@k going up while pass^k goes down.

    Two points compare two versions; more are fitted by a weighted line, which a series of tasks
    has for each task around its own level.

    >>> at = MeanSeries([0.80, 0.84, 0.90], [0.01, 0.01, 0.01])
    >>> hat = MeanSeries([0.50, 0.46, 0.38], [0.02, 0.02, 0.02])
    >>> found = divergence(at, hat)
    >>> found.diverging, round(found.rise.value, 2), round(found.fall.value, 2)
    (True, 0.1, -0.12)
    """
    confidence = confidence_level(confidence)
    if len(pass_at) != len(pass_hat):
        lengths = (len(pass_at), len(pass_hat))
        raise ArgumentError("pass_at and pass_hat", "must be of one length", lengths)
    if len(pass_at) < 2:
        return Unavailable(f"a trend needs 2 points; there are {len(pass_at)}")
    (rise, rise_error), (fall, fall_error) = _change(pass_at), _change(pass_hat)
    if not (rise_error > 0 and fall_error > 0):
        return Unavailable("a trend needs tasks that were run at more than one point")
    p = float(max(ndtr(-rise / rise_error), ndtr(fall / fall_error)))
    return DivergingTrend(
        diverging=p <= 1 - confidence,
        p_value=p,
        rise=_estimate(rise, rise_error, confidence),
        fall=_estimate(fall, fall_error, confidence),
        method="weighted lines, intersection-union",
        confidence=confidence,
        observations=len(pass_at),
    )


def _change(series: Series) -> tuple[float, float]:
    """How much the weighted line moves from the first point to the last, and its error."""
    if isinstance(series, TaskSeries):
        return series.change()
    weight = 1 / series.error**2
    place = np.linspace(0, 1, len(series))
    off = place - weight @ place / weight.sum()
    information = float(weight @ off**2)
    return float((weight * off) @ series.value / information), information**-0.5


def _estimate(value: float, error: float, confidence: float) -> Estimate:
    half = float(ndtri(0.5 + confidence / 2)) * error
    return Estimate(
        value=value,
        interval=Interval(value - half, value + half),
        method="weighted line, normal",
        confidence=confidence,
    )
