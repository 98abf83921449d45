"""Closed-form intervals of a suite's mean pass^k or score, many suites at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from hashlib import sha256
from typing import TypeVar

import numpy as np

from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.estimate import TASKS_LIKE_THESE, THIS_SUITE, Interval, Scope
from passhat.stats.passk import observed_noise_and_values, share_of_passing_subsets
from passhat.stats.population_bounds import population_bounds
from passhat.stats.proportions import Bounds, wilson_bounds
from passhat.stats.sufficient_statistics import Cells, cached, stack
from passhat.stats.suite_bounds import shares_of_cells, suite_bounds

Some = TypeVar("Some")

# So many coin flips that Wilson's interval is a point: constant scores are worth this many.
_NO_NOISE = 1e12
# With so small a tail scipy returns nan for some beta quantiles, all of them below 1e-12.
_NEXT_TO_NOTHING = 1e-12
# Up to so many cells, of tasks with so few runs, most of the time is the overhead of numpy calls:
# pass@k computed together with pass^k costs little more.
_FEW_CELLS, _FEW_RUNS = 64, 128
# What so many suites take at once is a few megabytes.
_SUITES_AT_ONCE = 64
# An end so close to a line may lie on its other side by rounding.
_CLOSE_TO_LINE = 1e-6
# Halfway between Clopper-Pearson (0) and Jeffreys (1/2): close to mid-p, and in closed form.
_BETWEEN = 0.25


class SuiteCurve:
    """A suite's mean pass^k for several k, and its default intervals.

    Each part is computed when first used and serves every scope and confidence; k runs along the
    last axis. If `mirrored`, everything is about failures in place of passes.
    """

    def __init__(self, cells: Cells, ks: Sequence[int], *, mirrored: bool = False) -> None:
        self.cells, self.ks = cells.mirrored() if mirrored else cells, tuple(ks)
        self._given, self._side = cells, int(mirrored)

    @cached_property
    def mean(self) -> Floats:
        """The mean over tasks."""
        return np.asarray(self.cells.tasks @ self._values.T / self.cells.task_count[..., None])

    def bounds(self, scope: Scope, confidence: float) -> Bounds:
        """The default intervals for the scope."""
        if len(self.ks) > 1 and _is_small(self._given):
            # pass@1 is pass^1, which a report computes once: with 1 in both lists, pass^k and
            # pass@k have the same cache key.
            every = tuple(sorted({1, *self.ks}))
            asked = [every.index(k) for k in self.ks]
            known = _computed_together.get((*_key(self.cells), every, scope, confidence))
            if known is None:
                low, high = _both_ways(self._given, every, scope, confidence)
                known = low[self._side], high[self._side]
            return known[0][asked], known[1][asked]
        return _bounds(self.cells, self.ks, scope, confidence)

    @cached_property
    def _values(self) -> Floats:
        """pass^k of each cell, a row for each k."""
        return shares_of_cells(self.cells, self.ks)


# Of the many suites that were asked about last; what it holds is replaced, never added to.
_computed_together: dict[tuple[object, ...], Bounds] = {}


def compute_together(
    suites: Iterable[tuple[Cells, Sequence[int]]],
    confidence: float,
    *,
    mirrored: bool = False,
    added: bool = False,
) -> None:
    """The default intervals of many suites, each for its k, for `SuiteCurve` to find.

    Of a small suite most of the time is the overhead of numpy calls. A suite gets the interval that
    it would get alone, but for rounding. `mirrored` intervals are those of pass@k. They take the
    place of those that are known, if they are not `added`.
    """
    alike = defaultdict[tuple[tuple[int, ...], bytes], list[Cells]](list)
    for cells, ks in suites:
        reached = np.searchsorted(cells.n, ks)
        for fewer in set(reached.tolist()) - {cells.n.size}:
            shared = [k for k, place in zip(ks, reached, strict=True) if place == fewer]
            kept = cells.having(min(shared))
            if len(shared) > 1 and kept.task_count > 1 and _is_small(kept):
                side = kept.mirrored() if mirrored else kept
                alike[tuple(sorted({1, *shared})), kept.lengths.tobytes()].append(side)
    if not added:
        _computed_together.clear()
    for (every, _), many in alike.items():
        for block in _blocks(many):
            together = stack(*block)
            for scope in (THIS_SUITE, TASKS_LIKE_THESE):
                low, high = _bounds(together, every, scope, confidence)
                for place, cells in enumerate(block):
                    key = (*_key(cells), every, scope, confidence)
                    _computed_together[key] = low[place], high[place]


def lie_below(suites: Sequence[Cells], k: int, line: float, confidence: float) -> set[int]:
    """The places of suites whose interval of pass^k for these tasks surely lies below a line.

    On which side of a line an end lies is known in one step; the end itself takes about eight.
    """
    alike, below = defaultdict[bytes, list[tuple[int, Cells]]](list), set[int]()
    for place, cells in enumerate(suites):
        kept = cells.having(k)
        if kept.n.size and kept.task_count > 1 and _is_small(kept):
            alike[kept.lengths.tobytes()].append((place, kept))
    for many in alike.values():
        for block in _blocks(many):
            together = stack(*(cells for _, cells in block))
            high = suite_bounds(together, (k,), confidence, (True,), line - _CLOSE_TO_LINE)[1]
            sure = high[:, 0] < line - _CLOSE_TO_LINE
            below |= {place for (place, _), lies in zip(block, sure.tolist(), strict=True) if lies}
    return below


def _blocks(many: Sequence[Some]) -> Iterator[Sequence[Some]]:
    return (many[start : start + _SUITES_AT_ONCE] for start in range(0, len(many), _SUITES_AT_ONCE))


def _key(cells: Cells) -> tuple[bytes, bytes, bytes]:
    return cells.n.tobytes(), cells.c.tobytes(), cells.tasks.tobytes()


def wilson_suite_bounds(
    mean: Floats, noise: Floats, *, tasks: float, runs: float, confidence: float
) -> Bounds:
    """For "this suite": Wilson on the number of coin flips whose mean would be as noisy.

    `noise` is the variance of the mean pass rate when only the `runs` are drawn again.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = mean * (1 - mean) / noise
    effective = np.where(noise > 0, np.clip(effective, tasks, _NO_NOISE), _NO_NOISE)
    quantile = student_quantile(np.array(max(runs - tasks, tasks - 1)), confidence)
    low, high = guarded_wilson(mean, effective, quantile)
    stray_low = rare_failure_bound(mean, noise, runs, quantile, confidence)
    stray_high = 1 - rare_failure_bound(1 - mean, noise, runs, quantile, confidence)
    low, high = np.minimum(low, stray_low), np.maximum(high, stray_high)
    # Without a failure, or without a pass, the bound is exact.
    exact = _tail(confidence) ** (1 / runs)
    return np.where(mean >= 1, exact, low), np.where(mean <= 0, 1 - exact, high)


def guarded_wilson(share: Floats, n: Floats, quantile: Floats) -> Bounds:
    """Wilson, with the end near 0 or 1 no closer than an exact-like bound allows.

    Near the boundary Wilson's short end is too short (it covers 0.84 where 0.95 is promised:
    Brown, Cai and DasGupta 2001); the long end is fine and is kept.
    """
    low, high = wilson_bounds(share, n, quantile)
    tail = special.ndtr(-np.asarray(quantile))
    rarer = np.minimum(share, 1 - share)
    near = special.betaincinv(n * rarer + _BETWEEN, n * (1 - rarer) + 1 - _BETWEEN, tail)
    near = np.where((tail < _NEXT_TO_NOTHING) & np.isnan(near), 0.0, near)
    low = np.where((share > 0) & (share < 0.5), np.minimum(low, near), low)
    high = np.where((share < 1) & (share > 0.5), np.maximum(high, 1 - near), high)
    return low, high


def student_quantile(freedom: Floats, confidence: float) -> Floats:
    """The two-sided t quantile; one degree of freedom at least."""
    return np.asarray(special.stdtrit(np.maximum(freedom, 1), 1 - _tail(confidence)))


def rare_failure_bound(
    mean: Floats, noise: Floats, runs: float, quantile: Floats, confidence: float
) -> Floats:
    """How low the mean may lie when few stray runs were seen: Poisson-like, on the log scale.

    One more stray run moves the mean by a share 1 / runs. Without any noise seen this is
    mean * (a/2)^(1/runs), the exact bound after runs without a failure; with much, mean - t * sd.
    """
    half = -np.log(_tail(confidence)) / 2 * (1 / runs)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        reach = half + np.hypot(quantile * np.sqrt(noise) / mean, half)
    return np.where(mean > 0, mean * np.exp(-reach), 0.0)


def bounds_both_ways(
    cells: Cells, ks: Sequence[int], scope: Scope, confidences: tuple[float, float]
) -> Bounds:
    """The intervals of one suite, and in a second row of the mirrored one at its confidence."""
    if scope == THIS_SUITE and _is_small(cells):
        return suite_bounds(cells.both_ways(), ks, np.array(confidences)[:, None])
    sides = zip((False, True), confidences, strict=True)
    bounds = [SuiteCurve(cells, ks, mirrored=side).bounds(scope, level) for side, level in sides]
    low, high = (np.stack(ends) for ends in zip(*bounds, strict=True))
    return low, high


def bounds_side_by_side(
    first: Cells, second: Cells, ks: Sequence[int], confidence: float
) -> tuple[Bounds, Bounds]:
    """The intervals of two suites for "this suite", for little more than one of them takes."""
    alike = np.array_equal(first.lengths, second.lengths)
    if alike and _is_small(first) and _is_small(second):
        low, high = suite_bounds(stack(first, second), ks, confidence)
        return (low[0], high[0]), (low[1], high[1])
    return suite_bounds(first, ks, confidence), suite_bounds(second, ks, confidence)


def default_bounds(cells: Cells, k: int, scope: Scope, confidence: float) -> Bounds:
    """The default interval for one k."""
    low, high = SuiteCurve(cells, (k,)).bounds(scope, confidence)
    return low[..., 0], high[..., 0]


def around_mean(mean: Floats, variance: Floats, quantile: Floats | float) -> Bounds:
    """The mean plus and minus so many standard errors, inside [0, 1]."""
    reach = quantile * np.sqrt(variance)
    return np.maximum(mean - reach, 0.0), np.minimum(mean + reach, 1.0)


def variance_of_mean(cells: Cells, k: int, scope: Scope) -> Floats:
    """The variance of the mean pass^k if runs alone, or tasks too, are drawn again."""
    if scope == THIS_SUITE:
        return observed_noise_and_values(cells, (k,))[0][..., 0]
    return np.asarray(mean_and_variance(cells, k)[1] / cells.task_count)


def mean_and_variance(cells: Cells, k: int) -> tuple[Floats, Floats]:
    """The mean over tasks of pass^k, and the sample variance of a task's value (0 for one task)."""
    values = share_of_passing_subsets(cells.n, cells.c, k)
    mean, tasks = cells.mean(values), cells.task_count
    square = (cells.tasks * (values - mean[..., None]) ** 2).sum(axis=-1)
    return mean, np.asarray(square / np.maximum(tasks - 1, 1))


def _is_small(cells: Cells) -> bool:
    few = cells.tasks.ndim == 1 and cells.n.size <= _FEW_CELLS
    return few and bool(cells.n.max() <= _FEW_RUNS)


@cached
def _both_ways(cells: Cells, ks: tuple[int, ...], scope: Scope, confidence: float) -> Bounds:
    return _bounds(cells.both_ways(), ks, scope, confidence)


def _bounds(cells: Cells, ks: Sequence[int], scope: Scope, confidence: float) -> Bounds:
    if scope == THIS_SUITE:
        if cells.tasks.ndim > 1 or _is_small(cells):
            return suite_bounds(cells, ks, confidence)
        asked = repr((cells.n.size, tuple(ks), confidence)).encode()
        question = sha256(b"".join((*_key(cells), asked))).hexdigest()
        if question not in _given:
            low, high = suite_bounds(cells, ks, confidence)
            give_bounds({question: [low.tolist(), high.tolist()]})
        known = _given[question]
        if (noted := _noted.get()) is not None:
            noted[question] = known
        return np.array(known[0]), np.array(known[1])
    values = shares_of_cells(cells, tuple(ks))
    return population_bounds(values, cells.tasks[..., None, :], confidence)


# The intervals of a large suite take a tenth of a second, and are some numbers: a program that
# keeps what was found can give it to the next one.
KnownBounds = dict[str, list[list[float]]]
"""Lower and upper ends, by a hash of the question."""

_MOST_GIVEN = 256
_given: KnownBounds = {}
_noted: ContextVar[KnownBounds | None] = ContextVar("noted", default=None)


@contextmanager
def noting_bounds() -> Iterator[KnownBounds]:
    """Collects the intervals of large suites that are asked for meanwhile."""
    bounds: KnownBounds = {}
    before = _noted.set(bounds)
    try:
        yield bounds
    finally:
        _noted.reset(before)


def give_bounds(known: KnownBounds) -> None:
    """Intervals that `noting_bounds` collected before: they are not computed again."""
    if len(_given) + len(known) > _MOST_GIVEN:
        _given.clear()
    _given.update(known)


def _tail(confidence: float) -> float:
    return (1 - confidence) / 2


# Bootstraps of a mean over tasks, drawn over (n, c) cells so that their cost is flat in T.

# With more tasks a grid of 2^21 steps leaves too few steps for one task.
EXACT_BOOTSTRAP_TASKS = 500

# Cells times replicates drawn at once: bounds the memory.
_BLOCK = 1 << 22
# Above this many possible (n, c), resampled passes are drawn task by task.
_MOST_RESAMPLED_CELLS = 4096
# Steps of the grid on which the exact distribution of the sum is computed.
_GRID = 1 << 21


def task_means(
    values: Floats, tasks: Floats, *, resamples: int, rng: np.random.Generator
) -> Floats:
    """Means of suites whose tasks are drawn again with replacement.

    The tally of the drawn cells is Multinomial(T, share of each cell), whatever T is.
    """
    # Expected tallies of resampled runs add up to T but for rounding.
    count = round(tasks.sum())
    share = tasks / tasks.sum()
    block = max(1, _BLOCK // values.size)
    sizes = [min(block, resamples - start) for start in range(0, resamples, block)]
    means = [rng.multinomial(count, share, size=size) @ values / count for size in sizes]
    return np.concatenate(means)


def hierarchical_means(cells: Cells, k: int, *, resamples: int, rng: np.random.Generator) -> Floats:
    """Means of pass^k when tasks, and then runs inside each drawn task, are drawn again.

    A resampled task has (n, c') with c' ~ Binomial(n, c/n): again a multinomial over cells. The
    replicates centre on (c/n)^k, not on pass^k: biased for k >= 2, here only to reproduce others.
    """
    if np.sum(np.unique(cells.n) + 1) > _MOST_RESAMPLED_CELLS:
        count = int(cells.task_count)
        means = np.empty(resamples)
        for i in range(resamples):
            drawn = rng.choice(cells.n.size, size=count, p=cells.tasks / count)
            n = cells.n[drawn]
            passes = rng.binomial(n.astype(np.int64), cells.c[drawn] / n)
            means[i] = share_of_passing_subsets(n, passes, k).mean()
        return means
    resampled = resampled_cells(cells)
    values = share_of_passing_subsets(resampled.n, resampled.c, k)
    return task_means(values, resampled.tasks, resamples=resamples, rng=rng)


def resampled_cells(cells: Cells) -> Cells:
    """The expected tally of (n, c') when the runs inside every task are drawn again."""
    parts = []
    for n in np.unique(cells.n):
        here = cells.n == n
        passes = np.arange(n + 1)
        pmf = _binomial_pmf(passes, n, cells.c[here] / n)
        parts.append((np.full(passes.size, n), passes, cells.tasks[..., here] @ pmf))
    runs, again, tasks = (np.concatenate(column, axis=-1) for column in zip(*parts, strict=True))
    return Cells(n=runs, c=again, tasks=tasks)


def percentile_interval(means: Floats, confidence: float) -> Interval:
    """The middle `confidence` of the replicates."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(low), float(high))


def bca_interval(means: Floats, values: Floats, tasks: Floats, confidence: float) -> Interval:
    """Efron's (1987) bias-corrected and accelerated percentiles."""
    mean = float(tasks @ values / tasks.sum())
    slack = 1e-12 * max(1.0, abs(mean))
    below = np.mean(means < mean - slack) + np.mean(np.abs(means - mean) <= slack) / 2
    steps = values - mean
    square = float(tasks @ steps**2)
    if not 0 < below < 1 or square <= slack**2:
        return percentile_interval(means, confidence)
    lean = special.ndtri(below)
    speed = float(tasks @ steps**3) / (6 * square**1.5)
    z = special.ndtri([(1 - confidence) / 2, (1 + confidence) / 2])
    shares = special.ndtr(lean + (lean + z) / (1 - speed * (lean + z)))
    low, high = np.quantile(means, shares)
    return Interval(float(low), float(high))


def exact_task_interval(
    values: Floats, tasks: Floats, confidence: float, *, lattice: int = 1
) -> Interval:
    """The percentile interval of infinitely many task resamples: no seed, no noise.

    The distribution of the sum of T draws is the T-th convolution power of the distribution of one,
    by FFT on a grid. Values that are multiples of 1 / lattice lie on it; any other is split between
    its two neighbours so that the mean is kept.
    """
    count = int(tasks.sum())
    steps = _GRID // count
    steps -= steps % lattice if lattice <= steps else 0
    size = count * steps + 1
    length = 1 << (size - 1).bit_length()  # the next power of two
    spectrum = np.fft.rfft(_on_grid(values, tasks / count, steps), n=length)
    pmf = np.fft.irfft(spectrum**count, n=length)[:size]
    reached = np.cumsum(np.maximum(pmf, 0.0))
    tail = (1 - confidence) / 2
    # Without this half of a billionth, the rounding of the transform could move an end by a step.
    low, high = np.searchsorted(reached / reached[-1], [tail + 5e-10, 1 - tail - 5e-10])
    return Interval(float(low / (size - 1)), float(high / (size - 1)))


def _binomial_pmf(passes: Floats, n: float, p: Floats) -> Floats:
    """P(c' passes of n) in rows over p, columns over c'."""
    log_choose = -special.betaln(1 + n - passes, 1 + passes) - np.log1p(n)
    logs = special.xlogy(passes, p[:, None]) + special.xlog1py(n - passes, -p[:, None])
    return np.asarray(np.exp(log_choose + logs))


def _on_grid(values: Floats, share: Floats, steps: int) -> Floats:
    place = np.clip(values, 0, 1) * steps
    place = np.where(np.abs(place - np.rint(place)) < 1e-6, np.rint(place), place)
    floor = np.floor(place).astype(np.int64)
    pmf = np.zeros(steps + 2)
    np.add.at(pmf, floor, share * (1 - (place - floor)))
    np.add.at(pmf, floor + 1, share * (place - floor))
    return pmf[: steps + 1]
