"""What a gate will cost and say, before any money is spent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from passhat.analysis.gates import rounds, sequential
from passhat.analysis.gates.gate import (
    BestOfRequirement,
    EquivalentRequirement,
    EveryTaskRequirement,
    Gate,
    NoTaskWorseRequirement,
    NoWorseRequirement,
    Requirement,
    ThresholdRequirement,
    parse_gate,
    why_not_sequential,
)
from passhat.arguments import probability, whole_number
from passhat.dataclass import Displayed, result_dataclass
from passhat.errors import ArgumentError
from passhat.stats.sample_size import GUESSED_ICC
from passhat.stats.sequential import OperatingCharacteristics, TaskGate
from passhat.stats.sequential.confidence_sequences import tilted
from passhat.stats.sequential.suite_gate import simulated_characteristics, suite_rates

MOST_TASKS, MOST_ATTEMPTS = 10_000, 1_000
"""Above these a simulation takes minutes and gigabytes, and no suite is as large."""

DEFAULT_REPETITIONS = 200

_STEPS_EACH_WAY = 4
_DEFAULT_STEP = 0.05
_BASELINE_MEAN = 0.8
"""The assumed mean of a baseline when only the difference from it is demanded."""
_LEAST_MEAN = 0.02
"""The least mean of either system, and 1 minus the largest: a baseline makes room for the other."""


@result_dataclass(frozen=True, slots=True, kw_only=True)
class GatePlanRow:
    """What happens if this is the truth: the chance of each verdict, and the runs it takes."""

    truth: float
    passes: float
    fails: float
    undecided: float
    expected_runs: float
    runs_95: float


@result_dataclass(frozen=True, slots=True, kw_only=True)
class GatePlan(Displayed):
    """A gate before any run, over a range of truths.

    `exact` numbers follow from the design; the others are simulated, `repetitions` times each, on
    suites whose tasks differ as `icc` says. `fixed_runs` is the fixed design with the same errors.
    """

    gate: Gate
    tasks: int
    icc: float | None
    rows: tuple[GatePlanRow, ...]
    max_runs: int
    fixed_runs: int | None
    exact: bool
    repetitions: int | None
    seed: int
    notes: tuple[str, ...] = ()

    @property
    def pass_steps(self) -> tuple[tuple[int, int], ...]:
        """Each number of failures, with the first run after which a PASS may have that many.

        Empty where counts alone do not decide. A suite may also PASS by its bound at a look.
        """
        demand = self.gate.demand
        if not isinstance(demand, ThresholdRequirement):
            return ()
        if rounds.decides_in_rounds(self.gate, self.tasks):
            runs = rounds.planned_rounds(self.gate, self.tasks, [1])
            return rounds.RoundGate(self.gate, runs, runs[0]).pass_steps
        return sequential.draw_gate(self.gate, tasks=self.tasks, seed=self.seed).pass_steps

    @property
    def worst_runs(self) -> float:
        """The largest expected number of runs over the truths."""
        return max(row.expected_runs for row in self.rows)


def plan_gate(
    gate: Gate | str,
    *,
    tasks: int = 1,
    icc: float = GUESSED_ICC,
    bars: Sequence[float] | None = None,
    repetitions: int = DEFAULT_REPETITIONS,
    seed: int = 0,
) -> GatePlan:
    """Expected runs, worst case, and the chance of each verdict of a sequential gate.

    Exact for one task and for demands of every task; simulated, with `seed`, for a suite of
    `tasks` tasks whose rates have intraclass correlation `icc`.

    >>> planned = plan_gate(parse_gate({"require": "pass^1 >= 0.8", "indifference": 0.1}))
    >>> [round(row.expected_runs) for row in planned.rows if row.truth in (0.8, 0.9)]
    [67, 84]
    """
    parsed = parse_gate(gate)
    reason = why_not_sequential(parsed)
    if reason or isinstance(parsed.demand, NoTaskWorseRequirement):
        raise ArgumentError(f"gate {parsed.label!r}", f"cannot be planned: it {reason}", "bound")
    if isinstance(parsed.demand, BestOfRequirement):
        rule = "cannot be planned; plan better_than for the difference that matters"
        raise ArgumentError(f"gate {parsed.label!r}", rule, parsed.require)
    if whole_number("tasks", tasks) > MOST_TASKS:
        raise ArgumentError("tasks", f"can be planned up to {MOST_TASKS:,}", tasks)
    target = getattr(parsed.demand, "target", None)
    attempts = re.search(r"[@^](\d+)$", target.name if target is not None else "")
    if attempts is not None and int(attempts[1]) > MOST_ATTEMPTS:
        rule = f"cannot be planned: k is above {MOST_ATTEMPTS:,}"
        raise ArgumentError(f"gate {parsed.label!r}", rule, parsed.require)
    probability("icc", icc)
    truths = _truths_around(parsed)
    if isinstance(parsed.demand, EveryTaskRequirement):
        bar = parsed.demand.bar
        wanted = list(bars or []) if bar is None else [bar] * tasks
        if not wanted:
            raise ArgumentError("bars", 'must be given: the gate says "its bar"', None)
        every = sequential.every_task_gate(parsed, wanted)
        rates = [truth ** (1 / parsed.demand.k) for truth in truths]
        each = [every.operating_characteristics([rate] * len(every.gates)) for rate in rates]
        rows = [_rows([truth], c)[0] for truth, c in zip(truths, each, strict=True)]
        characteristics, fixed = each[0], every.result(every.start()).fixed_runs
    elif rounds.decides_in_rounds(parsed, tasks):
        characteristics = _in_rounds(
            parsed, truths, tasks, icc=icc, repetitions=repetitions, seed=seed
        )
        rows = _rows([_as_demanded(parsed.demand, truth) for truth in truths], characteristics)
        fixed = None
    else:
        design = sequential.draw_gate(parsed, tasks=tasks, seed=seed)
        characteristics = _characteristics(
            design, truths, icc=icc, repetitions=repetitions, seed=seed
        )
        rows = _rows([_as_demanded(parsed.demand, truth) for truth in truths], characteristics)
        fixed = design.result(design.start()).fixed_runs
    exact = characteristics.repetitions is None
    return GatePlan(
        gate=parsed,
        tasks=tasks,
        icc=None if exact else icc,
        rows=tuple(rows),
        max_runs=characteristics.max_runs,
        fixed_runs=fixed,
        exact=exact,
        repetitions=characteristics.repetitions,
        seed=seed,
    )


def _truths_around(gate: Gate) -> tuple[float, ...]:
    """True values on both sides of what is demanded, its two boundaries among them."""
    demand, step = gate.demand, gate.indifference or _DEFAULT_STEP
    if isinstance(demand, EquivalentRequirement):
        half = demand.margin / 2
        return _possible(i * half for i in range(-3, 4))
    if isinstance(demand, NoWorseRequirement):
        step = gate.indifference or abs(demand.margin) or sequential.BETTER_BY
        return _possible(-demand.margin + i * step for i in range(-2, 4))
    if isinstance(demand, EveryTaskRequirement):
        low = _BASELINE_MEAN if demand.bar is None else demand.bar
    else:
        assert isinstance(demand, ThresholdRequirement)
        low = sequential.least_share(demand)
    steps = range(-_STEPS_EACH_WAY, _STEPS_EACH_WAY + 1)
    around = {round(low + i * step, 10) for i in steps}
    inside = {truth for truth in around if 0 < truth < 1} | {(low + 1) / 2, 1.0}
    return tuple(sorted(inside))


def _possible(differences: Iterable[float]) -> tuple[float, ...]:
    most = 1 - 2 * _LEAST_MEAN
    return tuple(round(difference, 10) for difference in differences if abs(difference) <= most)


def _characteristics(
    gate: sequential.DrawGate, truths: Sequence[float], *, icc: float, repetitions: int, seed: int
) -> OperatingCharacteristics:
    if isinstance(gate.design, TaskGate):
        return gate.design.operating_characteristics([gate.own_rate(truth) for truth in truths])
    return simulated_characteristics(
        gate.design,
        truths,
        icc=icc,
        k=gate.k,
        metric=gate.metric,
        repetitions=repetitions,
        rng=seed,
    )


def _in_rounds(
    gate: Gate, truths: Sequence[float], tasks: int, *, icc: float, repetitions: int, seed: int
) -> OperatingCharacteristics:
    """A gate that is looked at after rounds, on passes and failures."""
    rng = np.random.default_rng(seed)
    runs = rounds.planned_rounds(gate, tasks, [1])
    watch = rounds.RoundGate(gate, runs, runs[0])
    demand, shape = gate.demand, (repetitions, tasks)
    ends = []
    for truth in truths:
        if isinstance(demand, ThresholdRequirement):
            shares = suite_rates(truth, icc, shape, rng)
            metric, k = sequential.block_of(demand)
            root = shares ** (1 / k) if metric == "pass^k" else 1 - (1 - shares) ** (1 / k)
            sides = [root]
        else:
            mean = min(max(_BASELINE_MEAN, _LEAST_MEAN - truth), 1 - _LEAST_MEAN - truth)
            old = suite_rates(mean, icc, shape, rng)
            aims, unmoved = np.full(repetitions, mean + truth), np.zeros(repetitions)
            sides = [tilted(old, aims, unmoved)[0], old]
        ends.append(rounds.simulated_rounds(watch, sides, rng))
    words, spent = (np.array(part) for part in zip(*ends, strict=True))
    return OperatingCharacteristics(
        p=np.array(truths),
        pass_probability=(words == 1).mean(axis=1),
        fail_probability=(words == 0).mean(axis=1),
        undecided_probability=(words == -1).mean(axis=1),
        expected_runs=spent.mean(axis=1),
        runs_95=np.quantile(spent, 0.95, axis=1),
        max_runs=runs[0]
        * tasks
        * (1 if isinstance(demand, ThresholdRequirement) else sequential.PAIR),
        repetitions=repetitions,
        seed=seed,
    )


def _as_demanded(demand: Requirement, share: float) -> float:
    """The truth as the demand states it: an error rate, where runs without error are watched."""
    if (
        isinstance(demand, ThresholdRequirement)
        and not demand.upward
        and not demand.target.quantile
    ):
        return round(1 - share, 10)
    return share


def _rows(truths: Sequence[float], characteristics: OperatingCharacteristics) -> list[GatePlanRow]:
    columns = (
        truths,
        characteristics.pass_probability,
        characteristics.fail_probability,
        characteristics.undecided_probability,
        characteristics.expected_runs,
        characteristics.runs_95,
    )
    return [
        GatePlanRow(
            truth=truth,
            passes=passes,
            fails=fails,
            undecided=max(0.0, undecided),
            expected_runs=expected,
            runs_95=most,
        )
        for truth, passes, fails, undecided, expected, most in zip(
            *(np.atleast_1d(column).tolist() for column in columns), strict=True
        )
    ]
