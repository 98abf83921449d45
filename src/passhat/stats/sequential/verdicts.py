"""What a gate says: a verdict with the evidence it rests on, and each step that led there."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Literal

from passhat.dataclass import dataclass, short_dataclass
from passhat.errors import ArgumentError

if TYPE_CHECKING:
    from passhat.stats.estimate import Interval

GateVerdict = Literal["PASS", "FAIL", "UNDECIDED"]

# A run that broke (infrastructure, grader) never counts as evidence for PASS.
ERRORED_SCORE = 0.0


class SetAside(enum.Enum):
    """Stands in for the result of a run that is no evidence, and says why."""

    OUTAGE = "outage"


SET_ASIDE = SetAside.OUTAGE
"""Replaces a result that `OutageGuard` set aside: it changes no evidence."""

Observed = float | None | SetAside
"""What a gate observes: a score, None for a run that errored, or a run that was set aside."""


@short_dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """A verdict, or None while it is open, with everything needed to recompute it.

    `log_pass` and `log_fail` are log evidence against "not good enough" and "good enough"; the
    gate decided when one of them reached its boundary. `interval` holds at `confidence` however
    often the gate was looked at. `fixed_runs` is the fixed number of runs that a test with the same
    error rates takes (None if there is no such design).
    """

    verdict: GateVerdict | None
    method: str
    value: float | None
    interval: Interval | None
    confidence: float
    runs: int
    fixed_runs: int | None
    max_runs: int
    log_pass: float
    log_fail: float
    alpha: float
    beta: float
    seed: int | None = None

    @property
    def runs_saved(self) -> int | None:
        return None if self.fixed_runs is None else self.fixed_runs - self.runs


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionStep:
    """One line of the decision log: what was observed and the evidence after it."""

    index: int
    task: int
    x: Observed
    log_pass: float
    log_fail: float
    pass_boundary: float
    fail_boundary: float


def observed_score(x: float | None) -> float:
    """An observation in [0, 1]; None stands for a run that errored."""
    if x is None:
        return ERRORED_SCORE
    score = float(x)
    if not 0.0 <= score <= 1.0:
        raise ArgumentError("x", "must lie in [0, 1], or be None for an errored run", x)
    return score


def error_rates(alpha: float, beta: float) -> None:
    """Check the two error rates that a gate promises."""
    for name, rate in (("alpha", alpha), ("beta", beta)):
        if not 0.0 < rate < 0.5:
            raise ArgumentError(name, "must lie strictly between 0 and 0.5", rate)
