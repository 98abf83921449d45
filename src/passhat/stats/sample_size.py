"""Planning: how many runs and tasks an answer needs, and what a budget can show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import ceil, expm1, floor, hypot, log, log1p, sqrt
from typing import Any

import numpy as np

from passhat.arguments import CONFIDENCE, confidence_level, finite_number, probability, whole_number
from passhat.dataclass import dataclass, result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import points
from passhat.stats import special
from passhat.stats.arguments import Floats, one_of
from passhat.stats.estimate import Interval, Unavailable
from passhat.stats.mean_intervals import wilson_suite_bounds
from passhat.stats.numerics import bisect
from passhat.stats.population_bounds import population_bounds

METHODS = ("wald", "wilson")

# No plan is searched for beyond this many tasks or runs.
MOST = 10_000_000
# The finest half-width that may be asked for: it takes a trillion coin flips.
_FINEST = 1e-6


@result_dataclass(frozen=True, slots=True, kw_only=True)
class SuitePlan:
    """What tasks x runs buys, and what a target half-width costs, in both scopes."""

    tasks: int
    runs: int
    variance: float
    icc: float
    confidence: float
    this_suite: float
    tasks_like_these: float
    floor: float
    target: float | None
    runs_this_suite: int | None
    runs_tasks_like_these: int | Unavailable | None
    tasks_needed: int | None
    cost_ratio: float | None
    best_runs: int | Unavailable | None
    method: str = "z sqrt(V (rho + (1 - rho) / n) / T)"


def recommend_runs(
    half_width: float | None = None,
    *,
    max_ci_width: float | None = None,
    p: float | None = None,
    sd: float | None = None,
    confidence: float = CONFIDENCE,
    method: str = "wald",
) -> int:
    """The runs of one task that pin its pass rate to plus or minus `half_width`.

    `max_ci_width` states the width of the whole interval, low to high. Wald's width is that at the
    rate `p` (0.5, the widest, unless given); Wilson's depends on the outcomes, so its mean over the
    outcomes of that many runs is used. For scores with partial credit, `sd` is the standard
    deviation of a single run's score. Quantiles are exact: tables that round them to 1.96 and 2.576
    name up to two runs more (16,590 for 1 point at 99%).

    >>> recommend_runs(0.05), recommend_runs(0.01, confidence=0.99)
    (385, 16588)
    >>> [recommend_runs(0.05, p=p, method="wilson") for p in (0.5, 0.9, 0.95)]
    [380, 139, 80]
    >>> recommend_runs(max_ci_width=0.1), recommend_runs(0.05, sd=0.2)
    (385, 62)
    """
    width = _asked_half_width(half_width, max_ci_width)
    one_of("method", method, METHODS)
    z = _normal_quantile(confidence)
    variance = _run_variance(p, sd, method)
    if method == "wald":
        return max(1, round_up(z**2 * variance / width**2))
    rate = 0.5 if p is None else p
    answer = smallest_count(lambda n: _expected_wilson(n, rate, z) <= width, least=1)
    if answer is None:
        raise ArgumentError("half_width", f"must be reached within {MOST} trials", width)
    return answer


def confidence_band(
    runs: int,
    *,
    p: float | None = None,
    sd: float | None = None,
    confidence: float = CONFIDENCE,
    method: str = "wald",
) -> float:
    """The half-width that this many runs of one task buy, at the rate `p` or for scores of `sd`.

    >>> round(confidence_band(100), 3), round(confidence_band(100, sd=0.2), 3)
    (0.098, 0.039)
    """
    n = whole_number("runs", runs)
    one_of("method", method, METHODS)
    z = _normal_quantile(confidence)
    variance = _run_variance(p, sd, method)
    if method == "wald":
        return z * sqrt(variance / n)
    return _expected_wilson(n, 0.5 if p is None else p, z)


def zero_failure_runs(p: float, *, confidence: float = CONFIDENCE) -> int:
    """The runs that, all passing, show a pass rate of at least `p`.

    >>> [zero_failure_runs(p) for p in (0.9, 0.95, 0.99)]
    [29, 59, 299]
    """
    rate = probability("p", p, open_ends=True)
    return max(1, round_up(log(1 - confidence_level(confidence)) / log(rate)))


def plan_suite(
    *,
    tasks: int,
    runs: int,
    variance: float | None = None,
    sd: float | None = None,
    icc: float,
    half_width: float | None = None,
    max_ci_width: float | None = None,
    cost_ratio: float | None = None,
    confidence: float = CONFIDENCE,
) -> SuitePlan:
    """What `tasks` x `runs` can show of a mean, and what a target half-width would take.

    `variance` is that of a single run's score (0.25, the largest, unless given; `sd` is its root)
    and `icc` the share of it that the task explains: guesses, or as observed (`split.total` and
    `split.icc.value` of `variance_components`). `max_ci_width` is twice a `half_width`;
    `cost_ratio` is what a new task costs, in runs.

    >>> plan = plan_suite(tasks=50, runs=5, variance=0.25, icc=0.4, half_width=0.1, cost_ratio=6)
    >>> round(plan.this_suite, 3), round(plan.tasks_like_these, 3), round(plan.floor, 3)
    (0.048, 0.1, 0.088)
    >>> plan.runs_this_suite, plan.runs_tasks_like_these, plan.tasks_needed, plan.best_runs
    (2, 5, 50, 3)
    """
    count, times = whole_number("tasks", tasks), whole_number("runs", runs)
    spread, rho = _suite_variance(variance, sd), probability("icc", icc)
    z = _normal_quantile(confidence)
    nothing_asked = half_width is None and max_ci_width is None
    target = None if nothing_asked else _asked_half_width(half_width, max_ci_width)
    ratio = None if cost_ratio is None else _positive("cost_ratio", cost_ratio)
    skill, luck = spread * rho, spread * (1 - rho)
    least = z * sqrt(skill / count)
    return SuitePlan(
        tasks=count,
        runs=times,
        variance=spread,
        icc=rho,
        confidence=confidence,
        this_suite=z * sqrt(luck / (times * count)),
        tasks_like_these=z * sqrt((skill + luck / times) / count),
        floor=least,
        target=target,
        runs_this_suite=(
            None if target is None else max(1, round_up(z**2 * luck / (target**2 * count)))
        ),
        runs_tasks_like_these=(
            None if target is None else _runs_for(target, least, z**2 * luck / count, count)
        ),
        tasks_needed=(
            None if target is None else max(2, round_up(z**2 * (skill + luck / times) / target**2))
        ),
        cost_ratio=ratio,
        best_runs=None if ratio is None else _best_runs(ratio, rho),
    )


def smallest_count(
    enough: Callable[[int], bool], *, least: int, most: int = MOST, to_within: float = 0.0
) -> int | None:
    """The smallest count that is enough, if every larger one is too; None beyond `most`.

    `to_within` is the share of the count to which it need be known.
    """
    low, high = least - 1, least
    while not enough(high):
        if high >= most:
            return None
        low, high = high, min(most, 2 * high)
    while high - low > max(1, int(high * to_within)):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def score_variance(value: float) -> float:
    """The variance of a single score in [0, 1]: above 0, at most 1/4."""
    spread = _positive("variance", value)
    if spread > 0.25:
        raise ArgumentError("variance", "of scores in [0, 1] must not exceed 0.25", value)
    return spread


def _asked_half_width(half_width: float | None, max_ci_width: float | None) -> float:
    """The half-width asked for, stated in one of two ways."""
    if (half_width is None) == (max_ci_width is None):
        rule = "must be given, one of the two and not both"
        raise ArgumentError("half_width or max_ci_width", rule, (half_width, max_ci_width))
    name, value, sides = "half_width", half_width, 1
    if max_ci_width is not None:
        name, value, sides = "max_ci_width", max_ci_width, 2
    width = probability(name, value, open_ends=True)
    if sides == 1 and width >= 0.5:
        raise ArgumentError(name, "must lie strictly between 0 and 0.5", value)
    if width < sides * _FINEST:
        raise ArgumentError(name, f"must be at least {sides * _FINEST}", value)
    return width / sides


def _run_variance(p: float | None, sd: float | None, method: str) -> float:
    """The variance of a single run: of a pass at the rate `p`, or of a score of this `sd`."""
    if sd is None:
        rate = 0.5 if p is None else probability("p", p)
        return rate * (1 - rate)
    if p is not None:
        raise ArgumentError("sd", "must be given without p: either says how trials vary", sd)
    if method != "wald":
        raise ArgumentError("sd", 'needs method="wald": Wilson is for passes', sd)
    return _squared_sd(sd)


def _suite_variance(variance: float | None, sd: float | None) -> float:
    if sd is None:
        return score_variance(0.25 if variance is None else variance)
    if variance is not None:
        raise ArgumentError("sd", "must be given without variance, which is its square", sd)
    return _squared_sd(sd)


def _squared_sd(sd: float) -> float:
    deviation = _positive("sd", sd)
    if deviation > 0.5:
        raise ArgumentError("sd", "of scores in [0, 1] must not exceed 0.5", sd)
    return deviation**2


def _expected_wilson(n: int, p: float, z: float) -> float:
    """The mean half-width of Wilson's interval over Binomial(n, p) passes."""
    # Twelve standard deviations hold all of the distribution that a float can see.
    reach = 12 * sqrt(n * p * (1 - p)) + 12
    passes = np.arange(max(0, floor(n * p - reach)), min(n, ceil(n * p + reach)) + 1)
    weight = np.exp(
        special.gammaln(n + 1)
        - special.gammaln(passes + 1)
        - special.gammaln(n - passes + 1)
        + special.xlogy(passes, p)
        + special.xlog1py(n - passes, -p)
    )
    widths = z * np.sqrt(passes * (1 - passes / n) + z**2 / 4) / (n + z**2)
    return float((weight * widths).sum() / weight.sum())


def _runs_for(target: float, least: float, luck: float, tasks: int) -> int | Unavailable:
    if target <= least:
        return Unavailable(
            f"no number of trials on these {tasks} tasks gets below ±{least:.3g}; more tasks would"
        )
    return max(1, round_up(luck / (target**2 - least**2)))


def _best_runs(ratio: float, rho: float) -> int | Unavailable:
    """The whole number of runs with the least variance for its cost; Cochran (1977), 10.6."""
    if rho == 0:
        return Unavailable("with an ICC of 0 tasks do not differ: a trial of any is worth a trial")
    ideal = sqrt(ratio * (1 - rho) / rho)
    choices = {max(1, floor(ideal)), max(1, ceil(ideal))}
    return min(choices, key=lambda n: ((rho + (1 - rho) / n) * (ratio + n), n))


def _normal_quantile(confidence: float) -> float:
    return float(special.ndtri((1 + confidence_level(confidence)) / 2))


def round_up(value: float) -> int:
    """The next whole number; a number that exceeds one by rounding alone is that number."""
    return ceil(value - 1e-9 * max(1.0, abs(value)))


def _positive(name: str, value: object) -> float:
    number = finite_number(name, value)
    if number <= 0:
        raise ArgumentError(name, "must be above 0", value)
    return number


# Planning a comparison: tasks x runs that show a difference of two systems on the same tasks.


@result_dataclass(frozen=True, slots=True, kw_only=True)
class DetectableDifference:
    """The smallest difference of two systems that a paired t test sees with the given power."""

    value: float
    tasks: int
    runs: int
    power: float
    confidence: float
    standard_error: float
    method: str = "paired t on task means, noncentral t"


def detectable_difference(
    *,
    tasks: int,
    runs: int,
    variance: float = 0.25,
    icc: float,
    task_correlation: float = 0.0,
    power: float = 0.8,
    confidence: float = CONFIDENCE,
) -> DetectableDifference:
    """The smallest true difference that `tasks` x `runs` of each of two systems would show.

    `task_correlation` is how far the two systems find the same tasks hard (1: exactly the same
    ones, so that only luck hides the difference; 0, the default, is the cautious choice).

    >>> difference = detectable_difference(tasks=100, runs=5, icc=0.4, task_correlation=0.8)
    >>> round(difference.value, 3)
    0.089
    """
    count, times = whole_number("tasks", tasks, least=2), whole_number("runs", runs)
    error = _difference_error(
        count, times, variance=variance, icc=icc, task_correlation=task_correlation
    )
    wanted = probability("power", power, open_ends=True)
    level = confidence_level(confidence)
    if wanted <= 1 - level:
        raise ArgumentError("power", f"must exceed the test's error rate {1 - level:.3g}", power)
    shift = _noncentrality(count - 1, power=wanted, confidence=level)
    return DetectableDifference(
        value=shift * error,
        tasks=count,
        runs=times,
        power=wanted,
        confidence=level,
        standard_error=error,
    )


def difference_power(
    difference: float,
    *,
    tasks: int,
    runs: int,
    variance: float = 0.25,
    icc: float,
    task_correlation: float = 0.0,
    confidence: float = CONFIDENCE,
) -> float:
    """The chance that a paired t test on `tasks` x `runs` sees a true `difference`.

    >>> round(difference_power(0.1, tasks=100, runs=5, icc=0.4, task_correlation=0.8), 2)
    0.88
    """
    count, times = whole_number("tasks", tasks, least=2), whole_number("runs", runs)
    error = _difference_error(
        count, times, variance=variance, icc=icc, task_correlation=task_correlation
    )
    size = _difference(difference)
    if error == 0:
        return 1.0
    return _t_power(size / error, count - 1, confidence=confidence_level(confidence))


def tasks_for_difference(
    difference: float,
    *,
    runs: int,
    variance: float = 0.25,
    icc: float,
    task_correlation: float = 0.0,
    power: float = 0.8,
    confidence: float = CONFIDENCE,
) -> int:
    """The tasks that show a `difference` with the given power, at `runs` of each per system.

    >>> tasks_for_difference(0.1, runs=5, icc=0.4, task_correlation=0.8)
    81
    """
    size, wanted = _difference(difference), probability("power", power, open_ends=True)
    power_of = partial(
        difference_power,
        size,
        runs=runs,
        variance=variance,
        icc=icc,
        task_correlation=task_correlation,
        confidence=confidence,
    )
    answer = smallest_count(lambda count: power_of(tasks=count) >= wanted, least=2)
    if answer is None:
        raise ArgumentError("difference", f"must be seen with {MOST} tasks or fewer", difference)
    return answer


def runs_for_difference(
    difference: float,
    *,
    tasks: int,
    variance: float = 0.25,
    icc: float,
    task_correlation: float = 0.0,
    power: float = 0.8,
    confidence: float = CONFIDENCE,
) -> int | Unavailable:
    """The runs of each task and system that show a `difference` with the given power.

    >>> runs_for_difference(0.1, tasks=100, icc=0.4, task_correlation=0.8)
    4
    >>> print(runs_for_difference(0.02, tasks=100, icc=0.4, task_correlation=0.8).reason)
    no number of trials on 100 tasks shows a difference of 0.02; more tasks would
    """
    size, wanted = _difference(difference), probability("power", power, open_ends=True)
    power_of = partial(
        difference_power,
        size,
        tasks=tasks,
        variance=variance,
        icc=icc,
        task_correlation=task_correlation,
        confidence=confidence,
    )
    answer = smallest_count(lambda count: power_of(runs=count) >= wanted, least=1)
    if answer is None:
        return Unavailable(
            f"no number of trials on {tasks} tasks shows a difference of {size:g}; more tasks would"
        )
    return answer


def _difference_error(
    tasks: int, runs: int, *, variance: float, icc: float, task_correlation: float
) -> float:
    """The standard error of the mean paired difference of task means."""
    spread, rho = score_variance(variance), probability("icc", icc)
    shared = probability("task_correlation", task_correlation)
    # Two means of a task differ by what the systems do not share of its difficulty, and by luck.
    per_task = 2 * spread * (rho * (1 - shared) + (1 - rho) / runs)
    return sqrt(per_task / tasks)


def _t_power(shift: float, freedom: int, *, confidence: float) -> float:
    critical = float(special.stdtrit(freedom, (1 + confidence) / 2))
    below, wrong_sign = special.nctdtr(freedom, shift, [critical, -critical])
    # scipy returns nan in the far tail, where either chance is below 1e-100.
    return float(1 - np.nan_to_num(below) + np.nan_to_num(wrong_sign))


def _noncentrality(freedom: int, *, power: float, confidence: float) -> float:
    """The shift, in standard errors, at which the two-sided t test has this power."""

    def enough(shift: float) -> bool:
        return _t_power(shift, freedom, confidence=confidence) >= power

    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
    return bisect(enough, low, high)[1]


def _difference(value: object) -> float:
    size = abs(finite_number("difference", value))
    if not 0 < size <= 1:
        raise ArgumentError("difference", "must lie in [-1, 1] and not be 0", value)
    return size


# A plan that agrees with a report: at the runs there are, both give the same width.

WIDEST = 0.5
"""A share is known to plus or minus half without any run."""

GUESSED_ICC = 0.5
"""Before any run: half of the outcome is the task's, half is luck."""

UNKNOWN = Interval(0.0, 1.0)
"""The interval of an ICC of which nothing is known."""
# Of scores in [0, 1]; scores that did not vary at all were too few to show their variance.
_LEAST_VARIANCE, _LARGEST_VARIANCE = 1e-4, 0.25
# Typical tasks of a beta with that mean and spread: 64 of its quantiles.
_LEVELS = (np.arange(64) + 0.5) / 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The variance of a single run's score, the share of it between tasks, and its interval.

    There is no interval where that share is a guess, as after one run, or on one task.
    """

    variance: float
    icc: float
    icc_interval: Interval | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedDesign:
    """A design that was run, its spread, and half the widths that a report prints for it."""

    tasks: int
    runs: int
    spread: Spread
    this_suite: float | None
    tasks_like_these: float | None

    constant: bool = False
    """Whether every run passed, or every one failed."""

    rate: float | None = None
    """The mean, if it is known."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpread:
    """What moved runs together adds to half-widths, as squares add up: seeds, days or rounds.

    `levels` of the kind `name` were seen. More trials at the same ones leave what they add; if
    each trial of a task is at one more (`grows`), that falls with the root of their number.
    """

    name: str
    levels: int
    grows: bool
    this_suite: float
    tasks_like_these: float

    def added_to(self, widths: tuple[float, float], runs: int) -> tuple[float, float]:
        """The half-widths in both scopes, with the spread between as many levels as runs allow."""
        share = self._share(runs)
        return (
            min(WIDEST, hypot(widths[0], share * self.this_suite)),
            min(WIDEST, hypot(widths[1], share * self.tasks_like_these)),
        )

    def left_of(self, difference: float, runs: int, *, power: float, confidence: float) -> float:
        """How much of a difference of two agents on similar tasks shows, each at its own levels.

        As squares add up: what is seen with that power is 1 + z(power) / z(confidence) half-widths.
        """
        reach = 1 + float(special.ndtri(power)) / _normal_quantile(confidence)
        hidden = reach * sqrt(2) * self._share(runs) * self.tasks_like_these
        return sqrt(max(0.0, difference**2 - hidden**2))

    def _share(self, runs: int) -> float:
        """How much more than at the levels seen fewer of them add, or less more of them."""
        return sqrt(self.levels / (runs if self.grows else min(runs, self.levels)))

    @property
    def least(self) -> tuple[float, float]:
        """The half-widths that no number of trials gets below."""
        return (0.0, 0.0) if self.grows else (self.this_suite, self.tasks_like_these)

    def needed(self, now: float, half_width: float) -> int:
        """About so many levels bring a width of `now` to `half_width`, at as many runs of each."""
        return round_up(self.levels * (now / half_width) ** 2)


NO_SPREAD = GroupSpread(name="", levels=1, grows=True, this_suite=0.0, tasks_like_these=0.0)
"""Where nothing moved runs together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Widths:
    """Half-widths at any number of runs (or tasks), equal to the one seen at `count` of them.

    An interval is wider than the normal approximation, as it allows for not knowing the spread;
    with few runs of one task it may be narrower. The difference falls with the count itself, the
    rest with its square root: Student's quantile, for one, exceeds the normal one by about one
    part in the degrees of freedom.
    """

    normal: float
    seen: float
    count: int

    @classmethod
    def through(cls, seen: float | None, *, now: float, normal: float, count: int) -> _Widths:
        """Widths through the one seen; another spread changes both parts by the same factor."""
        if seen is None:
            return cls(normal=normal, seen=normal, count=count)
        return cls(normal=normal, seen=normal * seen / now if now else seen, count=count)

    def width(self, count: float) -> float:
        share = self.count / count
        if share >= 1:
            return self.seen * sqrt(share)
        return self.normal * sqrt(share) + (self.seen - self.normal) * share

    def needed(self, target: float) -> float:
        """The count whose width is `target`: a quadratic equation in the root of the share."""
        if self.seen <= target:
            return self.count * (self.seen / target) ** 2
        excess = self.seen - self.normal
        root = 2 * target / (self.normal + sqrt(self.normal**2 + 4 * excess * target))
        return self.count / root**2


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExactWidths:
    """Half-widths of 1 - tail^(1/n), the exact bound while every run ends alike."""

    tail: float

    def width(self, count: float) -> float:
        return -expm1(log(self.tail) / count) / 2

    def needed(self, target: float) -> float:
        return log(self.tail) / log1p(-2 * target)


def observed_variance(
    *, variance: float, icc: float, icc_interval: Interval | None, tasks: int, runs: int
) -> Spread:
    """The spread of so many runs; where few tasks ran twice, the share of luck is a guess."""
    spread = Spread(variance=bounded_variance(variance), icc=icc, icc_interval=icc_interval)
    if icc_interval is not None:
        return spread
    if runs < 2 * tasks:
        return replace(spread, icc=GUESSED_ICC)
    return replace(spread, icc_interval=UNKNOWN)


def bounded_variance(variance: float) -> float:
    """The variance of a single run's score, no smaller and no larger than it can be."""
    return min(_LARGEST_VARIANCE, max(variance, _LEAST_VARIANCE))


def plan_from(
    seen: ObservedDesign,
    spread: Spread,
    *,
    tasks: int,
    runs: int,
    half_width: float,
    cost_ratio: float | None = None,
    confidence: float,
) -> SuitePlan:
    """`plan_suite` of a spread, with widths that go through those that were seen."""
    rough = partial(
        _rough_plan, half_width=half_width, cost_ratio=cost_ratio, confidence=confidence
    )
    plan = rough(tasks, runs, spread)
    here = _suite_widths(seen, spread, rough, confidence)
    there = _Widths.through(
        seen.tasks_like_these,
        now=rough(seen.tasks, seen.runs, seen.spread).tasks_like_these,
        normal=rough(seen.tasks, runs, spread).tasks_like_these,
        count=seen.tasks,
    )
    # For similar tasks, runs change the width by the same factor as in the approximation.
    factor = there.width(tasks) / plan.tasks_like_these
    widest = factor * rough(tasks, seen.runs, spread).tasks_like_these
    known = spread.icc_interval or UNKNOWN
    least = 0.0 if seen.rate is None else _least_width(seen.rate, tasks, confidence)
    floors = [
        # The share of the variance of a task's mean that no further run takes away.
        max(least, min(WIDEST, widest) * sqrt(icc / (icc + (1 - icc) / seen.runs)))
        for icc in (known.low, known.high)
    ]
    # Half is known without any run, so that no plan is for more.
    target = min(half_width / factor, 0.499)
    needed = rough(tasks, runs, spread, half_width=target).runs_tasks_like_these
    # Similar tasks never take fewer runs than these tasks do.
    own = here.needed(half_width)
    own_runs = max(1, round_up(own / tasks))
    if isinstance(needed, int):
        needed = max(needed, own_runs)
    return replace(
        plan,
        this_suite=min(WIDEST, here.width(tasks * runs)),
        tasks_like_these=min(WIDEST, max(there.width(tasks), here.width(tasks * runs), least)),
        floor=min(WIDEST, max(least, factor * plan.floor)),
        runs_this_suite=own_runs,
        runs_tasks_like_these=_runs_or_reason(needed, floors, half_width, tasks, known),
        tasks_needed=max(2, round_up(max(there.needed(half_width), own / runs))),
        method=f"{plan.method}, through the intervals of {seen.tasks} x {seen.runs}",
    )


def expected_half_widths(
    rate: float, spread: Spread, *, tasks: int, runs: int, confidence: float
) -> tuple[float, float]:
    """About half the width that a report will print for these tasks and for similar tasks.

    Near 0 and 1 that is more than the normal approximation says: few failures are expected, and
    an interval must allow for those that were not seen.

    >>> spread = Spread(variance=0.0099, icc=0.4, icc_interval=None)
    >>> widths = expected_half_widths(0.99, spread, tasks=20, runs=3, confidence=0.95)
    >>> [round(width, 3) for width in widths]
    [0.037, 0.079]
    """
    mean, luck = np.array(rate), spread.variance * (1 - spread.icc) / runs
    between = np.array(spread.variance * spread.icc + luck)
    suite = wilson_suite_bounds(
        mean, np.array(luck / tasks), tasks=tasks, runs=tasks * runs, confidence=confidence
    )
    likes = population_bounds(
        _typical_values(rate, float(between)),
        np.full(_LEVELS.size, tasks / _LEVELS.size),
        confidence,
    )
    here, there = (float(high - low) / 2 for low, high in (suite, likes))
    return here, max(here, there)


def _rough_plan(tasks: int, runs: int, spread: Spread, **options: Any) -> SuitePlan:
    """The normal approximation for a spread."""
    return plan_suite(tasks=tasks, runs=runs, variance=spread.variance, icc=spread.icc, **options)


def _suite_widths(
    seen: ObservedDesign, spread: Spread, rough: Callable[..., SuitePlan], confidence: float
) -> _Widths | _ExactWidths:
    """The half-widths for these tasks; where the share of luck is a guess, all spread is luck."""
    if seen.constant and seen.spread == spread:
        return _ExactWidths(tail=(1 - confidence) / 2)
    guessed = seen.spread.icc_interval is None
    luck, seen_luck = (replace(of, icc=0.0) if guessed else of for of in (spread, seen.spread))
    return _Widths.through(
        seen.this_suite,
        now=rough(seen.tasks, seen.runs, seen_luck).this_suite,
        normal=rough(seen.tasks, seen.runs, luck).this_suite,
        count=seen.tasks * seen.runs,
    )


def _least_width(rate: float, tasks: int, confidence: float) -> float:
    """Half the interval for similar tasks after endless runs of tasks that are all alike.

    Part of a task was not seen, and that part may never pass.
    """
    low, high = population_bounds(np.array([rate]), np.array([float(tasks)]), confidence)
    return float(high - low) / 2


def _runs_or_reason(
    needed: int | Unavailable | None,
    floors: list[float],
    half_width: float,
    tasks: int,
    icc: Interval,
) -> int | Unavailable:
    """The runs needed, or why none can be promised: the floor may lie above the target."""
    low, high = floors
    these = "this task" if tasks == 1 else f"these {tasks:,} tasks"
    if high < half_width and isinstance(needed, int):
        return needed
    if low >= half_width:
        # Rounded down: a width that is reached already must not be called out of reach.
        reach = f"below ±{int(100 * low)} points for similar tasks"
        return Unavailable(f"no number of trials on {these} gets {reach}")
    if low < 0.005:  # a range that starts at 0 would say nothing
        return Unavailable(
            f"whether more trials of {these} are enough for similar tasks is not known"
        )
    bounds = f"ICC {icc.low:.2f} to {icc.high:.2f}"
    floor = f"between ±{points(low)} and ±{points(high)} points ({bounds})"
    return Unavailable(f"for similar tasks, more trials of {these} stop helping somewhere {floor}")


def _typical_values(rate: float, variance: float) -> Floats:
    """Task means of a beta with this mean and variance; at the ends of [0, 1] if it has none."""
    room = rate * (1 - rate)
    size = room / variance - 1 if variance > 0 else np.inf
    if room <= 0 or np.isinf(size):
        return np.full(_LEVELS.size, rate)
    if size <= 0:
        return (rate >= 1 - _LEVELS).astype(np.float64)
    values = special.betaincinv(rate * size, (1 - rate) * size, _LEVELS)
    # So few quantiles miss the mean by a little: they are moved onto it.
    return np.asarray(np.clip(values + rate - values.mean(), 0.0, 1.0))
