"""The tasks of a suite along a history: old runs compared with new ones, task by task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from passhat.arguments import whole_number
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats, one_of, trial_counts
from passhat.stats.betabinomial import fit_cells
from passhat.stats.cells import count_cells
from passhat.stats.derived_intervals import independent_difference
from passhat.stats.estimate import Estimate, Interval
from passhat.stats.hypergeometric import log_probability
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.passk_noise import beta_moments, run_covariances
from passhat.stats.special import ndtr
from passhat.stats.suite_mean import METRICS, suite_estimate

# Windows times tasks looked at together: bounds the memory, whatever the history.
_BLOCK = 1 << 16
# If the normal law's p is so many times above the line, the exact p is not below it.
_WORTH_A_LOOK = 30
# The law is kept on at least 2^13 points, over all that the difference can be.
_LEAST_BITS = 13
# The rounding error of a transform: smaller chances cannot be told from 0.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class TaskSeries:
    """Runs and passes of every task (columns) at each point of a history (rows), oldest first.

    A task that was not run at a point has 0 runs there. Two stretches are compared over the tasks
    that both ran, each by its own runs: a task that was left out, or is new, changes nothing.
    """

    n: Counts
    c: Counts
    k: int = 1
    metric: str = "pass^k"
    test: ClassVar[str] = "permutation, task by task"

    def __post_init__(self) -> None:
        runs, passes = trial_counts(self.n, self.c)
        if runs.ndim != 2:
            rule = "must have a row for each point and a column for each task"
            raise ArgumentError("n", rule, runs.shape)
        # pass@k of the passes is 1 - pass^k of the failures.
        if one_of("metric", self.metric, METRICS) == "pass@k":
            passes = runs - passes
        object.__setattr__(self, "n", runs)
        object.__setattr__(self, "c", passes)
        object.__setattr__(self, "k", whole_number("k", self.k))

    def __len__(self) -> int:
        return len(self.n)

    @cached_property
    def rate(self) -> TaskSeries:
        """The same history by its pass rate, which shows a change of tasks soonest."""
        passes = self.n - self.c if self.metric == "pass@k" else self.c
        return self if self.k == 1 else TaskSeries(self.n, passes)

    def p_values(self, start: Counts, split: Counts, end: Counts) -> Floats:
        """Two-sided p of [start, split) against [split, end); 1 if no task ran in both.

        If no task changed, which of its runs are the new ones is chance alone, whatever its rate:
        a permutation test.
        """
        windows = zip(start.tolist(), split.tolist(), end.tolist(), strict=True)
        return np.array([self.exact_p(*window) for window in windows])

    def exact_p(self, start: int, split: int, end: int) -> float:
        """The permutation test of [start, split) against [split, end)."""
        old, new = self._counts(start, split), self._counts(split, end)
        both = self._both(old, new)
        counts = (part[both] for part in (*old, *new))
        return permutation_p(*counts, k=self.k)

    def near(
        self, start: Counts, split: Counts, end: Counts, *, below: float
    ) -> Iterator[tuple[int, int, int]]:
        """The windows whose p, by a normal law, is not far above `below`."""
        p = 2 * ndtr(-self.clarity(start, split, end))
        for i in np.flatnonzero(p < _WORTH_A_LOOK * below):
            yield int(start[i]), int(split[i]), int(end[i])

    def clarity(self, start: Counts, split: Counts, end: Counts) -> Floats:
        """How many standard errors apart old and new are, by the noise that posteriors expect."""
        block = max(1, _BLOCK // max(1, self.n.shape[1]))
        found = np.zeros(start.size)
        stretches, which = np.unique(np.column_stack((start, end)), axis=0, return_inverse=True)
        for i, (first, last) in enumerate(stretches.tolist()):
            places = np.flatnonzero(which.ravel() == i)
            for at in range(0, places.size, block):
                part = places[at : at + block]
                found[part] = self._ratio(first, split[part], last)
        return found

    def levels(self, start: int, split: int, end: int) -> tuple[float, float]:
        """The mean over the tasks that both stretches ran, in the old one and in the new."""
        old, new = self._counts(start, split), self._counts(split, end)
        both = self._both(old, new)
        if not both.any():
            return float("nan"), float("nan")
        means = [float(self._values(n, c)[both].mean()) for n, c in (old, new)]
        if self.metric == "pass@k":
            means = [1 - mean for mean in means]
        return means[0], means[1]

    def difference(self, start: int, split: int, end: int, confidence: float) -> Interval:
        """The new mean minus the old one, from the intervals of both for these tasks."""
        old, new = self._counts(start, split), self._counts(split, end)
        both = self._both(old, new)
        sides = [
            suite_estimate(n[both], c[both], k=self.k, confidence=confidence) for n, c in (new, old)
        ]
        found = independent_difference(*sides)
        assert isinstance(found, Estimate), "stretches that are compared share a task"
        assert found.interval is not None, "the default has an interval"
        if self.metric == "pass@k":
            return Interval(-found.interval.high, -found.interval.low)
        return found.interval

    def slope(self, start: int, end: int) -> float:
        """How much the mean moves per logit: of p^k it is k (p^k - p^(k+1))."""
        return self._slope(self._counts(start, end))

    def change(self) -> tuple[float, float]:
        """How much a line through every task moves from the first point to the last; its error.

        One slope for all tasks, each around its own level, a point weighted by its runs; NaN where
        no task was run twice.
        """
        runs = np.where(self.n >= self.k, self.n, 0)
        place = np.linspace(0, 1, len(self.n))[:, None]
        centre = (runs * place).sum(axis=0) / np.maximum(runs.sum(axis=0), 1)
        lever = runs * (place - centre)
        total = self.n.sum(axis=0), self.c.sum(axis=0)
        noise = self._noise(self.n, total, self._prior(0, len(self)))
        leverage = float((lever * (place - centre)).sum())
        if leverage <= 0:
            return float("nan"), float("nan")
        slope = float((lever * self._values(self.n, self.c)).sum()) / leverage
        error = float(np.sqrt((lever**2 * noise).sum())) / leverage
        return (-slope if self.metric == "pass@k" else slope), error

    def days(self, start: int, end: int) -> tuple[Floats, Floats, float]:
        """How far each point lies from its tasks' own levels, its variance from runs, the slope.

        The slope is how much the mean moves per logit: of p^k it is k (p^k - p^(k+1)).
        """
        runs, passes = self.n[start:end], self.c[start:end]
        ran = runs >= self.k
        tasks = np.maximum(ran.sum(axis=1), 1)
        total = self._counts(start, end)
        level = self._values(*total)
        moved = np.where(ran, self._values(runs, passes) - level, 0.0).sum(axis=1) / tasks
        expected = self._noise(runs, total, self._prior(start, end))
        noise = np.where(ran, expected, 0.0).sum(axis=1) / tasks**2
        some = ran.any(axis=1)
        return moved[some], noise[some], self._slope(total)

    def days_between(self, start: int, split: int, end: int) -> tuple[float, float, float, float]:
        """Old against new: the difference, its variance from runs, the slope, 1/old + 1/new."""
        old, new = self._counts(start, split), self._counts(split, end)
        both = self._both(old, new)
        shared = max(1, int(both.sum()))
        pooled = self._counts(start, end)
        moved = float(np.where(both, self._values(*new) - self._values(*old), 0).sum()) / shared
        prior = self._prior(start, end)
        noise = self._noise(old[0], pooled, prior) + self._noise(new[0], pooled, prior)
        variance = float(np.where(both, noise, 0).sum()) / shared**2
        days = 1 / (split - start) + 1 / (end - split)
        return moved, variance, self._slope(pooled), days

    def _slope(self, total: tuple[Counts, Counts]) -> float:
        runs, passes = total
        able = runs > self.k
        if not able.any():
            return 0.0
        n, c, k = runs[able], passes[able], self.k
        fall = share_of_passing_subsets(n, c, k) - share_of_passing_subsets(n, c, k + 1)
        return float(k * fall.mean())

    def _prior(self, start: int, end: int) -> tuple[Floats, Floats]:
        """The beta prior of the tasks' rates in a stretch, fitted to that stretch alone.

        Fitted to the whole history it would be wrong on both sides of a change, and use later runs.
        """
        if (start, end) not in self._priors:
            cells = count_cells(*self._counts(start, end)).having(1)
            even = np.array(1.0), np.array(1.0)
            self._priors[start, end] = fit_cells(cells) if cells.n.size else even
        return self._priors[start, end]

    @cached_property
    def _priors(self) -> dict[tuple[int, int], tuple[Floats, Floats]]:
        return {}

    @cached_property
    def _running(self) -> tuple[Counts, Counts]:
        """Sums of the first 0, 1, 2, ... points."""
        empty = np.zeros((1, self.n.shape[1]), dtype=np.int64)
        sums = [np.concatenate((empty, np.cumsum(x, axis=0))) for x in (self.n, self.c)]
        return sums[0], sums[1]

    def _counts(self, start: Counts | int, end: Counts | int) -> tuple[Counts, Counts]:
        runs, passes = self._running
        return runs[end] - runs[start], passes[end] - passes[start]

    def _ratio(self, start: int, split: Counts, end: int) -> Floats:
        old, new = self._counts(start, split), self._counts(split, end)
        both, pooled = self._both(old, new), self._counts(start, end)
        prior = self._prior(start, end)
        moved = (np.where(both, self._values(*new) - self._values(*old), 0)).sum(axis=1)
        noise = self._noise(old[0], pooled, prior) + self._noise(new[0], pooled, prior)
        variance = np.where(both, noise, 0).sum(axis=1)
        error = np.sqrt(variance)
        ratio = np.divide(moved, error, out=np.zeros(moved.shape), where=error > 0)
        return np.asarray(np.abs(ratio))

    def _both(self, old: tuple[Counts, Counts], new: tuple[Counts, Counts]) -> NDArray[np.bool_]:
        return np.asarray((old[0] >= self.k) & (new[0] >= self.k))

    def _values(self, n: Counts, c: Counts) -> Floats:
        """pass^k of each; callers mask out those with too few runs."""
        return share_of_passing_subsets(np.maximum(n, self.k), c, self.k)

    def _noise(
        self, n: Counts, known: tuple[Counts, Counts], prior: tuple[Floats, Floats]
    ) -> Floats:
        """The variance of pass^k of n runs of a task whose rate is estimated from other counts."""
        a, b = prior
        runs, passes = (np.broadcast_to(part, n.shape).ravel() for part in known)
        moments = beta_moments(a + passes, a + b + runs, 2 * self.k)
        able = np.maximum(n, self.k).astype(np.float64).ravel()
        noise: Floats = run_covariances(able, [(self.k, self.k)], moments)[0]
        return noise.reshape(n.shape)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Law:
    """The chance of each number of new passes from `fewest` on, and the difference it makes."""

    chance: Floats
    moved: Floats
    fewest: int


def permutation_p(
    n_old: Counts, c_old: Counts, n_new: Counts, c_new: Counts, *, k: int = 1
) -> float:
    """Two-sided p of the mean pass^k of new runs against old ones, task by task.

    Given how many of a task's runs passed in all, the passes among the new ones are
    hypergeometric if the task did not change; the sum over tasks of new minus old then has a law
    that is known, and is computed on a fine grid by multiplying Fourier transforms.

    >>> round(permutation_p(*(np.array(x) for x in ([10], [9], [10], [3]))), 4)  # Fisher's
    0.0198
    """
    kinds, place, tasks = np.unique(
        np.column_stack((n_old, n_new, c_old + c_new)),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    laws = [_law(old, new, passes, k) for old, new, passes in kinds.tolist()]
    furthest = sum(float(np.abs(law.moved).max()) * m for law, m in zip(laws, tasks, strict=True))
    if furthest == 0:
        return 1.0
    points = 1 << max(_LEAST_BITS, (8 * len(n_old)).bit_length())
    # Rounding may add half a step per task, and what falls off one end would appear at the other.
    step = furthest / (points // 2 - 1 - len(n_old) / 2)
    transform, observed = np.ones(points // 2 + 1, dtype=complex), 0
    for i, (law, times) in enumerate(zip(laws, tasks.tolist(), strict=True)):
        steps = np.rint(law.moved / step).astype(np.int64)
        grid = np.bincount(steps % points, weights=law.chance, minlength=points)
        transform *= np.fft.rfft(grid) ** times
        observed += int(steps[c_new[place == i] - law.fewest].sum())
    reach = np.abs(np.fft.fftfreq(points, 1 / points))
    total = np.fft.irfft(transform, points)
    # Values that differ by rounding alone are a tie, and a tie counts as at least as extreme.
    tie = 2 * np.sqrt(len(n_old))
    return float(np.clip(total[reach >= abs(observed) - tie].sum(), _ROUNDING, 1.0))


def _law(n_old: int, n_new: int, passes: int, k: int) -> _Law:
    """The possible passes of the new runs if chance alone divides them, and what each changes."""
    fewest = max(0, passes - n_old)
    x = np.arange(fewest, min(n_new, passes) + 1)
    new = share_of_passing_subsets(np.full(x.size, n_new), x, k)
    old = share_of_passing_subsets(np.full(x.size, n_old), passes - x, k)
    chance = np.exp(log_probability(x, n_new, n_old, passes))
    return _Law(chance=chance, moved=new - old, fewest=fewest)
