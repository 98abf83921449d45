"""The law of a sum of many tasks with long runs, from the cumulants that add up over tasks.

Tasks with hundreds of runs have hundreds of different counts, and a table of each one's law would
take seconds. Their sum is so close to normal that twelve cumulants give it to eight digits.
"""

from __future__ import annotations

from math import comb, factorial

import numpy as np

from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells
from passhat.stats.sum_law import SumLaw, turned
from passhat.stats.task_laws import betas_in_order, scaled_betas

_ORDER = 12
_POINTS = 1024
# A window of so many standard deviations leaves less than 1e-20 outside.
_WINDOW = 20.0
# The characteristic function is below 1e-15 from here on, in standard deviations.
_LAST_FREQUENCY = 8.5
# What the last cumulant adds to any chance, at the most, for those beyond it not to matter.
_NEGLIGIBLE = 1e-8
# The largest of t^12 exp(-t^2 / 2).
_PEAK = (_ORDER / np.e) ** (_ORDER / 2)


def sum_of_long_tasks(cells: Cells, k: int) -> SumLaw | None:
    """The law of the summed pass^k, or None where it is too far from normal for this."""
    if not betas_in_order(cells.n, k).all():
        return None
    means, cumulants = _cumulants(cells, k)
    centre, sums = cells.tasks @ means, cells.tasks @ cumulants.T
    deviation = np.sqrt(sums[..., 2])
    if not (deviation > 0).all():
        return None
    orders = np.arange(_ORDER + 1)
    terms = sums / deviation[..., None] ** orders / [float(factorial(one)) for one in orders]
    if (np.abs(terms[..., -2:]) * _PEAK > _NEGLIGIBLE).any():
        return None
    return _from_spectrum(terms, centre, deviation)


def _from_spectrum(terms: Floats, centre: Floats, deviation: Floats) -> SumLaw:
    """The law from its cumulants in standard deviations, over the widest window of the suites."""
    period = _WINDOW * float(deviation.max())
    turns = 2 * np.pi / period * np.arange(_POINTS // 2 + 1)
    angle = turns * deviation[..., None]
    kept = turns[angle.reshape(-1, angle.shape[-1]).min(axis=0) < _LAST_FREQUENCY]
    angle = angle[..., : kept.size]
    log = np.zeros(angle.shape, dtype=np.complex128)
    for order in range(_ORDER, 1, -1):
        log = 1j * angle * log + terms[..., order, None]
    log = (1j * angle) ** 2 * log + 1j * kept * centre[..., None]
    spectrum = np.where(angle < _LAST_FREQUENCY, np.exp(log), 0.0)
    # irfft reads its input as the transform with the opposite sign of the angle.
    chances = np.maximum(np.fft.irfft(np.conj(spectrum), _POINTS, axis=-1), 0.0)
    return turned(chances, start=centre - period / 2, period=period, unit=1.0)


def _cumulants(cells: Cells, k: int) -> tuple[Floats, Floats]:
    """The mean of each cell's law, and its cumulants from the second on, a row for each order."""
    betas = scaled_betas(cells.n, cells.c, k)
    size = betas.a + betas.b
    mean = betas.a / size
    moments = [np.ones_like(mean), np.zeros_like(mean)]
    for order in range(1, _ORDER):
        # Integrating (x - mean)^r x (1 - x) f by parts gives each central moment from two before.
        inner = mean * (1 - mean) * moments[order - 1] + (1 - 2 * mean) * moments[order]
        moments.append(order / (size + order) * inner)
    found = np.zeros((_ORDER + 1, cells.n.size))
    central: list[Floats] = [np.zeros_like(mean), np.zeros_like(mean)]
    for order in range(2, _ORDER + 1):
        lower = sum(
            comb(order - 1, one - 1) * central[one] * moments[order - one]
            for one in range(2, order - 1)
        )
        central.append(moments[order] - lower)
        found[order, betas.varies] = central[order] * betas.scale**order
    return betas.value, found
