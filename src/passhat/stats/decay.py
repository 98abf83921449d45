"""How reliability decays when more runs in a row must pass: the curve pass^1 .. pass^K."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, confidence_level, whole_number
from passhat.dataclass import dataclass, replace, result_dataclass
from passhat.errors import ArgumentError
from passhat.stats import passk, special
from passhat.stats.arguments import Counts, Floats, one_of, trial_counts
from passhat.stats.beta_binomial import DifficultyModel, fit_cells, fit_with_atoms, prior_weights
from passhat.stats.estimate import (
    TASKS_LIKE_THESE,
    THIS_SUITE,
    Estimate,
    Interval,
    Scope,
    Unavailable,
    tightened,
)
from passhat.stats.mean_intervals import bounds_both_ways
from passhat.stats.population_bounds import population_bounds
from passhat.stats.proportions import interval_at, share_estimate
from passhat.stats.sufficient_statistics import Cells, Mask, cached, count_cells, task_counts
from passhat.stats.suite_mean import METRICS, estimates_within, suite_estimates

# A curve is read by eye: more than ten runs in a row are shown only if k says so.
LONGEST_DEFAULT = 10

Tasks = Sequence[Sequence[bool]]
# Newton's steps at most, and a step (as a share of the quantile) that ends them.
_STEPS = 100
_TOLERANCE = 1e-10
# Nodes of the Gauss-Legendre rule for Plackett's integral.
_NODES = 24


@result_dataclass(frozen=True, slots=True, kw_only=True)
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


@result_dataclass(frozen=True, slots=True, kw_only=True)
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
    n, c = [sequence.runs for sequence in sequences], [sequence.passes for sequence in sequences]
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
            Unavailable(f"{name} needs that many trials of a task; none has them") for name in names
        ]
    if kept.sum() == 1:
        return [
            _one_task(runs[kept], passes[kept], metric, longest, level, int((~kept).sum()))
            for metric in metrics
        ]
    counts = runs[kept], passes[kept]
    levels = _joint_confidences(count_cells(*counts), metrics, longest, scope, level)
    points = _points(*counts, levels, ks=range(1, longest + 1), scope=scope)
    return [
        DecayCurve(
            points=_monotone(estimates, confidence=level, upward=metric == "pass@k"),
            method=f"{metric} of a task, unbiased; max-t band",
            confidence=level,
            pointwise_confidence=levels[metric],
            scope=scope,
            tasks=int(kept.sum()),
            runs=int(counts[0].sum()),
            excluded_tasks=int((~kept).sum()),
        )
        for metric, estimates in zip(metrics, points, strict=True)
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
    points = suite_estimates(runs, passes, metric=metric, ks=ks, scopes=(scope,), confidence=level)
    return [[point for (point,) in points if isinstance(point, Estimate)]]


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
    runs: Counts, passes: Counts, metric: str, longest: int, confidence: float, excluded: int
) -> DecayCurve:
    """The interval of one rate, to the power k, holds for all k at once."""
    ks = range(1, longest + 1)
    estimates = suite_estimates(
        runs, passes, metric=metric, ks=ks, scopes=(THIS_SUITE,), confidence=confidence
    )
    return DecayCurve(
        points=tuple(
            replace(point, method="wilson, to the power k", excluded_tasks=excluded)
            for (point,) in estimates
            if isinstance(point, Estimate)
        ),
        method="one task: Wilson's interval, to the power k",
        confidence=confidence,
        pointwise_confidence=confidence,
        scope=THIS_SUITE,
        tasks=1,
        runs=int(runs.sum()),
        excluded_tasks=excluded,
    )


def _joint_confidences(
    cells: Cells, metrics: Sequence[str], longest: int, scope: Scope, confidence: float
) -> dict[str, float]:
    """The confidence of each point at which the whole curve of a metric holds with `confidence`."""
    if longest == 1:
        return dict.fromkeys(metrics, confidence)
    a, b = fit_cells(cells)
    confidences = {}
    for metric in metrics:
        # pass@k of the passes varies as pass^k of the failures does.
        side, prior = (cells.mirrored(), (b, a)) if metric == "pass@k" else (cells, (a, b))
        freedom = int(cells.task_count) - 1
        if scope == TASKS_LIKE_THESE:
            moments = _task_covariance(side, longest)
        else:
            moments = _run_covariance(side, longest, prior)
            # How far runs vary is known from the runs of each task, less one for its mean.
            freedom = max(freedom, int(cells.run_count - cells.task_count))
        quantile = largest_t(_neighbour_correlations(*moments), freedom, confidence)
        confidences[metric] = float(2 * special.stdtr(freedom, quantile) - 1)
    return confidences


def _task_covariance(cells: Cells, longest: int) -> tuple[Floats, Floats]:
    """The variances of pass^1 .. pass^K over tasks, and the covariances of neighbours."""
    values = passk.cell_moments(cells, longest)[1:]
    weight = cells.tasks / cells.task_count
    centred = values - (values @ weight)[:, None]
    return centred**2 @ weight, (centred[1:] * centred[:-1]) @ weight


def _run_covariance(cells: Cells, longest: int, prior: passk.Prior) -> tuple[Floats, Floats]:
    """The same over runs, summed over tasks, each task's p under its posterior."""
    # The square of pass^K asks for p to the power 2 K.
    totals = passk.expected_totals(cells, 2 * longest, prior)
    alone = [(k, k) for k in range(1, longest + 1)]
    neighbours = [(k, k + 1) for k in range(1, longest)]
    total = passk.run_covariances(cells.lengths, alone + neighbours, totals).sum(axis=-1)
    return total[:longest], total[longest:]


def _neighbour_correlations(variance: Floats, covariance: Floats) -> Floats:
    """The correlation of each point of the curve with the next one, of those that vary.

    The points that do not vary count as one more point, uncorrelated with the others.
    """
    spread = np.sqrt(variance)
    moving = spread > 1e-12  # less is rounding
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
    # From [-1, 1], where the nodes are, to [0, angle / 2].
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
    log = -special.betaln(0.5, freedom / 2) - (freedom + 1) / 2 * np.log1p(c * c / freedom)
    density = float(np.exp(log) / np.sqrt(freedom))
    return float(2 * special.stdtr(freedom, -c) + gain), float(-2 * density + loss)


@cache
def _gauss_legendre() -> tuple[Floats, Floats]:
    """Nodes and weights on [-1, 1] (Golub and Welsch 1969); importing numpy's takes 10 ms."""
    j = np.arange(1, _NODES)
    beside = j / np.sqrt(4.0 * j * j - 1)
    nodes, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return nodes, 2 * vectors[0] ** 2


# Descriptions of the order of a task's runs, as defined in mcptest's documentation.

TOO_SHORT_TO_FLIP = Unavailable("flips between neighbouring trials need 2 trials")


@result_dataclass(frozen=True, slots=True, kw_only=True)
class SequenceDecay:
    """The measures of mcptest's documentation for one task's runs, in the order they were made.

    Whole percentages. `curve` is (passes so far / runs so far)^(runs so far), rounded down;
    `graceful_degradation` the share of passes where run i weighs i, rounded;
    `variance_amplification` the standard deviation of the outcomes against the largest it can be,
    1/2, rounded: 0 if all runs end alike, 100 if half of them pass; `flips` the share of
    neighbours that differ, rounded down.

    All but amplification depend on the order of the runs. If runs are exchangeable, the third
    and the seventh differ by chance alone and the order means nothing: read `DecayCurve` instead.
    """

    curve: tuple[int, ...]
    variance_amplification: int
    graceful_degradation: int
    flips: int | Unavailable
    runs: int
    passes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SequenceColumns:
    """`SequenceDecay` of many tasks with equally many runs, a row a task; NaN is unavailable."""

    curve: Counts
    variance_amplification: Counts
    graceful_degradation: Counts
    flips: Floats
    passes: Counts


def describe_sequences(outcomes: Sequence[Sequence[bool]]) -> tuple[SequenceDecay, ...]:
    """Describe each task's runs.

    >>> describe_sequences([[True, True, True, False]])[0].curve
    (100, 100, 100, 31)
    """
    tasks = [np.asarray(entry) for entry in outcomes]
    for task in tasks:
        if task.ndim != 1 or task.size == 0 or not np.isin(task, (0, 1)).all():
            rule = "must be passes (True) and failures (False), at least one per task"
            raise ArgumentError("outcomes", rule, outcomes)
    described: dict[int, SequenceDecay] = {}
    for places in by_length([task.size for task in tasks]):
        columns = describe_columns(np.stack([tasks[i] for i in places]).astype(bool))
        described |= zip(places, _rows(columns), strict=True)
    return tuple(described[i] for i in range(len(tasks)))


def describe_columns(passed: Mask) -> SequenceColumns:
    """Describe tasks (rows) with equally many runs (columns, in order) all at once."""
    runs = passed.shape[1]
    place = np.arange(1, runs + 1)
    so_far = np.cumsum(passed, axis=1, dtype=np.int64)
    changes, rate = (passed[:, 1:] != passed[:, :-1]).sum(axis=1), so_far[:, -1] / runs
    return SequenceColumns(
        curve=np.floor(100 * (so_far / place) ** place).astype(np.int64),
        # The population standard deviation, in percent of the 1/2 that it is at most.
        variance_amplification=_rounded(np.sqrt(rate * (1 - rate)) / 0.5 * 100),
        graceful_degradation=_rounded(100 * (passed @ place) / place.sum()),
        flips=100 * changes // (runs - 1) * 1.0 if runs > 1 else np.full(len(passed), np.nan),
        passes=so_far[:, -1],
    )


def _rounded(values: Floats) -> Counts:
    """To the next whole number, halves up as in the source; numpy rounds them to even ones."""
    return np.floor(values + 0.5).astype(np.int64)


def by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """The places of the tasks with equally many runs, one list a length."""
    sizes = np.asarray(lengths)
    order = np.argsort(sizes, kind="stable")
    for places in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
        if places.size:
            yield places.tolist()


def _rows(columns: SequenceColumns) -> Iterator[SequenceDecay]:
    runs = columns.curve.shape[1]
    for i, curve in enumerate(columns.curve.tolist()):
        flips = columns.flips[i]
        yield SequenceDecay(
            curve=tuple(curve),
            variance_amplification=int(columns.variance_amplification[i]),
            graceful_degradation=int(columns.graceful_degradation[i]),
            flips=TOO_SHORT_TO_FLIP if np.isnan(flips) else int(flips),
            runs=runs,
            passes=int(columns.passes[i]),
        )


# Chains: how reliable several steps in a row are, and how often a failure is contained.

EXACT_ZERO_FAILURES = "product of steps, exact (zero failures)"

EXACT_ZERO_PASSES = "product of steps, exact (a step never passed)"
EFFECTIVE_RUNS = "product of steps, Lindstrom-Madden with effective runs"


@result_dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """A chain that succeeds only if every step does: the product, and the steps it came from."""

    reliability: Estimate
    steps: tuple[Estimate, ...]
    weakest: int

    @property
    def length(self) -> int:
        return len(self.steps)


def cascade(steps: Sequence[tuple[int, int]], *, confidence: float = CONFIDENCE) -> Cascade:
    """The reliability of a chain of independent steps, each given as (passes, runs).

    The interval is that of Lindstrom and Madden (Lloyd and Lipow 1962): a binomial with the
    product as its rate, here with as many runs as give the product's own variance, never fewer
    than the least tested step has. With zero failures the bound is exact, and depends only on the
    step with the fewest runs: a failure could still hide there most easily.

    >>> chain = cascade([(19, 20), (48, 50), (30, 30)])
    >>> round(chain.reliability.value, 3), chain.weakest
    (0.912, 0)
    >>> round(cascade([(20, 20), (50, 50)]).reliability.interval.low, 4)  # 0.025 ** (1 / 20)
    0.8316
    """
    level = confidence_level(confidence)
    pairs = list(steps)
    if not pairs or any(np.shape(pair) != (2,) for pair in pairs):
        raise ArgumentError("steps", "must be at least one pair (passes, trials)", steps)
    runs, passes = trial_counts([n for _, n in pairs], [c for c, _ in pairs])
    if (runs < 1).any():
        raise ArgumentError("steps", "must have at least 1 trial each", pairs[int(runs.argmin())])
    value = float(np.prod(passes / runs))
    method, bounds = _product_interval(passes, runs, value, confidence=level)
    return Cascade(
        reliability=Estimate(
            value=value, interval=bounds, method=method, confidence=level, runs=int(runs.sum())
        ),
        steps=tuple(
            share_estimate(c, n, method="wilson", confidence=level)
            for c, n in zip(passes.tolist(), runs.tolist(), strict=True)
        ),
        weakest=int(np.argmin(passes / runs)),
    )


def containment_rate(
    contained: int, escaped: int, *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """The share of failures that were caught before they did harm (Wilson).

    >>> rate = containment_rate(9, 1)
    >>> rate.value, round(rate.interval.low, 3)
    (0.9, 0.596)
    """
    caught = whole_number("contained", contained, least=0)
    loose = whole_number("escaped", escaped, least=0)
    level = confidence_level(confidence)
    if caught + loose == 0:
        return Unavailable("no failure happened, so none could be contained")
    return share_estimate(caught, caught + loose, method="wilson", confidence=level)


def _product_interval(
    passes: Counts, runs: Counts, value: float, *, confidence: float
) -> tuple[str, Interval]:
    tail = (1 - confidence) / 2
    if (passes == runs).all():
        return EXACT_ZERO_FAILURES, Interval(float(tail ** (1 / runs.min())), 1.0)
    if (passes == 0).any():
        tested = runs[passes == 0].max()
        return EXACT_ZERO_PASSES, Interval(0.0, float(1 - tail ** (1 / tested)))
    trials = _effective_runs(passes.astype(np.float64), runs.astype(np.float64))
    failures = trials * (1 - value)
    low = special.betaincinv(trials - failures, failures + 1, tail)
    high = special.betaincinv(trials - failures + 1, failures, 1 - tail)
    return EFFECTIVE_RUNS, Interval(min(float(low), value), max(float(high), value))


def _effective_runs(passes: Floats, runs: Floats) -> float:
    """The runs of one binomial whose variance is that of the product, by the delta method."""
    # Half a pass and half a failure keep the variance of a step that always passed above 0.
    rate = (passes + 0.5) / (runs + 1)
    product = float(np.prod(rate))
    log_variance = float(((1 - rate) / (rate * runs)).sum())
    return max(float(runs.min()), (1 - product) / (product * log_variance))


# pass^k for more attempts than were run, by the beta model of task difficulty.

MODEL_WARNING = (
    "model-based: assumes the tasks' pass rates follow a beta, with some tasks that always or "
    "never pass where the counts ask for them"
)

ATOMS_NOTE = "more tasks pass or fail every time than a beta allows: the interval needs no model"


def extrapolate_pass_hat_k(
    n: ArrayLike, c: ArrayLike, k: int, *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """The suite's pass^k for any k, also beyond the runs there are: E[p^k] under the fitted beta.

    Beyond the runs that every task has, n of them, value and interval stay inside the limits that
    need no model: (pass^n)^(k/n) <= pass^k <= pass^n, the first by Jensen. The interval is the
    credible interval over the priors that the suite leaves possible; where tasks at 0 or 1 are
    too many for any beta, it is those limits themselves.

    >>> extrapolate_pass_hat_k([5] * 4, [5, 5, 4, 2], 32).method
    'beta-binomial extrapolation (model-based)'
    """
    return extrapolate_pass_hat_ks(n, c, (k,), confidence=confidence)[0]


def extrapolate_pass_hat_ks(
    n: ArrayLike, c: ArrayLike, ks: Sequence[int], *, confidence: float = CONFIDENCE
) -> list[Estimate | Unavailable]:
    """The same for several k: one model serves them all."""
    powers, level = [whole_number("k", k) for k in ks], confidence_level(confidence)
    every = count_cells(n, c)
    cells = every.having(1)
    if cells.n.size == 0:
        return [
            Unavailable(f"extrapolating pass^{power} needs a task with a trial; there is none")
            for power in powers
        ]
    model = fit_with_atoms(cells)
    left_out = int(every.task_count - cells.task_count)
    return [_extrapolated(cells, model, power, level, left_out) for power in powers]


def _extrapolated(
    cells: Cells, model: DifficultyModel, power: int, level: float, left_out: int
) -> Estimate:
    value = model.solid + (1 - model.solid - model.broken) * float(_moment(model.a, model.b, power))
    limits, free = _limits(cells, power, level)
    value = min(max(value, limits.low), limits.high)
    if model.atoms:
        interval = free
    else:
        priors = prior_weights(cells)
        interval = priors.interval(_moment(priors.a, priors.b, power), level)
        low = min(max(interval.low, free.low), free.high)
        interval = Interval(low, max(low, min(interval.high, free.high)))
    return Estimate(
        value=value,
        interval=Interval(min(interval.low, value), max(interval.high, value)),
        method="beta-binomial extrapolation (model-based)",
        confidence=level,
        scope=TASKS_LIKE_THESE,
        tasks=int(cells.task_count),
        runs=int(cells.run_count),
        excluded_tasks=left_out,
        notes=(MODEL_WARNING, ATOMS_NOTE) if model.atoms else (MODEL_WARNING,),
    )


def _limits(cells: Cells, power: int, confidence: float) -> tuple[Interval, Interval]:
    """Where pass^k must lie given pass^n, and given its interval; every task has n runs.

    Up to n runs, that is the estimate of pass^k itself.
    """
    runs = min(int(cells.n.min()), power)
    seen, ends = _observed_pass_hat(cells, runs, confidence)
    share = power / runs
    return Interval(seen**share, seen), Interval(ends.low**share, ends.high)


@cached
def _observed_pass_hat(cells: Cells, k: int, confidence: float) -> tuple[float, Interval]:
    """pass^k of the runs there are, with its interval."""
    values = passk.share_of_passing_subsets(cells.n, cells.c, k)
    ends = interval_at(population_bounds(values, cells.tasks, confidence))
    return float(cells.mean(values)), ends


def _moment(a: Floats, b: Floats, k: int) -> Floats:
    """E[p^k] under Beta(a, b), as a ratio of gammas that stays accurate for large k."""
    return np.asarray(np.exp(special.betaln(a + k, b) - special.betaln(a, b)))
