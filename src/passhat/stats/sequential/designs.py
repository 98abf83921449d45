"""Designs of a gate: a fixed number of runs, boundaries that end it sooner, and planned runs.

With N runs planned, nearly all of the allowed error is kept for the verdict at N. An early stop is
charged only for the chance that the verdict at N would be another one: let F be "PASS at N" and A
"PASS at some look"; then P(A) = P(F) + P(A and not F), and a state from which the last look passes
with chance V costs (1 - V) of its mass. Error spending (Lan and DeMets 1983) charges the whole mass
of an early PASS, and pays for it with power at N.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import lru_cache
from math import ceil, floor, inf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from passhat.arguments import probability, whole_number
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats, score_array
from passhat.stats.numerics import bisect
from passhat.stats.sequential.draws import GateVerdict, error_rates
from passhat.stats.special import bdtr, bdtrc, betaincinv, ndtr, ndtri

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
        enough = np.flatnonzero((needed <= runs) & (wrong_fail <= beta))
        if enough.size:
            count, passes = int(runs[enough[0]]), int(needed[enough[0]])
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

    def expected_runs(boundaries: Boundaries) -> float:
        return float(sum(operating_characteristics(boundaries, (p0, p1)).expected_runs))

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
        errors = operating_characteristics(design(log_pass, log_fail), (p0, p1))
        return bool(errors.pass_probability[0] <= alpha and errors.fail_probability[1] <= beta)

    most = 2 * max(-log(alpha), -log(beta))
    both = _lowest(lambda level: keeps(level, level), most)
    log_fail = _lowest(lambda level: keeps(both, level), both)
    log_pass = _lowest(lambda level: keeps(level, log_fail), both)
    return design(log_pass, log_fail)


def _lowest(keeps: Callable[[float], bool], most: float) -> float:
    """A level near the lowest that keeps the errors; infinity where even `most` does not."""
    return bisect(keeps, 0.0, most, steps=_BISECTIONS)[1] if keeps(most) else inf


KEPT = 0.95
"""The share of the error that the verdict on one task after all planned runs may use."""

LAST_LOOK = 0.96
"""The same for the last look at a suite. The bounds of few tasks are a lattice: at .95 four tasks,
two of which always pass, lose 5 points of power against all runs judged at once, at .96 none."""

LOOKS = 10
"""Looks at a suite: more of them save hardly a run."""

POOLED = 0.8
"""The share of the error that all runs of a suite together may use, whatever their tasks."""

FORGIVEN = 2
"""Failures that the default number of runs forgives."""

MOST_RUNS = 10_000
"""The most runs planned by default, whatever is demanded."""

# Early looks at a suite have about this share of alpha: `look_levels`.
_EARLY_LEVEL = 0.02
# The last look may come up to a twentieth before N, where the lattice of counts suits alpha better.
_EARLIEST_LAST_LOOK = 0.95
# It may cost this much power, where the test at N has power .5 and .8; else that test stays.
_MOST_POWER_LOST = 0.02
_POWERS = np.array([0.5, 0.8])
# Masses below this cannot move an error rate that anybody reads.
_NEGLIGIBLE = 1e-18
# The grid on which Brownian motion is followed, in standard deviations at N. What left it beyond N
# would be charged to no look: it doubles from twice N on, whenever motion has become twice as wide.
_LOWEST, _HIGHEST, _POINTS = -5.0, 6.0, 1201
_WIDEST = 2.0
# A step of Brownian motion reaches this many of its standard deviations.
_REACH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PassList:
    """How many failures a PASS may have: `allowed[n - 1]` after run n, -1 where none may come yet.

    The list falls back by at most one failure a run, so that a PASS that is certain comes at once.
    `error` is the chance of a PASS at the threshold within the `planned` runs, `late_error[i]` what
    the runs after them have added by run planned + i + 1.
    """

    planned: int
    allowed: tuple[int, ...]
    error: float
    late_error: tuple[float, ...] = ()

    @property
    def steps(self) -> tuple[tuple[int, int], ...]:
        """Each number of failures, with the first run from which a PASS may have that many."""
        return first_runs(self.allowed)


def first_runs(allowed: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Each number of failures, with the first run after which so many are allowed."""
    firsts: list[tuple[int, int]] = []
    for run, most in enumerate(allowed, start=1):
        if most >= 0 and (not firsts or most > firsts[-1][0]):
            firsts.append((most, run))
    return tuple(firsts)


def last_runs(most_passes: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Each number of failures, with the last run by which so many are a FAIL.

    `most_passes[n - 1]` are the passes that a FAIL may have after run n, -1 where none may come.

    >>> last_runs((-1, 0, 0, 1, 1))
    ((2, 2), (3, 4), (4, 5))
    """
    needed = {run - most: run for run, most in enumerate(most_passes, start=1) if most >= 0}
    return tuple(sorted(needed.items()))


@lru_cache(maxsize=512)
def pass_list(threshold: float, alpha: float, runs: int, upto: int | None = None) -> PassList:
    """When N runs of one task pass early: exact, wrong with a chance of at most `alpha`.

    Fewer failures are likelier at a larger rate, so of all rates that must not pass the threshold
    itself is the worst. `upto` goes on beyond the plan: further runs may add
    `extension_share(n / runs)` of alpha.

    >>> pass_list(0.8 ** (1 / 3), 0.05, 100).steps
    ((0, 51), (1, 78), (2, 94))
    """
    last_run, last_failures = _last_look(threshold, alpha, runs)
    failing = 1 - threshold
    slack = alpha - float(bdtr(last_failures, last_run, failing)) if last_failures >= 0 else 0.0
    end = max(runs, upto or runs)
    allowed = np.full(end + 1, -1)
    early, late, late_error = 0.0, 0.0, list[float]()
    passed = 0.0
    # mass[j] is the chance of fewest + j failures and no PASS so far.
    mass, fewest = np.ones(1), 0
    for n in range(1, end + 1):
        grown = np.zeros(mass.size + 1)
        grown[:-1] = mass * (1 - failing)
        grown[1:] += mass * failing
        mass = grown
        stop = 0
        if n <= last_run:
            room = slack * sqrt(n / last_run)
            while stop < mass.size and fewest + stop <= last_failures:
                left, spare = last_run - n, last_failures - fewest - stop
                passes_anyway = 1.0 if spare >= left else float(bdtr(spare, left, failing))
                cost = mass[stop] * (1 - passes_anyway)
                if early + cost > room:
                    break
                early += cost
                stop += 1
        elif n > runs:
            room = alpha * extension_share(n / runs)
            while stop < mass.size and late + mass[stop] <= room:
                late += mass[stop]
                stop += 1
            late_error.append(late)
        if n <= runs:
            passed += float(mass[:stop].sum())
        mass, fewest = mass[stop:], fewest + stop
        allowed[n] = fewest - 1
        mass = _trimmed(mass, fewest, None if end > runs else last_failures)
    needed = np.arange(end + 1) - allowed
    needed = np.minimum.accumulate(needed[::-1])[::-1]
    closed = np.maximum(np.arange(end + 1) - needed, -1)[1:]
    return PassList(
        planned=runs, allowed=tuple(closed.tolist()), error=passed, late_error=tuple(late_error)
    )


@lru_cache(maxsize=512)
def planned_boundaries(
    p0: float, p1: float, alpha: float, beta: float, runs: int, *, upto: int | None = None
) -> Boundaries:
    """Both sides of a gate with N runs planned: PASS is tested against p0, FAIL against p1.

    FAIL is the same list with passes and failures exchanged. Where p0 = p1, a rate on the
    threshold stays UNDECIDED in all but alpha + beta of cases.
    """
    passing = np.array(pass_list(p0, alpha, runs, upto).allowed)
    failing = np.array(pass_list(1 - p1, beta, runs, upto).allowed)
    n = np.arange(1, len(passing) + 1)
    pass_at = np.where(passing >= 0, n - passing, n + 1)
    # Between p0 and p1 both verdicts are right: counts that allow both are a PASS.
    fail_at = np.minimum(failing, pass_at - 1)
    return Boundaries(fail_at=tuple(fail_at.tolist()), pass_at=tuple(pass_at.tolist()))


def default_runs(threshold: float, alpha: float = 0.05) -> int:
    """Runs to plan where nobody said how many: two failures are forgiven, about 7.2 / (1 - p0).

    An agent that never fails then ends after 1.25 times the fewest runs that can show it.

    >>> default_runs(0.8 ** (1 / 3))
    99
    """
    failing = 1 - probability("threshold", threshold, open_ends=True)

    def enough(runs: float) -> bool:
        return bool(bdtr(FORGIVEN, ceil(runs), failing) <= alpha / 2)

    # The chance of two failures falls with the runs: by 40 / failing it is below e^-30.
    return ceil(bisect(enough, FORGIVEN / failing, 40 / failing, steps=60)[1])


def most_default_runs(threshold: float, alpha: float = 0.05) -> int:
    """The default number of runs, of which nobody plans more than `MOST_RUNS` unasked."""
    return min(default_runs(threshold, alpha), MOST_RUNS)


def look_level(runs: int, most: int, failing: float, alpha: float) -> float:
    """The one-sided level of a look after so many runs at which `most` failures pass.

    Where no number passes yet it is that of the early looks at a suite, or just out of reach.

    >>> round(look_level(51, 0, 1 - 0.8 ** (1 / 3), 0.05), 4)
    0.0225
    """
    if most >= 0:
        return min(float(bdtr(most, runs, failing)), 0.5)
    return min(_EARLY_LEVEL * alpha, (1 - failing) ** runs * (1 - 1e-9))


def extension_share(fraction: float) -> float:
    """What runs after the plan may add to the error, as a share of it: never more than all of it.

    Half of it by twice the plan, a quarter more by four times, an eighth more by eight times.

    >>> [extension_share(t) for t in (1.0, 1.5, 2.0, 4.0, 8.0)]
    [0.0, 0.25, 0.5, 0.75, 0.875]
    """
    share, start, width, part = 0.0, 1.0, 1.0, 0.5
    while fraction > start:
        share += part * min(1.0, (fraction - start) / width)
        start, width, part = start + width, 2 * width, part / 2
    return share


def error_of_all_looks(error: float, fraction: float) -> float:
    """The error within so many times the planned runs, rounded up to a tenth of a percent.

    >>> error_of_all_looks(0.05, 1.0), error_of_all_looks(0.05, 1.5)
    (0.05, 0.063)
    """
    share = extension_share(fraction)
    return ceil(1000 * error * (1 + share) - 1e-9) / 1000 if share else error


def look_rounds(rounds: int, k: int = 1, looks: int = LOOKS) -> tuple[int, ...]:
    """The rounds after which a suite is looked at, evenly spread; none before k, and the last.

    >>> look_rounds(20, k=3)
    (4, 6, 8, 10, 12, 14, 16, 18, 20)
    """
    whole_number("rounds", rounds)
    rounds_of_looks = sorted({ceil(rounds * j / looks) for j in range(1, looks + 1)})
    return tuple(r for r in rounds_of_looks if r >= k or r == rounds)


@lru_cache(maxsize=256)
def look_levels(fractions: tuple[float, ...], alpha: float) -> tuple[float, ...]:
    """The one-sided level of each look at these fractions of the planned runs; 1.0 must be one.

    The sum of runs is followed as Brownian motion. The last planned look has `LAST_LOOK` of alpha.
    Each earlier one gets the lowest boundary at which passing early, where the last look would not,
    adds up to at most (1 - LAST_LOOK) alpha sqrt(t). Looks beyond 1 follow `extension_share`.

    >>> [round(level, 4) for level in look_levels((0.4, 0.6, 0.8, 1.0), 0.05)]
    [0.0031, 0.0031, 0.0065, 0.048]
    """
    if 1.0 not in fractions or list(fractions) != sorted(fractions):
        raise ArgumentError("fractions", "must rise and hold 1.0, the last planned look", fractions)
    x = np.linspace(_LOWEST, _HIGHEST, _POINTS)
    step = x[1] - x[0]
    last_boundary = -float(ndtri(LAST_LOOK * alpha))
    levels, spent, late, before = list[float](), 0.0, 0.0, 0.0
    density: Floats = np.zeros(0)
    for t in fractions:
        while t > _WIDEST * (x[-1] / _HIGHEST) ** 2:
            density = np.interp(2 * x, x, density, left=0.0, right=0.0)
            x, step = 2 * x, 2 * step
        density = _diffused(density, x, t - before)
        if t < 1:
            cost = density * ndtr((last_boundary - x) / sqrt(1 - t)) * step
            boundary, taken = _lowest_affordable(x, cost, (1 - LAST_LOOK) * alpha * sqrt(t) - spent)
            spent += taken
        elif t == 1:
            boundary = last_boundary
        else:
            room = alpha * extension_share(t) - late
            boundary, taken = _lowest_affordable(x, density * step, room)
            late += taken
        levels.append(float(ndtr(-boundary / sqrt(t))))
        density, before = np.where(x >= boundary, 0.0, density), t
    return tuple(levels)


def _last_look(threshold: float, alpha: float, runs: int) -> tuple[int, int]:
    """The run of the last look and the failures it allows; -1 where N runs can never show it."""
    failing = 1 - threshold
    plain = int(_most_failures(np.array([runs]), failing, alpha)[0])
    if plain < 0:
        return runs, plain
    rates = betaincinv(plain + 1.0, runs - plain, 1 - _POWERS)
    places = np.arange(runs, max(ceil(_EARLIEST_LAST_LOOK * runs), 1) - 1, -1)
    allowed = _most_failures(places, failing, KEPT * alpha)
    power = bdtr(allowed[:, None].astype(float), places[:, None], rates)
    gain = np.where(allowed >= 0, (power - _POWERS).min(axis=1), -1.0)
    # Of equal gains the latest run and the most failures: the order of (gain, n, failures).
    best = max(zip(gain.tolist(), places.tolist(), allowed.tolist(), strict=True))
    return (best[1], best[2]) if best[0] >= -_MOST_POWER_LOST else (runs, plain)


def _most_failures(runs: Counts, failing: float, alpha: float) -> Counts:
    """For each n the most failures d with P(Bin(n, failing) <= d) <= alpha; -1 if there is none."""
    low, high = np.full_like(runs, -1), runs.copy()
    while (high - low > 1).any():
        middle = (low + high) // 2
        fits = bdtr(np.maximum(middle, 0).astype(float), runs, failing) <= alpha
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low


def _trimmed(mass: Floats, fewest: int, most: int | None) -> Floats:
    """Without the states that cannot pass any more, or whose chance is negligible."""
    if most is not None:
        return mass[: max(most + 1 - fewest, 0)]
    heavy = np.flatnonzero(mass > _NEGLIGIBLE)
    return mass[: heavy[-1] + 1] if heavy.size else mass[:0]


def _diffused(density: Floats, x: Floats, time: float) -> Floats:
    """The density of Brownian motion after a further `time`; from the origin if it is empty."""
    step = x[1] - x[0]
    if not density.size:
        return np.asarray(np.exp(-x * x / (2 * time)) / sqrt(2 * np.pi * time))
    half = ceil(_REACH * sqrt(time) / step)
    kernel = np.exp(-((np.arange(-half, half + 1) * step) ** 2) / (2 * time))
    spread = np.convolve(density, kernel / kernel.sum(), mode="full")
    return spread[half : half + x.size]


def _lowest_affordable(x: Floats, cost: Floats, room: float) -> tuple[float, float]:
    """The lowest boundary above which the cost is at most `room`, and that cost."""
    tail = np.cumsum(cost[::-1])[::-1]
    place = min(int(np.searchsorted(-tail, -room)), x.size - 1)
    return float(x[place]), float(tail[place])
