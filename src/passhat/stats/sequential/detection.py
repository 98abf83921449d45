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

import numpy as np

from passhat.dataclass import dataclass
from passhat.stats.proportions import wilson_bounds

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
    wilson = float(wilson_bounds(np.array([mean]), np.array([count]), z)[0][0])
    spread = mean - z * deviation / math.sqrt(count)
    return min(MOST, max(0.0, min(wilson, spread)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Observations of one hour: their count, their sum, and the sum of their squares."""

    count: int = 0
    total: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float:
        return self.total / self.count

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            count=self.count + other.count,
            total=self.total + other.total,
            squares=self.squares + other.squares,
        )


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
    every = sum(sums.count for sums in hours.values())
    within = sum(sums.squares - sums.count * sums.mean**2 for sums in hours.values())
    variance = max(within / max(1, every - len(hours)), 0.0)
    base = {hour: 0.0 if like is None else like.get(hour, 0.0) for hour in hours}
    apart = {hour: sums.mean - base[hour] for hour, sums in hours.items()}
    middle = sum(sums.count * apart[hour] for hour, sums in hours.items()) / every
    if variance == 0.0 or len(hours) == 1:
        return {hour: (base[hour] + middle, float(every)) for hour in hours}
    spread = sum(s.count * (apart[hour] - middle) ** 2 for hour, s in hours.items()) / variance
    scale = (every - sum(sums.count**2 for sums in hours.values()) / every) / variance
    between = max(0.0, (spread - (len(hours) - 1)) / scale)
    rates = {}
    for hour, sums in hours.items():
        own = variance / sums.count
        share = between / (between + own)
        doubt = share * own + (1.0 - share) ** 2 * variance / every
        rates[hour] = (base[hour] + middle + share * (apart[hour] - middle), variance / doubt)
    return rates


HOURS_OF_WEEK, HOURS_OF_DAY, ALWAYS = 168, 24, 1
"""What a cycle is told apart by; the weekdays count as one day, and so do the days of a weekend."""

FLOOR_ERROR = 0.01
"""The chance that the floor of an hour is above the rate that it stands for."""

FEWEST_UNITS = 30
"""Observations in a reference, at least."""


def hour_of(at: float | None, by: int) -> int:
    """The hour of the week, of the day, or 0, of a time in seconds since 1970.

    >>> saturday = 1_794_661_200.0  # 2026-11-14, 13:00 UTC
    >>> [hour_of(saturday, by) for by in (HOURS_OF_WEEK, HOURS_OF_DAY, ALWAYS)]
    [37, 13, 0]
    """
    if at is None or by == ALWAYS:
        return 0
    hours = int(at // 3600)
    hour, weekday = hours % 24, (hours // 24 + 3) % 7  # the epoch began on a Thursday
    return hour + 24 * (weekday >= 5) if by == HOURS_OF_WEEK else hour


@dataclass(slots=True, kw_only=True)
class CyclicDetector:
    """Observations that keep coming: what is usual in each hour, and whether it still holds.

    First it learns: `slots` are the sums of each hour. Then `floors` are what each hour's rate is
    above, but for a small chance, and the detector bets against them; while it is `alarmed`, it
    bets that the rate is above them again.
    """

    slots: dict[int, Sums] = field(default_factory=dict)
    floors: dict[int, float] | None = None
    rates: dict[int, float] = field(default_factory=dict)
    by: int = ALWAYS
    usual: float = 0.0
    alarmed: bool = False
    detector: EDetector

    def note(self, value: float, at: float | None) -> None:
        """Learn an observation."""
        slot = hour_of(at, HOURS_OF_WEEK)
        one_more = Sums(count=1, total=value, squares=value * value)
        self.slots[slot] = self.slots.get(slot, Sums()) + one_more

    def judge(self, value: float, floor: float) -> bool:
        """Take an observation; True if it raises an alarm, or ends one."""
        if self.alarmed:  # the mirror image: is it back above the floor?
            return self.detector.update(1.0 - value, floor=1.0 - floor)
        return self.detector.update(value, floor=floor)

    def settle(self, days: float, margin: float, like: Mapping[int, float] | None = None) -> bool:
        """Take what was learnt as usual, in the cycle of `like`; False if it is too little."""
        self.by = HOURS_OF_WEEK if days >= 7.0 else HOURS_OF_DAY if days >= 1.0 else ALWAYS
        hours: dict[int, Sums] = {}
        for slot, sums in self.slots.items():
            place = {HOURS_OF_WEEK: slot, HOURS_OF_DAY: slot % 24}.get(self.by, 0)
            hours[place] = hours.get(place, Sums()) + sums
        count = sum(sums.count for sums in hours.values())
        if count < FEWEST_UNITS:
            return False
        self.usual = sum(sums.total for sums in hours.values()) / count
        spread = max(0.0, sum(sums.squares for sums in hours.values()) / count - self.usual**2)
        self.rates, self.floors = {}, {}
        for place, (rate, worth) in usual_rates(hours, like).items():
            mean = min(max(rate, 0.0), 1.0)
            low = floor_of(worth, mean, math.sqrt(spread), error=FLOOR_ERROR) - margin
            self.rates[place] = mean
            if low > 0.0:
                self.floors[place] = low
        return bool(self.floors)
