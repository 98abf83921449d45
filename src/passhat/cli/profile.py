"""`passhat profile`: how does the agent compare with others?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from passhat.cli.options import Analysing, SectionedCommand, analysis_options, output_options
from passhat.cli.output import Output
from passhat.cli.reading import ReadingOptions, reading_options
from passhat.errors import ReadError

if TYPE_CHECKING:
    from passhat.records import Trials


@click.command(cls=SectionedCommand)
@click.option(
    "--against",
    metavar="REFERENCE",
    multiple=True,
    help="Results of the agents to compare it with.  [default: the others in RESULTS]",
)
@click.option("--only", metavar="AGENT", help="Profile this agent.")
@analysis_options
@output_options("profile")
@reading_options()
def profile(
    reading: ReadingOptions,
    against: tuple[str, ...],
    only: str | None,
    analysing: Analysing,
    output: Output,
) -> None:
    """How does the agent compare with others?

    RESULTS hold the agent, REFERENCE the field; any file that `report` reads will do for either.
    Options that say how to read hold for both: where only one needs them, `convert` it first.

    \b
      passhat profile mine.eval --against leaderboard.csv
      passhat profile leaderboard.csv --only o3
    """
    from passhat.journeys import profile_results

    answer = profile_results(
        reading.results(),
        against=_reference(reading, against) if against else None,
        only=only,
        **analysing.arguments(),
    )
    output.write(answer)


def _reference(reading: ReadingOptions, against: tuple[str, ...]) -> Trials:
    """The field, read as RESULTS are: where that fails, it may be due to the reading options."""
    try:
        return reading.results(*against).trials()
    except ReadError as error:
        again = reading.again()
        if again is None or not (reading.format or any(reading.columns.values())):
            raise
        way = f"passhat convert {again} -o mine.jsonl, then passhat profile mine.jsonl"
        raise ReadError(
            f"{str(error).rstrip('.')}. Reading options hold for RESULTS and REFERENCE alike; "
            "if REFERENCE needs none, write RESULTS in the usual columns first: "
            f"{way} --against ..."
        ) from error
