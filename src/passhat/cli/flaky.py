"""`passhat flaky`: which tasks passed and failed over the last runs?"""

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
from passhat.journeys.trend_runs import FLAKY_LAST


@click.command(cls=SectionedCommand)
@stored_runs_options(last=FLAKY_LAST, least=1)
@output_options("flaky")
def flaky(output: Output, **runs: Unpack[StoredRunsOptions]) -> None:
    """Which tasks passed and failed over the last runs?

    A task counts as flaky when its pass rate over all these runs lies between 10 % and 95 % with
    90 % certainty; a task that failed once in few runs may still be solid.

    \b
      passhat flaky
      passhat flaky support-suite --last 20 --branch main
    """
    from passhat.journeys import flaky_tasks

    output.write(flaky_tasks(**runs))
