"""`passhat rank`: which of several agents are ahead, and which are tied?"""

from __future__ import annotations

import click

from passhat.cli.options import (
    Analysing,
    SectionedCommand,
    again_options,
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
    analysing: Analysing,
    output: Output,
) -> None:
    """Which of several agents are ahead, and which are tied?

    RESULTS hold two agents or more; of a history store, one run is ranked. Ranks and ties are said
    of tasks like these, and all hold at once, with the confidence: `passhat compare` looks at one
    pair by itself, and may tell two apart that are tied here. Agents without k runs are left out
    of pass^k, by name.

    \b
      passhat rank results.csv
      passhat rank results.csv --by pass^4
    """
    from passhat.journeys import rank_results

    answer = rank_results(
        reading.results(),
        only=only,
        by=by,
        **analysing.arguments(),
    )
    output.write(answer, results=reading.again(*again_options(analysing, ())))
