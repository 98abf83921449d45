"""A gate on a suite's mean pass rate, or pass^k, that stops when the verdict is settled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from passhat.arguments import whole_number
from passhat.dataclass import dataclass, short_dataclass
from passhat.stats.arguments import Floats, one_of
from passhat.stats.sequential.fixed_designs import fixed_design, two_rates
from passhat.stats.sequential.projection import Wealth, predicted, projected, tilted
from passhat.stats.sequential.random_tasks import RandomTaskGate, SuiteState
from passhat.stats.sequential.verdicts import observed_score

# The cap is four times the fixed design: only a rate between mu0 and mu1 comes near it.
_CAP_OVER_FIXED = 4

BlockMetric = Literal["pass^k", "pass@k"]


@short_dataclass(frozen=True, slots=True, kw_only=True)
class SuiteGate(RandomTaskGate):
    """PASS if the mean over these tasks is mu1 or more, FAIL if mu0 or less.

    Tasks are drawn uniformly at random and each draw multiplies two wealths by a fair bet, so that
    P(wealth ever reaches 1/alpha) <= alpha where the mean is <= mu0 (Ville 1939), whatever the mix
    of tasks, the stopping rule and the number of runs in flight; the same for FAIL with beta.
    Bets project the record of each task onto the hypothesis, so tasks that always or never pass
    cost little. With k > 1 the mean is that of pass^k (or pass@k) and a draw is a block of up
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

    method: ClassVar[str] = "suite mean, projected bets on random tasks"

    k: int = 1
    metric: BlockMetric = "pass^k"

    def __post_init__(self) -> None:
        RandomTaskGate.__post_init__(self)
        two_rates(self.mu0, self.mu1, names=("mu0", "mu1"))
        one_of("metric", self.metric, get_args(BlockMetric))
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

    def first_wealth(self, shape: tuple[int, ...]) -> SuiteWealth:
        return SuiteWealth.start(self.mu0, self.mu1, shape)

    def _score(self, x: float | None) -> float:
        return observed_score(x)

    @property
    def _runs_per_draw(self) -> int:
        return self.k

    def _fixed_runs(self, state: SuiteState) -> int:
        return self.fixed_runs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SuiteWealth(Wealth):
    """The wealth of bets on passes and failures: predictions projected onto the hypothesis."""

    shift: Floats

    @property
    def grand_mean(self) -> Floats:
        return self.alternative

    def with_new_bets(self) -> Self:
        """The same wealth with bets that use all the evidence so far."""
        rates = predicted(self.runs, self.sums, self.icc_log_weights, self.alternative)
        rates, shift = tilted(rates, self.alternative, self.shift)
        stake, centres = projected(rates, self.null, self.stake)
        return replace(self, shift=shift, stake=stake, centres=centres)

    def _log_fit(self, scores: Floats, rates: Floats) -> Floats:
        return np.asarray(scores * np.log(rates) + (1 - scores) * np.log1p(-rates))

    @classmethod
    def _first(cls, shape: tuple[int, ...]) -> dict[str, Any]:
        return {"shift": np.zeros((2, *shape[:-1]))}


def block_outcomes(
    outcomes: Iterable[float | bool | None], *, k: int, metric: BlockMetric = "pass^k"
) -> tuple[tuple[bool, ...], int]:
    """The results of the finished blocks of one task's runs, and the runs in the unfinished one.

    The mean of p_i^k is not linear in single runs, so a bet on single runs says nothing about it.
    A block of k runs of one task is a bet on it: all k pass with chance p_i^k, and any of them
    passes with chance 1 - (1 - p_i)^k. A block ends as soon as its result is known. An errored run
    (None) counts as failed.

    >>> block_outcomes([True, True, True, False, True, True], k=3)
    ((True, False), 2)
    >>> block_outcomes([True, False, False, True], k=2, metric="pass@k")
    ((True, False, True), 0)
    """
    whole_number("k", k)
    one_of("metric", metric, get_args(BlockMetric))
    ends_at = metric == "pass@k"  # the single result that settles a block at once
    finished, length = list[bool](), 0
    for x in outcomes:
        length += 1
        if bool(x) is ends_at or length == k:
            finished.append(bool(x))
            length = 0
    return tuple(finished), length
