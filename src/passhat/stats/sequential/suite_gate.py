"""Gates on the mean of a suite, of passes or of scores, and what they do at each true mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from math import ceil, log
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, whole_number
from passhat.dataclass import dataclass, result_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import (
    Counts,
    Floats,
    RandomSource,
    one_of,
    random_generator,
    score_array,
)
from passhat.stats.estimate import Interval
from passhat.stats.sequential.confidence_sequences import (
    FAIL_SIDE,
    PASS_SIDE,
    BettingSequence,
    Drawn,
    Wealth,
    predicted,
    projected,
    tilted,
)
from passhat.stats.sequential.designs import OperatingCharacteristics, fixed_design, two_rates
from passhat.stats.sequential.draws import (
    SET_ASIDE,
    DecisionStep,
    Draws,
    DrawTicket,
    GateResult,
    GateVerdict,
    Observed,
    Outcomes,
    SetAside,
    drawn_task,
    error_rates,
    indexed,
    observed_score,
)
from passhat.stats.special import ndtri

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


def draws_per_bet(tasks: int) -> int:
    """How many draws share the same bets: among many tasks one run says little."""
    return 1 + tasks // _TASKS_PER_BET


_ONE_THRESHOLD_CAP = 1000

# At most this share of the wealth is lost on one draw.
_LARGEST_LOSS = 0.75
# Before any run, scores are taken to vary like passes and failures, with the weight of five runs.
_PRIOR_RUNS = 5.0


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
        # How much easier than the mean each task is predicted to be, before the run; 0 on average.
        offsets = state.wealth.centres[PASS_SIDE] - state.wealth.null[PASS_SIDE]
        ends = float(offsets.min()), float(offsets.max())
        seen = state.seen.after(x, offset=float(offsets[task]), offsets=ends)
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


@result_dataclass(frozen=True, slots=True, kw_only=True)
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
            rule = f"must lie in [{self.low}, {self.high}], or be None for an errored trial"
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


# A gate on a suite's mean pass rate, or pass^k, that stops when the verdict is settled.

# The cap is four times the fixed design: only a rate between mu0 and mu1 comes near it.
_CAP_OVER_FIXED = 4

BlockMetric = Literal["pass^k", "pass@k"]


@result_dataclass(frozen=True, slots=True, kw_only=True)
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


# What a gate does at each true mean, by many repetitions run side by side.

# Of the tasks drawn by the repetitions still running: results in [0, 1], and the runs they cost.
if TYPE_CHECKING:  # naming numpy.random loads it
    Results = Callable[[np.random.Generator, Counts, Counts], tuple[Floats, Counts | int]]

# Tasks that always or never pass are kept off the ends, where the logit scale has none.
_NEARLY_NEVER = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Draws and runs that each repetition took, and its end: PASS (1), FAIL (0) or none (-1)."""

    draws: Counts
    runs: Counts
    verdicts: Counts

    def share(self, verdict: int) -> float:
        return float((self.verdicts == verdict).mean())

    def mean_draws(self, *, in_flight: int = 1) -> float:
        """Mean draws paid for when they are made in batches of this size."""
        return float((-(-self.draws // in_flight) * in_flight).mean())


def simulated_characteristics(
    gate: SuiteGate | ScoreGate,
    means: ArrayLike,
    *,
    icc: float,
    k: int = 1,
    metric: BlockMetric = "pass^k",
    repetitions: int = 400,
    rng: RandomSource = None,
) -> OperatingCharacteristics:
    """Chances of each verdict and expected runs at true suite means, for passes and failures.

    Tasks differ as beta-distributed rates with intraclass correlation `icc`. For blocks (k > 1)
    `means` and `icc` are those of the blocks' results: pass^k or pass@k. A gate on scores takes
    those of passes, which vary most, or of blocks of `k` by a `metric`.

    >>> gate = SuiteGate(tasks=20, mu0=0.7, mu1=0.8)
    >>> truths = simulated_characteristics(gate, [0.7, 0.8], icc=0.5, repetitions=50, rng=1)
    >>> bool((truths.expected_runs < gate.fixed_runs).all())
    True
    """
    truths = np.atleast_1d(score_array("means", means))
    if not 0 <= icc < 1:
        raise ArgumentError("icc", "must lie in [0, 1)", icc)
    shape = whole_number("repetitions", repetitions), gate.tasks
    generator, seed = random_generator(rng)
    if isinstance(gate, SuiteGate):
        k, metric = gate.k, gate.metric
    ends = []
    for mean in truths:
        rates = suite_rates(mean, icc, shape, generator)
        ends.append(simulated_ends(gate, blocks_at(rates, k, metric), shape[0], generator))
    return OperatingCharacteristics(
        p=truths,
        pass_probability=np.array([end.share(1) for end in ends]),
        fail_probability=np.array([end.share(0) for end in ends]),
        undecided_probability=np.array([end.share(-1) for end in ends]),
        expected_runs=np.array([end.runs.mean() for end in ends]),
        runs_95=np.array([np.quantile(end.runs, 0.95) for end in ends]),
        max_runs=k * gate.max_draws,
        repetitions=repetitions,
        seed=seed,
    )


def simulated_ends(
    gate: SuiteGate | ScoreGate, results: Results, repetitions: int, rng: np.random.Generator
) -> Ends:
    """Many repetitions of a gate, with the bets that the gate itself makes."""
    levels = -log(gate.alpha), -log(gate.beta)
    wealth = gate.first_wealth((repetitions, gate.tasks))
    alive = np.arange(repetitions)
    ends = Ends(
        draws=np.full(repetitions, gate.max_draws),
        runs=np.zeros(repetitions, np.int64),
        verdicts=np.full(repetitions, -1),
    )
    for draw in range(1, gate.max_draws + 1):
        task = rng.integers(gate.tasks, size=alive.size)
        scores, cost = results(rng, alive, task)
        ends.runs[alive] += cost
        wealth = wealth.after((np.arange(alive.size), task), scores)
        passed = wealth.log[PASS_SIDE] >= levels[PASS_SIDE]
        ended = passed | (wealth.log[FAIL_SIDE] >= levels[FAIL_SIDE])
        if ended.any():
            ends.draws[alive[ended]], ends.verdicts[alive[ended]] = draw, passed[ended]
            wealth, alive = wealth.rows(~ended), alive[~ended]
            if not alive.size:
                break
        if draw % gate.draws_per_bet == 0:
            wealth = wealth.with_new_bets()
    return ends


def suite_rates(
    mean: float, icc: float, shape: tuple[int, int], rng: np.random.Generator
) -> Floats:
    """Suites (rows) of beta-distributed rates, each moved on the logit scale to exactly `mean`."""
    if icc == 0 or mean in (0, 1):
        return np.full(shape, mean)
    spread = 1 / icc - 1
    rates = rng.beta(spread * mean, spread * (1 - mean), shape)
    rates = rates.clip(_NEARLY_NEVER, 1 - _NEARLY_NEVER)
    return tilted(rates, np.full(shape[0], mean), np.zeros(shape[0]))[0]


def passes_at(rates: Floats) -> Results:
    """Passes and failures at the rates of each repetition's suite."""

    def results(
        rng: np.random.Generator, alive: Counts, task: Counts
    ) -> tuple[Floats, Counts | int]:
        return (rng.random(alive.size) < rates[alive, task]).astype(np.float64), 1

    return results


def blocks_at(rates: Floats, k: int, metric: BlockMetric) -> Results:
    """Results of blocks of k runs, which pass at these rates, run by run."""
    if k == 1:
        return passes_at(rates)
    all_must_pass = metric == "pass^k"
    # The chance that one run does not settle the block: a pass for pass^k, a failure for pass@k.
    lasts = (rates if all_must_pass else 1 - rates) ** (1 / k)

    def results(
        rng: np.random.Generator, alive: Counts, task: Counts
    ) -> tuple[Floats, Counts | int]:
        settled = rng.random((alive.size, k)) >= lasts[alive, task][:, None]
        early = settled.any(axis=1)
        cost = np.where(early, settled.argmax(axis=1) + 1, k)
        return (early != all_must_pass).astype(np.float64), cost

    return results
