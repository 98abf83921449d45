"""Results in, the answer out: `passhat report` and `passhat gate`."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from passhat.arguments import CONFIDENCE, MARGIN, ReportTerms
from passhat.cli import options
from passhat.cli.forge_output import announce, forge_options, wanted
from passhat.cli.output import (
    Output,
    fitted_failures,
    fitted_transcripts,
    ink_for,
    typed_command,
    wants_page,
)
from passhat.cli.reading import ReadingOptions, reading_options, say_note
from passhat.journeys.results import is_there

if TYPE_CHECKING:
    from passhat.analysis.gates.gate import JudgeTerms
    from passhat.records import Tally, Transcripts, Trials
    from passhat.stats.estimate import Scope


def _print_schema(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from passhat.cli.setup import schema_text

        click.echo(schema_text("report"), nl=False)
        ctx.exit()


@click.command(
    cls=options.SectionedCommand,
    brief=[
        options.ONLY,
        "--k K,K              the k of pass@k and pass^k (reliability@k), such as 1,3",
        options.FOR,
        options.CRITERION,
        options.WHICH_COLUMNS,
        "--tasks              list every task",
        "--transcripts        put transcripts on the page",
        "-o FILE              write .html .md .json .csv .tex .xml .svg ...",
        options.JSON,
        options.VERBOSE,
    ],
)
@click.option("--only", metavar="AGENT", multiple=True, help="Report on this agent only.")
@options.bar_option
@options.for_option
@options.renamed(
    "--tasks", "all_tasks", formerly="--all-tasks", is_flag=True, help="List every task."
)
@click.option(
    "--wider-than",
    type=options.Share(),
    help="List the tasks whose interval is wider, such as 0.4.",
)
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON Schema of --json, and exit.",
)
@click.option("--transcripts", is_flag=True, help="Put the transcript of each trial on the page.")
@click.option("--matrix", is_flag=True, help="Show every task against every agent instead.")
@click.option("--targets", is_flag=True, help="List every number by the name a gate uses.")
@options.analysis_options
@forge_options
@options.output_options("report")
@reading_options()
@click.pass_context
def report(
    context: click.Context,
    /,
    reading: ReadingOptions,
    only: tuple[str, ...],
    bars: tuple[str, ...],
    scope: Scope | None,
    all_tasks: bool,
    wider_than: float | None,
    transcripts: bool,
    matrix: bool,
    targets: bool,
    github: bool | None,
    informational: bool,
    output: Output,
    **analysis: Unpack[ReportTerms],
) -> None:
    """How reliable is the agent in these results?

    RESULTS are files, folders or globs that any supported tool wrote, here or at an address such as
    s3://evals/trials; - for standard input; or stored runs: latest, a tag, a branch, a commit or a
    key. --run chooses a run of a history store.

    \b
      passhat report logs/airline.eval
      passhat report results.csv --columns task=question,pass=ok
      passhat report latest -o report.html --transcripts

    \b
      passhat report results.jsonl --pass-if 'score>=0.8' --k 1,2,4
      passhat report logs/*.eval --matrix -o matrix.csv -o matrix.md
    """
    from passhat import journeys
    from passhat.journeys.stored_runs import verdict_of_results

    if targets or matrix:
        shown = "--targets lists numbers" if targets else "--matrix lists every task"
        options.refuse_typed(context, ("scope", "all_tasks", "wider_than", "transcripts"), shown)
    results = reading.results()
    subjects: Trials | list[Tally]
    texts: Transcripts = {}
    some = None
    if not wants_page(transcripts or reading.names_transcripts, output):
        subjects = results.subjects(only)
    elif counted := results.counts_with_failures():
        subjects, some = counted
    else:
        subjects, texts = results.with_transcripts()
    answer = journeys.report(
        subjects,
        only=only if texts or some else (),
        bars=results.bars(options.parse_bars(bars), subjects),
        **analysis,
    ).about(*results.asked_streak())
    if targets:
        from passhat.reporters.answers.report_blocks import render_targets

        click.echo(render_targets(answer, ink_for(sys.stdout)), nl=False, color=True)
        return
    if matrix:
        output.write(answer.matrix())
        return
    page: dict[str, Any] = {}
    if some is not None:
        page = fitted_failures(answer, some, output)
    elif not isinstance(subjects, list):
        page = fitted_transcripts(answer, subjects, texts, output)
    verdict = verdict_of_results(results)
    if verdict is not None:
        verdict = verdict.about(only)
    again = reading.repeated(errors=analysis["errors"], only=only)
    output.write(
        answer,
        **again,
        command=typed_command(),
        more_runs=None if again["results"] is None else results.more_runs(),
        all_tasks=all_tasks,
        wider_than=wider_than,
        scope=scope,
        verdict=verdict,
        **page,
    )
    if wanted(github):
        from passhat.analysis.gates.run_answer import ChangeReview

        announce(ChangeReview(report=answer, informational=informational), output, key="report")


_COMPARES = re.compile(r"[<>]=?\s*[\d.]+\s*%?$")
"""How a demand ends, such as `pass^3 >= 0.8`."""


@click.command(
    cls=options.SectionedCommand,
    brief=[
        "-r, --require GATE   such as 'pass^3 >= 0.8'; may be repeated",
        "--against RESULTS    must not be worse than these",
        "--margin SHARE       how much worse it may be (0.05)",
        options.ONLY,
        options.FOR,
        "--on-undecided fail|pass|exit4",
        options.CRITERION,
        options.WHICH_COLUMNS,
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
    type=options.Share(),
    default=MARGIN,
    help="How much worse than the baseline the mean score may be.",
)
@click.option("--suite", type=click.Path(path_type=Path), help="Take the gates of this suite too.")
@click.option("--only", metavar="AGENT", multiple=True, help="Judge this agent only.")
@options.bar_option
@click.option(
    "--confidence",
    type=options.Share(),
    help=f"How sure a verdict must be.  [default: {CONFIDENCE}]",
)
@options.for_option
@click.option(
    "--evidence",
    type=click.Choice(["bound", "point", "sequential"]),
    help="What decides: a confidence bound, the bare number, or a sequential test.",
)
@click.option(
    "--indifference",
    type=options.Share(),
    help=f"{options.INDIFFERENCE} For --evidence sequential and --against.",
)
@click.option(
    "--on-undecided",
    type=click.Choice(["fail", "pass", "exit4"]),
    help="How to exit when the verdict is UNDECIDED.",
)
@options.counting_options
@forge_options
@options.output_options("verdicts", explained=True)
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
    github: bool | None,
    informational: bool,
    output: Output,
    **terms: Unpack[JudgeTerms],
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
    bar = options.parse_bars(bars)
    review = None
    if wanted(github) and (require or against is not None or suite is not None):
        review = review_change(
            results, require, against=against, margin=margin, suite=suite, only=only, bars=bar,
            gate_confidence=confidence, informational=informational, **terms,
        )  # fmt: skip
        verdicts = review.verdicts
    else:
        verdicts = journeys.gate(
            results, require, against=against, margin=margin, suite=suite, only=only, bars=bar,
            confidence=confidence, **terms,
        )  # fmt: skip
    assert verdicts is not None, "a review with a demand has verdicts"
    again = reading.repeated(errors=terms["errors"], only=only)
    beside = None if against is None else shlex.quote(against)
    passed = verdicts.exit_code == 0
    output.write(verdicts, passed=passed, explain=output.verbose, **again, against=beside)
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
