"""`--drop-rounds`: leave out rounds of every task, and say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from passhat.cli.option_types import Rounds

if TYPE_CHECKING:
    from passhat.records import Trials

DROP_ROUNDS = click.option(
    "--drop-rounds",
    type=Rounds(),
    default=(),
    help="Leave out these rounds of every task, counted from 1: an outage, say.",
)


def without_rounds(trials: Trials, rounds: Sequence[int]) -> Trials:
    """The trials without these rounds; what was left out is said on standard error."""
    if not rounds:
        return trials
    from passhat.analysis.reports.disturbances import drop_rounds, dropped_note

    kept = drop_rounds(trials, rounds)
    click.echo(f"{dropped_note(kept)}.", err=True)
    return kept
