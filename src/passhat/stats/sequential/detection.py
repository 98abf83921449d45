"""Has a rate dropped? Looking after every observation, with a known number of false alarms.

The e-detector of Shin, Ramdas and Rinaldo (2023, "E-detectors: a nonparametric framework for
sequential change detection"), in its form after Shiryaev and Roberts: M_n = e_n (M_{n-1} + 1). If
every e_n has a mean of at most 1 while nothing is wrong, then M_n - n is a supermartingale, so the
mean time to a false alarm at M_n >= N is at least N: whatever the law of the observations, and
however they depend on one another, as long as their mean given the past stays above the floor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from statistics import NormalDist

from passhat.dataclass import dataclass

BETS = (0.03, 0.06, 0.12, 0.24, 0.42, 0.62, 0.82)
"""Shares of the pass rate that a drop may take away: each bet is best against a drop of that size
(Kelly). The mean over bets costs log 7 against the best of them. Above .9 a bet would lose almost
all at a single pass."""

MOST = 0.999
"""A floor above this leaves no room to bet against."""


@dataclass(slots=True, kw_only=True)
class EDetector:
    """Raises an alarm when observations in [0, 1] fall below their floor.

    In the mean at least `every` observations pass before a false alarm. `start` is where the change
    seems to have been: the observation, counted from 0, at which the best bet began to win.

    >>> detector = EDetector(every=1000)
    >>> [detector.update(0.0, floor=0.9) for _ in range(4)]
    [False, False, False, True]
    """

    every: float
    sums: list[float] = field(default_factory=lambda: [0.0] * len(BETS))
    runs: list[float] = field(default_factory=lambda: [1.0] * len(BETS))
    starts: list[int] = field(default_factory=lambda: [0] * len(BETS))
    seen: int = 0

    def update(self, value: float, *, floor: float) -> bool:
        """Take an observation whose mean is at least `floor` if nothing is wrong."""
        edge = (floor - value) / (1.0 - floor)
        for i, bet in enumerate(BETS):
            e = 1.0 + bet * edge
            self.sums[i] = e * (self.sums[i] + 1.0)
            if self.runs[i] <= 1.0:
                self.runs[i], self.starts[i] = 1.0, self.seen
            self.runs[i] *= e
        self.seen += 1
        return self.evidence >= self.every

    @property
    def evidence(self) -> float:
        """The mean of the bets' sums: an alarm is due at `every`."""
        return math.fsum(self.sums) / len(BETS)

    @property
    def start(self) -> int:
        best = max(range(len(BETS)), key=self.sums.__getitem__)
        return self.starts[best]

    def restart(self) -> None:
        """Forget everything but how many observations there were."""
        fresh = EDetector(every=self.every)
        self.sums, self.runs = fresh.sums, fresh.runs
        self.starts = [self.seen] * len(BETS)


def floor_of(count: float, mean: float, deviation: float, *, error: float) -> float:
    """The rate that `count` observations show to be exceeded, but for a chance of `error`.

    The lower of two bounds: Wilson's, which knows that a rate ends at 1, and the one by the
    standard `deviation` of the observations, which knows how far they really spread.

    >>> round(floor_of(400, 0.9, 0.3, error=0.01), 3)
    0.86
    """
    z = -NormalDist().inv_cdf(error)
    middle = (mean + z * z / (2 * count)) / (1 + z * z / count)
    half = (
        z * math.sqrt(mean * (1 - mean) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    )
    spread = mean - z * deviation / math.sqrt(count)
    return min(MOST, max(0.0, min(middle - half, spread)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Observations of one hour: their count, their sum, and the sum of their squares."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float:
        return self.total / self.count


def usual_rates(
    hours: Mapping[int, Sums], like: Mapping[int, float] | None = None
) -> dict[int, tuple[float, float]]:
    """The rate of each hour, and how many observations it is worth.

    The mean of an hour is drawn towards what the other hours show, as far as the hours do not
    differ by more than chance (DerSimonian and Laird 1986, empirical Bayes). With `like`, what is
    drawn together is how far each hour is from these rates: a family of tasks has the cycle of all
    of them unless its own hours say otherwise.

    >>> flat = {hour: Sums(count=50, total=45.0, squares=45.0) for hour in range(24)}
    >>> {rate: round(worth) for rate, worth in usual_rates(flat).values()}
    {0.9: 1200}
    """
    every = sum(one.count for one in hours.values())
    within = sum(one.squares - one.count * one.mean**2 for one in hours.values())
    variance = max(within / max(1, every - len(hours)), 0.0)
    base = {hour: 0.0 if like is None else like.get(hour, 0.0) for hour in hours}
    apart = {hour: one.mean - base[hour] for hour, one in hours.items()}
    middle = sum(one.count * apart[hour] for hour, one in hours.items()) / every
    if variance == 0.0 or len(hours) == 1:
        return {hour: (base[hour] + middle, float(every)) for hour in hours}
    spread = sum(one.count * (apart[hour] - middle) ** 2 for hour, one in hours.items()) / variance
    scale = (every - sum(one.count**2 for one in hours.values()) / every) / variance
    between = max(0.0, (spread - (len(hours) - 1)) / scale)
    found = {}
    for hour, one in hours.items():
        own = variance / one.count
        share = between / (between + own)
        doubt = share * own + (1.0 - share) ** 2 * variance / every
        found[hour] = (base[hour] + middle + share * (apart[hour] - middle), variance / doubt)
    return found
