"""Several systems run side by side; the hopeless ones are dropped until the best is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import log

import numpy as np

from passhat.errors import ArgumentError
from passhat.stats.arguments import probability, score_array, whole_number
from passhat.stats.sequential.draws import drawn_task
from passhat.stats.sequential.pair_wealth import PairWealth, TaskCentres

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BestOfState:
    """Which systems are still in, by their number, what each pair shows, and the best if known."""

    left: tuple[int, ...]
    centres: Mapping[Pair, TaskCentres]
    behind: Mapping[Pair, PairWealth]
    ahead: Mapping[Pair, PairWealth]
    draws: int = 0
    runs: int = 0
    best: int | None = None
    dropped: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOf:
    """Which of several systems is best, or within `difference` of the best.

    A system is dropped when the bettors who hold that it is behind have, on average over the
    others, 1 / alpha: the best one is dropped with chance `alpha` at most. It is called best when
    every other one is shown to lie at most `difference` above it.
    """

    systems: int
    tasks: int
    difference: float = 0.1
    alpha: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        whole_number("systems", self.systems, least=2)
        whole_number("tasks", self.tasks)
        probability("difference", self.difference, open_ends=True)
        probability("alpha", self.alpha, open_ends=True)

    def start(self) -> BestOfState:
        """All systems are in."""
        pairs = [(j, k) for j in range(self.systems) for k in range(self.systems) if j != k]
        gap = self.difference
        return BestOfState(
            left=tuple(range(self.systems)),
            centres={pair: TaskCentres.of(self.tasks) for pair in pairs if pair[0] < pair[1]},
            behind={pair: PairWealth.against(0.0, side=-1, planned=gap) for pair in pairs},
            ahead={pair: PairWealth.against(-gap, side=1, planned=gap) for pair in pairs},
        )

    def task(self, index: int) -> int:
        """The task of the draw with this number: every system that is left runs it."""
        return drawn_task(self.seed, index, self.tasks)

    def observe(self, state: BestOfState, scores: Mapping[int, float]) -> BestOfState:
        """The state after one more draw: the score of every system that is left."""
        if state.best is not None:
            return state
        if set(scores) != set(state.left):
            raise ArgumentError("scores", f"must be those of systems {state.left}", set(scores))
        score_array("scores", list(scores.values()))
        state = self._with_scores(state, scores)
        return self._ended(self._dropped(state))

    def _with_scores(self, state: BestOfState, scores: Mapping[int, float]) -> BestOfState:
        task = self.task(state.draws)
        centres, behind, ahead = dict(state.centres), dict(state.behind), dict(state.ahead)
        for j in state.left:
            for k in state.left:
                if j == k:
                    continue
                known = state.centres[min(j, k), max(j, k)]
                values = known.values if j < k else -known.values
                at = float(values[task]), float(np.abs(values).max())
                d = scores[j] - scores[k]
                behind[j, k] = behind[j, k].after(d, *at)
                ahead[j, k] = ahead[j, k].after(d, *at)
                if j < k:
                    centres[j, k] = known.after(task, d)
        return replace(
            state,
            centres=centres,
            behind=behind,
            ahead=ahead,
            draws=state.draws + 1,
            runs=state.runs + len(state.left),
        )

    def _dropped(self, state: BestOfState) -> BestOfState:
        """Without those that are shown to be behind; pairs with dropped systems keep their say."""
        level = -log(self.alpha)
        others = self.systems - 1
        gone = dict(state.dropped)
        for j in state.left:
            wealth = [np.exp(state.behind[j, k].log) for k in range(self.systems) if k != j]
            if len(state.left) - len(gone) + len(state.dropped) > 1 and (
                np.log(sum(wealth) / others) >= level
            ):
                gone[j] = state.draws
        left = tuple(j for j in state.left if j not in gone)
        return replace(state, left=left, dropped=gone)

    def _ended(self, state: BestOfState) -> BestOfState:
        if len(state.left) == 1:
            return replace(state, best=state.left[0])
        level = log((self.systems - 1) / self.alpha)
        for j in state.left:
            if all(state.ahead[j, k].log >= level for k in state.left if k != j):
                return replace(state, best=j)
        return state
