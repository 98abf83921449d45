"""`passhat plan`: how many runs and tasks does an answer need?"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import click

from passhat.cli.options import (
    Analysing,
    SectionedCommand,
    Share,
    WholeNumber,
    analysis_options,
    output_options,
)
from passhat.cli.output import Output
from passhat.cli.reading import ReadingOptions, reading_options

_COUNT = WholeNumber(min=1)
_AMOUNT = click.FloatRange(min=0, min_open=True)


@click.command(cls=SectionedCommand)
@click.option("--only", metavar="AGENT", help="Plan from this agent's trials.")
@click.option("--tasks", type=_COUNT, help="How many tasks.  [default: those there are, or 20]")
@click.option("--runs", type=_COUNT, help="Runs of each.  [default: those there are, or enough]")
@click.option("--half-width", type=Share(), default=0.05, help="Wanted: mean (pass^K) ± this.")
@click.option("--assurance", type=Share(), default=0.8, help="Share of reports as narrow.")
@click.option("--difference", type=Share(), help="Wanted: to tell two agents apart by this.")
@click.option("--power", type=Share(), default=0.8, help="Chance to see it.")
@click.option("--rate", type=Share(), help="Expected pass rate, before any run.")
@click.option("--icc", type=Share(), help="Expected share of the spread between tasks.")
@click.option("--cost-ratio", type=_AMOUNT, help="What a new task costs, in runs of one.")
@click.option("--max-cost", type=_AMOUNT, help="Budget in money.")
@click.option("--cost-per-run", type=_AMOUNT, help="What one run costs.")
@click.option("--max-minutes", type=_AMOUNT, help="Budget in minutes.")
@click.option("--seconds-per-run", type=_AMOUNT, help="What one run takes.")
@click.option("--gate", "gates", metavar="DEMAND", multiple=True, help="What will a gate cost?")
@click.option("--indifference", type=Share(), help="Of the gate: how far beyond is clear.")
@click.option("--at-once", type=_COUNT, default=1, help="Runs side by side.")
@analysis_options
@output_options("plan")
@reading_options(required=False)
def plan(
    reading: ReadingOptions,
    gates: tuple[str, ...],
    icc: float | None,
    indifference: float | None,
    analysing: Analysing,
    output: Output,
    **terms: Any,
) -> None:
    """How many runs and tasks does an answer need?

    Without RESULTS, from guesses; with them, from the spread that was observed.

    \b
      passhat plan --tasks 50 --rate 0.8 --half-width 0.03
      passhat plan pilot.eval --difference 0.05 --max-cost 20
      passhat plan --tasks 20 --gate 'pass^3 >= 0.8' --indifference 0.05
    """
    from passhat.journeys import plan_gates, plan_results

    results = reading.results() if reading.paths else None
    if gates:
        found = plan_gates(
            gates,
            results,
            only=terms["only"],
            tasks=terms["tasks"],
            icc=icc,
            indifference=indifference,
            confidence=analysing.confidence,
            seed=analysing.seed,
        )
        output.write(found)
        return
    from passhat.analysis.planning.budgets import Spending

    answer = plan_results(
        results,
        correlation=icc,
        spending=Spending(**{one.name: terms.pop(one.name) for one in fields(Spending)}),
        k=analysing.ks[-1] if analysing.ks else 1,
        **terms,
        confidence=analysing.confidence,
        errors=analysing.errors,
    )
    output.write(answer)
