"""`passhat flaky`: which tasks passed and failed over the last runs?"""

from __future__ import annotations

from pathlib import Path

import click

from passhat.cli.options import (
    SectionedCommand,
    StoreType,
    WholeNumber,
    confidence_option,
    output_options,
)
from passhat.cli.output import Output
from passhat.defaults import STORE
from passhat.journeys.trend_runs import FLAKY_LAST


@click.command(cls=SectionedCommand)
@click.argument("suite", required=False)
@click.option("--store", type=StoreType(), default=Path(STORE), help="The history store to read.")
@click.option("--branch", help="Runs of this branch only.")
@click.option("--only", metavar="AGENT", multiple=True, help="This agent only.")
@click.option(
    "--last", type=WholeNumber(min=1), default=FLAKY_LAST, help="The newest runs of the suite."
)
@confidence_option()
@output_options("flaky")
def flaky(
    suite: str | None,
    store: Path | str,
    branch: str | None,
    only: tuple[str, ...],
    last: int,
    confidence: float,
    output: Output,
) -> None:
    """Which tasks passed and failed over the last runs?

    A task counts as flaky when its pass rate over all these runs lies between 10 % and 95 % with
    90 % certainty; a task that failed once in few runs may still be solid.

    \b
      passhat flaky
      passhat flaky support-suite --last 20 --branch main
    """
    from passhat.journeys import flaky_tasks

    output.write(
        flaky_tasks(suite, store=store, branch=branch, last=last, only=only, confidence=confidence)
    )
