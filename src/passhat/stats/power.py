"""Planning: how many runs and tasks an answer needs, and what a budget can show."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, log, sqrt

import numpy as np

from passhat.arguments import CONFIDENCE, finite_number, probability, whole_number
from passhat.dataclass import short_dataclass
from passhat.errors import ArgumentError
from passhat.stats import special
from passhat.stats.arguments import confidence_level, one_of
from passhat.stats.estimate import Unavailable

METHODS = ("wald", "wilson")

# No plan is searched for beyond this many tasks or runs.
MOST = 10_000_000
# The finest half-width that may be asked for: it takes a trillion coin flips.
_FINEST = 1e-6


@short_dataclass(frozen=True, slots=True, kw_only=True)
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
    deviation of a single run's score.

    >>> recommend_runs(0.05)
    385
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
        raise ArgumentError("half_width", f"must be reached within {MOST} runs", width)
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
    if max_ci_width is None:
        return _half_width(half_width)
    width = probability("max_ci_width", max_ci_width, open_ends=True)
    if width < 2 * _FINEST:
        raise ArgumentError("max_ci_width", f"must be at least {2 * _FINEST}", max_ci_width)
    return width / 2


def _run_variance(p: float | None, sd: float | None, method: str) -> float:
    """The variance of a single run: of a pass at the rate `p`, or of a score of this `sd`."""
    if sd is None:
        rate = 0.5 if p is None else probability("p", p)
        return rate * (1 - rate)
    if p is not None:
        raise ArgumentError("sd", "must be given without p: either says how runs vary", sd)
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
    # Twelve standard deviations hold all of the law that a float can see.
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
            f"no number of runs on these {tasks} tasks gets below ±{least:.3g}; more tasks would"
        )
    return max(1, round_up(luck / (target**2 - least**2)))


def _best_runs(ratio: float, rho: float) -> int | Unavailable:
    """The whole number of runs with the least variance for its cost; Cochran (1977), 10.6."""
    if rho == 0:
        return Unavailable("with an ICC of 0 tasks do not differ: a run of any task is worth a run")
    ideal = sqrt(ratio * (1 - rho) / rho)
    choices = {max(1, floor(ideal)), max(1, ceil(ideal))}
    return min(choices, key=lambda n: ((rho + (1 - rho) / n) * (ratio + n), n))


def _normal_quantile(confidence: float) -> float:
    return float(special.ndtri((1 + confidence_level(confidence)) / 2))


def round_up(value: float) -> int:
    """The next whole number; a number that exceeds one by rounding alone is that number."""
    return ceil(value - 1e-9 * max(1.0, abs(value)))


def _half_width(value: object) -> float:
    width = probability("half_width", value, open_ends=True)
    if width >= 0.5:
        raise ArgumentError("half_width", "must lie strictly between 0 and 0.5", value)
    if width < _FINEST:
        raise ArgumentError("half_width", f"must be at least {_FINEST}", value)
    return width


def _positive(name: str, value: object) -> float:
    number = finite_number(name, value)
    if number <= 0:
        raise ArgumentError(name, "must be above 0", value)
    return number
