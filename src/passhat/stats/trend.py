"""Change over history: where a rate moved, and whether pass@k rises while pass^k falls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from passhat.arguments import CONFIDENCE, confidence_level, probability, whole_number
from passhat.dataclass import result_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats, float_array, one_of, trial_counts
from passhat.stats.beta_binomial import fit_cells
from passhat.stats.dependent_runs import BetweenDayVariance, wider_margins
from passhat.stats.estimate import Estimate, Interval, Unavailable, independent_difference
from passhat.stats.numerics import log_probability, upper_tail
from passhat.stats.passk import beta_moments, run_covariances, share_of_passing_subsets
from passhat.stats.proportions import proportion_bounds
from passhat.stats.special import bdtrik, ndtr, ndtri
from passhat.stats.sufficient_statistics import count_cells
from passhat.stats.suite_mean import METRICS, suite_estimate

Direction = Literal["up", "down"]


@result_dataclass(frozen=True, slots=True, eq=False)
class PassSeries:
    """Runs and passes at each point of a history (a commit, a day), oldest first.

    Pooled counts of tasks that differ in difficulty vary less than a binomial: alarms are then
    rarer than stated. A MeanSeries with the error of "this suite" is sharper.
    """

    n: Counts
    c: Counts
    test: ClassVar[str] = "Fisher exact"

    def __post_init__(self) -> None:
        runs, passes = trial_counts(self.n, self.c)
        if runs.ndim != 1 or (runs == 0).any():
            raise ArgumentError("n", "must be one number >= 1 per point of the history", self.n)
        object.__setattr__(self, "n", runs)
        object.__setattr__(self, "c", passes)

    def __len__(self) -> int:
        return int(self.n.size)

    def p_values(self, start: Counts, split: Counts, end: Counts) -> Floats:
        """Fisher's exact two-sided p of [start, split) against [split, end)."""
        runs, passes = _running(self.n), _running(self.c)
        n_old, n_new = runs[split] - runs[start], runs[end] - runs[split]
        c_old, c_new = passes[split] - passes[start], passes[end] - passes[split]
        total = c_old + c_new
        rarer = np.minimum(
            upper_tail(c_new, n_new, n_old, total), upper_tail(c_old, n_old, n_new, total)
        )
        return np.asarray(np.minimum(1.0, 2 * rarer))

    def clarity(self, start: Counts, split: Counts, end: Counts) -> Floats:
        """How clearly old and new differ: larger is clearer."""
        return -self.p_values(start, split, end)

    def levels(self, start: int, split: int, end: int) -> tuple[float, float]:
        """The rate of [start, split) and that of [split, end)."""
        sides = slice(start, split), slice(split, end)
        old, new = (float(self.c[side].sum() / self.n[side].sum()) for side in sides)
        return old, new

    def difference(self, start: int, split: int, end: int, confidence: float) -> Interval:
        """Newcombe's (1998) interval for the new rate minus the old one."""
        sides = [slice(start, split), slice(split, end)]
        n = np.array([self.n[side].sum() for side in sides])
        c = np.array([self.c[side].sum() for side in sides])
        low, high = proportion_bounds(c, n, confidence=confidence)
        old, new = c / n
        down = np.hypot(new - low[1], high[0] - old)
        up = np.hypot(high[1] - new, old - low[0])
        return Interval(float(new - old - down), float(new - old + up))


@result_dataclass(frozen=True, slots=True, eq=False)
class MeanSeries:
    """A value and its standard error at each point of a history, oldest first."""

    value: Floats
    error: Floats
    test: ClassVar[str] = "normal"

    def __post_init__(self) -> None:
        value, error = float_array("value", self.value), float_array("error", self.error)
        if value.ndim != 1 or value.shape != error.shape or not np.isfinite(value).all():
            raise ArgumentError("value", "must be one finite number per point", self.value)
        if not (np.isfinite(error) & (error > 0)).all():
            rule = "must be above 0 at every point; if nothing varies, use a PassSeries"
            raise ArgumentError("error", rule, self.error)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "error", error)

    def __len__(self) -> int:
        return int(self.value.size)

    def p_values(self, start: Counts, split: Counts, end: Counts) -> Floats:
        """Two-sided normal p of [start, split) against [split, end), weighted by precision."""
        return np.asarray(2 * ndtr(-self.clarity(start, split, end)))

    def clarity(self, start: Counts, split: Counts, end: Counts) -> Floats:
        """How many standard errors apart old and new are."""
        weight = 1 / self.error**2
        weights, sums = _running(weight), _running(weight * self.value)
        w_old, w_new = weights[split] - weights[start], weights[end] - weights[split]
        old = (sums[split] - sums[start]) / w_old
        new = (sums[end] - sums[split]) / w_new
        return np.asarray(np.abs(new - old) / np.sqrt(1 / w_old + 1 / w_new))

    def levels(self, start: int, split: int, end: int) -> tuple[float, float]:
        """The mean of [start, split) and that of [split, end), weighted by precision."""
        sides, weight = (slice(start, split), slice(split, end)), 1 / self.error**2
        old, new = (float(weight[s] @ self.value[s] / weight[s].sum()) for s in sides)
        return old, new

    def difference(self, start: int, split: int, end: int, confidence: float) -> Interval:
        weight = 1 / self.error**2
        variance = 1 / weight[start:split].sum() + 1 / weight[split:end].sum()
        half = ndtri(0.5 + confidence / 2) * np.sqrt(variance)
        old, new = self.levels(start, split, end)
        middle = new - old
        return Interval(float(middle - half), float(middle + half))


@dataclass(frozen=True, eq=False)
class TaskSeries:
    """Runs and passes of every task (columns) at each point of a history (rows), oldest first.

    A task that was not run at a point has 0 runs there. Two stretches are compared over the tasks
    that both ran, each by its own runs: a task that was left out, or is new, changes nothing.
    """

    n: Counts
    c: Counts
    k: int = 1
    metric: str = "pass^k"
    test: ClassVar[str] = "permutation, task by task"

    def __post_init__(self) -> None:
        runs, passes = trial_counts(self.n, self.c)
        if runs.ndim != 2:
            rule = "must have a row for each point and a column for each task"
            raise ArgumentError("n", rule, runs.shape)
        # pass@k of the passes is 1 - pass^k of the failures.
        if one_of("metric", self.metric, METRICS) == "pass@k":
            passes = runs - passes
        object.__setattr__(self, "n", runs)
        object.__setattr__(self, "c", passes)
        object.__setattr__(self, "k", whole_number("k", self.k))

    def __len__(self) -> int:
        return len(self.n)

    @cached_property
    def rate(self) -> TaskSeries:
        """The same history by its pass rate, which shows a change of tasks soonest."""
        passes = self.n - self.c if self.metric == "pass@k" else self.c
        return self if self.k == 1 else TaskSeries(self.n, passes)

    def by(self, metric: str) -> TaskSeries:
        """The same history by another metric; what is found out of the pass rate serves both."""
        passes = self.n - self.c if self.metric == "pass@k" else self.c
        other = TaskSeries(self.n, passes, k=self.k, metric=metric)
        if self.k > 1:
            other.__dict__["rate"] = self.rate
        return other

    def p_values(self, start: Counts, split: Counts, end: Counts) -> Floats:
        """Two-sided p of [start, split) against [split, end); 1 if no task ran in both.

        If no task changed, which of its runs are the new ones is chance alone, whatever its rate:
        a permutation test.
        """
        windows = zip(start.tolist(), split.tolist(), end.tolist(), strict=True)
        return np.array([self.exact_p(*window) for window in windows])

    def exact_p(self, start: int, split: int, end: int) -> float:
        """The permutation test of [start, split) against [split, end)."""
        window = start, split, end
        if window not in self._tested:
            old, new, both = self._sides(*window)
            counts = (part[both] for part in (*old, *new))
            self._tested[window] = permutation_p(*counts, k=self.k)
        return self._tested[window]

    @cached_property
    def _tested(self) -> dict[tuple[int, int, int], float]:
        return {}

    def near(
        self, start: Counts, split: Counts, end: Counts, *, below: float
    ) -> Iterator[tuple[int, int, int]]:
        """The windows whose p, by a normal distribution, is not far above `below`."""
        p = 2 * ndtr(-self.clarity(start, split, end))
        for i in np.flatnonzero(p < _WORTH_A_LOOK * below):
            yield int(start[i]), int(split[i]), int(end[i])

    def clarity(self, start: Counts, split: Counts, end: Counts) -> Floats:
        """How many standard errors apart old and new are, by the noise that posteriors expect."""
        block = max(1, _BLOCK // max(1, self.n.shape[1]))
        ratios = np.zeros(start.size)
        stretches, which = np.unique(np.column_stack((start, end)), axis=0, return_inverse=True)
        for i, (first, last) in enumerate(stretches.tolist()):
            places = np.flatnonzero(which.ravel() == i)
            for at in range(0, places.size, block):
                part = places[at : at + block]
                ratios[part] = self._ratio(first, split[part], last)
        return ratios

    def levels(self, start: int, split: int, end: int) -> tuple[float, float]:
        """The mean over the tasks that both stretches ran, in the old one and in the new."""
        old, new, both = self._sides(start, split, end)
        if not both.any():
            return float("nan"), float("nan")
        means = [float(self._values(n, c)[both].mean()) for n, c in (old, new)]
        if self.metric == "pass@k":
            means = [1 - mean for mean in means]
        return means[0], means[1]

    def difference(self, start: int, split: int, end: int, confidence: float) -> Interval:
        """The new mean minus the old one, from the intervals of both for these tasks."""
        old, new, both = self._sides(start, split, end)
        sides = [
            suite_estimate(n[both], c[both], k=self.k, confidence=confidence) for n, c in (new, old)
        ]
        moved = independent_difference(*sides)
        assert isinstance(moved, Estimate), "stretches that are compared share a task"
        assert moved.interval is not None, "the default has an interval"
        if self.metric == "pass@k":
            return Interval(-moved.interval.high, -moved.interval.low)
        return moved.interval

    def slope(self, start: int, end: int) -> float:
        """How much the mean moves per logit: of p^k it is k (p^k - p^(k+1))."""
        return self._slope(self._counts(start, end))

    def change(self) -> tuple[float, float]:
        """How much a line through every task moves from the first point to the last; its error.

        One slope for all tasks, each around its own level, a point weighted by its runs; NaN where
        no task was run twice.
        """
        runs = np.where(self.n >= self.k, self.n, 0)
        place = np.linspace(0, 1, len(self.n))[:, None]
        centre = (runs * place).sum(axis=0) / np.maximum(runs.sum(axis=0), 1)
        lever = runs * (place - centre)
        total = self.n.sum(axis=0), self.c.sum(axis=0)
        noise = self._noise(self.n, total, self._prior(0, len(self)))
        leverage = float((lever * (place - centre)).sum())
        if leverage <= 0:
            return float("nan"), float("nan")
        slope = float((lever * self._values(self.n, self.c)).sum()) / leverage
        error = float(np.sqrt((lever**2 * noise).sum())) / leverage
        return (-slope if self.metric == "pass@k" else slope), error

    def days(self, start: int, end: int) -> tuple[Floats, Floats, float]:
        """How far each point lies from its tasks' own levels, its variance from runs, the slope.

        The slope is how much the mean moves per logit: of p^k it is k (p^k - p^(k+1)).
        """
        runs, passes = self.n[start:end], self.c[start:end]
        ran = runs >= self.k
        tasks = np.maximum(ran.sum(axis=1), 1)
        total = self._counts(start, end)
        level = self._values(*total)
        moved = np.where(ran, self._values(runs, passes) - level, 0.0).sum(axis=1) / tasks
        expected = self._noise(runs, total, self._prior(start, end))
        noise = np.where(ran, expected, 0.0).sum(axis=1) / tasks**2
        some = ran.any(axis=1)
        return moved[some], noise[some], self._slope(total)

    def days_between(self, start: int, split: int, end: int) -> tuple[float, float, float, float]:
        """Old against new: the difference, its variance from runs, the slope, 1/old + 1/new."""
        moved, variance, tasks = self._moved(start, split, end)
        shared, slope = max(1, int(tasks)), self.slope(start, end)
        days = 1 / (split - start) + 1 / (end - split)
        return float(moved) / shared, float(variance) / shared**2, slope, days

    def _slope(self, total: tuple[Counts, Counts]) -> float:
        runs, passes = total
        able = runs > self.k
        if not able.any():
            return 0.0
        n, c, k = runs[able], passes[able], self.k
        fall = share_of_passing_subsets(n, c, k) - share_of_passing_subsets(n, c, k + 1)
        return float(k * fall.mean())

    def _prior(self, start: int, end: int) -> tuple[Floats, Floats]:
        """The beta prior of the tasks' rates in a stretch, fitted to that stretch alone.

        Fitted to the whole history it would be wrong on both sides of a change, and use later runs.
        """
        if (start, end) not in self._priors:
            cells = count_cells(*self._counts(start, end)).having(1)
            even = np.array(1.0), np.array(1.0)
            self._priors[start, end] = fit_cells(cells) if cells.n.size else even
        return self._priors[start, end]

    @cached_property
    def _priors(self) -> dict[tuple[int, int], tuple[Floats, Floats]]:
        return {}

    @cached_property
    def _running(self) -> tuple[Counts, Counts]:
        """Sums of the first 0, 1, 2, ... points."""
        empty = np.zeros((1, self.n.shape[1]), dtype=np.int64)
        sums = [np.concatenate((empty, np.cumsum(x, axis=0))) for x in (self.n, self.c)]
        return sums[0], sums[1]

    def _counts(self, start: Counts | int, end: Counts | int) -> tuple[Counts, Counts]:
        runs, passes = self._running
        return runs[end] - runs[start], passes[end] - passes[start]

    def _sides(
        self, start: Counts | int, split: Counts | int, end: Counts | int
    ) -> tuple[tuple[Counts, Counts], tuple[Counts, Counts], NDArray[np.bool_]]:
        """Runs and passes before and after a split, and which tasks have enough of both."""
        old, new = self._counts(start, split), self._counts(split, end)
        return old, new, np.asarray((old[0] >= self.k) & (new[0] >= self.k))

    def _moved(self, start: int, split: Counts | int, end: int) -> tuple[Floats, Floats, Floats]:
        """How far the tasks of both sides moved, the variance of that, and how many they are."""
        old, new, both = self._sides(start, split, end)
        pooled, prior = self._counts(start, end), self._prior(start, end)
        moved = np.where(both, self._values(*new) - self._values(*old), 0).sum(axis=-1)
        noise = self._noise(old[0], pooled, prior) + self._noise(new[0], pooled, prior)
        return moved, np.where(both, noise, 0).sum(axis=-1), both.sum(axis=-1)

    def _ratio(self, start: int, split: Counts, end: int) -> Floats:
        moved, variance, _ = self._moved(start, split, end)
        error = np.sqrt(variance)
        ratio = np.divide(moved, error, out=np.zeros(moved.shape), where=error > 0)
        return np.asarray(np.abs(ratio))

    def _values(self, n: Counts, c: Counts) -> Floats:
        """pass^k of each; callers mask out those with too few runs."""
        return share_of_passing_subsets(np.maximum(n, self.k), c, self.k)

    def _noise(
        self, n: Counts, known: tuple[Counts, Counts], prior: tuple[Floats, Floats]
    ) -> Floats:
        """The variance of pass^k of n runs of a task whose rate is estimated from other counts."""
        a, b = prior
        runs, passes = (np.broadcast_to(part, n.shape).ravel() for part in known)
        moments = beta_moments(a + passes, a + b + runs, 2 * self.k)
        able = np.maximum(n, self.k).astype(np.float64).ravel()
        noise: Floats = run_covariances(able, [(self.k, self.k)], moments)[0]
        return noise.reshape(n.shape)


Series = PassSeries | MeanSeries | TaskSeries

DEFAULT_HORIZON = 100
LONGEST_HORIZON = 2_000

# Points after an alarm that are still used to place the change.
_HINDSIGHT = 4
# A day that shifts logits moves a rate further down than up, which a normal distribution ignores.
# With the whole threshold, days that move by 0.3 logit raise a false alarm in 5.0 % of histories
# (bench/calibrate/dependence.py); this share of it keeps them below that.
_OF_DAYS = 0.7
_ALLOWING = ", allowing for the spread between days"

# The threshold of alarms is simulated once, always with the same draws, 16 MB of them.
_CALIBRATION_SEED = 20_261_115
_CALIBRATION_CELLS = 2_000_000
_USUAL_THRESHOLD = 0.00016142500088400102
"""What is simulated for the defaults, as a test does again: a tenth of the CPU of a short run."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
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


@result_dataclass(frozen=True, slots=True, kw_only=True)
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


@result_dataclass(frozen=True, slots=True, kw_only=True)
class DivergingTrend:
    """Whether pass@k rose while pass^k fell; the rise and fall are those of the fitted lines.

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
    threshold = _threshold(series, rate, span)
    located: list[ChangePoint] = []
    start, looked = 0, 0
    spread = BetweenDayVariance.unknown()
    while (alarm := _first_alarm(series, start, looked, threshold, spread)) is not None:
        located.append(_located(series, alarm, start, confidence))
        spread = _learned(series, spread, start, located[-1].position)
        start, looked = located[-1].position, alarm.newest + 1
    spread = _learned(series, spread, start, len(series))
    return Changes(
        points=_clear_changes(series, located, spread, confidence),
        false_alarm=rate,
        horizon=span,
        threshold=threshold,
        method=f"{series.test}, dyadic windows against all before{_ALLOWING * _has_days(series)}",
        day_sigma=spread.sigma if _has_days(series) else None,
        confidence=confidence,
        observations=len(series),
        seed=_CALIBRATION_SEED,
    )


def runs_to_show(
    series: TaskSeries,
    move: float,
    *,
    most: int,
    false_alarm: float = 0.05,
    horizon: int = DEFAULT_HORIZON,
) -> int | None:
    """How many points like the newest one would show that runs pass so much less often.

    Where they pass more rarely than `move` already, more often. None if `most` are not enough.

    >>> calm = TaskSeries([[10] * 20] * 10, [[9] * 20] * 10)
    >>> runs_to_show(calm, 0.3, most=8)
    1
    """
    runs, passes = series.n, series.rate.c
    rates = passes.sum(axis=0) / np.maximum(runs.sum(axis=0), 1)
    newest = runs[-1]
    rate = float(newest @ rates) / newest.sum()
    # Each task passes less often by the same share of its rate (or fails less often).
    if rate >= move:
        rates *= 1 - move / rate
    else:
        rates = 1 - (1 - rates) * (1 - move / (1 - rate))
    sums = np.floor(np.cumsum(newest * rates) + 0.5).astype(np.int64)
    moved = np.clip(np.diff(sums, prepend=0), 0, newest)
    threshold, nothing = _threshold(series, false_alarm, horizon), BetweenDayVariance.unknown()
    # An alarm depends on no later point: where there is none yet, the newest point alone is tested.
    calm = _first_alarm(series.rate, 0, 0, threshold, nothing) is None
    for more in range(1, most + 1):
        n = np.vstack((runs, np.tile(newest, (more, 1))))
        c = np.vstack((passes, np.tile(moved, (more, 1))))
        longer = TaskSeries(n, c)
        calm = calm and _first_alarm(longer, 0, len(longer) - 1, threshold, nothing) is None
        if not calm and change_points(longer, false_alarm=false_alarm, horizon=horizon).points:
            return more
    return None


def _threshold(series: Series, false_alarm: float, horizon: int) -> float:
    """The p-value at which a series raises an alarm."""
    return alarm_threshold(false_alarm, horizon) * (_OF_DAYS if _has_days(series) else 1.0)


@lru_cache(maxsize=32)
def alarm_threshold(false_alarm: float, horizon: int) -> float:
    """The p-value below which an alarm is raised, so that `horizon` calm points raise none.

    A quantile of the smallest p over all windows in simulated Gaussian histories without a change.
    Exact tests of counts have larger p-values, and so fewer alarms.

    >>> 5e-5 < alarm_threshold(0.05, 100) < 5e-4
    True
    """
    if (false_alarm, horizon) == (0.05, DEFAULT_HORIZON):
        return _USUAL_THRESHOLD
    return _simulated_threshold(false_alarm, horizon)


def _simulated_threshold(false_alarm: float, horizon: int) -> float:
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


def day_spread(series: TaskSeries, changes: Changes) -> BetweenDayVariance:
    """How far the points of a history lie apart between its changes."""
    spread = BetweenDayVariance.unknown()
    ends = [0, *(change.position for change in changes.points), len(series)]
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
    >>> lines = divergence(at, hat)
    >>> lines.diverging, round(lines.rise.value, 2), round(lines.fall.value, 2)
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


@result_dataclass(frozen=True, slots=True, kw_only=True)
class _Alarm:
    """The newest point when old and new first differed, and the series that showed it."""

    newest: int
    by: Series


def _first_alarm(
    series: Series, start: int, looked: int, threshold: float, spread: BetweenDayVariance
) -> _Alarm | None:
    """The first point, from `looked` on, at which old and new differ.

    pass^k of a few tasks varies so much that it can hide a clear fall. The pass rate shows that
    fall, so both are tested, each with half of the false alarms allowed.
    """
    tests: tuple[Series, ...] = (series,)
    if isinstance(series, TaskSeries) and series.k > 1:
        tests = series.rate, series
    line = threshold / len(tests)
    for newest in range(max(start + 1, looked), len(series)):
        windows = _windows(start, newest + 1, newest)
        for test in tests:
            if _apart(test, windows, line, spread):
                return _Alarm(newest=newest, by=test)
    return None


def _apart(
    series: Series, windows: tuple[Counts, Counts, Counts], line: float, spread: BetweenDayVariance
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


def _has_days(series: Series) -> bool:
    return isinstance(series, TaskSeries)


def _learned(
    series: Series, spread: BetweenDayVariance, start: int, end: int
) -> BetweenDayVariance:
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


def _clear_changes(
    series: Series, changes: Sequence[ChangePoint], spread: BetweenDayVariance, confidence: float
) -> tuple[ChangePoint, ...]:
    """The changes with the levels next to them, without those in which pass^k may not have changed.

    If a change is left out, its two stretches become one.
    """
    points = tuple(_between_neighbours(series, changes, spread, confidence))
    clear = [point for point in points if 0 not in point.interval]
    if len(clear) == len(points) or not isinstance(series, TaskSeries):
        return points
    return _clear_changes(series, clear, spread, confidence)


def _between_neighbours(
    series: Series, changes: Sequence[ChangePoint], spread: BetweenDayVariance, confidence: float
) -> Iterator[ChangePoint]:
    """The same changes, each with the levels of the stretches next to it, and days in the interval.

    The points of an alarm may reach beyond the next change: one change's `after` would then not be
    the next one's `before`.
    """
    ends = [0, *(change.position for change in changes), len(series)]
    for change, start, end in zip(changes, ends, ends[2:], strict=False):
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
    series: Series, spread: BetweenDayVariance, window: tuple[int, int, int], confidence: float
) -> Interval:
    """The interval of a change, widened by the spread between days."""
    bounds = series.difference(*window, confidence)
    if not isinstance(series, TaskSeries):
        return bounds
    start, split, end = window
    before, after = series.levels(*window)
    days = 1 / (split - start) + 1 / (end - split)
    slope = (series.slope(start, split) + series.slope(split, end)) / 2
    wide = wider_margins(bounds, after - before, spread.margins(bounds, slope, days, confidence))
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


Number = TypeVar("Number", np.int64, np.float64)


def _running(values: NDArray[Number]) -> NDArray[Number]:
    """Sums of the first 0, 1, 2, ... values."""
    return np.concatenate((np.zeros(1, dtype=values.dtype), np.cumsum(values)))


# The permutation test of new runs against old ones, task by task.

# Windows times tasks looked at together: bounds the memory, whatever the history.
_BLOCK = 1 << 16

# If the normal distribution's p is so many times above the line, the exact p is not below it.
_WORTH_A_LOOK = 30
# The distribution is kept on at least 2^13 points, over all that the difference can be.
_LEAST_BITS = 13
# Points of grids that are transformed together.
_GRIDS = 1 << 17
# The rounding error of a transform: smaller chances cannot be told from 0.
_ROUNDING = 1e-14


def permutation_p(
    n_old: Counts, c_old: Counts, n_new: Counts, c_new: Counts, *, k: int = 1
) -> float:
    """Two-sided p of the mean pass^k of new runs against old ones, task by task.

    Given how many of a task's runs passed in all, the passes among the new ones are
    hypergeometric if the task did not change; the sum over tasks of new minus old then has a
    distribution that is known, and is computed on a fine grid by multiplying Fourier transforms.

    >>> round(permutation_p(*(np.array(x) for x in ([10], [9], [10], [3]))), 4)  # Fisher's
    0.0198
    """
    kinds, place, tasks = np.unique(
        np.column_stack((n_old, n_new, c_old + c_new)),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    # For each kind (rows) the possible passes of the new runs, what each changes, and its chance.
    old, new, passed = kinds.T[:, :, None]
    fewest, most = np.maximum(0, passed - old), np.minimum(new, passed)
    beyond = fewest + np.arange(int((most - fewest).max(initial=0)) + 1)
    x = np.minimum(beyond, most)
    moved = _share(new, x, k) - _share(old, passed - x, k)
    chance = np.where(beyond <= most, np.exp(log_probability(x, new, old, passed)), 0.0)
    furthest = float(np.abs(moved).max(axis=1, initial=0) @ tasks)
    if furthest == 0:
        return 1.0
    points = 1 << max(_LEAST_BITS, (8 * len(n_old)).bit_length())
    # Rounding may add half a step per task, and what falls off one end would appear at the other.
    step = furthest / (points // 2 - 1 - len(n_old) / 2)
    steps = np.rint(moved / step).astype(np.int64)
    place = place.ravel()
    observed = int(steps[place, c_new - fewest[place, 0]].sum())
    transform = np.ones(points // 2 + 1, dtype=complex)
    block = max(1, _GRIDS // points)
    for at in range(0, len(kinds), block):
        rows = slice(at, at + block)
        transform *= _transform_of_sum(steps[rows] % points, chance[rows], tasks[rows], points)
    reach = np.abs(np.fft.fftfreq(points, 1 / points))
    total = np.fft.irfft(transform, points)
    # Values that differ by rounding alone are a tie, and a tie counts as at least as extreme.
    tie = 2 * np.sqrt(len(n_old))
    return float(np.clip(total[reach >= abs(observed) - tie].sum(), _ROUNDING, 1.0))


def _share(n: Counts, c: Counts, k: int) -> Floats:
    return share_of_passing_subsets(np.broadcast_to(n, c.shape), c, k)


def _transform_of_sum(
    steps: Counts, chance: Floats, times: Counts, points: int
) -> NDArray[np.complex128]:
    """The transform of a sum of independent values, row i of which `times[i]` have."""
    rows = np.arange(len(steps))[:, None] * points
    grids = np.bincount((rows + steps).ravel(), chance.ravel(), minlength=len(steps) * points)
    powers = np.fft.rfft(grids.reshape(len(steps), points))
    product = np.ones(powers.shape[1], dtype=complex)
    while len(times):  # powers by repeated squaring
        product *= powers[times % 2 == 1].prod(axis=0)
        powers, times = np.square(powers[times > 1]), times[times > 1] // 2
    return product


# A fall that is in some of the tasks only, which the mean over all tasks hides.

WIDTHS = {1: 0.3, 2: 0.5, 4: 0.1, 8: 0.1}
"""How many of the newest points are compared with all before them, and which share of the chance of
an error each comparison has: most where a fall is new."""

_SHARE, _FALLS = 0.2, (0.1, 0.2, 0.4, 0.8)
"""What the test is made for: a fifth of the tasks fall, by some of these shares of all trials. Any
other fall is found too, only less soon: the p-value holds whatever these are."""

_LOWEST = 0.1
"""A task that cannot fall so far keeps this share of its rate."""

_TASKS_TO_MEAN = 2.0
"""How much more weight the tasks have than the mean over them. Of 1 to 3, and of weights by what
each would show, 2 found most of seven falls in one task to a fifth of them."""

_STEEPEST, _NEWTON_STEPS, _SMALLEST = 80.0, 50, 1e-300


@result_dataclass(frozen=True, slots=True, kw_only=True)
class TaskFall:
    """Some tasks fell: the newest `points` points differ from those between `start` and them."""

    start: int
    points: int
    p_value: float


def task_fall(
    series: TaskSeries,
    start: int = 0,
    *,
    false_alarm: float = 0.04,
    horizon: int = 30,
) -> TaskFall | None:
    """Whether the newest points show that some tasks fell, against all points from `start` on.

    Each point is the newest once, and has one test for each of `WIDTHS`. The chance of an error is
    spent on points evenly, so `horizon` points without a change raise an alarm with a chance of
    `false_alarm` at most (Bonferroni), however the tests depend on one another.
    """
    series, line = series.rate, false_alarm / horizon
    tests = [
        TaskFall(
            start=start, points=width, p_value=_window_fall_p(series, start, width, line * share)
        )
        for width, share in WIDTHS.items()
        if start < len(series) - width
    ]
    clearest = min(tests, key=lambda test: test.p_value / WIDTHS[test.points], default=None)
    if clearest is None or clearest.p_value > line * WIDTHS[clearest.points]:
        return None
    return clearest


_GOLDEN = (5**0.5 - 1) / 2

LIKELY, _POINTS_LOOKED_AT = 0.8, 2
"""The chance that a fall is shown that is called noticeable, and within how many points it is."""

_ENOUGH = 200_000
"""Trials of those points that show the smallest fall that is tried; more would only take longer."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
class NoticeableFall:
    """`tasks` of the `suite` tasks fall by this `rate` each; None if none so large is likely shown.

    A task that passes less often than that falls to nothing.
    """

    rate: float | None
    tasks: int
    suite: int


def noticeable_fall(
    series: TaskSeries,
    start: int = 0,
    *,
    false_alarm: float = 0.04,
    horizon: int = 30,
) -> NoticeableFall | None:
    """The smallest fall of a fifth of the tasks that `task_fall` would likely show in two points.

    The p-value of what typically follows such a fall is to lie as far beyond the line as chance
    moves it in one of five cases. Falls are tried in steps of a tenth, in tasks spread over those
    that pass often enough to fall so far; as many runs are taken to follow as the newest point has.
    Simulated from 12 x 5 to 100 x 10, after 5 and after 30 points, such falls were shown within two
    points in 0.78 to 1.00 of 40 histories. None without a task.
    """
    series, end = series.rate, len(series)
    n_old, c_old = (side[start:end].sum(axis=0) for side in (series.n, series.c))
    n_new = _POINTS_LOOKED_AT * series.n[-1]
    here = n_new > 0
    n_old, c_old, n_new = n_old[here], c_old[here], n_new[here]
    if not n_new.size:
        return None
    n_new = np.minimum(n_new, max(_ENOUGH // n_new.size, 1))
    rates = (c_old + 0.5) / (n_old + 1)
    by_rate = np.argsort(-rates, kind="stable")
    spread = _learned(series, BetweenDayVariance.unknown(), start, end)
    days = 1 / (end - start) + 1 / _POINTS_LOOKED_AT
    line = ndtri(false_alarm / horizon * WIDTHS[_POINTS_LOOKED_AT]) - ndtri(LIKELY)
    tasks = max(1, round(_SHARE * rates.size))
    for tenth in range(1, 11):
        able = by_rate[: np.count_nonzero(rates >= min(tenth / 10, 0.95))]
        if able.size < tasks:
            break
        chosen = np.zeros(rates.size, dtype=bool)
        chosen[able[((np.arange(tasks) + 0.5) * able.size / tasks).astype(int)]] = True
        typical = np.empty(rates.size, dtype=np.int64)
        for part, lost in ((chosen, tenth / 10), (~chosen, 0.0)):
            typical[part] = _typical_passes(n_new[part], np.maximum(rates[part] - lost, 0.0))
        p = concentrated_fall_p(n_old, c_old, n_new, typical, spread=spread, days=days)
        if p < ndtr(line):
            return NoticeableFall(rate=tenth / 10, tasks=tasks, suite=rates.size)
    return NoticeableFall(rate=None, tasks=tasks, suite=rates.size)


def _typical_passes(n: Counts, rates: Floats) -> Counts:
    """Passes that scatter as chance scatters them: quantiles of binomials, evenly spread.

    Counts at their means would show less than any fall does: the statistic is convex in them.
    """
    levels = (0.5 + np.arange(n.size) * _GOLDEN) % 1
    passes = np.ceil(bdtrik(levels, n, np.clip(rates, 1e-9, 1 - 1e-9)) - 1e-9)
    return np.asarray(np.clip(np.nan_to_num(passes), 0, n), dtype=np.int64)


def _window_fall_p(series: TaskSeries, start: int, width: int, line: float) -> float:
    """The p of the newest points: the larger one of days that do not differ and of days that do.

    The second takes time to learn, and is left out where the first is above the line.
    """
    end = len(series)
    split = end - width
    (n_old, n_new), (c_old, c_new) = (
        [side[part].sum(axis=0) for part in (slice(start, split), slice(split, end))]
        for side in (series.n, series.c)
    )
    both = (n_old > 0) & (n_new > 0)
    counts = [part[both] for part in (n_old, c_old, n_new, c_new)]
    p = concentrated_fall_p(*counts, spread=BetweenDayVariance.none())
    if p > line:
        return p
    spread = _learned(series, BetweenDayVariance.unknown(), start, split)
    days = 1 / (split - start) + 1 / width
    return max(p, concentrated_fall_p(*counts, spread=spread, days=days))


def concentrated_fall_p(
    n_old: Counts,
    c_old: Counts,
    n_new: Counts,
    c_new: Counts,
    *,
    spread: BetweenDayVariance | None = None,
    days: float = 2.0,
) -> float:
    """One-sided p of new runs against old ones, for a fall that is in some of the tasks only.

    Given how many of a task's runs passed in all, the passes among the new ones are hypergeometric
    if the task did not change. A bad day that moves all tasks alike multiplies their odds by one
    factor. Two tests that are independent of one another are joined (Stouffer, weighted):

    - Which tasks the failures are in, given how many there are: that does not depend on the day.
      Each task scores the log of a likelihood ratio, "it fell with a chance of 20%" against "it did
      not", the statistic that is most powerful against such a mixture (Donoho and Jin 2004,
      section 1.1).
    - How many failures there are, allowing for the `spread` between days; `days` is 1 / new +
      1 / old, over the days on each side.

    >>> old, new = np.full(20, 180), np.full(20, 6)
    >>> calm, fell = np.full(20, 6), np.array([0, 0, 0, 0] + [6] * 16)
    >>> concentrated_fall_p(old, np.full(20, 171), new, calm) > 0.5
    True
    >>> concentrated_fall_p(old, np.full(20, 171), new, fell) < 1e-9
    True
    """
    if n_old.size == 0:
        return 1.0
    kinds, place, tasks = np.unique(
        np.column_stack((n_old, n_new, c_old + c_new)),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    x = np.arange(n_new.max() + 1)
    log_p = _normalised(log_probability(x, kinds[:, 1:2], kinds[:, :1], kinds[:, 2:]))
    chance = np.exp(log_p)
    expected = chance @ x
    variance = float(tasks @ (chance @ x**2 - expected**2))
    if variance <= 0:  # no task both passed and failed
        return 1.0
    total = int(c_new.sum())
    moved = total - float(tasks @ expected)
    two_sided = (spread or BetweenDayVariance.unknown()).p_value(moved, variance, variance, days)
    of_mean = two_sided / 2 if moved < 0 else 1 - two_sided / 2

    rate = (kinds[:, 2:] + 0.5) / (kinds[:, :1] + kinds[:, 1:2] + 1)
    lower = (np.maximum(rate - fall, _LOWEST * rate) for fall in _FALLS)
    odds = [np.log(low / (1 - low)) - np.log(rate / (1 - rate)) for low in lower]
    fallen = np.logaddexp.reduce([shift * x - _log_sum(log_p + shift * x) for shift in odds])
    score = np.logaddexp(np.log(1 - _SHARE), np.log(_SHARE / len(_FALLS)) + fallen)
    observed = float(score[place.ravel(), c_new].sum())
    of_tasks = _tail_given_total(score, log_p, tasks, observed, total)

    if of_tasks is None:
        return of_mean
    in_tasks, in_mean = -ndtri(np.clip((of_tasks, of_mean), _SMALLEST, 1 - _ROUNDING))
    joined = (_TASKS_TO_MEAN * in_tasks + in_mean) / np.hypot(_TASKS_TO_MEAN, 1.0)
    return float(ndtr(-joined))


def _log_sum(logs: Floats) -> Floats:
    """The logs of the sums over the last axis, which stays with length 1."""
    top = logs.max(axis=-1, keepdims=True)
    return np.asarray(top + np.log(np.exp(logs - top).sum(axis=-1, keepdims=True)))


def _normalised(logs: Floats) -> Floats:
    return np.asarray(logs - _log_sum(logs))


def _tail_given_total(
    score: Floats, log_p: Floats, tasks: Counts, observed: float, total: int
) -> float | None:
    """The chance that scores sum to `observed` or more, given that passes sum to `total`.

    None where the total leaves one possible sum, which then says nothing.

    Rows of `score` and of its log chances `log_p` are kinds of tasks, `tasks` how many there are;
    columns are 0, 1, 2, ... passes. The double saddlepoint formula of Skovgaard (1987).
    """
    x = np.arange(float(log_p.shape[1]))
    possible = np.isfinite(log_p)
    score = np.where(possible, score, 0.0)
    fewest = int(tasks @ possible.argmax(axis=1))
    most = int(tasks @ (x.size - 1 - possible[:, ::-1].argmax(axis=1)))
    if total in (fewest, most):
        return None

    (_, day), *_ = _saddlepoint(np.zeros(log_p.shape), log_p, tasks, np.array([0.0, total]))
    log_p = _normalised(log_p + day * x)
    # What passes explain of the scores is known with the total; without it Newton steps are short.
    _, _, spread = _cumulants(score, log_p, tasks, np.zeros(2))
    slope, of_passes = spread[0, 1] / spread[1, 1], float(spread[1, 1])
    score, target = score - slope * x, np.array([observed - slope * total, total])
    of_scores = float(spread[0, 0])
    _, mean, spread = _cumulants(score, log_p, tasks, np.zeros(2))
    away, error = target[0] - mean[0], np.sqrt(max(float(spread[0, 0]), 0.0))
    if spread[0, 0] <= 1e-9 * of_scores:
        return None
    if abs(away) <= 0.01 * error:  # at the mean, where the formula divides by 0
        return 0.5
    tilt, exponent, spread = _saddlepoint(score, log_p, tasks, target)
    signed = np.sqrt(2 * exponent)
    standard = abs(tilt[0]) * np.sqrt(max(float(np.linalg.det(spread)), 1e-300) / of_passes)
    density = np.exp(-exponent) / np.sqrt(2 * np.pi)
    normal = float(ndtr(-signed))
    tail = normal + density * (1 / standard - 1 / signed)
    # With a handful of possible sums the formula can fall to 0 (exact tails are at least a fifth of
    # the normal one), and the most extreme sum has no saddlepoint: Chernoff's bound over the
    # chance of the total.
    bound = 2 * np.pi * density * np.sqrt(of_passes)
    tail = float(np.clip(min(max(tail, normal / 4), bound), _SMALLEST, 1.0))
    return tail if away > 0 else 1 - tail


def _cumulants(
    score: Floats, log_p: Floats, tasks: Counts, tilt: Floats
) -> tuple[float, Floats, Floats]:
    """The cumulant generating function of the sums of scores and passes, and its derivatives.

    Every score is a number, also where the chance is 0.
    """
    x = np.arange(float(log_p.shape[1]))
    # In place: a thousand tasks of a thousand runs make tables of two million numbers.
    weight = tilt[0] * score
    weight += tilt[1] * x
    weight += log_p
    top = weight.max(axis=-1, keepdims=True)
    weight -= top
    np.exp(weight, out=weight)
    total = weight.sum(axis=-1, keepdims=True)
    weight /= total
    means = np.stack((np.vecdot(weight, score), weight @ x))
    scores, passes = score - means[0][:, None], x - means[1][:, None]
    by_passes = np.vecdot(weight * passes, passes)
    weight *= scores
    by_scores, by_both = np.vecdot(weight, scores), np.vecdot(weight, passes)
    spread = np.stack((by_scores, by_both, by_both, by_passes)) @ tasks.astype(np.float64)
    totals = top + np.log(total)
    return float(tasks @ totals[:, 0]), means @ tasks, spread.reshape(2, 2)


def _saddlepoint(
    score: Floats, log_p: Floats, tasks: Counts, target: Floats
) -> tuple[Floats, float, Floats]:
    """The tilt whose means are the target, how unlikely that is, and its second derivatives.

    Damped Newton steps on a convex function. An extreme target has no saddlepoint: the steps end
    where the tilt becomes too steep.
    """
    tilt = np.zeros(2)
    value, mean, spread = _cumulants(score, log_p, tasks, tilt)
    for _ in range(_NEWTON_STEPS):
        slope = mean - target
        step = -np.linalg.solve(spread + 1e-10 * np.trace(spread) * np.eye(2), slope)
        gain = float(slope @ step)  # below 0
        if gain > -1e-12:
            break
        part = min(1.0, _STEEPEST / float(np.abs(step).max()))
        while part > 1e-4:
            further = tilt + part * step
            cumulants = _cumulants(score, log_p, tasks, further)
            lower = cumulants[0] - float(further @ target)
            if np.abs(further).max() < _STEEPEST and lower <= value + 1e-4 * part * gain:
                break
            part /= 2
        else:
            break
        tilt, value, mean, spread = further, lower, *cumulants[1:]
    return tilt, max(0.0, -value), spread
