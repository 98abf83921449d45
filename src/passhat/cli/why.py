"""`passhat why`: what do failing runs do that passing runs of the same task do not?"""

from __future__ import annotations

from typing import Any

import click

from passhat.cli.options import (
    SectionedCommand,
    Share,
    confidence_option,
    output_options,
    seed_option,
)
from passhat.cli.output import Output
from passhat.cli.reading import ReadingOptions, reading_options


@click.command(cls=SectionedCommand)
@click.option("--task", metavar="TASK", help="Explain the runs of this task only.")
@click.option("--only", metavar="AGENT", multiple=True, help="Explain the runs of this agent only.")
@click.option(
    "--alpha",
    type=Share(),
    default=0.05,
    help="How often something may be named where failing is pure luck.",
)
@confidence_option()
@seed_option()
@output_options("explanation")
@reading_options(transcripts=True, task_option="--task-column")
def why(reading: ReadingOptions, output: Output, **given: Any) -> None:
    """Why do runs fail sometimes?

    RESULTS are files that keep what was said in each run, a history store, or a run of the history
    in this folder: latest, a tag, a key. Failing runs are compared with passing runs of the same
    task, call by call; no model is asked. What is named goes together with failing beyond luck.

    \b
      passhat why logs/airline.eval
      passhat why latest
      passhat why results.json --task refund-17 -o why.html
    """
    from passhat.journeys import explain_results

    output.write(explain_results(reading.results(), **given), results=reading.again())
