"""A gate on one task with exactly known error rates, and one on which every task must pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from math import log
from typing import Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, probability, whole_number
from passhat.dataclass import dataclass, result_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import one_of, score_array
from passhat.stats.estimate import Interval
from passhat.stats.proportions import lower_bound, upper_bound
from passhat.stats.sequential import designs
from passhat.stats.sequential.confidence_sequences import confidence_sequence
from passhat.stats.sequential.designs import (
    Boundaries,
    OperatingCharacteristics,
    fixed_design,
    look_level,
    most_default_runs,
    operating_characteristics,
    planned_boundaries,
    two_rates,
)
from passhat.stats.sequential.draws import (
    SET_ASIDE,
    DecisionStep,
    Draws,
    DrawTicket,
    GateResult,
    GateVerdict,
    Observed,
    SetAside,
    error_rates,
    observed_score,
)
from passhat.stats.special import bdtr

TaskDesign = Literal["planned", "sprt", "truncated", "fixed"]

# The ratio test between p0 and p1 is still open after four times the fixed runs in 0.5 % of cases.
_CAP_OVER_FIXED = 4
# Rarer results are written as this rare: their logarithm would not be finite.
_RAREST = 1e-300


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """How far a task gate has come: the runs that are evidence, and how many of them passed."""

    runs: int = 0
    passes: int = 0
    verdict: GateVerdict | None = None
    draws: Draws = field(default_factory=Draws, repr=False)


@result_dataclass(frozen=True, slots=True, kw_only=True)
class TaskGate:
    """PASS if the task's rate is p1 or more, FAIL if p0 or less; watch it as often as you like.

    At a rate <= p0 it says PASS with probability at most `alpha`; at a rate >= p1 it says FAIL
    with probability at most `beta`. Designs:

    - "planned": `max_runs` runs, ended early where they would almost surely say the same (see
      `planned`); p0 may equal p1. Runs beyond `planned_runs` extend it, at a known price.
    - "sprt": Wald's ratio test with Ville's thresholds; UNDECIDED after `max_runs`.
    - "truncated": always decides by about 1.1 times the fixed runs, calibrated exactly.
    - "fixed": the smallest fixed number of runs, ended early when arithmetic decides.

    >>> gate = TaskGate(p0=0.8, p1=0.9)
    >>> state = gate.replay([True] * 26)
    >>> state.verdict, state.runs
    ('PASS', 26)
    """

    p0: float
    p1: float
    alpha: float = 0.05
    beta: float = 0.05
    design: TaskDesign = "sprt"
    max_runs: int | None = None
    planned_runs: int | None = None

    def __post_init__(self) -> None:
        one_of("design", self.design, get_args(TaskDesign))
        error_rates(self.alpha, self.beta)
        if self.design == "planned" and self.p0 == self.p1:
            probability("p0", self.p0, open_ends=True)
        else:
            two_rates(self.p0, self.p1)
        if self.planned_runs is not None:
            whole_number("planned_runs", self.planned_runs)
            if self.design != "planned" or (self.max_runs or 0) < self.planned_runs:
                rule = "must be at most max_runs, of a planned gate"
                raise ArgumentError("planned_runs", rule, self.planned_runs)
        if self.max_runs is not None:
            whole_number("max_runs", self.max_runs)
            if self.design in ("truncated", "fixed"):
                rule = f"cannot be set for a {self.design} gate, which sets its own"
                raise ArgumentError("max_runs", rule, self.max_runs)

    @classmethod
    def at_threshold(
        cls,
        threshold: float,
        *,
        alpha: float = 0.05,
        beta: float = 0.05,
        max_runs: int | None = None,
    ) -> Self:
        """Above or below one threshold, with no indifference zone.

        >>> TaskGate.at_threshold(0.8).replay([True] * 17).verdict
        'PASS'
        """
        return cls(
            p0=threshold, p1=threshold, alpha=alpha, beta=beta, design="planned", max_runs=max_runs
        )

    @classmethod
    def for_pass_hat_k(
        cls,
        k: int,
        t0: float,
        t1: float,
        *,
        alpha: float = 0.05,
        beta: float = 0.05,
        design: TaskDesign = "sprt",
        max_runs: int | None = None,
    ) -> Self:
        """A gate on the task's pass^k: p^k against t is p against t^(1/k).

        >>> TaskGate.for_pass_hat_k(3, 0.729, 0.857375).p1
        0.95
        """
        root = 1 / whole_number("k", k)
        p0 = probability("t0", t0, open_ends=True) ** root
        p1 = probability("t1", t1, open_ends=True) ** root
        return cls(p0=p0, p1=p1, alpha=alpha, beta=beta, design=design, max_runs=max_runs)

    @classmethod
    def for_pass_at_k(
        cls,
        k: int,
        t0: float,
        t1: float,
        *,
        alpha: float = 0.05,
        beta: float = 0.05,
        design: TaskDesign = "sprt",
        max_runs: int | None = None,
    ) -> Self:
        """A gate on the task's pass@k: 1 - (1 - p)^k against t is p against 1 - (1 - t)^(1/k)."""
        root = 1 / whole_number("k", k)
        p0 = 1 - (1 - probability("t0", t0, open_ends=True)) ** root
        p1 = 1 - (1 - probability("t1", t1, open_ends=True)) ** root
        return cls(p0=p0, p1=p1, alpha=alpha, beta=beta, design=design, max_runs=max_runs)

    @property
    def plan(self) -> int:
        """The runs of a planned design, without those that extend it."""
        return self.planned_runs or self.max_runs or most_default_runs(self.p0, self.alpha)

    @property
    def boundaries(self) -> Boundaries:
        """The passes that end the gate after each run."""
        if self.design == "truncated":
            return designs.truncated_boundaries(self.p0, self.p1, self.alpha, self.beta)
        if self.design == "fixed":
            fixed = fixed_design(self.p0, self.p1, self.alpha, self.beta)
            return designs.curtailed_boundaries(fixed.runs, fixed.passes_needed)
        if self.design == "planned":
            rates = self.p0, self.p1, self.alpha, self.beta
            return planned_boundaries(*rates, self.plan, upto=self.max_runs)
        cap = self.max_runs or _CAP_OVER_FIXED * self._fixed_runs()
        levels = -log(self.alpha), -log(self.beta)
        return designs.ratio_boundaries(self.p0, self.p1, *levels, cap)

    def operating_characteristics(self, p: ArrayLike) -> OperatingCharacteristics:
        """Exact chances of each verdict and expected runs at the true rates `p`.

        >>> exact = TaskGate(p0=0.8, p1=0.9).operating_characteristics([0.8, 0.9])
        >>> exact.expected_runs.round(), exact.pass_probability.round(3)
        (array([67., 77.]), array([0.045, 0.963]))
        """
        return operating_characteristics(self.boundaries, p)

    def observe(self, state: TaskState, x: Observed, *, index: int | None = None) -> TaskState:
        """The state after one more run: True / 1, False / 0, or None for a run that errored.

        Runs are evidence in the order they were *started* (see `draws`). `index` says which run
        this is when several are in flight; without it, the next. A settled verdict stays. A run
        that was set aside (see `OutageGuard`) counts as spent and changes no evidence.
        """
        score = _passed(x)
        if state.verdict is not None:
            return state
        draws, ready = state.draws.arrive(state.draws.taken if index is None else index, score)
        first = state.draws.taken
        state = replace(state, draws=draws)
        for spent, value in enumerate(ready, start=first + 1):
            state = self._one_more(state, value, spent)
        return state

    def replay(self, outcomes: Iterable[Observed]) -> TaskState:
        """The state after these runs, in the order they were started."""
        state = TaskState()
        for x in outcomes:
            state = self.observe(state, x)
        return state

    def steps(self, outcomes: Iterable[Observed]) -> tuple[DecisionStep, ...]:
        """The decision log: evidence and boundaries after each run up to the verdict."""
        state, lines = TaskState(), list[DecisionStep]()
        for index, x in enumerate(outcomes):
            if state.verdict is not None:
                break
            state = self.observe(state, x)
            lines.append(self._step(state, index, _passed(x)))
        return tuple(lines)

    def result(self, state: TaskState, *, confidence: float = CONFIDENCE) -> GateResult:
        """The verdict with its evidence, and an interval that holds however often one looks."""
        log_pass, log_fail = self._log_evidence(state.runs, state.passes)
        return GateResult(
            verdict=state.verdict,
            method=f"one task, {self.design}",
            value=state.passes / state.runs if state.runs else None,
            interval=self._interval(state.runs, state.passes, confidence),
            confidence=confidence,
            runs=state.runs,
            fixed_runs=None if self.p0 == self.p1 else self._fixed_runs(),
            max_runs=self.boundaries.max_runs,
            log_pass=log_pass,
            log_fail=log_fail,
            alpha=self.alpha,
            beta=self.beta,
        )

    def _one_more(self, state: TaskState, x: float | SetAside, spent: int) -> TaskState:
        if state.verdict is not None:
            return state
        boundaries = self.boundaries
        if x is SET_ASIDE:
            return replace(state, verdict="UNDECIDED" if spent == boundaries.max_runs else None)
        runs, passes = state.runs + 1, state.passes + int(x)
        verdict = boundaries.verdict(runs, passes)
        if verdict is None and spent == boundaries.max_runs:
            verdict = "UNDECIDED"
        return replace(state, runs=runs, passes=passes, verdict=verdict)

    def _step(self, state: TaskState, index: int, x: float | SetAside) -> DecisionStep:
        n = state.runs
        log_pass, log_fail = self._log_evidence(n, state.passes)
        pass_boundary, fail_boundary = -log(self.alpha), -log(self.beta)
        if self.design == "planned" and n > 0:
            pass_boundary, fail_boundary = (-log(level) for level in self._levels(n))
        elif self.design in ("truncated", "fixed") and n > 0:
            pass_boundary = self._log_evidence(n, self.boundaries.pass_at[n - 1])[0]
            fail_boundary = self._log_evidence(n, self.boundaries.fail_at[n - 1])[1]
        return DecisionStep(
            index=index,
            task=0,
            x=x,
            log_pass=log_pass,
            log_fail=log_fail,
            pass_boundary=pass_boundary,
            fail_boundary=fail_boundary,
        )

    def _log_evidence(self, runs: int, passes: int) -> tuple[float, float]:
        if self.design == "planned":
            # How rare such a result is after as many runs, on the wrong side of each rate.
            chances = bdtr(runs - passes, runs, 1 - self.p0), bdtr(passes, runs, self.p1)
            above, below = (-log(max(float(chance), _RAREST)) for chance in chances)
            return above, below
        ratio = designs.log_likelihood_ratio(runs, passes, self.p0, self.p1)
        return ratio, -ratio

    def _levels(self, runs: int) -> tuple[float, float]:
        """The one-sided levels of a planned design's look after so many runs, for PASS and FAIL."""
        boundaries = self.boundaries
        return (
            look_level(runs, runs - boundaries.pass_at[runs - 1], 1 - self.p0, self.alpha),
            look_level(runs, boundaries.fail_at[runs - 1], self.p1, self.beta),
        )

    def _interval(self, runs: int, passes: int, confidence: float) -> Interval:
        """Where the rate may lie, however often one looked.

        A planned design has the exact bounds of its last look: they clear p0 just where it passes.
        """
        if self.design != "planned" or not runs:
            return confidence_sequence(runs, passes, confidence=confidence)
        low, high = self._levels(runs)
        return Interval(
            float(lower_bound(passes, runs, confidence=1 - low)),
            float(upper_bound(passes, runs, confidence=1 - high)),
        )

    def _fixed_runs(self) -> int:
        return fixed_design(self.p0, self.p1, self.alpha, self.beta).runs


def _passed(x: Observed) -> float | SetAside:
    """A result as 1 or 0; errored runs are 0."""
    if x is SET_ASIDE:
        return SET_ASIDE
    score = observed_score(x)
    if score not in (0.0, 1.0):
        raise ArgumentError("x", "must be a pass or a failure (ScoreGate takes scores)", x)
    return score


# Every task must reach its bar: a gate for each task, and one joint verdict.


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryTaskState:
    """The state of each task's gate; `runs` were spent, `turn` is the task to run next."""

    tasks: tuple[TaskState, ...] = field(repr=False)
    runs: int = 0
    turn: int = 0
    verdict: GateVerdict | None = None


@result_dataclass(frozen=True, slots=True, kw_only=True)
class EveryTaskGate:
    """PASS when every task's gate passed, FAIL as soon as one failed.

    A wrong PASS needs the one bad task to pass, so every gate may use alpha itself (intersection-
    union, Berger 1982). Any of T good tasks could cause a wrong FAIL, so each gate gets beta / T.

    >>> gate = EveryTaskGate(p0=(0.6, 0.7), p1=(0.9, 0.95))
    >>> gate.replay([[True] * 30, [True] * 4 + [False] * 12]).verdict
    'FAIL'
    """

    p0: tuple[float, ...]
    p1: tuple[float, ...]
    alpha: float = 0.05
    beta: float = 0.05
    design: TaskDesign = "sprt"
    max_runs_per_task: int | None = None
    planned_runs_per_task: int | None = None
    gates: tuple[TaskGate, ...] = field(init=False, repr=False, compare=False)
    """The gate of each task."""

    def __post_init__(self) -> None:
        error_rates(self.alpha, self.beta)
        if not 0 < len(self.p0) == len(self.p1):
            lengths = (len(self.p0), len(self.p1))
            raise ArgumentError("(p0, p1)", "must hold a rate per task each", lengths)
        # Built once, so that a bad bar is an error now and not at the first run of its task.
        gates = (
            TaskGate(
                p0=p0,
                p1=p1,
                alpha=self.alpha,
                beta=self.beta / len(self.p0),
                design=self.design,
                max_runs=self.max_runs_per_task,
                planned_runs=self.planned_runs_per_task,
            )
            for p0, p1 in zip(self.p0, self.p1, strict=True)
        )
        object.__setattr__(self, "gates", tuple(gates))

    @classmethod
    def for_pass_hat_k(
        cls,
        k: int,
        t0: Sequence[float],
        t1: Sequence[float],
        *,
        alpha: float = 0.05,
        beta: float = 0.05,
        design: TaskDesign = "sprt",
        max_runs_per_task: int | None = None,
    ) -> Self:
        """Every task's pass^k against its bar: FAIL at t0, PASS at t1."""
        root = 1 / whole_number("k", k)
        return cls(
            p0=tuple(float(t) ** root for t in t0),
            p1=tuple(float(t) ** root for t in t1),
            alpha=alpha,
            beta=beta,
            design=design,
            max_runs_per_task=max_runs_per_task,
        )

    def start(self) -> EveryTaskState:
        return EveryTaskState(tasks=(TaskState(),) * len(self.p0))

    def next_tasks(
        self, state: EveryTaskState, count: int
    ) -> tuple[EveryTaskState, tuple[DrawTicket, ...]]:
        """Up to `count` runs of tasks that are still open, in turn."""
        tasks, turn, tickets = list(state.tasks), state.turn, list[DrawTicket]()
        passed_over = 0
        while state.verdict is None and len(tickets) < count and passed_over < len(tasks):
            draws, indexes = (
                tasks[turn].draws.issue(1, self.gates[turn].boundaries.max_runs)
                if tasks[turn].verdict is None
                else (tasks[turn].draws, ())
            )
            tasks[turn] = replace(tasks[turn], draws=draws)
            tickets.extend(DrawTicket(index, turn, index) for index in indexes)
            passed_over = 0 if indexes else passed_over + 1
            turn = (turn + 1) % len(tasks)
        return replace(state, tasks=tuple(tasks), turn=turn), tuple(tickets)

    def observe(self, state: EveryTaskState, ticket: DrawTicket, x: Observed) -> EveryTaskState:
        """The state after one run: True / 1, False / 0, or None for a run that errored."""
        before = state.tasks[ticket.task]
        after = self.gates[ticket.task].observe(before, x, index=ticket.index)
        tasks = (*state.tasks[: ticket.task], after, *state.tasks[ticket.task + 1 :])
        verdict = state.verdict
        if verdict is None and after.verdict is not before.verdict:
            verdict = _joined(tasks)
        return replace(state, tasks=tasks, runs=state.runs + 1, verdict=verdict)

    def replay(self, outcomes: Sequence[Sequence[float | None]]) -> EveryTaskState:
        """The state after these runs of each task, in the order they were started."""
        if len(outcomes) != len(self.p0):
            rule = f"must hold the trials of each of {len(self.p0)} tasks"
            raise ArgumentError("outcomes", rule, len(outcomes))
        tasks = tuple(gate.replay(runs) for gate, runs in zip(self.gates, outcomes, strict=True))
        spent = sum(map(len, outcomes))
        return EveryTaskState(tasks=tasks, runs=spent, verdict=_joined(tasks))

    def task_results(
        self, state: EveryTaskState, *, confidence: float = CONFIDENCE
    ) -> tuple[GateResult, ...]:
        """The state of each task."""
        return tuple(
            gate.result(task, confidence=confidence)
            for gate, task in zip(self.gates, state.tasks, strict=True)
        )

    def result(self, state: EveryTaskState, *, confidence: float = CONFIDENCE) -> GateResult:
        """The joint verdict: `value` is the lowest pass rate seen, the evidence is the weakest."""
        each = self.task_results(state, confidence=confidence)
        fixed = [result.fixed_runs for result in each if result.fixed_runs is not None]
        return GateResult(
            verdict=state.verdict,
            method=f"every task, {self.design}",
            value=min((result.value for result in each if result.value is not None), default=None),
            interval=None,
            confidence=confidence,
            runs=state.runs,
            fixed_runs=sum(fixed) if fixed else None,
            max_runs=sum(result.max_runs for result in each),
            log_pass=min(result.log_pass for result in each),
            log_fail=max(result.log_fail for result in each),
            alpha=self.alpha,
            beta=self.beta,
        )

    def operating_characteristics(self, p: ArrayLike) -> OperatingCharacteristics:
        """Exact chances of each verdict when task i has rate p[i].

        `expected_runs` are those of every task's own gate. A FAIL of one task ends them all, so
        fewer runs are spent where a FAIL is likely.
        """
        rates = score_array("p", p)
        if rates.shape != (len(self.p0),):
            raise ArgumentError("p", f"must hold {len(self.p0)} rates", rates.shape)
        each = [
            gate.operating_characteristics(rate)
            for gate, rate in zip(self.gates, rates, strict=True)
        ]
        passed = np.prod([design.pass_probability for design in each], axis=0)
        failed = 1 - np.prod([1 - design.fail_probability for design in each], axis=0)
        return OperatingCharacteristics(
            p=rates,
            pass_probability=passed,
            fail_probability=failed,
            undecided_probability=1 - passed - failed,
            expected_runs=np.sum([design.expected_runs for design in each], axis=0),
            runs_95=np.sum([design.runs_95 for design in each], axis=0),
            max_runs=sum(design.max_runs for design in each),
        )


def _joined(tasks: Sequence[TaskState]) -> GateVerdict | None:
    verdicts = {state.verdict for state in tasks}
    if "FAIL" in verdicts:
        return "FAIL"
    if None in verdicts:
        return None
    return "UNDECIDED" if "UNDECIDED" in verdicts else "PASS"
