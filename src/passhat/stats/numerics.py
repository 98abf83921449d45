"""Numerics that several statistics share: hypergeometric chances, roots, a jackknife, rows."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from passhat.stats.arguments import Floats
from passhat.stats.special import betaln

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Places = NDArray[np.intp]

# A term this small beside the sum so far changes no digit of it, nor do all that follow.
_NEGLIGIBLE = 1e-18
# Kinds of rows: below the square root of what a whole number holds, so that one more column fits.
_MOST_KINDS = 2**30


def log_choose(n: ArrayLike, k: ArrayLike) -> Floats:
    """The logarithm of "n choose k".

    >>> round(float(np.exp(log_choose(5, 2))), 9)
    10.0
    """
    n, k = np.asarray(n, dtype=float), np.asarray(k, dtype=float)
    return np.asarray(-np.log1p(n) - betaln(n - k + 1, k + 1))


def log_probability(x: ArrayLike, n_a: ArrayLike, n_b: ArrayLike, passes: ArrayLike) -> Floats:
    """Log chance that side a, with n_a of the n_a + n_b runs, holds x of all the passes."""
    x, n_a, n_b, passes = (np.asarray(v, dtype=float) for v in (x, n_a, n_b, passes))
    inside = (x >= np.maximum(0, passes - n_b)) & (x <= np.minimum(n_a, passes))
    held = np.where(inside, x, np.maximum(0, passes - n_b))
    logs = log_choose(n_a, held) + log_choose(n_b, passes - held) - log_choose(n_a + n_b, passes)
    return np.where(inside, logs, -np.inf)


def upper_tail(x: ArrayLike, n_a: ArrayLike, n_b: ArrayLike, passes: ArrayLike) -> Floats:
    """Chance that side a holds x or more of all the passes: Fisher's one-sided exact p.

    >>> round(float(upper_tail(3, 3, 3, 3)), 6)
    0.05
    """
    arrays = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (x, n_a, n_b, passes)))
    start, n_a, n_b, passes = (a.ravel() for a in arrays)
    # Sums run away from the mean, where terms only shrink; a tail that holds the mean is 1 minus
    # the other side's, which has passes - x + 1 or more.
    far = start * (n_a + n_b) > n_a * passes
    tails = _falling_sum(
        np.where(far, start, passes - start + 1),
        np.where(far, n_a, n_b),
        np.where(far, n_b, n_a),
        passes,
    )
    return np.where(far, tails, 1 - tails).reshape(arrays[0].shape)


def _falling_sum(start: Floats, n_a: Floats, n_b: Floats, passes: Floats) -> Floats:
    term = np.exp(log_probability(start, n_a, n_b, passes))
    total, x = term.copy(), start.copy()
    while (term > _NEGLIGIBLE * total).any():
        left = np.maximum(np.minimum(n_a, passes) - x, 0)
        more = np.abs(n_a - passes) + left
        term = term * left * more / ((x + 1) * np.maximum(n_b - passes + x + 1, 1))
        total += term
        x += 1
    return np.minimum(total, 1.0)


# Where decreasing functions cross zero, many at once; and plain bisection for a single number.

# Sixty halvings of [0, 1] reach the spacing of floats.
_HALVINGS = 60

# So many steps narrow a bracket of length 100 to its last digit even by halving alone.
_MOST_STEPS = 60
# Values and brackets this small are 0: a probability is never shown to more digits.
_LAST_DIGITS = 1e-11
# The function is computed on a grid of so many points where there are at most so many roots.
_GRID, _FEW_ROOTS = 17, 64
# Points of the grid from which a root is first interpolated. Then three points around the guess,
# first so far apart and then so close: each time the error falls below the cube of the distance.
_NEIGHBOURS = 6
_WIDE, _NARROW = 2e-2, 5e-5
# A guess that was not close enough moves at most so far, so many times.
_LONGEST_MOVE, _MOST_ROUNDS = 0.5, 6


def find_root(of: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    """The x in [low, high] where `of` falls through 0, one for each entry of the brackets.

    The method of Anderson and Bjorck (1973): the secant through both ends, where the value of an
    end that stays a second time is scaled down. Every eighth step halves the bracket.

    >>> find_root(lambda x: 2 - x**2, np.zeros(1), np.full(1, 2.0)).round(9)
    array([1.41421356])
    """
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    return _anderson_bjorck(of, (low, high), (of(low), of(high)))


def find_root_within(
    of: Callable[[Floats], Floats],
    shape: tuple[int, ...],
    usual: tuple[float, float],
    limits: tuple[float, float],
    *,
    roughly: Callable[[Floats], Floats] | None = None,
) -> Floats:
    """The same, from a bracket that usually holds the root, opened to its limits where not.

    `of` may be called with more points at once, along further axes in front. Few roots are found
    from a whole grid, which costs little more than its two ends; `roughly` is nearly the same
    function at less cost, and then computes the grid.
    """
    points = _GRID if prod(shape) <= _FEW_ROOTS else 2
    grid = np.linspace(*usual, points)
    columns = grid.reshape(points, *(1,) * len(shape))
    everywhere = np.broadcast_to(columns, (points, *shape))
    values = (roughly or of)(everywhere)
    if points == _GRID:
        roots = _roots_on_grid(of, grid, values, limits[0])
        if roots is not None:
            return roots
    values = values if roughly is None else of(everywhere)
    right = _first_below(values)
    low, high = grid[right - 1], grid[right]
    above, below = (np.take_along_axis(values, at[None], axis=0)[0] for at in (right - 1, right))
    early, late = values[0] < 0, values[-1] > 0
    if early.any() or late.any():
        low, high = np.where(early, limits[0], low), np.where(late, limits[1], high)
        above, below = of(low), of(high)
        # If it is below 0 from the first limit on, there is nothing to search.
        high = np.where(above < 0, low, high)
    return _anderson_bjorck(of, (low, high), (above, below))


def bisect(
    holds: Callable[[float], bool], low: float, high: float, *, steps: int = _HALVINGS
) -> tuple[float, float]:
    """Two neighbours, the second of which `holds`: it does at the end `high`, not at `low`.

    >>> low, high = bisect(lambda x: x * x >= 2, 0.0, 2.0)
    >>> low <= 2**0.5 <= high, high - low < 1e-15
    (True, True)
    """
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def _roots_on_grid(
    of: Callable[[Floats], Floats], grid: Floats, values: Floats, first: float
) -> Floats | None:
    """The roots next to points of the grid, or None if one of them is outside it."""
    guess = _near_grid(grid, values)
    nowhere = values[0] < 0
    if nowhere.any():
        # Below 0 from the first limit on: there is nothing to search.
        nowhere &= of(np.full(guess.shape, first)) < 0
        # Some approximate tails fall again towards that limit, and still cross 0 inside the grid.
        # If all of these do, each has a root to polish; else they are searched from the limit on.
        if (values[:, nowhere] > 0).any(axis=0).all():
            nowhere = np.zeros_like(nowhere)
    roots = _polished(lambda x: np.where(nowhere, 0.0, of(x)), guess)
    return None if roots is None else np.where(nowhere, first, roots)


def _first_below(values: Floats) -> NDArray[np.intp]:
    """The first point, from the second on, at which the function has fallen through 0."""
    return np.asarray(np.clip((values > 0).sum(axis=0), 1, len(values) - 1))


def _near_grid(grid: Floats, values: Floats) -> Floats:
    """The roots, to about a hundredth, from the points of the grid next to them."""
    right = _first_below(values)
    first = np.clip(right - _NEIGHBOURS // 2, 0, grid.size - _NEIGHBOURS)
    places = first + np.arange(_NEIGHBOURS).reshape(-1, *(1,) * right.ndim)
    roots = _interpolated(grid[places], np.take_along_axis(values, places, axis=0))
    return np.clip(np.where(np.isfinite(roots), roots, grid[right]), grid[right - 1], grid[right])


def _polished(of: Callable[[Floats], Floats], guess: Floats) -> Floats | None:
    """The roots next to the guesses, or None if one is much further away than expected."""
    half = np.full(guess.shape, _WIDE)
    for _ in range(_MOST_ROUNDS):
        points = np.stack((guess - half, guess, guess + half))
        values = of(points)
        held = (values[0] >= 0) & (values[2] <= 0)
        root = _interpolated(points, values)
        root = np.where(np.isfinite(root), root, guess)
        if (held & (half == _NARROW)).all():
            return root
        guess = np.minimum(np.maximum(root, guess - _LONGEST_MOVE), guess + _LONGEST_MOVE)
        half = np.where(held, _NARROW, _WIDE)
    return None


def _interpolated(x: Floats, values: Floats) -> Floats:
    """The x at which the value would be 0: Lagrange's polynomial for x as a function of it."""
    same = np.eye(len(x), dtype=bool).reshape(len(x), len(x), *(1,) * (values.ndim - 1))
    apart = np.where(same, 1.0, values[:, None] - values)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = (np.where(same, 1.0, -values) / apart).prod(axis=1)
        return np.asarray((shares * x).sum(axis=0))


def _anderson_bjorck(
    of: Callable[[Floats], Floats], ends: tuple[Floats, Floats], values: tuple[Floats, Floats]
) -> Floats:
    (low, high), (above, below) = ends, values
    stayed = np.zeros(low.shape, dtype=bool)
    first, middle = True, low
    for step in range(1, _MOST_STEPS):
        middle = _next_point(low, high, above, below, halve=step % 8 == 0)
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
        exact = np.abs(value) <= _LAST_DIGITS
        low, high = np.where(right | exact, middle, low), np.where(right & ~exact, high, middle)
        stayed, first = right, False
        if (high - low <= _LAST_DIGITS).all():
            break
    return np.asarray(middle)


def _next_point(low: Floats, high: Floats, above: Floats, below: Floats, *, halve: bool) -> Floats:
    middle = (low + high) / 2
    if halve:
        return np.asarray(middle)
    with np.errstate(divide="ignore", invalid="ignore"):
        secant = high - below * (high - low) / (below - above)
    return np.where((secant > low) & (secant < high), secant, middle)


def jackknife_variance(without: Floats) -> float:
    """Tukey's (1958) variance of an estimate, from its values without each unit in turn."""
    units = without.size
    return float((units - 1) / units * ((without - without.mean()) ** 2).sum())


def distinct_rows(table: Floats) -> tuple[Places, Places]:
    """The place of the first row of each kind, the kinds in order, and the kind of each row.

    What `np.unique` says with `axis=0`, in a tenth of its time: rows become whole numbers, the
    first column the most significant digit.

    >>> first, kind = distinct_rows(np.array([[2.0, 0.5], [1.0, 0.7], [2.0, 0.5]]))
    >>> first.tolist(), kind.tolist()
    ([1, 0], [1, 0, 1])
    """
    key, kinds = np.zeros(len(table), dtype=np.int64), 1
    for column in table.T:
        digit = column.astype(np.int64) if np.abs(column).max() < _MOST_KINDS else None
        if digit is None or np.any(digit != column):
            digit = np.unique(column, return_inverse=True)[1]
        digit = digit - digit.min()
        radix = int(digit.max()) + 1
        if kinds * radix > _MOST_KINDS:
            key = np.unique(key, return_inverse=True)[1]
            kinds = int(key.max()) + 1
        key, kinds = key * radix + digit, kinds * radix
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    return first, kind
