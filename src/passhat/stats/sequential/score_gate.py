"""A gate on mean scores or paired differences, whose bets grow as the scores prove steady."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from passhat.defaults import CONFIDENCE
from passhat.errors import ArgumentError
from passhat.messages import repr_fields
from passhat.stats.estimate import Interval
from passhat.stats.sequential.fixed_design import fixed_design
from passhat.stats.sequential.random_tasks import RandomTaskGate, SuiteState, TaskWealth
from passhat.stats.sequential.score_wealth import ScoreWealth
from passhat.stats.sequential.verdicts import GateResult
from passhat.stats.special import ndtri

_CAP_OVER_FIXED = 4
_ONE_THRESHOLD_CAP = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreGate(RandomTaskGate):
    """PASS if the mean score over these tasks is mu1 or more, FAIL if mu0 or less; watch at will.

    The guarantee is that of `SuiteGate`; the bets follow the variance seen (Waudby-Smith & Ramdas
    2024), so that steady scores settle it soon. With mu0 = mu1 there is one threshold and no
    indifference zone. `tasks=1` is a plain stream of scores.

    >>> gate = ScoreGate(tasks=10, mu0=0.70, mu1=0.75)
    >>> state = gate.replay([0.8, 0.85, 0.75] * 20)
    >>> state.verdict, state.seen.runs
    ('PASS', ...)
    """

    low: float = 0.0
    high: float = 1.0

    __repr__ = repr_fields

    def __post_init__(self) -> None:
        RandomTaskGate.__post_init__(self)
        if not self.low < self.mu0 <= self.mu1 < self.high:
            rule = f"must have {self.low} < mu0 <= mu1 < {self.high}"
            raise ArgumentError("(mu0, mu1)", rule, (self.mu0, self.mu1))

    @classmethod
    def no_worse_than(
        cls,
        margin: float,
        *,
        tasks: int,
        alpha: float = 0.05,
        beta: float = 0.05,
        seed: int = 0,
        max_runs: int | None = None,
    ) -> ScoreGate:
        """A gate on paired differences (new - old, in [-1, 1]): FAIL at -margin, PASS at 0."""
        return cls(
            tasks=tasks,
            mu0=-margin,
            mu1=0.0,
            low=-1.0,
            high=1.0,
            alpha=alpha,
            beta=beta,
            seed=seed,
            max_runs=max_runs,
        )

    @property
    def max_draws(self) -> int:
        """UNDECIDED after this many draws; by default four times what passes would need."""
        if self.max_runs is not None:
            return self.max_runs
        if self.mu0 == self.mu1:
            return _ONE_THRESHOLD_CAP
        rates = self._scaled(self.mu0), self._scaled(self.mu1)
        return _CAP_OVER_FIXED * fixed_design(*rates, self.alpha, self.beta).runs

    def first_wealth(self, shape: tuple[int, ...]) -> TaskWealth:
        return ScoreWealth.start(self._scaled(self.mu0), self._scaled(self.mu1), shape)

    def result(self, state: SuiteState, *, confidence: float = CONFIDENCE) -> GateResult:
        """The verdict with its evidence, and an interval that holds under watching."""
        seen, span = state.seen, self.high - self.low
        inside = seen.interval(confidence=confidence)
        return GateResult(
            verdict=state.verdict,
            method="mean score, variance-adaptive bets on random tasks",
            value=self.low + span * seen.total / seen.runs if seen.runs else None,
            interval=Interval(self.low + span * inside.low, self.low + span * inside.high),
            confidence=confidence,
            runs=state.runs,
            fixed_runs=self._fixed_runs(state),
            max_runs=self.max_draws,
            log_pass=state.log_pass,
            log_fail=state.log_fail,
            alpha=self.alpha,
            beta=self.beta,
            seed=self.seed,
        )

    def _score(self, x: float | None) -> float:
        if x is None:
            return 0.0
        if not self.low <= x <= self.high:
            rule = f"must lie in [{self.low}, {self.high}], or be None for an errored run"
            raise ArgumentError("x", rule, x)
        return self._scaled(x)

    def _scaled(self, x: float) -> float:
        return (x - self.low) / (self.high - self.low)

    def _fixed_runs(self, state: SuiteState) -> int | None:
        """The runs of a z test at the variance seen: what a planner who knew it would buy."""
        gap = self._scaled(self.mu1) - self._scaled(self.mu0)
        if gap == 0 or state.seen.runs < 2:
            return None
        errors = ndtri(1 - self.alpha) + ndtri(1 - self.beta)
        return ceil(state.seen.squares / state.seen.runs * (errors / gap) ** 2)
