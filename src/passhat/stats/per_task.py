"""Which tasks two systems differ on: an exact test for each task, corrected for testing many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from passhat.arguments import CONFIDENCE, whole_number
from passhat.dataclass import dataclass, short_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import (
    Counts,
    Floats,
    RandomSource,
    confidence_level,
    one_of,
    random_generator,
    score_array,
    trial_counts,
)
from passhat.stats.exact_tests import boschloo_greater
from passhat.stats.hypergeometric import log_choose
from passhat.stats.multiplicity import discrete_benjamini_hochberg, discrete_holm
from passhat.stats.null_laws import Alternative, NullLaws, pass_tests, score_tests
from passhat.stats.proportions import proportion_bounds
from passhat.stats.special import stdtrit, xlogy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from passhat.stats.task_sums import Mask

Correction = Literal["holm", "benjamini-hochberg"]
TaskAnswer = Literal["better", "worse", "no difference shown", "unevaluable"]
ScoreTest = Literal["permutation", "wilcoxon"]


@short_dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TaskTests:
    """An answer per task: where a is better or worse than b, and where too few runs can tell.

    `low` and `high` are Newcombe's hybrid-score interval of each difference, uncorrected; of
    scores, Student's. `adjusted` are the p-values of the whole family under `correction`,
    `screening` those under Benjamini-Hochberg. Below `minimum_runs` of each system no outcome
    would be significant. The p-values of an unevaluable task in the family are 1.
    """

    value: Floats
    low: Floats
    high: Floats
    p_values: Floats
    adjusted: Floats
    screening: Floats
    answers: tuple[TaskAnswer, ...]
    evaluable: Mask
    minimum_runs: int
    method: str
    alternative: Alternative
    correction: Correction
    confidence: float
    tasks: int
    runs: tuple[int, int]


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
    """An exact test of a against b on every task, aligned by position.

    Fisher's conditional test, its p-values corrected with the laws they have if nothing changed: a
    task that always passes, or always fails, costs the others nothing. A single task gets
    Boschloo's test, which alone is more powerful. Holm for gates (no false alarm on any task),
    Benjamini-Hochberg for screening. "less" tests only whether a is worse than b.

    >>> found = task_tests([8, 8, 2], [8, 5, 2], [8, 8, 2], [1, 5, 0])
    >>> found.answers
    ('better', 'no difference shown', 'unevaluable')
    >>> found.minimum_runs
    4
    """
    sides = _aligned(n_a, c_a, n_b, c_b)
    asked = _asked(alternative, correction, confidence)
    value, low, high = _differences(*sides, confidence)
    if sides[0].size == 1:
        p, method = _boschloo(*sides, alternative), "Boschloo"
        laws = NullLaws(np.zeros(1, dtype=np.int64), (None,))
    else:
        (p, laws), method = pass_tests(*sides, alternative), "Fisher exact"
    return _answered(asked, sides[0], sides[2], (value, low, high), p, laws, method)


def score_task_tests(
    a: Sequence[ArrayLike],
    b: Sequence[ArrayLike],
    *,
    test: ScoreTest = "permutation",
    alternative: Alternative = "two-sided",
    correction: Correction = "holm",
    confidence: float = CONFIDENCE,
    rng: RandomSource = None,
) -> TaskTests:
    """A permutation test of the scores of every task, all runs of a against all of b.

    Exact where all divisions of the runs can be enumerated (up to 8 against 8), drawn beyond.
    `test="wilcoxon"` compares ranks (the Wilcoxon-Mann-Whitney test) in place of means.

    >>> found = score_task_tests([[0.9] * 6, [0.5] * 6], [[0.2] * 6, [0.5] * 6])
    >>> found.answers
    ('better', 'no difference shown')
    """
    one_of("test", test, ("permutation", "wilcoxon"))
    asked = _asked(alternative, correction, confidence)
    left = [score_array("a", scores).ravel() for scores in a]
    right = [score_array("b", scores).ravel() for scores in b]
    if len(left) != len(right):
        sizes = (len(left), len(right))
        raise ArgumentError("a and b", "must be aligned, an entry per task", sizes)
    generator, _ = random_generator(rng)
    p, laws = score_tests(left, right, alternative, ranks=test == "wilcoxon", rng=generator)
    n_a, n_b = (np.array([len(x) for x in side], dtype=np.int64) for side in (left, right))
    seen = np.minimum(n_a, n_b) > 0
    gaps = [
        _score_gap(x, y, asked.confidence) if ok else (0.0, -1.0, 1.0)
        for x, y, ok in zip(left, right, seen, strict=True)
    ]
    value, low, high = np.array(gaps).reshape(-1, 3).T
    named = "permutation of scores" if test == "permutation" else "Wilcoxon rank-sum"
    return _answered(asked, n_a, n_b, (value, low, high), p, laws, named)


def minimum_runs(
    tasks: int, *, alternative: Alternative = "two-sided", confidence: float = CONFIDENCE
) -> int:
    """The runs of each system on a task below which no outcome is significant among `tasks`.

    >>> minimum_runs(1), minimum_runs(100)
    (3, 4)
    """
    level = 1 - confidence_level(confidence)
    alone = whole_number("tasks", tasks, least=0) <= 1
    runs = 1
    while _smallest_p(np.array(runs), np.array(runs), alternative, alone=alone) > level:
        runs += 1
    return runs


@dataclass(frozen=True, slots=True)
class _Asked:
    """The direction of the tests, their correction and the confidence."""

    alternative: Alternative
    correction: Correction
    confidence: float


def _asked(alternative: Alternative, correction: Correction, confidence: float) -> _Asked:
    one_of("alternative", alternative, ("two-sided", "less", "greater"))
    one_of("correction", correction, ("holm", "benjamini-hochberg"))
    return _Asked(alternative, correction, confidence_level(confidence))


def _answered(
    asked: _Asked,
    n_a: Counts,
    n_b: Counts,
    differences: tuple[Floats, Floats, Floats],
    p: Floats,
    laws: NullLaws,
    method: str,
) -> TaskTests:
    alpha = 1 - asked.confidence
    reachable = _smallest_p(n_a, n_b, asked.alternative, alone=method == "Boschloo")
    evaluable = reachable <= alpha * (1 + 1e-9)
    strict = np.where(evaluable, discrete_holm(p, laws), 1.0)
    screening = np.where(evaluable, discrete_benjamini_hochberg(p, laws), 1.0)
    adjusted = strict if asked.correction == "holm" else screening
    return TaskTests(
        value=differences[0],
        low=differences[1],
        high=differences[2],
        p_values=p,
        adjusted=adjusted,
        screening=screening,
        answers=_answers(differences[0], adjusted, evaluable, alpha),
        evaluable=evaluable,
        minimum_runs=minimum_runs(
            p.size, alternative=asked.alternative, confidence=asked.confidence
        ),
        method=f"{method}, {asked.correction}" + (", discrete" if p.size > 1 else ""),
        alternative=asked.alternative,
        correction=asked.correction,
        confidence=asked.confidence,
        tasks=p.size,
        runs=(int(n_a.sum()), int(n_b.sum())),
    )


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


def _score_gap(a: Floats, b: Floats, confidence: float) -> tuple[float, float, float]:
    """The difference of two mean scores with Student's interval; [-1, 1] if nothing varies."""
    value = float(a.mean() - b.mean())
    freedom = a.size + b.size - 2
    squares = float(((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum())
    if freedom < 1 or squares <= 0:
        return value, -1.0, 1.0
    error = np.sqrt(squares / freedom * (1 / a.size + 1 / b.size))
    half = float(stdtrit(freedom, (1 + confidence) / 2) * error)
    return value, max(-1.0, value - half), min(1.0, value + half)


def _boschloo(
    n_a: Counts, c_a: Counts, n_b: Counts, c_b: Counts, alternative: Alternative
) -> Floats:
    if alternative == "greater":
        return boschloo_greater(n_a, c_a, n_b, c_b)
    if alternative == "less":
        return boschloo_greater(n_b, c_b, n_a, c_a)
    greater, less = boschloo_greater(n_a, c_a, n_b, c_b), boschloo_greater(n_b, c_b, n_a, c_a)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(greater, less)))


def _smallest_p(n_a: Counts, n_b: Counts, alternative: Alternative, *, alone: bool) -> Floats:
    """The p of all passes against none: no outcome of so many runs has a smaller one.

    Fisher's is one division of the runs out of all (two if they are as many, and both ways
    count); Boschloo's region holds that table alone, and its chance pi^n_a (1 - pi)^n_b is largest
    at pi = n_a / (n_a + n_b).
    """
    total = np.maximum(n_a + n_b, 1)
    if alone:
        one_sided = np.exp(xlogy(n_a, n_a / total) + xlogy(n_b, n_b / total))
        both = np.full(np.shape(n_a), 2)
    else:
        one_sided = np.exp(-log_choose(total, n_a))
        both = np.where(n_a == n_b, 2, 1)
    sides = both if alternative == "two-sided" else 1
    found = np.minimum(1.0, sides * one_sided)
    return np.where((n_a > 0) & (n_b > 0), found, 1.0)


def _answers(
    value: Floats, adjusted: Floats, evaluable: Mask, alpha: float
) -> tuple[TaskAnswer, ...]:
    direction = np.where(value > 0, "better", "worse")
    found = np.where(adjusted > alpha, "no difference shown", direction)
    return tuple(np.where(evaluable, found, "unevaluable").tolist())
