"""Which beta priors a suite leaves possible, and how likely each is: a grid with weights."""

from __future__ import annotations

import numpy as np

from passhat.fast_dataclass import dataclass
from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.betabinomial import Likelihood, fit_cells
from passhat.stats.cells import Cells, remembered
from passhat.stats.estimate import Interval

_POINTS = 24
_PASSES = 8
_FILLED = 0.6
_NEGLIGIBLE = 1e-6
_WIDEST_LOGIT = 14.0
_LOOSEST_LOG_PRECISION = -7.0
_FIRST_REACH = 3.0
_MANY_TASKS = 200.0
_STANDARD_ERRORS = 6.0

Range = tuple[float, float]


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


@remembered
def prior_weights(cells: Cells) -> PriorWeights:
    """The posterior over priors: mean uniform, correlation of runs leaning to small.

    A uniform correlation would take a few tasks that all pass for certain: 5 of 5 runs, three
    times, would be called solid.

    The grid starts around the fitted prior and zooms in until the weight fills it: a suite of two
    tasks and one of a million both get about as many points where it matters.
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
        shrink = min(_width(narrower[0]) / _width(logits), _width(narrower[1]) / _width(logs))
        if shrink > _FILLED:
            break
        ranges = narrower
    shapes = _shapes(logits, logs)
    kept = weight.ravel() > _NEGLIGIBLE * weight.max()
    flat = weight.ravel()[kept]
    return PriorWeights(a=shapes[0][kept], b=shapes[1][kept], weight=flat / flat.sum())


def _first_reach(cells: Cells, likelihood: Likelihood, fitted: Floats) -> Floats:
    """How far to look first: many tasks pin their prior down, few hardly do."""
    if cells.task_count < _MANY_TASKS:
        return np.full(2, _FIRST_REACH)
    down, off, right = (-bend for bend in likelihood.at(0, *fitted.tolist())[3:])
    variance = np.array((right, down)) / max(down * right - off**2, 1e-12)
    return np.asarray(np.minimum(_STANDARD_ERRORS * np.sqrt(np.abs(variance)), _FIRST_REACH))


def _around(fitted: Floats, limits: tuple[Range, Range], reach: Floats) -> tuple[Range, Range]:
    """Some way to either side of the fitted prior, in logit of the mean and log precision."""
    if fitted[1] > limits[1][1] - reach[1]:
        return limits  # tasks that may be all alike leave every precision open
    low, high = np.transpose(limits)
    inside = np.clip(fitted, low, high)
    lows, highs = np.maximum(inside - reach, low), np.minimum(inside + reach, high)
    return (float(lows[0]), float(highs[0])), (float(lows[1]), float(highs[1]))


def _spills(weight: Floats, ranges: tuple[Range, Range], limits: tuple[Range, Range]) -> bool:
    """Whether weight lies at an edge of the grid beyond which there is more."""
    sides = (weight[0], weight[-1]), (weight[:, 0], weight[:, -1])
    return any(
        end != limit and side.sum() > _NEGLIGIBLE
        for axis, reached, limit_ in zip(sides, ranges, limits, strict=True)
        for side, end, limit in zip(axis, reached, limit_, strict=True)
    )


def _weights(likelihood: Likelihood, logits: Floats, logs: Floats) -> Floats:
    a, b = _shapes(logits, logs)
    s = a + b
    # A uniform mean and a correlation of density 2 (1 - r), in the coordinates of the grid.
    hyperprior = np.log(a / s * (b / s)) + 2 * np.log(s) - 3 * np.log1p(s)
    log = likelihood.value(a, b) + hyperprior
    weight = np.exp(log - log.max())
    return np.asarray((weight / weight.sum()).reshape(logits.size, logs.size))


def _shapes(logits: Floats, logs: Floats) -> tuple[Floats, Floats]:
    logit, log = (axis.ravel() for axis in np.meshgrid(logits, logs, indexing="ij"))
    return np.exp(log) * special.expit(logit), np.exp(log) * special.expit(-logit)


def _busy(axis: Floats, weight: Floats) -> Range:
    """The stretch of the axis that carries weight, and two steps more on either side."""
    where = np.flatnonzero(weight > _NEGLIGIBLE)
    first, last = max(int(where[0]) - 2, 0), min(int(where[-1]) + 2, axis.size - 1)
    return float(axis[first]), float(axis[last])


def _width(axis: Floats | Range) -> float:
    return float(axis[-1] - axis[0])
