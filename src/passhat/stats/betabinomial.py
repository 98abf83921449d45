"""The task-difficulty model: task i passes a run with chance p_i, and p_i is drawn from a beta."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.errors import ArgumentError
from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells, count_cells, remembered

_STEPS = 200
_TOLERANCE = 1e-7
_LONGEST_STEP = 3.0
# Precisions a + b beyond this many times the longest task cannot be told from identical tasks.
_LARGEST_PRECISION_PER_RUN = 1e4
_SMALLEST_PRECISION = 1e-4
_LARGEST_LOGIT = 30.0
_BLOCK = 1 << 20
_SHIFTS = 8
# Natural logarithm of how small the interpolation's error shall be.
_DIGITS = 34.0
# Values of ln Gamma saved, below which interpolating saves no time.
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
    """P(more than p) under Beta(a, b): by symmetry, as scipy's own complement is 50 times slower.

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
        raise ArgumentError("n", "must hold at least one task with a run", 0)
    a, b = fit_cells(cells)
    return BetaPrior(a=float(a), b=float(b))


@remembered
def fit_cells(cells: Cells) -> tuple[Floats, Floats]:
    """(a, b) of every suite in `cells`, by damped Newton steps on logit(mean) and log(a + b)."""
    a, b = _shapes(_climb(Likelihood(cells), _start(cells)))
    shape = cells.tasks.shape[:-1]
    return a.reshape(shape), b.reshape(shape)


def refit_cells(cells: Cells, a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The same for one suite whose (a, b) are known to lie close to these."""
    start = np.stack((np.log(a / b), np.log(a + b)), axis=-1)
    first, second = _shapes(_climb(Likelihood(cells), start.reshape(1, 2)))
    return first.reshape(()), second.reshape(())


def _climb(likelihood: Likelihood, start: Floats) -> Floats:
    """The likeliest point, by damped Newton steps."""
    point = likelihood.clipped(start)
    active = np.ones(point.shape[0], dtype=bool)
    damping = np.full(point.shape[0], 1e-3)
    best, slope, curvature = likelihood.at(point, active)
    for _ in range(_STEPS):
        rows = np.flatnonzero(active)
        trial = likelihood.clipped(point[rows] + _step(slope[rows], curvature[rows], damping[rows]))
        value, new_slope, new_curvature = likelihood.at(trial, active)
        better = value >= best[rows]
        moved = np.abs(trial - point[rows]).max(axis=-1)
        taken = rows[better]
        point[taken], best[taken] = trial[better], value[better]
        slope[taken], curvature[taken] = new_slope[better], new_curvature[better]
        damping[rows] *= np.where(better, 0.1, 10.0)
        active[rows] = (moved > _TOLERANCE) & (damping[rows] < 1e12)
        if not active.any():
            break
    return point


class Likelihood:
    """The penalised log-likelihood of every suite in some cells, with its slope and curvature.

    ln Gamma separates over passes, failures and runs, so the cost is that of their distinct
    values (three times the longest task at most), however many cells and tasks there are.
    """

    def __init__(self, cells: Cells) -> None:
        tasks = cells.tasks.reshape(-1, cells.n.size)
        self.passes, self._passed = _marginal(cells.c, tasks)
        self.failures, self._failed = _marginal(cells.n - cells.c, tasks)
        self.runs, self._ran = _marginal(cells.n, tasks)
        self._counts = np.concatenate((self.passes, self.failures, self.runs))
        self._weights = np.concatenate((self._passed, self._failed, self._ran), axis=1)
        self._sizes = [self.passes.size, self.failures.size, self.runs.size]
        self._starts = np.cumsum([0, *self._sizes[:-1]])
        self.log_most = np.log(_LARGEST_PRECISION_PER_RUN * max(1.0, float(cells.n.max())))

    def clipped(self, point: Floats) -> Floats:
        """`point` inside the box where the likelihood can be computed."""
        low = [-_LARGEST_LOGIT, np.log(_SMALLEST_PRECISION)]
        return np.clip(point, low, [_LARGEST_LOGIT, self.log_most])

    def value(self, a: Floats, b: Floats) -> Floats:
        """The log-likelihood (without penalty) of the first suite at each of many (a, b)."""
        parts = (
            (a, self.passes, self._passed[0]),
            (b, self.failures, self._failed[0]),
            (a + b, self.runs, -self._ran[0]),
        )
        return np.asarray(sum(_gamma_sum(x, counts, weights) for x, counts, weights in parts))

    def at(self, point: Floats, rows: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
        """Value, slope and curvature at a (logit mean, log precision) per suite in `rows`."""
        a, b = _shapes(point)
        value, slope, bend = self._gamma_terms(np.stack((a, b, a + b), axis=-1), rows)
        slopes = slope[:, 0] - slope[:, 2], slope[:, 1] - slope[:, 2]
        slope, curvature = _in_logit_coordinates(a, b, slopes, bend)
        return _penalised(a, b, value[:, 0] + value[:, 1] - value[:, 2], slope, curvature)

    def _gamma_terms(self, x: Floats, rows: NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
        """Sums of weight * ln(Gamma(x + count) / Gamma(x)), and their two derivatives in x.

        The columns of x and of each sum are for passes, failures and runs.
        """
        starts = self._starts
        shifted = np.repeat(x, self._sizes, axis=-1) + self._counts
        weights = self._weights[rows]
        whole = np.add.reduceat(weights, starts, axis=-1)
        value, slope, bend = (
            np.add.reduceat(weights * term(shifted), starts, axis=-1) - whole * term(x)
            for term in (special.gammaln, special.digamma, _trigamma)
        )
        return value, slope, bend


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


def _shapes(point: Floats) -> tuple[Floats, Floats]:
    precision = np.exp(point[..., 1])
    return precision * special.expit(point[..., 0]), precision * special.expit(-point[..., 0])


def _trigamma(x: Floats) -> Floats:
    """The second derivative of ln Gamma (Abramowitz and Stegun 6.4.12, shifted to x >= 8).

    Scipy's zeta(2, x) is several times slower, and Newton's steps need no more digits.
    """
    small = x < 2 * _SHIFTS
    near = np.zeros(x.shape)
    near[small] = (1 / (x[small][:, None] + np.arange(float(_SHIFTS))) ** 2).sum(axis=-1)
    far = 1 / (x + _SHIFTS * small)
    square = far * far
    tail = 1 + far / 2 + square * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30)))
    return np.asarray(near + far * tail)


def _gamma_sum(x: Floats, counts: Floats, weights: Floats) -> Floats:
    """Sum of weight * ln(Gamma(x + count) / Gamma(x)) for each x.

    Of many counts at many x the sum is a smooth function of ln x, whose nearest singularities
    lie at a distance pi from the real line: some Chebyshev points pin it down to rounding.
    """
    logs = np.log(x)
    middle, half = (logs.max() + logs.min()) / 2, max((logs.max() - logs.min()) / 2, 1e-9)
    reach = np.pi / half
    points = int(_DIGITS / np.log(reach + np.sqrt(reach**2 + 1))) + 4
    if counts.size * (x.size - points) < _WORTH_INTERPOLATING:
        return _gamma_sums(x, counts, weights)
    angle = np.pi * (np.arange(points) + 0.5) / points
    values = _gamma_sums(np.exp(middle + half * np.cos(angle)), counts, weights)
    order = np.arange(points)
    series = 2 / points * np.cos(np.outer(order, angle)) @ values
    series[0] /= 2
    return _chebyshev(series, np.clip((logs - middle) / half, -1, 1))


def _chebyshev(series: Floats, x: Floats) -> Floats:
    """The sum of series[k] T_k(x), by Clenshaw's recurrence (1955)."""
    last = before = np.zeros(x.shape)
    for part in series[:0:-1]:
        last, before = part + 2 * x * last - before, last
    return np.asarray(series[0] + x * last - before)


def _gamma_sums(x: Floats, counts: Floats, weights: Floats) -> Floats:
    """The sums one by one, in blocks of bounded memory."""
    block = max(1, _BLOCK // counts.size)
    parts = [x[start : start + block, None] for start in range(0, x.size, block)]
    return np.concatenate(
        [(special.gammaln(part + counts) - special.gammaln(part)) @ weights for part in parts]
    )


def _in_logit_coordinates(
    a: Floats, b: Floats, slopes: tuple[Floats, Floats], bend: Floats
) -> tuple[Floats, Floats]:
    """The chain rule from (a, b) to (logit mean, log precision)."""
    slope_a, slope_b = slopes
    bend_aa, bend_bb, bend_ab = bend[:, 0] - bend[:, 2], bend[:, 1] - bend[:, 2], -bend[:, 2]
    mean = a / (a + b)
    turn = a * (1 - mean)
    slope = np.stack((turn * (slope_a - slope_b), a * slope_a + b * slope_b), axis=-1)
    second = (1 - 2 * mean) * turn * (slope_a - slope_b)
    mean_mean = turn**2 * (bend_aa - 2 * bend_ab + bend_bb) + second
    mean_size = turn * (a * bend_aa + (b - a) * bend_ab - b * bend_bb) + slope[:, 0]
    size_size = a**2 * bend_aa + 2 * a * b * bend_ab + b**2 * bend_bb + slope[:, 1]
    rows = np.stack((mean_mean, mean_size, mean_size, size_size), axis=-1)
    return slope, rows.reshape(-1, 2, 2)


def _penalised(
    a: Floats, b: Floats, value: Floats, slope: Floats, curvature: Floats
) -> tuple[Floats, Floats, Floats]:
    """Add ln sqrt(mean (1 - mean)) + ln(1 - correlation): worth half a task, gone as T grows."""
    s = a + b
    mean, loose = a / s, s / (1 + s)
    value = value + 0.5 * (np.log(mean) + np.log(b / s)) + np.log(loose)
    slope, curvature = slope.copy(), curvature.copy()
    slope[:, 0] += 0.5 - mean
    slope[:, 1] += 1 - loose
    curvature[:, 0, 0] -= mean * (1 - mean)
    curvature[:, 1, 1] -= loose * (1 - loose)
    return value, slope, curvature


def _step(slope: Floats, curvature: Floats, damping: Floats) -> Floats:
    """Newton's step on a curvature made negative definite, cut to a sane length."""
    down = -curvature
    trace = down[:, 0, 0] + down[:, 1, 1]
    gap = np.hypot(down[:, 0, 0] - down[:, 1, 1], 2 * down[:, 0, 1])
    least = (trace - gap) / 2
    lift = np.maximum(0, 1e-9 - least) * 1.5 + damping * np.maximum(np.abs(trace), 1e-9)
    first, last, off = down[:, 0, 0] + lift, down[:, 1, 1] + lift, down[:, 0, 1]
    scale = first * last - off**2
    step = np.stack(
        (last * slope[:, 0] - off * slope[:, 1], first * slope[:, 1] - off * slope[:, 0]), axis=-1
    )
    return np.clip(step / scale[:, None], -_LONGEST_STEP, _LONGEST_STEP)
