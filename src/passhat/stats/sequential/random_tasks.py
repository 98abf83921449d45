"""What the gates on a suite share: tasks drawn at random, evidence in the order of the draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field, replace
from math import log
from typing import ClassVar, Protocol, Self

from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, whole_number
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import Floats
from passhat.stats.estimate import Interval
from passhat.stats.sequential.confidence_sequences import BettingSequence
from passhat.stats.sequential.draws import Draws, DrawTicket, Outcomes, drawn_task, indexed
from passhat.stats.sequential.projection import FAIL_SIDE, PASS_SIDE, Drawn
from passhat.stats.sequential.verdicts import (
    SET_ASIDE,
    DecisionStep,
    GateResult,
    GateVerdict,
    Observed,
    SetAside,
    error_rates,
)

# New bets after every (1 + tasks / 8)-th draw. The number is fixed, so that a replay bets the same.
_TASKS_PER_BET = 8


class TaskWealth(Protocol):
    """Evidence on both sides of a gate, and the bets on the next draw (see `Wealth`)."""

    @property
    def log(self) -> Floats: ...
    @property
    def runs(self) -> Floats: ...
    @property
    def centres(self) -> Floats: ...
    @property
    def null(self) -> Floats: ...
    def after(self, drawn: Drawn, x: Floats | float) -> Self: ...
    def rows(self, kept: ArrayLike) -> Self: ...
    def with_new_bets(self) -> Self: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SuiteState:
    """How far a gate on a suite has come: runs spent, draws taken as evidence, wealth, verdict."""

    wealth: TaskWealth = field(repr=False)
    draws: Draws = field(default_factory=Draws)
    seen: BettingSequence = field(default_factory=BettingSequence)
    runs: int = 0
    verdict: GateVerdict | None = None

    @property
    def log_pass(self) -> float:
        return float(self.wealth.log[PASS_SIDE])

    @property
    def log_fail(self) -> float:
        return float(self.wealth.log[FAIL_SIDE])


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomTaskGate(ABC):
    """A gate on a suite; its state depends only on the seed and on the results in draw order."""

    method: ClassVar[str]
    """How the gate decides, in words."""

    tasks: int
    mu0: float
    mu1: float
    alpha: float = 0.05
    beta: float = 0.05
    seed: int = 0
    max_runs: int | None = None

    def __post_init__(self) -> None:
        whole_number("tasks", self.tasks)
        whole_number("seed", self.seed, least=0)
        error_rates(self.alpha, self.beta)
        if self.max_runs is not None:
            whole_number("max_runs", self.max_runs)

    @property
    @abstractmethod
    def max_draws(self) -> int:
        """UNDECIDED after this many draws."""

    @property
    def draws_per_bet(self) -> int:
        return draws_per_bet(self.tasks)

    @abstractmethod
    def first_wealth(self, shape: tuple[int, ...]) -> TaskWealth:
        """The wealth before any draw; a simulation has an axis for repetitions before the tasks."""

    def start(self) -> SuiteState:
        """The state before any draw."""
        return SuiteState(wealth=self.first_wealth((self.tasks,)))

    @abstractmethod
    def _score(self, x: float | None) -> float:
        """A result as a score in [0, 1]."""

    def _mean(self, score: float) -> float:
        """A mean score in [0, 1] in the units of the results."""
        return score

    @property
    def _runs_per_draw(self) -> int:
        """The most runs that one draw takes."""
        return 1

    @abstractmethod
    def _fixed_runs(self, state: SuiteState) -> int | None:
        """The runs of a fixed design with the same error rates; None if there is none."""

    def next_tasks(
        self, state: SuiteState, count: int
    ) -> tuple[SuiteState, tuple[DrawTicket, ...]]:
        """Up to `count` further draws; none once the verdict is settled or the cap is reached."""
        if state.verdict is not None:
            return state, ()
        draws, indexes = state.draws.issue(whole_number("count", count), self.max_draws)
        return replace(state, draws=draws), tuple(self._ticket(state, i) for i in indexes)

    def observe(
        self, state: SuiteState, ticket: DrawTicket, x: Observed, *, runs: int = 1
    ) -> SuiteState:
        """The state after the result of a draw; None is a run that errored, the worst result.

        Results may come in any order: each waits until all earlier draws have theirs. `runs` is
        how many runs the draw took. Results after the verdict, and draws that were set aside (see
        `OutageGuard`), count as runs spent and change nothing else.
        """
        score = SET_ASIDE if isinstance(x, SetAside) else self._score(x)
        if ticket.task != drawn_task(self.seed, ticket.index, self.tasks):
            raise ArgumentError("ticket", f"must be of this gate (seed {self.seed})", ticket)
        if state.verdict is not None:
            return replace(state, runs=state.runs + runs)
        first = state.draws.taken
        draws, ready = state.draws.arrive(ticket.index, score)
        state = replace(state, draws=draws, runs=state.runs + runs)
        for index, value in enumerate(ready, start=first):
            state = self._one_more(state, index, value)
        return state

    def replay(self, outcomes: Outcomes, *, runs: Mapping[int, int] | None = None) -> SuiteState:
        """The state after these results: a sequence, or a mapping from draw to result.

        Draws missing before the last one are issued again by `next_tasks`. `runs` has the runs of
        each draw that took more than one.
        """
        state, costs = self.start(), runs or {}
        for index, x in indexed(outcomes):
            ticket = DrawTicket(index, drawn_task(self.seed, index, self.tasks), 0)
            state = self.observe(state, ticket, x, runs=costs.get(index, 1))
        return state

    def steps(self, outcomes: Outcomes) -> tuple[DecisionStep, ...]:
        """The decision log: evidence after each draw, up to the verdict or the first gap."""
        state, lines = self.start(), list[DecisionStep]()
        for index, x in indexed(outcomes):
            if state.verdict is not None or index != state.draws.taken:
                break
            ticket = DrawTicket(index, drawn_task(self.seed, index, self.tasks), 0)
            state = self.observe(state, ticket, x)
            lines.append(self._step(state, ticket, x))
        return tuple(lines)

    def result(self, state: SuiteState, *, confidence: float = CONFIDENCE) -> GateResult:
        """The verdict with its evidence, and an interval that holds however often one looks."""
        seen = state.seen
        inside = seen.interval(confidence=confidence)
        return GateResult(
            verdict=state.verdict,
            method=self.method,
            value=self._mean(seen.total / seen.runs) if seen.runs else None,
            interval=Interval(self._mean(inside.low), self._mean(inside.high)),
            confidence=confidence,
            runs=state.runs,
            fixed_runs=self._fixed_runs(state),
            max_runs=self.max_draws * self._runs_per_draw,
            log_pass=state.log_pass,
            log_fail=state.log_fail,
            alpha=self.alpha,
            beta=self.beta,
            seed=self.seed,
        )

    def _ticket(self, state: SuiteState, index: int) -> DrawTicket:
        task = drawn_task(self.seed, index, self.tasks)
        repeat = int(state.wealth.runs[task])
        for earlier in range(state.draws.taken, index):
            repeat += drawn_task(self.seed, earlier, self.tasks) == task
        return DrawTicket(index, task, repeat)

    def _one_more(self, state: SuiteState, index: int, x: float | SetAside) -> SuiteState:
        if state.verdict is not None:
            return state
        if isinstance(x, SetAside):
            return replace(state, verdict="UNDECIDED" if index + 1 == self.max_draws else None)
        task = drawn_task(self.seed, index, self.tasks)
        seen = _seen(state, task, x)
        wealth = state.wealth.after((task,), x)
        verdict: GateVerdict | None = None
        if wealth.log[PASS_SIDE] >= -log(self.alpha):
            verdict = "PASS"
        elif wealth.log[FAIL_SIDE] >= -log(self.beta):
            verdict = "FAIL"
        elif index + 1 == self.max_draws:
            verdict = "UNDECIDED"
        elif (index + 1) % self.draws_per_bet == 0:
            wealth = wealth.with_new_bets()
        return replace(state, wealth=wealth, seen=seen, verdict=verdict)

    def _step(self, state: SuiteState, ticket: DrawTicket, x: Observed) -> DecisionStep:
        return DecisionStep(
            index=ticket.index,
            task=ticket.task,
            x=x,
            log_pass=state.log_pass,
            log_fail=state.log_fail,
            pass_boundary=-log(self.alpha),
            fail_boundary=-log(self.beta),
        )


def draws_per_bet(tasks: int) -> int:
    """How many draws share the same bets: among many tasks one run says little."""
    return 1 + tasks // _TASKS_PER_BET


def _seen(state: SuiteState, task: int, x: float) -> BettingSequence:
    # How much easier than the mean each task is predicted to be, before the run; 0 on average.
    offsets = state.wealth.centres[PASS_SIDE] - state.wealth.null[PASS_SIDE]
    ends = float(offsets.min()), float(offsets.max())
    return state.seen.after(x, offset=float(offsets[task]), offsets=ends)
