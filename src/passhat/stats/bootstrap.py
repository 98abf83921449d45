"""Bootstraps of a mean over tasks, drawn over (n, c) cells so that their cost is flat in T."""

from __future__ import annotations

import numpy as np

from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells
from passhat.stats.estimate import Interval
from passhat.stats.passk import share_of_passing_subsets

# With more tasks a grid of 2^21 steps leaves too few steps for one task.
EXACT_BOOTSTRAP_TASKS = 500
# Cells times replicates drawn at once: bounds the memory.
_BLOCK = 1 << 22
# Above this many possible (n, c), resampled passes are drawn task by task.
_MOST_RESAMPLED_CELLS = 4096
# Steps of the grid on which the exact law of the sum is computed.
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
        return _hierarchical_means_by_task(cells, k, resamples=resamples, rng=rng)
    resampled = resampled_cells(cells)
    values = share_of_passing_subsets(resampled.n, resampled.c, k)
    return task_means(values, resampled.tasks, resamples=resamples, rng=rng)


def resampled_cells(cells: Cells) -> Cells:
    """The expected tally of (n, c') when the runs inside every task are drawn again."""
    parts = []
    for n in np.unique(cells.n):
        here = cells.n == n
        passes = np.arange(n + 1)
        law = _binomial_pmf(passes, n, cells.c[here] / n)
        parts.append((np.full(passes.size, n), passes, cells.tasks[..., here] @ law))
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

    The law of the sum of T draws is the T-th convolution power of the law of one, by FFT on a
    grid. Values that are multiples of 1 / lattice lie on it; any other is split between its two
    neighbours so that the mean is kept.
    """
    count = int(tasks.sum())
    steps = _GRID // count
    steps -= steps % lattice if lattice <= steps else 0
    size = count * steps + 1
    spectrum = np.fft.rfft(_on_grid(values, tasks / count, steps), n=_power_of_two(size))
    law = np.fft.irfft(spectrum**count, n=_power_of_two(size))[:size]
    reached = np.cumsum(np.maximum(law, 0.0))
    tail = (1 - confidence) / 2
    # Without this half of a billionth, the rounding of the transform could move an end by a step.
    low, high = np.searchsorted(reached / reached[-1], [tail + 5e-10, 1 - tail - 5e-10])
    return Interval(float(low / (size - 1)), float(high / (size - 1)))


def _hierarchical_means_by_task(
    cells: Cells, k: int, *, resamples: int, rng: np.random.Generator
) -> Floats:
    count = int(cells.task_count)
    means = np.empty(resamples)
    for i in range(resamples):
        drawn = rng.choice(cells.n.size, size=count, p=cells.tasks / count)
        n = cells.n[drawn]
        passes = rng.binomial(n.astype(np.int64), cells.c[drawn] / n)
        means[i] = share_of_passing_subsets(n, passes, k).mean()
    return means


def _binomial_pmf(passes: Floats, n: float, p: Floats) -> Floats:
    """P(c' passes of n) in rows over p, columns over c'."""
    log_choose = -special.betaln(1 + n - passes, 1 + passes) - np.log1p(n)
    logs = special.xlogy(passes, p[:, None]) + special.xlog1py(n - passes, -p[:, None])
    return np.asarray(np.exp(log_choose + logs))


def _on_grid(values: Floats, share: Floats, steps: int) -> Floats:
    place = np.clip(values, 0, 1) * steps
    place = np.where(np.abs(place - np.rint(place)) < 1e-6, np.rint(place), place)
    floor = np.floor(place).astype(np.int64)
    law = np.zeros(steps + 2)
    np.add.at(law, floor, share * (1 - (place - floor)))
    np.add.at(law, floor + 1, share * (place - floor))
    return law[: steps + 1]


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()
