"""The difference of two systems on the same tasks, with a verdict and what would settle it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from passhat.errors import ArgumentError
from passhat.stats.arguments import (
    Floats,
    RandomSource,
    confidence_level,
    one_of,
    probability,
    random_generator,
    score_array,
)
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Interval, Scope, Unavailable
from passhat.stats.paired_exact import ExactP, divided_passes_test, sign_flip_test
from passhat.stats.task_sums import Mask, TaskSums

Answer = Literal["better", "worse", "equivalent", "undecided"]

SETTLING_POWER = 0.8

_FEW_TASKS = 5
_SAME = 1e-12
# With one run a task, the spread between tasks stands in for the spread within; below this many
# such tasks that is too noisy, and the largest variance a score in [0, 1] can have is taken.
_SPREAD_TASKS = 10
_LARGEST_VARIANCE = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    """What would settle an undecided comparison with `power`, if the difference stays as it is.

    `more_runs` counts further runs of both systems on the same tasks; `more_tasks` counts new
    tasks run like the present ones. None: no number of these would do, or it cannot be told.
    """

    more_runs: int | None
    more_tasks: int | None
    power: float = SETTLING_POWER


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """Mean of a minus mean of b over the same tasks, and whether a is better or worse.

    `p_value` is the larger of the interval's own and the exact test's: both must agree before
    a side is called better.
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
    seed: int | None = None
    notes: tuple[str, ...] = ()


def paired_difference(
    a: TaskSums | ArrayLike,
    b: TaskSums | ArrayLike,
    *,
    scope: Scope,
    confidence: float = 0.95,
    margin: float | None = None,
    rng: RandomSource = None,
) -> PairedDifference | Unavailable:
    """How much better system a is than system b on the tasks that both ran.

    `a` and `b` are aligned by task: TaskSums, or (in "tasks like these") one value a task such
    as its pass^k, with nan where a task has none. Tasks without a run on both sides are
    `excluded`, by position.

    >>> a = TaskSums.of_passes([5] * 8, [5, 5, 4, 5, 3, 5, 5, 4])
    >>> b = TaskSums.of_passes([5] * 8, [3, 4, 2, 4, 1, 4, 5, 1])
    >>> found = paired_difference(a, b, scope="tasks like these")
    >>> round(found.value, 3), found.answer, round(found.exact_p, 3)
    (0.3, 'better', 0.008)
    """
    one_of("scope", scope, (THIS_SUITE, TASKS_LIKE_THESE))
    confidence = confidence_level(confidence)
    margin = None if margin is None else probability("margin", margin, open_ends=True)
    pair = _aligned(a, b, scope)
    reason = _why_not(pair, scope)
    if reason:
        return Unavailable(reason)
    return _judged(pair, scope=scope, confidence=confidence, margin=margin, rng=rng)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """Both sides on their shared tasks; `sums` is None where only values were handed in."""

    means: tuple[Floats, Floats]
    sums: tuple[TaskSums, TaskSums] | None
    excluded: tuple[int, ...]

    @property
    def differences(self) -> Floats:
        return self.means[0] - self.means[1]

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
class _Fit:
    """A difference with its standard error; no spread at all is a case of its own."""

    value: float
    error: float
    freedom: float
    method: str
    tasks: int

    def interval(self, alpha: float) -> Interval:
        if self.error == 0:
            # Were tasks with another difference as common as 1 - q, T tasks without one would
            # be seen with chance q^T = alpha / 2; those tasks may differ by as much as 1.
            q = (alpha / 2) ** (1 / self.tasks)
            centre, half = q * self.value, 1 - q
        else:
            centre, half = self.value, self.quantile(1 - alpha / 2) * self.error
        return Interval(max(-1.0, centre - half), min(1.0, centre + half))

    def quantile(self, level: float) -> float:
        if np.isinf(self.freedom):
            return float(ndtri(level))
        return float(stdtrit(self.freedom, level))

    def p_value(self) -> float:
        if self.error == 0:
            return float(min(1.0, 2 * (1 + abs(self.value)) ** -float(self.tasks)))
        ratio = -abs(self.value) / self.error
        tail = ndtr(ratio) if np.isinf(self.freedom) else stdtr(self.freedom, ratio)
        return float(2 * tail)


def _aligned(a: TaskSums | ArrayLike, b: TaskSums | ArrayLike, scope: Scope) -> _Pair:
    if isinstance(a, TaskSums) != isinstance(b, TaskSums):
        came = (type(a).__name__, type(b).__name__)
        raise ArgumentError("a and b", "must both be TaskSums or both be values per task", came)
    if isinstance(a, TaskSums) and isinstance(b, TaskSums):
        _same_length(a.runs.size, b.runs.size)
        kept = (a.runs > 0) & (b.runs > 0)
        left, right = a.taken(kept), b.taken(kept)
        missing = tuple(np.flatnonzero(~kept).tolist())
        return _Pair(means=(left.means, right.means), sums=(left, right), excluded=missing)
    if scope == THIS_SUITE:
        rule = f'must be TaskSums for "{THIS_SUITE}": a value per task does not show its run noise'
        raise ArgumentError("a and b", rule, "values per task")
    one, other = _task_values("a", a), _task_values("b", b)
    _same_length(one.size, other.size)
    kept = np.isfinite(one) & np.isfinite(other)
    missing = tuple(np.flatnonzero(~kept).tolist())
    return _Pair(means=(one[kept], other[kept]), sums=None, excluded=missing)


def _task_values(name: str, values: ArrayLike | TaskSums) -> Floats:
    array = np.atleast_1d(np.asarray(values, dtype=float))
    if array.ndim > 1:
        raise ArgumentError(name, "must have one value per task (one dimension)", array.shape)
    score_array(name, array[~np.isnan(array)])
    return array


def _same_length(left: int, right: int) -> None:
    if left != right:
        raise ArgumentError("a and b", "must be aligned, an entry per task", (left, right))


def _why_not(pair: _Pair, scope: Scope) -> str | None:
    tasks = pair.differences.size
    if tasks == 0:
        return "no task was run by both systems"
    if tasks == 1 and scope == TASKS_LIKE_THESE:
        return 'one shared task says nothing about "tasks like these"; 2 are needed'
    return None


def _judged(
    pair: _Pair, *, scope: Scope, confidence: float, margin: float | None, rng: RandomSource
) -> PairedDifference:
    generator, seed = random_generator(rng)
    fit = _population_fit(pair) if scope == TASKS_LIKE_THESE else _suite_fit(pair)
    exact = _exact_test(pair, scope, generator)
    interval_p = fit.p_value()
    p = max(interval_p, exact.p_value) if exact else interval_p
    answer = _answer(fit, p, 1 - confidence, margin)
    undecided = answer == "undecided"
    return PairedDifference(
        value=fit.value,
        interval=fit.interval(1 - confidence),
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
        unpaired_error=_unpaired_error(pair) if scope == TASKS_LIKE_THESE else None,
        needed=_needed(pair, fit, scope, 1 - confidence, margin) if undecided else None,
        tasks=fit.tasks,
        runs=_run_counts(pair),
        excluded=pair.excluded,
        seed=seed if exact and exact.random else None,
        notes=_notes(pair, fit, p, 1 - confidence, answer),
    )


def _population_fit(pair: _Pair) -> _Fit:
    d = pair.differences
    constant = float(np.ptp(d)) < _SAME
    error = 0.0 if constant else float(d.std(ddof=1)) / d.size**0.5
    method = "identical differences, exact bound" if constant else "paired t over tasks"
    return _Fit(value=float(d.mean()), error=error, freedom=d.size - 1, method=method, tasks=d.size)


def _suite_fit(pair: _Pair) -> _Fit:
    """Only runs are random: the tasks' own run noise, plus one deviation not yet seen.

    The unbiased variances sum to 0 where every task is constant, which is luck as often as
    certainty; so one more run that differs from the rest is added to each side.
    """
    assert pair.sums is not None
    single = pair.single
    tasks = single.size
    variance = float(pair.run_noise[~single].sum())
    freedom, method = np.inf, "stratified by task, run noise"
    if single.any():
        variance += _single_run_variance(pair, single)
        method = "stratified by task, largest run noise"
        if single.sum() >= _SPREAD_TASKS:
            freedom, method = float(single.sum() - 1), "stratified by task, spread of single runs"
    unseen = sum(float(np.mean(1.0 / side.runs.astype(float) ** 2)) for side in pair.sums)
    return _Fit(
        value=float(pair.differences.mean()),
        error=(variance + unseen) ** 0.5 / tasks,
        freedom=freedom,
        method=method,
        tasks=tasks,
    )


def _single_run_variance(pair: _Pair, single: Mask) -> float:
    assert pair.sums is not None
    if single.sum() >= _SPREAD_TASKS:
        # In expectation this is the run noise plus the spread of the true differences: too wide.
        return float(pair.differences[single].var(ddof=1) * single.sum())
    left, right = (side.runs[single].astype(float) for side in pair.sums)
    return float((_LARGEST_VARIANCE * (1 / left + 1 / right)).sum())


def _exact_test(pair: _Pair, scope: Scope, rng: np.random.Generator) -> ExactP | None:
    if scope == TASKS_LIKE_THESE:
        return sign_flip_test(pair.differences, rng)
    assert pair.sums is not None
    left, right = pair.sums
    if not (left.binary and right.binary):
        return None
    passes = (left.total.astype(np.int64), right.total.astype(np.int64))
    return divided_passes_test(left.runs, passes[0], right.runs, passes[1])


def _answer(fit: _Fit, p: float, alpha: float, margin: float | None) -> Answer:
    # Two one-sided tests at alpha (Schuirmann, 1987): the 1 - 2 alpha interval inside the margin.
    if margin is not None:
        inner = fit.interval(2 * alpha)
        if -margin < inner.low and inner.high < margin:
            return "equivalent"
    interval = fit.interval(alpha)
    if p > alpha or 0 in interval:
        return "undecided"
    return "better" if fit.value > 0 else "worse"


def _unpaired_error(pair: _Pair) -> float:
    left, right = pair.means
    return float(np.sqrt((left.var(ddof=1) + right.var(ddof=1)) / left.size))


def _needed(
    pair: _Pair, fit: _Fit, scope: Scope, alpha: float, margin: float | None
) -> Needed | None:
    target = _target_error(fit, alpha, margin)
    if target <= 0 or fit.error == 0:
        return None
    growth = (fit.error / target) ** 2
    tasks = max(1, int(np.ceil((growth - 1) * fit.tasks)))
    if scope == THIS_SUITE:
        return Needed(more_runs=_more_runs(pair, growth), more_tasks=None)
    return Needed(more_runs=_population_runs(pair, fit, target), more_tasks=tasks)


def _target_error(fit: _Fit, alpha: float, margin: float | None) -> float:
    """The standard error that would settle it: away from 0, or inside the margin if nearer."""
    power = float(ndtri(SETTLING_POWER))
    target = abs(fit.value) / (fit.quantile(1 - alpha / 2) + power)
    if margin is not None:
        inside = (margin - abs(fit.value)) / (fit.quantile(1 - alpha) + power)
        target = max(target, inside)
    return target


def _population_runs(pair: _Pair, fit: _Fit, target: float) -> int | None:
    """Runs shrink only the noise within tasks; what tasks differ by stays."""
    if pair.sums is None or pair.single.any():
        return None
    noise = float(pair.run_noise.mean())
    between = max(0.0, fit.error**2 * fit.tasks - noise)
    room = target**2 * fit.tasks - between
    if room <= 0 or noise == 0:
        return None
    return _more_runs(pair, noise / room)


def _more_runs(pair: _Pair, growth: float) -> int:
    assert pair.sums is not None
    return sum(
        int(np.maximum(np.ceil(side.runs * growth) - side.runs, 1).sum()) for side in pair.sums
    )


def _run_counts(pair: _Pair) -> tuple[int, int] | None:
    if pair.sums is None:
        return None
    return int(pair.sums[0].runs.sum()), int(pair.sums[1].runs.sum())


def _notes(pair: _Pair, fit: _Fit, p: float, alpha: float, answer: Answer) -> tuple[str, ...]:
    notes = []
    if pair.excluded:
        notes.append(f"{len(pair.excluded)} tasks were not run by both systems and are left out")
    if fit.tasks < _FEW_TASKS:
        notes.append(f"only {fit.tasks} shared tasks")
    if answer == "undecided" and 0 not in fit.interval(alpha):
        notes.append(f"the interval leaves out 0, but the exact test does not (p = {p:.3g})")
    if answer == "equivalent" and 0 not in fit.interval(alpha):
        notes.append("the difference is real, and smaller than the margin")
    if answer == "undecided" and fit.value == 0:
        notes.append("no difference was seen: to show equivalence, state a margin")
    return tuple(notes)
