"""The mean of pass^k or pass@k over a suite, with an interval for the question that was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.arguments import CONFIDENCE, whole_number
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import (
    Counts,
    Floats,
    RandomSource,
    confidence_level,
    one_of,
    random_generator,
)
from passhat.stats.bootstrap import (
    EXACT_BOOTSTRAP_TASKS,
    bca_interval,
    exact_task_interval,
    hierarchical_means,
    percentile_interval,
    task_means,
)
from passhat.stats.cells import Cells, count_cells, task_counts
from passhat.stats.estimate import (
    FEW_TASKS,
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Scope,
    Unavailable,
)
from passhat.stats.families import grouped_bounds
from passhat.stats.mean_intervals import (
    SuiteCurve,
    normal_bounds,
    pooled_wilson_bounds,
    student_bounds,
)
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.population_mean import Families, TaskGroups, grouping
from passhat.stats.proportions import Bounds, interval_at, proportion_interval

METRICS = ("pass^k", "pass@k")
SCOPES: dict[str, Scope] = {scope: scope for scope in (THIS_SUITE, TASKS_LIKE_THESE)}

BIAS_WARNING = (
    "resampling runs inside tasks centres on (c/n)^k, not on the estimate: biased for k >= 2; "
    "use it only to reproduce another tool"
)
_RESAMPLES_TASKS = 'resamples tasks, so its interval answers "tasks like these"'
DEFAULT_METHODS = {
    THIS_SUITE: "run noise within tasks, ordered laws",
    TASKS_LIKE_THESE: "task mean, Dirichlet weights",
}
_IGNORES_TASKS = 'takes all runs for flips of one coin: far too narrow for "tasks like these"'


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    metric: str
    k: int
    scope: Scope
    confidence: float
    resamples: int = 10_000
    rng: RandomSource = None

    def __str__(self) -> str:
        return self.metric.replace("k", str(self.k))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    interval: Interval
    method: str
    seed: int | None = None
    notes: tuple[str, ...] = ()


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
    asked = _Question(
        metric=one_of("metric", metric, METRICS),
        k=whole_number("k", k),
        scope=SCOPES[one_of("scope", scope, tuple(SCOPES))],
        confidence=confidence_level(confidence),
        resamples=whole_number("resamples", resamples),
        rng=rng,
    )
    answer_by = _METHODS[one_of("method", method, tuple(_METHODS))]
    runs, passes = task_counts(n, c)
    group = grouping(family, weight, runs.size)
    if group is not None:
        if method != "default":
            raise ArgumentError("method", "must be 'default' with families or weights", method)
        return _grouped_answers(runs, passes, group, (asked,))[0]
    every = count_cells(runs, passes)
    cells = every.having(asked.k)
    missing = _why_not(every, cells, asked)
    if missing is not None:
        return missing
    # pass@k of the passes is 1 - pass^k of the failures: only pass^k is ever computed.
    counted = cells.mirrored() if asked.metric == "pass@k" else cells
    value = counted.mean(_value(counted, asked))
    return _estimate(every, cells, asked, answer_by(counted, asked), value)


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
    asked = [
        _Question(
            metric=one_of("metric", metric, METRICS),
            k=whole_number("ks", k),
            scope=SCOPES[one_of("scopes", scope, tuple(SCOPES))],
            confidence=confidence_level(confidence),
        )
        for scope in scopes
        for k in ks
    ]
    runs, passes = task_counts(n, c)
    group = grouping(family, weight, runs.size)
    if group is not None:
        answers = iter(_grouped_answers(runs, passes, group, asked))
        by_scope = [[next(answers) for _ in ks] for _ in scopes]
        return list(zip(*by_scope, strict=True))
    every = count_cells(runs, passes)
    found: dict[tuple[Scope, int], Estimate | Unavailable] = {}
    # Work is shared by the k for which the same tasks have enough runs.
    short = sorted({one.k: int((every.n < one.k).sum()) for one in asked}.items())
    for _, alike in groupby(short, key=lambda pair: pair[1]):
        together = {k for k, _ in alike}
        questions = [one for one in asked if one.k in together]
        for one, answer in zip(questions, _answers(every, questions), strict=True):
            found[one.scope, one.k] = answer
    return [tuple(found[scope, k] for scope in scopes) for k in ks]


def estimates_within(
    cells: Cells, bounds: Bounds, *, metric: str, ks: Sequence[int], scope: Scope, confidence: float
) -> list[Estimate]:
    """The estimates of tasks that all have enough runs, with intervals that are known already."""
    asked = [_Question(metric=metric, k=k, scope=scope, confidence=confidence) for k in ks]
    return [one for one in _answers(cells, asked, {scope: bounds}) if isinstance(one, Estimate)]


def few_tasks_note(tasks: int, scope: Scope) -> tuple[str, ...]:
    """The warning that goes with an interval for a population of which few tasks were seen."""
    if tasks >= FEW_TASKS or scope == THIS_SUITE:
        return ()
    return (f"{tasks} tasks are few to speak for others like them: the interval is rough",)


def _why_not(every: Cells, cells: Cells, asked: _Question) -> Unavailable | None:
    if every.n.size == 0:
        return Unavailable(f"{asked} needs at least one task; there is none")
    if cells.n.size == 0:
        most = int(every.n.max())
        return Unavailable(f"{asked} needs {asked.k} runs of a task; the most any has is {most}")
    if asked.scope == TASKS_LIKE_THESE and cells.task_count < 2:
        return Unavailable(f'{asked} of "tasks like these" needs at least 2 tasks; there is 1')
    return None


def _answers(
    every: Cells, asked: Sequence[_Question], known: dict[Scope, Bounds] | None = None
) -> Iterator[Estimate | Unavailable]:
    """The default answers to questions for which the same tasks have enough runs."""
    cells = every.having(asked[0].k)
    curve: SuiteCurve | None = None
    found = known or {}
    for one in asked:
        missing = _why_not(every, cells, one)
        if missing is not None:
            yield missing
            continue
        mirrored = one.metric == "pass@k"
        curve = curve or SuiteCurve(cells, sorted({q.k for q in asked}), mirrored=mirrored)
        if one.scope not in found:
            found[one.scope] = curve.bounds(one.scope, one.confidence)
        place = curve.ks.index(one.k)
        answer = _from_curve(curve, one, found[one.scope], place)
        yield _estimate(every, cells, one, answer, curve.mean[place])


def _grouped_answers(
    runs: Counts, passes: Counts, group: TaskGroups, asked: Sequence[_Question]
) -> list[Estimate | Unavailable]:
    """Answers over families or weighted tasks, together where the same tasks have enough runs."""
    found: dict[_Question, Estimate | Unavailable] = {}
    every = count_cells(runs, passes)
    sets: dict[tuple[Scope, int], list[_Question]] = {}
    for one in asked:
        kept = runs >= one.k
        missing = _why_not(every, every.having(one.k), one)
        if missing is not None:
            found[one] = missing
        else:
            sets.setdefault((one.scope, int(kept.sum())), []).append(one)
    for alike in sets.values():
        kept = runs >= alike[0].k
        found.update(zip(alike, _grouped(runs, passes, group, kept, alike), strict=True))
    return [found[one] for one in asked]


def _grouped(
    runs: Counts, passes: Counts, group: TaskGroups, kept: NDArray[np.bool_], asked: list[_Question]
) -> Iterator[Estimate]:
    first, some = asked[0], group.taken(kept)
    mirrored = first.metric == "pass@k"
    n = runs[kept].astype(np.float64)
    c = (runs - passes if mirrored else passes)[kept].astype(np.float64)
    answer = grouped_bounds(
        n, c, some, ks=[one.k for one in asked], scope=first.scope, confidence=first.confidence
    )
    for place, one in enumerate(asked):
        value = float(answer.values[place])
        yield Estimate(
            value=1 - value if mirrored else value,
            interval=_turned(interval_at(answer.bounds, place), mirrored=mirrored),
            method=answer.method,
            confidence=one.confidence,
            scope=one.scope,
            tasks=int(kept.sum()),
            runs=int(runs[kept].sum()),
            excluded_tasks=int((~kept).sum()),
            notes=answer.notes + few_tasks_note(int(kept.sum()), one.scope),
            families=some.families if some.repeats else None,
            family_interval=answer.family_bounds
            and _turned(interval_at(answer.family_bounds, place), mirrored=mirrored),
        )


def _turned(interval: Interval, *, mirrored: bool) -> Interval:
    """The interval of pass@k from that of pass^k of the failures, if `mirrored`."""
    return Interval(1 - interval.high, 1 - interval.low) if mirrored else interval


def _estimate(
    every: Cells, cells: Cells, asked: _Question, answer: _Answer, value: Floats
) -> Estimate:
    mirrored = asked.metric == "pass@k"
    return Estimate(
        value=float(1 - value if mirrored else value),
        interval=_turned(answer.interval, mirrored=mirrored),
        method=answer.method,
        confidence=asked.confidence,
        scope=asked.scope,
        tasks=int(cells.task_count),
        runs=int(cells.run_count),
        excluded_tasks=int(every.task_count - cells.task_count),
        seed=answer.seed,
        notes=answer.notes + few_tasks_note(int(cells.task_count), asked.scope),
    )


def _default(cells: Cells, asked: _Question) -> _Answer:
    curve = SuiteCurve(cells, (asked.k,))
    return _from_curve(curve, asked, curve.bounds(asked.scope, asked.confidence), 0)


def _from_curve(curve: SuiteCurve, asked: _Question, bounds: Bounds, place: int) -> _Answer:
    if asked.scope == THIS_SUITE and curve.cells.task_count == 1:
        return _one_task(curve.cells, asked)
    return _Answer(interval=interval_at(bounds, place), method=DEFAULT_METHODS[asked.scope])


def _one_task(cells: Cells, asked: _Question) -> _Answer:
    """The ends of the interval for p to the power k, opened to hold the unbiased value."""
    p = proportion_interval(int(cells.c[0]), int(cells.n[0]), confidence=asked.confidence)
    value = float(_value(cells, asked)[0])
    interval = Interval(min(value, p.low**asked.k), max(value, p.high**asked.k))
    return _Answer(interval=interval, method="one task: Wilson, ends to the power k")


def _around_mean(of: Callable[..., Bounds], method: str, cells: Cells, asked: _Question) -> _Answer:
    bounds = of(cells, asked.k, asked.scope, asked.confidence)
    return _Answer(interval=interval_at(bounds), method=f"mean plus or minus {method}")


def _pooled_wilson(cells: Cells, asked: _Question) -> _Answer:
    bounds = pooled_wilson_bounds(cells, asked.k, asked.scope, asked.confidence)
    notes = (_IGNORES_TASKS,) if asked.scope == TASKS_LIKE_THESE else ()
    return _Answer(interval=interval_at(bounds), method="Wilson on all runs pooled", notes=notes)


def _task_bootstrap(cells: Cells, asked: _Question, *, bca: bool = False) -> _Answer:
    generator, seed = random_generator(asked.rng)
    values, level = _value(cells, asked), asked.confidence
    means = task_means(values, cells.tasks, resamples=asked.resamples, rng=generator)
    interval = (
        bca_interval(means, values, cells.tasks, level)
        if bca
        else percentile_interval(means, level)
    )
    name = f"{'BCa ' if bca else ''}task bootstrap, {asked.resamples} resamples"
    return _resampled(asked, interval, name, seed)


def _exact_bootstrap(cells: Cells, asked: _Question) -> _Answer:
    tasks = int(cells.task_count)
    if tasks > EXACT_BOOTSTRAP_TASKS:
        rule = f'"exact-bootstrap" takes at most {EXACT_BOOTSTRAP_TASKS} tasks'
        raise ArgumentError("method", f"{rule}; use 'task-bootstrap'", f"{tasks} tasks")
    # With one n for all, every value is a multiple of 1 / C(n, k).
    lattice = comb(int(cells.n[0]), asked.k) if np.ptp(cells.n) == 0 else 1
    values = _value(cells, asked)
    interval = exact_task_interval(values, cells.tasks, asked.confidence, lattice=lattice)
    return _resampled(asked, interval, "task bootstrap, exact law", None)


def _hierarchical_bootstrap(cells: Cells, asked: _Question) -> _Answer:
    generator, seed = random_generator(asked.rng)
    means = hierarchical_means(cells, asked.k, resamples=asked.resamples, rng=generator)
    interval = percentile_interval(means, asked.confidence)
    name = f"hierarchical bootstrap, {asked.resamples} resamples"
    answer = _resampled(asked, interval, name, seed)
    return replace(answer, notes=(*answer.notes, BIAS_WARNING)) if asked.k > 1 else answer


def _resampled(asked: _Question, interval: Interval, method: str, seed: int | None) -> _Answer:
    notes = (_RESAMPLES_TASKS,) if asked.scope == THIS_SUITE else ()
    return _Answer(interval=interval, method=method, seed=seed, notes=notes)


def _value(cells: Cells, asked: _Question) -> Floats:
    return share_of_passing_subsets(cells.n, cells.c, asked.k)


_METHODS: dict[str, Callable[[Cells, _Question], _Answer]] = {
    "default": _default,
    "t": partial(_around_mean, student_bounds, "t standard errors"),
    "z": partial(_around_mean, normal_bounds, "z standard errors (CLT)"),
    "wilson-pooled": _pooled_wilson,
    "task-bootstrap": _task_bootstrap,
    "exact-bootstrap": _exact_bootstrap,
    "bca": partial(_task_bootstrap, bca=True),
    "hierarchical-bootstrap": _hierarchical_bootstrap,
}
SUITE_METHODS = tuple(_METHODS)
