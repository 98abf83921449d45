"""`passhat trend`: how reliability moved over history."""

from __future__ import annotations

from pathlib import Path

import click

from passhat.cli.options import (
    SectionedCommand,
    StoreType,
    WholeNumber,
    confidence_option,
    output_options,
)
from passhat.cli.output import Output
from passhat.defaults import STORE
from passhat.journeys.trend_runs import LAST


@click.command(cls=SectionedCommand)
@click.argument("suite", required=False)
@click.option("--store", type=StoreType(), default=Path(STORE), help="The history store to read.")
@click.option("--branch", help="Runs of this branch only.")
@click.option("--only", metavar="AGENT", multiple=True, help="This agent only.")
@click.option("--k", type=WholeNumber(min=1), help="The k of pass^k and pass@k.")
@click.option("--last", type=WholeNumber(min=2), default=LAST, help="The newest runs of the suite.")
@confidence_option()
@output_options("trend")
def trend(
    suite: str | None,
    store: Path | str,
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
    from passhat.journeys import trend_of_runs

    answer = trend_of_runs(
        suite, store=store, branch=branch, last=last, only=only, k=k, confidence=confidence
    )
    output.write(answer)
