"""`passhat plan`: how many runs and tasks does an answer need?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from passhat.cli.option_types import Share
from passhat.cli.options import (
    Analysing,
    Reading,
    analysis_options,
    choose_systems,
    output_options,
    reading_options,
)
from passhat.cli.output import Output, every_format
from passhat.errors import InputError
from passhat.messages import listed

if TYPE_CHECKING:
    from passhat.records import Trials

FORMATS = every_format("plan")

_COUNT = click.IntRange(min=1)
_AMOUNT = click.FloatRange(min=0, min_open=True)


@click.command()
@reading_options(required=False)
@click.option("--only", metavar="AGENT", help="Plan from this agent's trials.")
@click.option("--tasks", type=_COUNT, help="How many tasks.  [default: those there are, or 20]")
@click.option("--runs", type=_COUNT, help="Runs of each.  [default: those there are, or enough]")
@click.option(
    "--half-width", type=Share(), default=0.05, show_default=True, help="Wanted: mean ± this."
)
@click.option("--difference", type=Share(), help="Wanted: to tell two agents apart by this.")
@click.option("--power", type=Share(), default=0.8, show_default=True, help="Chance to see it.")
@click.option("--rate", type=Share(), help="Expected pass rate, before any run.")
@click.option("--icc", type=Share(), help="Expected share of the spread between tasks.")
@click.option("--cost-ratio", type=_AMOUNT, help="What a new task costs, in runs of one.")
@click.option("--max-cost", type=_AMOUNT, help="Budget in money.")
@click.option("--cost-per-run", type=_AMOUNT, help="What one run costs.")
@click.option("--max-minutes", type=_AMOUNT, help="Budget in minutes.")
@click.option("--seconds-per-run", type=_AMOUNT, help="What one run takes.")
@click.option("--gate", "gates", metavar="DEMAND", multiple=True, help="What will a gate cost?")
@click.option("--indifference", type=Share(), help="Of the gate: how far beyond is clear.")
@click.option("--at-once", type=_COUNT, default=1, help="Runs side by side.", show_default=True)
@analysis_options
@output_options(FORMATS)
def plan(
    reading: Reading,
    only: str | None,
    tasks: int | None,
    runs: int | None,
    half_width: float,
    difference: float | None,
    power: float,
    rate: float | None,
    icc: float | None,
    cost_ratio: float | None,
    max_cost: float | None,
    cost_per_run: float | None,
    max_minutes: float | None,
    seconds_per_run: float | None,
    gates: tuple[str, ...],
    indifference: float | None,
    at_once: int,
    analysing: Analysing,
    output: Output,
) -> None:
    """How many runs and tasks does an answer need?

    Without RESULTS, from guesses; with them, from the spread that was observed.

    \b
      passhat plan --tasks 50 --rate 0.8 --half-width 0.03
      passhat plan pilot.eval --difference 0.05 --max-cost 20
      passhat plan --tasks 20 --gate 'pass^3 >= 0.8' --indifference 0.05
    """
    from passhat.analysis.planning.budgets import Spending
    from passhat.analysis.planning.plan import plan as plan_runs

    if analysing.ks:
        output.say("a plan is for the mean score: --k plays no part (--gate 'pass^3 >= 0.8' does)")
    seen = _seen(reading, only) if reading.paths else None
    if gates:
        from passhat.cli.plan_gates import write_gate_plans

        write_gate_plans(
            gates,
            output,
            trials=seen,
            tasks=tasks,
            icc=icc,
            indifference=indifference,
            confidence=analysing.confidence,
            seed=analysing.seed,
        )
        return
    answer = plan_runs(
        seen,
        tasks=tasks,
        runs=runs,
        half_width=half_width,
        difference=difference,
        power=power,
        rate=rate,
        correlation=icc,
        cost_ratio=cost_ratio,
        spending=Spending(
            max_cost=max_cost,
            cost_per_run=cost_per_run,
            max_minutes=max_minutes,
            seconds_per_run=seconds_per_run,
            at_once=at_once,
        ),
        confidence=analysing.confidence,
        errors=analysing.errors,
    )
    output.write(answer, FORMATS)


def _seen(reading: Reading, only: str | None) -> Trials:
    """The trials of the one agent that is planned from."""
    trials = choose_systems(reading.trials(), [only] if only else ())
    if len(trials.systems) > 1:
        raise InputError(
            f"a plan is made from one agent; {', '.join(reading.paths)} holds "
            f"{listed(trials.systems)}: name one with --only"
        )
    return trials
