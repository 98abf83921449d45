"""The two wealths of a suite gate: one grows if the suite is good, the other if it is not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from passhat.stats.arguments import Floats
from passhat.stats.sequential.projection import (
    ICC_LOG_WEIGHTS,
    Drawn,
    hypotheses,
    kept_rows,
    predicted,
    projected,
    shrunk,
    tallied,
    tilted,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wealth:
    """Everything the next bets follow from; the first axis is the side (PASS, FAIL).

    The FAIL side is the PASS side for x turned into 1 - x: it bets that the mean of 1 - x, which
    is at most `null` = 1 - mu1 under its hypothesis, is `alternative` = 1 - mu0.
    Further axes may stand between the side and the tasks: a simulation has one for repetitions.
    """

    null: Floats
    alternative: Floats
    log: Floats
    runs: Floats
    sums: Floats
    icc_log_weights: Floats
    shift: Floats
    stake: Floats
    centres: Floats

    @classmethod
    def start(cls, mu0: float, mu1: float, shape: tuple[int, ...]) -> Self:
        """Wealth 1 on both sides, and the first bets; `shape` ends with the number of tasks."""
        sides = np.zeros((2, *shape[:-1]))
        null, alternative = hypotheses(mu0, mu1, shape[:-1])
        stake = (alternative - null) / (null * (1 - null))
        wealth = cls(
            null=null,
            alternative=alternative,
            log=sides,
            runs=np.zeros(shape),
            sums=np.zeros((2, *shape)),
            icc_log_weights=np.broadcast_to(ICC_LOG_WEIGHTS, (*sides.shape, ICC_LOG_WEIGHTS.size)),
            shift=sides,
            stake=stake,
            centres=np.broadcast_to(null[..., None], (2, *shape)),
        )
        return wealth.with_new_bets()

    def rows(self, kept: ArrayLike) -> Self:
        """These repetitions only."""
        return kept_rows(self, kept)

    def with_new_bets(self) -> Self:
        """The same wealth with bets that follow from all the evidence so far."""
        rates = predicted(self.runs, self.sums, self.icc_log_weights, self.alternative)
        rates, shift = tilted(rates, self.alternative, self.shift)
        stake, centres = projected(rates, self.null, self.stake)
        return replace(self, shift=shift, stake=stake, centres=centres)

    def after(self, drawn: Drawn, x: Floats | float) -> Self:
        """The wealth after the tasks drawn were scored x, bets unchanged."""
        scores, both = np.array([x, 1 - x]), (slice(None), *drawn)
        factor = 1 + self.stake * (scores - self.centres[both])
        rates = shrunk(
            self.runs[drawn][..., None], self.sums[both][..., None], self.alternative[..., None]
        )
        passed = scores[..., None]
        likelihood = passed * np.log(rates) + (1 - passed) * np.log1p(-rates)
        runs, sums = tallied(self.runs, self.sums, drawn, scores)
        return replace(
            self,
            log=self.log + np.log(factor),
            runs=runs,
            sums=sums,
            icc_log_weights=self.icc_log_weights + likelihood,
        )
