"""The task-difficulty model: task i passes a run with chance p_i, and p_i is drawn from a beta.

The beta is fitted to a suite by maximum likelihood; where that is not enough, the priors that the
suite leaves possible are weighed, and tasks may lie at 0 or 1 where no beta explains their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.estimate import Interval
from passhat.stats.sufficient_statistics import Cells, cached, count_cells

# Newton's steps end after so many, or with one this short (in logits, or logs of precision).
_NEWTON_STEPS = 200

_TOLERANCE = 1e-7
_LONGEST_STEP = 3.0
# Precisions a + b beyond this many times the longest task cannot be told from identical tasks.
_LARGEST_PRECISION_PER_RUN = 1e4
# Below this precision runs of a task correlate by 0.9999: every task is all or nothing.
_LEAST_LOG = float(np.log(1e-4))
# Damping that no step has overcome: the point is a maximum to rounding.
_STUCK = 1e12
# A mean within 1e-13 of 0 or 1, where 1 - mean begins to lose its digits.
_LARGEST_LOGIT = 30.0
# Logarithms in memory at once: 8 MB.
_BLOCK = 1 << 20
# The asymptotic series of trigamma is used from x = 8 on; smaller x are shifted up to it.
_SHIFTS = 8
# The interpolation's error is at most e^-34, about the rounding of a float.
_DIGITS = 34.0
# Runs of a task up to which logarithms are summed, and how many cost as much as one ln Gamma.
_MOST_LOGS = 256
_LOGS_PER_GAMMA = 16
# Up to so many logarithms plain Python is faster than a few calls of numpy.
_FEW_LOGS = 32
# Interpolating saves time where it saves at least so many values of ln Gamma.
_WORTH_INTERPOLATING = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaPrior:
    """The beta distribution of the tasks' pass rates.

    >>> BetaPrior(a=8.0, b=2.0).mean
    0.8
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        if not (0 < self.a < np.inf and 0 < self.b < np.inf):
            raise ArgumentError("a and b", "must be positive and finite", (self.a, self.b))

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def correlation(self) -> float:
        """The correlation of two runs of one task: 0 for identical tasks, 1 for all or nothing."""
        return 1 / (1 + self.a + self.b)

    def share_above(self, p: float) -> float:
        """The share of tasks whose pass rate exceeds p."""
        return float(chance_above(self.a, self.b, p))


def chance_above(a: Floats | float, b: Floats | float, p: Floats | float) -> Floats:
    """P(more than p) under Beta(a, b), by symmetry: scipy's betaincc is 50 times slower.

    >>> float(chance_above(1.0, 1.0, 0.75))
    0.25
    """
    return np.asarray(special.betainc(b, a, 1 - np.asarray(p)))


def fit_beta_binomial(n: ArrayLike, c: ArrayLike) -> BetaPrior:
    """The beta prior that makes the suite's passes most likely.

    Maximum likelihood with half a pseudo-task to keep it off the boundary: all-pass, all-fail and
    all-or-nothing suites have no maximum inside. Identical tasks give a large a + b.

    >>> fit_beta_binomial([10] * 4, [10, 9, 7, 2]).mean
    0.69...
    """
    cells = count_cells(n, c).having(1)
    if cells.n.size == 0:
        raise ArgumentError("n", "must hold at least one task with a trial", 0)
    a, b = fit_cells(cells)
    return BetaPrior(a=float(a), b=float(b))


@cached
def fit_cells(cells: Cells) -> tuple[Floats, Floats]:
    """(a, b) of every suite in `cells`, by damped Newton steps on logit(mean) and log(a + b)."""
    likelihood, start = Likelihood(cells), _start(cells)
    if len(start) == 1:
        point: Any = _newton_scalar(likelihood, *start[0].tolist())
    else:
        point = _newton(likelihood, start.T)
    shape = cells.tasks.shape[:-1]
    a, b = (np.reshape(part, shape) for part in _shapes(*point))
    return a, b


def refit(likelihood: Likelihood, a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The fitted (a, b) of one suite, searched for from these, which are close."""
    start = float(np.log(a / b)), float(np.log(a + b))
    first, second = _shapes(*_newton_scalar(likelihood, *start))
    return np.asarray(first), np.asarray(second)


def _newton(likelihood: Likelihood, start: Floats) -> Floats:
    """The likeliest (logit mean, log precision) of every suite, a column each."""
    point = np.stack(likelihood.clipped(*start))
    active = np.ones(point.shape[1], dtype=bool)
    damping = np.full(point.shape[1], 1e-3)
    best, *first = likelihood.at(np.flatnonzero(active), *point)
    derivatives = np.stack(first)
    for _ in range(_NEWTON_STEPS):
        rows = np.flatnonzero(active)
        step = np.stack(_step(damping[rows], list(derivatives[:, rows])))
        trial = np.stack(likelihood.clipped(*(point[:, rows] + step)))
        value, *new = likelihood.at(rows, *trial)
        better = value >= best[rows]
        moved = np.abs(trial - point[:, rows]).max(axis=0)
        taken = rows[better]
        point[:, taken], best[taken] = trial[:, better], value[better]
        derivatives[:, taken] = np.stack(new)[:, better]
        damping[rows] *= np.where(better, 0.1, 10.0)
        active[rows] = (moved > _TOLERANCE) & (damping[rows] < _STUCK)
        if not active.any():
            break
    return point


def _newton_scalar(likelihood: Likelihood, mean: float, size: float) -> tuple[float, float]:
    """The same for a single suite, in plain numbers and without the bookkeeping of many."""
    mean, size = likelihood.clipped(mean, size)
    damping = 1e-3
    best, *derivatives = likelihood.at_one(mean, size)
    for _ in range(_NEWTON_STEPS):
        step = _step(damping, derivatives, hypot=math.hypot, largest=max)
        trial = likelihood.clipped(mean + step[0], size + step[1])
        value, *new = likelihood.at_one(*trial)
        moved = max(abs(trial[0] - mean), abs(trial[1] - size))
        if value >= best:
            (mean, size), best, derivatives = trial, value, new
            damping *= 0.1
        else:
            damping *= 10.0
        if moved <= _TOLERANCE or damping >= _STUCK:
            break
    return mean, size


class Likelihood:
    """The penalised log-likelihood of every suite in some cells, with two derivatives.

    Points are (logit mean, log precision). ln Gamma separates over passes, failures and runs, so
    the cost is that of their distinct values, however many cells and tasks there are.
    """

    def __init__(self, cells: Cells) -> None:
        tasks = cells.tasks.reshape(-1, cells.n.size)
        self.passes, self.failures, self.runs = (
            _GammaSums(counts, tasks) for counts in (cells.c, cells.n - cells.c, cells.n)
        )
        longest = max(1.0, float(cells.n.max()))
        self.log_most = float(np.log(_LARGEST_PRECISION_PER_RUN * longest))

    def reweighted(self, tasks: Floats) -> Likelihood:
        """The same counts with other numbers of tasks."""
        other = copy(self)
        sums = self.passes, self.failures, self.runs
        other.passes, other.failures, other.runs = (total.reweighted(tasks) for total in sums)
        return other

    def clipped(self, mean: Any, size: Any) -> tuple[Any, Any]:
        """A point inside the box where the likelihood can be computed."""
        return (
            _clipped(mean, -_LARGEST_LOGIT, _LARGEST_LOGIT),
            _clipped(size, _LEAST_LOG, self.log_most),
        )

    def value(self, a: Floats, b: Floats) -> Floats:
        """The log-likelihood (without penalty) of the first suite at each of many (a, b)."""
        return self.passes.values(a) + self.failures.values(b) - self.runs.values(a + b)

    def at(self, rows: NDArray[np.intp] | int, mean: Any, size: Any) -> tuple[Any, ...]:
        """The value at a point for each of `rows`, its gradient, its three second derivatives."""
        a, b = _shapes(mean, size)
        sums = self.passes.at(a, rows), self.failures.at(b, rows), self.runs.at(a + b, rows)
        return _penalised(a, b, *_chain_rule(a, b, *sums))

    def at_one(self, mean: float, size: float) -> tuple[Any, ...]:
        """The same at one point for the first suite, in plain numbers."""
        precision, odds = math.exp(size), math.exp(mean)
        a, b = precision * odds / (1 + odds), precision / (1 + odds)
        sums = self.passes.at_one(a), self.failures.at_one(b), self.runs.at_one(precision)
        return _penalised(a, b, *_chain_rule(a, b, *sums), log=math.log)


class _GammaSums:
    """Sums of weight * ln(Gamma(x + count) / Gamma(x)) over the counts of every suite.

    For short tasks that is the sum of ln(x + j) over whole j below each count, and logarithms
    are many times as fast as gamma functions.
    """

    def __init__(self, counts: Floats, tasks: Floats) -> None:
        most = counts.max()
        self._logs = bool(most <= _MOST_LOGS and not (counts % 1).any())
        if self._logs:
            self._counts = np.arange(most)
            self._beyond = (counts[:, None] > self._counts).astype(np.float64)
            self.weights = tasks @ self._beyond
        else:
            self._counts, self.weights = _marginal(counts, tasks)
        self._given = counts

    def reweighted(self, tasks: Floats) -> _GammaSums:
        """The same sums with other weights."""
        if not self._logs:
            return _GammaSums(self._given, tasks[None])
        other = copy(self)
        other.weights = (tasks @ self._beyond)[None]
        return other

    def at(self, x: Floats | float, rows: NDArray[np.intp] | int) -> tuple[Any, Any, Any]:
        """The sum of each of `rows` at its own x, and its two derivatives."""
        weights = self.weights[rows]
        shifted = np.add.outer(x, self._counts)
        if self._logs:
            inverse = 1 / shifted
            second = -np.vecdot(weights, inverse * inverse)
            return np.vecdot(weights, np.log(shifted)), np.vecdot(weights, inverse), second
        whole = weights.sum(axis=-1)
        value, first, second = (
            np.vecdot(weights, term(shifted)) - whole * term(np.asarray(x))
            for term in (special.gammaln, special.digamma, _trigamma)
        )
        return value, first, second

    def at_one(self, x: float) -> tuple[float, float, float]:
        """The same for the first suite, in plain numbers if it has few logarithms."""
        if not self._logs or self._counts.size > _FEW_LOGS:
            value, first, second = self.at(x, 0)
            return float(value), float(first), float(second)
        value = first = second = 0.0
        for count, weight in enumerate(self.weights[0].tolist()):
            inverse = 1 / (x + count)
            value -= weight * math.log(inverse)
            first += weight * inverse
            second -= weight * inverse * inverse
        return value, first, second

    def values(self, x: Floats) -> Floats:
        """The sums of the first suite at many x.

        For many counts the sum is a smooth function of ln x, whose nearest singularities lie at a
        distance pi from the real line: a few Chebyshev points give it to rounding.
        """
        logs = np.log(x)
        middle, half = (logs.max() + logs.min()) / 2, max((logs.max() - logs.min()) / 2, 1e-9)
        reach = np.pi / half
        points = int(_DIGITS / np.log(reach + np.sqrt(reach**2 + 1))) + 4
        cost = self._counts.size / (_LOGS_PER_GAMMA if self._logs else 1)
        if cost * (x.size - points) < _WORTH_INTERPOLATING:
            return self._one_by_one(x)
        angle = np.pi * (np.arange(points) + 0.5) / points
        values = self._one_by_one(np.exp(middle + half * np.cos(angle)))
        series = 2 / points * np.cos(np.outer(np.arange(points), angle)) @ values
        series[0] /= 2
        return _chebyshev(series, np.clip((logs - middle) / half, -1, 1))

    def _one_by_one(self, x: Floats) -> Floats:
        """In blocks of bounded memory."""
        block = max(1, _BLOCK // max(1, self._counts.size))
        parts = (x[start : start + block] for start in range(0, x.size, block))
        return np.concatenate([self._block(part) for part in parts])

    def _block(self, x: Floats) -> Floats:
        shifted = np.add.outer(x, self._counts)
        if self._logs:
            return np.asarray(np.log(shifted) @ self.weights[0])
        gammas = special.gammaln(shifted) - special.gammaln(x)[:, None]
        return np.asarray(gammas @ self.weights[0])


def _marginal(values: Floats, tasks: Floats) -> tuple[Floats, Floats]:
    distinct, position = np.unique(values, return_inverse=True)
    order = np.argsort(position, kind="stable")
    starts = np.searchsorted(position[order], np.arange(distinct.size))
    return distinct, np.add.reduceat(tasks[:, order], starts, axis=1)


def _start(cells: Cells) -> Floats:
    """By moments: the mean, and the precision that spreads shares as far as they are."""
    tasks = cells.tasks.reshape(-1, cells.n.size)
    passes, failures = tasks @ cells.c + 0.5, tasks @ (cells.n - cells.c) + 0.5
    share, count = cells.c / cells.n, tasks.sum(axis=-1)
    mean = tasks @ share / count
    coin = mean * (1 - mean)
    spread = tasks @ share**2 / count - mean**2 - coin * (tasks @ (1 / cells.n)) / count
    precision = coin / np.maximum(spread, 1e-3 * coin + 1e-9)
    return np.stack((np.log(passes / failures), np.log(np.clip(precision, 0.5, 500))), axis=-1)


def _shapes(mean: Any, size: Any) -> tuple[Any, Any]:
    precision = np.exp(size)
    return precision * special.expit(mean), precision * special.expit(-mean)


def _trigamma(x: Floats) -> Floats:
    """The second derivative of ln Gamma (Abramowitz and Stegun 6.4.12); zeta(2, x) is slower."""
    small = x < 2 * _SHIFTS
    near = np.zeros(x.shape)
    near[small] = (1 / (x[small][:, None] + np.arange(float(_SHIFTS))) ** 2).sum(axis=-1)
    far = 1 / (x + _SHIFTS * small)
    square = far * far
    tail = 1 + far / 2 + square * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30)))
    return np.asarray(near + far * tail)


def _chebyshev(series: Floats, x: Floats) -> Floats:
    """The sum of series[k] T_k(x), by Clenshaw's recurrence (1955)."""
    last = before = np.zeros(x.shape)
    for part in series[:0:-1]:
        last, before = part + 2 * x * last - before, last
    return np.asarray(series[0] + x * last - before)


def _chain_rule(
    a: Any, b: Any, of_a: Sequence[Any], of_b: Sequence[Any], of_sum: Sequence[Any]
) -> tuple[Any, ...]:
    """The likelihood and its derivatives by logit mean and log precision, from those by a and b.

    It is a function of a, plus one of b, minus one of a + b: each comes with its two derivatives.
    """
    by_a, by_b = of_a[1] - of_sum[1], of_b[1] - of_sum[1]
    by_aa, by_bb, by_ab = of_a[2] - of_sum[2], of_b[2] - of_sum[2], -of_sum[2]
    mean = a / (a + b)
    jacobian = a * (1 - mean)  # of a by the logit of the mean; of b it is minus that
    by_mean, by_size = jacobian * (by_a - by_b), a * by_a + b * by_b
    mean_mean = jacobian**2 * (by_aa - 2 * by_ab + by_bb) + (1 - 2 * mean) * by_mean
    mean_size = jacobian * (a * by_aa + (b - a) * by_ab - b * by_bb) + by_mean
    size_size = a**2 * by_aa + 2 * a * b * by_ab + b**2 * by_bb + by_size
    return of_a[0] + of_b[0] - of_sum[0], by_mean, by_size, mean_mean, mean_size, size_size


def _penalised(
    a: Any,
    b: Any,
    value: Any,
    by_mean: Any,
    by_size: Any,
    mean_mean: Any,
    mean_size: Any,
    size_size: Any,
    *,
    log: Any = np.log,
) -> tuple[Any, ...]:
    """Add ln sqrt(mean (1 - mean)) + ln(1 - correlation), which weighs as much as half a task."""
    s = a + b
    mean, loose = a / s, s / (1 + s)
    return (
        value + 0.5 * (log(mean) + log(b / s)) + log(loose),
        by_mean + 0.5 - mean,
        by_size + 1 - loose,
        mean_mean - mean * (1 - mean),
        mean_size,
        size_size - loose * (1 - loose),
    )


def _step(
    damping: Any, derivatives: Sequence[Any], *, hypot: Any = np.hypot, largest: Any = np.maximum
) -> tuple[Any, Any]:
    """A damped Newton step, at most `_LONGEST_STEP` long.

    The Hessian is made negative definite first: its larger eigenvalue is shifted below 0.
    """
    by_mean, by_size, mean_mean, mean_size, size_size = derivatives
    trace = -mean_mean - size_size
    gap = hypot(mean_mean - size_size, 2 * mean_size)
    least = (trace - gap) / 2
    lift = largest(0, 1e-9 - least) * 1.5 + damping * largest(abs(trace), 1e-9)
    first, last, off = lift - mean_mean, lift - size_size, -mean_size
    scale = first * last - off**2
    along, across = last * by_mean - off * by_size, first * by_size - off * by_mean
    return (
        _clipped(along / scale, -_LONGEST_STEP, _LONGEST_STEP),
        _clipped(across / scale, -_LONGEST_STEP, _LONGEST_STEP),
    )


def _clipped(x: Any, low: float, high: float) -> Any:
    """What np.clip does, many times as fast for a single number."""
    if isinstance(x, float):
        return min(max(x, low), high)
    return np.minimum(np.maximum(x, low), high)


# Priors that a suite leaves possible, and shares of tasks at 0 or 1.

# Points along each axis of the grid, and how often it zooms in at most.
_POINTS = 24
_PASSES = 8
# Zooming ends when the stretch with weight is this share of an axis.
_FILLED = 0.6
# Points with less weight (as a share of the largest, or of all) are dropped.
_NEGLIGIBLE = 1e-6
# The widest grid: means from 1e-6 to 1 - 1e-6, and correlations of runs up to 0.999.
_WIDEST_LOGIT = 14.0
_LOOSEST_LOG_PRECISION = -7.0
# The first grid reaches so far from the fitted prior on either axis; from so many tasks on the
# likelihood is close to normal, and so many of its standard errors are enough.
_FIRST_REACH = 3.0
_MANY_TASKS = 200.0
_STANDARD_ERRORS = 6.0

Range = tuple[float, float]
# Twice the log-likelihood that a share must gain, at 5 %: chi-squared with 2 degrees of freedom for
# the better of the two ends, and with 1 degree for adding the other.
_ASKED_FOR = 5.99, 3.84
# Steps of expectation and maximisation: the shares move by less than 1e-3 after these.
_DIFFICULTY_STEPS = 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PriorWeights:
    """Beta(a[g], b[g]) has posterior weight `weight[g]`; the weights add up to 1."""

    a: Floats
    b: Floats
    weight: Floats

    def interval(self, values: Floats, confidence: float) -> Interval:
        """The credible interval of a quantity that has `values[g]` under prior g."""
        order = np.argsort(values)
        reached = np.cumsum(self.weight[order]) - self.weight[order] / 2
        tail = (1 - confidence) / 2
        low, high = np.interp([tail, 1 - tail], reached, values[order])
        return Interval(float(low), float(high))

    def heaviest(self, most: int) -> PriorWeights:
        """The `most` likeliest priors, their weights made to add up to 1 again."""
        kept = np.argsort(self.weight)[::-1][:most]
        weight = self.weight[kept]
        return PriorWeights(a=self.a[kept], b=self.b[kept], weight=weight / weight.sum())

    def covering(self, share: float) -> PriorWeights:
        """The likeliest priors that together have this share of the weight."""
        heaviest = np.sort(self.weight)[::-1]
        return self.heaviest(int(np.searchsorted(np.cumsum(heaviest), share)) + 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DifficultyModel:
    """A share `solid` of tasks at 1, a share `broken` at 0, and the rest from Beta(a, b).

    `rest` are the cells with as many tasks in each as are not at an end.
    """

    a: Floats
    b: Floats
    rest: Cells
    solid: float = 0.0
    broken: float = 0.0

    @property
    def atoms(self) -> bool:
        return self.solid + self.broken > 0


@cached
def prior_weights(cells: Cells) -> PriorWeights:
    """The posterior over priors: a uniform mean, and a correlation of runs that favours small ones.

    With a uniform correlation, three tasks that pass 5 of 5 runs would be called solid.

    The grid starts around the fitted prior and zooms in until the weight fills it: a suite of two
    tasks and one of a million have about as many points where the weight is.
    """
    likelihood = Likelihood(cells)
    limits = (-_WIDEST_LOGIT, _WIDEST_LOGIT), (_LOOSEST_LOG_PRECISION, likelihood.log_most)
    a, b = fit_cells(cells)
    fitted = np.log(np.stack((a / b, a + b)))
    ranges = _around(fitted, limits, _first_reach(cells, likelihood, fitted))
    for step in range(_PASSES):
        logits, logs = (np.linspace(*axis, _POINTS) for axis in ranges)
        weight = _weights(likelihood, logits, logs)
        if step == 0 and _spills(weight, ranges, limits):
            ranges = limits
            continue
        narrower = _busy(logits, weight.sum(axis=1)), _busy(logs, weight.sum(axis=0))
        shrink = min(np.ptp(narrower[0]) / np.ptp(logits), np.ptp(narrower[1]) / np.ptp(logs))
        if shrink > _FILLED:
            break
        ranges = narrower
    shapes = _grid_shapes(logits, logs)
    kept = weight.ravel() > _NEGLIGIBLE * weight.max()
    flat = weight.ravel()[kept]
    return PriorWeights(a=shapes[0][kept], b=shapes[1][kept], weight=flat / flat.sum())


@cached
def fit_with_atoms(cells: Cells) -> DifficultyModel:
    """The beta fitted to one suite, and the shares of tasks at its ends that it cannot explain.

    One end is tried alone first: a beta close to 1 explains tasks that always passed, and a share
    of such tasks would only replace it.
    """
    a, b = fit_cells(cells)
    best, fit = DifficultyModel(a=a, b=b, rest=cells), _fit(cells, a, b, np.zeros(2))
    ends = np.stack((cells.c == cells.n, cells.c == 0))
    # No model can gain more than the one that gives every count its observed share.
    observed = cells.tasks / cells.tasks_by_length[np.searchsorted(cells.lengths, cells.n)]
    if 2 * (float(cells.tasks @ np.log(np.maximum(observed, 1e-300))) - fit) <= _ASKED_FOR[0]:
        return best
    either = [np.eye(2, dtype=bool)[:, end, None] for end in (0, 1) if ends[end].any()]
    both = [np.ones((2, 1), dtype=bool)] if len(either) == 2 else []
    for tried, asked_for in zip((either, both), _ASKED_FOR, strict=True):
        models = [_with_ends(cells, ends & at, best) for at in tried]
        gained = [_fit(cells, m.a, m.b, np.array([m.solid, m.broken])) - fit for m in models]
        if not models or 2 * max(gained) <= asked_for:
            break
        best = models[int(np.argmax(gained))]
        fit += max(gained)
    return best


def log_chance(n: Floats, c: Floats, a: Floats, b: Floats) -> Floats:
    """Ln of the beta-binomial chance of each count of passes, given the runs."""
    ways = special.gammaln(n + 1) - special.gammaln(c + 1) - special.gammaln(n - c + 1)
    return np.asarray(ways + special.betaln(a + c, b + n - c) - special.betaln(a, b))


def _first_reach(cells: Cells, likelihood: Likelihood, fitted: Floats) -> Floats:
    """How far the first grid reaches: many tasks leave little doubt about their prior."""
    if cells.task_count < _MANY_TASKS:
        return np.full(2, _FIRST_REACH)
    # The inverse of the observed information.
    down, off, right = (-second for second in likelihood.at(0, *fitted.tolist())[3:])
    variance = np.array((right, down)) / max(down * right - off**2, 1e-12)
    return np.asarray(np.minimum(_STANDARD_ERRORS * np.sqrt(np.abs(variance)), _FIRST_REACH))


def _around(fitted: Floats, limits: tuple[Range, Range], reach: Floats) -> tuple[Range, Range]:
    """Some way to either side of the fitted prior, in logit of the mean and log precision."""
    if fitted[1] > limits[1][1] - reach[1]:
        return limits  # where tasks may be all alike, any large precision is possible
    low, high = np.transpose(limits)
    inside = np.clip(fitted, low, high)
    lows, highs = np.maximum(inside - reach, low), np.minimum(inside + reach, high)
    return (float(lows[0]), float(highs[0])), (float(lows[1]), float(highs[1]))


def _spills(weight: Floats, ranges: tuple[Range, Range], limits: tuple[Range, Range]) -> bool:
    """Whether the grid ends, inside its limits, at a place that still has weight."""
    sides = (weight[0], weight[-1]), (weight[:, 0], weight[:, -1])
    return any(
        end != limit and side.sum() > _NEGLIGIBLE
        for axis, reached, limit_ in zip(sides, ranges, limits, strict=True)
        for side, end, limit in zip(axis, reached, limit_, strict=True)
    )


def _weights(likelihood: Likelihood, logits: Floats, logs: Floats) -> Floats:
    a, b = _grid_shapes(logits, logs)
    s = a + b
    # A uniform mean and a correlation of density 2 (1 - r), in the coordinates of the grid.
    hyperprior = np.log(a / s * (b / s)) + 2 * np.log(s) - 3 * np.log1p(s)
    log = likelihood.value(a, b) + hyperprior
    weight = np.exp(log - log.max())
    return np.asarray((weight / weight.sum()).reshape(logits.size, logs.size))


def _grid_shapes(logits: Floats, logs: Floats) -> tuple[Floats, Floats]:
    logit, log = (axis.ravel() for axis in np.meshgrid(logits, logs, indexing="ij"))
    return _shapes(logit, log)


def _busy(axis: Floats, weight: Floats) -> Range:
    """The stretch of the axis that has weight, and two steps more on either side."""
    where = np.flatnonzero(weight > _NEGLIGIBLE)
    first, last = max(int(where[0]) - 2, 0), min(int(where[-1]) + 2, axis.size - 1)
    return float(axis[first]), float(axis[last])


def _with_ends(cells: Cells, ends: NDArray[np.bool_], start: DifficultyModel) -> DifficultyModel:
    """Shares of tasks at these ends, by expectation and maximisation (Dempster and others 1977)."""
    total = float(cells.task_count)
    shares = 0.5 * (ends * cells.tasks).sum(axis=1) / total
    a, b, rest, likelihood = start.a, start.b, cells, Likelihood(cells)
    for _ in range(_DIFFICULTY_STEPS):
        chance = np.exp(log_chance(cells.n, cells.c, a, b)) * (1 - shares.sum())
        own = np.where(ends, shares[:, None], 0.0)
        taken = own / np.maximum(chance + own.sum(axis=0), 1e-300)
        shares = (taken * cells.tasks).sum(axis=1) / total
        left = cells.tasks * (1 - taken.sum(axis=0))
        rest = Cells(n=cells.n, c=cells.c, tasks=np.maximum(left, 1e-9))
        a, b = refit(likelihood.reweighted(rest.tasks), a, b)
    return DifficultyModel(a=a, b=b, rest=rest, solid=float(shares[0]), broken=float(shares[1]))


def _fit(cells: Cells, a: Floats, b: Floats, shares: Floats) -> float:
    """The log-likelihood of a beta with these shares at 1 and at 0."""
    chance = np.exp(log_chance(cells.n, cells.c, a, b)) * (1 - shares.sum())
    chance += shares[0] * (cells.c == cells.n) + shares[1] * (cells.c == 0)
    return float(cells.tasks @ np.log(np.maximum(chance, 1e-300)))
