"""Exact p-values for two systems on the same tasks: sign flips, and passes divided by chance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from passhat.dataclass import dataclass
from passhat.stats.hypergeometric import log_probability
from passhat.stats.special import ndtr

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from passhat.stats.arguments import Counts, Floats

    Places = NDArray[np.intp]

# With the observed one, p is a multiple of 1 / 10,000.
MONTE_CARLO_FLIPS = 9_999

# Differences that are multiples of 1/d for some d up to here are summed exactly, on a lattice.
_LARGEST_DENOMINATOR = 2_520
_MOST_SIZES = 2_000
# Beyond this much work (distinct sizes times lattice points) signs are enumerated or drawn.
_LATTICE_WORK = 20_000_000
# Up to so many tasks of each size, adding them up one by one is faster than a Fourier sum.
_TASKS_OF_A_SIZE = 30
# Up to so many tasks all signs are enumerated; with more they are drawn, up to so many signs (2,000
# tasks in one comparison); beyond that the sum is close to normal.
_ENUMERATED_TASKS = 14
_MOST_SIGNS = 20_000_000
# Numbers held at once: 8 MB.
_CHUNK = 1_000_000
# Keeps logarithms finite; its powers are 0.
_LEAST_COSINE = 1e-300
# With more runs in all, the passes of one side are normal to every digit shown.
_EXACT_RUNS = 40_000
# A Fourier sum cannot tell a smaller probability from zero, so no smaller one is reported.
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
    table = np.column_stack((differences, np.zeros(differences.size)))
    found = sign_flip_tests(table, (np.array([0]), np.array([1])), rng)
    return ExactP(p_value=float(found.p_values[0]), method=found.method, random=found.random)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExactPs:
    """The p-values of many pairs, found in one way."""

    p_values: Floats
    method: str
    random: bool = False


def sign_flip_tests(
    table: Floats,
    pairs: tuple[Places, Places],
    rng: np.random.Generator,
    *,
    draws: int = MONTE_CARLO_FLIPS,
    mid: bool = True,
) -> ExactPs:
    """`sign_flip_test` of pairs of columns, with the same signs for all of them.

    Without `mid` a tie counts whole, and the test never errs more often than it says.

    A flipped sum is as large as the observed one where the flipped tasks sum to at most 0. So one
    more failure of the better side never makes its p-value smaller, also where signs are drawn, as
    long as they are the same ones.
    """
    first, second = pairs
    steps, name = _common_steps(table), "sign-flip mid-p" if mid else "sign-flip p"
    if steps is not None:
        whole = steps[:, first] - steps[:, second]
        sizes = np.unique(np.abs(whole[whole != 0]))
        reach = int(np.abs(whole).sum(axis=0).max(initial=0))
        if whole.size and sizes.size * 2 * reach * first.size <= _LATTICE_WORK:
            few = first.size == 1 and len(table) <= _TASKS_OF_A_SIZE * sizes.size
            tails = _added_tails if few else _lattice_tails
            p = tails(whole, sizes, reach, mid=mid)
            return ExactPs(p_values=_above_noise(p), method=name)
    tasks = len(table)
    if tasks <= _ENUMERATED_TASKS:
        p = np.minimum(1.0, _flipped_tails(table, pairs, _every_sign(tasks), mid=mid) / 2**tasks)
        return ExactPs(p_values=p, method=name)
    if tasks * draws <= _MOST_SIGNS:
        signs = _drawn_signs(tasks, draws, rng)
        # The observed signs are one of the draws.
        beyond = _flipped_tails(table, pairs, signs, mid=mid)
        p = np.minimum(1.0, ((0.5 if mid else 1.0) + beyond) / (1 + draws))
        return ExactPs(p_values=p, method=f"{name}, {draws} draws", random=True)
    gaps = table[:, first] - table[:, second]
    z = np.abs(gaps.sum(axis=0)) / np.sqrt(np.maximum((gaps**2).sum(axis=0), _TIE**2))
    return ExactPs(p_values=2 * ndtr(-z), method="sign-flip, normal limit")


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


def _common_steps(table: Floats) -> Counts | None:
    """The table in whole multiples of a common unit, or None if there is no coarse unit."""
    sizes = np.unique(np.round(np.abs(table[np.abs(table) > _TIE]), 12))
    if sizes.size > _MOST_SIZES:
        return None
    for first in range(1, _LARGEST_DENOMINATOR + 1, 120):
        denominators = np.arange(first, first + 120)
        scaled = denominators[:, None] * sizes
        whole = np.abs(scaled - np.round(scaled)).max(axis=1, initial=0) < _TIE
        if whole.any():
            return np.asarray(np.rint(table * denominators[whole.argmax()]), dtype=np.int64)
    return None


def _added_tails(whole: Counts, sizes: Counts, reach: int, *, mid: bool) -> Floats:
    """`_lattice_tails` of one column, from the law of the sum of those steps that are positive."""
    law = np.ones(1)
    for step in np.sort(np.abs(whole[:, 0])).tolist():
        wider = np.zeros(law.size + step)
        wider[: law.size] = law / 2
        wider[step:] += law / 2
        law = wider
    # The sum is as far below 0 as the observed one when the positive steps sum to this.
    low = (reach - abs(int(whole.sum()))) // 2
    tied = law[low] if mid else 2 * law[low]
    return np.array([min(1.0, 2 * float(law[:low].sum()) + float(tied))])


def _lattice_tails(whole: Counts, sizes: Counts, reach: int, *, mid: bool) -> Floats:
    """P(|sum of +-steps| >= |observed sum|) of each column; a tie counts half if `mid`.

    From the characteristic function, a product of cosines. Over |x| < m the sum of exp(i x angle)
    is sin((m - 1/2) angle) / sin(angle / 2); with half of both ends sin(m angle) / tan(angle / 2).
    """
    observed = np.abs(whole.sum(axis=0))
    tasks = np.stack([(np.abs(whole) == size).sum(axis=0) for size in sizes] or [observed * 0])
    angles = 2 * np.pi * np.arange(1, reach + 1) / (2 * reach + 1)
    cosines = np.cos(angles * (sizes if sizes.size else np.zeros(1))[:, None])
    logs, odd = np.log(np.maximum(np.abs(cosines), _LEAST_COSINE)), (cosines < 0).astype(float)
    kernel, less = (2 / np.tan(angles / 2), 0.0) if mid else (2 / np.sin(angles / 2), 0.5)
    inside = np.empty(observed.size)
    step = max(1, _CHUNK // max(1, reach))
    for start in range(0, observed.size, step):
        part = slice(start, start + step)
        counts = tasks[:, part].T.astype(float)
        law = np.exp(counts @ logs) * (1 - 2 * ((counts @ odd) % 2))
        held = observed[part] - less
        waves = np.sin(held[:, None] * angles)
        inside[part] = (2 * held + (law * waves) @ kernel) / (2 * reach + 1)
    return np.where(observed == 0, 1.0, 1.0 - inside)


def _every_sign(tasks: int) -> Iterator[Floats]:
    yield ((np.arange(2**tasks)[:, None] >> np.arange(tasks)) & 1).astype(np.float64)


def _drawn_signs(tasks: int, draws: int, rng: np.random.Generator) -> Iterator[Floats]:
    step = max(1, _CHUNK // tasks)
    for start in range(0, draws, step):
        shape = min(step, draws - start), tasks
        yield rng.integers(0, 2, size=shape, dtype=np.int8).astype(np.float64)


def _flipped_tails(
    table: Floats, pairs: tuple[Places, Places], signs: Iterator[Floats], *, mid: bool
) -> Floats:
    """How often sums with some signs flipped (1 in `signs`) are as far out, on both sides."""
    total = table.sum(axis=0)
    behind = total[pairs[0]] < total[pairs[1]]
    ahead, other = np.where(behind, pairs[::-1], pairs)
    found = np.zeros(ahead.size)
    for chosen in signs:
        sums = np.ascontiguousarray((chosen @ table).T)
        for i, (one, two) in enumerate(zip(ahead.tolist(), other.tolist(), strict=True)):
            flipped = sums[one] - sums[two]
            reached = np.count_nonzero(flipped <= _TIE)
            found[i] += reached + (np.count_nonzero(flipped < -_TIE) if mid else reached)
    return np.where(np.abs(total[ahead] - total[other]) <= _TIE, np.inf, found)


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
    return float(_above_noise(p))


def _normal_division(cells: Counts, tasks: Counts, observed: int) -> float:
    n_a, n_b, passes = cells.T.astype(float)
    total = n_a + n_b
    mean = n_a * passes / total
    variance = mean * (n_b / total) * (total - passes) / np.maximum(total - 1, 1)
    spread = float(np.sqrt(tasks @ variance))
    gap = abs(observed - float(tasks @ mean))
    return float(2 * ndtr(-gap / spread)) if spread > 0 else 1.0


def _above_noise(p: Floats) -> Floats:
    """Tails found by Fourier sums, never smaller than their rounding error."""
    return np.clip(p, _FOURIER_NOISE, 1.0)
