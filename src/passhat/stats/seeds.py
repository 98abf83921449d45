"""How much a whole suite moves from seed to seed: variance between seeds, batches or days."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE
from passhat.dataclass import dataclass, short_dataclass
from passhat.errors import ArgumentError
from passhat.stats import special
from passhat.stats.arguments import Counts, Floats, confidence_level, one_of, score_array
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Scope,
    Unavailable,
)
from passhat.stats.proportions import wilson_bounds

# The variance between fewer seeds has an interval too wide to be useful.
FEWEST_SEEDS = 5

# A design whose equations are worse conditioned than this cannot tell seeds from tasks.
_WORST_CONDITION = 1e10


@short_dataclass(frozen=True, slots=True, kw_only=True)
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
    rows = _crossed(seed, task, score)
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


def _crossed(seed: ArrayLike, task: ArrayLike, score: ArrayLike) -> _Crossed:
    scores = score_array("score", score).ravel()
    seeds, seed_codes = np.unique(np.asarray(seed).ravel(), return_inverse=True)
    tasks, task_codes = np.unique(np.asarray(task).ravel(), return_inverse=True)
    if not seed_codes.size == task_codes.size == scores.size:
        sizes = (seed_codes.size, task_codes.size, scores.size)
        raise ArgumentError("seed, task and score", "must have one entry per run", sizes)
    if scores.size == 0:
        raise ArgumentError("score", "must hold at least one run", 0)
    return _Crossed(
        seed=seed_codes, task=task_codes, score=scores, seeds=seeds.size, tasks=tasks.size
    )


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
    freedom, rest = rows.seeds - 1, _left_over(rows)
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


def _left_over(rows: _Crossed) -> int:
    """The degrees of freedom that tasks and seeds leave to runs."""
    return max(1, rows.score.size - rows.tasks - rows.seeds + 1)


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
    freedom = rows.tasks - 1 if scope == TASKS_LIKE_THESE else _left_over(rows)
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
