"""The two wealth processes of a score gate, with stakes that grow as the scores prove steady."""

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
    shrunk,
    tallied,
)

# At most this share of the wealth is lost on one draw.
_LARGEST_LOSS = 0.75
# Before any run, scores are taken to vary like passes and failures, with the weight of five runs.
_PRIOR_RUNS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreWealth:
    """Everything the next bets follow from; the first axis is the side (PASS, FAIL).

    Scores lie in [0, 1]; the FAIL side sees 1 - x, as in `Wealth`. Further axes may stand between
    the side and the tasks: a simulation has one for repetitions.
    """

    null: Floats
    alternative: Floats
    log: Floats
    runs: Floats
    sums: Floats
    squares: Floats
    icc_log_weights: Floats
    rates: Floats
    stake: Floats
    centres: Floats

    @classmethod
    def start(cls, mu0: float, mu1: float | Floats, shape: tuple[int, ...]) -> Self:
        """Wealth 1 on both sides, and the first bets; `shape` ends with the number of tasks.

        Where `shape` has an axis before the tasks, `mu1` may differ along it.
        """
        sides = np.zeros((2, *shape[:-1]))
        null, alternative = hypotheses(mu0, mu1, shape[:-1])
        wealth = cls(
            null=null,
            alternative=alternative,
            log=sides,
            runs=np.zeros(shape),
            sums=np.zeros((2, *shape)),
            squares=sides,
            icc_log_weights=np.broadcast_to(ICC_LOG_WEIGHTS, (*sides.shape, ICC_LOG_WEIGHTS.size)),
            rates=np.zeros((2, *shape)),
            stake=sides,
            centres=np.broadcast_to(null[..., None], (2, *shape)),
        )
        return wealth.with_new_bets()

    @property
    def variance(self) -> Floats:
        """How far scores fall from their predictions."""
        prior = _PRIOR_RUNS * self.alternative * (1 - self.alternative)
        return np.asarray((prior + self.squares) / (_PRIOR_RUNS + self.runs.sum(axis=-1)))

    @property
    def grand_mean(self) -> Floats:
        """The mean so far, begun at the alternative with the weight of one run."""
        runs = self.runs.sum(axis=-1)
        return np.asarray((self.alternative + self.sums.sum(axis=-1)) / (1 + runs))

    def rows(self, kept: ArrayLike) -> Self:
        """These repetitions only."""
        return kept_rows(self, kept)

    def with_new_bets(self) -> Self:
        """The same wealth with bets that follow from all the evidence so far.

        Centres follow the tasks' predictions and have the mean of the hypothesis. The stake is
        near Kelly's for the gap and the variance, gap / (variance + gap^2) (aGRAPA of Waudby-Smith
        & Ramdas 2024); the gap is the one to be shown or, with one threshold, the one seen.
        """
        rates = predicted(self.runs, self.sums, self.icc_log_weights, self.grand_mean)
        centres = rates + (self.null - rates.sum(axis=-1) / rates.shape[-1])[..., None]
        noise = np.sqrt(self.variance / (1 + self.runs.sum(axis=-1)))
        seen = np.maximum(self.grand_mean - self.null, noise)
        gap = np.where(self.alternative > self.null, self.alternative - self.null, seen)
        kelly = gap / (self.variance + gap * gap)
        stake = np.minimum(kelly, _LARGEST_LOSS / centres.max(axis=-1))
        return replace(self, rates=rates, stake=stake, centres=centres)

    def after(self, drawn: Drawn, x: Floats | float) -> Self:
        """The wealth after the tasks drawn were scored x, bets unchanged."""
        scores, both = np.array([x, 1 - x]), (slice(None), *drawn)
        factor = 1 + self.stake * (scores - self.centres[both])
        rates = shrunk(
            self.runs[drawn][..., None], self.sums[both][..., None], self.grand_mean[..., None]
        )
        misses = (scores[..., None] - rates) ** 2 / (2 * self.variance[..., None])
        runs, sums = tallied(self.runs, self.sums, drawn, scores)
        return replace(
            self,
            log=self.log + np.log(factor),
            runs=runs,
            sums=sums,
            squares=self.squares + (scores - self.rates[both]) ** 2,
            icc_log_weights=self.icc_log_weights - misses,
        )
