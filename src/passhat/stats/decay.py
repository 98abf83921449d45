"""How reliability decays when more runs in a row must pass: the curve pass^1 .. pass^K."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.arguments import CONFIDENCE, whole_number
from passhat.dataclass import replace, short_dataclass
from passhat.stats import special
from passhat.stats.arguments import Counts, Floats, confidence_level, one_of
from passhat.stats.betabinomial import fit_cells
from passhat.stats.cells import Cells, count_cells, task_counts
from passhat.stats.derived_intervals import tightened
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Scope,
    Unavailable,
)
from passhat.stats.mean_intervals import bounds_both_ways
from passhat.stats.passk import pass_hat_k
from passhat.stats.passk_noise import Prior, cell_moments, expected_totals, run_covariances
from passhat.stats.proportions import proportion_interval
from passhat.stats.run_sequences import SequenceDecay, describe_sequences
from passhat.stats.suite_mean import METRICS, estimates_within, suite_estimates

# A curve is read by eye: more than ten runs in a row are shown only if k says so.
LONGEST_DEFAULT = 10

Flags = NDArray[np.bool_]
Tasks = Sequence[Sequence[bool]]
# Newton's steps at most, and a step (as a share of the quantile) that ends them.
_STEPS = 100
_TOLERANCE = 1e-10
# Nodes of the Gauss-Legendre rule for Plackett's integral.
_NODES = 24


@short_dataclass(frozen=True, slots=True, kw_only=True)
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

    @property
    def values(self) -> tuple[float, ...]:
        return tuple(point.value for point in self.points)

    @property
    def band(self) -> tuple[Interval | None, ...]:
        return tuple(point.interval for point in self.points)


@short_dataclass(frozen=True, slots=True, kw_only=True)
class DecaySummary:
    """A description of every sequence, which depends on its order, and a curve that does not."""

    sequences: tuple[SequenceDecay, ...]
    curve: DecayCurve | Unavailable


def decay_summary(
    outcomes: Sequence[bool] | Tasks,
    *,
    k: int | None = None,
    scope: Scope = TASKS_LIKE_THESE,
    confidence: float = CONFIDENCE,
) -> DecaySummary:
    """Describe the runs of one task, or of several, in the order they were made.

    >>> summary = decay_summary([True, True, True, False])
    >>> summary.sequences[0].curve, summary.sequences[0].graceful_degradation
    ((100, 100, 100, 31), 60)
    >>> [round(value, 2) for value in summary.curve.values]
    [0.75, 0.5, 0.25, 0.0]
    """
    nested = any(isinstance(entry, (Sequence, np.ndarray)) for entry in outcomes)
    sequences = describe_sequences(cast(Tasks, outcomes if nested else [outcomes]))
    n, c = [one.runs for one in sequences], [one.passes for one in sequences]
    curve = decay_curve(n, c, k=k, scope=scope, confidence=confidence)
    return DecaySummary(sequences=sequences, curve=curve)


def decay_curve(
    n: ArrayLike,
    c: ArrayLike,
    *,
    metric: str = "pass^k",
    k: int | None = None,
    scope: Scope = TASKS_LIKE_THESE,
    confidence: float = CONFIDENCE,
) -> DecayCurve | Unavailable:
    """pass^1 .. pass^k (or pass@1 .. pass@k) of a suite, with a simultaneous band.

    Each point is the default `suite_estimate`, at the confidence for which all hold together: the
    quantile of the largest |t| along the curve (Hothorn, Bretz and Westfall 2008), whose
    correlations come from the tasks ("tasks like these") or from the runs ("this suite"). A
    single task's band is that of its pass rate, to the power k, which holds for all k at once.
    Tasks with fewer than k runs are left out and counted; k is by default the fewest runs of
    any task, at most 10.

    >>> curve = decay_curve([5] * 6, [5, 5, 5, 4, 3, 0], k=3)
    >>> [round(value, 3) for value in curve.values]
    [0.733, 0.65, 0.583]
    """
    asked = (one_of("metric", metric, METRICS),)
    return _curves(n, c, asked, k=k, scope=scope, confidence=confidence)[0]


def decay_curves(
    n: ArrayLike,
    c: ArrayLike,
    *,
    k: int | None = None,
    scope: Scope = TASKS_LIKE_THESE,
    confidence: float = CONFIDENCE,
) -> list[DecayCurve | Unavailable]:
    """`decay_curve` of pass^k and of pass@k, for little more than one of them takes.

    >>> hats, ats = decay_curves([5] * 6, [5, 5, 5, 4, 3, 0], k=3)
    >>> [round(value, 3) for value in ats.values]
    [0.733, 0.817, 0.833]
    """
    return _curves(n, c, METRICS, k=k, scope=scope, confidence=confidence)


def _curves(
    n: ArrayLike,
    c: ArrayLike,
    metrics: Sequence[str],
    *,
    k: int | None,
    scope: Scope,
    confidence: float,
) -> list[DecayCurve | Unavailable]:
    level = confidence_level(confidence)
    one_of("scope", scope, (THIS_SUITE, TASKS_LIKE_THESE))
    runs, passes = task_counts(n, c)
    if runs.size == 0:
        return [Unavailable("there is no task to draw a curve of") for _ in metrics]
    longest = min(int(runs.min()), LONGEST_DEFAULT) if k is None else whole_number("k", k)
    kept = runs >= max(1, longest)
    if longest == 0 or not kept.any():
        names = [metric.replace("k", str(max(1, longest))) for metric in metrics]
        return [
            Unavailable(f"{name} needs that many runs of a task; none has them") for name in names
        ]
    if kept.sum() == 1:
        return [
            _one_task(runs, passes, kept, longest, confidence=level, upward=metric == "pass@k")
            for metric in metrics
        ]
    counts = runs[kept], passes[kept]
    levels = _joint_confidences(count_cells(*counts), metrics, longest, scope, level)
    points = _points(*counts, levels, ks=range(1, longest + 1), scope=scope)
    return [
        DecayCurve(
            points=_monotone(found, confidence=level, upward=metric == "pass@k"),
            method=f"{metric} of a task, unbiased; max-t band",
            confidence=level,
            pointwise_confidence=levels[metric],
            scope=scope,
            tasks=int(kept.sum()),
            runs=int(counts[0].sum()),
            excluded_tasks=int((~kept).sum()),
        )
        for metric, found in zip(metrics, points, strict=True)
    ]


def _points(
    runs: Counts, passes: Counts, levels: dict[str, float], *, ks: Sequence[int], scope: Scope
) -> Sequence[list[Estimate]]:
    """The estimates of each metric at its level; every task has the runs."""
    if len(levels) == len(METRICS):
        cells = count_cells(runs, passes)
        low, high = bounds_both_ways(cells, ks, scope, (levels["pass^k"], levels["pass@k"]))
        return [
            estimates_within(
                cells, ends, metric=metric, ks=ks, scope=scope, confidence=levels[metric]
            )
            for metric, ends in zip(METRICS, zip(low, high, strict=True), strict=True)
        ]
    ((metric, level),) = levels.items()
    found = suite_estimates(runs, passes, metric=metric, ks=ks, scopes=(scope,), confidence=level)
    return [[point for (point,) in found if isinstance(point, Estimate)]]


def largest_t(neighbours: Floats, freedom: float, confidence: float) -> float:
    """A c that no |t| of a row exceeds, with a chance of at least `confidence`.

    `neighbours` are the correlations of the first with the second, of the second with the third,
    and so on. One exceeds c if the first does, or if some other does while the one before it does
    not (Hunter 1976, Worsley 1982): a bound that needs no simulation. The smoother the
    row, the closer it is: within 0.3 % of the quantile for decay curves.

    >>> round(largest_t(np.array([0.9, 0.8]), 20, 0.95), 3)
    2.423
    """
    tail = 1 - confidence
    single = float(special.stdtrit(freedom, 1 - tail / 2))
    apart = float(special.stdtrit(freedom, 1 - tail / 2 / (len(neighbours) + 1)))
    nodes = _corner_nodes(neighbours)
    # Newton's step, or halving if that is longer: at low levels the chance is not convex.
    low, high, c, step = single, apart, single, apart - single
    for _ in range(_STEPS):
        chance, slope = _chance_of_any(c, freedom, nodes)
        low, high = (c, high) if chance > tail else (low, c)
        newton = (chance - tail) / -slope if slope < 0 else step
        short = abs(newton) <= abs(step) / 2 and low <= c + newton <= high
        step = newton if short else (low + high) / 2 - c
        c += step
        if abs(step) < _TOLERANCE * c:
            break
    return max(c, single)


def _one_task(
    runs: Counts, passes: Counts, kept: Flags, longest: int, *, confidence: float, upward: bool
) -> DecayCurve:
    n, c = int(runs[kept][0]), int(passes[kept][0])
    counted = n - c if upward else c  # pass@k of the passes is 1 - pass^k of the failures
    rate = proportion_interval(counted, n, method="wilson", confidence=confidence)
    about: dict[str, Any] = {
        "confidence": confidence,
        "scope": THIS_SUITE,
        "tasks": 1,
        "runs": n,
        "excluded_tasks": int((~kept).sum()),
    }
    points = []
    for k in range(1, longest + 1):
        value = pass_hat_k(n, counted, k)
        low, high = min(rate.low**k, value), max(rate.high**k, value)
        value, ends = (1 - value, (1 - high, 1 - low)) if upward else (value, (low, high))
        method = "wilson, to the power k"
        points.append(Estimate(value=value, interval=Interval(*ends), method=method, **about))
    return DecayCurve(
        points=tuple(points),
        method="one task: Wilson's interval, to the power k",
        pointwise_confidence=confidence,
        **about,
    )


def _joint_confidences(
    cells: Cells, metrics: Sequence[str], longest: int, scope: Scope, confidence: float
) -> dict[str, float]:
    """The confidence of each point at which the whole curve of a metric holds with `confidence`."""
    if longest == 1:
        return dict.fromkeys(metrics, confidence)
    a, b = fit_cells(cells)
    found = {}
    for metric in metrics:
        # pass@k of the passes varies as pass^k of the failures does.
        side, prior = (cells.mirrored(), (b, a)) if metric == "pass@k" else (cells, (a, b))
        freedom = int(cells.task_count) - 1
        if scope == TASKS_LIKE_THESE:
            moments = _task_covariance(side, longest)
        else:
            moments = _run_covariance(side, longest, prior)
            freedom = max(freedom, int(cells.run_count - cells.task_count))
        quantile = largest_t(_neighbour_correlations(*moments), freedom, confidence)
        found[metric] = float(2 * special.stdtr(freedom, quantile) - 1)
    return found


def _task_covariance(cells: Cells, longest: int) -> tuple[Floats, Floats]:
    """The variances of pass^1 .. pass^K over tasks, and the covariances of neighbours."""
    values = cell_moments(cells, longest)[1:]
    weight = cells.tasks / cells.task_count
    centred = values - (values @ weight)[:, None]
    return centred**2 @ weight, (centred[1:] * centred[:-1]) @ weight


def _run_covariance(cells: Cells, longest: int, prior: Prior) -> tuple[Floats, Floats]:
    """The same over runs, summed over tasks, each task's p under its posterior."""
    totals = expected_totals(cells, 2 * longest, prior)
    alone = [(k, k) for k in range(1, longest + 1)]
    neighbours = [(k, k + 1) for k in range(1, longest)]
    total = run_covariances(cells.lengths, alone + neighbours, totals).sum(axis=-1)
    return total[:longest], total[longest:]


def _neighbour_correlations(variance: Floats, covariance: Floats) -> Floats:
    """The correlation of each point of the curve with the next one, of those that vary.

    The points that do not vary count as one more point, uncorrelated with the others.
    """
    spread = np.sqrt(variance)
    moving = spread > 1e-12
    linked = moving[1:] & moving[:-1]
    between = covariance[linked] / (spread[1:] * spread[:-1])[linked]
    points = int(moving.sum()) + (not moving.all())
    return np.concatenate((between, np.zeros(points - 1 - between.size)))


def _monotone(
    points: Sequence[Estimate], *, confidence: float, upward: bool
) -> tuple[Estimate, ...]:
    """The points, their intervals tightened: pass^k cannot rise with k, nor can pass@k fall."""
    # pass^k is read backwards, so that both kinds rise.
    way = slice(None, None, 1 if upward else -1)
    return tuple(
        replace(point, method=f"{point.method}, one point of a max-t band", confidence=confidence)
        for point in tightened(points[way])[way]
    )


def _corner_nodes(correlations: Floats) -> tuple[Floats, Floats]:
    """Where Plackett's integral up to each angle is evaluated: both squares, and the weights."""
    angles = np.arccos(np.clip(correlations, -1.0, 1.0))[:, None]
    node, weight = _gauss_legendre()
    x = angles * (node + 1) / 4
    return np.stack((np.cos(x) ** 2, np.sin(x) ** 2)), angles * weight / (2 * np.pi)


def _chance_of_any(c: float, freedom: float, nodes: tuple[Floats, Floats]) -> tuple[float, float]:
    """The bound on P(any |t| > c), and its slope in c.

    P(the next exceeds, this does not) at a correlation cos(angle) is the integral from 0 to the
    angle of Plackett's derivative of a bivariate t (Genz 2004) over the corners of the square:
    ((1 + c^2 / (f cos^2(x/2)))^(-f/2) - (1 + c^2 / (f sin^2(x/2)))^(-f/2)) / pi.
    """
    square, weight = nodes
    height = c * c / freedom
    power = (square / (square + height)) ** (freedom / 2)
    fall = -c * power / (square + height)
    gain, loss = (((part[0] - part[1]) * weight).sum() for part in (power, fall))
    density = _density(c, freedom)
    return float(2 * special.stdtr(freedom, -c) + gain), float(-2 * density + loss)


@cache
def _gauss_legendre() -> tuple[Floats, Floats]:
    """Nodes and weights on [-1, 1] (Golub and Welsch 1969); importing numpy's takes 10 ms."""
    j = np.arange(1, _NODES)
    beside = j / np.sqrt(4.0 * j * j - 1)
    nodes, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return nodes, 2 * vectors[0] ** 2


def _density(t: float, freedom: float) -> float:
    log = -special.betaln(0.5, freedom / 2) - (freedom + 1) / 2 * np.log1p(t * t / freedom)
    return float(np.exp(log) / np.sqrt(freedom))
