"""The mean of partial-credit scores over a suite, from the sums per task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.defaults import CONFIDENCE
from passhat.errors import ArgumentError
from passhat.fast_dataclass import dataclass
from passhat.stats import special
from passhat.stats.arguments import (
    Floats,
    RandomSource,
    confidence_level,
    count_array,
    one_of,
    random_generator,
    whole_number,
)
from passhat.stats.bootstrap import bca_interval, percentile_interval, task_means
from passhat.stats.cells import count_cells
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Scope,
    Unavailable,
)
from passhat.stats.families import population_of, weight_notes
from passhat.stats.mean_intervals import student_quantile
from passhat.stats.partial_credit import score_bounds
from passhat.stats.population_mean import Families, TaskGroups, grouping, task_value_bounds
from passhat.stats.proportions import Bounds
from passhat.stats.suite_law import suite_bounds
from passhat.stats.suite_mean import DEFAULT_METHODS, SCOPES, few_tasks_note

# How far sums of scores may be off by rounding, for each run.
_SUMS_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scores:
    """Runs, scores and dispersion: within-task variance as a share of a coin flip's."""

    runs: Floats
    totals: Floats
    squares: Floats
    dispersion: float
    all_or_nothing: bool
    confidence: float
    scope: Scope
    resamples: int
    rng: RandomSource

    @property
    def means(self) -> Floats:
        return self.totals / self.runs

    @property
    def mean(self) -> float:
        return float(self.means.mean())

    @property
    def variance(self) -> float:
        return float(self.means.var(ddof=1)) if self.means.size > 1 else 0.0


def score_estimate(
    n: ArrayLike,
    total: ArrayLike,
    squares: ArrayLike,
    *,
    scope: Scope = THIS_SUITE,
    method: str = "default",
    confidence: float = CONFIDENCE,
    family: Families | None = None,
    weight: ArrayLike | None = None,
    rng: RandomSource = None,
    resamples: int = 10_000,
) -> Estimate | Unavailable:
    """The mean over tasks of the mean score, scores in [0, 1].

    Each task is given by its number of runs, the sum of their scores and the sum of their squares.
    Scores of 0 and 1 give the interval of `suite_estimate` at k = 1. `family` and `weight` are
    those of `suite_estimate`.

    >>> score_estimate([4, 4, 4], [3.0, 2.5, 1.0], [2.5, 1.75, 0.5]).value
    0.5416...
    """
    runs, sums, powers = _checked_sums(n, total, squares)
    where = SCOPES[one_of("scope", scope, tuple(SCOPES))]
    bounds_by = _METHODS[one_of("method", method, tuple(_METHODS))]
    present = runs > 0
    tasks = int(present.sum())
    if tasks == 0:
        return Unavailable("the mean score needs at least one run of one task; there is none")
    if where == TASKS_LIKE_THESE and tasks == 1:
        return Unavailable(
            'the mean score of "tasks like these" needs at least 2 tasks; there is 1'
        )
    scores = _Scores(
        runs=runs[present],
        totals=sums[present],
        squares=powers[present],
        dispersion=_dispersion(runs[present], sums[present], powers[present]),
        all_or_nothing=_all_or_nothing(sums[present], powers[present]),
        confidence=confidence_level(confidence),
        scope=where,
        resamples=whole_number("resamples", resamples),
        rng=rng,
    )
    group = grouping(family, weight, runs.size)
    if group is not None:
        if method != "default":
            raise ArgumentError("method", "must be 'default' with families or weights", method)
        return _grouped(scores, group.taken(present), excluded=int(runs.size - tasks))
    interval, name, seed = bounds_by(scores)
    return Estimate(
        value=scores.mean,
        interval=interval,
        method=name,
        confidence=scores.confidence,
        scope=where,
        tasks=tasks,
        runs=int(scores.runs.sum()),
        excluded_tasks=int(runs.size - tasks),
        seed=seed,
        notes=few_tasks_note(tasks, where),
    )


def _grouped(scores: _Scores, group: TaskGroups, *, excluded: int) -> Estimate:
    """The mean over families or weighted tasks."""
    means, level = scores.means, scores.confidence
    value = np.array([means @ group.weight / group.weight.sum()])
    tasks = means.size
    answer = population_of(means[None, :], value, group, level)
    interval, method, notes = _first(answer.bounds), answer.method, answer.notes
    if scores.scope == THIS_SUITE:
        interval, method = _stratified(scores, group, float(value[0]))
        notes = weight_notes(group)
    over_families = answer.family_bounds if scores.scope == TASKS_LIKE_THESE else None
    return Estimate(
        value=float(value[0]),
        interval=interval,
        method=method,
        confidence=level,
        scope=scores.scope,
        tasks=tasks,
        runs=int(scores.runs.sum()),
        excluded_tasks=excluded,
        notes=notes + few_tasks_note(tasks, scores.scope),
        families=group.families if group.repeats else None,
        family_interval=None if over_families is None else _first(over_families),
    )


def _stratified(scores: _Scores, group: TaskGroups, mean: float) -> tuple[Interval, str]:
    """Intervals of strata of equal weight, their distances joined as squares (Zou, Donner 2008)."""
    below = above = 0.0
    method = ""
    for weight in np.unique(group.weight):
        kept = group.weight == weight
        some = replace(
            scores, runs=scores.runs[kept], totals=scores.totals[kept], squares=scores.squares[kept]
        )
        share = float(weight * kept.sum() / group.weight.sum())
        interval, method, _ = _default(some)
        below += (share * (some.mean - interval.low)) ** 2
        above += (share * (interval.high - some.mean)) ** 2
    return Interval(max(mean - below**0.5, 0.0), min(mean + above**0.5, 1.0)), method


def _first(bounds: Bounds) -> Interval:
    return Interval(float(bounds[0][0]), float(bounds[1][0]))


def _checked_sums(
    n: ArrayLike, total: ArrayLike, squares: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    runs = np.atleast_1d(count_array("n", n)).astype(np.float64)
    sums, powers = (
        _finite(name, values, runs.shape)
        for name, values in (("total", total), ("squares", squares))
    )
    slack = _SUMS_TOLERANCE * np.maximum(runs, 1)
    _demand(
        "total",
        "must lie between 0 and n (scores are in [0, 1])",
        sums,
        (sums >= -slack) & (sums <= runs + slack),
    )
    least = sums**2 / np.maximum(runs, 1)
    fits = (powers >= least - slack) & (powers <= sums + slack)
    _demand(
        "squares", "must lie between total^2 / n and total (scores are in [0, 1])", powers, fits
    )
    return runs, np.clip(sums, 0, runs), powers


def _finite(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    try:
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise ArgumentError(name, "must be numbers, one per task", values) from None
    if array.shape != shape or array.ndim != 1:
        raise ArgumentError(name, f"must have one number per task, as n has {shape}", array.shape)
    _demand(name, "must be finite", array, np.isfinite(array))
    return array


def _demand(name: str, rule: str, values: Floats, good: NDArray[np.bool_]) -> None:
    if not good.all():
        raise ArgumentError(name, rule, float(values[~good][0]))


def _all_or_nothing(sums: Floats, powers: Floats) -> bool:
    """Scores in [0, 1] whose squares add up to as much as they do are 0 or 1."""
    return bool((powers == sums).all() and (sums == np.round(sums)).all())


def _dispersion(runs: Floats, sums: Floats, powers: Floats) -> float:
    """Mean within-task variance over mean m (1 - m): 1 for 0/1 scores, less for partial credit.

    m (1 - m) of a sample mean falls short by variance / n, which is added back. Without a task of
    two runs it is 1, the most that scores in [0, 1] can vary (Bhatia and Davis 2000).
    """
    twice = runs > 1
    n, total = runs[twice], sums[twice]
    within = np.maximum(powers[twice] - total**2 / n, 0) / (n - 1)
    room = total / n * (1 - total / n) + within / n
    # Rounded, so that 0/1 scores are the very coin flips whose prior was fitted before.
    return float(min(round(within.sum() / room.sum(), 12), 1.0)) if room.sum() > 0 else 1.0


def _default(scores: _Scores) -> tuple[Interval, str, int | None]:
    method, level = DEFAULT_METHODS[scores.scope], scores.confidence
    if scores.scope == TASKS_LIKE_THESE:
        return _interval(task_value_bounds(scores.means, level)), method, None
    if scores.all_or_nothing:
        runs, passes = (part.astype(np.int64) for part in (scores.runs, scores.totals))
        low, high = suite_bounds(count_cells(runs, passes), (1,), level)
        return Interval(float(low[0]), float(high[0])), method, None
    found = score_bounds(scores.runs, scores.totals, scores.squares, level)
    return _interval(found), "run noise within tasks, between ordered laws", None


def _run_noise(scores: _Scores) -> Floats:
    """The unbiased variance of the mean over new runs, tasks of one run taken at the full room."""
    room = scores.means * (1 - scores.means)
    shortfall = np.maximum(1 - scores.dispersion / scores.runs, 0.0)
    twice = shortfall > 0
    per_task = np.zeros_like(room)
    per_task[twice] = scores.dispersion * room[twice] / shortfall[twice] / scores.runs[twice]
    if not twice.any():
        return np.array(scores.mean * (1 - scores.mean) / scores.means.size)
    per_task[~twice] = per_task[twice].mean()
    return np.array(per_task.sum() / scores.means.size**2)


def _student(scores: _Scores) -> tuple[Interval, str, int | None]:
    quantile = float(student_quantile(np.array(scores.means.size - 1.0), scores.confidence))
    return _plus_or_minus(scores, quantile), "mean plus or minus t standard errors", None


def _normal(scores: _Scores) -> tuple[Interval, str, int | None]:
    quantile = float(special.ndtri((1 + scores.confidence) / 2))
    return _plus_or_minus(scores, quantile), "mean plus or minus z standard errors (CLT)", None


def _plus_or_minus(scores: _Scores, quantile: float) -> Interval:
    fixed = scores.scope == THIS_SUITE
    square = float(_run_noise(scores)) if fixed else scores.variance / scores.means.size
    reach = quantile * float(np.sqrt(square))
    return Interval(max(scores.mean - reach, 0.0), min(scores.mean + reach, 1.0))


def _task_bootstrap(scores: _Scores) -> tuple[Interval, str, int | None]:
    means, _, _, seed = _resampled(scores)
    name = f"task bootstrap, {scores.resamples} resamples"
    return percentile_interval(means, scores.confidence), name, seed


def _bca(scores: _Scores) -> tuple[Interval, str, int | None]:
    means, values, tasks, seed = _resampled(scores)
    name = f"BCa task bootstrap, {scores.resamples} resamples"
    return bca_interval(means, values, tasks, scores.confidence), name, seed


def _resampled(scores: _Scores) -> tuple[Floats, Floats, Floats, int | None]:
    generator, seed = random_generator(scores.rng)
    values, tallies = np.unique(scores.means, return_counts=True)
    tasks = tallies.astype(np.float64)
    means = task_means(values, tasks, resamples=scores.resamples, rng=generator)
    return means, values, tasks, seed


def _interval(bounds: Bounds) -> Interval:
    return Interval(float(bounds[0]), float(bounds[1]))


_METHODS: dict[str, Callable[[_Scores], tuple[Interval, str, int | None]]] = {
    "default": _default,
    "t": _student,
    "z": _normal,
    "task-bootstrap": _task_bootstrap,
    "bca": _bca,
}
SCORE_METHODS = tuple(_METHODS)
