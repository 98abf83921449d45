"""How reliability decays when more runs in a row must pass: the curve pass^1 .. pass^K."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from passhat.errors import ArgumentError
from passhat.stats.arguments import (
    Counts,
    Floats,
    RandomSource,
    confidence_level,
    one_of,
    random_generator,
    whole_number,
)
from passhat.stats.betabinomial import fit_cells
from passhat.stats.cells import Cells, count_cells, task_counts
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Scope,
    Unavailable,
)
from passhat.stats.passk import pass_hat_k, share_of_passing_subsets
from passhat.stats.proportions import proportion_interval
from passhat.stats.suite_mean import suite_estimate

# A curve is read by eye: beyond ten runs in a row it is asked for by name.
LONGEST_DEFAULT = 10

_DRAWS = 20_000

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceDecay:
    """What mcptest's documentation says of one task's runs, in the order they were made.

    Whole percentages, rounded down. `curve` is (passes so far / runs so far)^(runs so far);
    `graceful_degradation` the share of passes where run i weighs i; `variance_amplification` the
    variance of the later half against that of the earlier; `flips` the share of neighbours that
    differ (the documentation's P F P F = 100 fits both readings of amplification).

    All of them depend on the order of the runs. Where runs are exchangeable, so that nothing but
    chance tells the third from the seventh, the order says nothing, amplification is noise, and
    `DecayCurve` is what to read.
    """

    curve: tuple[int, ...]
    variance_amplification: int | Unavailable
    graceful_degradation: int
    flips: int | Unavailable
    runs: int
    passes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayCurve:
    """pass^1 .. pass^K, unbiased, with a band that holds the whole curve at once."""

    points: tuple[Estimate, ...]
    method: str
    confidence: float
    pointwise_confidence: float
    scope: Scope
    tasks: int
    runs: int
    excluded_tasks: int
    seed: int | None

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(point.value for point in self.points)

    @property
    def band(self) -> tuple[Interval | None, ...]:
        return tuple(point.interval for point in self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecaySummary:
    """The order-dependent description of every sequence, and the order-free curve over all."""

    sequences: tuple[SequenceDecay, ...]
    curve: DecayCurve | Unavailable


def decay_summary(
    outcomes: Sequence[bool] | Sequence[Sequence[bool]],
    *,
    k: int | None = None,
    scope: Scope = TASKS_LIKE_THESE,
    confidence: float = 0.95,
    rng: RandomSource = None,
) -> DecaySummary:
    """Describe the runs of one task, or of several, in the order they were made.

    >>> summary = decay_summary([True, True, True, False])
    >>> summary.sequences[0].curve, summary.sequences[0].graceful_degradation
    ((100, 100, 100, 31), 60)
    >>> [round(value, 2) for value in summary.curve.values]
    [0.75, 0.5, 0.25, 0.0]
    """
    tasks = _sequences(outcomes)
    n, c = [len(task) for task in tasks], [int(task.sum()) for task in tasks]
    return DecaySummary(
        sequences=tuple(_describe(task) for task in tasks),
        curve=decay_curve(n, c, k=k, scope=scope, confidence=confidence, rng=rng),
    )


def decay_curve(
    n: ArrayLike,
    c: ArrayLike,
    *,
    k: int | None = None,
    scope: Scope = TASKS_LIKE_THESE,
    confidence: float = 0.95,
    rng: RandomSource = None,
) -> DecayCurve | Unavailable:
    """pass^1 .. pass^k of a suite, with a simultaneous band.

    Each point is the default `suite_estimate`, at the confidence for which all hold together: the
    quantile of the largest |t| of the curve (Hothorn, Bretz and Westfall 2008), whose
    correlations come from the tasks ("tasks like these") or from the runs ("this suite"). A
    single task's band is that of its pass rate, to the power k, which holds for all k at once.
    Tasks with fewer than k runs are left out and counted; k is by default the fewest runs of
    any task, at most 10.

    >>> curve = decay_curve([5] * 6, [5, 5, 5, 4, 3, 0], k=3)
    >>> [round(value, 3) for value in curve.values]
    [0.733, 0.65, 0.583]
    """
    level = confidence_level(confidence)
    one_of("scope", scope, (THIS_SUITE, TASKS_LIKE_THESE))
    runs, passes = task_counts(n, c)
    if runs.size == 0:
        return Unavailable("there is no task to draw a curve of")
    longest = min(int(runs.min()), LONGEST_DEFAULT) if k is None else whole_number("k", k)
    kept = runs >= max(1, longest)
    if longest == 0 or not kept.any():
        return Unavailable(f"pass^{max(1, longest)} needs that many runs of a task; none has them")
    generator, seed = random_generator(rng)
    if kept.sum() == 1:
        return _one_task(runs, passes, kept, longest, confidence=level)
    cells = count_cells(runs[kept], passes[kept])
    pointwise = _joint_confidence(cells, longest, scope=scope, confidence=level, rng=generator)
    points = []
    for j in range(1, longest + 1):
        point = suite_estimate(runs[kept], passes[kept], k=j, scope=scope, confidence=pointwise)
        assert isinstance(point, Estimate)  # two tasks with j runs each always have one
        points.append(point)
    return DecayCurve(
        points=_monotone(points, confidence=level),
        method="pass^k of a task C(c, k) / C(n, k), max-t band",
        confidence=level,
        pointwise_confidence=pointwise,
        scope=scope,
        tasks=int(kept.sum()),
        runs=int(runs[kept].sum()),
        excluded_tasks=int((~kept).sum()),
        seed=seed,
    )


def _sequences(outcomes: Sequence[bool] | Sequence[Sequence[bool]]) -> list[Flags]:
    entries = list(outcomes)
    nested = any(isinstance(entry, (Sequence, np.ndarray)) for entry in entries)
    tasks = [np.asarray(entry) for entry in (entries if nested else [entries])]
    for task in tasks:
        if task.ndim != 1 or task.size == 0 or not np.isin(task, (0, 1)).all():
            rule = "must be passes (True) and failures (False), at least one per task"
            raise ArgumentError("outcomes", rule, outcomes)
    return [task.astype(bool) for task in tasks]


def _describe(passed: Flags) -> SequenceDecay:
    place = np.arange(1, passed.size + 1)
    so_far = np.cumsum(passed) / place
    return SequenceDecay(
        curve=tuple(int(percent) for percent in np.floor(100 * so_far**place)),
        variance_amplification=_variance_amplification(passed),
        graceful_degradation=int(100 * int(place[passed].sum()) // int(place.sum())),
        flips=_flips(passed),
        runs=passed.size,
        passes=int(passed.sum()),
    )


def _variance_amplification(passed: Flags) -> int | Unavailable:
    """The variance of the later half of the runs as a percentage of that of the earlier half."""
    half = passed.size // 2
    if half < 1:
        return Unavailable("variance amplification compares two halves: it needs 2 runs")
    early, late = float(passed[:half].var()), float(passed[half:].var())
    if early == 0:
        return Unavailable("the earlier half of the runs did not vary, so nothing can be amplified")
    return int(np.floor(100 * late / early + 1e-9))


def _flips(passed: Flags) -> int | Unavailable:
    """The percentage of neighbouring runs that differ."""
    if passed.size < 2:
        return Unavailable("flips between neighbouring runs need 2 runs")
    return int(100 * int((passed[1:] != passed[:-1]).sum()) // (passed.size - 1))


def _one_task(
    runs: Counts, passes: Counts, kept: Flags, longest: int, *, confidence: float
) -> DecayCurve:
    n, c = int(runs[kept][0]), int(passes[kept][0])
    rate = proportion_interval(c, n, method="wilson", confidence=confidence)
    points = []
    for k in range(1, longest + 1):
        value = pass_hat_k(n, c, k)
        bounds = Interval(min(rate.low**k, value), max(rate.high**k, value))
        points.append(
            Estimate(
                value=value,
                interval=bounds,
                method="wilson, to the power k",
                confidence=confidence,
                scope=THIS_SUITE,
                tasks=1,
                runs=n,
                excluded_tasks=int((~kept).sum()),
            )
        )
    return DecayCurve(
        points=tuple(points),
        method="one task: Wilson's interval, to the power k",
        confidence=confidence,
        pointwise_confidence=confidence,
        scope=THIS_SUITE,
        tasks=1,
        runs=n,
        excluded_tasks=int((~kept).sum()),
        seed=None,
    )


def _joint_confidence(
    cells: Cells, longest: int, *, scope: Scope, confidence: float, rng: np.random.Generator
) -> float:
    """The confidence of each point at which the whole curve is held with `confidence`."""
    if longest == 1:
        return confidence
    covariance = (
        _task_covariance(cells, longest)
        if scope == TASKS_LIKE_THESE
        else _run_covariance(cells, longest)
    )
    freedom = int(cells.task_count) - 1
    if scope == THIS_SUITE:
        freedom = max(freedom, int(cells.run_count - cells.task_count))
    quantile = _largest_t(_with_flat_points(covariance), freedom, confidence, rng)
    return float(2 * special.stdtr(freedom, quantile) - 1)


def _task_covariance(cells: Cells, longest: int) -> Floats:
    values = np.stack(
        [share_of_passing_subsets(cells.n, cells.c, k) for k in range(1, longest + 1)]
    )
    weight = cells.tasks / cells.task_count
    centred = values - (values * weight).sum(axis=1, keepdims=True)
    return np.asarray((centred * weight) @ centred.T)


def _run_covariance(cells: Cells, longest: int) -> Floats:
    """E[Cov(pass^j, pass^k | p)] summed over tasks, p under its posterior.

    A k-subset and a j-subset of the runs share m of them with a hypergeometric chance, and then
    all pass with chance p^(k + j - m).
    """
    a, b = fit_cells(cells)
    above, below = a + cells.c, b + cells.n - cells.c
    orders = np.arange(2 * longest + 1)[:, None]
    moments = np.exp(special.betaln(above + orders, below) - special.betaln(above, below))
    covariance = np.zeros((longest, longest))
    for k in range(1, longest + 1):
        for j in range(k, longest + 1):
            noise = sum(
                _overlap(cells.n, k, j, m) * (moments[k + j - m] - moments[k + j])
                for m in range(1, k + 1)
            )
            covariance[k - 1, j - 1] = covariance[j - 1, k - 1] = float((cells.tasks * noise).sum())
    return covariance


def _overlap(n: Floats, k: int, j: int, m: int) -> Floats:
    """P(a k-subset and a j-subset of n runs share exactly m), k <= j <= n."""
    possible = n - j >= k - m
    rest = np.where(possible, n - j, k)
    log = _log_choose(j, m) + _log_choose(rest, k - m) - _log_choose(n, k)
    return np.where(possible, np.exp(log), 0.0)


def _log_choose(n: Floats | float, k: int) -> Floats:
    return np.asarray(-special.betaln(1 + n - k, 1 + k) - np.log1p(n))


def _with_flat_points(covariance: Floats) -> Floats:
    """The correlations, where the points that did not vary count once, on their own."""
    spread = np.sqrt(np.diag(covariance))
    moving = spread > 1e-12
    inner = np.asarray(
        covariance[np.ix_(moving, moving)] / np.outer(spread[moving], spread[moving])
    )
    if moving.all():
        return inner
    size = int(moving.sum())
    correlation = np.eye(size + 1)
    correlation[:size, :size] = inner
    return correlation


def _largest_t(
    correlation: Floats, freedom: int, confidence: float, rng: np.random.Generator
) -> float:
    """The quantile of the largest |t| of a multivariate t, by simulation."""
    size, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(size, 0.0))
    normal = rng.standard_normal((_DRAWS, len(correlation))) @ root.T
    scale = np.sqrt(rng.chisquare(freedom, _DRAWS) / freedom)
    largest = np.abs(normal).max(axis=1) / scale
    # Never below the quantile of one t, which simulation might miss by a hair.
    single = float(special.stdtrit(freedom, (1 + confidence) / 2))
    return max(single, float(np.quantile(largest, confidence)))


def _monotone(points: Sequence[Estimate], *, confidence: float) -> tuple[Estimate, ...]:
    """Use that pass^k cannot rise with k: what bounds one point bounds its neighbours."""
    low = [point.interval.low if point.interval else 0.0 for point in points]
    high = [point.interval.high if point.interval else 1.0 for point in points]
    lows = np.maximum.accumulate(low[::-1])[::-1]
    highs = np.minimum.accumulate(high)
    return tuple(
        replace(
            point,
            interval=Interval(float(lowest), float(highest)),
            method=f"{point.method}, one point of a max-t band",
            confidence=confidence,
        )
        for point, lowest, highest in zip(points, lows, highs, strict=True)
    )
