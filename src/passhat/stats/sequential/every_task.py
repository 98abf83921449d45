"""A gate on which every task must reach its bar: one gate per task, and one joint verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from passhat.arguments import CONFIDENCE, whole_number
from passhat.dataclass import dataclass, short_dataclass
from passhat.errors import ArgumentError
from passhat.stats.arguments import score_array
from passhat.stats.sequential.draws import DrawTicket
from passhat.stats.sequential.operating import OperatingCharacteristics
from passhat.stats.sequential.task_gate import TaskDesign, TaskGate, TaskState
from passhat.stats.sequential.verdicts import GateResult, GateVerdict, Observed, error_rates


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryTaskState:
    """The state of each task's gate; `runs` were spent, `turn` is the task to run next."""

    tasks: tuple[TaskState, ...] = field(repr=False)
    runs: int = 0
    turn: int = 0
    verdict: GateVerdict | None = None


@short_dataclass(frozen=True, slots=True, kw_only=True)
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
    gates: tuple[TaskGate, ...] = field(init=False, repr=False, compare=False)
    """The gate of each task."""

    def __post_init__(self) -> None:
        error_rates(self.alpha, self.beta)
        if not 0 < len(self.p0) == len(self.p1):
            lengths = (len(self.p0), len(self.p1))
            raise ArgumentError("(p0, p1)", "must hold a rate per task each", lengths)
        # Built once, so that a bad bar is an error now and not at the first run of its task.
        gates = (self._gate(p0, p1) for p0, p1 in zip(self.p0, self.p1, strict=True))
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
            rule = f"must hold the runs of each of {len(self.p0)} tasks"
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
        fixed = [one.fixed_runs for one in each if one.fixed_runs is not None]
        return GateResult(
            verdict=state.verdict,
            method=f"every task, {self.design}",
            value=min((one.value for one in each if one.value is not None), default=None),
            interval=None,
            confidence=confidence,
            runs=state.runs,
            fixed_runs=sum(fixed) if fixed else None,
            max_runs=sum(one.max_runs for one in each),
            log_pass=min(one.log_pass for one in each),
            log_fail=max(one.log_fail for one in each),
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
        passed = np.prod([one.pass_probability for one in each], axis=0)
        failed = 1 - np.prod([1 - one.fail_probability for one in each], axis=0)
        return OperatingCharacteristics(
            p=rates,
            pass_probability=passed,
            fail_probability=failed,
            undecided_probability=1 - passed - failed,
            expected_runs=np.sum([one.expected_runs for one in each], axis=0),
            runs_95=np.sum([one.runs_95 for one in each], axis=0),
            max_runs=sum(one.max_runs for one in each),
        )

    def _gate(self, p0: float, p1: float) -> TaskGate:
        return TaskGate(
            p0=p0,
            p1=p1,
            alpha=self.alpha,
            beta=self.beta / len(self.p0),
            design=self.design,
            max_runs=self.max_runs_per_task,
        )


def _joined(tasks: Sequence[TaskState]) -> GateVerdict | None:
    verdicts = {state.verdict for state in tasks}
    if "FAIL" in verdicts:
        return "FAIL"
    if None in verdicts:
        return None
    return "UNDECIDED" if "UNDECIDED" in verdicts else "PASS"
