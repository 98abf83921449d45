"""Exact p-values for two systems on the same tasks: sign flips, and passes divided by chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from passhat.stats.hypergeometric import log_probability
from passhat.stats.special import ndtr

if TYPE_CHECKING:
    from passhat.stats.arguments import Counts, Floats

# With the observed one, p is a multiple of 1 / 10,000.
MONTE_CARLO_FLIPS = 9_999

# Differences that are multiples of 1/d for some d up to here are summed exactly, on a lattice.
_LARGEST_DENOMINATOR = 2_520
# Beyond this much work (distinct sizes times lattice points) signs are enumerated or drawn.
_LATTICE_WORK = 20_000_000
# Up to so many tasks of each size, adding them up one by one is faster than a Fourier transform.
_TASKS_OF_A_SIZE = 30
# All 2^14 signs are looked at; with more tasks they are drawn, and beyond 2,000 the sum is normal.
_ENUMERATED_TASKS = 14
_DRAWN_TASKS = 2_000
# With more runs in all, the passes of one side are normal to every digit shown.
_EXACT_RUNS = 40_000
# A Fourier sum cannot tell a probability below this from zero, so none is reported below it.
_FOURIER_NOISE = 1e-13
# Sums that should be equal differ by rounding.
_TIE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactP:
    """A p-value, how it was found, and whether random draws took part."""

    p_value: float
    method: str
    random: bool = False


def sign_flip_test(differences: Floats, rng: np.random.Generator) -> ExactP:
    """How often the mean is as far from 0 when each task's sign is a coin toss (Fisher, 1935).

    Two-sided, mid-p: sums that tie with the observed one count half.

    >>> sign_flip_test(np.array([0.2, 0.4, 0.2, 0.6]), np.random.default_rng(0)).p_value
    0.0625
    """
    observed = abs(float(differences.sum()))
    sizes, tasks = _sizes(differences)
    if observed <= _TIE or not sizes.size:
        return ExactP(p_value=1.0, method="sign-flip mid-p")
    steps = _lattice(sizes)
    if steps is not None and sizes.size * 2 * (steps @ tasks) <= _LATTICE_WORK:
        tail = _added_tail if tasks.sum() <= _TASKS_OF_A_SIZE * sizes.size else _fourier_tail
        p = tail(steps, tasks, round(observed * steps[0] / sizes[0]))
        return ExactP(p_value=_at_least(p, 2.0 ** -tasks.sum()), method="sign-flip mid-p")
    if tasks.sum() <= _ENUMERATED_TASKS:
        p = _enumerated_tail(np.repeat(sizes, tasks), observed)
        return ExactP(p_value=p, method="sign-flip mid-p")
    if tasks.sum() <= _DRAWN_TASKS:
        p = _drawn_tail(sizes, tasks, observed, rng)
        method = f"sign-flip mid-p, {MONTE_CARLO_FLIPS} draws"
        return ExactP(p_value=p, method=method, random=True)
    z = observed / float(np.sqrt(tasks @ sizes**2))
    return ExactP(p_value=float(2 * ndtr(-z)), method="sign-flip, normal limit")


def divided_passes_test(n_a: Counts, c_a: Counts, n_b: Counts, c_b: Counts) -> ExactP:
    """Whether chance alone would divide each task's passes between the systems like this.

    The conditional (Cochran-Mantel-Haenszel) exact test, two-sided, mid-p; with one run of each
    task on each side it is McNemar's mid-p test.

    >>> one, none = np.ones(6, dtype=int), np.zeros(6, dtype=int)
    >>> round(divided_passes_test(one, one, one, none).p_value, 9)
    0.015625
    """
    name = "McNemar mid-p" if max(n_a.max(), n_b.max()) == 1 else "CMH mid-p"
    cells, tasks = _strata(n_a, n_b, c_a + c_b)
    if int((n_a + n_b).sum()) > _EXACT_RUNS:
        p = _normal_division(cells, tasks, int(c_a.sum()))
        return ExactP(p_value=p, method=f"{name}, normal limit")
    return ExactP(p_value=_divided_tail(cells, tasks, int(c_a.sum())), method=name)


def _sizes(differences: Floats) -> tuple[Floats, Counts]:
    """The distinct sizes of the non-zero differences, and how many tasks have each."""
    sizes = np.abs(differences)
    rounded = np.round(sizes[sizes > _TIE], 12)
    return np.unique(rounded, return_counts=True)


def _lattice(sizes: Floats) -> Counts | None:
    """The sizes as whole multiples of a common unit, or None where there is no coarse unit."""
    if sizes.size > _DRAWN_TASKS:
        return None
    for first in range(1, _LARGEST_DENOMINATOR + 1, 120):
        denominators = np.arange(first, first + 120)
        scaled = denominators[:, None] * sizes
        whole = np.abs(scaled - np.round(scaled)).max(axis=1) < _TIE
        if whole.any():
            steps: Counts = np.round(denominators[whole.argmax()] * sizes).astype(np.int64)
            return steps
    return None


def _added_tail(steps: Counts, tasks: Counts, observed: int) -> float:
    """P(|sum of +-steps| >= observed), from the law of the sum of those steps that are positive."""
    law = np.ones(1)
    for step in np.repeat(steps, tasks).tolist():
        wider = np.zeros(law.size + step)
        wider[: law.size] = law / 2
        wider[step:] += law / 2
        law = wider
    # A sum of -observed is reached when the positive steps make up this much of all steps.
    low = (law.size - 1 - observed) // 2
    # The observed sum has two signs, each counted half: together one whole weight inside.
    return float(2 * law[:low].sum() + law[low])


def _fourier_tail(steps: Counts, tasks: Counts, observed: int) -> float:
    """The same from the characteristic function, which is a product of cosines."""
    span = int(steps @ tasks)
    points = 2 * span + 1
    angles = 2 * np.pi * np.arange(span + 1) / points
    spectrum = np.ones(span + 1)
    for step, count in zip(steps, tasks, strict=True):
        spectrum *= np.cos(angles * step) ** count
    chances = np.fft.irfft(spectrum, points)
    return 1.0 - float(chances[0] + 2 * chances[1:observed].sum() + chances[observed])


def _enumerated_tail(sizes: Floats, observed: float) -> float:
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate((sums + size, sums - size))
    return _half_tied(np.abs(sums), observed) / sums.size


def _drawn_tail(sizes: Floats, tasks: Counts, observed: float, rng: np.random.Generator) -> float:
    """Monte Carlo, over groups of equal size; the observed signs are one of the draws."""
    plus = rng.binomial(tasks, 0.5, size=(MONTE_CARLO_FLIPS, tasks.size))
    sums = (2 * plus - tasks) @ sizes
    return (0.5 + _half_tied(np.abs(sums), observed)) / (1 + MONTE_CARLO_FLIPS)


def _half_tied(sums: Floats, observed: float) -> float:
    beyond = np.count_nonzero(sums > observed + _TIE)
    tied = np.count_nonzero(np.abs(sums - observed) <= _TIE)
    return float(beyond + 0.5 * tied)


def _strata(n_a: Counts, n_b: Counts, passes: Counts) -> tuple[Counts, Counts]:
    """The distinct (n_a, n_b, passes), a row each, and how many tasks have them."""
    designs, design = np.unique(n_a * (n_b.max() + 1) + n_b, return_inverse=True)
    keys, tasks = np.unique(design * (passes.max() + 1) + passes, return_counts=True)
    design, passes = np.divmod(keys, passes.max() + 1)
    left, right = np.divmod(designs[design], n_b.max() + 1)
    return np.column_stack((left, right, passes)), tasks


def _divided_tail(cells: Counts, tasks: Counts, observed: int) -> float:
    """Two-sided mid-p of side a's passes: the strata's laws convolved by Fourier transform."""
    n_a, n_b, passes = cells.T
    low, high = np.maximum(0, passes - n_b), np.minimum(n_a, passes)
    points = int(tasks @ (high - low)) + 1
    spectrum = np.ones(points // 2 + 1, dtype=complex)
    for cell, count, first, last in zip(cells, tasks, low, high, strict=True):
        law = np.exp(log_probability(np.arange(first, last + 1), *cell))
        spectrum *= np.fft.rfft(law, points) ** count
    chances = np.maximum(np.fft.irfft(spectrum, points), 0.0)
    at = observed - int(tasks @ low)
    below, above = chances[:at].sum(), chances[at + 1 :].sum()
    p = 2 * min(below, above) + chances[at]
    return _at_least(float(p), 0.0)


def _normal_division(cells: Counts, tasks: Counts, observed: int) -> float:
    n_a, n_b, passes = cells.T.astype(float)
    total = n_a + n_b
    mean = n_a * passes / total
    variance = mean * (n_b / total) * (total - passes) / np.maximum(total - 1, 1)
    spread = float(np.sqrt(tasks @ variance))
    gap = abs(observed - float(tasks @ mean))
    return float(2 * ndtr(-gap / spread)) if spread > 0 else 1.0


def _at_least(p: float, floor: float) -> float:
    """A tail found by Fourier sums, never smaller than what those can tell."""
    return min(1.0, max(p, _FOURIER_NOISE, floor))
