"""Planning a comparison: tasks x runs that show a difference of two systems on the same tasks."""

from __future__ import annotations

from functools import partial
from math import sqrt

import numpy as np

from passhat.arguments import CONFIDENCE, finite_number, probability, whole_number
from passhat.dataclass import short_dataclass
from passhat.errors import ArgumentError
from passhat.stats import special
from passhat.stats.arguments import confidence_level
from passhat.stats.estimate import Unavailable
from passhat.stats.power import MOST, score_variance, smallest_count
from passhat.stats.roots import bisected


@short_dataclass(frozen=True, slots=True, kw_only=True)
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

    >>> found = detectable_difference(tasks=100, runs=5, icc=0.4, task_correlation=0.8)
    >>> round(found.value, 3)
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
    no number of runs on 100 tasks shows a difference of 0.02; more tasks would
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
            f"no number of runs on {tasks} tasks shows a difference of {size:g}; more tasks would"
        )
    return answer


def _difference_error(
    tasks: int, runs: int, *, variance: float, icc: float, task_correlation: float
) -> float:
    """The standard error of the mean paired difference of task means."""
    spread, rho = score_variance(variance), probability("icc", icc)
    shared = probability("task_correlation", task_correlation)
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
    return bisected(enough, low, high)[1]


def _difference(value: object) -> float:
    size = abs(finite_number("difference", value))
    if not 0 < size <= 1:
        raise ArgumentError("difference", "must lie in [-1, 1] and not be 0", value)
    return size
