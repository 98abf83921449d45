"""What a run would do and what it may cost, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from passhat.messages import listed
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions, Records
from passhat.reporters.blocks import Block, Headline, Paragraph
from passhat.reporters.data import plain
from passhat.reporters.safe_text import safe_text

if TYPE_CHECKING:
    from passhat.journeys.run_plan import CostRange, RunPlan


def run_plan_blocks(plan: RunPlan, options: DisplayOptions) -> list[Block]:
    """The size of the run, then a paragraph for each thing that it needs."""
    return [
        Headline(f"{safe_text(plan.suite)}: {plan.size}."),
        *(
            Paragraph(label, safe_text(options.wording("; ".join(texts))))
            for label, texts in _parts(plan)
            if texts
        ),
    ]


def _parts(plan: RunPlan) -> Iterator[tuple[str, Sequence[str]]]:
    yield "Mode", [plan.mode]
    yield "Systems", plan.systems
    yield "Models", plan.models or ["none"]
    yield "Servers", [f"{name}: {text}" for name, text in plan.servers.items()] or ["none"]
    yield "Gates", plan.gates or ["none: every failed expectation fails the run"]
    yield "Budget", [f"{name} {value:g}" for name, value in plan.budget.items()] or ["none"]
    yield "Cost", [_price(plan.cost)]
    yield "Note", plan.notes


def _price(cost: CostRange) -> str:
    if cost.high is None:
        return f"unknown: {cost.how}"
    if not cost.high:
        return f"nothing ({cost.how})"
    return f"${cost.low:,.2f} to ${cost.high:,.2f} ({cost.how})"


def _rows(plan: RunPlan) -> Records:
    """One row: lists of names in one cell each, the range of the cost in two."""
    found = plain(plan)
    cost = found.pop("cost")
    cells = {name: listed(value, len(value)) if isinstance(value, list) else value
             for name, value in found.items() if name not in ("servers", "budget")}  # fmt: skip
    return [{**cells, "cost_low": cost["low"], "cost_high": cost["high"], "cost_from": cost["how"]}]


KIND = AnswerKind(
    name="run plan",
    blocks=run_plan_blocks,
    data=plain,
    rows=_rows,
    title=lambda plan: f"plan of {plan.suite}",
)
