"""`passhat repeat`: any command, many times: a stopwatch for reliability."""

from __future__ import annotations

from typing import Any

import click

from passhat.cli.options import SectionedCommand, Share, StoreType, WholeNumber, output_options
from passhat.cli.output import Output
from passhat.cli.run_output import show_run


@click.command(cls=SectionedCommand, context_settings={"allow_interspersed_args": False})
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED, required=True)
@click.option(
    "--runs",
    type=WholeNumber(min=1),
    default=20,
    show_default=True,
    help="How often; at most, with --until-settled.",
)
@click.option("--min", "least", type=Share(), help="The share of runs that must succeed.")
@click.option("--until-settled", is_flag=True, help="Stop as soon as --min is proved or disproved.")
@click.option(
    "--outcome",
    type=click.Choice(["auto", "exit", "json"]),
    default="auto",
    show_default=True,
    help="What decides: the exit code, or a JSON line on its output with `score` or `passed`.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=120.0,
    show_default=True,
    help="Seconds that one run may take.",
)
@click.option(
    "--concurrency", type=WholeNumber(min=1), default=1, show_default=True, help="Runs at a time."
)
@click.option("--store", type=StoreType(), help="Keep the runs in this store.")
@output_options("run", verbose=True)
@click.pass_context
def repeat(
    context: click.Context,
    /,
    command: tuple[str, ...],
    least: float | None,
    until_settled: bool,
    output: Output,
    **given: Any,
) -> None:
    """Run COMMAND many times: how often does it succeed, and how sure is that?

    \b
      passhat repeat --runs 20 -- ./my-agent --flag
      passhat repeat --until-settled --min 0.9 --runs 200 -- pytest -x tests/agent
      passhat repeat --runs 50 --concurrency 4 -- curl -fsS localhost:8000/ask

    Exit codes: 0 all runs succeeded, or --min is proved; 1 a run failed, or --min is disproved;
    2 there is no such program; 3 it could not be run; 4 --min is neither; 130 interrupted.
    """
    from passhat.journeys import repeat_command

    if until_settled and least is None:
        raise click.UsageError("--until-settled needs --min SHARE: what is to be settled?")
    context.exit(
        show_run(
            lambda on_event: repeat_command(
                command, least=least, until_settled=until_settled, on_event=on_event, **given
            ),
            output,
        )
    )
