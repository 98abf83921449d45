"""What a gate on one task does at each true rate, exactly, by dynamic programming over passes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from passhat.dataclass import dataclass
from passhat.stats.arguments import Floats, score_array


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundaries:
    """The passes that end a gate: after run n, `fail_at[n - 1]` or fewer, `pass_at[n - 1]` or more.

    The two never meet before the last run; a gate that is still between them then is UNDECIDED.
    """

    fail_at: tuple[int, ...]
    pass_at: tuple[int, ...]

    @property
    def max_runs(self) -> int:
        return len(self.pass_at)


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
    passed, failed = np.zeros_like(rates), np.zeros_like(rates)
    still_open = np.zeros((boundaries.max_runs + 1, rates.size))
    mass, fewest = np.ones((rates.size, 1)), 0
    for run, (fail_at, pass_at) in enumerate(
        zip(boundaries.fail_at, boundaries.pass_at, strict=True)
    ):
        still_open[run] = mass.sum(axis=1)
        mass = _one_more_run(mass, rates[:, None])
        cut_low = min(max(fail_at + 1 - fewest, 0), mass.shape[1])
        cut_high = min(max(pass_at - fewest, cut_low), mass.shape[1])
        failed += mass[:, :cut_low].sum(axis=1)
        passed += mass[:, cut_high:].sum(axis=1)
        mass, fewest = mass[:, cut_low:cut_high], fewest + cut_low
        if not mass.shape[1]:
            break
    undecided = mass.sum(axis=1)
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


def _one_more_run(mass: Floats, rates: Floats) -> Floats:
    grown = np.zeros((mass.shape[0], mass.shape[1] + 1))
    grown[:, :-1] = mass * (1 - rates)
    grown[:, 1:] += mass * rates
    return grown
