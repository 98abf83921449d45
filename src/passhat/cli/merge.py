"""`passhat merge`: put the shards of a run together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from passhat.cli.option_types import StoreType
from passhat.cli.options import store_option
from passhat.messages import plural

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("stores", metavar="STORES...", nargs=-1, required=True, type=StoreType())
@store_option("Where to store the merged run.")
def merge(stores: tuple[Path | str, ...], store: Path | str) -> None:
    """Put the shards in STORES together as one run.

    Each machine runs a part with `passhat run --shard 3/10 --store part3.db`. Shards of different
    suites, seeds or options are refused, and so is a trial that occurs in two of them.

    \b
      passhat merge part*.db
      passhat gate latest --require 'pass^3 >= 0.8'
    """
    from passhat.journeys import merge_shards

    merged = merge_shards(stores, store)
    click.echo(f"run {merged.run.key}: {plural(merged.run.trials, 'trial')}", err=True)
    if merged.missing:
        parts = ", ".join(map(str, merged.missing))
        which = f"shard {parts} is" if len(merged.missing) == 1 else f"shards {parts} are"
        click.echo(f"not complete: {which} missing or interrupted", err=True)
