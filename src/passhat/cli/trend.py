"""`passhat trend`: how reliability moved over history."""

from __future__ import annotations

from typing import Any

import click

from passhat.cli.options import SectionedCommand, WholeNumber, output_options, stored_runs_options
from passhat.cli.output import Output
from passhat.journeys.trend_runs import LAST


@click.command(cls=SectionedCommand)
@stored_runs_options(last=LAST, least=2)
@click.option("--k", type=WholeNumber(min=1), help="The k of pass^k and pass@k.")
@output_options("trend")
def trend(output: Output, **chosen: Any) -> None:
    """How did reliability move over history?

    Change points have a stated false-alarm rate; pass@k rising while pass^k falls is named.

    \b
      passhat trend
      passhat trend support-suite --branch main -o trend.svg
    """
    from passhat.journeys import trend_of_runs

    output.write(trend_of_runs(**chosen))
