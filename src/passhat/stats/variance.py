"""How much of the spread is skill and how much is luck: variance of families, tasks and runs."""

from __future__ import annotations

from dataclasses import replace
from math import exp, sqrt
from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, confidence_level, probability, whole_number
from passhat.dataclass import dataclass, result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural
from passhat.stats import special
from passhat.stats.arguments import Floats, one_of, refuse_trials, score_sums
from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.numerics import jackknife_variance
from passhat.stats.population_bounds import FEWEST_FAMILIES, Families, TaskGroups, grouping
from passhat.stats.sufficient_statistics import TaskSums

WIDENED_F = "F, widened by a jackknife over tasks"

# Sums of squares of scores in [0, 1] lose about this much to rounding; less than it is zero.
_ROUNDING = 1e-10
_EPSILON = float(np.finfo(float).eps)


@result_dataclass(frozen=True, slots=True, kw_only=True)
class VarianceComponents:
    """The variance of a single run's score, split into tasks (skill) and repetition (luck)."""

    between: float
    within: float
    icc: Estimate
    mean: float
    effective_runs: float
    tasks: int
    runs: int
    method: str = "one-way random effects, n0 for unequal runs"
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> float:
        return self.between + self.within

    @property
    def luck(self) -> Estimate:
        """The share of the variance that repetition alone makes: 1 - ICC."""
        bounds = self.icc.interval
        return replace(
            self.icc,
            value=1 - self.icc.value,
            interval=bounds and Interval(1 - bounds.high, 1 - bounds.low),
            method=self.icc.method.replace("ICC(1)", "1 - ICC(1)"),
        )


def variance_components(
    n: ArrayLike,
    total: ArrayLike | None = None,
    squares: ArrayLike | None = None,
    *,
    confidence: float = CONFIDENCE,
) -> VarianceComponents | Unavailable:
    """Split the variance of the scores into tasks and luck, from per-task sums.

    `n` counts the runs of each task, `total` sums their scores, `squares` their squared scores
    (left out for pass/fail, where both sums are the passes).

    >>> split = variance_components([4, 4, 4], [4, 2, 0])
    >>> round(split.between, 3), round(split.within, 3)
    (0.222, 0.111)
    >>> variance_components([1, 1], [1, 0]).reason
    'one trial per task cannot tell skill from luck: run each task at least twice'
    """
    level = confidence_level(confidence)
    refuse_trials(n, "report(trials).system().variance")
    table = _anova(n, total, squares)
    if isinstance(table, Unavailable):
        return table
    return VarianceComponents(
        between=max(0.0, table.between),
        within=table.within,
        icc=_icc_of(table, method=WIDENED_F, confidence=level),
        mean=table.mean,
        effective_runs=table.n0,
        tasks=table.tasks,
        runs=table.runs,
        notes=_negative_note(table),
    )


def icc(
    n: ArrayLike,
    total: ArrayLike | None = None,
    squares: ArrayLike | None = None,
    *,
    method: str = WIDENED_F,
    confidence: float = CONFIDENCE,
) -> Estimate | Unavailable:
    """ICC(1): the share of a single run's variance that the task explains.

    The F interval (Searle, with n0 for unequal runs) supposes normal effects; with pass/fail data
    and skewed difficulty it covers too little, so by default it is widened to hold the jackknife
    interval of log F as well. `method="F"` gives the textbook interval alone.

    >>> answer = icc([10] * 8, [10, 9, 9, 7, 5, 2, 1, 0])
    >>> round(answer.value, 3), round(answer.interval.low, 3), round(answer.interval.high, 3)
    (0.539, 0.185, 0.841)
    """
    one_of("method", method, ("F", WIDENED_F))
    level = confidence_level(confidence)
    refuse_trials(n, "report(trials).system().variance.icc")
    table = _anova(n, total, squares)
    if isinstance(table, Unavailable):
        return table
    return _icc_of(table, method=method, confidence=level)


@overload
def spearman_brown(icc: Estimate, runs: int) -> Estimate: ...


@overload
def spearman_brown(icc: float, runs: int) -> float: ...


def spearman_brown(icc: float | Estimate, runs: int) -> float | Estimate:
    """The reliability of the mean of several runs, from that of one run (Spearman, Brown 1910).

    >>> round(spearman_brown(0.404, 10), 3)
    0.871
    """
    times = whole_number("runs", runs)
    if not isinstance(icc, Estimate):
        return _stepped_up(probability("icc", icc), times)
    bounds = icc.interval and Interval(
        _stepped_up(icc.interval.low, times), _stepped_up(icc.interval.high, times)
    )
    method = f"Spearman-Brown for {times} runs of {icc.method}"
    return replace(icc, value=_stepped_up(icc.value, times), interval=bounds, method=method)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Anova:
    """The one-way analysis of variance, with the sums of every task for the jackknife."""

    n: Floats
    total: Floats
    inside: Floats
    ms_between: float
    within: float
    n0: float

    @property
    def tasks(self) -> int:
        return self.n.size

    @property
    def runs(self) -> int:
        return int(self.n.sum())

    @property
    def mean(self) -> float:
        return float(self.total.sum() / self.n.sum())

    @property
    def between(self) -> float:
        return (self.ms_between - self.within) / self.n0


def _anova(
    n: ArrayLike, total: ArrayLike | None, squares: ArrayLike | None
) -> _Anova | Unavailable:
    if total is None:  # it may be left out so that trials in the place of counts are named
        raise ArgumentError("total", "must be given after n", None)
    counts, sums, squared = score_sums(n, total, total if squares is None else squares)
    runs = counts.astype(np.float64)
    if (runs < 1).any():
        raise ArgumentError("n", "must be at least 1 trial for every task", 0)
    tasks, everything = runs.size, float(runs.sum())
    if tasks < 2:
        return Unavailable(f"variance between tasks needs at least 2 tasks, there is {tasks}")
    if everything == tasks:
        return Unavailable(
            "one trial per task cannot tell skill from luck: run each task at least twice"
        )
    inside = np.maximum(squared - sums**2 / runs, 0.0)
    # Each addition may lose half a bit, which adds up over ten million equal scores.
    inside[inside <= (_ROUNDING + _EPSILON * runs) * squared] = 0.0
    centred = sums / runs - sums.sum() / everything
    between = float((runs * centred**2).sum())
    if between <= _ROUNDING * float(squared.sum()) and not inside.any():
        return Unavailable("there is no variance to split: every trial scored the same")
    return _Anova(
        n=runs,
        total=sums,
        inside=inside,
        ms_between=between / (tasks - 1),
        within=float(inside.sum()) / (everything - tasks),
        n0=(everything - float((runs**2).sum()) / everything) / (tasks - 1),
    )


def _icc_of(table: _Anova, *, method: str, confidence: float) -> Estimate:
    value = max(0.0, table.between / (table.between + table.within))
    notes = _negative_note(table)
    if table.within == 0:
        notes = (*notes, "no task varied between its trials, so no interval can be given")
        bounds = None
    else:
        low, high = _log_f_interval(table, widened=method != "F", confidence=confidence)
        bounds = Interval(
            min(value, max(0.0, _icc_from_f(np.exp(low), table.n0))),
            max(value, _icc_from_f(np.exp(high), table.n0)),
        )
    return Estimate(
        value=value,
        interval=bounds,
        method=f"ICC(1), {method}",
        confidence=confidence,
        tasks=table.tasks,
        runs=table.runs,
        notes=notes,
    )


def _log_f_interval(table: _Anova, *, widened: bool, confidence: float) -> tuple[float, float]:
    tail = (1 - confidence) / 2
    degrees = table.tasks - 1, table.runs - table.tasks
    with np.errstate(divide="ignore"):  # equal task means: F is 0 and its log -inf
        log_f = float(np.log(table.ms_between / table.within))
    low = log_f - float(np.log(special.fdtri(*degrees, 1 - tail)))
    high = log_f - float(np.log(special.fdtri(*degrees, tail)))
    if not widened:
        return low, high
    # Tasks that are more alike than luck explains count as if luck explained them: else the
    # interval of equal tasks would be the point 0 (power-constrained, Cowan et al. 2011).
    typical = float(np.log(special.fdtri(*degrees, 0.5) / special.fdtri(*degrees, tail)))
    down, up = _jackknife_errors(table)
    quantile = float(special.stdtrit(table.tasks - 1, 1 - tail))
    return min(low, log_f - quantile * down), max(high, typical, log_f + quantile * up)


def _jackknife_errors(table: _Anova) -> tuple[float, float]:
    """The jackknife standard errors of log F over tasks (Arvesen 1969), downward and upward.

    If one task has all of a variance, leaving it out sends log F to infinity, and the error on
    that side is infinite. On the other side, a single task that ever varied is a Poisson count of
    one, whose log has variance 1 (2 / (T - 1) is the variance of the log between tasks).
    """
    tasks = table.tasks
    runs = table.n.sum() - table.n
    total = table.total.sum() - table.total
    spread = table.total**2 / table.n
    between = spread.sum() - spread - total**2 / runs
    inside = table.inside.sum() - table.inside
    freedom = runs - (tasks - 1)
    floor = _ROUNDING * table.runs
    lost_between = tasks < 3 or bool((between <= floor).any())
    lost_inside = bool((freedom <= 0).any() or (inside <= floor).any())
    if lost_between:
        return np.inf, np.inf if lost_inside else 0.0
    if lost_inside:
        return float(np.sqrt(1 + 2 / (tasks - 1))), np.inf
    log_f = np.log(between / (tasks - 2) * freedom / inside)
    error = sqrt(jackknife_variance(log_f))
    return error, error


def _icc_from_f(ratio: float, n0: float) -> float:
    return 1.0 if np.isinf(ratio) else float((ratio - 1) / (ratio + n0 - 1))


def _negative_note(table: _Anova) -> tuple[str, ...]:
    if table.between >= 0:
        return ()
    return (f"the estimate between tasks is negative ({table.between:.3g}), shown as 0",)


def _stepped_up(reliability: float, runs: int) -> float:
    return runs * reliability / (1 + (runs - 1) * reliability)


# Tasks in families: how much of the variance the families explain.

# Less variance than this is a rounding error of equal values.
_FAMILY_ROUNDING = 1e-12
# Shuffles enough to show a chance of 0.1 %, and the tasks up to which they take milliseconds.
_SHUFFLES, _MOST_SHUFFLED = 3_999, 200


@result_dataclass(frozen=True, slots=True, kw_only=True)
class FamilyComponents:
    """The variance of a single run's score, split into families, tasks inside them, and luck."""

    between_families: float
    between_tasks: float
    within_tasks: float
    families: int
    tasks: int

    @property
    def total(self) -> float:
        return self.between_families + self.between_tasks + self.within_tasks

    @property
    def shares(self) -> tuple[float, float, float]:
        """The shares of families, of tasks inside them and of runs; they add up to 1."""
        parts = self.between_families, self.between_tasks, self.within_tasks
        family, task, run = (part / self.total for part in parts)
        return family, task, run

    @property
    def family_share(self) -> float:
        """The share of the variance between tasks that their family explains."""
        between = self.between_families + self.between_tasks
        return self.between_families / between if between > 0 else 0.0


@result_dataclass(frozen=True, slots=True, kw_only=True)
class FamilyShares:
    """The shares of a single run's variance: of families, of tasks inside them, and of luck.

    They add up to 1. `family` is the correlation of two runs of different tasks of one family;
    `family` and `task` together are the ICC.
    """

    family: Estimate
    task: Estimate
    run: Estimate
    families: int


def family_shares(
    n: ArrayLike,
    total: ArrayLike,
    squares: ArrayLike | None = None,
    *,
    family: Families,
    confidence: float = CONFIDENCE,
) -> FamilyShares | Unavailable:
    """How much of the variance lies between families, between their tasks, and between runs.

    Components of the nested analysis of variance (Searle, Casella and McCulloch 1992, chapter 3).
    Intervals leave out one family at a time (the jackknife, with Student's t), from eight families
    on; with fewer there is none, and a note says why.

    >>> shares = family_shares([4] * 4, [4, 3, 1, 0], family=["a", "a", "b", "b"])
    >>> round(shares.family.value, 2), shares.family.interval is None
    (0.68, True)
    """
    level = confidence_level(confidence)
    whole = family_components(n, total, squares, family=family)
    if isinstance(whole, Unavailable):
        return whole
    if whole.total <= 0:
        return Unavailable("there is no variance to split: every trial scored the same")
    left_out = _leaving_one_out(n, total, squares, family)
    # Cut off at 0, a component that is often negative would seem to be known exactly.
    raw = family_components(n, total, squares, family=family, below_zero=True)
    assert isinstance(raw, FamilyComponents)
    shares = [_share_estimate(place, whole, raw, left_out, level) for place in range(3)]
    return FamilyShares(family=shares[0], task=shares[1], run=shares[2], families=whole.families)


def _leaving_one_out(
    n: ArrayLike, total: ArrayLike, squares: ArrayLike | None, family: Families
) -> Floats:
    """The shares without each family in turn, a row each; none if there are too few families.

    What `family_components` says of the others, from the sums of each family: thousands of families
    take no longer than their tasks do.
    """
    table, group = _anova(n, total, squares), grouping(family, None, np.atleast_1d(n).size)
    if isinstance(table, Unavailable) or group is None or group.families < FEWEST_FAMILIES:
        return np.empty((0, 3))
    means = table.total / table.n

    def others(values: Floats) -> Floats:
        """The sum over the tasks of all other families, for each family."""
        return np.asarray(values.sum() - np.bincount(group.family, values))

    tasks, runs = others(np.ones(means.size)), others(table.n)
    sizes = np.bincount(group.family).astype(np.float64)
    families = sizes.size - 1
    varied, within = others((table.inside > 0).astype(np.float64)), others(table.inside)
    within = np.where(varied > 0, within, 0.0) / np.maximum(runs - tasks, 1)
    # Deviations from the mean of all: squares about the mean of the others lose few digits then.
    apart = means - table.total.sum() / table.n.sum()
    differ = others(table.n * apart**2) - others(table.n * apart) ** 2 / runs
    apart = means - means.mean()
    centres = np.bincount(group.family, apart) / sizes
    inner = others((apart - centres[group.family]) ** 2) / np.maximum(tasks - families, 1)
    # The sum of squares about the mean of the others is their own less that of their mean.
    between = sizes * centres**2, sizes * centres
    spread = between[0].sum() - between[0] - (between[1].sum() - between[1]) ** 2 / tasks
    typical = tasks - ((sizes**2).sum() - sizes**2) / tasks
    parts = np.stack(
        (
            (spread - inner * families + inner) / typical,
            inner - within * others(1 / table.n) / tasks,
            within,
        ),
        axis=-1,
    )
    whole = parts.sum(axis=-1)
    squared = others(np.atleast_1d(np.asarray(total if squares is None else squares, np.float64)))
    known = (tasks > families) & (runs > tasks) & (whole > 0)
    known &= (varied > 0) | (differ > _ROUNDING * squared)
    return np.asarray(parts[known] / whole[known, None])


def _share_estimate(
    place: int, whole: FamilyComponents, raw: FamilyComponents, left_out: Floats, confidence: float
) -> Estimate:
    value, groups = whole.shares[place], len(left_out)
    interval: Interval | None = None
    notes: tuple[str, ...] = ()
    if groups < FEWEST_FAMILIES:
        notes = (f"no interval: {plural(whole.families, 'family', 'families')} are too few",)
    else:
        error = sqrt(jackknife_variance(left_out[:, place]))
        reach = float(special.stdtrit(groups - 1, (1 + confidence) / 2)) * error
        low, high = (float(np.clip(raw.shares[place] + end, 0.0, 1.0)) for end in (-reach, reach))
        interval = Interval(min(low, value), max(high, value))
    return Estimate(
        value=value,
        interval=interval,
        method="nested analysis of variance, jackknife over families",
        confidence=confidence,
        tasks=whole.tasks,
        notes=notes,
    )


def family_components(
    n: ArrayLike,
    total: ArrayLike,
    squares: ArrayLike | None = None,
    *,
    family: Families,
    below_zero: bool = False,
) -> FamilyComponents | Unavailable:
    """Split the variance of the scores into families, tasks and runs (nested analysis of variance).

    The sums are those of `variance_components`; `family` labels each task. Task means count
    equally; negative components are 0, unless `below_zero` lets them be what they are.

    >>> split = family_components([4] * 4, [4, 3, 1, 0], family=["a", "a", "b", "b"])
    >>> split.families, round(split.family_share, 2)
    (2, 1.0)
    """
    runs = np.atleast_1d(np.asarray(n, dtype=np.float64))
    sums = np.atleast_1d(np.asarray(total, dtype=np.float64))
    group = grouping(family, None, runs.size)
    if group is None or not group.repeats:
        return Unavailable("no family has more than one task")
    if group.families < 2:
        return Unavailable("all tasks are of one family")
    plain = variance_components(n, total, squares)
    if isinstance(plain, Unavailable):
        return plain
    kept = runs > 0
    some = group.taken(kept)
    luck = plain.within * float((1 / runs[kept]).mean())
    inner, outer = _components(sums[kept] / runs[kept], some.family, luck)
    if not below_zero:
        inner, outer = max(0.0, inner), max(0.0, outer)
    return FamilyComponents(
        between_families=outer,
        between_tasks=inner,
        within_tasks=plain.within,
        families=some.families,
        tasks=int(kept.sum()),
    )


def families_differ(values: ArrayLike, family: Families, *, level: float = 0.001) -> bool:
    """Whether the means of families differ by a one-way F test of one value a task.

    Where failures are rare, F is far from its distribution in small suites: up to 200 tasks,
    shuffled labels must agree (a permutation test at the same level, with a fixed seed).

    >>> rates = [1.0, 0.9, 1.0, 1.0, 0.8, 0.9, 0.1, 0.0, 0.2, 0.1, 0.0, 0.3]
    >>> families_differ(rates, ["a"] * 6 + ["b"] * 6, level=0.01)
    True
    """
    score = np.asarray(values, dtype=np.float64)
    group = grouping(family, None, score.size)
    if group is None or not 1 < group.families < score.size:
        return False
    sizes = np.bincount(group.family)
    centres = np.bincount(group.family, score) / sizes
    degrees = group.families - 1, score.size - group.families
    between = float((sizes * (centres - score.mean()) ** 2).sum()) / degrees[0]
    within = float(((score - centres[group.family]) ** 2).sum()) / degrees[1]
    if between <= within * float(special.fdtri(*degrees, 1 - level)) + _FAMILY_ROUNDING:
        return False
    return score.size > _MOST_SHUFFLED or _shuffled_p(score, group) <= level


def _shuffled_p(values: Floats, group: TaskGroups) -> float:
    """The chance that shuffled labels put the means of families as far apart."""
    sizes = np.bincount(group.family)
    # Up to a constant, the squares between families are the sum of (sum of values)^2 / size.
    members = np.eye(group.families)[group.family] / np.sqrt(sizes)
    rng = np.random.default_rng(0)
    shuffled = rng.permuted(np.broadcast_to(values, (_SHUFFLES, values.size)), axis=1)
    seen = float(((values @ members) ** 2).sum())
    as_far = ((shuffled @ members) ** 2).sum(axis=1) >= seen - _FAMILY_ROUNDING
    # The labels as they are count as one of the shuffles: p is never 0 (Phipson and Smyth 2010).
    return (1 + int(as_far.sum())) / (1 + _SHUFFLES)


def _components(means: Floats, family: ArrayLike, luck: float) -> tuple[float, float]:
    """The variances of tasks inside families and of families, from one mean a task, uncut at 0."""
    codes = np.asarray(family)
    sizes = np.bincount(codes).astype(np.float64)
    centres = np.bincount(codes, means) / sizes
    tasks, families = means.size, sizes.size
    square = float(((means - centres[codes]) ** 2).sum()) / max(tasks - families, 1)
    spread = float((sizes * (centres - means.mean()) ** 2).sum()) / max(families - 1, 1)
    # The size that unequal families count as: n0 of the one-way analysis of variance.
    typical = (tasks - float((sizes**2).sum()) / tasks) / max(families - 1, 1)
    # The means of tasks differ by their runs too: that part is luck.
    return square - luck, (spread - square) / typical


# How much of the width for similar tasks comes from runs, and how much from tasks.

Unit = Literal["tasks", "families"]


@result_dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSources:
    """Where the variance of a mean over similar tasks comes from, and what would reduce it.

    `from_runs` is the share that more runs of the same tasks would reduce, with its interval; the
    rest needs new tasks (or families of them: `unit`). The width goes with the root of the
    variance. `break_even` is the price of a new task, in runs, up to which new tasks reduce the
    width more per dollar than runs do; None if runs would reduce nothing.
    """

    from_runs: float
    interval: Interval | None
    unit: Unit
    units: int
    runs: float
    break_even: float | None
    confidence: float
    method: str = "variance of the mean split, linearised over tasks"

    @property
    def from_tasks(self) -> float:
        """The share that only new tasks (or families) would reduce."""
        return 1 - self.from_runs

    @property
    def twice_the_runs(self) -> float:
        """The width with twice the runs of every task, as a share of the width now."""
        return sqrt(1 - self.from_runs / 2)

    @property
    def twice_the_tasks(self) -> float:
        """The width with twice as many tasks (or families), as a share of the width now."""
        return sqrt(0.5)

    @property
    def buy(self) -> Literal["runs", "tasks", "families", "undecided"]:
        """What causes more than half of the variance, where the interval shows that.

        At half, a new task pays if it costs no more than the runs that it will get.
        """
        if self.interval is None or (self.interval.low <= 0.5 < self.interval.high):
            return "undecided"
        return "runs" if self.from_runs > 0.5 else self.unit


def noise_sources(
    scores: TaskSums,
    minus: TaskSums | None = None,
    *,
    family: Families | None = None,
    weight: ArrayLike | None = None,
    confidence: float = CONFIDENCE,
) -> NoiseSources | Unavailable:
    """Split the variance of a mean over similar tasks into runs and tasks.

    With `minus`, that of the difference of two systems on the same tasks. A task's runs
    contribute their sample variance over their number; a task with a single run gets the mean
    variance of the others. Families count from eight on, as in the interval itself.

    >>> sources = noise_sources(TaskSums.of_passes([4] * 6, [4, 4, 3, 2, 1, 0]))
    >>> round(sources.from_runs, 2), round(sources.break_even, 1)
    (0.21, 15.2)
    >>> noise_sources(TaskSums.of_passes([1, 1], [1, 0])).reason
    'one trial per task cannot tell trials from tasks: run each task at least twice'
    """
    level = confidence_level(confidence)
    sides = [scores] if minus is None else [scores, minus]
    if len({side.runs.size for side in sides}) > 1:
        sizes = tuple(side.runs.size for side in sides)
        raise ArgumentError("minus", "must have the same tasks as scores", sizes)
    kept = np.all([side.runs > 0 for side in sides], axis=0)
    group = grouping(family, weight, kept.size)
    sides = [side.taken(kept) for side in sides]
    if kept.sum() < 2:
        return Unavailable(f"variance between tasks needs at least 2 tasks, there is {kept.sum()}")
    if any((side.runs < 2).all() for side in sides):
        reason = "one trial per task cannot tell trials from tasks: run each task at least twice"
        return Unavailable(reason)
    values = sides[0].means - (sides[1].means if minus is not None else 0.0)
    luck = np.sum([_luck(side) for side in sides], axis=0)
    runs = 1 / float(np.mean([(1 / side.runs).mean() for side in sides]))
    return _split(values, luck, runs, None if group is None else group.taken(kept), level)


def _luck(side: TaskSums) -> Floats:
    """The variance that runs give each task's mean."""
    several = side.runs > 1
    variance = np.where(several, side.variances, side.variances[several].mean())
    return np.asarray(variance / side.runs)


def _split(
    values: Floats, luck: Floats, runs: float, group: TaskGroups | None, confidence: float
) -> NoiseSources | Unavailable:
    tasks = values.size
    weight = np.ones(tasks) if group is None else group.weight
    by_family = group is not None and group.many_families
    unit = group.family if group is not None and by_family else np.arange(tasks)
    # The variance of a weighted mean, linearised: what each unit adds to its error, squared.
    apart = weight * (values - np.average(values, weights=weight))
    squares: Floats = np.bincount(unit, apart).astype(np.float64) ** 2
    noise: Floats = np.bincount(unit, weight**2 * luck).astype(np.float64)
    units = squares.size
    seen, by_runs = float(squares.sum()) * units / (units - 1), float(noise.sum())
    if seen == by_runs == 0:
        return Unavailable("there is no variance to split: every trial scored the same")
    share = 1.0 if by_runs >= seen else by_runs / seen
    price = runs * tasks / units * (1 - share)  # of a new unit, in runs; Cochran (1977), 10.6
    return NoiseSources(
        from_runs=share,
        interval=_share_interval(squares, noise, by_runs, seen, confidence),
        unit="families" if by_family else "tasks",
        units=units,
        runs=runs,
        break_even=price / share if share > 0 else None,
        confidence=confidence,
    )


def _share_interval(
    squares: Floats, noise: Floats, by_runs: float, seen: float, confidence: float
) -> Interval | None:
    """The interval of the share, by linearising its logarithm over units; None without variance."""
    if by_runs == 0 or seen == 0:
        return None
    units = squares.size
    # A unit moves the logarithm of a ratio by its share above less its share below.
    influence = noise / noise.sum() - squares / squares.sum()
    error = sqrt(float((influence**2).sum()) * units / (units - 1))
    reach = float(special.stdtrit(units - 1, (1 + confidence) / 2)) * error
    ratio = by_runs / seen
    return Interval(min(1.0, ratio * exp(-reach)), min(1.0, ratio * exp(reach)))
