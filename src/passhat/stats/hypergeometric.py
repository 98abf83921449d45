"""The hypergeometric law: how passes fall on two sides when only chance divides them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from passhat.stats.special import betaln

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from passhat.stats.arguments import Floats

# A term this small beside the sum so far changes no digit of it, nor do all that follow.
_NEGLIGIBLE = 1e-18


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
