"""How hard the tasks of a suite are: possible beta priors, and shares of tasks at 0 or 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from passhat.dataclass import dataclass
from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.betabinomial import Likelihood, fit_cells, refit
from passhat.stats.cells import Cells, remembered
from passhat.stats.estimate import Interval

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
_STEPS = 12


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


@remembered
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
        shrink = min(_width(narrower[0]) / _width(logits), _width(narrower[1]) / _width(logs))
        if shrink > _FILLED:
            break
        ranges = narrower
    shapes = _shapes(logits, logs)
    kept = weight.ravel() > _NEGLIGIBLE * weight.max()
    flat = weight.ravel()[kept]
    return PriorWeights(a=shapes[0][kept], b=shapes[1][kept], weight=flat / flat.sum())


@remembered
def fit_with_atoms(cells: Cells) -> DifficultyModel:
    """The beta fitted to one suite, and the shares of tasks at its ends that it cannot explain.

    One end is tried alone first: a beta close to 1 explains tasks that always passed, and a share
    of such tasks would only replace it.
    """
    a, b = fit_cells(cells)
    best, fit = DifficultyModel(a=a, b=b, rest=cells), _fit(cells, a, b, np.zeros(2))
    ends = np.stack((cells.c == cells.n, cells.c == 0))
    # No model can gain more than the one that gives every count its observed share.
    if 2 * (float(cells.tasks @ _observed(cells)) - fit) <= _ASKED_FOR[0]:
        return best
    either = [np.eye(2, dtype=bool)[:, end, None] for end in (0, 1) if ends[end].any()]
    both = [np.ones((2, 1), dtype=bool)] if len(either) == 2 else []
    for tried, asked_for in zip((either, both), _ASKED_FOR, strict=True):
        found = [_with_ends(cells, ends & at, best) for at in tried]
        gained = [
            _fit(cells, one.a, one.b, np.array([one.solid, one.broken])) - fit for one in found
        ]
        if not found or 2 * max(gained) <= asked_for:
            break
        best = found[int(np.argmax(gained))]
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
    down, off, right = (-bend for bend in likelihood.at(0, *fitted.tolist())[3:])
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
    """The stretch of the axis that has weight, and two steps more on either side."""
    where = np.flatnonzero(weight > _NEGLIGIBLE)
    first, last = max(int(where[0]) - 2, 0), min(int(where[-1]) + 2, axis.size - 1)
    return float(axis[first]), float(axis[last])


def _width(axis: Floats | Range) -> float:
    return float(axis[-1] - axis[0])


def _with_ends(cells: Cells, ends: NDArray[np.bool_], start: DifficultyModel) -> DifficultyModel:
    """Shares of tasks at these ends, by expectation and maximisation (Dempster and others 1977)."""
    total = float(cells.task_count)
    shares = 0.5 * (ends * cells.tasks).sum(axis=1) / total
    a, b, rest, likelihood = start.a, start.b, cells, Likelihood(cells)
    for _ in range(_STEPS):
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


def _observed(cells: Cells) -> Floats:
    """Ln of the share that each count has among the tasks with as many runs."""
    places = np.searchsorted(cells.lengths, cells.n)
    return np.log(np.maximum(cells.tasks / cells.tasks_by_length[places], 1e-300))
