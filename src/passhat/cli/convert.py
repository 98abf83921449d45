"""`passhat convert`: any result file as passhat's own JSON Lines, CSV or Parquet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from passhat.cli.options import Reading, choose_systems, reading_options
from passhat.cli.trials_output import trials_output_options

if TYPE_CHECKING:
    from passhat.records import Trials


@click.command()
@reading_options()
@click.option("--only", metavar="AGENT", multiple=True, help="Convert this agent's trials only.")
@trials_output_options
def convert(reading: Reading, only: tuple[str, ...], write: Callable[[Trials], None]) -> None:
    """Rewrite any result file as JSON Lines, CSV or Parquet.

    Reading what was written gives the same trials again.

    \b
      passhat convert logs/airline.eval -o airline.parquet
      passhat convert results.json --task id --pass ok --csv
    """
    write(choose_systems(reading.trials(), only))
