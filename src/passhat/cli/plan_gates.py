"""`passhat plan --gate`: what a gate will cost, before any run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from passhat.cli.output import Output, every_format

if TYPE_CHECKING:
    from passhat.records import Trials

FORMATS = every_format("gate plan")


def write_gate_plans(
    demands: Sequence[str],
    output: Output,
    *,
    trials: Trials | None,
    tasks: int | None,
    icc: float | None,
    indifference: float | None,
    confidence: float,
    seed: int,
) -> None:
    """Plan every gate, on as many tasks as the results have or the user says."""
    from passhat.analysis.gates.demands import parse_gate
    from passhat.analysis.gates.gate_plan import plan_gate
    from passhat.analysis.planning.plan import plan

    # the spread between tasks: the user's word, what was observed, or the usual guess
    base = plan(trials, tasks=tasks, correlation=icc)
    terms = {"indifference": indifference, "confidence": confidence}
    found = [
        plan_gate(
            parse_gate({"require": demand, **terms}),
            tasks=base.chosen.tasks,
            icc=min(base.assumptions.icc, 0.95),
            seed=seed,
        )
        for demand in demands
    ]
    output.write(found, FORMATS)
