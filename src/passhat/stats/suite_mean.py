"""The mean over a suite's tasks, of pass^k, pass@k or a score, with its interval.

A sample (`_Passes`, `_Scores`) knows its values, the noise of its runs and its default interval.
There is one path from a sample to an `Estimate` and one table of methods, so that an option that
reaches the mean of passes reaches the mean of scores too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.arguments import CONFIDENCE, confidence_level, whole_number
from passhat.dataclass import dataclass, replace
from passhat.errors import ArgumentError
from passhat.stats import mean_intervals, special
from passhat.stats.arguments import (
    Counts,
    Floats,
    RandomSource,
    one_of,
    random_generator,
    score_sums,
)
from passhat.stats.estimate import (
    FEW_TASKS,
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Scope,
    Unavailable,
)
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.population_bounds import (
    Families,
    TaskGroups,
    family_bounds,
    few_families_note,
    grouping,
    task_value_bounds,
    weight_notes,
)
from passhat.stats.proportions import Bounds, interval_at, proportion_interval, wilson_bounds
from passhat.stats.sufficient_statistics import Cells, count_cells, stack, task_counts
from passhat.stats.suite_bounds import suite_bounds

METRICS = ("pass^k", "pass@k")

SCOPES: dict[str, Scope] = {scope: scope for scope in (THIS_SUITE, TASKS_LIKE_THESE)}

BIAS_WARNING = (
    "resampling trials inside tasks centres on (c/n)^k, not on the estimate: biased for k >= 2; "
    "use it only to reproduce another tool"
)
_RESAMPLES_TASKS = "resamples tasks, so its interval is for similar tasks"
_IGNORES_TASKS = "takes all trials for flips of one coin: far too narrow for similar tasks"

DEFAULT_METHODS = {
    THIS_SUITE: "run noise within tasks, stochastically ordered distributions",
    TASKS_LIKE_THESE: "task mean, Dirichlet weights",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """How the interval of a mean is to be computed."""

    scope: Scope
    confidence: float
    method: str = "default"
    resamples: int = 10_000
    rng: RandomSource = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Answer:
    """The means of a sample's questions and their bounds, along the last axis.

    `family_bounds` is the interval over families where there are too few for it to be the main one.
    """

    mean: Floats
    bounds: Bounds
    method: str
    seed: int | None = None
    notes: tuple[str, ...] = ()
    family_bounds: Bounds | None = None


def suite_estimate(
    n: ArrayLike,
    c: ArrayLike,
    *,
    metric: str = "pass^k",
    k: int = 1,
    scope: Scope = THIS_SUITE,
    method: str = "default",
    confidence: float = CONFIDENCE,
    family: Families | None = None,
    weight: ArrayLike | None = None,
    rng: RandomSource = None,
    resamples: int = 10_000,
) -> Estimate | Unavailable:
    """The mean over tasks of pass^k (or pass@k), from the runs n and passes c of each task.

    Scope "this suite": these tasks are what matters, only their runs are random. Scope "tasks
    like these": the tasks are a sample. Tasks with fewer than k runs are left out and counted.
    The suite mean of pass^k is reliability@k. `family` labels tasks that come from one source (a
    repository, a service): families are then what was sampled, if there are at least eight.
    `weight` is the weight of each task in the mean.

    >>> suite_estimate([10, 10, 10, 10, 10], [10, 9, 9, 7, 10], k=3).value
    0.7383...
    """
    one_of("metric", metric, METRICS)
    draws = whole_number("k", k)
    options = _checked(scope, SUITE_METHODS, method, confidence, resamples, rng)
    runs, passes = task_counts(n, c)
    group = _grouping(family, weight, runs.size, method)
    return _pass_estimates(runs, passes, metric, (draws,), (options,), group)[0][0]


def suite_estimates(
    n: ArrayLike,
    c: ArrayLike,
    *,
    ks: Sequence[int],
    metric: str = "pass^k",
    scopes: Sequence[Scope] = (THIS_SUITE, TASKS_LIKE_THESE),
    confidence: float = CONFIDENCE,
    family: Families | None = None,
    weight: ArrayLike | None = None,
) -> list[tuple[Estimate | Unavailable, ...]]:
    """`suite_estimate` by its default method for each k and scope, sharing most of the work.

    >>> for this_suite, tasks_like_these in suite_estimates([5] * 4, [5, 4, 3, 5], ks=(1, 2)):
    ...     print(round(this_suite.value, 2), round(tasks_like_these.interval.low, 2))
    0.85 0.37
    0.73 0.29
    """
    one_of("metric", metric, METRICS)
    draws = [whole_number("ks", k) for k in ks]
    level = confidence_level(confidence)
    options = [
        _Options(scope=SCOPES[one_of("scopes", scope, tuple(SCOPES))], confidence=level)
        for scope in scopes
    ]
    runs, passes = task_counts(n, c)
    group = _grouping(family, weight, runs.size)
    return _pass_estimates(runs, passes, metric, draws, options, group)


def suite_values(
    n: ArrayLike, c: ArrayLike, *, ks: Sequence[int], metric: str = "pass^k"
) -> list[float | None]:
    """The values of `suite_estimates` without their intervals; None for fewer than two tasks."""
    every = count_cells(*task_counts(n, c))
    values = dict[int, float]()
    for shared in _shared(every, ks):
        cells = every.having(shared[0])
        if cells.task_count > 1:
            values |= zip(shared, _Passes(cells, shared, metric=metric).stated, strict=True)
    return [values.get(k) for k in ks]


def estimates_within(
    cells: Cells, bounds: Bounds, *, metric: str, ks: Sequence[int], scope: Scope, confidence: float
) -> list[Estimate]:
    """The estimates of tasks that all have enough runs, with intervals that are known already."""
    sample = _Passes(cells, ks, metric=metric, bounds=bounds)
    estimates = _estimates(sample, _Options(scope=scope, confidence=confidence))
    return [estimate for estimate in estimates if isinstance(estimate, Estimate)]


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
    those of `suite_estimate`, and so are the methods, but for those that count passes.

    >>> score_estimate([4, 4, 4], [3.0, 2.5, 1.0], [2.5, 1.75, 0.5]).value
    0.5416...
    """
    counts, totals, powers = score_sums(n, total, squares)
    options = _checked(scope, SCORE_METHODS, method, confidence, resamples, rng)
    group = _grouping(family, weight, counts.size, method)
    kept = counts > 0
    if not kept.any():
        return Unavailable("the mean score needs at least one trial of one task; there is none")
    runs, sums = counts.astype(np.float64), np.clip(totals, 0, counts)
    sample = _Scores(runs[kept], sums[kept], powers[kept])
    excluded = int((~kept).sum())
    return _estimates(sample, options, group and group.taken(kept), excluded=excluded)[0]


def _checked(
    scope: Scope,
    methods: tuple[str, ...],
    method: str,
    confidence: float,
    resamples: int,
    rng: RandomSource,
) -> _Options:
    return _Options(
        scope=SCOPES[one_of("scope", scope, tuple(SCOPES))],
        confidence=confidence_level(confidence),
        method=one_of("method", method, methods),
        resamples=whole_number("resamples", resamples),
        rng=rng,
    )


def _grouping(
    family: Families | None, weight: ArrayLike | None, tasks: int, method: str = "default"
) -> TaskGroups | None:
    group = grouping(family, weight, tasks)
    if group is not None and method != "default":
        raise ArgumentError("method", "must be 'default' with families or weights", method)
    return group


def _pass_estimates(
    runs: Counts,
    passes: Counts,
    metric: str,
    ks: Sequence[int],
    options: Sequence[_Options],
    group: TaskGroups | None,
) -> list[tuple[Estimate | Unavailable, ...]]:
    """An answer to each of the options, for each k."""
    every = count_cells(runs, passes)
    answers: dict[int, tuple[Estimate | Unavailable, ...]] = {}
    for shared in _shared(every, ks):
        kept, cells = runs >= shared[0], every.having(shared[0])
        if cells.n.size == 0:
            for k in shared:
                answers[k] = (_too_few_runs(every, metric, k),) * len(options)
            continue
        if group is not None:
            n, c = (counts[kept].astype(np.float64) for counts in (runs, passes))
            cells = Cells(n=n, c=c, tasks=np.ones(n.size))  # families need one cell a task
        sample = _Passes(cells, shared, metric=metric)
        some, excluded = group and group.taken(kept), int((~kept).sum())
        estimates = [_estimates(sample, option, some, excluded=excluded) for option in options]
        answers.update(zip(shared, zip(*estimates, strict=True), strict=True))
    return [answers[k] for k in ks]


def _shared(every: Cells, ks: Sequence[int]) -> list[list[int]]:
    """The k for which the same tasks have enough runs: they share most of the work."""
    fewer = {k: int((every.n < k).sum()) for k in sorted(set(ks))}
    return [list(alike) for _, alike in groupby(fewer, key=lambda k: fewer[k])]


def _too_few_runs(every: Cells, metric: str, k: int) -> Unavailable:
    name = metric.replace("k", str(k))
    if every.n.size == 0:
        return Unavailable(f"{name} needs at least one task; there is none")
    most = int(every.n.max())
    return Unavailable(f"{name} needs {k} trials of a task; the most any has is {most}")


def _estimates(
    sample: _Passes | _Scores,
    options: _Options,
    group: TaskGroups | None = None,
    *,
    excluded: int = 0,
) -> list[Estimate | Unavailable]:
    """The mean for each question of the sample: the one path for passes and for scores."""
    scope, tasks = options.scope, sample.tasks
    if scope == TASKS_LIKE_THESE and tasks < 2:
        reason = "for similar tasks needs at least 2 tasks; there is 1"
        return [Unavailable(f"{name} {reason}") for name in sample.names]
    if group is None:
        answer = _METHODS[options.method](sample, options)
    else:
        answer = _weighted(sample, group, options)
    notes = answer.notes
    if tasks < FEW_TASKS and scope == TASKS_LIKE_THESE:
        few = f"{tasks} tasks are few to speak for others like them: the interval is rough"
        notes = (*notes, few)
    return [
        Estimate(
            value=value,
            interval=_interval(answer.bounds, place, mirrored=sample.mirrored),
            method=answer.method,
            confidence=options.confidence,
            scope=scope,
            tasks=tasks,
            runs=sample.runs,
            excluded_tasks=excluded,
            seed=answer.seed,
            notes=notes,
            families=group.families if group is not None and group.repeats else None,
            family_interval=answer.family_bounds
            and _interval(answer.family_bounds, place, mirrored=sample.mirrored),
        )
        for place, value in enumerate(_stated(answer.mean, mirrored=sample.mirrored))
    ]


def _stated(means: Floats, *, mirrored: bool) -> list[float]:
    """The values; of pass@k from the pass^k of the failures, if `mirrored`."""
    return [float(1 - mean if mirrored else mean) for mean in means]


def _interval(bounds: Bounds, place: int, *, mirrored: bool) -> Interval:
    """The interval at a place; of pass@k from that of pass^k of the failures, if `mirrored`."""
    interval = interval_at(bounds, place)
    return Interval(1 - interval.high, 1 - interval.low) if mirrored else interval


class _Passes:
    """pass^k of tasks that all have enough runs, for each k.

    pass@k of the passes is 1 - pass^k of the failures: only pass^k is ever computed, and for
    pass@k the sample is `mirrored`.
    """

    def __init__(
        self,
        cells: Cells,
        ks: Sequence[int],
        *,
        metric: str = "pass^k",
        bounds: Bounds | None = None,
    ) -> None:
        self.mirrored = metric == "pass@k"
        self.curve = mean_intervals.SuiteCurve(cells, ks, mirrored=self.mirrored)
        self.cells, self.ks = self.curve.cells, self.curve.ks
        self.names = [metric.replace("k", str(k)) for k in ks]
        self.tasks, self.runs = int(cells.task_count), int(cells.run_count)
        self._known_bounds = bounds

    @property
    def mean(self) -> Floats:
        """The mean over tasks for each k."""
        return self.curve.mean

    @property
    def stated(self) -> list[float]:
        """The values of its estimates."""
        return _stated(self.mean, mirrored=self.mirrored)

    @property
    def values(self) -> Floats:
        """A row for each k, a column for each cell."""
        return np.stack([share_of_passing_subsets(self.cells.n, self.cells.c, k) for k in self.ks])

    @property
    def distinct(self) -> tuple[Floats, Floats]:
        """The values of the first k, and how many tasks have each."""
        return self.values[0], self.cells.tasks

    @property
    def lattice(self) -> int:
        """With one n for all, every value is a multiple of 1 / C(n, k)."""
        same = np.ptp(self.cells.n) == 0
        return comb(int(self.cells.n[0]), self.ks[0]) if same else 1

    def variance(self, scope: Scope) -> Floats:
        """The variance of the mean for the first k."""
        return mean_intervals.variance_of_mean(self.cells, self.ks[0], scope)

    def default(self, scope: Scope, confidence: float) -> _Answer:
        if scope == THIS_SUITE and self.tasks == 1:
            return self._one_task(confidence)
        bounds = self._known_bounds or self.curve.bounds(scope, confidence)
        return _Answer(mean=self.mean, bounds=bounds, method=DEFAULT_METHODS[scope])

    @property
    def facts(self) -> Floats:
        """What was seen of each task, a row for each: tasks of equal rows have equal intervals."""
        return np.stack((self.cells.n, self.cells.c), axis=-1)

    def stratum(self, places: NDArray[np.intp], confidence: float) -> _Answer:
        """Some of the tasks, for these tasks alone."""
        cells = count_cells(self.cells.n[places], self.cells.c[places])
        mean = mean_intervals.SuiteCurve(cells, self.ks).mean
        bounds = suite_bounds(cells, self.ks, confidence)
        return _Answer(mean=mean, bounds=bounds, method=DEFAULT_METHODS[THIS_SUITE])

    def _one_task(self, confidence: float) -> _Answer:
        """The ends of the interval for p to the power k, opened to hold the unbiased value."""
        p = proportion_interval(int(self.cells.c[0]), self.runs, confidence=confidence)
        ends = [(p.low**k, p.high**k) for k in self.ks]
        low, high = np.array(ends).T
        bounds = np.minimum(self.mean, low), np.maximum(self.mean, high)
        return _Answer(
            mean=self.mean, bounds=bounds, method="one task: Wilson, ends to the power k"
        )


class _Scores:
    """The mean scores of tasks with a run, from their runs, summed scores and summed squares."""

    mirrored = False
    names = ("the mean score",)
    lattice = 1

    def __init__(
        self, runs: Floats, totals: Floats, squares: Floats, *, all_or_nothing: bool | None = None
    ) -> None:
        self._runs, self._totals, self._squares = runs, totals, squares
        self._means = totals / runs
        self.mean = np.array([self._means.mean()])
        self.tasks, self.runs = runs.size, int(runs.sum())
        if all_or_nothing is None:
            # Scores in [0, 1] whose squares add up to as much as they do are 0 or 1.
            all_or_nothing = bool((squares == totals).all() and (totals == np.round(totals)).all())
        self._all_or_nothing = all_or_nothing

    @property
    def values(self) -> Floats:
        """A row, with a column for each task."""
        return self._means[None, :]

    @property
    def distinct(self) -> tuple[Floats, Floats]:
        values, tasks = np.unique(self._means, return_counts=True)
        return values, tasks.astype(np.float64)

    def variance(self, scope: Scope) -> Floats:
        if scope == THIS_SUITE:
            return self._run_noise()
        spread = self._means.var(ddof=1) if self.tasks > 1 else 0.0
        return np.array([spread / self.tasks])

    def default(self, scope: Scope, confidence: float) -> _Answer:
        method = DEFAULT_METHODS[scope]
        if scope == TASKS_LIKE_THESE:
            low, high = task_value_bounds(self._means, confidence)
        elif self._all_or_nothing:
            runs, passes = (part.astype(np.int64) for part in (self._runs, self._totals))
            low, high = suite_bounds(count_cells(runs, passes), (1,), confidence)
        else:
            low, high = score_bounds(self._runs, self._totals, self._squares, confidence)
            method = "run noise within tasks, between stochastically ordered distributions"
        bounds = np.atleast_1d(low), np.atleast_1d(high)
        return _Answer(mean=self.mean, bounds=bounds, method=method)

    @property
    def facts(self) -> Floats:
        """What was seen of each task, a row for each."""
        return np.stack((self._runs, self._totals, self._squares), axis=-1)

    def stratum(self, places: NDArray[np.intp], confidence: float) -> _Answer:
        """Some of the tasks, for these tasks alone."""
        parts = self._runs[places], self._totals[places], self._squares[places]
        some = _Scores(*parts, all_or_nothing=self._all_or_nothing)
        return some.default(THIS_SUITE, confidence)

    def _run_noise(self) -> Floats:
        """The unbiased variance over new runs; tasks of one run get the mean of others."""
        room, dispersion = self._means * (1 - self._means), self._dispersion()
        shortfall = np.maximum(1 - dispersion / self._runs, 0.0)
        twice = shortfall > 0
        if not twice.any():
            return np.asarray(self.mean * (1 - self.mean) / self.tasks)
        noise = np.zeros_like(room)
        noise[twice] = dispersion * room[twice] / shortfall[twice] / self._runs[twice]
        noise[~twice] = noise[twice].mean()
        return np.array([noise.sum() / self.tasks**2])

    def _dispersion(self) -> float:
        """Mean within-task variance over mean m (1 - m): 1 for 0/1 scores, less for partial credit.

        m (1 - m) of a sample mean falls short by variance / n, which is added back. Without a task
        of two runs it is 1, the most that scores in [0, 1] can vary (Bhatia and Davis 2000).
        """
        twice = self._runs > 1
        n, total = self._runs[twice], self._totals[twice]
        within = np.maximum(self._squares[twice] - total**2 / n, 0) / (n - 1)
        room = total / n * (1 - total / n) + within / n
        # Rounded, so that scores of 0 and 1 give exactly 1.
        return float(min(round(within.sum() / room.sum(), 12), 1.0)) if room.sum() > 0 else 1.0


def _weighted(sample: _Passes | _Scores, group: TaskGroups, options: _Options) -> _Answer:
    """The mean over families or weighted tasks."""
    level, values = options.confidence, sample.values
    mean = values @ group.weight / group.weight.sum()
    if options.scope == THIS_SUITE:
        answer = _stratified(sample, group, mean, level)
        return replace(answer, notes=weight_notes(group))
    over_families = family_bounds(values, group, level)
    few = group.few_families
    return _Answer(
        mean=mean,
        bounds=family_bounds(values, group.alone(), level) if few else over_families,
        family_bounds=over_families if few else None,
        method=f"{'family' if group.many_families else 'task'} mean, Dirichlet weights",
        notes=(*few_families_note(group), *weight_notes(group)),
    )


def _stratified(
    sample: _Passes | _Scores, group: TaskGroups, mean: Floats, confidence: float
) -> _Answer:
    """Bounds of strata of equal weight, joined: their margins add up as squares do.

    The method of variance estimates recovery (Zou and Donner 2008). It is coherent: an end rises
    with the mean of each stratum and with its bound. Strata in which the same was seen share one
    answer: thousands of tasks, each of its own weight, have few different ones.
    """
    facts = sample.facts
    order = np.lexsort((*facts.T[::-1], group.weight))
    weights, sizes = np.unique(group.weight, return_counts=True)
    ends = np.cumsum(sizes)
    seen, answers = facts[order], dict[bytes, _Answer]()
    keys = [
        seen[start:end].tobytes() for start, end in zip(ends - sizes, ends.tolist(), strict=True)
    ]
    for key, start, end in zip(keys, ends - sizes, ends, strict=True):
        if key not in answers:
            answers[key] = sample.stratum(np.sort(order[start:end]), confidence)
    strata = [answers[key] for key in keys]
    share = (weights * sizes / group.weight.sum())[:, None]
    centre = np.stack([stratum.mean for stratum in strata])
    low, high = (np.stack([stratum.bounds[side] for stratum in strata]) for side in (0, 1))
    below, above = (
        np.sqrt(((share * margin) ** 2).sum(axis=0)) for margin in (centre - low, high - centre)
    )
    bounds = np.maximum(mean - below, 0.0), np.minimum(mean + above, 1.0)
    return _Answer(mean=mean, bounds=bounds, method=strata[-1].method)


def _student(sample: _Passes | _Scores, options: _Options) -> _Answer:
    quantile = mean_intervals.student_quantile(np.array(sample.tasks - 1.0), options.confidence)
    return _around(sample, options, quantile, "t standard errors")


def _normal(sample: _Passes | _Scores, options: _Options) -> _Answer:
    quantile = special.ndtri((1 + options.confidence) / 2)
    return _around(sample, options, quantile, "z standard errors (CLT)")


def _around(
    sample: _Passes | _Scores, options: _Options, quantile: Floats | float, reach: str
) -> _Answer:
    bounds = mean_intervals.around_mean(sample.mean, sample.variance(options.scope), quantile)
    return _Answer(mean=sample.mean, bounds=bounds, method=f"mean plus or minus {reach}")


def _pooled_wilson(sample: _Passes, options: _Options) -> _Answer:
    runs, quantile = sample.cells.run_count, special.ndtri((1 + options.confidence) / 2)
    return _Answer(
        mean=sample.mean,
        bounds=wilson_bounds(sample.mean, runs, quantile),
        method="Wilson on all runs pooled",
        notes=(_IGNORES_TASKS,) if options.scope == TASKS_LIKE_THESE else (),
    )


def _task_bootstrap(sample: _Passes | _Scores, options: _Options, *, bca: bool = False) -> _Answer:
    generator, seed = random_generator(options.rng)
    values, tasks = sample.distinct
    means = mean_intervals.task_means(values, tasks, resamples=options.resamples, rng=generator)
    if bca:
        interval = mean_intervals.bca_interval(means, values, tasks, options.confidence)
    else:
        interval = mean_intervals.percentile_interval(means, options.confidence)
    method = f"{'BCa ' if bca else ''}task bootstrap, {options.resamples} resamples"
    return _resampled(sample, options, interval, method, seed)


def _exact_bootstrap(sample: _Passes | _Scores, options: _Options) -> _Answer:
    if sample.tasks > mean_intervals.EXACT_BOOTSTRAP_TASKS:
        rule = f'"exact-bootstrap" takes at most {mean_intervals.EXACT_BOOTSTRAP_TASKS} tasks'
        raise ArgumentError("method", f"{rule}; use 'task-bootstrap'", f"{sample.tasks} tasks")
    level, lattice = options.confidence, sample.lattice
    interval = mean_intervals.exact_task_interval(*sample.distinct, level, lattice=lattice)
    return _resampled(sample, options, interval, "task bootstrap, exact distribution", None)


def _hierarchical_bootstrap(sample: _Passes, options: _Options) -> _Answer:
    generator, seed = random_generator(options.rng)
    k, resamples = sample.ks[0], options.resamples
    means = mean_intervals.hierarchical_means(sample.cells, k, resamples=resamples, rng=generator)
    interval = mean_intervals.percentile_interval(means, options.confidence)
    method = f"hierarchical bootstrap, {resamples} resamples"
    answer = _resampled(sample, options, interval, method, seed)
    return replace(answer, notes=(*answer.notes, BIAS_WARNING)) if k > 1 else answer


def _resampled(
    sample: _Passes | _Scores, options: _Options, interval: Interval, method: str, seed: int | None
) -> _Answer:
    return _Answer(
        mean=sample.mean,
        bounds=(np.array([interval.low]), np.array([interval.high])),
        method=method,
        seed=seed,
        notes=(_RESAMPLES_TASKS,) if options.scope == THIS_SUITE else (),
    )


_METHODS: dict[str, Callable[[Any, _Options], _Answer]] = {
    "default": lambda sample, options: sample.default(options.scope, options.confidence),
    "t": _student,
    "z": _normal,
    "wilson-pooled": _pooled_wilson,
    "task-bootstrap": _task_bootstrap,
    "exact-bootstrap": _exact_bootstrap,
    "bca": partial(_task_bootstrap, bca=True),
    "hierarchical-bootstrap": _hierarchical_bootstrap,
}
SUITE_METHODS = tuple(_METHODS)
# Pooled runs, and runs drawn again inside a task, are counts of passes: sums of scores do not
# say what a single run scored.
_OF_PASSES_ONLY = ("wilson-pooled", "hierarchical-bootstrap")
SCORE_METHODS = tuple(method for method in _METHODS if method not in _OF_PASSES_ONLY)


# Coherent bounds for the mean score of the tasks that were run, with partial credit.
#
# A higher score of any run must never lower a bound. Write a score as 1 minus a loss: every sum
# of losses, and every sum of squared losses, can only fall when a score rises. So the lower end
# is made a function that falls with both, and it is enough to know the two sums of each task:
#
# - both sums give the noise of the mean, and with it a bound (Wilson's, or the one for rare
#   failures). Smaller losses can mean more noise and a worse bound, so the worst bound over all
#   smaller losses is taken, which falls with both sums by construction;
# - that bound is kept between two coherent bounds for scores of 0 and 1 (suite_bounds): one as if
#   the losses were failures (no score varies more, Bhatia and Davis 2000), one as if the squared
#   losses were. Where every score is 0 or 1 the two are the same, so this needs no special case.
#
# The upper end is the lower end of the losses.

# Sums of scores are off by their last digits: a sum this close to a whole number is that number.
_ROUNDING = 1e-9
# Below this there is no noise: Wilson's interval is a point there.
_NO_NOISE = 1e-12
# A single run of a single task does not show its variance: the largest possible is assumed.
_LARGEST_VARIANCE = 0.25
# Points at which the worst smaller loss is looked for, and how often the best stretch is divided
# again: 24 and 3 times 24 find it to 1e-5 of its range, and the bound, flat there, to 1e-9.
_POINTS, _TIMES = 24, 4
# With so many tasks a single score moves the noise so little that one division is enough.
_MANY = 4096


def score_bounds(runs: Floats, total: Floats, squares: Floats, confidence: float) -> Bounds:
    """The interval for the mean over tasks, from runs, summed scores and summed squares of each.

    >>> low, high = score_bounds(np.full(3, 4.0), np.full(3, 2.0), np.full(3, 1.5), 0.95)
    >>> round(float(low), 2), round(float(high), 2)
    (0.25, 0.75)
    """
    sides = (
        _Losses.of(runs, runs - total, runs - 2 * total + squares),
        _Losses.of(runs, total, squares),
    )
    limits = _limits(sides, confidence)
    low, missing = (
        float(np.clip(_worst_bound(side, confidence), *ends))
        for side, ends in zip(sides, limits, strict=True)
    )
    mean = float((total / runs).mean())
    return np.array(min(low, mean)), np.array(max(1 - missing, mean))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Losses:
    """Runs, summed losses and summed squared losses of each task."""

    runs: Floats
    sums: Floats
    squares: Floats

    @classmethod
    def of(cls, runs: Floats, sums: Floats, squares: Floats) -> _Losses:
        """With squares that losses in [0, 1] can have: rounding may have left them outside."""
        sums = np.clip(sums, 0.0, runs)
        return cls(runs=runs, sums=sums, squares=np.clip(squares, sums**2 / runs, sums))


def _limits(sides: tuple[_Losses, _Losses], confidence: float) -> list[tuple[float, float]]:
    """For each side, the bounds as if losses, and as if squared losses, were failures."""
    failures = [
        count
        for side in sides
        for count in (np.ceil(side.sums - _ROUNDING), np.floor(side.squares + _ROUNDING))
    ]
    runs = sides[0].runs
    suites = [
        count_cells(runs.astype(np.int64), (runs - count).astype(np.int64)) for count in failures
    ]
    low = suite_bounds(stack(*suites), (1,), confidence)[0][..., 0]
    return [(float(low[0]), float(low[1])), (float(low[2]), float(low[3]))]


def _worst_bound(side: _Losses, confidence: float) -> float:
    """The lowest bound over all losses, and squared losses, up to those seen.

    For a given mean loss the noise is largest where sum a^2 y^2 / (n - 1) is smallest, a being the
    share of a task: where every loss y is a common multiple of (n - 1) / a, or as near to it as
    its own limits allow (Lagrange). So a search over one number, that multiple, is enough.
    """
    strata = _Strata.of(side)
    runs = float(side.runs.sum())
    quantile = float(
        mean_intervals.student_quantile(
            np.array(max(runs - side.runs.size, side.runs.size - 1)), confidence
        )
    )

    def bound(multiple: Floats) -> Floats:
        mean, noise = strata.at(multiple)
        level = np.maximum(mean * (1 - mean), _NO_NOISE)
        flips = np.clip(level / np.maximum(noise, _NO_NOISE), side.runs.size, 1 / _NO_NOISE)
        low = wilson_bounds(mean, flips, quantile)[0]
        few = mean_intervals.rare_failure_bound(mean, noise, runs, np.array(quantile), confidence)
        return np.asarray(np.minimum(low, few))

    points = np.union1d(*(np.linspace(0, end, _POINTS + 1) for end in strata.multiples))
    for _ in range(_TIMES if strata.share.size < _MANY else 1):
        values = bound(points)
        best = int(np.argmin(values))
        around = points[max(best - 1, 0)], points[min(best + 1, points.size - 1)]
        points = np.linspace(*around, _POINTS + 1)
    return float(values.min())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Strata:
    """Tasks with at least two runs, each alone, and all tasks of one run as if they were one task.

    (The scores of tasks with one run differ by chance and by task: their spread is no less than
    the noise.) `share` is the weight of a stratum in the mean, `loss` and `square` are its means.
    """

    share: Floats
    runs: Floats
    loss: Floats
    square: Floats

    @classmethod
    def of(cls, side: _Losses) -> _Strata:
        once = side.runs == 1
        parts = [np.ones(side.runs.size), side.runs, side.sums, side.squares]
        if once.any():
            parts = [np.append(part[~once], part[once].sum()) for part in parts]
        tasks, runs, sums, squares = parts
        return cls(share=tasks / side.runs.size, runs=runs, loss=sums / runs, square=squares / runs)

    @property
    def multiples(self) -> tuple[float, float]:
        """Below the first every loss is 0, beyond the second every loss is as it was seen."""
        return -0.5 / float(self._reach.min()), float((self.loss / self._reach).max())

    @property
    def _reach(self) -> Floats:
        return np.maximum(self.runs - 1, 1) / self.share

    def at(self, multiple: Floats) -> Bounds:
        """The mean score, and the variance of it, for losses of so many times (n - 1) / a."""
        reach = multiple[:, None] * self._reach
        # Squares exceed no loss: below its square a loss takes the square along, and its variance
        # is the y (1 - y) of zeros and ones.
        as_failures = np.clip(0.5 + reach, 0.0, self.square)
        loss = np.minimum(self.loss, np.maximum(reach, as_failures))
        alone = self.runs == 1
        loss = np.where(alone, self.loss, loss)
        spread = np.minimum(self.square, loss) - loss**2
        variance = np.where(alone, _LARGEST_VARIANCE, spread / np.maximum(self.runs - 1, 1))
        noise = np.maximum(variance, 0.0) @ self.share**2
        return 1 - loss @ self.share, noise
