"""Change over history: where a rate moved, and whether pass@k rises while pass^k falls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np

from passhat.defaults import CONFIDENCE
from passhat.errors import ArgumentError
from passhat.fast_dataclass import short_dataclass
from passhat.stats.arguments import Counts, confidence_level, probability, whole_number
from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.group_spread import DaySpread
from passhat.stats.series import MeanSeries, PassSeries
from passhat.stats.special import ndtr, ndtri
from passhat.stats.task_series import TaskSeries

Direction = Literal["up", "down"]
Series = PassSeries | MeanSeries | TaskSeries

DEFAULT_HORIZON = 100
LONGEST_HORIZON = 2_000

# Points after an alarm that may still move the place of the change.
_HINDSIGHT = 4
_ALLOWING = ", allowing for the spread between days"

# The threshold of alarms is simulated once, always with the same draws, 16 MB of them.
_CALIBRATION_SEED = 20_261_115
_CALIBRATION_CELLS = 2_000_000


@short_dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """The rate moved at `position` (the first point of the new rate), which `alarm` showed.

    `before` is the level from the change before it (or the beginning), `after` that until the next
    change (or the end), over the tasks of both; `p_value` is that of the alarm's own points.
    `interval` is for the size given the place; the place was chosen because the difference is
    large there, so the size is on the large side.
    """

    position: int
    alarm: int
    direction: Direction
    before: float
    after: float
    interval: Interval
    p_value: float

    @property
    def size(self) -> float:
        return self.after - self.before


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes in a history, found with a chance `false_alarm` of any in `horizon` calm points.

    An alarm depends on no later point, so looking after every commit costs nothing. Where the
    change is follows from up to four points after the alarm, too, and how large it is from all
    points until the next change. `day_sigma` is how much the agent seems to move from point to
    point without a change, in logits: alarms allow for it.
    """

    points: tuple[ChangePoint, ...]
    false_alarm: float
    horizon: int
    threshold: float
    method: str
    confidence: float
    observations: int
    seed: int
    day_sigma: float | None = None


@short_dataclass(frozen=True, slots=True, kw_only=True)
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


def change_points(
    series: Series,
    *,
    false_alarm: float = 0.05,
    horizon: int = DEFAULT_HORIZON,
    confidence: float = CONFIDENCE,
) -> Changes:
    """Where the rate changed, point by point: the newest 1, 2, 4, ... against all before them.

    `false_alarm` is the chance of any alarm in `horizon` points at which nothing changes.

    >>> history = PassSeries([50] * 12, [45, 44, 46, 45, 43, 46, 45, 44, 31, 30, 33, 32])
    >>> [(p.position, p.alarm, p.direction) for p in change_points(history).points]
    [(8, 8, 'down')]
    """
    rate = probability("false_alarm", false_alarm, open_ends=True)
    span = whole_number("horizon", horizon, least=2)
    if span > LONGEST_HORIZON:
        rule = f"must be at most {LONGEST_HORIZON}: state the rate of false alarms for fewer points"
        raise ArgumentError("horizon", rule, horizon)
    confidence = confidence_level(confidence)
    threshold = alarm_threshold(rate, span)
    found: list[ChangePoint] = []
    start, looked = 0, 0
    spread = DaySpread.unknown()
    while (alarm := _first_alarm(series, start, looked, threshold, spread)) is not None:
        found.append(_located(series, start, alarm, confidence))
        spread = _learned(series, spread, start, found[-1].position)
        start, looked = found[-1].position, alarm + 1
    return Changes(
        points=tuple(_between_neighbours(series, found, confidence)),
        false_alarm=rate,
        horizon=span,
        threshold=threshold,
        method=f"{series.test}, dyadic windows against all before{_ALLOWING * _has_days(series)}",
        day_sigma=_learned(series, spread, start, len(series)).sigma if _has_days(series) else None,
        confidence=confidence,
        observations=len(series),
        seed=_CALIBRATION_SEED,
    )


@lru_cache(maxsize=32)
def alarm_threshold(false_alarm: float, horizon: int) -> float:
    """The p-value below which an alarm is raised, so that `horizon` calm points raise none.

    The chance of the smallest p over all windows, from calm Gaussian histories. Exact tests
    of counts have larger p-values than that, and fewer alarms.

    >>> 5e-5 < alarm_threshold(0.05, 100) < 5e-4
    True
    """
    rng = np.random.default_rng(_CALIBRATION_SEED)
    histories = max(2_000, _CALIBRATION_CELLS // horizon)
    sums = np.zeros((horizon + 1, histories))
    np.cumsum(rng.standard_normal((horizon, histories)), axis=0, out=sums[1:])
    largest = np.zeros(histories)
    start, split, end = _windows(0, horizon, 0)
    for s, k, e in zip(start, split, end, strict=True):
        gap = (sums[e] - sums[k]) / (e - k) - (sums[k] - sums[s]) / (k - s)
        np.maximum(largest, np.abs(gap) / np.sqrt(1 / (e - k) + 1 / (k - s)), out=largest)
    return float(2 * ndtr(-np.quantile(largest, 1 - false_alarm)))


def day_spread(series: TaskSeries, found: Changes) -> DaySpread:
    """How far the points of a history lie apart between its changes."""
    spread = DaySpread.unknown()
    ends = [0, *(change.position for change in found.points), len(series)]
    for start, end in pairwise(ends):
        spread = spread.after(*series.days(start, end))
    return spread


def divergence(
    pass_at: MeanSeries | TaskSeries,
    pass_hat: MeanSeries | TaskSeries,
    *,
    confidence: float = CONFIDENCE,
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
    (rise, rise_error), (fall, fall_error) = _weighted_line(pass_at), _weighted_line(pass_hat)
    if not (rise_error > 0 and fall_error > 0):
        return Unavailable("a trend needs tasks that were run at more than one point")
    p = float(max(ndtr(-rise / rise_error), ndtr(fall / fall_error)))
    return DivergingTrend(
        diverging=p <= 1 - confidence,
        p_value=p,
        rise=_line_change(rise, rise_error, confidence),
        fall=_line_change(fall, fall_error, confidence),
        method="weighted lines, intersection-union",
        confidence=confidence,
        observations=len(pass_at),
    )


def _windows(start: int, length: int, looked: int) -> tuple[Counts, Counts, Counts]:
    """(start, split, end) of every comparison whose newest point is `looked` or later."""
    rows = []
    for newest in range(max(start + 1, looked), length):
        width = 1
        while width <= newest - start:
            rows.append((start, newest + 1 - width, newest + 1))
            width *= 2
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _first_alarm(
    series: Series, start: int, looked: int, threshold: float, spread: DaySpread
) -> int | None:
    """Point by point: after a change most comparisons are clear, and need not be made."""
    for newest in range(max(start + 1, looked), len(series)):
        windows = _windows(start, newest + 1, newest)
        p = series.p_values(*windows, below=threshold)
        for i in np.flatnonzero(p <= threshold).tolist():
            split, end = int(windows[1][i]), int(windows[2][i])
            if _allowing_for_days(series, spread, (start, split, end), float(p[i])) <= threshold:
                return newest
    return None


def _has_days(series: Series) -> bool:
    return isinstance(series, TaskSeries)


def _allowing_for_days(
    series: Series, spread: DaySpread, window: tuple[int, int, int], plain_p: float
) -> float:
    """The p-value of a window where every point may have moved by itself.

    Only old points say by how much, so that a change does not hide itself.
    """
    if not isinstance(series, TaskSeries):
        return plain_p
    start, split, end = window
    known = _learned(series, spread, start, split)
    return known.p_value(*series.days_between(start, split, end), plain_p=plain_p)


def _learned(series: Series, spread: DaySpread, start: int, end: int) -> DaySpread:
    """What the points of a stretch without a change say of the spread between days."""
    return spread.after(*series.days(start, end)) if isinstance(series, TaskSeries) else spread


def _located(series: Series, start: int, alarm: int, confidence: float) -> ChangePoint:
    """The split up to the alarm at which old and new differ most clearly.

    The alarm comes of the past alone; where it points to is clearer with some points more.
    """
    end = min(alarm + 1 + _HINDSIGHT, len(series))
    splits = np.arange(start + 1, alarm + 1)
    starts, ends = np.full(splits.size, start), np.full(splits.size, end)
    best = int(series.clarity(starts, splits, ends).argmax())
    at = int(splits[best])
    (p,) = series.p_values(starts[:1], splits[best : best + 1], ends[:1])
    before, after = series.levels(start, at, end)
    return ChangePoint(
        position=at,
        alarm=alarm,
        direction="up" if after > before else "down",
        before=before,
        after=after,
        interval=series.difference(start, at, end, confidence),
        p_value=float(p),
    )


def _between_neighbours(
    series: Series, found: Sequence[ChangePoint], confidence: float
) -> Iterator[ChangePoint]:
    """The same changes, each with the levels of the stretches next to it.

    An alarm's own points may reach over the next change: one change's `after` would then not be the
    next one's `before`.
    """
    ends = [0, *(change.position for change in found), len(series)]
    for change, start, end in zip(found, ends, ends[2:], strict=False):
        before, after = series.levels(start, change.position, end)
        if np.isnan(before):  # no task was run in both stretches: the size at the alarm is kept
            yield change
            continue
        yield replace(
            change,
            direction="up" if after > before else "down",
            before=before,
            after=after,
            interval=series.difference(start, change.position, end, confidence),
        )


def _weighted_line(series: MeanSeries | TaskSeries) -> tuple[float, float]:
    """How much the weighted line moves from the first point to the last, and its error."""
    if isinstance(series, TaskSeries):
        return series.change()
    weight = 1 / series.error**2
    place = np.linspace(0, 1, len(series))
    off = place - weight @ place / weight.sum()
    information = float(weight @ off**2)
    return float((weight * off) @ series.value / information), information**-0.5


def _line_change(value: float, error: float, confidence: float) -> Estimate:
    half = float(ndtri(0.5 + confidence / 2)) * error
    return Estimate(
        value=value,
        interval=Interval(value - half, value + half),
        method="weighted line, normal",
        confidence=confidence,
    )
