"""Whether runs are dependent: rounds that differ by more than chance, a drift, bursts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from math import log
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from passhat.dataclass import dataclass, short_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import (
    Counts,
    Floats,
    RandomSource,
    count_array,
    float_array,
    random_generator,
)
from passhat.stats.estimate import Unavailable
from passhat.stats.special import chdtrc, ndtr

Generator: TypeAlias = "Callable[[], np.random.Generator]"

SPREAD_LEVEL = 0.004
"""The share of runs in which rounds are reported to differ though nothing happened."""

DRIFT_LEVEL = 0.003
"""The share in which a drift is reported. With bursts, the three add up to 1 %."""

_LARGEST_LEVEL = max(SPREAD_LEVEL, DRIFT_LEVEL)
# Chi-squared and normal tails at these levels are right when at least this many tasks both passed
# and failed (simulated); with fewer, p-values come from permuting the runs of each task.
_MANY_TASKS = 100
# Above this p permutations are not worth their time: the exact p would not be below a level.
_WORTH_PERMUTING = 0.05
# As many permutations as keep cells times permutations below the work, and p-values fine enough.
_MOST_PERMUTATIONS, _FEWEST_PERMUTATIONS = 4_000, 1_000
_WORK = 8_000_000
# Permutations drawn at a time: enough for numpy, few enough to stop early.
_BLOCK = 1 << 16
# With runs missing, the covariance of up to this many rounds is quickly inverted.
_MOST_ROUNDS = 500
# Eigenvalues of the covariance below this share of the largest are rounding.
_NO_VARIANCE = 1e-9
# At most this share of the rounds is called out of line: with more, none can be called normal.
_FEW_ROUNDS = 1 / 3
# A drift is reported only if a line explains at least this share of the spread between rounds.
_MOSTLY_STRAIGHT = 0.5
# A stretch of failures is a burst when its chance, times the number of runs (the places where it
# could have begun), is below this. Rates come from the same runs, which makes bursts rarer: with
# 0.008, independent runs show a burst at most 0.3 % of the time (bench/calibrate/dependence.py).
BURST_LEVEL = 0.008
# A task's rate is pulled to the suite's with the weight of 1.5 runs: two failures do not make it 0.
_BORROWED_RUNS = 1.5
# Two failures in a row are no burst, whatever their chance.
_FEWEST_FAILURES = 3


@short_dataclass(frozen=True, slots=True, kw_only=True)
class RoundTests:
    """How far whole rounds differ, tested against chance: runs that are independent given the task.

    `spread_p` is the p of Cochran's Q, `drift_p` that of a straight line over the rounds. `drift`
    is how far that line moves from the first round to the last, `straightness` the share of the
    spread that it explains. `out_of_line` are the rounds (from 0) without which the others agree.
    `tasks` counts those that both passed and failed: only they show anything.
    """

    means: tuple[float, ...]
    spread_p: float
    drift_p: float
    drift: float
    straightness: float
    out_of_line: tuple[int, ...]
    tasks: int
    method: str

    @property
    def differ(self) -> bool:
        """Whether the rounds differ beyond chance, in any way."""
        return self.spread_p < SPREAD_LEVEL or self.drift_p < DRIFT_LEVEL

    @property
    def drifts(self) -> bool:
        """Whether the rate moves along the rounds, and no few rounds explain it."""
        straight = self.straightness >= _MOSTLY_STRAIGHT
        return self.drift_p < DRIFT_LEVEL and straight and not self.out_of_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Runs `first` to `last` (places in the order of their start) that failed one after another."""

    first: int
    last: int
    tasks: int
    p_value: float

    @property
    def runs(self) -> int:
        return self.last - self.first + 1


def round_tests(scores: ArrayLike, *, rng: RandomSource = None) -> RoundTests | Unavailable:
    """Test the rounds of a suite: a row for each task, a column for each round, NaN for no run.

    If runs are independent given the task, which round a result falls in is chance alone, whatever
    the task's rate. Cochran (1950) for passes; with scores, or with runs missing, its general form
    (a quadratic form in the sums of the rounds). A single task can show only a drift.

    >>> import numpy as np
    >>> table = np.ones((20, 5)); table[:, 3] = 0
    >>> found = round_tests(table)
    >>> found.differ, found.out_of_line
    (True, (3,))
    """
    table = _round_table(scores)
    if table.shape[0] < 1:
        return Unavailable("no task has a run")
    if table.shape[1] < 2:
        return Unavailable("there are fewer than two rounds of all tasks")
    telling = table[_variances(table) > 0]
    # Most tables need no random draws, and loading numpy.random takes time.
    generator = cache(lambda: random_generator(rng)[0])
    if rng is not None:
        generator()
    spread_p, drift_p = _p_values(telling, generator)
    straight = _straightness(telling)
    moved = _slope(telling) * (table.shape[1] - 1) * len(telling) / len(table)
    return RoundTests(
        means=tuple(np.nanmean(table, axis=0).tolist()),
        spread_p=spread_p,
        drift_p=drift_p,
        drift=moved,
        straightness=straight,
        out_of_line=_out_of_line(telling, generator) if spread_p < SPREAD_LEVEL else (),
        tasks=len(telling),
        method="Cochran's Q and a linear contrast over rounds",
    )


def find_bursts(task: ArrayLike, passed: ArrayLike) -> tuple[Burst, ...]:
    """Stretches of failures too long for chance among runs in the order they started.

    The chance of a stretch is the product of 1 - p over its runs, p being the rate of each run's
    task, pulled towards the suite's: a task that always fails and fails again says nothing.

    >>> find_bursts([0, 1, 2] * 20, [True] * 30 + [False] * 9 + [True] * 21)[0].runs
    9
    """
    codes = count_array("task", task)
    ended = np.asarray(passed, dtype=bool)
    if codes.shape != ended.shape or codes.ndim != 1:
        sizes = (codes.shape, ended.shape)
        raise ArgumentError("task and passed", "must have one entry per run", sizes)
    starts, ends = _stretches(~ended)
    if not starts.size:
        return ()
    surprise = np.concatenate(([0.0], np.cumsum(np.log1p(-_rates(codes, ended)[codes]))))
    logs = surprise[ends] - surprise[starts]
    long = (ends - starts >= _FEWEST_FAILURES) & (logs <= log(BURST_LEVEL / codes.size))
    return tuple(
        Burst(
            first=int(start),
            last=int(end) - 1,
            tasks=int(np.unique(codes[start:end]).size),
            p_value=float(min(1.0, codes.size * np.exp(chance))),
        )
        for start, end, chance in zip(starts[long], ends[long], logs[long], strict=True)
    )


def _round_table(scores: ArrayLike) -> Floats:
    table = float_array("scores", scores)
    if table.ndim != 2:
        rule = "must have a row for each task and a column for each round"
        raise ArgumentError("scores", rule, f"{table.ndim} dimensions")
    bad = table[(table < 0) | (table > 1)]
    if bad.size:
        raise ArgumentError(
            "scores", "must lie in [0, 1], NaN where there is no run", float(bad[0])
        )
    return table[:, ~np.isnan(table).all(axis=0)]


def _variances(table: Floats) -> Floats:
    """The sample variance of each task's runs; 0 with fewer than two."""
    runs = (~np.isnan(table)).sum(axis=1)
    mean = np.nansum(table, axis=1) / np.maximum(runs, 1)
    squares = np.nansum((table - mean[:, None]) ** 2, axis=1)
    found = squares / np.maximum(runs - 1, 1)
    return np.where((runs > 1) & (found > _NO_VARIANCE), found, 0.0)


def _p_values(telling: Floats, rng: Generator) -> tuple[float, float]:
    """The p of Cochran's Q and of the linear contrast, by permutation where few tasks vary."""
    if len(telling) == 0 or telling.shape[1] < 2:
        return 1.0, 1.0
    inverse, freedom, line = _null_law(telling)
    if freedom == 0:
        return 1.0, 1.0
    sums = _round_sums(telling)
    spread, drift = float(_quadratic(sums, inverse)), abs(float(line @ sums))
    p = float(chdtrc(freedom, spread)), float(2 * ndtr(-drift))
    if len(telling) >= _MANY_TASKS or min(p) > _WORTH_PERMUTING:
        return p
    draws = min(_MOST_PERMUTATIONS, _WORK // telling.size)
    if draws < _FEWEST_PERMUTATIONS:
        return 1.0, p[1]  # few tasks with very many runs: a line over them is normal, Q is not
    reached, drawn = np.zeros(2, dtype=np.int64), 0
    # The observed arrangement is one of all; a tie counts as at least as extreme.
    seen = np.array((spread, drift)) * (1 - 1e-9)
    for sums in _permuted_sums(telling, draws, rng()):
        found = np.stack((_quadratic(sums, inverse), np.abs(sums @ line)))
        reached += (found >= seen[:, None]).sum(axis=1)
        drawn += len(sums)
        # Besag and Clifford (1991): with so many beyond the observed one, neither p can end below
        # a level, and a larger p need not be known more exactly.
        if reached.min() >= _LARGEST_LEVEL * (1 + draws):
            break
    spread_p, drift_p = ((1 + reached) / (1 + drawn)).tolist()
    return spread_p, drift_p


def _round_sums(table: Floats) -> Floats:
    """The sum over tasks of each round, every task around its own mean."""
    return np.asarray(np.nansum(table - np.nanmean(table, axis=1, keepdims=True), axis=0))


def _quadratic(sums: Floats, inverse: Floats | float) -> Floats:
    """The quadratic form of each row of sums; a number as inverse is a multiple of the identity."""
    if isinstance(inverse, float):
        return np.asarray(inverse * (sums**2).sum(axis=-1))
    return np.asarray(((sums @ inverse) * sums).sum(axis=-1))


def _null_law(telling: Floats) -> tuple[Floats | float, int, Floats]:
    """The inverse covariance of the sums of rounds under chance, its rank, the drift contrast.

    If chance alone orders the runs of a task, they have covariance s2 (I - 1/n) over its rounds.
    The sums add up to 0: in a full table the inverse is a multiple of the identity.
    """
    seen = (~np.isnan(telling)).astype(np.float64)
    variance = _variances(telling)
    rounds = telling.shape[1]
    line = np.arange(rounds) - (rounds - 1) / 2
    if seen.all():
        total = float(variance.sum())
        return 1 / total, rounds - 1, line / np.sqrt(total * float(line @ line))
    if rounds > _MOST_ROUNDS:
        return 0.0, 0, line
    shared = seen * (variance / seen.sum(axis=1))[:, None]
    covariance = np.diag(seen.T @ variance) - seen.T @ shared
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _NO_VARIANCE * max(float(values.max()), 1e-300)
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    error = float(np.sqrt(max(float(line @ covariance @ line), 0.0)))
    return inverse, int(kept.sum()), line / error if error > 0 else np.zeros_like(line)


def _permuted_sums(telling: Floats, draws: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Centred sums of the rounds with the runs of every task in random order, some at a time."""
    seen = ~np.isnan(telling)
    centred = np.nan_to_num(telling - np.nanmean(telling, axis=1, keepdims=True))
    # The runs of each task, moved to the front of its row; then put in random places.
    packed = np.take_along_axis(centred, np.argsort(~seen, axis=1, kind="stable"), axis=1)
    block, rounds = max(1, _BLOCK // telling.size), telling.shape[1]
    for start in range(0, draws, block):
        size = min(block, draws - start)
        keys = np.where(seen, rng.random((size, *telling.shape)), 2.0)
        # The places of the runs of each draw, counted on from those of the draw before.
        places = np.argsort(keys, axis=2) + rounds * np.arange(size)[:, None, None]
        values = np.broadcast_to(packed, keys.shape).ravel()
        sums = np.bincount(places.ravel(), weights=values, minlength=size * rounds)
        yield np.asarray(sums.reshape(size, rounds), dtype=np.float64)


def _straightness(telling: Floats) -> float:
    """The share of the spread between the sums of rounds that a straight line explains."""
    if telling.size == 0:
        return 0.0
    sums = _round_sums(telling)
    line = np.arange(sums.size) - (sums.size - 1) / 2
    total = float(sums @ sums) * float(line @ line)
    return float(line @ sums) ** 2 / total if total > 0 else 0.0


def _slope(telling: Floats) -> float:
    """The least-squares slope over the rounds, one for all tasks, each around its own mean."""
    if telling.size == 0:
        return 0.0
    seen = ~np.isnan(telling)
    place = np.where(seen, np.arange(telling.shape[1]), np.nan)
    place = np.nan_to_num(place - np.nanmean(place, axis=1, keepdims=True))
    leverage = float((place**2).sum())
    return float((place * np.nan_to_num(telling)).sum()) / leverage if leverage > 0 else 0.0


def _out_of_line(telling: Floats, rng: Generator) -> tuple[int, ...]:
    """The few rounds without which the others agree, all better or all worse; none if too many."""
    left, gone = list(range(telling.shape[1])), list[int]()
    side = 0.0
    while len(left) > 2 and len(gone) + 1 <= telling.shape[1] * _FEW_ROUNDS:
        rest = telling[:, left]
        sums = _round_sums(rest)
        furthest = int(np.argmax(np.abs(sums)))
        if sums[furthest] * side < 0:
            return ()
        side = float(sums[furthest])
        gone.append(left.pop(furthest))
        rest = telling[:, left]
        if min(_p_values(rest[_variances(rest) > 0], rng)) >= SPREAD_LEVEL:
            return tuple(sorted(gone))
    return ()


def _stretches(failed: np.ndarray) -> tuple[Counts, Counts]:
    """Where each run of consecutive failures begins, and the place after its end."""
    edges = np.diff(np.concatenate(([0], failed.astype(np.int8), [0])))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)


def _rates(codes: Counts, passed: np.ndarray) -> Floats:
    runs = np.bincount(codes)
    passes = np.bincount(codes, weights=passed)
    mean = float(passes.sum() / codes.size)
    return np.asarray((passes + _BORROWED_RUNS * mean) / (runs + _BORROWED_RUNS))
