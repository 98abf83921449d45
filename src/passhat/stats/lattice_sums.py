"""The law of a sum of independent task values, at a cost that does not grow with their number.

The characteristic functions of the tasks' laws are multiplied and turned back over a window that
holds the sum with all but nothing of its chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.sum_law import SumLaw, turned
from passhat.stats.task_laws import NO_VALUE, task_laws

Complex = NDArray[np.complex128]

# Points at which the law of the sum is given, unless laws on few points ask for all of them.
_POINTS = 1024
# A window of so many standard deviations leaves less than 1e-20 outside.
_WINDOW = 20.0
_DEAD = 1e-8
# Laws on a few points have frequencies that never die away: the whole lattice is taken for
# them up to this length, and the last frequencies are tapered beyond it.
_LONGEST = 1 << 15
_TAPER = 12.5
TABLED_RUNS = 128
"""Tables of every count of passes are kept up to so many runs; they serve pass@k too."""
_NOTHING = 1e-300


def sum_of_tasks(cells: Cells, k: int, steps: int) -> SumLaw:
    """The law of the summed pass^k of tasks with at least 2k runs, on [0, 1] in so many steps.

    Of several suites each gets the law that it would get alone.
    """
    if cells.n.max() > TABLED_RUNS:
        cells = _with_value(cells, k)
    rows = cells.tasks.reshape(-1, cells.n.size)
    means, variances = _per_cell(cells, k, steps, _moment_table)
    centre, spread = rows @ means, np.sqrt(rows @ variances)
    longest = rows.sum(axis=-1) * steps + 1
    # A power of two, so that the tables of one report serve all its questions.
    window = np.maximum(np.minimum(longest, _WINDOW * spread), _POINTS)
    periods = (2 ** np.ceil(np.log2(window))).astype(np.int64)
    groups = []
    for period in set(periods.tolist()):
        some = np.flatnonzero(periods == period)
        suites = Cells(n=cells.n, c=cells.c, tasks=rows[some])
        for kept, law in _sums_over(suites, k, steps, period, centre[some], longest[some]):
            groups.append((some[kept], law))
    return _joined(groups, cells.tasks.shape[:-1])


def _sums_over(
    cells: Cells, k: int, steps: int, period: int, centre: Floats, longest: Floats
) -> Iterator[tuple[NDArray[np.intp], SumLaw]]:
    """The laws of suites with the same period; those with whole lattices of a length together."""
    spectrum = _spectrum(cells, k, steps, period)
    lattice = (2 ** np.ceil(np.log2(longest))).astype(np.int64)
    alive = (np.abs(spectrum[:, -8:]).max(axis=-1) > _DEAD) & (period > _POINTS)
    taper = np.exp(-_TAPER * np.linspace(0, 1, spectrum.shape[-1]) ** 2)
    spectrum = np.where((alive & (lattice > _LONGEST))[:, None], spectrum * taper, spectrum)
    lattice = np.where(alive & (lattice <= _LONGEST), lattice, 0)
    for length in set(lattice.tolist()):
        kept = np.flatnonzero(lattice == length)
        whole, points, found = length or period, length or _POINTS, spectrum[kept]
        if length:
            some = Cells(n=cells.n, c=cells.c, tasks=cells.tasks[kept])
            found = _spectrum(some, k, steps, whole, points)
        chances = np.maximum(np.fft.irfft(found, points, axis=-1), 0.0)
        start = np.where(longest[kept] <= whole, 0.0, centre[kept] - whole / 2)
        yield kept, turned(chances, start=start, period=whole, unit=steps)


def _joined(groups: list[tuple[NDArray[np.intp], SumLaw]], shape: tuple[int, ...]) -> SumLaw:
    """The laws of all suites in their order; shorter ones end in points without a chance."""
    points = max(law.chances.shape[-1] for _, law in groups)
    count = sum(places.size for places, _ in groups)
    positions, chances = np.empty((count, points)), np.zeros((count, points))
    for places, law in groups:
        own = law.chances.shape[-1]
        positions[places, :own], chances[places, :own] = law.positions, law.chances
        positions[places, own:] = law.positions[:, -1:]
    return SumLaw(
        positions=positions.reshape(*shape, points), chances=chances.reshape(*shape, points)
    )


def _spectrum(cells: Cells, k: int, steps: int, period: int, points: int = _POINTS) -> Complex:
    """The characteristic function of the sum at the lowest frequencies of the period."""
    tables = _per_cell(cells, k, steps, lambda *key: _log_table(*key, period, points))
    return np.asarray(np.exp(cells.tasks @ tables[0] + 1j * (cells.tasks @ tables[1])))


def _per_cell(cells: Cells, k: int, steps: int, table):  # type: ignore[no-untyped-def]
    """The columns of a table for every cell, with the tables of each number of runs joined."""
    parts = []
    for runs in cells.lengths.tolist():
        rows = cells.n == runs
        if runs <= TABLED_RUNS:
            passes = cells.c[rows].astype(np.intp)
            parts.append(tuple(column[passes] for column in table(int(runs), None, k, steps)))
        else:
            parts.append(table(int(runs), tuple(cells.c[rows].tolist()), k, steps))
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def _with_value(cells: Cells, k: int) -> Cells:
    """The cells whose pass^k is not 0, for the others add nothing; one where there is none."""
    kept = share_of_passing_subsets(cells.n, cells.c, k) > NO_VALUE
    kept[0] |= not kept.any()
    return Cells(n=cells.n[kept], c=cells.c[kept], tasks=cells.tasks[..., kept])


@lru_cache(maxsize=256)
def _laws(n: int, passes: tuple[float, ...] | None, k: int, steps: int) -> Floats:
    c = np.arange(n + 1.0) if passes is None else np.array(passes)
    return task_laws(np.full(c.size, float(n)), c, k, steps)


@lru_cache(maxsize=256)
def _moment_table(
    n: int, passes: tuple[float, ...] | None, k: int, steps: int
) -> tuple[Floats, Floats]:
    laws, places = _laws(n, passes, k, steps), np.arange(steps + 1.0)
    means = laws @ places
    return means, np.maximum(laws @ places**2 - means**2, 0.0)


@lru_cache(maxsize=128)
def _log_table(
    n: int, passes: tuple[float, ...] | None, k: int, steps: int, period: int, points: int
) -> tuple[Floats, Floats]:
    """Ln of the characteristic functions, its real part and its turns."""
    found = np.fft.rfft(_laws(n, passes, k, steps), period, axis=-1)[:, : points // 2 + 1]
    # By parts: numpy's logarithm of complex numbers takes ten times as long.
    square = found.real**2 + found.imag**2
    return np.log(np.maximum(square, _NOTHING)) / 2, np.arctan2(found.imag, found.real)
