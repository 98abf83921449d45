"""Several systems run side by side; the hopeless ones are dropped until the best is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from math import log

import numpy as np

from passhat.arguments import probability, whole_number
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Counts, Floats, score_array
from passhat.stats.sequential.draws import drawn_task
from passhat.stats.sequential.projection import FAIL_SIDE, PASS_SIDE
from passhat.stats.sequential.random_tasks import draws_per_bet
from passhat.stats.sequential.score_gate import ScoreWealth


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BestOfState:
    """Which systems are still in, by their number, what each pair shows, and the best if known.

    `wealth` has a row for each ordered pair of systems that are in, named in `rows`. `ahead[j, k]`
    is the log evidence that j is better than k, `close[j, k]` that j is at most the difference
    better than k; the evidence of dropped systems is kept.
    """

    left: tuple[int, ...]
    rows: Counts
    wealth: ScoreWealth
    ahead: Floats
    close: Floats
    draws: int = 0
    runs: int = 0
    best: int | None = None
    dropped: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOf:
    """Which of several systems is best, or within `difference` of the best.

    A system is dropped when the evidence that it is behind, averaged over the other systems,
    reaches 1 / alpha: the best one is dropped with a chance of at most `alpha`. A system is called
    best when every other one is shown to be at most `difference` better; that is wrong with a
    chance of at most `alpha`.
    """

    systems: int
    tasks: int
    difference: float = 0.1
    alpha: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        whole_number("systems", self.systems, least=2)
        whole_number("tasks", self.tasks)
        whole_number("seed", self.seed, least=0)
        probability("difference", self.difference, open_ends=True)
        probability("alpha", self.alpha, open_ends=True)

    def start(self) -> BestOfState:
        """All systems are in."""
        every = range(self.systems)
        rows = np.array([(j, k) for j in every for k in every if j != k])
        none = np.zeros((self.systems, self.systems))
        return BestOfState(
            left=tuple(every),
            rows=rows,
            wealth=ScoreWealth.start(0.5, (1 + self.difference) / 2, (len(rows), self.tasks)),
            ahead=none,
            close=none,
        )

    def task(self, index: int) -> int:
        """The task of the draw with this number: every system that is left runs it."""
        return drawn_task(self.seed, index, self.tasks)

    def observe(self, state: BestOfState, scores: Mapping[int, float]) -> BestOfState:
        """The state after one more draw: the score of every system that is left."""
        if state.best is not None:
            return state
        if not set(scores) >= set(state.left):
            raise ArgumentError("scores", f"must hold those of systems {state.left}", set(scores))
        score_array("scores", list(scores.values()))
        return self._ended(self._dropped(self._with_scores(state, scores)))

    def skip(self, state: BestOfState) -> BestOfState:
        """The state after a draw that is no evidence (see `OutageGuard`)."""
        if state.best is not None:
            return state
        return replace(state, draws=state.draws + 1, runs=state.runs + len(state.left))

    def _with_scores(self, state: BestOfState, scores: Mapping[int, float]) -> BestOfState:
        one = np.array([scores[j] for j in state.rows[:, 0]])
        other = np.array([scores[k] for k in state.rows[:, 1]])
        places = np.arange(len(state.rows)), np.full(len(state.rows), self.task(state.draws))
        wealth = state.wealth.after(places, (1 + one - other) / 2)
        ahead, close = state.ahead.copy(), state.close.copy()
        ahead[tuple(state.rows.T)] = wealth.log[PASS_SIDE]
        close[tuple(state.rows.T)] = wealth.log[FAIL_SIDE]
        draws = state.draws + 1
        return replace(
            state,
            wealth=wealth.with_new_bets() if draws % draws_per_bet(self.tasks) == 0 else wealth,
            ahead=ahead,
            close=close,
            draws=draws,
            runs=state.runs + len(state.left),
        )

    def _dropped(self, state: BestOfState) -> BestOfState:
        """The state without the systems that are shown to be behind."""
        others = self.systems - 1
        against = np.logaddexp.reduce(
            np.where(np.eye(self.systems, dtype=bool), -np.inf, state.ahead), axis=0
        )
        behind = [j for j in state.left if against[j] - log(others) >= -log(self.alpha)]
        if len(behind) == len(state.left):
            behind.remove(min(behind, key=lambda j: float(against[j])))
        if not behind:
            return state
        kept = ~np.isin(state.rows, behind).any(axis=1)
        return replace(
            state,
            left=tuple(j for j in state.left if j not in behind),
            dropped={**state.dropped, **dict.fromkeys(behind, state.draws)},
            rows=state.rows[kept],
            wealth=state.wealth.rows(kept),
        )

    def _ended(self, state: BestOfState) -> BestOfState:
        if len(state.left) == 1:
            return replace(state, best=state.left[0])
        level = log((self.systems - 1) / self.alpha)
        for j in state.left:
            # Every other one is at most the difference better than j.
            if all(state.close[k, j] >= level for k in state.left if k != j):
                return replace(state, best=j)
        return state
