"""The mean of partial-credit scores over a suite, from the sums per task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, whole_number
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.stats import special
from passhat.stats.arguments import (
    Floats,
    RandomSource,
    confidence_level,
    one_of,
    random_generator,
    score_sums,
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
from passhat.stats.proportions import interval_at
from passhat.stats.suite_law import suite_bounds
from passhat.stats.suite_mean import DEFAULT_METHODS, SCOPES, few_tasks_note

# An interval, its method in words, and the seed if it was drawn at random.
_Answer = tuple[Interval, str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scores:
    """The tasks with a run: their runs, summed scores and squares, and the options of a call."""

    runs: Floats
    totals: Floats
    squares: Floats
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
    counts, totals, powers = score_sums(n, total, squares)
    runs, sums = counts.astype(np.float64), np.clip(totals, 0, counts)
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
    means, tasks = scores.means, scores.means.size
    value = np.array([means @ group.weight / group.weight.sum()])
    over_families = None
    if scores.scope == THIS_SUITE:
        interval, method = _stratified(scores, group, float(value[0]))
        notes = weight_notes(group)
    else:
        answer = population_of(means[None, :], value, group, scores.confidence)
        interval, method, notes = interval_at(answer.bounds, 0), answer.method, answer.notes
        over_families = answer.family_bounds
    return Estimate(
        value=float(value[0]),
        interval=interval,
        method=method,
        confidence=scores.confidence,
        scope=scores.scope,
        tasks=tasks,
        runs=int(scores.runs.sum()),
        excluded_tasks=excluded,
        notes=notes + few_tasks_note(tasks, scores.scope),
        families=group.families if group.repeats else None,
        family_interval=over_families and interval_at(over_families, 0),
    )


def _stratified(scores: _Scores, group: TaskGroups, mean: float) -> tuple[Interval, str]:
    """Intervals of strata of equal weight, whose arms add up as squares do (Zou, Donner 2008)."""
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


def _all_or_nothing(sums: Floats, powers: Floats) -> bool:
    """Scores in [0, 1] whose squares add up to as much as they do are 0 or 1."""
    return bool((powers == sums).all() and (sums == np.round(sums)).all())


def _dispersion(scores: _Scores) -> float:
    """Mean within-task variance over mean m (1 - m): 1 for 0/1 scores, less for partial credit.

    m (1 - m) of a sample mean falls short by variance / n, which is added back. Without a task of
    two runs it is 1, the most that scores in [0, 1] can vary (Bhatia and Davis 2000).
    """
    twice = scores.runs > 1
    n, total = scores.runs[twice], scores.totals[twice]
    within = np.maximum(scores.squares[twice] - total**2 / n, 0) / (n - 1)
    room = total / n * (1 - total / n) + within / n
    # Rounded, so that scores of 0 and 1 give exactly 1.
    return float(min(round(within.sum() / room.sum(), 12), 1.0)) if room.sum() > 0 else 1.0


def _default(scores: _Scores) -> _Answer:
    method, level = DEFAULT_METHODS[scores.scope], scores.confidence
    if scores.scope == TASKS_LIKE_THESE:
        return interval_at(task_value_bounds(scores.means, level)), method, None
    if scores.all_or_nothing:
        runs, passes = (part.astype(np.int64) for part in (scores.runs, scores.totals))
        return interval_at(suite_bounds(count_cells(runs, passes), (1,), level), 0), method, None
    found = score_bounds(scores.runs, scores.totals, scores.squares, level)
    return interval_at(found), "run noise within tasks, between ordered laws", None


def _run_noise(scores: _Scores) -> Floats:
    """The unbiased variance of the mean over new runs; tasks of one run get the mean of others."""
    room, dispersion = scores.means * (1 - scores.means), _dispersion(scores)
    shortfall = np.maximum(1 - dispersion / scores.runs, 0.0)
    twice = shortfall > 0
    per_task = np.zeros_like(room)
    per_task[twice] = dispersion * room[twice] / shortfall[twice] / scores.runs[twice]
    if not twice.any():
        return np.array(scores.mean * (1 - scores.mean) / scores.means.size)
    per_task[~twice] = per_task[twice].mean()
    return np.array(per_task.sum() / scores.means.size**2)


def _student(scores: _Scores) -> _Answer:
    quantile = float(student_quantile(np.array(scores.means.size - 1.0), scores.confidence))
    return _plus_or_minus(scores, quantile), "mean plus or minus t standard errors", None


def _normal(scores: _Scores) -> _Answer:
    quantile = float(special.ndtri((1 + scores.confidence) / 2))
    return _plus_or_minus(scores, quantile), "mean plus or minus z standard errors (CLT)", None


def _plus_or_minus(scores: _Scores, quantile: float) -> Interval:
    fixed = scores.scope == THIS_SUITE
    square = float(_run_noise(scores)) if fixed else scores.variance / scores.means.size
    reach = quantile * float(np.sqrt(square))
    return Interval(max(scores.mean - reach, 0.0), min(scores.mean + reach, 1.0))


def _task_bootstrap(scores: _Scores, *, bca: bool = False) -> _Answer:
    generator, seed = random_generator(scores.rng)
    values, tallies = np.unique(scores.means, return_counts=True)
    tasks, level = tallies.astype(np.float64), scores.confidence
    means = task_means(values, tasks, resamples=scores.resamples, rng=generator)
    name = f"task bootstrap, {scores.resamples} resamples"
    if bca:
        return bca_interval(means, values, tasks, level), f"BCa {name}", seed
    return percentile_interval(means, level), name, seed


_METHODS: dict[str, Callable[[_Scores], _Answer]] = {
    "default": _default,
    "t": _student,
    "z": _normal,
    "task-bootstrap": _task_bootstrap,
    "bca": partial(_task_bootstrap, bca=True),
}
SCORE_METHODS = tuple(_METHODS)
