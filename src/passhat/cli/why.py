"""`passhat why`: what do failing runs do that passing runs of the same task do not?"""

from __future__ import annotations

import click

from passhat.cli.option_types import Share
from passhat.cli.options import (
    Reading,
    confidence_option,
    output_options,
    reading_options,
    seed_option,
)
from passhat.cli.output import Output, advising, every_format
from passhat.cli.results_or_run import results_or_run

FORMATS = every_format("explanation")


@click.command()
@reading_options(transcripts=True, task_option="--task-column")
@click.option("--task", metavar="TASK", help="Explain the runs of this task only.")
@click.option("--only", metavar="AGENT", multiple=True, help="Explain the runs of this agent only.")
@click.option(
    "--alpha",
    type=Share(),
    default=0.05,
    show_default=True,
    help="How often something may be named where failing is pure luck.",
)
@confidence_option()
@seed_option()
@output_options(FORMATS)
def why(
    reading: Reading,
    task: str | None,
    only: tuple[str, ...],
    alpha: float,
    confidence: float,
    seed: int,
    output: Output,
) -> None:
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

    source = results_or_run(reading)
    trials, said = source.with_transcripts()
    answer = explain_results(
        trials, said, task=task, systems=only, alpha=alpha, confidence=confidence, seed=seed
    )
    output.write(answer, advising(FORMATS, source.again()))
