"""Runs that depend on one another: rounds that differ, bursts, seeds, days, and wider intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from math import log
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, confidence_level
from passhat.dataclass import dataclass, result_dataclass
from passhat.errors import ArgumentError
from passhat.stats import special
from passhat.stats.arguments import (
    Counts,
    Floats,
    RandomSource,
    count_array,
    float_array,
    one_of,
    random_generator,
    score_array,
)
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Scope,
    Unavailable,
    hull,
)
from passhat.stats.numerics import bisect, jackknife_variance
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.proportions import wilson_bounds

Generator: TypeAlias = "Callable[[], np.random.Generator]"

SPREAD_LEVEL = 0.004
"""The share of runs in which rounds are reported to differ though nothing happened."""

DRIFT_LEVEL = 0.003
"""The share in which a drift is reported. With bursts, the three add up to 1 %."""

_LARGEST_LEVEL = max(SPREAD_LEVEL, DRIFT_LEVEL)
# Chi-squared and normal tails at these levels are right when at least this many tasks both passed
# and failed (simulated); with fewer, p-values come from permuting the runs of each task.
_MANY_TASKS = 100
# Above this p permutations are not worth their time: the exact p would not be below a level.
_WORTH_PERMUTING = 0.05
# As many permutations as keep cells times permutations below the work, and p-values fine enough.
_MOST_PERMUTATIONS, _FEWEST_PERMUTATIONS = 4_000, 1_000
_WORK = 8_000_000
# Permutations drawn at a time: enough for numpy, few enough to stop early.
_BLOCK = 1 << 16
# With runs missing, the covariance of up to this many rounds is quickly inverted.
_MOST_ROUNDS = 500
# Eigenvalues of the covariance below this share of the largest are rounding.
_NO_VARIANCE = 1e-9
# At most this share of the rounds is called out of line: with more, none can be called normal.
_FEW_ROUNDS = 1 / 3
# A drift is reported only if a line explains at least this share of the spread between rounds.
_MOSTLY_STRAIGHT = 0.5
# A stretch of failures is a burst when its chance, times the number of runs (the places where it
# could have begun), is below this. Rates come from the same runs, which makes bursts rarer: with
# 0.008, independent runs show a burst at most 0.3 % of the time (bench/calibrate/dependence.py).
BURST_LEVEL = 0.008
# A task's rate is pulled to the suite's with the weight of 1.5 runs: two failures do not make it 0.
_BORROWED_RUNS = 1.5
# Two failures in a row are no burst, whatever their chance.
_FEWEST_FAILURES = 3


@result_dataclass(frozen=True, slots=True, kw_only=True)
class RoundTests:
    """How far whole rounds differ, tested against chance: runs that are independent given the task.

    `spread_p` is the p of Cochran's Q, `drift_p` that of a straight line over the rounds. `drift`
    is how far that line moves from the first round to the last, `straightness` the share of the
    spread that it explains. `out_of_line` are the rounds (from 0) without which the others agree.
    `tasks` counts those that both passed and failed: only they show anything.
    """

    means: tuple[float, ...]
    spread_p: float
    drift_p: float
    drift: float
    straightness: float
    out_of_line: tuple[int, ...]
    tasks: int
    method: str

    @property
    def differ(self) -> bool:
        """Whether the rounds differ beyond chance, in any way."""
        return self.spread_p < SPREAD_LEVEL or self.drift_p < DRIFT_LEVEL

    @property
    def drifts(self) -> bool:
        """Whether the rate moves along the rounds, and no few rounds explain it."""
        straight = self.straightness >= _MOSTLY_STRAIGHT
        return self.drift_p < DRIFT_LEVEL and straight and not self.out_of_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Runs `first` to `last` (places in the order of their start) that failed one after another."""

    first: int
    last: int
    tasks: int
    p_value: float

    @property
    def runs(self) -> int:
        return self.last - self.first + 1


def round_tests(scores: ArrayLike, *, rng: RandomSource = None) -> RoundTests | Unavailable:
    """Test the rounds of a suite: a row for each task, a column for each round, NaN for no run.

    If runs are independent given the task, which round a result falls in is chance alone, whatever
    the task's rate. Cochran (1950) for passes; with scores, or with runs missing, its general form
    (a quadratic form in the sums of the rounds). A single task can show only a drift.

    >>> import numpy as np
    >>> table = np.ones((20, 5)); table[:, 3] = 0
    >>> tests = round_tests(table)
    >>> tests.differ, tests.out_of_line
    (True, (3,))
    """
    table = float_array("scores", scores)
    if table.ndim != 2:
        rule = "must have a row for each task and a column for each round"
        raise ArgumentError("scores", rule, f"{table.ndim} dimensions")
    bad = table[(table < 0) | (table > 1)]
    if bad.size:
        raise ArgumentError(
            "scores", "must lie in [0, 1], NaN where there is no trial", float(bad[0])
        )
    table = table[:, ~np.isnan(table).all(axis=0)]
    if table.shape[0] < 1:
        return Unavailable("no task has a trial")
    if table.shape[1] < 2:
        return Unavailable("there are fewer than two rounds of all tasks")
    telling = table[_variances(table) > 0]
    # Most tables need no random draws, and loading numpy.random takes time.
    generator = cache(lambda: random_generator(rng)[0])
    if rng is not None:
        generator()
    spread_p, drift_p = _p_values(telling, generator)
    straight = _straightness(telling)
    moved = _slope(telling) * (table.shape[1] - 1) * len(telling) / len(table)
    return RoundTests(
        means=tuple(np.nanmean(table, axis=0).tolist()),
        spread_p=spread_p,
        drift_p=drift_p,
        drift=moved,
        straightness=straight,
        out_of_line=_out_of_line(telling, generator) if spread_p < SPREAD_LEVEL else (),
        tasks=len(telling),
        method="Cochran's Q and a linear contrast over rounds",
    )


def find_bursts(task: ArrayLike, passed: ArrayLike) -> tuple[Burst, ...]:
    """Stretches of failures too long for chance among runs in the order they started.

    The chance of a stretch is the product of 1 - p over its runs, p being the rate of each run's
    task, pulled towards the suite's: a task that always fails and fails again says nothing.

    >>> find_bursts([0, 1, 2] * 20, [True] * 30 + [False] * 9 + [True] * 21)[0].runs
    9
    """
    codes = count_array("task", task)
    ended = np.asarray(passed, dtype=bool)
    if codes.shape != ended.shape or codes.ndim != 1:
        sizes = (codes.shape, ended.shape)
        raise ArgumentError("task and passed", "must have one entry per trial", sizes)
    # +1 where a stretch of consecutive failures begins, -1 at the place after its end.
    edges = np.diff(np.concatenate(([0], (~ended).astype(np.int8), [0])))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if not starts.size:
        return ()
    surprise = np.concatenate(([0.0], np.cumsum(np.log1p(-_rates(codes, ended)[codes]))))
    logs = surprise[ends] - surprise[starts]
    long = (ends - starts >= _FEWEST_FAILURES) & (logs <= log(BURST_LEVEL / codes.size))
    return tuple(
        Burst(
            first=int(start),
            last=int(end) - 1,
            tasks=int(np.unique(codes[start:end]).size),
            p_value=float(min(1.0, codes.size * np.exp(chance))),
        )
        for start, end, chance in zip(starts[long], ends[long], logs[long], strict=True)
    )


def _variances(table: Floats) -> Floats:
    """The sample variance of each task's runs; 0 with fewer than two."""
    runs = (~np.isnan(table)).sum(axis=1)
    sample = (_centred(table) ** 2).sum(axis=1) / np.maximum(runs - 1, 1)
    return np.where((runs > 1) & (sample > _NO_VARIANCE), sample, 0.0)


def _p_values(telling: Floats, rng: Generator) -> tuple[float, float]:
    """The p of Cochran's Q and of the linear contrast, by permutation where few tasks vary."""
    if len(telling) == 0 or telling.shape[1] < 2:
        return 1.0, 1.0
    inverse, freedom, line = _null_distribution(telling)
    if freedom == 0:
        return 1.0, 1.0
    sums = _round_sums(telling)
    spread, drift = float(_quadratic(sums, inverse)), abs(float(line @ sums))
    p = float(special.chdtrc(freedom, spread)), float(2 * special.ndtr(-drift))
    if len(telling) >= _MANY_TASKS or min(p) > _WORTH_PERMUTING:
        return p
    draws = min(_MOST_PERMUTATIONS, _WORK // telling.size)
    if draws < _FEWEST_PERMUTATIONS:
        return 1.0, p[1]  # few tasks with very many runs: a line over them is normal, Q is not
    reached, drawn = np.zeros(2, dtype=np.int64), 0
    # The observed arrangement is one of all; a tie counts as at least as extreme.
    seen = np.array((spread, drift)) * (1 - 1e-9)
    for sums in _permuted_sums(telling, draws, rng()):
        statistics = np.stack((_quadratic(sums, inverse), np.abs(sums @ line)))
        reached += (statistics >= seen[:, None]).sum(axis=1)
        drawn += len(sums)
        # Besag and Clifford (1991): with so many beyond the observed one, neither p can end below
        # a level, and a larger p need not be known more exactly.
        if reached.min() >= _LARGEST_LEVEL * (1 + draws):
            break
    spread_p, drift_p = ((1 + reached) / (1 + drawn)).tolist()
    return spread_p, drift_p


def _centred(table: Floats) -> Floats:
    """Every task around its own mean; 0 where there is no run."""
    seen = ~np.isnan(table)
    # Many tables are small, and numpy's functions for NaN take five times as long.
    runs = np.maximum(seen.sum(axis=1, keepdims=True), 1)
    mean = np.where(seen, table, 0.0).sum(axis=1, keepdims=True) / runs
    return np.where(seen, table - mean, 0.0)


def _round_sums(table: Floats) -> Floats:
    """The sum over tasks of each round, every task around its own mean."""
    return np.asarray(_centred(table).sum(axis=0))


def _quadratic(sums: Floats, inverse: Floats | float) -> Floats:
    """The quadratic form of each row of sums; a number as inverse is a multiple of the identity."""
    if isinstance(inverse, float):
        return np.asarray(inverse * (sums**2).sum(axis=-1))
    return np.asarray(((sums @ inverse) * sums).sum(axis=-1))


def _null_distribution(telling: Floats) -> tuple[Floats | float, int, Floats]:
    """The inverse covariance of the sums of rounds under chance, its rank, the drift contrast.

    If chance alone orders the runs of a task, they have covariance s2 (I - 1/n) over its rounds.
    The sums add up to 0: in a full table the inverse is a multiple of the identity.
    """
    seen = (~np.isnan(telling)).astype(np.float64)
    variance = _variances(telling)
    rounds = telling.shape[1]
    line = np.arange(rounds) - (rounds - 1) / 2
    if seen.all():
        total = float(variance.sum())
        return 1 / total, rounds - 1, line / np.sqrt(total * float(line @ line))
    if rounds > _MOST_ROUNDS:
        return 0.0, 0, line
    shared = seen * (variance / seen.sum(axis=1))[:, None]
    covariance = np.diag(seen.T @ variance) - seen.T @ shared
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _NO_VARIANCE * max(float(values.max()), 1e-300)
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    error = float(np.sqrt(max(float(line @ covariance @ line), 0.0)))
    return inverse, int(kept.sum()), line / error if error > 0 else np.zeros_like(line)


def _permuted_sums(telling: Floats, draws: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Centred sums of the rounds with the runs of every task in random order, some at a time."""
    seen = ~np.isnan(telling)
    # The runs of each task, moved to the front of its row; then put in random places.
    packed = np.take_along_axis(_centred(telling), np.argsort(~seen, axis=1, kind="stable"), axis=1)
    block, rounds = max(1, _BLOCK // telling.size), telling.shape[1]
    for start in range(0, draws, block):
        size = min(block, draws - start)
        keys = np.where(seen, rng.random((size, *telling.shape)), 2.0)
        # The places of the runs of each draw, counted on from those of the draw before.
        places = np.argsort(keys, axis=2) + rounds * np.arange(size)[:, None, None]
        values = np.broadcast_to(packed, keys.shape).ravel()
        sums = np.bincount(places.ravel(), weights=values, minlength=size * rounds)
        yield np.asarray(sums.reshape(size, rounds), dtype=np.float64)


def _straightness(telling: Floats) -> float:
    """The share of the spread between the sums of rounds that a straight line explains."""
    if telling.size == 0:
        return 0.0
    sums = _round_sums(telling)
    line = np.arange(sums.size) - (sums.size - 1) / 2
    total = float(sums @ sums) * float(line @ line)
    return float(line @ sums) ** 2 / total if total > 0 else 0.0


def _slope(telling: Floats) -> float:
    """The least-squares slope over the rounds, one for all tasks, each around its own mean."""
    if telling.size == 0:
        return 0.0
    seen = ~np.isnan(telling)
    place = _centred(np.where(seen, np.arange(telling.shape[1]), np.nan))
    leverage = float((place**2).sum())
    return float((place * np.where(seen, telling, 0.0)).sum()) / leverage if leverage > 0 else 0.0


def _out_of_line(telling: Floats, rng: Generator) -> tuple[int, ...]:
    """The few rounds without which the others agree, all better or all worse; none if too many."""
    left, gone = list(range(telling.shape[1])), list[int]()
    side = 0.0
    while len(left) > 2 and len(gone) + 1 <= telling.shape[1] * _FEW_ROUNDS:
        rest = telling[:, left]
        sums = _round_sums(rest)
        furthest = int(np.argmax(np.abs(sums)))
        if sums[furthest] * side < 0:
            return ()
        side = float(sums[furthest])
        gone.append(left.pop(furthest))
        rest = telling[:, left]
        if min(_p_values(rest[_variances(rest) > 0], rng)) >= SPREAD_LEVEL:
            return tuple(sorted(gone))
    return ()


def _rates(codes: Counts, passed: np.ndarray) -> Floats:
    runs = np.bincount(codes)
    passes = np.bincount(codes, weights=passed)
    mean = float(passes.sum() / codes.size)
    return np.asarray((passes + _BORROWED_RUNS * mean) / (runs + _BORROWED_RUNS))


# How much a whole suite moves from seed to seed: variance between seeds, batches or days.

# The variance between fewer seeds has an interval too wide to be useful.
FEWEST_SEEDS = 5

# A design whose equations are worse conditioned than this cannot tell seeds from tasks.
_WORST_CONDITION = 1e10


@result_dataclass(frozen=True, slots=True, kw_only=True)
class SeedVariance:
    """The variance that moves the whole suite from seed to seed, and that of a single run."""

    between: Estimate
    within: float
    tasks_component: float
    mean: Estimate
    seeds: int
    tasks: int
    runs: int


def seed_variance(
    seed: ArrayLike,
    task: ArrayLike,
    score: ArrayLike,
    *,
    scope: Scope = TASKS_LIKE_THESE,
    confidence: float = CONFIDENCE,
) -> SeedVariance | Unavailable:
    """The variance between seeds (or batches, or days), and a suite mean that allows for it.

    The three columns hold one row per run. Components come from the crossed random-effects
    equations of Henderson (1953, method 1); the mean's interval uses the variance of tasks and
    seeds together with t on seeds - 1 degrees of freedom.

    >>> print(seed_variance([1, 1, 2, 2], ["a", "b", "a", "b"], [1, 0, 1, 1]).reason)
    between-seed variance cannot be estimated from 2 seeds: it needs at least 5
    """
    level = confidence_level(confidence)
    one_of("scope", scope, (THIS_SUITE, TASKS_LIKE_THESE))
    scores = score_array("score", score).ravel()
    seeds, seed_codes = np.unique(np.asarray(seed).ravel(), return_inverse=True)
    tasks, task_codes = np.unique(np.asarray(task).ravel(), return_inverse=True)
    if not seed_codes.size == task_codes.size == scores.size:
        sizes = (seed_codes.size, task_codes.size, scores.size)
        raise ArgumentError("seed, task and score", "must have one entry per trial", sizes)
    if scores.size == 0:
        raise ArgumentError("score", "must hold at least one trial", 0)
    rows = _Crossed(
        seed=seed_codes, task=task_codes, score=scores, seeds=seeds.size, tasks=tasks.size
    )
    if rows.seeds < FEWEST_SEEDS:
        return Unavailable(
            f"between-seed variance cannot be estimated from {rows.seeds} "
            f"seed{'s' * (rows.seeds != 1)}: it needs at least {FEWEST_SEEDS}"
        )
    components = _henderson(rows)
    if components is None:
        return Unavailable(
            "between-seed variance cannot be estimated: each seed must be used on several tasks, "
            "and each task run with several seeds"
        )
    tasks_part, seeds_part, within = components
    return SeedVariance(
        between=_seed_component(rows, seeds_part, within, confidence=level),
        within=within,
        tasks_component=tasks_part,
        mean=_seeded_mean(rows, components, scope=scope, confidence=level),
        seeds=rows.seeds,
        tasks=rows.tasks,
        runs=rows.score.size,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Crossed:
    """Runs as rows, with seeds and tasks as codes from 0."""

    seed: Counts
    task: Counts
    score: Floats
    seeds: int
    tasks: int

    @property
    def left_over(self) -> int:
        """The degrees of freedom that tasks and seeds leave to runs."""
        return max(1, self.score.size - self.tasks - self.seeds + 1)


def _henderson(rows: _Crossed) -> tuple[float, float, float] | None:
    """Components of task, seed and run; None if the design cannot tell them apart."""
    runs = rows.score.size
    per_task, per_seed = np.bincount(rows.task), np.bincount(rows.seed)
    cell, cells = np.unique(rows.task * rows.seeds + rows.seed, return_counts=True)
    seeds_in_tasks = float((cells**2 / per_task[cell // rows.seeds]).sum())
    tasks_in_seeds = float((cells**2 / per_seed[cell % rows.seeds]).sum())
    # Rows: expected sums of squares over runs, tasks, seeds and the mean; columns: the mean's
    # square, then the three components.
    expected = np.array(
        [
            [runs, runs, runs, runs],
            [runs, runs, seeds_in_tasks, rows.tasks],
            [runs, tasks_in_seeds, runs, rows.seeds],
            [runs, (per_task**2).sum() / runs, (per_seed**2).sum() / runs, 1.0],
        ]
    )
    if np.linalg.cond(expected / runs) > _WORST_CONDITION:
        return None
    # Centring leaves the components alone and keeps the sums of squares accurate.
    centred = rows.score - rows.score.mean()
    by_task = np.bincount(rows.task, weights=centred)
    by_seed = np.bincount(rows.seed, weights=centred)
    sums = [(centred**2).sum(), (by_task**2 / per_task).sum(), (by_seed**2 / per_seed).sum(), 0.0]
    _, task, seed, within = np.linalg.solve(expected / runs, np.array(sums) / runs)
    return max(0.0, float(task)), float(seed), max(0.0, float(within))


def _seed_component(
    rows: _Crossed, component: float, within: float, *, confidence: float
) -> Estimate:
    """The component with the interval of Williams (1962) and Tukey (1951)."""
    tail = (1 - confidence) / 2
    runs = rows.score.size
    freedom, rest = rows.seeds - 1, rows.left_over
    per_seed = np.bincount(rows.seed)
    times = (runs - float((per_seed**2).sum()) / runs) / freedom
    mean_square = within + times * component

    def bound(share: float) -> float:
        excess = mean_square - float(special.fdtri(freedom, rest, share)) * within
        return freedom * max(0.0, excess) / (times * float(special.chdtri(freedom, 1 - share)))

    value = max(0.0, component)
    low, high = bound(1 - tail), bound(tail)
    notes = () if component > 0 else ("the estimate is not positive, shown as 0",)
    return Estimate(
        value=value,
        interval=Interval(min(low, value), max(high, value)),
        method="crossed random effects, Williams-Tukey",
        confidence=confidence,
        tasks=rows.tasks,
        runs=runs,
        notes=notes,
    )


def _seeded_mean(
    rows: _Crossed, components: tuple[float, float, float], *, scope: Scope, confidence: float
) -> Estimate:
    """The mean over tasks, with the variance that tasks (if sampled), seeds and runs give it."""
    task_part, seed_part, within = components
    weight = 1 / (rows.tasks * np.bincount(rows.task)[rows.task])
    per_seed = np.bincount(rows.seed, weights=weight)
    value = float((weight * rows.score).sum())
    variance = float((weight**2).sum()) * within
    variance += task_part / rows.tasks if scope == TASKS_LIKE_THESE else 0.0
    # Of tasks that are given, only runs are drawn: the variance is that of `within`, known from
    # what tasks and seeds leave over.
    freedom = rows.tasks - 1 if scope == TASKS_LIKE_THESE else rows.left_over
    if seed_part > 0:
        variance += float((per_seed**2).sum()) * seed_part
        freedom = rows.seeds - 1 if scope == THIS_SUITE else min(rows.seeds, rows.tasks) - 1
    quantile = float(special.stdtrit(freedom, (1 + confidence) / 2))
    return Estimate(
        value=min(1.0, max(0.0, value)),
        interval=_bounded_interval(value, variance, quantile),
        method="mean over tasks, "
        + ("task and seed" if seed_part > 0 else "task")
        + " variance, t",
        confidence=confidence,
        scope=scope,
        tasks=rows.tasks,
        runs=rows.score.size,
        notes=() if seed_part > 0 else ("no variance between seeds was seen; none is added",),
    )


def _bounded_interval(mean: float, variance: float, quantile: float) -> Interval | None:
    """Wilson's interval with as many runs as would give this variance; None without variance."""
    if variance <= 0 or not 0 < mean < 1:
        return None
    low, high = wilson_bounds(np.asarray(mean), np.asarray(mean * (1 - mean) / variance), quantile)
    return Interval(float(low), float(high))


# Intervals that include what moved runs together: an outage, a drift, a seed, a bad day.

Margins = tuple[float, float]
"""Two lengths or two factors: of the margin below a value, and of the margin above it."""

Ends = tuple[Floats | float, Floats | float]
"""Those of one interval, or of many."""

# Day-to-day standard deviations of 0 to 0.6 logit, with a half-normal prior. Over 100 calm points
# whose days move by 0.3 logit a scale of 0.25 raises a false alarm in 6.6 % of histories, one of
# 0.5 in 5.0 % (bench/calibrate/dependence.py); from 0.5 on the scale hardly matters.
_SIGMAS = np.arange(0, 0.6001, 0.05)
_PRIOR_SD = 0.5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupedRuns:
    """Runs and total scores of each task (rows) in each group of runs (columns): rounds, seeds."""

    runs: Counts
    total: Floats

    @classmethod
    def of(cls, task: ArrayLike, group: ArrayLike, score: ArrayLike) -> GroupedRuns:
        """From columns with one entry for each run.

        >>> GroupedRuns.of(["a", "a", "b"], [1, 2, 2], [1, 0, 1]).runs.tolist()
        [[1, 1], [0, 1]]
        """
        tasks, rows = np.unique(np.asarray(task), return_inverse=True)
        groups, columns = np.unique(np.asarray(group), return_inverse=True)
        shape = (tasks.size, groups.size)
        cells = rows.ravel() * groups.size + columns.ravel()
        runs = np.bincount(cells, minlength=shape[0] * shape[1])
        total = np.bincount(cells, np.asarray(score, float), shape[0] * shape[1]).astype(np.float64)
        return cls(runs=runs.reshape(shape), total=total.reshape(shape))

    @classmethod
    def of_table(cls, scores: Floats, tasks: Counts | None = None) -> GroupedRuns:
        """From a row for each task and a column for each group, NaN if there is no run.

        Where a task has several rows, `tasks` says which one each row is of.
        """
        runs, total = (~np.isnan(scores)).astype(np.int64), np.nan_to_num(scores)
        if tasks is None:
            return cls(runs=runs, total=total)
        shape = int(tasks.max()) + 1, scores.shape[1]
        summed = cls(runs=np.zeros(shape, dtype=np.int64), total=np.zeros(shape))
        np.add.at(summed.runs, tasks, runs)
        np.add.at(summed.total, tasks, total)
        return summed

    @property
    def groups(self) -> int:
        return int(self.runs.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class BetweenDayVariance:
    """What is known of the standard deviation between days: a weight for each value of a grid.

    A day shifts the whole suite by some amount on the logit scale: a provider's load, a new build
    of the same model. The weights are a half-normal prior times the likelihood of the days seen.
    """

    log_weights: Floats
    days: int = 0

    @classmethod
    def unknown(cls) -> BetweenDayVariance:
        """Before any history.

        >>> round(BetweenDayVariance.unknown().sigma, 2)
        0.26
        """
        return cls(-(_SIGMAS**2) / (2 * _PRIOR_SD**2))

    @classmethod
    def none(cls) -> BetweenDayVariance:
        """Days that are known not to differ."""
        return cls(np.where(_SIGMAS == 0, 0.0, -np.inf))

    @property
    def weights(self) -> Floats:
        weights = np.exp(self.log_weights - self.log_weights.max())
        return np.asarray(weights / weights.sum())

    @property
    def sigma(self) -> float:
        """The expected standard deviation, in logits."""
        return float(self.weights @ _SIGMAS)

    def after(self, values: Floats, noise: Floats, slope: float) -> BetweenDayVariance:
        """The same after days with these means, each with its variance from runs.

        `slope` is how much the mean moves per logit. Restricted likelihood: the level itself is
        not known (Patterson and Thompson 1971).
        """
        if values.size < 2 or slope <= 0:
            return self
        variance = noise + (_SIGMAS[:, None] * slope) ** 2
        variance = np.maximum(variance, 1e-12)
        precision = 1 / variance
        level = (precision * values).sum(axis=1) / precision.sum(axis=1)
        squares = (precision * (values - level[:, None]) ** 2).sum(axis=1)
        logs = -0.5 * (np.log(variance).sum(axis=1) + np.log(precision.sum(axis=1)) + squares)
        return replace(self, log_weights=self.log_weights + logs, days=self.days + int(values.size))

    def p_value(
        self,
        difference: float,
        noise: float,
        slope: float,
        days: float,
        *,
        plain_p: float | None = None,
    ) -> float:
        """The two-sided p of a difference whose runs give it the variance `noise`.

        `days` is 1 / new + 1 / old, over the days on each side. `plain_p` is the exact p without a
        spread between days, if it is known.
        """
        variance = np.maximum(noise + (_SIGMAS * slope) ** 2 * days, 1e-300)
        tails = 2 * special.ndtr(-abs(difference) / np.sqrt(variance))
        if plain_p is not None:
            tails[0] = plain_p
        return min(1.0, float(self.weights @ tails))

    def half_width(self, noise: float, slope: float, days: float, confidence: float) -> float:
        """Half the interval of such a difference, by bisection on its p-value."""

        def within(half: float) -> bool:
            return self.p_value(half, noise, slope, days) <= 1 - confidence

        high = 1.0
        while not within(high) and high < 1e6:
            high *= 2
        return bisect(within, 0.0, high)[1]

    def margins(self, interval: Interval, slope: float, days: float, confidence: float) -> Margins:
        """What the spread between days adds to the margins of an interval, as squares add up."""
        half = interval.width / 2
        noise = (half / float(special.ndtri((1 + confidence) / 2))) ** 2
        wider = self.half_width(noise, slope, days, confidence)
        more = float(np.sqrt(max(0.0, wider**2 - half**2)))
        return more, more


def mean_variance(grouped: GroupedRuns) -> float | None:
    """The variance of the mean over tasks, from how far it moves when one group is left out.

    With one run in every cell this is the variance of the group means over their number. None
    where leaving out a group leaves a task without a run.

    >>> import numpy as np
    >>> table = np.array([[1, 1, 0], [1, 0, 0.0]])
    >>> round(mean_variance(GroupedRuns.of_table(table)), 4)
    0.0833
    """
    left = grouped.runs.sum(axis=1)[:, None] - grouped.runs
    if (left < 1).any():
        return None
    return jackknife_variance(
        ((grouped.total.sum(axis=1)[:, None] - grouped.total) / left).mean(axis=0)
    )


def streak_variance(grouped: GroupedRuns, k: int) -> float | None:
    """The same for the mean pass^k of passes; None if too few runs are left for one."""
    left = grouped.runs.sum(axis=1)[:, None] - grouped.runs
    if (left < k).any():
        return None
    passes = (grouped.total.sum(axis=1)[:, None] - grouped.total).astype(np.int64)
    return jackknife_variance(share_of_passing_subsets(left, passes, k).mean(axis=0))


def widened(estimate: Estimate, variance: float, groups: int, note: str) -> Estimate:
    """An estimate for these tasks, its interval as wide as the spread between groups needs.

    Wilson's formula with as many runs as would give this variance, and t with groups - 1 degrees
    of freedom. `note` says what the groups are.
    """
    quantile = float(special.stdtrit(groups - 1, (1 + estimate.confidence) / 2))
    needed = _bounded_interval(estimate.value, variance, quantile)
    if estimate.interval is None or needed is None:
        return estimate
    return _noted(estimate, hull(estimate.interval, needed), note, f"{note}, t({groups - 1})")


def with_excess(estimate: Estimate, before: Estimate, after: Estimate, note: str) -> Estimate:
    """An estimate for similar tasks, given what was added to the one for these tasks.

    Each end moves out by the square root of the added squares, as independent errors add up
    (Zou and Donner 2008 recover variances from limits in this way).
    """
    new = after.interval
    if estimate.interval is None or new is None:
        return estimate
    outer = hull(wider_margins(estimate.interval, estimate.value, excess(before, after)), new)
    return _noted(estimate, Interval(max(0.0, outer.low), min(1.0, outer.high)), note)


def excess(before: Estimate, after: Estimate) -> Margins:
    """How much the two margins of an interval grew, as squares add up."""
    if before.interval is None or after.interval is None:
        return 0.0, 0.0
    value, old, new = before.value, before.interval, after.interval
    return (
        float(np.sqrt(max(0.0, (value - new.low) ** 2 - (value - old.low) ** 2))),
        float(np.sqrt(max(0.0, (new.high - value) ** 2 - (old.high - value) ** 2))),
    )


def wider_margins(interval: Interval, value: float, more: Margins) -> Interval:
    """An interval whose margins grew by independent errors of so much.

    No share, and no difference of shares, lies beyond -1 and 1.

    >>> wider_margins(Interval(0.2, 0.8), 0.5, (0.4, 0.0))
    Interval(low=0.0, high=0.8)
    >>> wider_margins(Interval(-0.95, -0.65), -0.8, (0.4, 0.0)).low
    -1.0
    """
    return Interval(*map(float, wider_bounds((interval.low, interval.high), value, more)))


def wider_bounds(bounds: Ends, value: Floats | float, more: Ends) -> tuple[Floats, Floats]:
    """The same for many intervals."""
    below, above = np.maximum(0.0, value - bounds[0]), np.maximum(0.0, bounds[1] - value)
    low, high = value - np.hypot(below, more[0]), value + np.hypot(above, more[1])
    return np.maximum(-1.0, low), np.minimum(1.0, high)


def larger_p(p: float, value: float, before: Interval, after: Interval, *, level: float) -> float:
    """The p-value when the arm towards 0 is longer: as many fewer standard errors away.

    It agrees with the interval: below the level until the arm reaches 0. An exact test may be fewer
    standard errors away than its interval; then each step counts as much less.
    """
    ends = ((interval.low, interval.high) for interval in (before, after))
    return float(larger_ps(p, value, *ends, level=level))


def larger_ps(
    p: Floats | float,
    value: Floats | float,
    before: Ends,
    after: Ends,
    *,
    level: float,
) -> Floats:
    """The same for many p-values."""
    old, new = (np.where(np.greater(value, 0), value - low, high - value)
                for low, high in (before, after))  # fmt: skip
    longer = np.greater(p, 0) & np.less(p, 1) & (old > 0) & (new > old)
    shown = longer & np.less(p, level) & (old < np.abs(value))
    old, new, far = (np.where(longer, arm, 1.0) for arm in (old, new, np.abs(value)))
    line, errors = -special.ndtri(level / 2), -special.ndtri(np.where(longer, p, level) / 2)
    weight = np.divide(np.log(errors / line), np.log(far / old), out=np.ones_like(old), where=shown)
    errors *= (old / np.where(shown, np.minimum(new, far), new)) ** weight
    errors *= np.where(shown, far / np.maximum(new, far), 1.0)
    p = np.where(longer, np.maximum(p, 2 * special.ndtr(-errors)), p)
    holds_zero = np.less_equal(after[0], 0) & np.greater_equal(after[1], 0)
    return np.where(holds_zero, np.maximum(p, level), p)


def stretched(estimate: Estimate, by: Margins, note: str) -> Estimate:
    """An estimate whose interval has margins so many times as long, cut off at 0 and 1."""
    if estimate.interval is None:
        return estimate
    low = estimate.value - by[0] * (estimate.value - estimate.interval.low)
    high = estimate.value + by[1] * (estimate.interval.high - estimate.value)
    return _noted(estimate, Interval(max(0.0, low), min(1.0, high)), note)


def margin_ratios(before: Estimate, after: Estimate) -> Margins:
    """How many times as long the two margins of an interval became."""
    if before.interval is None or after.interval is None:
        return 1.0, 1.0
    value = before.value
    pairs = (
        (value - before.interval.low, value - after.interval.low),
        (before.interval.high - value, after.interval.high - value),
    )
    low, high = (new / old if old > 0 else 1.0 for old, new in pairs)
    return low, high


def _noted(
    estimate: Estimate, interval: Interval, note: str, method: str | None = None
) -> Estimate:
    """The estimate with another interval, and a note that says why."""
    how = f"{estimate.method}; {method or note}"
    return replace(estimate, interval=interval, method=how, notes=(*estimate.notes, note))
