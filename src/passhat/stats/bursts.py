"""Bursts: failures one right after another on tasks that usually pass, as in an outage."""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import ArrayLike

from passhat.errors import ArgumentError
from passhat.fast_dataclass import dataclass
from passhat.stats.arguments import Counts, Floats, count_array

# A stretch of failures is a burst when its chance, times the number of runs (of places where it
# could have begun), is below this. In-sample rates make it rarer than that: with 0.008, calm runs
# show a burst at most 0.3 % of the time (simulated in bench/calibrate/dependence.py).
BURST_LEVEL = 0.008
# A task's rate is drawn to the suite's by as much as 1.5 runs would: two runs do not make it 0.
_BORROWED_RUNS = 1.5
# Two failures in a row are no burst, whatever their chance.
_FEWEST_FAILURES = 3


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


def find_bursts(task: ArrayLike, passed: ArrayLike) -> tuple[Burst, ...]:
    """Stretches of failures too long for chance among runs in the order they started.

    The chance of a stretch is the product of 1 - p over its runs, p the rate of each run's task,
    drawn towards the suite's: a hopeless task that fails again says nothing.

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


def _stretches(failed: np.ndarray) -> tuple[Counts, Counts]:
    """Where each run of consecutive failures begins, and the place after its end."""
    edges = np.diff(np.concatenate(([0], failed.astype(np.int8), [0])))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)


def _rates(codes: Counts, passed: np.ndarray) -> Floats:
    runs = np.bincount(codes)
    passes = np.bincount(codes, weights=passed)
    mean = float(passes.sum() / codes.size)
    return np.asarray((passes + _BORROWED_RUNS * mean) / (runs + _BORROWED_RUNS))
