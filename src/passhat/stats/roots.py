"""Where decreasing functions cross zero, many at once, without derivatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from passhat.stats.arguments import Floats

# So many steps narrow a bracket of length 100 to its last digit even by halving alone.
_MOST_STEPS = 60
_LAST_DIGITS = 1e-11


def crossing(of: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """The x in [low, high] where `of` falls through 0, one for each entry of the brackets.

    The method of Anderson and Bjorck (1973): the secant through both ends, where the value of an
    end that stays a second time is scaled down. Every eighth step halves the bracket.

    >>> crossing(lambda x: 2 - x**2, np.zeros(1), np.full(1, 2.0)).round(9)
    array([1.41421356])
    """
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    return _crossing(of, (low, high), (of(low), of(high)))


def crossing_within(
    of: Callable[[Floats], Floats],
    shape: tuple[int, ...],
    usual: tuple[float, float],
    limits: tuple[float, float],
) -> Floats:
    """The same, from a bracket that usually holds the root, opened to its limits where not."""
    low, high = (np.full(shape, end) for end in usual)
    above, below = of(low), of(high)
    if not ((above >= 0).all() and (below <= 0).all()):
        low, high = np.where(above >= 0, low, limits[0]), np.where(below <= 0, high, limits[1])
        above, below = of(low), of(high)
    return _crossing(of, (low, high), (above, below))


def _crossing(
    of: Callable[[Floats], Floats], ends: tuple[Floats, Floats], values: tuple[Floats, Floats]
) -> Floats:
    (low, high), (above, below) = ends, values
    stayed = np.zeros(low.shape, dtype=bool)
    first, middle = True, low
    for step in range(1, _MOST_STEPS):
        middle = _between(low, high, above, below, halve=step % 8 == 0)
        value = of(middle)
        right = value > 0
        replaced = np.where(right, above, below)
        share = 1 - value / np.where(replaced == 0, 1.0, replaced)
        again = (right == stayed) & (not first)
        damped = np.where(again, np.where(share > 0, share, 0.5), 1.0)
        above, below = (
            np.where(right, value, above * damped),
            np.where(right, below * damped, value),
        )
        found = np.abs(value) <= _LAST_DIGITS
        low, high = np.where(right | found, middle, low), np.where(right & ~found, high, middle)
        stayed, first = right, False
        if (high - low <= _LAST_DIGITS).all():
            break
    return np.asarray(middle)


def _between(low: Floats, high: Floats, above: Floats, below: Floats, *, halve: bool) -> Floats:
    middle = (low + high) / 2
    if halve:
        return np.asarray(middle)
    with np.errstate(divide="ignore", invalid="ignore"):
        secant = high - below * (high - low) / (below - above)
    return np.where((secant > low) & (secant < high), secant, middle)
