"""`passhat trend`: how reliability changed over the stored runs."""

from __future__ import annotations

from typing import Unpack

import click

from passhat.cli.option_types import WholeNumber
from passhat.cli.options import (
    SectionedCommand,
    StoredRunsOptions,
    output_options,
    stored_runs_options,
)
from passhat.cli.output import Output
from passhat.journeys.analyses import LAST


@click.command(cls=SectionedCommand)
@stored_runs_options(last=LAST, least=2)
@click.option("--k", type=WholeNumber(min=1), help="The k of pass^k and pass@k.")
@output_options("trend")
def trend(output: Output, k: int | None, **runs: Unpack[StoredRunsOptions]) -> None:
    """How did reliability change over the stored runs of a suite?

    Change points have a stated false-alarm rate. The trend says where pass@k rises while pass^k
    falls.

    \b
      passhat trend
      passhat trend support-suite --branch main -o trend.svg
    """
    from passhat.journeys import trend_of_runs

    output.write(trend_of_runs(k=k, **runs))
