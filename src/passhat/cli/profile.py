"""`passhat profile`: how does the agent compare with others?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import click

from passhat.cli.options import AnalysisOptions, SectionedCommand, analysis_options, output_options
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
@click.option("--only", metavar="AGENT", help="The agent to compare with the others.")
@analysis_options
@output_options("profile")
@reading_options()
def profile(
    reading: ReadingOptions,
    against: tuple[str, ...],
    only: str | None,
    output: Output,
    **analysis: Unpack[AnalysisOptions],
) -> None:
    """How does the agent compare with others?

    RESULTS hold the agent and REFERENCE the others; both may be any file that `report` reads.
    Options on how to read apply to both: if only one needs them, `convert` it first.

    \b
      passhat profile mine.eval --against leaderboard.csv
      passhat profile leaderboard.csv --only o3
    """
    from passhat.journeys import profile_results

    answer = profile_results(
        reading.results(),
        against=_reference(reading, against) if against else None,
        only=only,
        **analysis,
    )
    output.write(answer)


def _reference(reading: ReadingOptions, against: tuple[str, ...]) -> Trials:
    """The other agents, read as RESULTS are; if that fails, the reading options may be why."""
    try:
        return reading.results(*against).trials()
    except ReadError as error:
        again = reading.again()
        if again is None or not (reading.format or any(reading.columns.values())):
            raise
        way = f"passhat convert {again} -o mine.jsonl, then passhat profile mine.jsonl"
        raise ReadError(
            f"{str(error).rstrip('.')}. Reading options apply to RESULTS and REFERENCE alike; "
            "if REFERENCE needs none, write RESULTS in the usual columns first: "
            f"{way} --against ..."
        ) from error
