"""A gate on mean scores or paired differences, whose bets grow when the scores vary little."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any, ClassVar, Self

import numpy as np

from passhat.dataclass import dataclass, short_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Floats
from passhat.stats.sequential.fixed_designs import fixed_design
from passhat.stats.sequential.projection import Wealth, predicted
from passhat.stats.sequential.random_tasks import RandomTaskGate, SuiteState, TaskWealth
from passhat.stats.special import ndtri

# UNDECIDED after four times the fixed design, or, with one threshold and no such design, after
# a thousand draws.
_CAP_OVER_FIXED = 4
_ONE_THRESHOLD_CAP = 1000
# At most this share of the wealth is lost on one draw.
_LARGEST_LOSS = 0.75
# Before any run, scores are taken to vary like passes and failures, with the weight of five runs.
_PRIOR_RUNS = 5.0


@short_dataclass(frozen=True, slots=True, kw_only=True)
class ScoreGate(RandomTaskGate):
    """PASS if the mean score over these tasks is mu1 or more, FAIL if mu0 or less.

    The guarantee is that of `SuiteGate`; the bets depend on the variance seen (Waudby-Smith &
    Ramdas 2024), so that steady scores settle it soon. With mu0 = mu1 there is one threshold and no
    indifference zone. `tasks=1` is a plain stream of scores.

    >>> gate = ScoreGate(tasks=10, mu0=0.70, mu1=0.75)
    >>> state = gate.replay([0.8, 0.85, 0.75] * 20)
    >>> state.verdict, state.seen.runs
    ('PASS', ...)
    """

    method: ClassVar[str] = "mean score, variance-adaptive bets on random tasks"

    low: float = 0.0
    high: float = 1.0

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

    def _score(self, x: float | None) -> float:
        if x is None:
            return 0.0
        if not self.low <= x <= self.high:
            rule = f"must lie in [{self.low}, {self.high}], or be None for an errored run"
            raise ArgumentError("x", rule, x)
        return self._scaled(x)

    def _scaled(self, x: float) -> float:
        return (x - self.low) / (self.high - self.low)

    def _mean(self, score: float) -> float:
        return self.low + (self.high - self.low) * score

    def _fixed_runs(self, state: SuiteState) -> int | None:
        """The runs of a z test at the variance seen."""
        gap = self._scaled(self.mu1) - self._scaled(self.mu0)
        if gap == 0 or state.seen.runs < 2:
            return None
        errors = ndtri(1 - self.alpha) + ndtri(1 - self.beta)
        return ceil(state.seen.squares / state.seen.runs * (errors / gap) ** 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreWealth(Wealth):
    """The wealth of bets on scores in [0, 1], whose stakes depend on the variance seen."""

    squares: Floats
    rates: Floats

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

    def with_new_bets(self) -> Self:
        """The same wealth with bets that use all the evidence so far.

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

    def _log_fit(self, scores: Floats, rates: Floats) -> Floats:
        return np.asarray(-((scores - rates) ** 2) / (2 * self.variance[..., None]))

    @classmethod
    def _first(cls, shape: tuple[int, ...]) -> dict[str, Any]:
        return {"squares": np.zeros((2, *shape[:-1])), "rates": np.zeros((2, *shape))}

    def _learnt(self, scores: Floats, both: tuple[Any, ...]) -> dict[str, Any]:
        return {"squares": self.squares + (scores - self.rates[both]) ** 2}
