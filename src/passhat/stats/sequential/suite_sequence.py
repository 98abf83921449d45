"""pass^k of a suite whose tasks were each run until something was settled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from passhat.defaults import CONFIDENCE
from passhat.stats.estimate import Estimate, Interval
from passhat.stats.passk import pass_hat_k
from passhat.stats.special import betaln, xlog1py, xlogy

_RATES = np.linspace(0.0, 1.0, 2001)
"""Where the rate of a task is looked for: finer steps move no bound by more than 0.0001."""

_PRICES = np.geomspace(1e-5, 1e2, 240)
"""Multipliers of the likelihood constraint: each gives a valid bound, the best is the tightest."""


def suite_sequence(
    runs: Sequence[int], passes: Sequence[int], *, k: int = 1, confidence: float = CONFIDENCE
) -> Estimate:
    """The mean over tasks of p^k, with an interval that holds however each task was stopped.

    An interval for a fixed number of runs misses too often here, because tasks stop when their
    counts look decided. For each task the mixture likelihood ratio of Robbins (1970) against its
    true rate is fair at any stopping time, and a product of such bets on independent tasks is fair
    too (Vovk and Wang 2021). So all rates at which the product stays below 1 / (1 - confidence)
    form a confidence set, and the bounds are the least and the largest mean in it.

    >>> suite_sequence([40, 60], [40, 54], k=3).interval
    Interval(low=0.554..., high=0.986...)
    """
    against = _log_evidence(np.asarray(runs, float)[:, None], np.asarray(passes, float)[:, None])
    limit = -np.log(1 - confidence)
    share = _RATES**k / len(runs)
    values = [pass_hat_k(n, c, k) for n, c in zip(runs, passes, strict=True)]
    return Estimate(
        value=sum(values) / len(values),
        interval=Interval(
            max(0.0, _least_sum(share, against, limit)),
            min(1.0, -_least_sum(-share, against, limit)),
        ),
        method="product of mixture likelihood ratios (Robbins 1970; Vovk and Wang 2021)",
        confidence=confidence,
        scope="this suite",
        tasks=len(runs),
        runs=sum(runs),
    )


def _log_evidence(runs: NDArray[np.float64], passes: NDArray[np.float64]) -> NDArray[np.float64]:
    """The log of the mixture likelihood ratio of each task against every rate."""
    fit = xlogy(passes, _RATES) + xlog1py(runs - passes, -_RATES)
    return np.asarray(betaln(passes + 1, runs - passes + 1) - fit)


def _least_sum(part: NDArray[np.float64], against: NDArray[np.float64], limit: float) -> float:
    """A lower bound on the sum of `part` over tasks, where the evidence stays within `limit`.

    By Lagrange duality: every price of evidence gives a bound.
    """
    bounds = [np.min(part + price * against, axis=1).sum() - price * limit for price in _PRICES]
    return float(max(bounds))
