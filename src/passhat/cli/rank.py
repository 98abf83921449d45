"""`passhat rank`: which of several agents are ahead, and which are tied?"""

from __future__ import annotations

from typing import Unpack

import click

from passhat.cli.options import (
    AnalysisOptions,
    SectionedCommand,
    analysis_options,
    output_options,
)
from passhat.cli.output import Output
from passhat.cli.reading import ReadingOptions, reading_options


@click.command(cls=SectionedCommand)
@click.option("--only", metavar="AGENT", multiple=True, help="Rank these agents only.")
@click.option(
    "--by",
    metavar="METRIC",
    help="mean_score, pass^k or pass@k.  [default: mean_score, or pass^k of the largest --k]",
)
@analysis_options
@output_options("ranking")
@reading_options()
def rank(
    reading: ReadingOptions,
    only: tuple[str, ...],
    by: str | None,
    output: Output,
    **analysis: Unpack[AnalysisOptions],
) -> None:
    """Which of several agents are ahead, and which are tied?

    RESULTS hold two agents or more; of a history store, one run is ranked. Ranks and ties are for
    tasks like these, and all of them hold together with the stated confidence. `passhat compare`
    looks at one pair alone and may tell two agents apart that are tied here. Agents with fewer than
    k runs are left out of pass^k, and named.

    \b
      passhat rank results.csv
      passhat rank results.csv --by pass^4
    """
    from passhat.journeys import rank_results

    answer = rank_results(reading.results(), only=only, by=by, **analysis)
    output.write(answer, results=reading.again(errors=analysis["errors"]))
