"""`passhat gate`: do these results meet the demand?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from passhat.arguments import CONFIDENCE
from passhat.cli.forge_output import announce, forge_options, wanted
from passhat.cli.options import (
    CRITERION,
    FOR,
    INDIFFERENCE,
    ONLY,
    WHICH_COLUMNS,
    SectionedCommand,
    Share,
    bar_option,
    errors_option,
    for_option,
    output_options,
    parse_bars,
    seed_option,
)
from passhat.cli.output import Output
from passhat.cli.reading import ReadingOptions, reading_options, say_note
from passhat.journeys.gating import MARGIN
from passhat.journeys.results import is_there

if TYPE_CHECKING:
    from passhat.analysis.gates.gate import GateTerms
    from passhat.records import ErrorPolicy

_COMPARES = re.compile(r"[<>]=?\s*[\d.]+\s*%?$")
"""How a demand ends, such as `pass^3 >= 0.8`."""


@click.command(
    cls=SectionedCommand,
    brief=[
        "-r, --require GATE   such as 'pass^3 >= 0.8'; may be repeated",
        "--against RESULTS    must not be worse than these",
        "--margin SHARE       how much worse it may be (0.05)",
        ONLY,
        FOR,
        "--on-undecided fail|pass|exit4",
        CRITERION,
        WHICH_COLUMNS,
        "-o FILE              write .md .json .xml (JUnit) .sarif ...",
        "--json  -v           print JSON; the evidence task by task",
        "Tool-selection floors are written in the suite: passhat run checks them.",
        "Exit: 0 PASS, 1 FAIL, 2 usage, 4 UNDECIDED.",
    ],
)
@click.option(
    "--require",
    "-r",
    metavar="GATE",
    multiple=True,
    help="A gate, such as 'pass^3 >= 0.8'. May be repeated.",
)
@click.option(
    "--against",
    metavar="RESULTS",
    help="Results or a stored run that these results must not be worse than.",
)
@click.option(
    "--margin",
    type=Share(),
    default=MARGIN,
    help="How much worse than the baseline the mean score may be.",
)
@click.option("--suite", type=click.Path(path_type=Path), help="Take the gates of this suite too.")
@click.option("--only", metavar="AGENT", multiple=True, help="Judge this agent only.")
@bar_option
@click.option(
    "--confidence", type=Share(), help=f"How sure a verdict must be.  [default: {CONFIDENCE}]"
)
@for_option
@click.option(
    "--evidence",
    type=click.Choice(["bound", "point", "sequential"]),
    help="What decides: a confidence bound, the bare number, or a sequential test.",
)
@click.option(
    "--indifference",
    type=Share(),
    help=f"{INDIFFERENCE} For --evidence sequential and --against.",
)
@click.option(
    "--on-undecided",
    type=click.Choice(["fail", "pass", "exit4"]),
    help="How to exit when the verdict is UNDECIDED.",
)
@errors_option
@seed_option
@forge_options
@output_options("verdicts", explained=True)
@reading_options()
@click.pass_context
def gate(
    context: click.Context,
    /,
    reading: ReadingOptions,
    require: tuple[str, ...],
    against: str | None,
    margin: float,
    suite: Path | None,
    only: tuple[str, ...],
    bars: tuple[str, ...],
    confidence: float | None,
    errors: ErrorPolicy,
    seed: int,
    github: bool | None,
    informational: bool,
    output: Output,
    **terms: Unpack[GateTerms],
) -> None:
    """Do these results meet the gate? PASS, FAIL or UNDECIDED.

    RESULTS are files that `passhat report` reads, a stored run (latest, a tag, a branch, a commit
    or a key), or a history store, of which --run is judged. --against compares with a run of a
    branch too: `passhat gate latest --against main`.

    \b
      passhat gate results.jsonl --require 'pass^3 >= 0.8'
      passhat gate new.eval --against old.eval --margin 0.02
      passhat gate latest --require 'every task: pass@1 >= 0.5'

    Exit codes: 0 every gate passed; 1 one failed; 2 usage or unreadable input; 4 undecided, unless
    --on-undecided says otherwise.
    """
    from passhat import journeys
    from passhat.journeys import review_change

    _refuse_misplaced(context, reading, against)
    if not require and against is None and suite is None:
        suite = _suite_of_folder(reading)
    results = reading.results()
    bar = parse_bars(bars)
    review = None
    if wanted(github) and (require or against is not None or suite is not None):
        review = review_change(
            results, require, against=against, margin=margin, suite=suite, only=only, bars=bar,
            gate_confidence=confidence, errors=errors, seed=seed, informational=informational,
            **terms,
        )  # fmt: skip
        verdicts = review.verdicts
    else:
        verdicts = journeys.gate(
            results, require, against=against, margin=margin, suite=suite, only=only, bars=bar,
            confidence=confidence, errors=errors, seed=seed, **terms,
        )  # fmt: skip
    assert verdicts is not None, "a review with a demand has verdicts"
    again = reading.again(errors=errors)
    output.write(verdicts, explain=output.verbose, results=again)
    if output.paths_out:  # what is in a file is not in the log of a CI job
        for verdict in verdicts:
            output.say(verdict.sentence, always=output.prints_nothing and verdicts.exit_code != 0)
    if review is not None:
        announce(review, output, key=str(suite or "gate"))
    context.exit(0 if informational else verdicts.exit_code)


def _refuse_misplaced(context: click.Context, reading: ReadingOptions, against: str | None) -> None:
    """Refuse a demand among the results, and a margin without a baseline."""
    demand = next((word for word in reading.paths if _COMPARES.search(word)), None)
    if demand is not None and not is_there(demand):
        raise click.UsageError(f"{demand!r} reads like a demand: give it with --require")
    typed = context.get_parameter_source("margin") is click.core.ParameterSource.COMMANDLINE
    if typed and against is None:
        raise click.UsageError("--margin is about a baseline: give --against BASELINE too")


def _suite_of_folder(reading: ReadingOptions) -> Path | None:
    """The suite file of this folder, if it has gates and a stored run is judged.

    A file of results may come from anywhere: its demands must be named.
    """
    from passhat.suite import suite_in

    results = reading.results()
    if len(results.paths) != 1 or not results.is_stored(results.paths[0]):
        return None
    suite = suite_in(Path())
    if suite is None or not suite.gates:
        return None
    say_note(f"gates of {suite.path}")
    return suite.path
