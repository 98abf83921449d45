"""`passhat rank`: which of several agents are ahead, and which are tied?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from passhat.cli.options import (
    Analysing,
    Reading,
    again_options,
    analysis_options,
    output_options,
    reading_options,
)
from passhat.cli.output import Output, advising, every_format
from passhat.errors import InputError

if TYPE_CHECKING:
    from passhat.records import Tally, Trials

FORMATS = every_format("ranking")


@click.command()
@reading_options()
@click.option("--only", metavar="AGENT", multiple=True, help="Rank these agents only.")
@click.option(
    "--by",
    "metric",
    help="mean_score, pass^k or pass@k.  [default: mean_score, or pass^k of the largest --k]",
)
@analysis_options
@output_options(FORMATS)
def rank(
    reading: Reading,
    only: tuple[str, ...],
    metric: str | None,
    analysing: Analysing,
    output: Output,
) -> None:
    """Which of several agents are ahead, and which cannot be told apart?

    RESULTS hold two agents or more; of a history store, one run is ranked. Ranks and ties are said
    of tasks like these, and all are true at once, with the confidence: `passhat compare` looks at
    one pair by itself, and may tell two apart that are tied here. Agents without k runs are left
    out of pass^k, by name.

    \b
      passhat rank results.csv
      passhat rank results.csv --by pass^4
    """
    chosen = metric or usual_metric(analysing)
    again = reading.again(*again_options(analysing, ()))
    write_ranking(reading.subjects(only), chosen, analysing, output, again=again)


def usual_metric(analysing: Analysing) -> str:
    """What agents are held against one another by, where --by does not say."""
    return f"pass^{analysing.ks[-1]}" if analysing.ks else "mean_score"


def write_ranking(
    subjects: Trials | Sequence[Tally],
    metric: str,
    analysing: Analysing,
    output: Output,
    *,
    again: str | None,
) -> None:
    """Rank and write, for this command and for `compare` of more than two."""
    from passhat.analysis.comparing.rank import rank as rank_systems
    from passhat.stats.estimate import Unavailable

    answer = rank_systems(
        subjects,
        by=metric,
        confidence=analysing.confidence,
        errors=analysing.errors,
        seed=analysing.seed,
    )
    if isinstance(answer, Unavailable):
        raise InputError(answer.reason)
    output.write(answer, advising(FORMATS, again))
