"""When a gate on one task stops: the boundaries of each design, in passes after each run."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import floor, inf, log

import numpy as np
from numpy.typing import ArrayLike

from passhat.stats.arguments import Counts, Floats
from passhat.stats.roots import bisected
from passhat.stats.sequential.fixed_designs import fewest_passes, fixed_design
from passhat.stats.sequential.operating import Boundaries, operating_characteristics
from passhat.stats.special import bdtr, bdtrc, betainc, betaln, xlog1py, xlogy

# The truncated design may use a tenth more runs than the fixed one: enough slack to stop early.
_TRUNCATION = 1.1
# Levels of log evidence are found to a 16,000th of their range: boundaries are whole passes.
_BISECTIONS = 14
# Evidence that differs from a boundary by rounding alone has reached it.
_ROUNDING = 1e-9
# Below this the regularised beta function has lost its digits and a continued fraction takes over.
_TINY = 1e-280
# Far more terms than the tail of any gate needs.
_FRACTION_TERMS = 200


def log_likelihood_ratio(runs: float, passes: float, p0: float, p1: float) -> float:
    """Log evidence for p1 against p0; its negative is the evidence for p0."""
    return passes * log(p1 / p0) + (runs - passes) * log((1 - p1) / (1 - p0))


@lru_cache(maxsize=2048)
def ratio_boundaries(
    p0: float, p1: float, log_pass: float, log_fail: float, max_runs: int
) -> Boundaries:
    """Wald's sequential probability ratio test: stop at a likelihood ratio either way."""
    up, down = log(p1 / p0), log((1 - p1) / (1 - p0))
    runs = np.arange(1, max_runs + 1)
    pass_at = np.ceil((log_pass - runs * down) / (up - down) - _ROUNDING)
    fail_at = np.floor((-log_fail - runs * down) / (up - down) + _ROUNDING)
    return _boundaries(fail_at, pass_at)


@lru_cache(maxsize=2048)
def curtailed_boundaries(runs: int, passes_needed: int) -> Boundaries:
    """A fixed number of runs, ended as soon as arithmetic decides: the verdict is the same."""
    n = np.arange(1, runs + 1)
    return _boundaries(n - (runs - passes_needed) - 1, np.full(runs, passes_needed))


@lru_cache(maxsize=2048)
def mixture_boundaries(threshold: float, alpha: float, beta: float, max_runs: int) -> Boundaries:
    """One threshold and no indifference zone: one-sided mixtures at Ville's 1/alpha and 1/beta."""
    runs = np.arange(1, max_runs + 1)

    def evidence(passes: Counts) -> tuple[Floats, Floats]:
        return log_mixture_evidence(runs, passes, threshold)

    pass_at = fewest_passes(runs, lambda c: evidence(c)[0] >= -log(alpha))
    keeps = fewest_passes(runs, lambda c: evidence(c)[1] < -log(beta))
    return _boundaries(keeps - 1, pass_at)


@lru_cache(maxsize=2048)
def truncated_boundaries(p0: float, p1: float, alpha: float, beta: float) -> Boundaries:
    """A ratio test that always decides, calibrated exactly: both errors within alpha and beta.

    The ratio thresholds are lowered together, then each alone, while the exact errors allow.
    """
    runs, needed = _longest_design(p0, p1, alpha, beta)
    candidates = [_calibrated(p0, p1, alpha, beta, runs, passes) for passes in needed]

    def expected_runs(found: Boundaries) -> float:
        return float(sum(operating_characteristics(found, (p0, p1)).expected_runs))

    return min(candidates, key=expected_runs)


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


def _boundaries(fail_at: Counts | Floats, pass_at: Counts | Floats) -> Boundaries:
    runs = np.arange(1, len(pass_at) + 1)
    # Out of reach is written as -1 and n + 1, so that equal designs compare equal.
    return Boundaries(
        fail_at=tuple(np.clip(fail_at, -1, runs).astype(int).tolist()),
        pass_at=tuple(np.clip(pass_at, 0, runs + 1).astype(int).tolist()),
    )


def _longest_design(p0: float, p1: float, alpha: float, beta: float) -> tuple[int, list[int]]:
    """About 1.1 times the fixed runs, and the final cut-offs that keep both errors there."""
    runs = floor(_TRUNCATION * fixed_design(p0, p1, alpha, beta).runs)
    while True:
        passes = np.arange(1, runs + 1)
        valid = (bdtrc(passes - 1.0, runs, p0) <= alpha) & (bdtr(passes - 1.0, runs, p1) <= beta)
        if valid.any():
            return runs, passes[valid].tolist()
        runs += 1


def _calibrated(
    p0: float, p1: float, alpha: float, beta: float, runs: int, needed: int
) -> Boundaries:
    def design(log_pass: float, log_fail: float) -> Boundaries:
        ratio = ratio_boundaries.__wrapped__(p0, p1, log_pass, log_fail, runs)
        fixed = curtailed_boundaries(runs, needed)
        return Boundaries(
            fail_at=tuple(map(max, ratio.fail_at, fixed.fail_at)),
            pass_at=tuple(map(min, ratio.pass_at, fixed.pass_at)),
        )

    def keeps(log_pass: float, log_fail: float) -> bool:
        found = operating_characteristics(design(log_pass, log_fail), (p0, p1))
        return bool(found.pass_probability[0] <= alpha and found.fail_probability[1] <= beta)

    most = 2 * max(-log(alpha), -log(beta))
    both = _lowest(lambda level: keeps(level, level), most)
    log_fail = _lowest(lambda level: keeps(both, level), both)
    log_pass = _lowest(lambda level: keeps(level, log_fail), both)
    return design(log_pass, log_fail)


def _lowest(keeps: Callable[[float], bool], most: float) -> float:
    """A level near the lowest that keeps the errors; infinity where even `most` does not."""
    return bisected(keeps, 0.0, most, steps=_BISECTIONS)[1] if keeps(most) else inf


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
