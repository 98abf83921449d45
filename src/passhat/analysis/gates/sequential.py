"""Gates that decide as runs come in: the design behind a demand, and how it reads a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from passhat.analysis.gates.demands import (
    BetterDemand,
    EquivalentDemand,
    EveryTaskDemand,
    Gate,
    NoWorseDemand,
    NumberDemand,
)
from passhat.analysis.reports.targets import parse_target
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.records import Trial
from passhat.stats.estimate import THIS_SUITE, Estimate, Interval, Unavailable, hull
from passhat.stats.passk import pass_at_k, pass_hat_k
from passhat.stats.sequential import (
    SET_ASIDE,
    BlockMetric,
    DrawTicket,
    EquivalenceGate,
    EveryTaskGate,
    GateResult,
    ScoreGate,
    SetAside,
    SuiteGate,
    TaskGate,
    TaskState,
    block_outcomes,
)
from passhat.stats.sequential import DecisionStep as DesignStep

Read = Callable[[Trial], float | None]
"""How well a run meets a demand: a score in [0, 1], or None if it errored."""

PAIR = 2
"""Runs of a draw that compares: one of the system, one of its baseline."""

BETTER_BY = 0.1
"""The difference a gate on "better" is planned for, if no indifference is stated."""

_WORST_DIFFERENCE = -1.0
_ANY_RATE = 0.5
_NEARLY_NEVER, _NEARLY_ALWAYS = 1e-6, 1 - 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawGate:
    """A gate whose evidence is draws: a task at random, up to k runs of it (or a pair).

    A draw ends when its result is known: pass^k at the first failure, pass@k at the first pass.
    `power` is set where one task's own rate is tested: its pass^k is the rate to that power.
    """

    gate: Gate
    design: TaskGate | SuiteGate | ScoreGate
    read: Read
    k: int = 1
    metric: BlockMetric = "pass^k"
    power: tuple[BlockMetric, int] | None = None
    paired: bool = False
    mirrored: bool = False

    @property
    def counts_share(self) -> bool:
        """Whether the number watched is a share of runs within a limit, not the number demanded."""
        demand = self.gate.demand
        return isinstance(demand, NumberDemand) and demand.target.quantile is not None

    @property
    def max_draws(self) -> int:
        if isinstance(self.design, TaskGate):
            return self.design.boundaries.max_runs
        return self.design.max_draws

    @property
    def max_runs(self) -> int:
        return self.max_draws * (PAIR if self.paired else self.k)

    @property
    def is_guarded(self) -> bool:
        """Whether runs in an outage are set aside: not where errors or times are asked for."""
        demand = self.gate.demand
        return not isinstance(demand, NumberDemand) or demand.target.is_metric

    @property
    def expected_rate(self) -> float:
        """The pass rate of a single run that the demand asks for; 0.5 where it asks for none."""
        if self.paired:
            return _ANY_RATE
        if isinstance(self.design, TaskGate):
            return self.design.p0
        return _rate_of_one_run(self.design.mu0, (self.metric, self.k))

    def start(self) -> Any:
        return TaskState() if isinstance(self.design, TaskGate) else self.design.start()

    def score(self, runs: Sequence[Trial]) -> float | None:
        """The result of a draw whose runs are these."""
        if self.paired:
            return _difference(*(self.read(run) for run in runs))
        if self.k == 1:
            return self.read(runs[0])
        return float(block_outcomes(map(self.read, runs), k=self.k, metric=self.metric)[0][0])

    def is_complete(self, runs: Sequence[Trial]) -> bool:
        """Whether these runs of a draw settle its result."""
        if self.paired:
            return len(runs) == PAIR
        if self.k == 1:
            return bool(runs)
        return bool(block_outcomes(map(self.read, runs), k=self.k, metric=self.metric)[0])

    def observe(self, state: Any, index: int, task: int, runs: Sequence[Trial] | SetAside) -> Any:
        """The state after the next draw: its runs, or that it was set aside."""
        x, size = (runs, 1) if isinstance(runs, SetAside) else (self.score(runs), len(runs))
        if isinstance(self.design, TaskGate):
            return self.design.observe(state, x, index=index)
        return self.design.observe(state, DrawTicket(index, task, 0), x, runs=size)

    def result(self, state: Any) -> GateResult:
        confidence = 1 - max(self.gate.alpha, self.gate.beta)
        return self.design.result(state, confidence=confidence)

    def fixed_runs(self, result: GateResult) -> int | None:
        """The runs of the fixed design with the same error rates, those of a baseline included."""
        fixed = result.fixed_runs
        return fixed * PAIR if fixed is not None and self.paired else fixed

    def steps(self, draws: Sequence[tuple[Sequence[Trial], bool]]) -> tuple[DesignStep, ...]:
        """The decision log of these draws in their order, with whether each counts."""
        return self.design.steps(
            [self.score(runs) if counts else SET_ASIDE for runs, counts in draws]
        )

    def estimate(self, result: GateResult) -> Estimate | Unavailable:
        """The number demanded, with an interval that holds however often one looked."""
        if result.value is None:
            return Unavailable("no run has come in yet")
        value, ends = self._point(result.value, result.runs), result.interval
        return Estimate(
            value=value,
            # The rate seen lies between the ends; the unbiased estimate of its power may not.
            interval=None if ends is None else hull(self._interval(ends), Interval(value, value)),
            method=f"{result.method}; the interval holds at all times at once",
            confidence=result.confidence,
            scope=THIS_SUITE,
            runs=result.runs,
            seed=result.seed,
        )

    def own_rate(self, truth: float) -> float:
        """The rate of a single run at which one task's number (the share of good runs) is this."""
        return truth if self.power is None else _rate_of_one_run(truth, self.power)

    def _point(self, mean: float, runs: int) -> float:
        """The number that a report states of these runs; it states none of fewer than k."""
        if self.power is None or runs < self.power[1]:
            return self._as_demanded(mean)
        metric, k = self.power
        return (pass_hat_k if metric == "pass^k" else pass_at_k)(runs, round(mean * runs), k)

    def _interval(self, ends: Interval) -> Interval:
        low, high = sorted((self._as_demanded(ends.low), self._as_demanded(ends.high)))
        return Interval(low, high)

    def _as_demanded(self, mean: float) -> float:
        if self.power is not None:
            metric, k = self.power
            return float(mean**k) if metric == "pass^k" else 1 - float((1 - mean) ** k)
        return 1 - mean if self.mirrored else mean


def draw_gate(gate: Gate, *, tasks: int, seed: int) -> DrawGate:
    """The sequential design of a demand on a suite of so many tasks.

    Of one task the rate itself is tested, exactly; of several, tasks are drawn at random. Without
    an indifference zone there is one threshold, and a truth too near to it stays UNDECIDED.

    >>> from passhat.analysis.gates.demands import parse_gate
    >>> gate = parse_gate({"require": "pass^3 >= 0.6", "indifference": 0.1})
    >>> draw_gate(gate, tasks=20, seed=0).design.fixed_runs
    744
    """
    demand = gate.demand
    if isinstance(demand, NoWorseDemand):
        return _paired_gate(gate, demand, tasks, seed)
    assert isinstance(demand, NumberDemand), "a demand of every task has another gate"
    power = block_of(demand)
    if tasks == 1 and not demand.target.is_mean_score:
        return DrawGate(
            gate=gate,
            design=_task_design(gate, demand),
            read=_reader(demand),
            power=power if demand.target.attempts else None,
            mirrored=_mirrored(demand),
        )
    return DrawGate(
        gate=gate,
        design=_suite_design(gate, demand, tasks, seed),
        read=_reader(demand),
        metric=power[0],
        k=power[1],
        mirrored=_mirrored(demand),
    )


def every_task_gate(gate: Gate, bars: Sequence[float]) -> EveryTaskGate:
    """The sequential design of a demand on every task, with the bars in the order of tasks."""
    demand = gate.demand
    assert isinstance(demand, EveryTaskDemand)
    low = [min(max(bar, _NEARLY_NEVER), _NEARLY_ALWAYS) for bar in bars]
    per_task = None if gate.max_runs is None else max(1, gate.max_runs // len(bars))
    root = 1 / demand.k
    if gate.indifference is None:
        rates = tuple(bar**root for bar in low)
        return EveryTaskGate(
            p0=rates, p1=rates, alpha=gate.alpha, beta=gate.beta, design="mixture",
            max_runs_per_task=per_task,
        )  # fmt: skip
    high = [min(bar + gate.indifference, (bar + 1) / 2) for bar in low]
    return EveryTaskGate.for_pass_hat_k(
        demand.k, low, high, alpha=gate.alpha, beta=gate.beta, design=gate.design,
        max_runs_per_task=per_task,
    )  # fmt: skip


def block_of(demand: NumberDemand) -> tuple[BlockMetric, int]:
    """The metric and the runs of one draw; everything but pass^k and pass@k takes one run."""
    metric, k = demand.target.attempts or ("pass^k", 1)
    return ("pass^k" if metric == "pass^k" else "pass@k"), k


def least_share(demand: NumberDemand) -> float:
    """The share of runs that just meets a demand."""
    if demand.target.quantile is not None:
        return demand.target.quantile[1]
    return demand.threshold if demand.upward else 1 - demand.threshold


def _rate_of_one_run(number: float, power: tuple[BlockMetric, int]) -> float:
    """The pass rate of a single run at which pass^k, or pass@k, is this number."""
    metric, k = power
    return float(number ** (1 / k) if metric == "pass^k" else 1 - (1 - number) ** (1 / k))


def _paired_gate(gate: Gate, demand: NoWorseDemand, tasks: int, seed: int) -> DrawGate:
    """Differences of scores: FAIL at -margin; PASS at -margin + indifference, by default at 0.

    A gate on "better" is planned for a difference of `BETTER_BY` beyond the margin. A gate on
    "equivalent" must FAIL at the margin, either way, and is expected to PASS at 0.
    """
    if isinstance(demand, EquivalentDemand):
        return _equivalence_gate(gate, demand, tasks, seed)
    if isinstance(demand, BetterDemand):
        high = (gate.indifference or BETTER_BY) - demand.margin
    elif demand.margin == 0:
        raise ArgumentError(f"gate {gate.label!r}", "needs a margin to be decided run by run", 0)
    else:
        high = 0.0 if gate.indifference is None else gate.indifference - demand.margin
    design = ScoreGate(
        tasks=tasks, mu0=-demand.margin, mu1=high, low=_WORST_DIFFERENCE, high=1.0,
        alpha=gate.alpha, beta=gate.beta, seed=seed,
        max_runs=None if gate.max_runs is None else max(1, gate.max_runs // PAIR),
    )  # fmt: skip
    return DrawGate(gate=gate, design=design, read=parse_target("mean_score").read, paired=True)


def _equivalence_gate(gate: Gate, demand: EquivalentDemand, tasks: int, seed: int) -> DrawGate:
    inner = 0.0 if gate.indifference is None else demand.margin - gate.indifference
    if inner < 0:
        rule = f"must be at most the margin {demand.margin:g}: equal systems are expected to PASS"
        raise ArgumentError("indifference", rule, gate.indifference)
    design = EquivalenceGate(
        tasks=tasks, mu0=inner, mu1=demand.margin, alpha=gate.alpha, beta=gate.beta, seed=seed,
        max_runs=None if gate.max_runs is None else max(1, gate.max_runs // PAIR),
    )  # fmt: skip
    return DrawGate(gate=gate, design=design, read=parse_target("mean_score").read, paired=True)


def _task_design(gate: Gate, demand: NumberDemand) -> TaskGate:
    low, high = _rates(gate, demand)
    power = block_of(demand)
    return TaskGate(
        p0=_rate_of_one_run(low, power),
        p1=_rate_of_one_run(high, power),
        alpha=gate.alpha,
        beta=gate.beta,
        design="mixture" if low == high else gate.design,
        max_runs=None if gate.design == "truncated" and low < high else gate.max_runs,
    )


def _suite_design(gate: Gate, demand: NumberDemand, tasks: int, seed: int) -> SuiteGate | ScoreGate:
    low, high = _rates(gate, demand)
    metric, k = block_of(demand)
    if demand.target.is_mean_score or low == high:
        return ScoreGate(
            tasks=tasks, mu0=low, mu1=high, alpha=gate.alpha, beta=gate.beta, seed=seed,
            max_runs=None if gate.max_runs is None else max(1, gate.max_runs // k),
        )  # fmt: skip
    return SuiteGate(
        tasks=tasks, mu0=low, mu1=high, alpha=gate.alpha, beta=gate.beta, seed=seed,
        max_runs=None if gate.max_runs is None else max(k, gate.max_runs), k=k, metric=metric,
    )  # fmt: skip


def _rates(gate: Gate, demand: NumberDemand) -> tuple[float, float]:
    """The share that must FAIL and the share expected to PASS, of runs that meet the demand."""
    low = least_share(demand)
    high = low + (gate.indifference or 0.0)
    if high >= 1:
        rule = f"must leave room above {low:g}: {high:g} is beyond every rate"
        raise ArgumentError("indifference", rule, gate.indifference)
    return low, high


def _mirrored(demand: NumberDemand) -> bool:
    """Whether the design watches the share of runs that are *not* what the demand counts."""
    return not demand.upward and demand.target.quantile is None


def _reader(demand: NumberDemand) -> Read:
    """How well a run meets the demand: 1 if it does entirely, 0 if it does not at all."""
    target = demand.target

    def read(trial: Trial) -> float | None:
        value = target.read(trial)
        if value is None:
            return None
        if target.quantile is not None:
            return float(demand.met_by(value))
        return value if demand.upward else 1 - value

    return read


def _difference(new: float | None, old: float | None) -> float | None:
    """The result of a pair; an error on either side counts against the new system."""
    if new is None:
        return None
    return new - (1.0 if old is None else old)
