"""A rate along a history, as passes of runs or as means with errors; old tested against new."""

from __future__ import annotations

from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from passhat.dataclass import short_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats, float_array, trial_counts
from passhat.stats.estimate import Interval
from passhat.stats.hypergeometric import upper_tail
from passhat.stats.proportions import proportion_bounds
from passhat.stats.special import ndtr, ndtri

Number = TypeVar("Number", np.int64, np.float64)


@short_dataclass(frozen=True, slots=True, eq=False)
class PassSeries:
    """Runs and passes at each point of a history (a commit, a day), oldest first.

    Pooled counts of tasks that differ in difficulty vary less than a binomial: alarms are then
    rarer than stated. A MeanSeries with the error of "this suite" is sharper.
    """

    n: Counts
    c: Counts
    test: ClassVar[str] = "Fisher exact"

    def __post_init__(self) -> None:
        runs, passes = trial_counts(self.n, self.c)
        if runs.ndim != 1 or (runs == 0).any():
            raise ArgumentError("n", "must be one number >= 1 per point of the history", self.n)
        object.__setattr__(self, "n", runs)
        object.__setattr__(self, "c", passes)

    def __len__(self) -> int:
        return int(self.n.size)

    def p_values(self, start: Counts, split: Counts, end: Counts) -> Floats:
        """Fisher's exact two-sided p of [start, split) against [split, end)."""
        runs, passes = _running(self.n), _running(self.c)
        n_old, n_new = runs[split] - runs[start], runs[end] - runs[split]
        c_old, c_new = passes[split] - passes[start], passes[end] - passes[split]
        total = c_old + c_new
        rarer = np.minimum(
            upper_tail(c_new, n_new, n_old, total), upper_tail(c_old, n_old, n_new, total)
        )
        return np.asarray(np.minimum(1.0, 2 * rarer))

    def clarity(self, start: Counts, split: Counts, end: Counts) -> Floats:
        """How clearly old and new differ: larger is clearer."""
        return -self.p_values(start, split, end)

    def levels(self, start: int, split: int, end: int) -> tuple[float, float]:
        """The rate of [start, split) and that of [split, end)."""
        sides = slice(start, split), slice(split, end)
        old, new = (float(self.c[side].sum() / self.n[side].sum()) for side in sides)
        return old, new

    def difference(self, start: int, split: int, end: int, confidence: float) -> Interval:
        """Newcombe's (1998) interval for the new rate minus the old one."""
        sides = [slice(start, split), slice(split, end)]
        n = np.array([self.n[side].sum() for side in sides])
        c = np.array([self.c[side].sum() for side in sides])
        low, high = proportion_bounds(c, n, confidence=confidence)
        old, new = c / n
        down = np.hypot(new - low[1], high[0] - old)
        up = np.hypot(high[1] - new, old - low[0])
        return Interval(float(new - old - down), float(new - old + up))


@short_dataclass(frozen=True, slots=True, eq=False)
class MeanSeries:
    """A value and its standard error at each point of a history, oldest first."""

    value: Floats
    error: Floats
    test: ClassVar[str] = "normal"

    def __post_init__(self) -> None:
        value, error = float_array("value", self.value), float_array("error", self.error)
        if value.ndim != 1 or value.shape != error.shape or not np.isfinite(value).all():
            raise ArgumentError("value", "must be one finite number per point", self.value)
        if not (np.isfinite(error) & (error > 0)).all():
            rule = "must be above 0 at every point; if nothing varies, use a PassSeries"
            raise ArgumentError("error", rule, self.error)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "error", error)

    def __len__(self) -> int:
        return int(self.value.size)

    def p_values(self, start: Counts, split: Counts, end: Counts) -> Floats:
        """Two-sided normal p of [start, split) against [split, end), weighted by precision."""
        return np.asarray(2 * ndtr(-self.clarity(start, split, end)))

    def clarity(self, start: Counts, split: Counts, end: Counts) -> Floats:
        """How many standard errors apart old and new are."""
        weight = 1 / self.error**2
        weights, sums = _running(weight), _running(weight * self.value)
        w_old, w_new = weights[split] - weights[start], weights[end] - weights[split]
        old = (sums[split] - sums[start]) / w_old
        new = (sums[end] - sums[split]) / w_new
        return np.asarray(np.abs(new - old) / np.sqrt(1 / w_old + 1 / w_new))

    def levels(self, start: int, split: int, end: int) -> tuple[float, float]:
        """The mean of [start, split) and that of [split, end), weighted by precision."""
        sides, weight = (slice(start, split), slice(split, end)), 1 / self.error**2
        old, new = (float(weight[s] @ self.value[s] / weight[s].sum()) for s in sides)
        return old, new

    def difference(self, start: int, split: int, end: int, confidence: float) -> Interval:
        weight = 1 / self.error**2
        variance = 1 / weight[start:split].sum() + 1 / weight[split:end].sum()
        half = ndtri(0.5 + confidence / 2) * np.sqrt(variance)
        old, new = self.levels(start, split, end)
        middle = new - old
        return Interval(float(middle - half), float(middle + half))


def _running(values: NDArray[Number]) -> NDArray[Number]:
    """Sums of the first 0, 1, 2, ... values."""
    return np.concatenate((np.zeros(1, dtype=values.dtype), np.cumsum(values)))
