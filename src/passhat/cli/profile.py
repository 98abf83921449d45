"""`passhat profile`: where does the agent stand among others?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from passhat.cli.options import (
    Analysing,
    Reading,
    analysis_options,
    choose_systems,
    output_options,
    reading_options,
)
from passhat.cli.output import Output, every_format
from passhat.defaults import PROFILE_KS
from passhat.errors import InputError, ReadError
from passhat.messages import listed, plural

if TYPE_CHECKING:
    from passhat.records import Trials

FORMATS = every_format("profile")


@click.command()
@reading_options()
@click.option(
    "--against",
    metavar="REFERENCE",
    multiple=True,
    help="Results of the agents to stand among.  [default: the others in RESULTS]",
)
@click.option("--only", metavar="AGENT", help="Profile this agent.")
@analysis_options
@output_options(FORMATS)
def profile(
    reading: Reading,
    against: tuple[str, ...],
    only: str | None,
    analysing: Analysing,
    output: Output,
) -> None:
    """Where does the agent stand among others?

    RESULTS hold the agent, REFERENCE the field; any file that `report` reads will do for either.
    Options that say how to read hold for both: where only one needs them, `convert` it first.

    \b
      passhat profile mine.eval --against leaderboard.csv
      passhat profile leaderboard.csv --only o3
    """
    from passhat.analysis.comparing.profile import profile as profile_system

    trials = reading.trials()
    if only is None and len(trials.systems) > 1:
        held = f"{plural(len(trials.systems), 'agent')} ({listed(trials.systems)})"
        raise InputError(f"RESULTS hold {held}: say which to profile, --only AGENT")
    reference = _reference(reading, against) if against else trials
    if not against and len(trials.systems) == 1:
        held = f"RESULTS hold only {trials.systems[0]}"
        raise InputError(f"{held}: say which agents it stands among, --against REFERENCE")
    answer = profile_system(
        choose_systems(trials, [only] if only else ()),
        reference,
        ks=analysing.ks or PROFILE_KS,
        confidence=analysing.confidence,
        errors=analysing.errors,
        seed=analysing.seed,
    )
    output.write(answer, FORMATS)


def _reference(reading: Reading, against: tuple[str, ...]) -> Trials:
    """The field, read as RESULTS are: where that fails, it may be due to what was said of them."""
    try:
        return reading.trials(against)
    except ReadError as error:
        told = reading.again()
        if told is None or not (reading.format or any(reading.columns.values())):
            raise
        way = f"passhat convert {told} -o mine.jsonl, then passhat profile mine.jsonl"
        raise ReadError(
            f"{str(error).rstrip('.')}. What was said of RESULTS holds for REFERENCE too; where it "
            f"should not, write RESULTS in the usual columns first: {way} --against ..."
        ) from error
