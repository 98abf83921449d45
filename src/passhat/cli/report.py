"""`passhat report`: results in, the answer out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Unpack

import click

from passhat.cli.forge_output import announce, forge_options, wanted
from passhat.cli.options import (
    CRITERION,
    FOR,
    JSON,
    ONLY,
    VERBOSE,
    WHICH_COLUMNS,
    AnalysisOptions,
    SectionedCommand,
    analysis_options,
    bar_option,
    for_option,
    output_options,
    parse_bars,
    renamed,
)
from passhat.cli.output import (
    Output,
    fitted_failures,
    fitted_transcripts,
    ink_for,
    typed_command,
    wants_page,
)
from passhat.cli.reading import ReadingOptions, reading_options

if TYPE_CHECKING:
    from passhat.records import Tally, Transcripts, Trials
    from passhat.stats.estimate import Scope


def _print_schema(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from passhat.cli.setup import schema_text

        click.echo(schema_text("report"), nl=False)
        ctx.exit()


@click.command(
    cls=SectionedCommand,
    brief=[
        ONLY,
        "--k K,K              the k of pass@k and pass^k (reliability@k), such as 1,3",
        FOR,
        CRITERION,
        WHICH_COLUMNS,
        "--tasks              list every task",
        "--transcripts        put transcripts on the page",
        "-o FILE              write .html .md .json .csv .tex .xml .svg ...",
        JSON,
        VERBOSE,
    ],
)
@click.option("--only", metavar="AGENT", multiple=True, help="Report on this agent only.")
@bar_option
@for_option
@renamed("--tasks", "all_tasks", formerly="--all-tasks", is_flag=True, help="List every task.")
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
@analysis_options
@forge_options
@output_options("report")
@reading_options()
def report(
    reading: ReadingOptions,
    only: tuple[str, ...],
    bars: tuple[str, ...],
    scope: Scope | None,
    all_tasks: bool,
    transcripts: bool,
    matrix: bool,
    targets: bool,
    github: bool | None,
    informational: bool,
    output: Output,
    **analysis: Unpack[AnalysisOptions],
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

    results = reading.results()
    subjects: Trials | list[Tally]
    said: Transcripts = {}
    some = None
    if not wants_page(transcripts or reading.names_transcripts, output):
        subjects = results.subjects(only)
    elif counted := results.counts_with_failures():
        subjects, some = counted
    else:
        subjects, said = results.with_transcripts()
    answer = journeys.report(
        subjects,
        only=only if said or some else (),
        bars=results.bars(parse_bars(bars), subjects),
        **analysis,
    ).about(results.asked_k())
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
    elif said and not isinstance(subjects, list):
        page = fitted_transcripts(answer, subjects, said, output)
    verdict = verdict_of_results(results)
    if verdict is not None:
        verdict = verdict.about(only)
    again = reading.again(errors=analysis["errors"], only=only)
    output.write(
        answer,
        results=again,
        command=typed_command(),
        more_runs=None if again is None else results.more_runs(),
        all_tasks=all_tasks,
        scope=scope,
        narrowed=len(only) > 1,
        verdict=verdict,
        **page,
    )
    if wanted(github):
        from passhat.analysis.gates.run_answer import ChangeReview

        announce(ChangeReview(report=answer, informational=informational), output, key="report")
