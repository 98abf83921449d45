"""A gate on a suite's mean pass rate, or pass^k, that stops when the verdict is settled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from passhat.defaults import CONFIDENCE
from passhat.fast_dataclass import dataclass, short_dataclass
from passhat.stats.arguments import Floats, one_of, whole_number
from passhat.stats.sequential.fixed_designs import fixed_design, two_rates
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
from passhat.stats.sequential.random_tasks import RandomTaskGate, SuiteState
from passhat.stats.sequential.verdicts import GateResult, observed_score

# The cap is four times the fixed design: a gate at a rate between mu0 and mu1 reaches it.
_CAP_OVER_FIXED = 4

BlockMetric = Literal["pass^k", "pass@k"]

BLOCK_METRICS = ("pass^k", "pass@k")


@short_dataclass(frozen=True, slots=True, kw_only=True)
class SuiteGate(RandomTaskGate):
    """PASS if the mean over these tasks is mu1 or more, FAIL if mu0 or less.

    Tasks are drawn uniformly at random and each draw multiplies two wealths by a fair bet, so that
    P(wealth ever reaches 1/alpha) <= alpha where the mean is <= mu0 (Ville 1939), whatever the mix
    of tasks, the stopping rule and the number of runs in flight; the same for FAIL with beta.
    Bets project what was learnt about each task onto the hypothesis, so tasks that always or never
    pass cost little. With k > 1 the mean is that of pass^k (or pass@k) and a draw is a block of up
    to k runs (see `block_outcomes`).

    >>> gate = SuiteGate(tasks=20, mu0=0.80, mu1=0.85, seed=1)
    >>> state = gate.start()
    >>> while state.verdict is None:
    ...     state, tickets = gate.next_tasks(state, 8)
    ...     for ticket in tickets:
    ...         state = gate.observe(state, ticket, ticket.task != 0)  # task 0 is broken
    >>> state.verdict, gate.result(state).runs_saved > 500
    ('PASS', True)
    """

    k: int = 1
    metric: BlockMetric = "pass^k"

    def __post_init__(self) -> None:
        RandomTaskGate.__post_init__(self)
        two_rates(self.mu0, self.mu1, names=("mu0", "mu1"))
        one_of("metric", self.metric, BLOCK_METRICS)
        whole_number("k", self.k)
        if self.max_runs is not None:
            whole_number("max_runs", self.max_runs, least=self.k)

    @property
    def fixed_runs(self) -> int:
        """The runs of a fixed binomial design with the same errors (whole blocks, if k > 1)."""
        return self.k * fixed_design(self.mu0, self.mu1, self.alpha, self.beta).runs

    @property
    def max_draws(self) -> int:
        """UNDECIDED after this many draws; together they never cost more than `max_runs`."""
        return (self.max_runs or _CAP_OVER_FIXED * self.fixed_runs) // self.k

    def first_wealth(self, shape: tuple[int, ...]) -> Wealth:
        return Wealth.start(self.mu0, self.mu1, shape)

    def result(self, state: SuiteState, *, confidence: float = CONFIDENCE) -> GateResult:
        """The verdict with its evidence, and an interval that holds under watching."""
        seen = state.seen
        return GateResult(
            verdict=state.verdict,
            method="suite mean, projected bets on random tasks",
            value=seen.total / seen.runs if seen.runs else None,
            interval=seen.interval(confidence=confidence),
            confidence=confidence,
            runs=state.runs,
            fixed_runs=self.fixed_runs,
            max_runs=self.max_draws * self.k,
            log_pass=state.log_pass,
            log_fail=state.log_fail,
            alpha=self.alpha,
            beta=self.beta,
            seed=self.seed,
        )

    def _score(self, x: float | None) -> float:
        return observed_score(x)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wealth:
    """Two wealths, and all that the next bets follow from; the first axis is PASS, FAIL.

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


def block_outcomes(
    outcomes: Iterable[float | bool | None], *, k: int, metric: BlockMetric = "pass^k"
) -> tuple[tuple[bool, ...], int]:
    """The results of the finished blocks of one task's runs, and the runs in the unfinished one.

    The mean of p_i^k is not linear in single runs, so a bet on single runs says nothing about it.
    A block of k runs of one task is: "all k passed" is a pass with chance p_i^k exactly, and "any
    of k passed" one with chance 1 - (1 - p_i)^k. A block ends as soon as its result is known. An
    errored run (None) counts as failed.

    >>> block_outcomes([True, True, True, False, True, True], k=3)
    ((True, False), 2)
    >>> block_outcomes([True, False, False, True], k=2, metric="pass@k")
    ((True, False, True), 0)
    """
    whole_number("k", k)
    one_of("metric", metric, BLOCK_METRICS)
    ends_at = metric == "pass@k"  # the single result that settles a block at once
    finished, length = list[bool](), 0
    for x in outcomes:
        length += 1
        if bool(x) is ends_at or length == k:
            finished.append(bool(x))
            length = 0
    return tuple(finished), length
