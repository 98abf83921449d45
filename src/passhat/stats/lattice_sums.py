"""The law of a sum of independent task values on a lattice, at a cost that does not grow with T.

The characteristic functions of the distinct laws are raised to the number of tasks that have
each, multiplied, and turned back over a window that holds the sum with all but nothing of its
chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passhat.stats.arguments import Floats

POINTS = 1024
"""Points at which the law of the sum is given."""

# A window of so many standard deviations leaves less than 1e-20 outside.
_WINDOW = 20.0
# Frequencies after which the characteristic function of such a window has died away.
_FREQUENCIES = 64
_NOTHING = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumLaw:
    """`chances` of the sum being at `positions`; the last axis runs over POINTS."""

    positions: Floats
    chances: Floats


def sum_law(laws: Floats, tasks: Floats, part: SumLaw | None = None) -> SumLaw:
    """The law of the sum over tasks, tasks[..., j] of which are drawn from laws[j] on 0..m.

    `part` is the law of a further part of the sum, at positions that all questions share.

    >>> found = sum_law(np.array([[0.5, 0.5]]), np.array([2.0]))  # two coins
    >>> [round(float(found.chances[found.positions == s].sum()), 9) for s in (0, 1, 2)]
    [0.25, 0.5, 0.25]
    """
    steps = np.arange(laws.shape[-1], dtype=np.float64)
    means = laws @ steps
    centre = tasks @ means
    variance = tasks @ np.maximum(laws @ steps**2 - means**2, 0.0)
    longest = float(tasks.sum(axis=-1).max()) * steps[-1] + 1
    if part is not None:
        mean = (part.chances * part.positions).sum(axis=-1)
        centre = centre + mean
        variance = variance + (part.chances * part.positions**2).sum(axis=-1) - mean**2
        longest += part.positions.max()
    spread = np.sqrt(variance.max(initial=0.0))
    period = max(float(POINTS), min(_WINDOW * spread, longest))
    logs = np.log(_transforms(laws, period))
    # Real and imaginary parts apart: a product of real by complex would copy the reals first.
    spectrum = np.exp(tasks @ logs.real + 1j * (tasks @ logs.imag))
    if part is not None:
        turns = np.outer(np.arange(spectrum.shape[-1]), part.positions) / period
        spectrum = spectrum * (part.chances @ np.exp(-2j * np.pi * turns).T)
    chances = np.maximum(np.fft.irfft(spectrum, POINTS, axis=-1), 0.0)
    start = np.zeros_like(centre) if longest <= period else centre - period / 2
    places = np.arange(POINTS) * (period / POINTS)
    positions = start[..., None] + np.mod(places - start[..., None], period)
    return SumLaw(positions=positions, chances=chances / chances.sum(axis=-1, keepdims=True))


def _transforms(laws: Floats, period: float) -> Floats:
    """The characteristic function of each law at the frequencies of the window."""
    whole = period == POINTS
    if whole and laws.shape[-1] <= POINTS:
        found = np.fft.rfft(laws, POINTS, axis=-1)
    else:
        count = POINTS // 2 + 1 if whole else _FREQUENCIES
        turns = np.outer(np.arange(count), np.arange(laws.shape[-1])) / period
        found = laws @ np.exp(-2j * np.pi * turns).T
    return np.where(np.abs(found) > _NOTHING, found, _NOTHING)
