"""`passhat report`: results in, the answer out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from passhat.cli.options import (
    Analysing,
    Reading,
    again_options,
    analysis_options,
    choose_systems,
    output_options,
    parse_bars,
    reading_options,
    task_names,
)
from passhat.cli.output import Output, advising, every_format
from passhat.cli.stored_run import page_format, wants_page

if TYPE_CHECKING:
    from passhat.records import Tally, Trials

FORMATS = every_format("report")
TARGETS = {"text": "passhat.reporters.targets_list:render_targets"}


def _print_schema(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from passhat.cli.schema import schema_text

        click.echo(schema_text("report"), nl=False)
        ctx.exit()


@click.command()
@reading_options(transcripts=True)
@click.option("--only", metavar="AGENT", multiple=True, help="Report on this agent only.")
@click.option(
    "--bar",
    "bars",
    metavar="[TASK=]SHARE",
    multiple=True,
    help="What a task's pass^k should reach; one bar for all, or one for each named task.",
)
@click.option("--all-tasks", is_flag=True, help="List every task.")
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON Schema of --json, and stop.",
)
@click.option("--transcripts", is_flag=True, help="Show on the page what was said in each run.")
@click.option("--targets", is_flag=True, help="List every number by the name a gate uses.")
@analysis_options
@output_options(FORMATS, verbose=True)
def report(
    reading: Reading,
    only: tuple[str, ...],
    bars: tuple[str, ...],
    all_tasks: bool,
    transcripts: bool,
    targets: bool,
    analysing: Analysing,
    output: Output,
) -> None:
    """How reliable is the agent in these results?

    RESULTS are files, folders or globs that any supported tool wrote, - for standard input, or a
    history store, of which one run is reported.

    \b
      passhat report logs/airline.eval
      passhat report results.csv --task question --pass ok --k 1,2,4
      passhat report results.jsonl --pass-if 'score>=0.8' -o report.html
      passhat report logs/airline.eval --transcripts -o report.html
      passhat report .passhat/history.db --run baseline --transcripts -o report.html
    """
    from passhat.analysis.reports.measure import measure

    page: dict[str, Callable[..., str]] = {}
    subjects: Trials | list[Tally]
    if wants_page(transcripts or reading.names_transcripts, output):
        trials, said = reading.with_transcripts()
        page = page_format(trials, said, output)
        subjects = choose_systems(trials, only)
    else:
        subjects = reading.subjects(only)
    again = reading.again(*again_options(analysing, only))
    answer = measure(
        subjects,
        ks=analysing.ks,
        confidence=analysing.confidence,
        errors=analysing.errors,
        bars=parse_bars(bars, task_names(subjects)),
        seed=analysing.seed,
    )
    formats = advising({**FORMATS, **page}, again)
    if targets:
        output.write(answer, TARGETS)
    else:
        output.write(answer, formats, all_tasks=all_tasks, narrowed=len(only) > 1)
