"""The mean of partial-credit scores over a suite, from the sums per task."""

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
from passhat.stats import special
from passhat.stats.arguments import (
    Counts,
    Floats,
    RandomSource,
    confidence_level,
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
from passhat.stats.mean_intervals import (
    EXACT_BOOTSTRAP_TASKS,
    SuiteCurve,
    bca_interval,
    exact_task_interval,
    hierarchical_means,
    normal_bounds,
    percentile_interval,
    pooled_wilson_bounds,
    rare_failure_bound,
    student_bounds,
    student_quantile,
    task_means,
)
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.population_bounds import Families, TaskGroups, grouping, task_value_bounds
from passhat.stats.proportions import Bounds, interval_at, proportion_interval, wilson_bounds
from passhat.stats.sufficient_statistics import Cells, count_cells, task_counts, together
from passhat.stats.suite_bounds import suite_bounds
from passhat.stats.variance import grouped_bounds, population_of, weight_notes

# An interval, its method in words, and the seed if it was drawn at random.
_ScoreAnswer = tuple[Interval, str, int | None]


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
    bounds_by = _SCORE_METHODS[one_of("method", method, tuple(_SCORE_METHODS))]
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
        return _grouped_scores(scores, group.taken(present), excluded=int(runs.size - tasks))
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


def _grouped_scores(scores: _Scores, group: TaskGroups, *, excluded: int) -> Estimate:
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
        interval, method, _ = _score_default(some)
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


def _score_default(scores: _Scores) -> _ScoreAnswer:
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


def _student(scores: _Scores) -> _ScoreAnswer:
    quantile = float(student_quantile(np.array(scores.means.size - 1.0), scores.confidence))
    return _plus_or_minus(scores, quantile), "mean plus or minus t standard errors", None


def _normal(scores: _Scores) -> _ScoreAnswer:
    quantile = float(special.ndtri((1 + scores.confidence) / 2))
    return _plus_or_minus(scores, quantile), "mean plus or minus z standard errors (CLT)", None


def _plus_or_minus(scores: _Scores, quantile: float) -> Interval:
    fixed = scores.scope == THIS_SUITE
    square = float(_run_noise(scores)) if fixed else scores.variance / scores.means.size
    reach = quantile * float(np.sqrt(square))
    return Interval(max(scores.mean - reach, 0.0), min(scores.mean + reach, 1.0))


def _score_bootstrap(scores: _Scores, *, bca: bool = False) -> _ScoreAnswer:
    generator, seed = random_generator(scores.rng)
    values, tallies = np.unique(scores.means, return_counts=True)
    tasks, level = tallies.astype(np.float64), scores.confidence
    means = task_means(values, tasks, resamples=scores.resamples, rng=generator)
    name = f"task bootstrap, {scores.resamples} resamples"
    if bca:
        return bca_interval(means, values, tasks, level), f"BCa {name}", seed
    return percentile_interval(means, level), name, seed


_SCORE_METHODS: dict[str, Callable[[_Scores], _ScoreAnswer]] = {
    "default": _score_default,
    "t": _student,
    "z": _normal,
    "task-bootstrap": _score_bootstrap,
    "bca": partial(_score_bootstrap, bca=True),
}
SCORE_METHODS = tuple(_SCORE_METHODS)


# --------------------------------------------------------------------------------------------------
# Coherent bounds for the mean score of the tasks that were run, with partial credit.
#
# A higher score of any run must never lower a bound. Write a score as 1 minus a loss: every sum
# of losses, and every sum of squared losses, can only fall when a score rises. So the lower end
# is made a function that falls with both, and it is enough to know the two sums of each task:
#
# - both sums give the noise of the mean, and with it a bound (Wilson's, or the one for few stray
# runs). Smaller losses can mean more noise and a worse bound, so the worst bound over all smaller
# losses is taken, which falls with both sums by construction; - that bound is kept between two
# coherent bounds for scores of 0 and 1 (suite_law): one as if the losses were failures (no score
# varies more, Bhatia and Davis 2000), one as if the squared losses were. Where every score is 0
# or 1 the two are the same, so this needs no special case.
#
# The upper end is the lower end of the losses.
# --------------------------------------------------------------------------------------------------

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
    every = [count_cells(runs.astype(np.int64), (runs - one).astype(np.int64)) for one in failures]
    low = suite_bounds(together(*every), (1,), confidence)[0][..., 0]
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
        student_quantile(np.array(max(runs - side.runs.size, side.runs.size - 1)), confidence)
    )

    def bound(multiple: Floats) -> Floats:
        mean, noise = strata.at(multiple)
        level = np.maximum(mean * (1 - mean), _NO_NOISE)
        flips = np.clip(level / np.maximum(noise, _NO_NOISE), side.runs.size, 1 / _NO_NOISE)
        low = wilson_bounds(mean, flips, quantile)[0]
        few = rare_failure_bound(mean, noise, runs, np.array(quantile), confidence)
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


# --------------------------------------------------------------------------------------------------
# The mean of pass^k or pass@k over a suite, with an interval for the question that was asked.
# --------------------------------------------------------------------------------------------------

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
