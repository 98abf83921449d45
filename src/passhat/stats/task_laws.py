"""The law of each task's pass^k given its runs; it moves to the right with every pass."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from passhat.dataclass import dataclass
from passhat.stats import special
from passhat.stats.arguments import Floats
from passhat.stats.passk import share_of_passing_subsets, shares_of_passing_subsets

# Splitting a value between two points of the lattice adds up to a sixth of a squared step to
# its variance; four steps to the standard deviation of the tightest law, one failure in n runs,
# keep that at 1 %.
_STEPS_PER_DEVIATION = 4
_FEWEST_STEPS, _MOST_STEPS = 64, 512
NO_VALUE = 1e-12
"""A pass^k below this is 0 to every digit that is ever shown."""

# Beyond this exponent a tail is below e^-40, less than the rounding of a float.
_REACH = 40.0
# From so many times k runs on, betas of these means and variances are in order.
_BETAS_IN_ORDER = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScaledBetas:
    """Laws of pass^k: scale * Beta(a, b) where it `varies`, else `value`; a row for each k."""

    value: Floats
    varies: NDArray[np.bool_]
    a: Floats
    b: Floats
    scale: Floats


def lattice_steps(n: Floats, k: int) -> int:
    """Into how many steps [0, 1] is divided for tasks of so many runs: a power of two."""
    wanted = np.clip(_STEPS_PER_DEVIATION * n.max() / k, _FEWEST_STEPS, _MOST_STEPS)
    return int(2 ** np.ceil(np.log2(wanted)))


def task_laws(n: Floats, c: Floats, k: int, steps: int) -> Floats:
    """Chances of pass^k being 0, 1/steps, ... 1 after c passes in n >= 2k runs; a row for each.

    Mean and variance are those that the counts say without bias: f = C(c, k) / C(n, k) and
    f^2 - C(c, 2k) / C(n, 2k). A row with more passes lies to the right of one with fewer, at
    every chance, and so does whatever only adds and mixes rows.
    """
    laws = np.empty((n.size, steps + 1))
    close = ~betas_in_order(n, k)
    laws[~close] = _beta_laws(n[~close], c[~close], k, steps)
    for runs in set(n[close].tolist()):
        rows = n == runs
        laws[rows] = _chained_laws(int(runs), k, steps)[c[rows].astype(np.intp)]
    return laws


def scaled_betas(n: Floats, c: Floats, ks: Sequence[int]) -> ScaledBetas:
    """Betas; with fewer than 2k - 1 passes, where the variance is f^2, that of 2k - 1 scaled."""
    value = shares_of_passing_subsets(n, c, ks)
    twice = shares_of_passing_subsets(n, c, [2 * k for k in ks])
    top = value.copy()
    for row, k in enumerate(ks):
        few = (c >= k) & (c < 2 * k - 1)
        if few.any():
            top[row, few] = share_of_passing_subsets(n[few], np.full(few.sum(), 2.0 * k - 1), k)
    varies = (c < n) & (c >= np.array(ks)[:, None]) & (top > NO_VALUE)
    # What does not vary is a beta of some shape times 0.
    most = np.where(varies, top, 0.5)
    relative = np.where(varies, 1 - twice / most / most, 0.5)
    first = (1 - most) / relative - most
    second = first * (1 - most) / most
    scale = np.where(varies, value / most, 0.0)
    return ScaledBetas(value=value, varies=varies, a=first, b=second, scale=scale)


def betas_in_order(n: Floats, k: int) -> NDArray[np.bool_]:
    """Where so many runs make `scaled_betas` move to the right with every pass."""
    return np.asarray(n >= _BETAS_IN_ORDER * k)


def _beta_laws(n: Floats, c: Floats, k: int, steps: int) -> Floats:
    betas = scaled_betas(n, c, (k,))
    varies = betas.varies[0]
    points = np.arange(steps + 2) / steps
    below = np.maximum(points - betas.value[0, :, None], 0.0)
    shapes = betas.a[0, varies], betas.b[0, varies]
    below[varies] = _expected_shortfall(shapes, betas.scale[0, varies], points)
    return _split(below, steps)


@lru_cache(maxsize=64)
def _chained_laws(n: int, k: int, steps: int) -> Floats:
    """Laws for every count of passes where n is close to 2k, and betas would cross.

    From one failure downward, the law with one pass fewer is that with one pass more, times a
    share: the mean share, or else 1 or 0 with that mean, mixed so that the second moment is right.
    """
    passes = np.arange(n + 1.0)
    runs = np.full(n + 1, float(n))
    value = share_of_passing_subsets(runs, passes, k)
    square = 2 * value**2 - share_of_passing_subsets(runs, passes, 2 * k)
    laws = np.zeros((n + 1, steps + 1))
    laws[n, steps], laws[:k, 0] = 1.0, 1.0
    spread = square[n - 1] - value[n - 1] ** 2
    size = value[n - 1] * (1 - value[n - 1]) / spread - 1
    if size > 1e-9:
        shapes = (np.array([value[n - 1] * size]), np.array([(1 - value[n - 1]) * size]))
        points = np.arange(steps + 2) / steps
        laws[n - 1] = _split(_expected_shortfall(shapes, np.ones(1), points), steps)[0]
    else:
        laws[n - 1, [0, steps]] = 1 - value[n - 1], value[n - 1]
    for one in range(n - 2, k - 1, -1):
        if value[one] < NO_VALUE:
            laws[one, 0] = 1.0
            continue
        share = value[one] / value[one + 1]
        moment = square[one] / square[one + 1]
        thinned = float(np.clip((moment - share**2) / (share - share**2), 0.0, 1.0))
        laws[one] = (1 - thinned) * _scaled(laws[one + 1], share)
        laws[one] += thinned * share * laws[one + 1]
        laws[one, 0] += thinned * (1 - share)
    return laws


def _scaled(law: Floats, share: float) -> Floats:
    """The law of a share of what has this law, each value split between its neighbours."""
    places = np.arange(law.size) * share
    left = np.minimum(places.astype(np.intp), law.size - 2)
    right = (places - left) * law
    found = np.bincount(left, law - right, law.size)
    found[1:] += np.bincount(left, right, law.size)[:-1]
    return np.asarray(found)


def _expected_shortfall(shapes: tuple[Floats, Floats], scale: Floats, points: Floats) -> Floats:
    """E max(x - s X, 0) for X from Beta(a, b)."""
    a, b = (shape[:, None] for shape in shapes)
    mean, factor = a / (a + b), scale[:, None]
    x = points / factor
    short = np.maximum(x - mean, 0.0)
    # Beyond its reach X lies on one side of x, to every digit.
    below, above = mean - _reach(b, a), mean + _reach(a, b)
    rows, columns = np.nonzero((x < 1) & (x > below) & (x < above))
    inside, first, second = x[rows, columns], shapes[0][rows], shapes[1][rows]
    missing = mean[rows, 0] * special.betainc(first + 1, second, inside)
    short[rows, columns] = inside * special.betainc(first, second, inside) - missing
    return np.asarray(factor * short)


def _reach(a: Floats, b: Floats) -> Floats:
    """How far above its mean Beta(a, b) reaches: Bernstein's inequality at exp(-_REACH)."""
    mean = a / (a + b)
    variance = mean * (1 - mean) / (a + b + 1)
    heavy = _REACH * variance / mean
    return np.asarray(heavy + np.sqrt(heavy**2 + 2 * _REACH * variance))


def _split(below: Floats, steps: float) -> Floats:
    """Chances on the lattice with the mean of the law: each value is split between neighbours."""
    before = np.concatenate((np.zeros((len(below), 1)), below[:, :-2]), axis=1)
    chances = steps * (below[:, 1:] - 2 * below[:, :-1] + before)
    return np.maximum(chances, 0.0)
