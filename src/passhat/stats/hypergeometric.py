"""The hypergeometric law: how passes fall on two sides when only chance divides them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaln

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from passhat.stats.arguments import Floats

# Beyond this many standard deviations past the start of a tail, no term shows in a double.
_REACH = 40.0
_CHUNK_TERMS = 4_000_000


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
    start = np.maximum(start, np.maximum(0, passes - n_b))
    terms = _terms(start, n_a, n_b, passes)
    tails = np.empty(start.size)
    step = max(1, _CHUNK_TERMS // terms)
    for first in range(0, start.size, step):
        rows = slice(first, first + step)
        held = start[rows, None] + np.arange(terms)
        logs = log_probability(held, n_a[rows, None], n_b[rows, None], passes[rows, None])
        tails[rows] = np.exp(logs).sum(axis=1)
    return np.minimum(tails, 1.0).reshape(arrays[0].shape)


def _terms(start: Floats, n_a: Floats, n_b: Floats, passes: Floats) -> int:
    if start.size == 0:
        return 1
    total = np.maximum(n_a + n_b, 1)
    share = passes / total
    mean = n_a * share
    sd = np.sqrt(n_a * share * (1 - share) * n_b / np.maximum(total - 1, 1))
    room = np.minimum(n_a, passes) - start
    # A tail that starts below the mean must first cross the bulk.
    reach = np.maximum(mean - start, 0) + _REACH * sd + 50
    return int(max(1, np.minimum(room, reach).max() + 1))
