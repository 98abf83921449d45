"""`passhat plan`: how many runs and tasks does an answer need?"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Unpack

import click

from passhat.cli.option_types import Number, Share, WholeNumber
from passhat.cli.options import (
    INDIFFERENCE,
    SectionedCommand,
    analysis_options,
    output_options,
    shared,
)
from passhat.cli.output import Output
from passhat.cli.reading import ReadingOptions, reading_options

if TYPE_CHECKING:
    from passhat.journeys.analyses import PlanTerms

_COUNT = WholeNumber(min=1)
_AMOUNT = Number(min=0, min_open=True)
_budget = functools.partial(shared, "What a budget buys", type=_AMOUNT)
_gate = functools.partial(shared, "What a gate costs")


@click.command(cls=SectionedCommand)
@click.option("--only", metavar="AGENT", help="Plan from this agent's trials.")
@click.option("--tasks", type=_COUNT, help="How many tasks.  [default: as in RESULTS, or 20]")
@click.option("--runs", type=_COUNT, help="Runs of each task.  [default: as in RESULTS, or enough]")
@click.option(
    "--half-width", type=Share(), default=0.05, help="Half the width of the interval you want."
)
@click.option(
    "--assurance",
    type=Share(),
    default=0.8,
    help="The share of reports that should be that narrow.",
)
@click.option(
    "--difference", type=Share(), help="The difference between two agents that you want to detect."
)
@click.option("--power", type=Share(), default=0.8, help="The chance of detecting it.")
@click.option("--rate", type=Share(), help="The pass rate you expect, before any run.")
@click.option(
    "--icc", type=Share(), help="The share of the spread that you expect to lie between tasks."
)
@click.option("--cost-ratio", type=_AMOUNT, help="What a new task costs, in runs.")
@_budget("--max-cost", metavar="DOLLARS", help="The budget in money.")
@_budget("--cost-per-run", metavar="DOLLARS", help="What one run costs.")
@_budget("--max-minutes", metavar="MINUTES", help="The budget in time.")
@_budget("--seconds-per-run", metavar="SECONDS", help="How long one run takes.")
@_budget("--at-once", type=_COUNT, default=1, help="Runs at a time.")
@_gate("--gate", "gates", metavar="DEMAND", multiple=True, help="Such as 'pass^3 >= 0.8'.")
@_gate("--indifference", type=Share(), help=INDIFFERENCE)
@analysis_options
@output_options("plan")
@reading_options(required=False)
def plan(
    reading: ReadingOptions,
    gates: tuple[str, ...],
    only: str | None,
    icc: float | None,
    indifference: float | None,
    max_cost: float | None,
    cost_per_run: float | None,
    max_minutes: float | None,
    seconds_per_run: float | None,
    at_once: int,
    ks: tuple[int, ...] | None,
    seed: int,
    output: Output,
    **terms: Unpack[PlanTerms],
) -> None:
    """How many runs and tasks does an answer need?

    Without RESULTS the plan is based on your guesses; with RESULTS, on how much they vary. It is
    about the interval of the mean, or with --k about that of pass^k for the largest k.

    \b
      passhat plan --tasks 50 --rate 0.8 --half-width 0.03
      passhat plan pilot.eval --difference 0.05 --max-cost 20
      passhat plan --tasks 20 --gate 'pass^3 >= 0.8' --indifference 0.05
    """
    from passhat.journeys import plan_gates, plan_results

    if indifference is not None and not gates:
        raise click.UsageError("--indifference is about a gate: give --gate 'pass^3 >= 0.8' too")
    results = reading.results() if reading.paths else None
    if gates:
        found = plan_gates(
            gates,
            results,
            only=only,
            tasks=terms["tasks"],
            icc=icc,
            indifference=indifference,
            confidence=terms["confidence"],
            seed=seed,
        )
        output.write(found)
        return
    from passhat.analysis.planning.budgets import Spending

    spending = Spending(
        max_cost=max_cost,
        cost_per_run=cost_per_run,
        max_minutes=max_minutes,
        seconds_per_run=seconds_per_run,
        at_once=at_once,
    )
    k = ks[-1] if ks else 1
    output.write(plan_results(results, only=only, correlation=icc, spending=spending, k=k, **terms))
