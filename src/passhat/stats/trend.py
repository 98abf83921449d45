"""Change over history: where a rate moved, and whether pass@k rises while pass^k falls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np

from passhat.arguments import CONFIDENCE, probability, whole_number
from passhat.dataclass import short_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, confidence_level
from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.group_spread import DaySpread, longer_arms
from passhat.stats.series import MeanSeries, PassSeries
from passhat.stats.special import ndtr, ndtri
from passhat.stats.task_series import TaskSeries

Direction = Literal["up", "down"]
Series = PassSeries | MeanSeries | TaskSeries

DEFAULT_HORIZON = 100
LONGEST_HORIZON = 2_000

# Points after an alarm that are still used to place the change.
_HINDSIGHT = 4
# A day that shifts logits moves a rate further down than up, which a normal law ignores. With the
# whole threshold, days that move by 0.3 logit raise a false alarm in 5.0 % of histories
# (bench/calibrate/dependence.py); this share of it keeps them below that.
_OF_DAYS = 0.7
_ALLOWING = ", allowing for the spread between days"

# The threshold of alarms is simulated once, always with the same draws, 16 MB of them.
_CALIBRATION_SEED = 20_261_115
_CALIBRATION_CELLS = 2_000_000


@short_dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """The rate moved at `position` (the first point of the new rate), which `alarm` showed.

    `before` is the level since the previous change (or the beginning), `after` the level until the
    next change (or the end), over the tasks of both; `p_value` uses the points up to the alarm.
    `interval` is for the size given the place, with the spread between days. The place was chosen
    because the difference is large there, so the size tends to be overestimated.
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

    An alarm depends on no later point, so looking after every commit raises no more false alarms.
    Up to four points after the alarm help to place the change, and all points until the next change
    to measure its size. `day_sigma` is how much the agent seems to move from point to point without
    a change, in logits: alarms allow for it.
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
    threshold = alarm_threshold(rate, span) * (_OF_DAYS if _has_days(series) else 1.0)
    found: list[ChangePoint] = []
    start, looked = 0, 0
    spread = DaySpread.unknown()
    while (alarm := _first_alarm(series, start, looked, threshold, spread)) is not None:
        found.append(_located(series, alarm, start, confidence))
        spread = _learned(series, spread, start, found[-1].position)
        start, looked = found[-1].position, alarm.newest + 1
    spread = _learned(series, spread, start, len(series))
    return Changes(
        points=_named(series, found, spread, confidence),
        false_alarm=rate,
        horizon=span,
        threshold=threshold,
        method=f"{series.test}, dyadic windows against all before{_ALLOWING * _has_days(series)}",
        day_sigma=spread.sigma if _has_days(series) else None,
        confidence=confidence,
        observations=len(series),
        seed=_CALIBRATION_SEED,
    )


@lru_cache(maxsize=32)
def alarm_threshold(false_alarm: float, horizon: int) -> float:
    """The p-value below which an alarm is raised, so that `horizon` calm points raise none.

    A quantile of the smallest p over all windows in simulated Gaussian histories without a change.
    Exact tests of counts have larger p-values, and so fewer alarms.

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
        spread = spread.after(*series.rate.days(start, end))
    return spread


def divergence(
    pass_at: MeanSeries | TaskSeries,
    pass_hat: MeanSeries | TaskSeries,
    *,
    confidence: float = CONFIDENCE,
) -> DivergingTrend | Unavailable:
    """Whether a history shows pass@k going up while pass^k goes down.

    Two points compare two versions; more are fitted by a weighted line, in a series of tasks with
    each task around its own level.

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


@short_dataclass(frozen=True, slots=True, kw_only=True)
class _Alarm:
    """The newest point when old and new first differed, and the series that showed it."""

    newest: int
    by: Series


def _first_alarm(
    series: Series, start: int, looked: int, threshold: float, spread: DaySpread
) -> _Alarm | None:
    """The first point, from `looked` on, at which old and new differ.

    pass^k of a few tasks varies so much that it can hide a clear fall. The pass rate shows that
    fall, so both are tested, each with half of the false alarms allowed.
    """
    tests = _tests(series)
    line = threshold / len(tests)
    for newest in range(max(start + 1, looked), len(series)):
        windows = _windows(start, newest + 1, newest)
        for test in tests:
            if _apart(test, windows, line, spread):
                return _Alarm(newest=newest, by=test)
    return None


def _apart(
    series: Series, windows: tuple[Counts, Counts, Counts], line: float, spread: DaySpread
) -> bool:
    """Whether old and new differ in any window by more than the spread between days explains.

    That spread comes from old points only, so that a change does not hide itself.
    """
    if not isinstance(series, TaskSeries):
        return bool((series.p_values(*windows) <= line).any())
    for start, split, end in series.near(*windows, below=line):
        known = _learned(series, spread, start, split)
        moved = series.days_between(start, split, end)
        # Where days alone explain the difference, the costly exact test is not needed.
        if known.p_value(*moved, plain_p=0.0) <= line:
            exact = series.exact_p(start, split, end)
            if known.p_value(*moved, plain_p=exact) <= line:
                return True
    return False


def _tests(series: Series) -> tuple[Series, ...]:
    if isinstance(series, TaskSeries) and series.k > 1:
        return series.rate, series
    return (series,)


def _has_days(series: Series) -> bool:
    return isinstance(series, TaskSeries)


def _learned(series: Series, spread: DaySpread, start: int, end: int) -> DaySpread:
    """The spread between days after the points of a stretch without a change.

    Measured on the pass rate, which shows it best: the spread is that of its logit.
    """
    return spread.after(*series.rate.days(start, end)) if isinstance(series, TaskSeries) else spread


def _located(series: Series, alarm: _Alarm, start: int, confidence: float) -> ChangePoint:
    """The split up to the alarm at which old and new differ most clearly.

    The alarm uses past points only; a few later ones help to place the change.
    """
    end = min(alarm.newest + 1 + _HINDSIGHT, len(series))
    splits = np.arange(start + 1, alarm.newest + 1)
    starts, ends = np.full(splits.size, start), np.full(splits.size, end)
    best = int(alarm.by.clarity(starts, splits, ends).argmax())
    at = int(splits[best])
    (p,) = alarm.by.p_values(starts[:1], splits[best : best + 1], ends[:1])
    before, after = series.levels(start, at, end)
    return ChangePoint(
        position=at,
        alarm=alarm.newest,
        direction="up" if after > before else "down",
        before=before,
        after=after,
        interval=series.difference(start, at, end, confidence),
        p_value=float(p),
    )


def _named(
    series: Series, found: Sequence[ChangePoint], spread: DaySpread, confidence: float
) -> tuple[ChangePoint, ...]:
    """The changes with the levels next to them, without those in which pass^k may not have changed.

    If a change is left out, its two stretches become one.
    """
    points = tuple(_between_neighbours(series, found, spread, confidence))
    clear = [one for one in points if 0 not in one.interval]
    if len(clear) == len(points) or not isinstance(series, TaskSeries):
        return points
    return _named(series, clear, spread, confidence)


def _between_neighbours(
    series: Series, found: Sequence[ChangePoint], spread: DaySpread, confidence: float
) -> Iterator[ChangePoint]:
    """The same changes, each with the levels of the stretches next to it, and days in the interval.

    The points of an alarm may reach beyond the next change: one change's `after` would then not be
    the next one's `before`.
    """
    ends = [0, *(change.position for change in found), len(series)]
    for change, start, end in zip(found, ends, ends[2:], strict=False):
        split = change.position
        before, after = series.levels(start, split, end)
        if np.isnan(before):  # no task was run in both stretches: the size at the alarm is kept
            yield change
            continue
        yield replace(
            change,
            direction="up" if after > before else "down",
            before=before,
            after=after,
            interval=_with_days(series, spread, (start, split, end), confidence),
        )


def _with_days(
    series: Series, spread: DaySpread, window: tuple[int, int, int], confidence: float
) -> Interval:
    """The interval of a change, widened by the spread between days."""
    found = series.difference(*window, confidence)
    if not isinstance(series, TaskSeries):
        return found
    start, split, end = window
    before, after = series.levels(*window)
    days = 1 / (split - start) + 1 / (end - split)
    slope = (series.slope(start, split) + series.slope(split, end)) / 2
    wide = longer_arms(found, after - before, spread.arms(found, slope, days, confidence))
    return Interval(max(-1.0, wide.low), min(1.0, wide.high))


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
