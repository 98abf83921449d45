"""One factor crossed with tasks: how much its levels move a result, and whether they matter at all.

Trials of a task differ by luck. Trials of a task under two levels of a factor (two users, two
wordings) differ by luck and by what the level does. Both are said as disagreement, the chance that
two trials end differently: everybody understands it, and it is the same scale for every factor.
"""

from __future__ import annotations

from dataclasses import replace
from math import comb, inf, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.arguments import CONFIDENCE, confidence_level, whole_number
from passhat.dataclass import result_dataclass
from passhat.errors import ArgumentError
from passhat.messages import plural
from passhat.stats import special
from passhat.stats.arguments import Counts, Floats, RandomSource, random_generator
from passhat.stats.estimate import TASKS_LIKE_THESE, Estimate, Interval, Number, Unavailable
from passhat.stats.numerics import bisect
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.population_bounds import lower_quantile, task_value_bounds

FEWEST_TASKS = 8
"""Below this many tasks an interval of what a factor moves says little; 12 were simulated."""

FEWEST_LEVELS = 5
"""Levels from which on they may stand for others like them, as for seeds: below, t(levels - 1) is
so wide that it says nothing."""

SIGNIFICANT = 0.05
"""The p-value up to which levels are said to matter."""

DRAWS = 999
"""Allotments of passes to levels that the exact test draws."""

# The share of an unseen task at its worst, as in paired comparisons.
_UNSEEN = 0.5
# Allotments that are held at once: 8 bytes each, times a few.
_MOST_HELD = 2_000_000
_ROUNDING = 1e-9
_HALVINGS = 16


@result_dataclass(frozen=True, slots=True, kw_only=True)
class FactorEffect:
    """How often two trials of a task differ: by `luck`, and by how much more if the level differs.

    `share` is the part of the disagreement between trials of different levels that the level
    explains. All are for similar tasks and these levels.
    """

    luck: Number
    moved: Number
    share: Number


@result_dataclass(frozen=True, slots=True, kw_only=True)
class LevelTest:
    """Whether levels matter for these tasks: an exact test, given the passes of each task.

    `level_p` sees a level that is worse everywhere, `any_p` levels that break different tasks;
    `p_value` is twice the smaller one.
    """

    p_value: float
    level_p: float
    any_p: float
    tasks: int
    draws: int


def disagreements(runs: ArrayLike, passes: ArrayLike) -> tuple[Floats, Floats]:
    """The chance that two trials of a task differ, at one level and at two different levels.

    Rows are tasks, columns levels; a cell without a trial counts for nothing. nan where a task has
    no level with two trials, or no two levels. Both are means over pairs of independent trials,
    so they are unbiased however the pass rates are distributed.

    >>> same, other = disagreements([[2, 2]], [[2, 1]])
    >>> same.tolist(), other.tolist()
    ([0.5], [0.5])
    """
    n, c = _table(runs, passes)
    repeated, there = n >= 2, n >= 1
    with np.errstate(invalid="ignore", divide="ignore"):
        pairs = np.where(repeated, 2 * c * (n - c) / (n * (n - 1)), 0.0)
        same = pairs.sum(axis=1) / repeated.sum(axis=1)
        rate = np.where(there, c / n, 0.0)
        levels = there.sum(axis=1)
        total = rate.sum(axis=1)
        both = (total**2 - (rate**2).sum(axis=1)) / (levels * (levels - 1))
        other = 2 * (total / levels - both)
    other = np.where(levels >= 2, other, np.nan)
    return np.where(repeated.any(axis=1), same, np.nan), other


def factor_effect(
    runs: ArrayLike,
    passes: ArrayLike,
    *,
    unit: ArrayLike | None = None,
    confidence: float = CONFIDENCE,
) -> FactorEffect | Unavailable:
    """What a factor moves, from the trials and passes of each task (row) at each level (column).

    `unit` names the task that a row belongs to, where a task has several rows (one for each level
    of another factor): their values are averaged. The intervals are Dirichlet bounds on one value
    a task; the one of a task that was not seen is the least, or the most, that a task can show.

    >>> runs = np.full((12, 2), 5)
    >>> passes = np.column_stack((np.tile([5, 5, 4], 4), np.tile([2, 5, 0], 4)))
    >>> effect = factor_effect(runs, passes)
    >>> round(effect.luck.value, 3), round(effect.moved.value, 3)
    (0.167, 0.3)
    """
    level = confidence_level(confidence)
    n, c = _table(runs, passes)
    same, other = disagreements(n, c)
    kept = ~(np.isnan(same) | np.isnan(other))
    if not kept.any():
        lacks = "a task with trials at two levels" if np.isnan(other).all() else "two trials of one"
        return Unavailable(f"what it moves needs {lacks}")
    owner = np.arange(len(n)) if unit is None else np.asarray(unit)
    _, place = np.unique(owner[kept], return_inverse=True)
    rows = np.bincount(place)
    same, other = (np.bincount(place, shares[kept]) / rows for shares in (same, other))
    if same.size < FEWEST_TASKS:
        few = plural(same.size, "task")
        return Unavailable(
            f"what it moves needs {FEWEST_TASKS} tasks with several levels, not {few}"
        )
    if not (same.any() or other.any()):
        return Unavailable("nothing moved: each task passed always or never, at every level")
    trials = n[kept][n[kept] >= 2].min()
    levels = (n[kept] >= 1).sum(axis=1).max()
    # What one task can show at most of each: two trials of n at one level, and at two of L levels.
    most_same, most_other = trials / (2 * (trials - 1)), levels / (2 * (levels - 1))
    runs_of = int(n[kept].sum())

    def estimate(values: Floats, least: float, most: float) -> Estimate:
        low = max(0.0, _lower(values, (1 - level) / 2, least))
        high = min(most, -_lower(-values, (1 - level) / 2, -most))
        value = max(0.0, float(values.mean()))
        return _over_tasks(value, low, high, level, same.size, runs_of)

    moved = estimate(other - same, 0.5 - most_same, most_other)
    return FactorEffect(
        luck=estimate(same, 0.0, most_same),
        moved=moved,
        share=_share(same, other, most_same, most_other, moved),
    )


@result_dataclass(frozen=True, slots=True, kw_only=True)
class LevelComponents:
    """The variance of a trial's outcome given its task: by luck, and by the level it is at.

    `level` is what a level does to all tasks alike, `crossed` what it does to each on its own.
    """

    luck: float
    crossed: float
    level: float

    def error(self, *, tasks: int, levels: int, runs: int) -> float:
        """The standard error of the mean on these tasks, for levels like these (Cochran 1977)."""
        return sqrt(self.level / levels + (self.crossed + self.luck / runs) / (levels * tasks))

    def best_runs(self, *, tasks: int, price: float) -> float:
        """Trials of a task at each level that make the error least for what they cost.

        `price` is what a task at one more level costs, in trials. (Cochran 1977, two stages.)
        """
        between = self.crossed + tasks * self.level
        return sqrt(self.luck * price / between) if between > 0 else inf

    def power(self, difference: float, *, tasks: int, levels: int, runs: int) -> float:
        """The chance that `level_test` sees one level that is worse by `difference`, all alike.

        Its first statistic is chi-squared with levels - 1 degrees, whose noncentrality is the
        squared excess of the level over the variance; half of the 5% is spent on it. The spread
        between the levels there are counts as luck: it is what the others may hide behind.
        """
        variance = self.luck + self.crossed + self.level
        if variance <= 0:
            return 1.0
        shift = runs * tasks * difference**2 * (1 - 1 / levels) / variance
        beyond = special.chdtri(levels - 1, SIGNIFICANT / 2)
        return float(1 - special.chndtr(beyond, levels - 1, shift))


def level_components(runs: ArrayLike, passes: ArrayLike) -> LevelComponents | Unavailable:
    """The components from how often two trials differ: of a task or not, at one level or at two.

    Only tasks (rows) that were tried at every level (column) count. Each is a mean over pairs of
    independent trials, so it is unbiased but for being cut off at 0.

    >>> components = level_components(np.full((2, 2), 4), np.array([[4, 2], [4, 2]]))
    >>> round(components.luck, 3), round(components.crossed, 3), round(components.level, 3)
    (0.167, 0.0, 0.125)
    """
    n, c = _table(runs, passes)
    n, c = n[(n > 0).all(axis=1)], c[(n > 0).all(axis=1)]
    tasks, levels = n.shape
    same, other = disagreements(n, c)
    if tasks < 2 or levels < 2 or np.isnan(same).all():
        return Unavailable("components need two tasks at two levels, and two trials of one")
    rate = c / n
    luck, total = float(np.nanmean(same)) / 2, float(other.mean()) / 2
    # Of two tasks: the mean product of their rates, at each pair of levels.
    column = rate.sum(axis=0)
    product = (np.outer(column, column) - rate.T @ rate) / (tasks * (tasks - 1))
    level = float(np.trace(product)) / levels
    level -= float(product.sum() - np.trace(product)) / (levels * (levels - 1))
    crossed = total - luck - level
    return LevelComponents(luck=luck, crossed=max(0.0, crossed), level=max(0.0, level))


def outcome_consistency(
    runs: ArrayLike, passes: ArrayLike, *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """How consistently trials of a task end: 1 minus twice the chance that two of them differ.

    1 if every task always ends alike, 0 for coin flips. (2 p - 1)^2 of the observed rate, which
    HAL uses, is biased upward by 4 p (1 - p) / runs: it falls as trials are added.

    >>> round(outcome_consistency([5, 5, 5], [5, 4, 5]).value, 3)
    0.733
    """
    level = confidence_level(confidence)
    n, c = _table(np.asarray(runs)[:, None], np.asarray(passes)[:, None])
    kept = n[:, 0] >= 2
    if kept.sum() < 2:
        return Unavailable("consistency needs two tasks with two trials each")
    n, differ = n[kept], disagreements(n, c)[0][kept]
    least = int(n.min())
    # The most that trials of one task can differ, so many there are.
    most = 2 * (least // 2) * ((least + 1) // 2) / (least * (least - 1))
    tail, ones = (1 - level) / 2, np.ones(differ.size)
    low = float(lower_quantile(differ, ones, tail))
    high = -float(lower_quantile(-differ, ones, tail, unseen=-max(most, differ.max())))
    value = 1 - 2 * float(differ.mean())
    return _over_tasks(value, 1 - 2 * high, 1 - 2 * low, level, n.size, int(n.sum()))


def level_test(
    runs: ArrayLike, passes: ArrayLike, *, draws: int = DRAWS, rng: RandomSource = 0
) -> LevelTest | Unavailable:
    """Whether the levels (columns) matter for these tasks (rows): exact, given each task's passes.

    If levels do not matter, which of a task's trials passed is chance: passes fall on levels as in
    drawing without replacement. Two statistics: the squared total excess of each level, and the sum
    of squares between the levels of each task. Each alone is blind to what the other sees.

    >>> runs = np.full((10, 2), 6)
    >>> level_test(runs, np.column_stack((np.full(10, 6), np.full(10, 3)))).p_value
    0.002
    """
    n, c = _table(runs, passes)
    whole_number("draws", draws)
    trials, passed = n.sum(axis=1), c.sum(axis=1)
    alive = (passed > 0) & (passed < trials) & ((n >= 1).sum(axis=1) >= 2)
    if not alive.any():
        return Unavailable("no task with several levels passed and failed")
    n, c, trials, passed = n[alive], c[alive], trials[alive], passed[alive]
    share = passed / trials
    expected = n * share[:, None]
    spread = share * (1 - share) * trials / (trials - 1)
    weight = (n * spread[:, None]).sum(axis=0)
    inverse = np.divide(1.0, n, out=np.zeros(n.shape), where=n > 0)

    def statistics(counts: NDArray[np.int64]) -> Floats:
        excess = counts - expected
        by_level = excess.sum(axis=-2) ** 2 / np.where(weight > 0, weight, 1.0)
        return np.array([by_level.sum(axis=-1), (excess**2 * inverse).sum(axis=(-2, -1))])

    own, beyond, source = statistics(c[None]), np.ones(2), random_generator(rng)[0]
    held = max(1, _MOST_HELD // n.size)
    for first in range(0, draws, held):
        drawn = _allotments(n, passed, min(held, draws - first), source)
        beyond += (statistics(drawn) >= own - _ROUNDING).sum(axis=1)
    level_p, any_p = (beyond / (draws + 1)).tolist()
    return LevelTest(
        p_value=min(1.0, 2 * min(level_p, any_p)),
        level_p=level_p,
        any_p=any_p,
        tasks=len(n),
        draws=draws,
    )


def stratified_exact_test(
    runs: ArrayLike, passes: ArrayLike, other_runs: ArrayLike, other_passes: ArrayLike
) -> float:
    """Whether trials pass less often than others in every stratum taken together: one-sided, exact.

    Given the passes of each stratum, those that fall on the first trials are hypergeometric, and
    their sum over strata is the statistic (as in the exact test of Mantel and Haenszel 1959).

    >>> round(stratified_exact_test([5], [0], [5], [5]) * 252, 9)
    1.0
    """
    columns = (runs, passes, other_runs, other_passes)
    n, c, m, d = (np.asarray(column, dtype=np.int64) for column in columns)
    strata = zip((n + m).tolist(), n.tolist(), (c + d).tolist(), strict=True)
    from passhat.stats.exact_tests import stratified_distribution

    sums = stratified_distribution(strata)
    return float(min(1.0, sums.chance[: int(c.sum()) - sums.fewest + 1].sum()))


def pass_hat_of_levels(
    runs: ArrayLike, passes: ArrayLike, k: int, *, other: bool, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """pass^k of k trials at one level, or each at another one (`other`), over similar tasks.

    At one level it is the mean over levels of C(c, k) / C(n, k); at others the mean over sets of k
    levels of the product of their rates (the elementary symmetric polynomial). Both are unbiased.

    >>> runs, passes = np.full((2, 2), 4), np.array([[4, 2], [4, 4]])
    >>> [round(pass_hat_of_levels(runs, passes, 2, other=o).value, 3) for o in (False, True)]
    [0.792, 0.75]
    """
    n, c = _table(runs, passes)
    level, k = confidence_level(confidence), whole_number("k", k)
    kept = (n >= (1 if other else k)).all(axis=1)
    if other and k > n.shape[1]:
        return Unavailable(f"{plural(k, 'trial')} at other levels need as many levels")
    if kept.sum() < 2:
        return Unavailable(f"pass^{k} by level needs 2 tasks with enough trials at every level")
    n, c = n[kept], c[kept]
    values = _mean_product(c / n, k) if other else share_of_passing_subsets(n, c, k).mean(axis=1)
    low, high = map(float, task_value_bounds(np.clip(values, 0.0, 1.0), level))
    estimate = _over_tasks(float(values.mean()), low, high, level, len(n), int(n.sum()))
    excluded = int((~kept).sum())
    return replace(estimate, method="Dirichlet over tasks", excluded_tasks=excluded)


def spread_of_levels(runs: ArrayLike, passes: ArrayLike, k: int) -> float | Unavailable:
    """The variance that the spread between levels gives the mean pass^k: a jackknife over levels.

    For levels like these; each cell counts with its own pass^k, never the trials of all levels
    pooled.
    """
    n, c = _table(runs, passes)
    levels = n.shape[1]
    if levels < FEWEST_LEVELS:
        there = plural(levels, "level")
        return Unavailable(f"levels like these need {FEWEST_LEVELS} levels, and there are {there}")
    if (n < k).any():
        return Unavailable(
            f"levels like these need {plural(k, 'trial')} of every task at each level"
        )
    means = share_of_passing_subsets(n, c, k).mean(axis=0)
    return float(means.var(ddof=1) / levels)


def _table(runs: ArrayLike, passes: ArrayLike) -> tuple[Counts, Counts]:
    n, c = np.asarray(runs), np.asarray(passes)
    if n.ndim != 2 or n.shape != c.shape:
        raise ArgumentError(
            "passes", "must have a row a task and a column a level, as runs", c.shape
        )
    if ((c < 0) | (c > n)).any():
        raise ArgumentError("passes", "must lie between 0 and runs", int(c[(c < 0) | (c > n)][0]))
    return n.astype(np.int64), c.astype(np.int64)


def _over_tasks(
    value: float, low: float, high: float, confidence: float, tasks: int, runs: int
) -> Estimate:
    """A number for similar tasks, which its interval holds."""
    return Estimate(
        value=value,
        interval=Interval(min(value, low), max(value, high)),
        method="Dirichlet over tasks, pairs of trials",
        confidence=confidence,
        scope=TASKS_LIKE_THESE,
        tasks=tasks,
        runs=runs,
    )


def _lower(values: Floats, tail: float, unseen: float) -> float:
    ones = np.ones(values.size)
    return float(lower_quantile(values, ones, tail, unseen=unseen, share=_UNSEEN))


def _share(
    same: Floats, other: Floats, most_same: float, most_other: float, moved: Estimate
) -> Number:
    """The part of the disagreement between levels that is theirs: h with other (1 - h) = same."""
    if not other.mean() > 0:
        return Unavailable("trials at different levels never differed")
    tail = (1 - moved.confidence) / 2

    def too_much(h: float) -> bool:
        return _lower(other * (1 - h) - same, tail, (1 - h) / 2 - most_same) < 0

    def enough(h: float) -> bool:
        return _lower(same - other * (1 - h), tail, -(1 - h) * most_other) >= 0

    low = 0.0 if too_much(0.0) else 1.0
    if low and too_much(1.0):
        low = bisect(too_much, 0.0, 1.0, steps=_HALVINGS)[0]
    high = 0.0 if enough(0.0) else bisect(enough, 0.0, 1.0, steps=_HALVINGS)[1]
    value = max(0.0, 1 - float(same.mean() / other.mean()))
    ends = Interval(min(value, low), max(value, high))
    return replace(moved, value=value, interval=ends, method="Dirichlet over tasks, inverted")


def _allotments(n: Counts, passed: Counts, draws: int, rng: np.random.Generator) -> Counts:
    """Passes of each task thrown on the trials of its levels: `draws` tables like n."""
    left, trials = np.broadcast_to(passed, (draws, passed.size)).copy(), n.sum(axis=1)
    table = np.empty((draws, *n.shape), dtype=np.int64)
    for place in range(n.shape[1] - 1):
        trials = trials - n[:, place]
        # Of the trials of this level and of those to come, `left` passed.
        own = n[:, place]
        table[:, :, place] = rng.hypergeometric(own, trials, left)
        left -= table[:, :, place]
    table[:, :, -1] = left
    return table


def _mean_product(rates: Floats, k: int) -> Floats:
    """The mean over sets of k columns of the product of their rates, row by row."""
    sums = np.zeros((k + 1, len(rates)))
    sums[0] = 1.0
    levels = rates.shape[1]
    for place in range(levels):
        sums[1:] += sums[:-1] * rates[:, place]
    mean: Floats = sums[k] / comb(levels, k)
    return mean
