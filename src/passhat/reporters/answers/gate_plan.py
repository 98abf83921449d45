"""What gates will cost: the chance of each verdict and the runs it takes, over possible truths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from passhat.analysis.gates.gate import NoWorseDemand
from passhat.analysis.gates.gate_plan import GatePlan
from passhat.analysis.gates.plots import plan_figure, plan_finding
from passhat.messages import plural
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Facts, Records
from passhat.reporters.blocks import Block, Headline, Paragraph, Picture, Table
from passhat.reporters.data import shaped
from passhat.reporters.numbers import percent, signed_points

SCHEMA: Literal["passhat.gate-plan/1"] = "passhat.gate-plan/1"

# "pass" is a word that Python keeps for itself.
RowObject = TypedDict(
    "RowObject",
    {
        "truth": float,
        "pass": float,
        "fail": float,
        "undecided": float,
        "expected_runs": float,
        "runs_95": float,
    },
)


class GatePlanObject(TypedDict):
    """A gate before any run: the chance of each verdict, over a range of truths."""

    require: str
    alpha: float
    beta: float
    indifference: float | None
    tasks: int
    icc: float | None
    exact: bool
    repetitions: int | None
    seed: int | None
    max_runs: int
    fixed_runs: int | None
    sentence: str
    rows: list[RowObject]


class GatePlansObject(TypedDict):
    """What gates will cost."""

    schema: Literal["passhat.gate-plan/1"]
    plans: list[GatePlanObject]


def gate_plan_blocks(plans: Sequence[GatePlan], options: DisplayOptions) -> list[Block]:
    """Each gate: what it takes, how it may end, how that was found, and its picture."""
    return [block for plan in plans for block in _blocks(plan)]


def gate_plans_object(plans: Sequence[GatePlan]) -> GatePlansObject:
    """The plans, numbers unrounded."""
    return {"schema": SCHEMA, "plans": [_plain(plan) for plan in plans]}


def _blocks(plan: GatePlan) -> list[Block]:
    return [
        Headline(plan_finding(plan)),
        _table(plan),
        Paragraph("Errors", _errors(plan)),
        Paragraph("How", _how(plan)),
        Picture(plan_figure(plan)),
    ]


def _table(plan: GatePlan) -> Table:
    return Table(
        header=("if the truth is", "PASS", "FAIL", "UNDECIDED", "expected runs", "19 of 20 by"),
        rows=tuple(
            (
                _truth(plan, row.truth),
                percent(row.passes, digits=1),
                percent(row.fails, digits=1),
                percent(row.undecided, digits=1),
                f"{row.expected_runs:,.0f}",
                f"{row.runs_95:,.0f}",
            )
            for row in plan.rows
        ),
    )


def _truth(plan: GatePlan, truth: float) -> str:
    if isinstance(plan.gate.demand, NoWorseDemand):
        return f"{signed_points(truth, digits=1)} points"
    return percent(truth, digits=1)


def _errors(plan: GatePlan) -> str:
    gate = plan.gate
    zone = (
        "No indifference zone: a truth near the threshold stays UNDECIDED."
        if gate.indifference is None
        else f"Between the threshold and {gate.indifference:g} beyond it, either verdict may come; "
        "`passhat gate` on results has no such zone, and names more runs if the rate is in it."
    )
    return (
        f"Wrong PASS at most {percent(gate.alpha)}, wrong FAIL at most {percent(gate.beta)}. {zone}"
    )


def _how(plan: GatePlan) -> str:
    if plan.exact:
        return f"Exact, for {plural(plan.tasks, 'task')}; at most {plan.max_runs:,} runs."
    return (
        f"Simulated {plan.repetitions:,} times each with seed {plan.seed}, on "
        f"{plural(plan.tasks, 'task')} that differ with ICC {plan.icc:.2f}; one run at a time."
    )


def _plain(plan: GatePlan) -> GatePlanObject:
    gate = {name: getattr(plan.gate, name) for name in ("require", "alpha", "beta", "indifference")}
    rows = [
        {"truth": row.truth, "pass": row.passes, "fail": row.fails, "undecided": row.undecided,
         "expected_runs": row.expected_runs, "runs_95": row.runs_95}
        for row in plan.rows
    ]  # fmt: skip
    return shaped(plan, GatePlanObject, sentence=plan_finding(plan), rows=rows, **gate)


def _rows(plans: Sequence[GatePlan]) -> Records:
    return [{"gate": plan.gate.require, **row} for plan in plans for row in _plain(plan)["rows"]]


def _facts(plans: Sequence[GatePlan]) -> Facts:
    """What the first gate takes on average, at most, and with a fixed number of runs."""
    plan = plans[0]
    low = min(row.expected_runs for row in plan.rows)
    found = [
        (f"{low:,.0f} to {plan.worst_runs:,.0f}", "runs on average, depending on the true rate"),
        (f"{plan.max_runs:,}", "runs at most"),
    ]
    if plan.fixed_runs is not None:
        found.append((f"{plan.fixed_runs:,}", "runs of a fixed design with the same error rates"))
    return found


KIND = AnswerKind(
    name="gate plan",
    blocks=gate_plan_blocks,
    data=gate_plans_object,
    rows=_rows,
    figures=lambda plans: {plan.gate.require: plan_figure(plan) for plan in plans},
    title=lambda plans: f"What {plural(len(plans), 'gate')} will cost",
    facts=_facts,
    several=True,
)
