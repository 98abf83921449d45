"""The quantile of the largest of several |t| in a row, each correlated with the next."""

from __future__ import annotations

from functools import cache

import numpy as np

from passhat.stats import special
from passhat.stats.arguments import Floats

_STEPS = 100
_TOLERANCE = 1e-10
_NODES = 24


def largest_t(neighbours: Floats, freedom: float, confidence: float) -> float:
    """The c that no |t| of a row exceeds with chance `confidence`, at the least.

    `neighbours` are the correlations of the first with the second, of the second with the third,
    and so on. One exceeds c if the first does, or if some other does while the one before it does
    not (Hunter 1976, Worsley 1982): a bound that needs no simulation. The smoother the
    row, the closer it is: within 0.3 % of the quantile for decay curves.

    >>> round(largest_t(np.array([0.9, 0.8]), 20, 0.95), 3)
    2.423
    """
    tail = 1 - confidence
    single = float(special.stdtrit(freedom, 1 - tail / 2))
    apart = float(special.stdtrit(freedom, 1 - tail / 2 / (len(neighbours) + 1)))
    angles = np.arccos(np.clip(neighbours, -1.0, 1.0))[:, None]
    # Newton, or halving where its step is no shorter: at low levels the chance is not convex.
    low, high, c, step = single, apart, single, apart - single
    for _ in range(_STEPS):
        chance, slope = _chance_of_any(c, freedom, angles)
        low, high = (c, high) if chance > tail else (low, c)
        newton = (chance - tail) / -slope if slope < 0 else step
        short = abs(newton) <= abs(step) / 2 and low <= c + newton <= high
        step = newton if short else (low + high) / 2 - c
        c += step
        if abs(step) < _TOLERANCE * c:
            break
    return max(c, single)


def _chance_of_any(c: float, freedom: float, angles: Floats) -> tuple[float, float]:
    """The bound on P(any |t| > c), and its slope in c.

    P(the next exceeds, this does not) at a correlation cos(angle) is the integral from 0 to the
    angle of Plackett's derivative of a bivariate t (Genz 2004) over the corners of the square:
    ((1 + c^2 / (f cos^2(x/2)))^(-f/2) - (1 + c^2 / (f sin^2(x/2)))^(-f/2)) / pi.
    """
    node, weight = _gauss_legendre()
    x, weight = angles * (node + 1) / 4, angles * weight / (2 * np.pi)
    square = np.stack((np.cos(x) ** 2, np.sin(x) ** 2))
    height = c * c / freedom
    power = (square / (square + height)) ** (freedom / 2)
    fall = -c * power / (square + height)
    gain, loss = (((part[0] - part[1]) * weight).sum() for part in (power, fall))
    density = _density(c, freedom)
    return float(2 * special.stdtr(freedom, -c) + gain), float(-2 * density + loss)


@cache
def _gauss_legendre() -> tuple[Floats, Floats]:
    """Nodes and weights on [-1, 1] (Golub and Welsch 1969): numpy's cost an import of 10 ms."""
    j = np.arange(1, _NODES)
    beside = j / np.sqrt(4.0 * j * j - 1)
    nodes, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    return nodes, 2 * vectors[0] ** 2


def _density(t: float, freedom: float) -> float:
    log = -special.betaln(0.5, freedom / 2) - (freedom + 1) / 2 * np.log1p(t * t / freedom)
    return float(np.exp(log) / np.sqrt(freedom))
