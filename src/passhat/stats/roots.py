"""Where decreasing functions cross zero, many at once, without derivatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod

import numpy as np

from passhat.stats.arguments import Floats

# So many steps narrow a bracket of length 100 to its last digit even by halving alone.
_MOST_STEPS = 60
_LAST_DIGITS = 1e-11
# The points of a grid, and on either side of it; looked at where there are so few roots.
_INSIDE, _OUTSIDE, _FEW_ROOTS = 17, 5, 64


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
    """The same, from a bracket that usually holds the root, opened to its limits where not.

    `of` may be asked at more points at once, along further axes in front. Few roots are found by
    looking at a whole grid first, which costs little more than looking at its ends.
    """
    grid = _grid(usual, limits) if prod(shape) <= _FEW_ROOTS else np.array(usual)
    columns = grid.reshape(grid.size, *(1,) * len(shape))
    values = of(np.broadcast_to(columns, (grid.size, *shape)))
    if not ((values[0] >= 0).all() and (values[-1] <= 0).all()):
        low = np.where(values[0] >= 0, grid[0], limits[0])
        high = np.where(values[-1] <= 0, grid[-1], limits[1])
        return _crossing(of, (low, high), (of(low), of(high)))
    right = np.clip((values > 0).sum(axis=0), 1, grid.size - 1)
    above, below = (np.take_along_axis(values, at[None], axis=0)[0] for at in (right - 1, right))
    return _crossing(of, (grid[right - 1], grid[right]), (above, below))


@lru_cache(maxsize=16)
def _grid(usual: tuple[float, float], limits: tuple[float, float]) -> Floats:
    """Close points where the root usually lies, wide ones up to the limits."""
    inside = np.linspace(*usual, _INSIDE)
    before, after = (
        np.linspace(end, limit, _OUTSIDE) for end, limit in zip(usual, limits, strict=True)
    )
    return np.concatenate((before[:0:-1], inside, after[1:]))


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
