"""Chains: how reliable several steps in a row are, and how often a failure is contained."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passhat.arguments import CONFIDENCE, whole_number
from passhat.dataclass import short_dataclass
from passhat.errors import ArgumentError
from passhat.stats import special
from passhat.stats.arguments import Counts, Floats, confidence_level, trial_counts
from passhat.stats.estimate import Estimate, Interval, Unavailable
from passhat.stats.proportions import share_estimate

EXACT_ZERO_FAILURES = "product of steps, exact (zero failures)"
EXACT_ZERO_PASSES = "product of steps, exact (a step never passed)"
EFFECTIVE_RUNS = "product of steps, Lindstrom-Madden with effective runs"


@short_dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """A chain that succeeds only if every step does: the product, and the steps it came from."""

    reliability: Estimate
    steps: tuple[Estimate, ...]
    weakest: int

    @property
    def length(self) -> int:
        return len(self.steps)


def cascade(steps: Sequence[tuple[int, int]], *, confidence: float = CONFIDENCE) -> Cascade:
    """The reliability of a chain of independent steps, each given as (passes, runs).

    The interval is that of Lindstrom and Madden (Lloyd and Lipow 1962): a binomial with the
    product as its rate, here with as many runs as give the product's own variance, never fewer
    than the least tested step has. With zero failures the bound is exact, and depends only on the
    step with the fewest runs: a failure could still hide there most easily.

    >>> chain = cascade([(19, 20), (48, 50), (30, 30)])
    >>> round(chain.reliability.value, 3), chain.weakest
    (0.912, 0)
    >>> round(cascade([(20, 20), (50, 50)]).reliability.interval.low, 4)  # 0.025 ** (1 / 20)
    0.8316
    """
    level = confidence_level(confidence)
    passes, runs = _step_counts(steps)
    value = float(np.prod(passes / runs))
    method, bounds = _product_interval(passes, runs, value, confidence=level)
    return Cascade(
        reliability=Estimate(
            value=value, interval=bounds, method=method, confidence=level, runs=int(runs.sum())
        ),
        steps=tuple(
            share_estimate(c, n, method="wilson", confidence=level)
            for c, n in zip(passes.tolist(), runs.tolist(), strict=True)
        ),
        weakest=int(np.argmin(passes / runs)),
    )


def containment_rate(
    contained: int, escaped: int, *, confidence: float = CONFIDENCE
) -> Estimate | Unavailable:
    """The share of failures that were caught before they did harm (Wilson).

    >>> rate = containment_rate(9, 1)
    >>> rate.value, round(rate.interval.low, 3)
    (0.9, 0.596)
    """
    caught = whole_number("contained", contained, least=0)
    loose = whole_number("escaped", escaped, least=0)
    level = confidence_level(confidence)
    if caught + loose == 0:
        return Unavailable("no failure happened, so none could be contained")
    return share_estimate(caught, caught + loose, method="wilson", confidence=level)


def _step_counts(steps: Sequence[tuple[int, int]]) -> tuple[Counts, Counts]:
    pairs = list(steps)
    if not pairs or any(np.shape(pair) != (2,) for pair in pairs):
        raise ArgumentError("steps", "must be at least one pair (passes, runs)", steps)
    runs, passes = trial_counts([n for _, n in pairs], [c for c, _ in pairs])
    if (runs < 1).any():
        raise ArgumentError("steps", "must have at least 1 run each", pairs[int(runs.argmin())])
    return passes, runs


def _product_interval(
    passes: Counts, runs: Counts, value: float, *, confidence: float
) -> tuple[str, Interval]:
    tail = (1 - confidence) / 2
    if (passes == runs).all():
        return EXACT_ZERO_FAILURES, Interval(float(tail ** (1 / runs.min())), 1.0)
    if (passes == 0).any():
        tested = runs[passes == 0].max()
        return EXACT_ZERO_PASSES, Interval(0.0, float(1 - tail ** (1 / tested)))
    trials = _effective_runs(passes.astype(np.float64), runs.astype(np.float64))
    failures = trials * (1 - value)
    low = special.betaincinv(trials - failures, failures + 1, tail)
    high = special.betaincinv(trials - failures + 1, failures, 1 - tail)
    return EFFECTIVE_RUNS, Interval(min(float(low), value), max(float(high), value))


def _effective_runs(passes: Floats, runs: Floats) -> float:
    """The runs of one binomial whose variance is that of the product, by the delta method."""
    # Half a pass and half a failure keep the variance of a step that always passed above 0.
    rate = (passes + 0.5) / (runs + 1)
    product = float(np.prod(rate))
    log_variance = float(((1 - rate) / (rate * runs)).sum())
    return max(float(runs.min()), (1 - product) / (product * log_variance))
