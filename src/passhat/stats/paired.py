"""The difference of two systems on the same tasks, with a verdict and what would settle it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, confidence_level, probability
from passhat.dataclass import dataclass, result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural
from passhat.stats.arguments import (
    Counts,
    Floats,
    RandomSource,
    float_array,
    one_of,
    random_generator,
    score_array,
)
from passhat.stats.estimate import (
    FEW_TASKS,
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Number,
    Scope,
    Unavailable,
    error_level,
    independent_difference,
    to_zero,
)
from passhat.stats.exact_tests import ExactP, divided_passes_test, sign_flip_test, sign_flip_tests
from passhat.stats.mean_intervals import bounds_side_by_side
from passhat.stats.population_bounds import (
    Families,
    TaskGroups,
    few_families_note,
    grouping,
    lower_quantile,
    lower_ratio_quantile,
    lower_ratio_tail,
    lower_tail,
)
from passhat.stats.proportions import Bounds
from passhat.stats.special import ndtr, ndtri, stdtr, stdtrit
from passhat.stats.sufficient_statistics import Mask, TaskSums, count_cells
from passhat.stats.suite_bounds import suite_bounds
from passhat.stats.suite_mean import estimates_within, score_estimate, suite_estimates

Answer = Literal["better", "worse", "equivalent", "undecided"]

STATE_A_MARGIN = "no difference was seen: to show equivalence, state a margin"
# The usual 80 % of a planned trial (Cohen 1988).
SETTLING_POWER = 0.8
# Differences of means that are smaller come from rounding.
_ROUNDING = 1e-9
# A plan for more than this many times the present runs is no plan.
_HOPELESS = 1e9


@result_dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Mean of a minus mean of b over the same tasks, and whether a is better or worse.

    `p_value` is the larger of the weights' own and the exact test's: both must agree before
    a side is called better, and the interval then leaves out 0.
    """

    value: float
    interval: Interval
    method: str
    confidence: float
    scope: Scope
    answer: Answer
    margin: float | None
    p_value: float
    interval_p: float
    exact_p: float | None
    exact_method: str | None
    standard_error: float
    unpaired_error: float | None
    needed: Needed | None
    tasks: int
    runs: tuple[int, int] | None
    excluded: tuple[int, ...] = ()
    families: int | None = None
    family_interval: Interval | None = None
    seed: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What would settle an undecided comparison with `power`, if the difference stays as it is.

    `more_runs` counts further runs of both systems on the same tasks; `more_tasks` counts new
    tasks run like the present ones. None: no number of these would do, or it is not known.
    """

    more_runs: int | None
    more_tasks: int | None
    power: float = SETTLING_POWER


def paired_difference(
    a: TaskSums | ArrayLike,
    b: TaskSums | ArrayLike,
    *,
    scope: Scope,
    confidence: float = CONFIDENCE,
    margin: float | None = None,
    family: Families | None = None,
    weight: ArrayLike | None = None,
    rng: RandomSource = None,
) -> PairedDifference | Unavailable:
    """How much better system a is than system b on the tasks that both ran.

    `a` and `b` are aligned by task: TaskSums, or (in "tasks like these") one value a task such
    as its pass^k, with nan where a task has none. Tasks without a run on both sides are
    `excluded`, by position. `family` labels tasks that come from one source, and `weight` is the
    weight of each task; in "tasks like these" families are then what was sampled.

    >>> a = TaskSums.of_passes([5] * 8, [5, 5, 4, 5, 3, 5, 5, 4])
    >>> b = TaskSums.of_passes([5] * 8, [3, 4, 2, 4, 1, 4, 5, 1])
    >>> difference = paired_difference(a, b, scope="tasks like these")
    >>> round(difference.value, 3), difference.answer, round(difference.exact_p, 3)
    (0.3, 'better', 0.008)
    """
    one_of("scope", scope, (THIS_SUITE, TASKS_LIKE_THESE))
    confidence = confidence_level(confidence)
    margin = None if margin is None else probability("margin", margin, open_ends=True)
    tasks = a.runs.size if isinstance(a, TaskSums) else np.atleast_1d(np.asarray(a)).size
    pair = aligned(a, b, scope, grouping(family, weight, tasks))
    shared = pair.differences.size
    if shared == 0:
        return Unavailable("no task was run by both agents")
    if shared == 1 and scope == TASKS_LIKE_THESE:
        return Unavailable("one shared task says nothing about similar tasks; 2 are needed")
    return _judged(pair, scope=scope, confidence=confidence, margin=margin, rng=rng)


@result_dataclass(frozen=True, slots=True, kw_only=True)
class PairedTest:
    """A test of two systems on the same tasks by its name in textbooks; two-sided."""

    statistic: float
    p_value: float
    method: str
    tasks: int


def paired_t_test(a: TaskSums | ArrayLike, b: TaskSums | ArrayLike) -> PairedTest | Unavailable:
    """Student's paired t over the tasks that both ran, each by its mean.

    For a table that asks for it by name: with few tasks, or where one side breaks a few of them, it
    errs more often than it says, and `paired_difference` does not.

    >>> tested = paired_t_test([0.9, 0.8, 1.0, 0.7], [0.6, 0.7, 0.6, 0.5])
    >>> round(tested.statistic, 3), round(tested.p_value, 4)
    (3.873, 0.0305)
    """
    differences = aligned(a, b, TASKS_LIKE_THESE).differences
    if differences.size < 2:
        return Unavailable("a paired t-test needs 2 tasks that both agents ran")
    error = differences.std(ddof=1) / np.sqrt(differences.size)
    if error < _ROUNDING:
        return Unavailable("a paired t-test needs differences that vary from task to task")
    t = float(differences.mean() / error)
    p = 2 * float(stdtr(differences.size - 1, -abs(t)))
    return PairedTest(statistic=t, p_value=p, method="paired t", tasks=differences.size)


def signed_rank_test(
    a: TaskSums | ArrayLike, b: TaskSums | ArrayLike, *, rng: RandomSource = None
) -> PairedTest | Unavailable:
    """Wilcoxon's signed-rank test over the tasks that both ran, each by its mean (Wilcoxon 1945).

    Tasks without a difference are left out and ties share their ranks; the p-value is that of all
    signs, exactly where they can be counted. The statistic is the sum of the ranks in favour of a.

    >>> tested = signed_rank_test([0.9, 0.8, 1.0, 0.7, 0.5], [0.6, 0.7, 0.6, 0.5, 0.5])
    >>> tested.statistic, tested.p_value, tested.tasks
    (10.0, 0.125, 4)
    """
    differences = aligned(a, b, TASKS_LIKE_THESE).differences
    differences = differences[np.abs(differences) > _ROUNDING]
    if not differences.size:
        return Unavailable("the signed-rank test needs a task on which the agents differ")
    # 0.3 - 0.2 and 0.9 - 0.8 are the same difference.
    sizes = np.round(np.abs(differences), 12)
    _, which, count = np.unique(sizes, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[which] * np.sign(differences)
    table = np.column_stack((ranks, np.zeros(ranks.size)))
    pair = (np.array([0]), np.array([1]))
    tested = sign_flip_tests(table, pair, random_generator(rng)[0], mid=False)
    return PairedTest(
        statistic=float(ranks[ranks > 0].sum()),
        p_value=float(tested.p_values[0]),
        method=re.sub("sign-flip(?: p)?", "Wilcoxon signed-rank", tested.method),
        tasks=ranks.size,
    )


def pass_hat_differences(
    a: tuple[Counts, Counts],
    b: tuple[Counts, Counts],
    *,
    ks: Sequence[int],
    confidence: float = CONFIDENCE,
    weight: Floats | None = None,
) -> list[Number]:
    """pass^k of system a minus that of b on these tasks, from their runs and passes.

    Every task has at least k runs on both sides, for every k. Given the tasks, the runs of two
    systems are independent.
    """
    if weight is None:
        cells = count_cells(*a), count_cells(*b)
        bounds = bounds_side_by_side(*cells, ks, confidence)
        first, second = (
            estimates_within(
                side, ends, metric="pass^k", ks=ks, scope=THIS_SUITE, confidence=confidence
            )
            for side, ends in zip(cells, bounds, strict=True)
        )
        return [independent_difference(*both) for both in zip(first, second, strict=True)]
    sides = (
        suite_estimates(*side, ks=ks, scopes=(THIS_SUITE,), confidence=confidence, weight=weight)
        for side in (a, b)
    )
    return [independent_difference(*first, *other) for first, other in zip(*sides, strict=True)]


def in_agreement(tested: PairedDifference) -> PairedDifference:
    """The same, with an interval that reaches 0 if the exact test finds no difference."""
    if 0 in tested.interval or tested.p_value < error_level(tested.confidence):
        return tested
    return replace(tested, interval=to_zero(tested.interval))


def _judged(
    pair: Pair, *, scope: Scope, confidence: float, margin: float | None, rng: RandomSource
) -> PairedDifference:
    generator, seed = random_generator(rng)
    few = pair.group is not None and pair.group.few_families
    sampled, (left, right) = scope == TASKS_LIKE_THESE, pair.means
    fit = population_fit(pair, by_family=not few) if sampled else suite_fit(pair)
    exact = _exact_test(pair, scope, generator, by_family=not few)
    interval, interval_p = fit.interval(1 - confidence), fit.p_value()
    p = max(interval_p, exact.p_value) if exact else interval_p
    if sampled and p < error_level(confidence):
        interval = _away_from_zero(interval, fit.value)
    answer = _answer(fit, interval, p, error_level(confidence), margin)
    undecided = answer == "undecided"
    return PairedDifference(
        value=fit.value,
        interval=interval,
        method=fit.method,
        confidence=confidence,
        scope=scope,
        answer=answer,
        margin=margin,
        p_value=p,
        interval_p=interval_p,
        exact_p=exact.p_value if exact else None,
        exact_method=exact.method if exact else None,
        standard_error=fit.error,
        unpaired_error=(
            float(np.sqrt((left.var(ddof=1) + right.var(ddof=1)) / left.size)) if sampled else None
        ),
        needed=_needed(pair, fit, scope, 1 - confidence, margin) if undecided else None,
        tasks=fit.tasks,
        runs=pair.run_counts,
        excluded=pair.excluded,
        families=None if pair.group is None else pair.group.families,
        family_interval=population_fit(pair).interval(1 - confidence) if sampled and few else None,
        seed=seed if exact and exact.random else None,
        notes=_notes(pair, fit, interval, p, answer, margin),
    )


def _away_from_zero(interval: Interval, value: float) -> Interval:
    """The interval on the side of 0 that a test has shown; it was made for any difference."""
    if value > 0:
        return Interval(max(interval.low, min(_BARELY, value)), interval.high)
    return Interval(interval.low, min(interval.high, max(-_BARELY, value)))


def _exact_test(
    pair: Pair, scope: Scope, rng: np.random.Generator, *, by_family: bool
) -> ExactP | None:
    if scope == TASKS_LIKE_THESE:
        return sign_flip_test(family_sums(pair, by_family=by_family)[0], rng)
    assert pair.sums is not None
    left, right = pair.sums
    if not (left.binary and right.binary):
        return None
    passes = (left.total.astype(np.int64), right.total.astype(np.int64))
    return divided_passes_test(left.runs, passes[0], right.runs, passes[1])


def _answer(fit: Fit, interval: Interval, p: float, alpha: float, margin: float | None) -> Answer:
    # Two one-sided tests at alpha (Schuirmann, 1987): the 1 - 2 alpha interval inside the margin.
    if margin is not None:
        inner = fit.interval(min(2 * alpha, 1.0))
        if -margin < inner.low and inner.high < margin:
            return "equivalent"
    if p >= alpha or 0 in interval:
        return "undecided"
    return "better" if fit.value > 0 else "worse"


def _notes(
    pair: Pair, fit: Fit, interval: Interval, p: float, answer: Answer, margin: float | None
) -> tuple[str, ...]:
    notes = []
    if pair.excluded:
        missing = plural(len(pair.excluded), "task has", "tasks have")
        is_out = "is" if len(pair.excluded) == 1 else "are"
        notes.append(f"{missing} no result from one of the agents and {is_out} left out")
    if fit.tasks < FEW_TASKS:
        notes.append(f"only {plural(fit.tasks, 'shared task')}")
    notes.extend(few_families_note(pair.group))
    if answer == "undecided" and 0 not in interval:
        notes.append(f"the interval alone leaves out 0, but the exact test does not (p = {p:.3g})")
    if answer == "equivalent" and 0 not in interval:
        notes.append("the difference is real, and smaller than the margin")
    if answer == "undecided" and fit.value == 0 and margin is None:
        notes.append(STATE_A_MARGIN)
    return tuple(notes)


def _needed(
    pair: Pair, fit: Fit, scope: Scope, alpha: float, margin: float | None
) -> Needed | None:
    """The runs or tasks still needed; None if the observed difference gives no target."""
    target = _target_error(fit, alpha, margin)
    if target <= 0 or fit.error == 0:
        return None
    growth = (fit.error / target) ** 2
    if growth > _HOPELESS:
        return None
    if scope == THIS_SUITE:
        return Needed(more_runs=_more_runs(pair, growth), more_tasks=None)
    # If all tasks agree, the sign-flip test has p = 2^-tasks: with too few, no run can help.
    lacking = int(np.ceil(-np.log2(alpha))) - fit.tasks
    tasks = max(1, lacking, int(np.ceil((growth - 1) * fit.tasks)))
    runs = None if lacking > 0 else _population_runs(pair, fit, target)
    return Needed(more_runs=runs, more_tasks=tasks)


def _target_error(fit: Fit, alpha: float, margin: float | None) -> float:
    """The standard error that would settle it: away from 0, or inside the margin if nearer."""
    power = float(ndtri(SETTLING_POWER))
    target = abs(fit.value) / (fit.quantile(1 - alpha / 2) + power)
    if margin is not None:
        inside = (margin - abs(fit.value)) / (fit.quantile(1 - alpha) + power)
        target = max(target, inside)
    return target


def _population_runs(pair: Pair, fit: Fit, target: float) -> int | None:
    """Further runs that reach the target error; they reduce only the noise within tasks."""
    if pair.sums is None or pair.single.any():
        return None
    noise = float(pair.run_noise.mean())
    between = max(0.0, fit.error**2 * fit.tasks - noise)
    room = target**2 * fit.tasks - between
    if room <= 0 or noise == 0:
        return None
    return _more_runs(pair, noise / room)


def _more_runs(pair: Pair, growth: float) -> int:
    assert pair.sums is not None
    return sum(
        int(np.maximum(np.ceil(side.runs * growth) - side.runs, 1).sum()) for side in pair.sums
    )


# Two systems aligned by task, and their mean difference with its error in either scope.

# Differences that vary by less are equal but for rounding.
SAME = 1e-12

# The share of a task that was not seen in a difference. With 1/2 the interval covers 0.93 to 0.98
# where one side breaks 2 to 50 % of the tasks (T 6 to 60, 8 runs); with 1/4 it falls to 0.80.
UNSEEN_OF_PAIRS = 0.5
# The same in the test of no difference. Equal systems are told apart by the sign-flip test, which
# must agree, so here it is for rare tasks that one side alone fails: where one side breaks 5 % of
# 30 tasks and is a little better elsewhere, equal means are called different 4 % of the time, and
# 13 % by paired t. Of a shift that paired t finds 56 % of the time 54 % are found; with 1/2 it
# would be 43 % (bench/calibrate/comparisons.py). With 12 tasks 45 % are found where t finds 51 %;
# with 0.2 it would be 48 %, and where one side breaks 15 % of the tasks 10 % of equal means would
# be called different (8 % now, 14 % by paired t).
UNSEEN_IN_TEST = 0.25
# The end of an interval that a test has moved away from 0.
_BARELY = 1e-6
# For tasks with a single run on a side, whose noise cannot be seen: a whole one, as in the bound of
# Clopper and Pearson.
_UNSEEN_OF_SINGLE_RUNS = 1.0
_SMALLEST = np.finfo(float).tiny
# With one run a task, the spread between tasks stands in for the spread within; below this many
# such tasks that is too noisy, and the largest variance a score in [0, 1] can have is taken.
_SPREAD_TASKS = 10
_LARGEST_VARIANCE = 0.25
# In standard deviations: both tails beyond it are 2.6e-12, and no interval is surer than that.
_FARTHEST = 7.0
# Steps to a p-value, and when to stop: 1e-4 of a standard deviation is 2e-4 of a p of 0.05.
_MOST_STEPS, _ENOUGH = 20, 1e-4
# At a confidence below 0.001 the interval is as good as the value itself.
_WIDEST_TAIL = 0.999


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Both sides on their shared tasks; `sums` is None if only values were given.

    `group` has the families and weights of those tasks, where any were given.
    """

    means: tuple[Floats, Floats]
    sums: tuple[TaskSums, TaskSums] | None
    excluded: tuple[int, ...]
    group: TaskGroups | None = None

    @property
    def differences(self) -> Floats:
        return self.means[0] - self.means[1]

    @property
    def run_counts(self) -> tuple[int, int] | None:
        if self.sums is None:
            return None
        return int(self.sums[0].runs.sum()), int(self.sums[1].runs.sum())

    @property
    def run_noise(self) -> Floats:
        """The variance of each task's difference when its runs are drawn again."""
        assert self.sums is not None
        left, right = self.sums
        return left.variances / left.runs + right.variances / right.runs

    @property
    def single(self) -> Mask:
        """Which tasks have a side with one run, whose spread cannot be seen."""
        assert self.sums is not None
        return np.asarray(np.minimum(self.sums[0].runs, self.sums[1].runs) == 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A difference with its standard error, and an interval for every level."""

    value: float
    error: float
    freedom: float
    method: str
    tasks: int

    def interval(self, alpha: float) -> Interval:
        """The interval that misses the difference with a chance of at most alpha."""
        raise NotImplementedError

    def p_value(self) -> float:
        """The level at which the interval just holds 0; never 0 itself, which no data shows."""
        raise NotImplementedError

    def quantile(self, level: float) -> float:
        if np.isinf(self.freedom):
            return float(ndtri(level))
        return float(stdtrit(self.freedom, level))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledFit(Fit):
    """The mean difference of tasks, or families, that were drawn from others like them.

    The interval is that of `lower_quantile`, so it is coherent: a failure of one side never moves
    an end in its favour. The unseen part of a task is assumed to be passed by the other side only,
    as often as that side passes the tasks that were seen; the p-value takes less of such a task.
    """

    sums: Floats
    sizes: Floats
    means: tuple[float, float]
    unseen: float = UNSEEN_OF_PAIRS
    unseen_in_test: float = UNSEEN_IN_TEST

    def interval(self, alpha: float) -> Interval:
        # Both ends at once: the upper end is the lower one with the sides exchanged.
        unseen = -self.means[1], -self.means[0]
        if self._equal:
            values, tasks = np.unique(self.sums / self.sizes, return_counts=True)
            ends = lower_quantile(
                (values, -values), tasks, alpha / 2, unseen=unseen, share=self.unseen
            )
        else:
            ends = lower_ratio_quantile(
                (self.sums, -self.sums), self.sizes, alpha / 2, unseen=unseen, share=self.unseen
            )
        return Interval(min(float(ends[0]), self.value), max(-float(ends[1]), self.value))

    def p_value(self) -> float:
        if self.value == 0:
            return 1.0
        sums, unseen = (
            (self.sums, -self.means[1]) if self.value > 0 else (-self.sums, -self.means[0])
        )
        if self._equal:
            tail = lower_tail(
                sums / self.sizes, np.ones(sums.size), 0.0, unseen=unseen, share=self.unseen_in_test
            )
        else:
            share = self.unseen_in_test
            tail = lower_ratio_tail(sums, self.sizes, 0.0, unseen=unseen, share=share)
        return float(max(_SMALLEST, 2 * float(tail)))

    @property
    def _equal(self) -> bool:
        return bool(np.ptp(self.sizes) == 0)


class _Side:
    """One system on tasks with two runs or more: how far its mean may lie from what was seen."""

    def __init__(self, sums: TaskSums, weight: Floats | None) -> None:
        self._sums, self._weight = sums, weight
        self.cells = None
        if sums.binary and weight is None:
            self.cells = count_cells(sums.runs, sums.total.astype(np.int64))

    def margins(self, confidence: float) -> tuple[float, float]:
        """How far the interval of its mean reaches down and up."""
        if self.cells is not None:
            return self.around_mean(suite_bounds(self.cells, (1,), confidence))
        sums = self._sums
        mean = score_estimate(
            sums.runs, sums.total, sums.squares, weight=self._weight, confidence=confidence
        )
        assert isinstance(mean, Estimate), "every task has a trial"
        assert mean.interval is not None, "a default has an interval"
        return mean.value - mean.interval.low, mean.interval.high - mean.value

    def around_mean(self, bounds: Bounds) -> tuple[float, float]:
        """How far an interval with these bounds reaches down and up."""
        mean = float(self._sums.means.mean())
        return mean - float(bounds[0][0]), float(bounds[1][0]) - mean


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteFit(Fit):
    """The mean difference on these tasks: only runs are random.

    Given the tasks, the runs of both sides are independent. So the limits of the difference come
    from those of each side (MOVER, Zou and Donner 2008); both are coherent. A single run does not
    show its noise; the tasks with one are `single`, and their differences are treated as a sample,
    whose spread between tasks is at least the noise of their runs. Both parts are joined in the
    same way.
    """

    sides: tuple[_Side, _Side] | None
    single: SampledFit | None
    share: float

    def interval(self, alpha: float) -> Interval:
        below = above = 0.0
        if self.single is not None:
            inner, part = self.single.interval(alpha), 1 - self.share
            below = (part * (self.single.value - inner.low)) ** 2
            above = (part * (inner.high - self.single.value)) ** 2
        if self.sides is not None:
            first, second = _margins(*self.sides, 1 - min(alpha, _WIDEST_TAIL))
            below += self.share**2 * (first[0] ** 2 + second[1] ** 2)
            above += self.share**2 * (first[1] ** 2 + second[0] ** 2)
        low, high = self.value - below**0.5, self.value + above**0.5
        if self.single is not None:
            # What one run shows of its task: one task may still move the mean by so much.
            reach = (1 - alpha / 2) / self.tasks
            low, high = min(low, self.value - reach), max(high, self.value + reach)
        return Interval(max(-1.0, low), min(1.0, high))

    def p_value(self) -> float:
        if self.value == 0:
            return 1.0
        if self.sides is None and self.single is not None:
            return self.single.p_value()

        # A margin is nearly proportional to z: a few steps find where it reaches 0.
        z = min(_FARTHEST, abs(self.value) / self.error)
        for _ in range(_MOST_STEPS):
            reach = self.interval(2 * float(ndtr(-z)))
            margin = self.value - reach.low if self.value > 0 else reach.high - self.value
            before, z = z, min(_FARTHEST, z * abs(self.value) / max(margin, _SMALLEST))
            if abs(z - before) < _ENOUGH:
                break
        return float(2 * ndtr(-z))


def aligned(
    a: TaskSums | ArrayLike, b: TaskSums | ArrayLike, scope: Scope, group: TaskGroups | None = None
) -> Pair:
    """Both sides on the tasks that have a result from each."""
    if isinstance(a, TaskSums) != isinstance(b, TaskSums):
        came = (type(a).__name__, type(b).__name__)
        raise ArgumentError("a and b", "must both be TaskSums or both be values per task", came)
    sums: tuple[TaskSums, TaskSums] | None = None
    if isinstance(a, TaskSums) and isinstance(b, TaskSums):
        _same_length(a.runs.size, b.runs.size)
        kept = (a.runs > 0) & (b.runs > 0)
        sums = a.taken(kept), b.taken(kept)
        means = sums[0].means, sums[1].means
    elif scope == THIS_SUITE:
        rule = f'must be TaskSums for "{THIS_SUITE}": a value per task does not show its run noise'
        raise ArgumentError("a and b", rule, "values per task")
    else:
        first, other = _task_values("a", a), _task_values("b", b)
        _same_length(first.size, other.size)
        kept = np.isfinite(first) & np.isfinite(other)
        means = first[kept], other[kept]
    return Pair(
        means=means,
        sums=sums,
        excluded=tuple(np.flatnonzero(~kept).tolist()),
        group=None if group is None else group.taken(kept),
    )


def population_fit(pair: Pair, *, by_family: bool = True) -> SampledFit:
    """The tasks, or their families, are a sample: what varies is the difference between them."""
    sums, sizes = family_sums(pair, by_family=by_family)
    total = float(sizes.sum())
    value = float(without_rounding(sums.sum() / total))
    residuals = sums - value * sizes
    error = float(np.sqrt((residuals**2).sum() * sums.size / max(sums.size - 1, 1))) / total
    constant = bool(np.ptp(sums / sizes) < SAME)
    weight = np.ones(pair.differences.size) if pair.group is None else pair.group.weight
    # Half a task is added to how often a side passes, so that a side that never did may still.
    left, right = (
        (float((side * weight).sum() / weight.sum()) * sums.size + 0.5) / (sums.size + 1)
        for side in pair.means
    )
    unit = "tasks" if sums.size == pair.differences.size else "families"
    return SampledFit(
        value=value,
        error=0.0 if constant else error,
        freedom=sums.size - 1,
        method=f"paired, Dirichlet weights over {unit}",
        tasks=pair.differences.size,
        sums=sums,
        sizes=sizes,
        means=(left, right),
    )


def without_rounding(difference: ArrayLike) -> Floats:
    """0 where rounding alone is left: 5/6 - 4/6 and 4/6 - 5/6 may not add up to 0 in floats."""
    return np.where(np.abs(difference) < SAME, 0.0, difference)


def family_sums(pair: Pair, *, by_family: bool = True) -> tuple[Floats, Floats]:
    """The summed difference and the size of each family; of each task if there are none."""
    d = pair.differences
    if pair.group is None:
        return d, np.ones(d.size)
    group = pair.group
    codes = group.family if by_family else np.arange(d.size)
    sums, sizes = (np.bincount(codes, part * group.weight) for part in (d, np.ones(d.size)))
    return np.asarray(sums, np.float64), np.asarray(sizes, np.float64)


def suite_fit(pair: Pair) -> Fit:
    """Only runs are random: the noise of the runs within tasks.

    The standard error is that of the unbiased variances, plus one more run on each side that
    differs from the rest: the variances are 0 if every task is constant, often by luck.
    """
    assert pair.sums is not None
    once = pair.single
    weight = np.ones(once.size) if pair.group is None else pair.group.weight
    squares = (weight / weight.sum()) ** 2
    variance = float((squares * pair.run_noise)[~once].sum())
    if once.any():
        variance += _single_run_variance(pair, once, squares)
    unseen = sum(float(np.mean(1.0 / side.runs.astype(float) ** 2)) for side in pair.sums)
    source = "spread of single runs" if once.any() else "run noise"
    return SuiteFit(
        value=float(without_rounding(np.average(pair.differences, weights=weight))),
        error=(variance + unseen / once.size**2) ** 0.5,
        freedom=np.inf,
        method=f"stratified by task, {source}",
        tasks=once.size,
        sides=None if once.all() else _sides(pair.sums, ~once, weight),
        single=_single_runs(pair, once, weight) if once.any() else None,
        share=float(weight[~once].sum() / weight.sum()),
    )


def _margins(
    left: _Side, right: _Side, confidence: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The margins of both sides, for little more than one of them takes."""
    if left.cells is None or right.cells is None:
        return left.margins(confidence), right.margins(confidence)
    bounds = bounds_side_by_side(left.cells, right.cells, (1,), confidence)
    return left.around_mean(bounds[0]), right.around_mean(bounds[1])


def _sides(sums: tuple[TaskSums, TaskSums], kept: Mask, weight: Floats) -> tuple[_Side, _Side]:
    unequal = None if np.ptp(weight) == 0 else weight[kept]
    left, right = (_Side(side.taken(kept), unequal) for side in sums)
    return left, right


def _single_runs(pair: Pair, once: Mask, weight: Floats) -> SampledFit:
    """The differences of tasks with a single run, taken as a sample."""
    part = Pair(
        means=(pair.means[0][once], pair.means[1][once]),
        sums=None,
        excluded=(),
        group=TaskGroups(family=np.arange(int(once.sum())), weight=weight[once]),
    )
    whole = _UNSEEN_OF_SINGLE_RUNS
    return replace(population_fit(part), unseen=whole, unseen_in_test=whole)


def _task_values(name: str, values: ArrayLike | TaskSums) -> Floats:
    array = np.atleast_1d(float_array(name, values))
    if array.ndim > 1:
        raise ArgumentError(name, "must have one value per task (one dimension)", array.shape)
    score_array(name, array[~np.isnan(array)])
    return array


def _same_length(left: int, right: int) -> None:
    if left != right:
        raise ArgumentError("a and b", "must be aligned, an entry per task", (left, right))


def _single_run_variance(pair: Pair, once: Mask, squares: Floats) -> float:
    assert pair.sums is not None
    if once.sum() >= _SPREAD_TASKS:
        # Its mean is the run noise plus the spread of the true differences: on the wide side.
        return float(pair.differences[once].var(ddof=1) * squares[once].sum())
    left, right = (side.runs[once].astype(float) for side in pair.sums)
    return float((squares[once] * _LARGEST_VARIANCE * (1 / left + 1 / right)).sum())
