"""`passhat compare`: is one agent better than another?"""

from __future__ import annotations

from typing import Unpack

import click

from passhat.cli.option_types import Share
from passhat.cli.options import AnalysisOptions, SectionedCommand, analysis_options, output_options
from passhat.cli.output import Output
from passhat.cli.reading import ReadingOptions, reading_options


@click.command(cls=SectionedCommand)
@click.option(
    "--only",
    metavar="AGENT",
    multiple=True,
    help="The two agents to compare, or the one that both results hold.",
)
@click.option("--margin", type=Share(), help="Differences up to this size count as equivalent.")
@analysis_options
@output_options("comparison")
@reading_options()
def compare(
    reading: ReadingOptions,
    only: tuple[str, ...],
    margin: float | None,
    output: Output,
    **analysis: Unpack[AnalysisOptions],
) -> None:
    """Is one agent better than another, on the same tasks?

    RESULTS are two files or stored runs with one agent each, or results that hold two agents
    between them. If both hold the same agents, --only names the one to compare with itself, before
    and after. More than two agents are ranked. The difference is the first minus the second, in the
    order of --only or of the file, for this suite and for tasks like these. The verdict is about
    the mean score, or with --k about pass^k of the largest k.

    \b
      passhat compare new.eval old.eval
      passhat compare latest baseline --name new --name old
      passhat compare latest baseline --only gpt-5
      passhat compare results.csv --only gpt-5 --only o3 --margin 0.02
    """
    from passhat.analysis.comparing.comparison import Comparison
    from passhat.journeys import compare_results

    answer = compare_results(reading.results(), only=only, margin=margin, **analysis)
    if not isinstance(answer, Comparison):
        held = len(answer.systems) + len(answer.unranked)
        output.say(f"{held} agents: ranking them (--only names two to compare)")
    output.write(answer, results=reading.again(errors=analysis["errors"]))
