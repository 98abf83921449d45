"""Designs of a gate on one task: a fixed number of runs, and boundaries that end it sooner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import lru_cache
from math import ceil, floor, inf, log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.arguments import probability
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats, score_array
from passhat.stats.numerics import bisect
from passhat.stats.sequential.draws import GateVerdict, error_rates
from passhat.stats.special import bdtr, bdtrc

# Numbers of runs tried at a time, and the largest tried.
_CHUNK = 1024

_MOST_RUNS = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedDesign:
    """`runs` runs, PASS with at least `passes_needed`; its exact errors at p0 and at p1."""

    runs: int
    passes_needed: int
    wrong_pass: float
    wrong_fail: float


@lru_cache(maxsize=2048)
def fixed_design(p0: float, p1: float, alpha: float = 0.05, beta: float = 0.05) -> FixedDesign:
    """The smallest number of runs whose exact binomial test keeps both error rates.

    >>> fixed_design(0.8, 0.9).runs
    135
    """
    first = ceil(max(wald_lower_bounds(p0, p1, alpha, beta)))
    for start in range(max(1, first), _MOST_RUNS, _CHUNK):
        runs = np.arange(start, start + _CHUNK)
        needed = _critical_passes(runs, p0, alpha)
        wrong_fail = bdtr(needed - 1.0, runs, p1)
        found = np.flatnonzero((needed <= runs) & (wrong_fail <= beta))
        if found.size:
            count, passes = int(runs[found[0]]), int(needed[found[0]])
            return FixedDesign(
                runs=count,
                passes_needed=passes,
                wrong_pass=float(bdtrc(passes - 1.0, count, p0)),
                wrong_fail=float(bdtr(passes - 1.0, count, p1)),
            )
    raise ArgumentError("p1 - p0", f"needs more than {_MOST_RUNS} trials to tell apart", p1 - p0)


def wald_lower_bounds(
    p0: float, p1: float, alpha: float = 0.05, beta: float = 0.05
) -> tuple[float, float]:
    """The fewest runs that any test with these error rates can need on average.

    One bound for a true rate of p0, one for a true rate of p1 (Wald 1947, section 3.6).

    >>> [round(bound, 1) for bound in wald_lower_bounds(0.8, 0.9)]
    [59.7, 72.2]
    """
    two_rates(p0, p1)
    error_rates(alpha, beta)
    up, down = log(p1 / p0), log((1 - p0) / (1 - p1))
    to_fail, to_pass = log((1 - alpha) / beta), log((1 - beta) / alpha)
    at_p0 = ((1 - alpha) * to_fail - alpha * to_pass) / ((1 - p0) * down - p0 * up)
    at_p1 = ((1 - beta) * to_pass - beta * to_fail) / (p1 * up - (1 - p1) * down)
    return at_p0, at_p1


def two_rates(p0: float, p1: float, *, names: tuple[str, str] = ("p0", "p1")) -> None:
    """Check a rate that must FAIL and a higher rate that must PASS."""
    probability(names[0], p0, open_ends=True)
    probability(names[1], p1, open_ends=True)
    if not p0 < p1:
        raise ArgumentError(names[1], f"must be above {names[0]} = {p0}", p1)


def fewest_passes(runs: Counts, enough: Callable[[Counts], NDArray[np.bool_]]) -> Counts:
    """For each number of runs the fewest passes that are enough; runs + 1 if none are.

    >>> fewest_passes(np.array([3, 3, 3]), lambda passes: passes >= [0, 2, 5]).tolist()
    [0, 2, 4]
    """
    low, high = np.full_like(runs, -1), runs + 1
    while (high - low > 1).any():
        # If the search has ended at 0, half of -1 + 0 is -1.
        middle = np.maximum((low + high) // 2, 0)
        holds = enough(middle)
        low, high = np.where(holds, low, middle), np.where(holds, middle, high)
    return high


def _critical_passes(runs: Counts, p0: float, alpha: float) -> Counts:
    """For each number of runs the fewest passes that a rate p0 reaches with chance <= alpha."""
    return fewest_passes(runs, lambda passes: bdtrc(passes - 1.0, runs, p0) <= alpha)


# What a gate on one task does at each true rate, exactly, by dynamic programming over passes.


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundaries:
    """The passes that end a gate: after run n, `fail_at[n - 1]` or fewer, `pass_at[n - 1]` or more.

    The two never meet before the last run; a gate that is still between them then is UNDECIDED, and
    so is one that can reach neither any more: with more failures than `most_failures[n - 1]` no
    later run passes it, with more passes than `most_passes[n - 1]` none fails it.
    """

    fail_at: tuple[int, ...]
    pass_at: tuple[int, ...]
    most_failures: tuple[int, ...] = field(init=False, repr=False, compare=False)
    most_passes: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        n = np.arange(1, self.max_runs + 1)
        for name, allowed in (
            ("most_failures", n - np.array(self.pass_at)),
            ("most_passes", np.array(self.fail_at)),
        ):
            later = np.maximum.accumulate(np.append(allowed, -1)[::-1])[::-1][1:]
            object.__setattr__(self, name, tuple(later.tolist()))

    @property
    def max_runs(self) -> int:
        return len(self.pass_at)

    def verdict(self, runs: int, passes: int) -> GateVerdict | None:
        """What the gate says after these runs; None while it is open."""
        if passes >= self.pass_at[runs - 1]:
            return "PASS"
        if passes <= self.fail_at[runs - 1]:
            return "FAIL"
        can_pass = runs - passes <= self.most_failures[runs - 1]
        return None if can_pass or passes <= self.most_passes[runs - 1] else "UNDECIDED"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingCharacteristics:
    """What a gate does at each true rate `p`: the chance of each verdict, and the runs it spends.

    `runs_95`: all but 5 % of gates end by then. Exact, unless `repetitions` says how many were run.
    """

    p: Floats
    pass_probability: Floats
    fail_probability: Floats
    undecided_probability: Floats
    expected_runs: Floats
    runs_95: Floats
    max_runs: int
    repetitions: int | None = None
    seed: int | None = None


def operating_characteristics(boundaries: Boundaries, p: ArrayLike) -> OperatingCharacteristics:
    """Probabilities of each verdict and the runs spent, exactly, for an array of true rates."""
    rates = np.atleast_1d(score_array("p", p))
    passed, failed, undecided = np.zeros((3, rates.size))
    still_open = np.zeros((boundaries.max_runs + 1, rates.size))
    mass, fewest = np.ones((rates.size, 1)), 0
    for run, (fail_at, pass_at) in enumerate(
        zip(boundaries.fail_at, boundaries.pass_at, strict=True)
    ):
        still_open[run] = mass.sum(axis=1)
        grown = np.zeros((rates.size, mass.shape[1] + 1))
        grown[:, :-1] = mass * (1 - rates[:, None])
        grown[:, 1:] += mass * rates[:, None]
        mass = grown
        cut_low = min(max(fail_at + 1 - fewest, 0), mass.shape[1])
        cut_high = min(max(pass_at - fewest, cut_low), mass.shape[1])
        failed += mass[:, :cut_low].sum(axis=1)
        passed += mass[:, cut_high:].sum(axis=1)
        mass, fewest = mass[:, cut_low:cut_high], fewest + cut_low
        passes = fewest + np.arange(mass.shape[1])
        out_of_reach = (run + 1 - passes > boundaries.most_failures[run]) & (
            passes > boundaries.most_passes[run]
        )
        undecided += mass[:, out_of_reach].sum(axis=1)
        mass = np.where(out_of_reach, 0.0, mass)
        if not mass.any():
            break
    return OperatingCharacteristics(
        p=rates,
        pass_probability=passed,
        fail_probability=failed,
        undecided_probability=undecided,
        expected_runs=still_open.sum(axis=0),
        # The first n after which at most 5 % of the gates are still running.
        runs_95=(still_open[: boundaries.max_runs] > 0.05).sum(axis=0).astype(np.float64),
        max_runs=boundaries.max_runs,
    )


# When a gate stops: the boundaries of each design, in passes after each run.

# The truncated design may use a tenth more runs than the fixed one: enough slack to stop early.
_TRUNCATION = 1.1
# Levels of log evidence are found to a 16,000th of their range: boundaries are whole passes.
_BISECTIONS = 14
# Evidence that differs from a boundary by rounding alone has reached it.
_ROUNDING = 1e-9


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
def truncated_boundaries(p0: float, p1: float, alpha: float, beta: float) -> Boundaries:
    """A ratio test that always decides, calibrated exactly: both errors within alpha and beta.

    The ratio thresholds are lowered together, then each alone, while the exact errors allow.
    """
    runs, needed = _longest_design(p0, p1, alpha, beta)
    candidates = [_calibrated(p0, p1, alpha, beta, runs, passes) for passes in needed]

    def expected_runs(found: Boundaries) -> float:
        return float(sum(operating_characteristics(found, (p0, p1)).expected_runs))

    return min(candidates, key=expected_runs)


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
    return bisect(keeps, 0.0, most, steps=_BISECTIONS)[1] if keeps(most) else inf
