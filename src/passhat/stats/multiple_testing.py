"""Which tasks two systems differ on: an exact test for each task, corrected for testing many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from passhat.arguments import CONFIDENCE, confidence_level, renamed_arguments, whole_number
from passhat.dataclass import dataclass, result_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import (
    Counts,
    Floats,
    RandomSource,
    one_of,
    random_generator,
    score_array,
    trial_counts,
)
from passhat.stats.exact_tests import (
    Alternative,
    NullDistributions,
    boschloo_greater,
    pass_tests,
    score_tests,
)
from passhat.stats.numerics import find_root, log_choose
from passhat.stats.proportions import proportion_bounds
from passhat.stats.special import ndtr, ndtri, stdtrit, xlogy

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import ArrayLike

    from passhat.stats.sufficient_statistics import Mask

Correction = Literal["holm", "benjamini-hochberg"]
TaskAnswer = Literal["better", "worse", "no difference shown", "unevaluable"]
ScoreTest = Literal["permutation", "wilcoxon"]


@result_dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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

    Fisher's conditional test, its p-values corrected with the distributions they have if nothing
    changed: a task that always passes, or always fails, costs the others nothing. A single task
    gets Boschloo's test, which alone is more powerful. Holm for gates (no false alarm on any task),
    Benjamini-Hochberg for screening. "less" tests only whether a is worse than b.

    >>> tests = task_tests([8, 8, 2], [8, 5, 2], [8, 8, 2], [1, 5, 0])
    >>> tests.answers
    ('better', 'no difference shown', 'unevaluable')
    >>> tests.minimum_runs
    4
    """
    left, right = trial_counts(n_a, c_a), trial_counts(n_b, c_b)
    arrays = tuple(np.atleast_1d(x) for x in (*left, *right))
    if arrays[0].shape != arrays[2].shape or arrays[0].ndim != 1:
        shapes = (arrays[0].shape, arrays[2].shape)
        raise ArgumentError("n_a and n_b", "must be aligned, an entry per task", shapes)
    sides = arrays[0], arrays[1], arrays[2], arrays[3]
    asked = _asked(alternative, correction, confidence)
    value, low, high = _differences(*sides, confidence)
    if sides[0].size == 1:
        p, method = _boschloo(*sides, alternative), "Boschloo"
        nulls = NullDistributions(np.zeros(1, dtype=np.int64), (None,))
    else:
        (p, nulls), method = pass_tests(*sides, alternative), "Fisher exact"
    return _answered(asked, sides[0], sides[2], (value, low, high), p, nulls, method)


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

    >>> tests = score_task_tests([[0.9] * 6, [0.5] * 6], [[0.2] * 6, [0.5] * 6])
    >>> tests.answers
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
    p, nulls = score_tests(left, right, alternative, ranks=test == "wilcoxon", rng=generator)
    n_a, n_b = (np.array([len(x) for x in side], dtype=np.int64) for side in (left, right))
    seen = np.minimum(n_a, n_b) > 0
    gaps = [
        _score_gap(x, y, asked.confidence) if ok else (0.0, -1.0, 1.0)
        for x, y, ok in zip(left, right, seen, strict=True)
    ]
    value, low, high = np.array(gaps).reshape(-1, 3).T
    named = "permutation of scores" if test == "permutation" else "Wilcoxon rank-sum"
    return _answered(asked, n_a, n_b, (value, low, high), p, nulls, named)


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
    nulls: NullDistributions,
    method: str,
) -> TaskTests:
    alpha = 1 - asked.confidence
    reachable = _smallest_p(n_a, n_b, asked.alternative, alone=method == "Boschloo")
    evaluable = reachable <= alpha * (1 + 1e-9)
    strict = np.where(evaluable, discrete_holm(p, nulls), 1.0)
    screening = np.where(evaluable, discrete_benjamini_hochberg(p, nulls), 1.0)
    adjusted = strict if asked.correction == "holm" else screening
    direction = np.where(differences[0] > 0, "better", "worse")
    answers = np.where(adjusted > alpha, "no difference shown", direction)
    return TaskTests(
        value=differences[0],
        low=differences[1],
        high=differences[2],
        p_values=p,
        adjusted=adjusted,
        screening=screening,
        answers=tuple(np.where(evaluable, answers, "unevaluable").tolist()),
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
    # One variance for both sides: a side of two runs hardly shows its own.
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
    least = np.minimum(1.0, sides * one_sided)
    return np.where((n_a > 0) & (n_b > 0), least, 1.0)


# Many tests at once: p-values adjusted so that the family's error rate is the stated one.

# Statistics that should be equal differ by rounding, and a tie counts as at least as extreme.
_TIE = 1e-9

# For the range of normal values (scipy.stats.studentized_range has it, but takes a second to load):
# beyond eight standard deviations there is nothing to sum, and steps of a tenth are exact to the
# last digit (the trapezoid rule on a smooth bell).
_NODE_STEP = 0.1
_NODES = np.arange(-8, 8.05, _NODE_STEP)
_LEAST_P, _FAR_OUT = 1e-300, 1e-9
# So many p-values at a time: a table of the nodes of each then fits into a processor's cache.
_BLOCK = 1024


def holm(p: ArrayLike) -> Floats:
    """P-values adjusted so that rejecting below alpha errs anywhere with probability alpha.

    Holm (1979). Valid under any dependence: the correction for gates.

    >>> holm([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")
    factors = np.arange(values.size, 0, -1)
    stepped = np.maximum.accumulate(values[order] * factors)
    return _restored(stepped, order)


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """P-values adjusted so that, of what is rejected below alpha, a share alpha is false.

    Benjamini and Hochberg (1995): the correction for screening, where a false lead costs little.

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.04, 0.04]
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")[::-1]
    factors = values.size / np.arange(values.size, 0, -1)
    stepped = np.minimum.accumulate(values[order] * factors)
    return _restored(stepped, order)


def tukey(p: ArrayLike, systems: int) -> Floats:
    """P-values of all pairs among so many systems, adjusted so that all hold at once.

    The chance that the widest of all pairs is as extreme: the range of independent normal values
    (Tukey 1953), which unequal variances do not make larger (Hayter 1984). Each adjusted p-value
    depends on its own pair alone, unlike one that is stepped down.

    >>> tukey([0.02], 2).round(6).tolist(), tukey([0.02], 3).round(3).tolist()
    ([0.02], [0.052])
    """
    values = _p_values(p)
    pairs = systems * (systems - 1) / 2
    tail = _range_tails(values, systems)
    # Far out the pairs exclude one another, and 1 - inside has no digits left.
    return np.minimum(np.where(values * pairs < _FAR_OUT, values * pairs, tail), 1.0)


def tukey_level(alpha: float, systems: int) -> float:
    """The p-value of a pair whose `tukey` adjustment is alpha.

    >>> round(tukey_level(0.05, 6), 5)  # Bonferroni: 0.00333
    0.00438
    """

    def below(log: Floats) -> Floats:
        return alpha - tukey(np.exp(log), systems)

    bonferroni = alpha / (systems * (systems - 1) / 2)
    low, high = np.log([bonferroni / 2]), np.log([alpha])
    return alpha if systems == 2 else float(np.exp(find_root(below, low, high))[0])


@renamed_arguments(laws="distributions")
def discrete_holm(p: ArrayLike, distributions: NullDistributions) -> Floats:
    """Like `holm`, if it is known which p-values each test can take.

    A test that cannot reach a p-value costs nothing at it: Westfall and Wolfinger (1997), stepped
    down. Valid under any dependence.

    >>> import numpy as np
    >>> from passhat.stats.exact_tests import NullDistributions
    >>> attainable = (np.array([0.02, 1.0]), np.array([1.0]))
    >>> null = NullDistributions(kind=np.array([0, 1]), attainable=attainable)
    >>> discrete_holm([0.02, 1.0], null).tolist()
    [0.02, 1.0]
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")
    ordered, kinds = values[order], distributions.kind[order]
    reached = np.zeros(values.size)
    for kind in set(kinds.tolist()):
        left = np.cumsum((kinds == kind)[::-1])[::-1]  # not yet rejected, this one included
        reached += left * distributions.chance(kind, ordered)
    return _restored(np.maximum.accumulate(reached), order)


@renamed_arguments(laws="distributions")
def discrete_benjamini_hochberg(p: ArrayLike, distributions: NullDistributions) -> Floats:
    """Like `benjamini_hochberg`, if it is known which p-values each test can take.

    Heyse (2011) uses the sum of the tests' distributions in place of their number. Doehler, Durand
    and Roquain (2018) prove the bound for distributions divided by 1 - F, which at small p is
    nearly the same and finds less; for the plain sum the false share is simulated (at most 0.04 at
    0.05).

    >>> import numpy as np
    >>> from passhat.stats.exact_tests import NullDistributions
    >>> attainable = (np.array([0.02, 1.0]), np.array([1.0]))
    >>> null = NullDistributions(kind=np.array([0, 1]), attainable=attainable)
    >>> discrete_benjamini_hochberg([0.02, 1.0], null).tolist()
    [0.02, 1.0]
    """
    values = _p_values(p)
    order = np.argsort(values, kind="stable")[::-1]
    ordered, reached = values[order], np.zeros(values.size)
    for kind, size in zip(*np.unique(distributions.kind, return_counts=True), strict=True):
        reached += size * distributions.chance(kind, ordered)
    shares = reached / np.arange(values.size, 0, -1)
    return np.maximum(_restored(np.minimum.accumulate(shares), order), values)


def shuffled_in_strata(
    labels: NDArray[np.bool_], strata: Counts, *, shuffles: int, rng: Generator
) -> NDArray[np.bool_]:
    """The labels as they are, in the first row, then shuffled inside their strata, row by row.

    Each stratum is a block of consecutive labels.

    >>> rng = np.random.default_rng(0)
    >>> rows = shuffled_in_strata(np.array([1, 0, 1, 1], bool), np.array([0, 0, 1, 1]),
    ...                           shuffles=5, rng=rng)
    >>> rows.shape, rows[:, :2].sum(axis=1).tolist()
    ((6, 4), [1, 1, 1, 1, 1, 1])
    """
    rows = np.empty((shuffles + 1, labels.size), dtype=bool)
    rows[0] = labels
    bounds = np.flatnonzero(np.r_[True, np.diff(strata) != 0, True])
    whole = labels.astype(np.int64)  # permuted moves whole words in half the time of single bytes
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        block = np.broadcast_to(whole[start:end], (shuffles, end - start))
        rows[1:, start:end] = rng.permuted(block, axis=1)
    return rows


def standardised(statistics: Floats) -> Floats:
    """Statistics in units of their spread over all rows, the observed row among them.

    Without the observed row, an extreme value would be measured by a spread that does not include
    it, and false positives would exceed their level. A statistic that never varies becomes 0.
    """
    centred = statistics - statistics.mean(axis=0)
    spread = np.sqrt(np.mean(centred**2, axis=0))
    return np.where(spread > _TIE, centred / np.where(spread > _TIE, spread, 1.0), 0.0)


def step_down_p(statistics: Floats) -> Floats:
    """P-values of the first row, adjusted so that any false rejection has probability alpha.

    Rows are the observed statistics and those of shuffled outcomes, columns are hypotheses, and
    larger is more extreme: Westfall and Young (1993), algorithms 2.8 and 4.1 (free step-down
    maxT; pass negative p-values for minP). The shuffles keep how the tests depend on one another,
    which makes it more powerful than Holm.

    >>> step_down_p(np.array([[3.0, 0.5], [1.0, 0.7], [0.2, 0.1], [0.3, 0.4]])).tolist()
    [0.25, 0.5]
    """
    observed = statistics[0]
    order = np.argsort(-observed, kind="stable")
    # The most extreme of each hypothesis and all that were less extreme than it as observed.
    most = np.maximum.accumulate(statistics[:, order[::-1]], axis=1)[:, ::-1]
    reached = (most >= observed[order] - _TIE).mean(axis=0)
    adjusted = np.empty(observed.size)
    adjusted[order] = np.maximum.accumulate(reached)
    return adjusted


def _range_tails(p: Floats, systems: int) -> Floats:
    """The chance that the range of so many normal values exceeds the gap of a pair with this p.

    Pairs of many systems often have the same p, as few tasks allow only so many: each distinct one
    is computed once.
    """
    if p.size > _BLOCK:
        distinct, places = np.unique(p, return_inverse=True)
        blocks = [distinct[i : i + _BLOCK] for i in range(0, distinct.size, _BLOCK)]
        return np.concatenate([_range_tails(block, systems) for block in blocks])[places]
    gap = -np.sqrt(2) * ndtri(np.maximum(p, _LEAST_P) / 2)
    # P(range < q) = S * integral of phi(z) (Phi(z) - Phi(z - q))^(S - 1)
    inside = (ndtr(_NODES) - ndtr(_NODES - gap[..., None])) ** (systems - 1)
    bell = np.exp(-(_NODES**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(1 - systems * _NODE_STEP * (inside @ bell))


def _p_values(p: ArrayLike) -> Floats:
    values = score_array("p", p)
    if values.ndim != 1:
        raise ArgumentError("p", "must be a flat list of p-values", f"{values.ndim} dimensions")
    return values


def _restored(stepped: Floats, order: np.ndarray) -> Floats:
    adjusted = np.empty_like(stepped)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
