"""One-sided beta mixtures: evidence on each side of a single threshold, valid under watching."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from passhat.stats.arguments import Floats
from passhat.stats.special import betainc, betaln, xlog1py, xlogy

# Below this the regularised beta function has lost its digits and a continued fraction takes over.
_TINY = 1e-280
_FRACTION_TERMS = 200


def log_mixture_evidence(
    runs: ArrayLike, passes: ArrayLike, threshold: float
) -> tuple[Floats, Floats]:
    """Log evidence that the rate is above `threshold`, and that it is below.

    Likelihood ratios against the threshold, averaged over a uniform prior on the rates above it
    (below it). For every rate q above, the ratio's mean grows with the true rate and is 1 at the
    threshold, so the average is a supermartingale for every rate at or below (Ville 1939).

    >>> above, below = log_mixture_evidence(30, 30, 0.8)
    >>> round(float(above), 2), round(float(below), 2)
    (4.87, -3.43)
    """
    n, c = np.broadcast_arrays(np.asarray(runs, np.float64), np.asarray(passes, np.float64))
    at_threshold = xlogy(c, threshold) + xlog1py(n - c, -threshold)
    whole = betaln(c + 1, n - c + 1)
    above = _log_beta_tail(n - c + 1, c + 1, 1 - threshold) - np.log1p(-threshold)
    below = _log_beta_tail(c + 1, n - c + 1, threshold) - np.log(threshold)
    return whole + above - at_threshold, whole + below - at_threshold


def _log_beta_tail(a: Floats, b: Floats, x: float) -> Floats:
    """Log I_x(a, b), also where I_x itself underflows."""
    tail = betainc(a, b, x)
    lost = tail < _TINY
    logs = np.log(np.where(lost, 1.0, tail))
    if not lost.any():
        return np.asarray(logs)
    power = xlogy(a, x) + xlog1py(b, -x) - np.log(a) - betaln(a, b)
    return np.where(lost, power - np.log(_fraction(a, b, x)), logs)


def _fraction(a: Floats, b: Floats, x: float) -> Floats:
    """The continued fraction of I_x (Abramowitz & Stegun 26.5.8), from its tail backwards."""
    value = np.ones_like(a)
    for m in range(_FRACTION_TERMS, 0, -1):
        half = m // 2
        if m % 2:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            term = half * (b - half) * x / ((a + m - 1) * (a + m))
        value = 1 + term / value
    return value
