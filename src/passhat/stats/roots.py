"""Where decreasing functions cross zero, many at once, without derivatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from passhat.stats.arguments import Floats

# So many steps narrow a bracket of length 100 to its last digit even by halving alone.
_MOST_STEPS = 60
_LAST_DIGITS = 1e-12


def crossing(of: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """The x in [low, high] where `of` falls through 0, one for each entry of the brackets.

    The Illinois method (Dowell and Jarratt 1971): the secant through both ends, where an end
    that stays a second time counts for half its value. Every fifth step halves the bracket.

    >>> crossing(lambda x: 2 - x**2, np.zeros(1), np.full(1, 2.0)).round(9)
    array([1.41421356])
    """
    low, high = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    above, below = of(low), of(high)
    moved = np.zeros(low.shape)
    middle, value = low, above
    for step in range(1, _MOST_STEPS):
        middle = _between(low, high, above, below, halve=step % 5 == 0)
        value = of(middle)
        right = value > 0
        above = np.where(right, value, np.where(moved < 0, above / 2, above))
        below = np.where(right, np.where(moved > 0, below / 2, below), value)
        low, high = np.where(right, middle, low), np.where(right, high, middle)
        moved = np.where(right, 1.0, -1.0)
        near = _LAST_DIGITS * np.maximum(1.0, np.abs(middle))
        if ((high - low <= near) | (np.abs(value) <= _LAST_DIGITS)).all():
            break
    return np.asarray(middle)


def _between(low: Floats, high: Floats, above: Floats, below: Floats, *, halve: bool) -> Floats:
    middle = (low + high) / 2
    if halve:
        return np.asarray(middle)
    with np.errstate(divide="ignore", invalid="ignore"):
        secant = high - below * (high - low) / (below - above)
    return np.where((secant > low) & (secant < high), secant, middle)
