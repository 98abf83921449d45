"""`passhat trend`: how reliability moved over history."""

from __future__ import annotations

from pathlib import Path

import click

from passhat.cli.options import confidence_option, output_options
from passhat.cli.output import Output, every_format
from passhat.cli.store_option import StoreType
from passhat.defaults import STORE

FORMATS = every_format("trend")


@click.command()
@click.argument("suite", required=False)
@click.option(
    "--store",
    type=StoreType(),
    help=f"The history store to read.  [default: {STORE}]",
)
@click.option("--branch", help="Runs of this branch only.")
@click.option("--only", metavar="AGENT", multiple=True, help="This agent only.")
@click.option("--k", type=click.IntRange(min=1), help="The k of pass^k and pass@k.")
@click.option(
    "--last",
    type=click.IntRange(min=2),
    default=50,
    show_default=True,
    help="The newest runs of the suite.",
)
@confidence_option()
@output_options(FORMATS)
def trend(
    suite: str | None,
    store: Path | str | None,
    branch: str | None,
    only: tuple[str, ...],
    k: int | None,
    last: int,
    confidence: float,
    output: Output,
) -> None:
    """How did reliability move over history?

    Change points have a stated false-alarm rate; pass@k rising while pass^k falls is named.

    \b
      passhat trend
      passhat trend support-suite --branch main -o trend.svg
    """
    from passhat.analysis.comparing.trends import trends
    from passhat.cli.moments import read_moments
    from passhat.history import DEFAULT_PATH, History

    with History.open(store or DEFAULT_PATH, read_only=True) as history:
        moments = read_moments(history, suite=suite, branch=branch, last=last, only=only)
    output.write(trends(moments, k=k, confidence=confidence), FORMATS)
