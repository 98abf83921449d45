"""`passhat why`: what do failing runs do that passing runs of the same task do not?"""

from __future__ import annotations

from typing import TypedDict, Unpack

import click

from passhat.cli.option_types import Share
from passhat.cli.options import SectionedCommand, confidence_option, output_options, seed_option
from passhat.cli.output import Output
from passhat.cli.reading import ReadingOptions, reading_options


class WhyOptions(TypedDict):
    """The options of `passhat why`, as the arguments of `explain_results`."""

    task: str | None
    only: tuple[str, ...]
    alpha: float
    confidence: float
    seed: int


@click.command(cls=SectionedCommand)
@click.option("--task", metavar="TASK", help="Explain the runs of this task only.")
@click.option("--only", metavar="AGENT", multiple=True, help="Explain the runs of this agent only.")
@click.option(
    "--alpha",
    type=Share(),
    default=0.05,
    help="The chance of naming a cause when runs fail by pure luck.",
)
@confidence_option
@seed_option
@output_options("explanation")
@reading_options(transcripts=True, task_option="--task-column")
def why(reading: ReadingOptions, output: Output, **given: Unpack[WhyOptions]) -> None:
    """Why do runs fail sometimes?

    Compares the tool calls of failing runs with those of passing runs of the same task, and names
    what failing runs do more often than luck explains. No model is called. RESULTS are files with a
    transcript of each run, a history store, or a stored run: latest, a tag, a key.

    \b
      passhat why logs/airline.eval
      passhat why latest
      passhat why results.json --task refund-17 -o why.html
    """
    from passhat.journeys import explain_results

    output.write(explain_results(reading.results(), **given), results=reading.again())
