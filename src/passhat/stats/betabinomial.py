"""The task-difficulty model: task i passes a run with chance p_i, and p_i is drawn from a beta."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from passhat.errors import ArgumentError
from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells, count_cells

_STEPS = 200
_TOLERANCE = 1e-7
_LONGEST_STEP = 3.0
# Precisions a + b beyond this many times the longest task cannot be told from identical tasks.
_LARGEST_PRECISION_PER_RUN = 1e4
_SMALLEST_PRECISION = 1e-4
_LARGEST_LOGIT = 30.0
_REMEMBERED_CELLS = 10_000
_BLOCK = 1 << 20


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
        return float(special.betaincc(self.a, self.b, p))


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


def fit_cells(cells: Cells) -> tuple[Floats, Floats]:
    """(a, b) of every suite in `cells`, by damped Newton steps on logit(mean) and log(a + b)."""
    if cells.tasks.ndim == 1 and cells.n.size <= _REMEMBERED_CELLS:
        return _remembered_fit(cells.n.tobytes(), cells.c.tobytes(), cells.tasks.tobytes())
    return _fit(cells)


# A report asks for the prior of the same suite dozens of times, once a number and scope.
@lru_cache(maxsize=32)
def _remembered_fit(n: bytes, c: bytes, tasks: bytes) -> tuple[Floats, Floats]:
    return _fit(Cells(n=np.frombuffer(n), c=np.frombuffer(c), tasks=np.frombuffer(tasks)))


def _fit(cells: Cells) -> tuple[Floats, Floats]:
    likelihood = Likelihood(cells)
    point = likelihood.clipped(_start(cells))
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
    shape = cells.tasks.shape[:-1]
    a, b = _shapes(point)
    return a.reshape(shape), b.reshape(shape)


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
        s = a + b
        value_a, slope_a, bend_a = _gamma_terms(a, self.passes, self._passed[rows])
        value_b, slope_b, bend_b = _gamma_terms(b, self.failures, self._failed[rows])
        value_s, slope_s, bend_s = _gamma_terms(s, self.runs, self._ran[rows])
        slopes = slope_a - slope_s, slope_b - slope_s
        slope, curvature = _in_logit_coordinates(a, b, slopes, (bend_a, bend_b, bend_s))
        return _penalised(a, b, value_a + value_b - value_s, slope, curvature)


def _marginal(values: Floats, tasks: Floats) -> tuple[Floats, Floats]:
    distinct, position = np.unique(values, return_inverse=True)
    order = np.argsort(position, kind="stable")
    starts = np.searchsorted(position[order], np.arange(distinct.size))
    return distinct, np.add.reduceat(tasks[:, order], starts, axis=1)


def _start(cells: Cells) -> Floats:
    """Half a pass and half a failure added, and a middling spread."""
    tasks = cells.tasks.reshape(-1, cells.n.size)
    passes, failures = tasks @ cells.c + 0.5, tasks @ (cells.n - cells.c) + 0.5
    return np.stack((np.log(passes / failures), np.full(len(tasks), np.log(2.0))), axis=-1)


def _shapes(point: Floats) -> tuple[Floats, Floats]:
    precision = np.exp(point[..., 1])
    return precision * special.expit(point[..., 0]), precision * special.expit(-point[..., 0])


def _gamma_terms(x: Floats, counts: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Sum of weight * ln(Gamma(x + count) / Gamma(x)), and its two derivatives in x."""
    shifted, start = x[:, None] + counts, x[:, None]
    terms = (
        special.gammaln(shifted) - special.gammaln(start),
        special.digamma(shifted) - special.digamma(start),
        special.zeta(2, start) - special.zeta(2, shifted),
    )
    value, slope, bend = ((weights * term).sum(axis=-1) for term in terms)
    return value, slope, -bend


def _gamma_sum(x: Floats, counts: Floats, weights: Floats) -> Floats:
    """Sum of weight * ln(Gamma(x + count) / Gamma(x)) for each x, in blocks of bounded memory."""
    block = max(1, _BLOCK // counts.size)
    parts = [x[start : start + block, None] for start in range(0, x.size, block)]
    return np.concatenate(
        [(special.gammaln(part + counts) - special.gammaln(part)) @ weights for part in parts]
    )


def _in_logit_coordinates(
    a: Floats, b: Floats, slopes: tuple[Floats, Floats], bends: tuple[Floats, Floats, Floats]
) -> tuple[Floats, Floats]:
    """The chain rule from (a, b) to (logit mean, log precision)."""
    slope_a, slope_b = slopes
    bend_aa, bend_bb, bend_ab = bends[0] - bends[2], bends[1] - bends[2], -bends[2]
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
