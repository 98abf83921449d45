"""`passhat flaky`: which tasks passed and failed over the newest stored runs?"""

from __future__ import annotations

from typing import Unpack

import click

from passhat.cli.options import (
    SectionedCommand,
    StoredRunsOptions,
    output_options,
    stored_runs_options,
)
from passhat.cli.output import Output
from passhat.journeys.analyses import FLAKY_LAST


@click.command(cls=SectionedCommand)
@stored_runs_options(last=FLAKY_LAST, least=1)
@output_options("flaky")
def flaky(output: Output, **runs: Unpack[StoredRunsOptions]) -> None:
    """Which tasks passed and failed over the newest stored runs of a suite?

    A task counts as flaky if, with 90 % certainty, its pass rate over all of them is between 10 %
    and 95 %. A task that failed once in a few runs may still be solid.

    \b
      passhat flaky
      passhat flaky support-suite --last 20 --branch main
    """
    from passhat.journeys import flaky_tasks

    output.write(flaky_tasks(**runs))
