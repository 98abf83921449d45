"""Which tasks two systems differ on: an exact test a task, corrected for testing many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from passhat.defaults import CONFIDENCE
from passhat.errors import ArgumentError
from passhat.messages import repr_fields
from passhat.stats.arguments import (
    Counts,
    Floats,
    confidence_level,
    one_of,
    trial_counts,
    whole_number,
)
from passhat.stats.boschloo import boschloo_greater
from passhat.stats.multiplicity import benjamini_hochberg, holm
from passhat.stats.proportions import proportion_bounds
from passhat.stats.special import xlogy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from passhat.stats.task_sums import Mask

Alternative = Literal["two-sided", "less", "greater"]
Correction = Literal["holm", "benjamini-hochberg"]
TaskAnswer = Literal["better", "worse", "no difference shown", "unevaluable"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskTests:
    """An answer per task: where a is better or worse than b, and where too few runs can tell.

    `low` and `high` are Newcombe's hybrid-score interval of each difference, uncorrected.
    `minimum_runs` of each system on each task would make every task evaluable in a family of
    this size. An unevaluable task is no part of the family: its `adjusted` p is 1.
    """

    value: Floats
    low: Floats
    high: Floats
    p_values: Floats
    adjusted: Floats
    answers: tuple[TaskAnswer, ...]
    evaluable: Mask
    minimum_runs: int
    method: str
    alternative: Alternative
    correction: Correction
    confidence: float
    tasks: int
    runs: tuple[int, int]

    __repr__ = repr_fields


def task_tests(
    n_a: ArrayLike,
    c_a: ArrayLike,
    n_b: ArrayLike,
    c_b: ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    correction: Correction = "holm",
    confidence: float = CONFIDENCE,
) -> TaskTests:
    """Boschloo's exact test of a against b on every task, aligned by position.

    Holm for gates (no false alarm on any task), Benjamini-Hochberg for screening. "less" asks
    only where a is worse than b.

    >>> found = task_tests([8, 8, 2], [8, 5, 2], [8, 8, 2], [1, 5, 0])
    >>> found.answers
    ('better', 'no difference shown', 'unevaluable')
    >>> found.minimum_runs
    4
    """
    one_of("alternative", alternative, ("two-sided", "less", "greater"))
    one_of("correction", correction, ("holm", "benjamini-hochberg"))
    alpha = 1 - confidence_level(confidence)
    sides = _aligned(n_a, c_a, n_b, c_b)
    value, low, high = _differences(*sides, confidence)
    p = _boschloo(*sides, alternative)
    reachable = _smallest_p(sides[0], sides[2], alternative)
    evaluable = reachable <= _entry_level(reachable, alpha, correction)
    adjusted = np.ones(p.size)
    adjusted[evaluable] = _CORRECTIONS[correction](p[evaluable])
    return TaskTests(
        value=value,
        low=low,
        high=high,
        p_values=p,
        adjusted=adjusted,
        answers=_answers(value, adjusted, evaluable, alpha),
        evaluable=evaluable,
        minimum_runs=minimum_runs(p.size, alternative=alternative, confidence=confidence),
        method=f"Boschloo, {correction}",
        alternative=alternative,
        correction=correction,
        confidence=confidence,
        tasks=p.size,
        runs=(int(sides[0].sum()), int(sides[2].sum())),
    )


def minimum_runs(
    tasks: int, *, alternative: Alternative = "two-sided", confidence: float = CONFIDENCE
) -> int:
    """The runs of each system on a task below which no outcome is significant among `tasks`.

    >>> minimum_runs(1), minimum_runs(100)
    (3, 6)
    """
    level = (1 - confidence_level(confidence)) / max(whole_number("tasks", tasks, least=0), 1)
    runs = 1
    while _smallest_p(np.array(runs), np.array(runs), alternative) > level:
        runs += 1
    return runs


_CORRECTIONS = {"holm": holm, "benjamini-hochberg": benjamini_hochberg}


def _aligned(
    n_a: ArrayLike, c_a: ArrayLike, n_b: ArrayLike, c_b: ArrayLike
) -> tuple[Counts, Counts, Counts, Counts]:
    left, right = trial_counts(n_a, c_a), trial_counts(n_b, c_b)
    arrays = tuple(np.atleast_1d(x) for x in (*left, *right))
    if arrays[0].shape != arrays[2].shape or arrays[0].ndim != 1:
        shapes = (arrays[0].shape, arrays[2].shape)
        raise ArgumentError("n_a and n_b", "must be aligned, an entry per task", shapes)
    return arrays[0], arrays[1], arrays[2], arrays[3]


def _differences(
    n_a: Counts, c_a: Counts, n_b: Counts, c_b: Counts, confidence: float
) -> tuple[Floats, Floats, Floats]:
    """Differences of pass rates with Newcombe's (1998) method 10."""
    a, b = c_a / np.maximum(n_a, 1), c_b / np.maximum(n_b, 1)
    low_a, high_a = proportion_bounds(c_a, n_a, confidence=confidence)
    low_b, high_b = proportion_bounds(c_b, n_b, confidence=confidence)
    value = a - b
    low = value - np.hypot(a - low_a, high_b - b)
    high = value + np.hypot(high_a - a, b - low_b)
    seen = (n_a > 0) & (n_b > 0)
    return np.where(seen, value, 0.0), np.where(seen, low, -1.0), np.where(seen, high, 1.0)


def _boschloo(
    n_a: Counts, c_a: Counts, n_b: Counts, c_b: Counts, alternative: Alternative
) -> Floats:
    if alternative == "greater":
        return boschloo_greater(n_a, c_a, n_b, c_b)
    if alternative == "less":
        return boschloo_greater(n_b, c_b, n_a, c_a)
    greater, less = boschloo_greater(n_a, c_a, n_b, c_b), boschloo_greater(n_b, c_b, n_a, c_a)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(greater, less)))


def _smallest_p(n_a: Counts, n_b: Counts, alternative: Alternative) -> Floats:
    """Boschloo's p of all passes against none, known before any run.

    That table is a critical region on its own: its chance pi^n_a (1 - pi)^n_b is largest at
    pi = n_a / (n_a + n_b).
    """
    total = np.maximum(n_a + n_b, 1)
    one_sided = np.exp(xlogy(n_a, n_a / total) + xlogy(n_b, n_b / total))
    sides = 2 if alternative == "two-sided" else 1
    return np.asarray(np.minimum(1.0, sides * one_sided))


def _entry_level(reachable: Floats, alpha: float, correction: Correction) -> float:
    """What a task's smallest possible p must not exceed for the task to join the family.

    Whether a task joins depends on its runs alone, never on outcomes, so leaving out those that
    could not be rejected anyway keeps the error rate and spares the rest: Tarone (1990).
    """
    if correction == "benjamini-hochberg":
        return alpha
    sizes = np.arange(1, reachable.size + 2)
    joined = np.searchsorted(np.sort(reachable), alpha / sizes, side="right")
    return float(alpha / sizes[np.argmax(joined <= sizes)])


def _answers(
    value: Floats, adjusted: Floats, evaluable: Mask, alpha: float
) -> tuple[TaskAnswer, ...]:
    words: list[TaskAnswer] = []
    for difference, p, told in zip(value, adjusted, evaluable, strict=True):
        if not told:
            words.append("unevaluable")
        elif p > alpha:
            words.append("no difference shown")
        else:
            words.append("better" if difference > 0 else "worse")
    return tuple(words)
