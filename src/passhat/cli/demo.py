"""`passhat demo`: what passhat says, with no key and no file."""

from __future__ import annotations

import click

from passhat.cli.option_types import WholeNumber
from passhat.cli.options import SectionedCommand, confidence_option, output_options
from passhat.cli.output import Output


@click.command(cls=SectionedCommand)
@confidence_option
@click.option("--seed", type=WholeNumber(min=0), help="Seed of the made-up agents.")
@output_options("demo")
def demo(confidence: float, seed: int | None, output: Output) -> None:
    """See what passhat says about two made-up agents: no key, no network, no file."""
    from passhat.journeys import demonstrate

    chosen = {} if seed is None else {"seed": seed}
    output.write(demonstrate(confidence=confidence, **chosen))
