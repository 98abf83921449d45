"""A gate on a suite's mean pass rate, or pass^k, that stops when the verdict is settled."""

from __future__ import annotations

from dataclasses import dataclass

from passhat.defaults import CONFIDENCE
from passhat.messages import repr_fields
from passhat.stats.arguments import one_of, whole_number
from passhat.stats.sequential.blocks import BLOCK_METRICS, BlockMetric
from passhat.stats.sequential.fixed_design import fixed_design, two_rates
from passhat.stats.sequential.random_tasks import RandomTaskGate, SuiteState
from passhat.stats.sequential.verdicts import GateResult, observed_score
from passhat.stats.sequential.wealth import Wealth

_CAP_OVER_FIXED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteGate(RandomTaskGate):
    """PASS if the mean over these tasks is mu1 or more, FAIL if mu0 or less; watch it at will.

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

    __repr__ = repr_fields

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
