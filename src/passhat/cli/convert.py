"""`passhat convert`: any result file as passhat's own JSON Lines, CSV or Parquet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from passhat.cli.options import SectionedCommand
from passhat.cli.reading import ReadingOptions, reading_options
from passhat.cli.trials_output import trials_output_options

if TYPE_CHECKING:
    from passhat.records import Trials


@click.command(cls=SectionedCommand)
@click.option("--only", metavar="AGENT", multiple=True, help="Convert this agent's trials only.")
@trials_output_options
@reading_options()
def convert(
    reading: ReadingOptions, only: tuple[str, ...], write: Callable[[Trials], None]
) -> None:
    """Rewrite any result file as JSON Lines, CSV or Parquet.

    Reading what was written gives the same trials again.

    \b
      passhat convert logs/airline.eval -o airline.parquet
      passhat convert results.json --task id --pass ok --csv
    """
    from passhat.journeys.results import trials_of

    write(trials_of(reading.results(), only))
