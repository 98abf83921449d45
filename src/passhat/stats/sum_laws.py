"""The law of the summed pass^k of tasks, at the same cost for any number of tasks.

The characteristic functions of the tasks' laws are multiplied, and the product is turned back into
chances over a window outside which there is next to none. Tasks with hundreds of runs have hundreds
of different counts, and a table of each one's law would take seconds; their sum is so close to
normal that twelve cumulants, which add up over tasks, give it to eight digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import factorial

import numpy as np
from numpy.typing import NDArray

from passhat.dataclass import dataclass, replace
from passhat.stats.arguments import Floats
from passhat.stats.cells import Cells
from passhat.stats.passk import share_of_passing_subsets
from passhat.stats.task_laws import NO_VALUE, betas_in_order, scaled_betas, task_laws

Complex = NDArray[np.complex128]
Places = NDArray[np.intp]
# Points at which the law of the sum is given, unless laws on few points need all of them.
_POINTS = 1024
# A window of so many standard deviations leaves less than 1e-20 outside.
_WINDOW = 20.0
# Frequencies this small add nothing that eight digits show.
_DEAD = 1e-8
# Laws on a few points have frequencies that never die away: the whole lattice is used for
# them up to this length, and the last frequencies are tapered beyond it.
_LONGEST = 1 << 15
# exp(-12.5) = 4e-6 at the last frequency: the ringing of a sharp cut is gone.
_TAPER = 12.5
TABLED_RUNS = 128
"""Tables of every count of passes are kept up to so many runs; they serve pass@k too."""
# Keeps a logarithm finite; e^-690 is far below any chance that counts.
_NOTHING = 1e-300
# Cumulants used; `_NEGLIGIBLE` checks that those beyond would not matter.
_ORDER = 12
# The characteristic function is below 1e-15 from here on, in standard deviations.
_LAST_FREQUENCY = 8.5
# Cumulants beyond the last do not matter where that adds at most this much to any chance.
_NEGLIGIBLE = 1e-8
# Betas whose cumulants are computed at once: what that takes stays in the cache of a core.
_AT_ONCE = 4096
_FACTORIALS = np.array([float(factorial(one)) for one in range(_ORDER + 1)])
# The largest of t^12 exp(-t^2 / 2).
_PEAK = (_ORDER / np.e) ** (_ORDER / 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumLaws:
    """Laws of sums, a row each: `chances` of being at `positions`, which rise along the last axis.

    Row i is about the suite at the place `suite[i]` and the k at the place `k[i]`.
    """

    suite: Places
    k: Places
    positions: Floats
    chances: Floats


def sums_of_tasks(cells: Cells, ks: Sequence[int], steps: int) -> list[SumLaws]:
    """The laws of the summed pass^k of tasks with at least 2k runs, on [0, 1] in so many steps.

    Each suite gets the law that it would get alone. All k are computed together, because most of
    the time of a single one is the overhead of numpy calls.
    """
    rows = cells.tasks.reshape(-1, cells.n.size)
    longest = rows.sum(axis=-1) * steps + 1
    if cells.n.max() > TABLED_RUNS:
        cells = _with_value(cells, min(ks))
        rows = cells.tasks.reshape(-1, cells.n.size)
    means, variances = _per_cell(cells, ks, steps, _moment_table)
    centre, variance = (np.matmul(rows, part[..., None])[..., 0] for part in (means, variances))
    # A power of two, so that the tables of one report serve all its questions.
    window = np.maximum(np.minimum(longest, _WINDOW * np.sqrt(variance)), _POINTS)
    periods = (2 ** np.ceil(np.log2(window))).astype(np.int64)
    found = list[SumLaws]()
    for period in set(periods.ravel().tolist()):
        k, suite = np.nonzero(periods == period)
        asked = _Sums(cells=cells, ks=ks, steps=steps, k=k, suite=suite)
        found += _sums_over(asked, period, centre[k, suite], longest[suite])
    return found


def sums_of_long_tasks(cells: Cells, ks: Sequence[int]) -> tuple[list[SumLaws], list[int]]:
    """The laws of the summed pass^k by cumulants, and the places of the k too far from normal.

    All k are computed together: with hundreds of different counts that takes a fifth of the time.
    """
    places = [place for place, k in enumerate(ks) if betas_in_order(cells.n, k).all()]
    if not places:
        return [], list(range(len(ks)))
    means, cumulants = _cumulants(cells, [ks[place] for place in places])
    rows = cells.tasks.reshape(-1, cells.n.size)
    centre = rows @ means.T
    sums = rows @ cumulants.reshape(-1, cells.n.size).T
    sums = np.moveaxis(sums.reshape(len(rows), _ORDER + 1, len(places)), 1, 0)
    deviation = np.sqrt(sums[2])
    scale = np.where(deviation > 0, deviation, 1.0)
    terms = np.stack([one / scale**order / _FACTORIALS[order] for order, one in enumerate(sums)])
    normal = (deviation > 0) & (np.abs(terms[-2:]) * _PEAK <= _NEGLIGIBLE).all(axis=0)
    near = np.flatnonzero(normal.all(axis=0))
    taken = [places[place] for place in near.tolist()]
    rest = [place for place in range(len(ks)) if place not in taken]
    if not taken:
        return [], rest
    positions, chances = _from_spectrum(terms[..., near], centre[:, near], deviation[:, near])
    laws = SumLaws(
        suite=np.repeat(np.arange(len(rows)), len(taken)),
        k=np.tile(taken, len(rows)),
        positions=positions.reshape(-1, _POINTS),
        chances=chances.reshape(-1, _POINTS),
    )
    return [laws], rest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sums:
    """Which sums are asked for: of the suite and of the k at each of these places."""

    cells: Cells
    ks: Sequence[int]
    steps: int
    k: Places
    suite: Places

    def taken(self, kept: Places) -> _Sums:
        return replace(self, k=self.k[kept], suite=self.suite[kept])

    def spectrum(self, period: int, points: int = _POINTS) -> Complex:
        """The characteristic function of each sum at the lowest frequencies of the period."""
        places, row = np.unique(self.k, return_inverse=True)
        rows = self.cells.tasks.reshape(-1, self.cells.n.size)
        tables = _per_cell(
            self.cells,
            [self.ks[place] for place in places.tolist()],
            self.steps,
            lambda *key: _log_table(*key, period, points),
        )
        size, angle = (np.matmul(rows, table)[row, self.suite] for table in tables)
        return np.asarray(np.exp(size + 1j * angle))


def _sums_over(asked: _Sums, period: int, centre: Floats, longest: Floats) -> Iterator[SumLaws]:
    """The laws of sums with the same period; those with whole lattices of a length together."""
    spectrum = asked.spectrum(period)
    alive = (np.abs(spectrum[:, -8:]).max(axis=-1) > _DEAD) & (period > _POINTS)
    lattice = np.zeros(len(alive), dtype=np.int64)
    if alive.any():
        lattice = (2 ** np.ceil(np.log2(longest))).astype(np.int64)
        taper = np.exp(-_TAPER * np.linspace(0, 1, spectrum.shape[-1]) ** 2)
        spectrum = np.where((alive & (lattice > _LONGEST))[:, None], spectrum * taper, spectrum)
        lattice = np.where(alive & (lattice <= _LONGEST), lattice, 0)
    for length in set(lattice.tolist()):
        kept = np.flatnonzero(lattice == length)
        some, whole, points = asked.taken(kept), length or period, length or _POINTS
        found = some.spectrum(whole, points) if length else spectrum[kept]
        chances = np.maximum(np.fft.irfft(found, points, axis=-1), 0.0)
        start = np.where(longest[kept] <= whole, 0.0, centre[kept] - whole / 2)
        positions, laid = _turned(chances, start=start, period=whole, unit=asked.steps)
        yield SumLaws(suite=some.suite, k=some.k, positions=positions, chances=laid)


def _turned(
    chances: Floats, *, start: Floats, period: Floats | float, unit: float
) -> tuple[Floats, Floats]:
    """Positions and chances of laws whose points repeat after a period, cut open at `start`.

    Positions are in multiples of `unit`.
    """
    points = chances.shape[-1]
    step = np.asarray(period)[..., None] / points
    first = np.ceil(start[..., None] / step).astype(np.intp)
    places = first + np.arange(points)
    # The points are a power of two, so their remainder is a mask of bits.
    laid = np.take_along_axis(chances, places & (points - 1), axis=-1)
    return places * (step / unit), laid / laid.sum(axis=-1, keepdims=True)


def _per_cell(cells: Cells, ks: Sequence[int], steps: int, table):  # type: ignore[no-untyped-def]
    """The columns of a table for every cell, the tables of each number of runs joined; k first."""
    tables = zip(*(_of_one_k(cells, k, steps, table) for k in ks), strict=True)
    return tuple(columns[0][None] if len(ks) == 1 else np.stack(columns) for columns in tables)


def _of_one_k(cells: Cells, k: int, steps: int, table):  # type: ignore[no-untyped-def]
    parts = []
    for runs in cells.lengths.tolist():
        rows = cells.n == runs
        if runs <= TABLED_RUNS:
            passes = cells.c[rows].astype(np.intp)
            parts.append(tuple(column[passes] for column in table(int(runs), None, k, steps)))
        else:
            parts.append(table(int(runs), tuple(cells.c[rows].tolist()), k, steps))
    if len(parts) == 1:
        return parts[0]
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def _with_value(cells: Cells, k: int) -> Cells:
    """The cells whose pass^k is not 0 (the others add nothing); one cell where all are 0."""
    kept = share_of_passing_subsets(cells.n, cells.c, k) > NO_VALUE
    kept[0] |= not kept.any()
    return cells.taken(kept)


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
    """Ln of the characteristic functions: its real part and its imaginary part."""
    found = np.fft.rfft(_laws(n, passes, k, steps), period, axis=-1)[:, : points // 2 + 1]
    # Separately: numpy's logarithm of complex numbers takes ten times as long.
    square = found.real**2 + found.imag**2
    return np.log(np.maximum(square, _NOTHING)) / 2, np.arctan2(found.imag, found.real)


def _from_spectrum(terms: Floats, centre: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """The laws from their cumulants in standard deviations, order by order, each in its window."""
    period = _WINDOW * deviation
    last = int(_LAST_FREQUENCY * _WINDOW / (2 * np.pi))
    turns = 2 * np.pi / period[..., None] * np.arange(last + 1)
    angle = turns * deviation[..., None]
    log = np.zeros(angle.shape, dtype=np.complex128)
    for order in range(_ORDER, 1, -1):
        log = 1j * angle * log + terms[order][..., None]
    log = (1j * angle) ** 2 * log + 1j * turns * centre[..., None]
    # irfft reads its input as the transform with the opposite sign of the angle.
    chances = np.maximum(np.fft.irfft(np.conj(np.exp(log)), _POINTS, axis=-1), 0.0)
    return _turned(chances, start=centre - period / 2, period=period, unit=1.0)


def _cumulants(cells: Cells, ks: Sequence[int]) -> tuple[Floats, Floats]:
    """The mean of each cell's law for each k, and its cumulants order by order from the second."""
    betas = scaled_betas(cells.n, cells.c, ks)
    shapes = betas.a.ravel(), betas.b.ravel(), betas.scale.ravel()
    found = np.zeros((_ORDER + 1, betas.value.size))
    for start in range(0, betas.value.size, _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        _cumulants_of_betas(found[:, some], *(part[some] for part in shapes))
    found *= _FACTORIALS[[0, *range(_ORDER)], None]
    return betas.value, found.reshape(_ORDER + 1, *betas.value.shape)


def _cumulants_of_betas(found: Floats, a: Floats, b: Floats, scale: Floats) -> None:
    """Fill in the cumulants of scale * Beta(a, b) from the second on, each over (order - 1)!."""
    size = a + b
    mean = a / size
    product, lean = mean * (1 - mean) * scale**2, (1 - 2 * mean) * scale
    # Moments too are over their factorial: each cumulant is then a moment less a sum of products
    # of those before, without binomials.
    moments = np.zeros((_ORDER + 1, a.size))
    moments[0] = 1.0
    for r in range(1, _ORDER):
        # Integrating (x - mean)^r x (1 - x) f by parts gives each central moment from two before.
        inner = product * moments[r - 1] + r * lean * moments[r]
        moments[r + 1] = inner / ((r + 1) * (size + r))
    for r in range(2, _ORDER + 1):
        before = found[2 : r - 1], moments[r - 2 : 1 : -1]
        found[r] = r * moments[r] - np.einsum("jc,jc->c", *before)
