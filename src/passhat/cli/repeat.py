"""`passhat repeat`: any command, many times: a stopwatch for reliability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import click

from passhat.cli.option_types import Number, Share, StoreType, WholeNumber
from passhat.cli.options import SectionedCommand, output_options
from passhat.cli.output import Output
from passhat.cli.run_output import show_run

if TYPE_CHECKING:
    from pathlib import Path


class RepeatOptions(TypedDict):
    """Options of `passhat repeat`, as the arguments of `repeat_command`."""

    runs: int
    outcome: Literal["auto", "exit", "json"]
    timeout: float
    concurrency: int
    store: Path | str | None


@click.command(cls=SectionedCommand, context_settings={"allow_interspersed_args": False})
@click.argument("command", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED, required=True)
@click.option(
    "--runs",
    type=WholeNumber(min=1),
    default=20,
    help="How often to run it; with --until-settled, at most.",
)
@click.option("--min", "least", type=Share(), help="The share of runs that must succeed.")
@click.option("--until-settled", is_flag=True, help="Stop as soon as --min is proved or disproved.")
@click.option(
    "--outcome",
    type=click.Choice(["auto", "exit", "json"]),
    default="auto",
    help="What decides: the exit code, or a line of JSON that it prints, with `score` or `passed`.",
)
@click.option(
    "--timeout",
    type=Number(min=0, min_open=True),
    default=120.0,
    metavar="SECONDS",
    help="How long one run may take.",
)
@click.option("--concurrency", type=WholeNumber(min=1), default=1, help="Runs at a time.")
@click.option("--store", type=StoreType(), help="Also store the runs here.")
@output_options("run", verbose=True)
@click.pass_context
def repeat(
    context: click.Context,
    /,
    command: tuple[str, ...],
    least: float | None,
    until_settled: bool,
    output: Output,
    **given: Unpack[RepeatOptions],
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
