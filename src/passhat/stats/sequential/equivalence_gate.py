"""A gate on the difference of two systems: PASS where it is shown to lie within a margin."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from passhat.dataclass import dataclass, short_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Floats
from passhat.stats.sequential.projection import FAIL_SIDE, PASS_SIDE, Drawn
from passhat.stats.sequential.random_tasks import RandomTaskGate, SuiteState
from passhat.stats.sequential.score_gate import ScoreGate, ScoreWealth
from passhat.stats.special import ndtri


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EquivalenceWealth:
    """Two wealths of scores: `upper` bets around the margin, `lower` around its negative.

    Evidence for PASS is the weaker of "below the margin" and "above its negative" (two one-sided
    tests, Schuirmann 1987); evidence for FAIL is the mean of "above the margin" and "below its
    negative".
    """

    upper: ScoreWealth
    lower: ScoreWealth

    @property
    def log(self) -> Floats:
        inside = np.minimum(self.upper.log[FAIL_SIDE], self.lower.log[PASS_SIDE])
        outside = np.logaddexp(self.upper.log[PASS_SIDE], self.lower.log[FAIL_SIDE]) - np.log(2)
        return np.array([inside, outside])

    @property
    def runs(self) -> Floats:
        return self.upper.runs

    @property
    def centres(self) -> Floats:
        return self.upper.centres

    @property
    def null(self) -> Floats:
        return self.upper.null

    def after(self, drawn: Drawn, x: Floats | float) -> Self:
        return replace(self, upper=self.upper.after(drawn, x), lower=self.lower.after(drawn, x))

    def rows(self, kept: ArrayLike) -> Self:
        """These repetitions only."""
        return replace(self, upper=self.upper.rows(kept), lower=self.lower.rows(kept))

    def with_new_bets(self) -> Self:
        return replace(self, upper=self.upper.with_new_bets(), lower=self.lower.with_new_bets())


@short_dataclass(frozen=True, slots=True, kw_only=True)
class EquivalenceGate(ScoreGate):
    """PASS if the mean of paired differences is at most mu0 either way, FAIL if mu1 or more.

    mu1 is the margin. At a difference of mu1 or more, either way, it says PASS with probability at
    most `alpha`; at mu0 or less it says FAIL with probability at most `beta`; between, either. The
    guarantee is that of `SuiteGate`, and the bets are those of `ScoreGate`.

    >>> gate = EquivalenceGate(tasks=10, mu0=0.0, mu1=0.2)
    >>> gate.replay([0.0] * 80).verdict
    'PASS'
    """

    method: ClassVar[str] = "two one-sided tests, variance-adaptive bets on random tasks"

    low: float = -1.0
    high: float = 1.0

    def __post_init__(self) -> None:
        RandomTaskGate.__post_init__(self)
        if not 0 <= self.mu0 < self.mu1 < self.high:
            rule = f"must have 0 <= mu0 < mu1 < {self.high:g}"
            raise ArgumentError("(mu0, mu1)", rule, (self.mu0, self.mu1))

    def first_wealth(self, shape: tuple[int, ...]) -> EquivalenceWealth:
        near, far = self._scaled(self.mu0), self._scaled(self.mu1)
        upper = ScoreWealth.start(near, far, shape)
        lower = ScoreWealth.start(1 - far, 1 - near, shape)
        return EquivalenceWealth(upper=upper, lower=lower)

    def _fixed_runs(self, state: SuiteState) -> int | None:
        """The pairs of two one-sided z tests at the variance seen."""
        if state.seen.runs < 2:
            return None
        errors = ndtri(1 - self.alpha) + ndtri(1 - self.beta / 2)
        gap = self._scaled(self.mu1) - self._scaled(self.mu0)
        return ceil(state.seen.squares / state.seen.runs * (errors / gap) ** 2)
