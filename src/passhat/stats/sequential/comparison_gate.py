"""Two systems run side by side until one is better, or they are equivalent within a margin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import log
from typing import Literal

from passhat.errors import ArgumentError
from passhat.stats.arguments import probability, whole_number
from passhat.stats.sequential.draws import drawn_task
from passhat.stats.sequential.pair_wealth import PairWealth, TaskCentres

Finding = Literal["better", "worse", "equivalent"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparisonState:
    """How far a comparison has come: pairs of runs taken as evidence, and what they show."""

    centres: TaskCentres
    up: PairWealth
    down: PairWealth
    above: PairWealth | None
    below: PairWealth | None
    pairs: int = 0
    total: float = 0.0
    finding: Finding | None = None

    @property
    def difference(self) -> float | None:
        """The mean difference of the pairs so far."""
        return self.total / self.pairs if self.pairs else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonGate:
    """Is the first system better than the second, worse, or the same within `margin`?

    `difference` is the one that the runs are planned for; any other is found as well, later or
    sooner. Calling two equal systems better or worse has a chance of at most `alpha` in all;
    calling systems equivalent that differ by the margin, one of at most `alpha`. Both hold at
    every pair, so one may look after each. Tasks are drawn at random with `seed`, and each is run
    by both.

    >>> gate = ComparisonGate(tasks=4, difference=0.2)
    >>> gate.replay([1.0] * 40).finding
    'better'
    """

    tasks: int
    difference: float = 0.1
    margin: float | None = None
    alpha: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        whole_number("tasks", self.tasks)
        whole_number("seed", self.seed, least=0)
        probability("difference", self.difference, open_ends=True)
        probability("alpha", self.alpha, open_ends=True)
        if self.margin is not None:
            probability("margin", self.margin, open_ends=True)

    def start(self) -> ComparisonState:
        """The state before any pair."""
        m = self.margin
        return ComparisonState(
            centres=TaskCentres.of(self.tasks),
            up=PairWealth.against(0.0, side=1, planned=self.difference),
            down=PairWealth.against(0.0, side=-1, planned=self.difference),
            above=None if m is None else PairWealth.against(-m, side=1, planned=m),
            below=None if m is None else PairWealth.against(m, side=-1, planned=m),
        )

    def task(self, index: int) -> int:
        """The task of the pair with this number, from 0."""
        return drawn_task(self.seed, index, self.tasks)

    def observe(self, state: ComparisonState, d: float) -> ComparisonState:
        """The state after the next pair: the first system's score minus the second's."""
        if not -1 <= d <= 1:
            raise ArgumentError("d", "must be a difference of two scores in [0, 1]", d)
        if state.finding is not None:
            return state
        task = self.task(state.pairs)
        values = state.centres.values
        known = float(values[task]), float(abs(values).max())
        moved = replace(
            state,
            centres=state.centres.after(task, d),
            up=state.up.after(d, *known),
            down=state.down.after(d, *known),
            above=None if state.above is None else state.above.after(d, *known),
            below=None if state.below is None else state.below.after(d, *known),
            pairs=state.pairs + 1,
            total=state.total + d,
        )
        return replace(moved, finding=self._finding(moved))

    def replay(self, differences: Iterable[float]) -> ComparisonState:
        """The state after these pairs, in the order of their draws."""
        state = self.start()
        for d in differences:
            state = self.observe(state, d)
        return state

    def _finding(self, state: ComparisonState) -> Finding | None:
        one_sided = -log(self.alpha / 2)
        if state.up.log >= one_sided:
            return "better"
        if state.down.log >= one_sided:
            return "worse"
        if state.above is None or state.below is None:
            return None
        both = min(state.above.log, state.below.log)
        return "equivalent" if both >= -log(self.alpha) else None
