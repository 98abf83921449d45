"""`passhat run`: run a suite, keep every trial, and end with a report, a verdict and a code."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from passhat.cli.exit_codes import ExitCode
from passhat.cli.forge_output import announce_run, forge_options, wanted
from passhat.cli.options import output_options
from passhat.cli.output import Output, wants_page
from passhat.cli.run_options import (
    OptionalValues,
    execution_option,
    execution_options,
    page_options,
    run_options,
)
from passhat.cli.run_output import show_run

if TYPE_CHECKING:
    from passhat.journeys.run_request import Executor, RunTerms


@click.command(cls=OptionalValues)
@click.argument("suite", type=click.Path(path_type=Path), required=False)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The suite file: another way to name SUITE.",
)
@run_options
@click.option("--dry-run", is_flag=True, help="Show what would run and what it may cost.")
@click.option("--resume", is_flag=True, help="Resume the newest run with the same options.")
@page_options
@execution_options
@execution_option("--no-store", is_flag=True, help="Store nothing; an interrupted run is lost.")
@forge_options
@output_options("run", verbose=True)
@click.pass_context
def run(
    context: click.Context,
    suite: Path | None,
    config: Path | None,
    dry_run: bool,
    resume: bool,
    store: Path | str,
    executor: Executor,
    workers: int,
    no_store: bool,
    html: str | None,
    rows: str | None,
    transcripts: bool,
    github: bool | None,
    informational: bool,
    output: Output,
    **terms: Unpack[RunTerms],
) -> None:
    """Run SUITE (default: passhat.yml in this folder) and say how reliable its agents are.

    \b
      passhat run
      passhat run suite.yml --runs 20 --require 'pass^3 >= 0.8' --until-settled
      passhat run --record               then, without a key: passhat run --replay
      passhat run --html report.html -o report.json --max-cost 5
      passhat run -o events.ndjson       a line for each event, while it runs

    Every trial is stored as soon as it ends; `passhat resume` continues an interrupted run and pays
    for nothing twice.

    Exit codes: 0 passed; 1 a gate, a floor or (in a suite without gates) an expectation failed;
    2 usage or configuration; 3 the run could not be completed; 4 undecided; 130/143 stopped by a
    signal.
    """
    if suite is not None and config is not None:
        raise click.UsageError(f"name the suite once: {suite} or --config {config}", ctx=context)
    suite = suite or config
    kept = None if no_store else store
    from passhat.journeys import plan_run, run_suite

    if dry_run:
        if html is not None:
            raise click.UsageError("--html is the page of a run: write the plan with -o plan.html")
        output.write(plan_run(suite, store=kept, **terms))
        return
    files = {"outputs": output.paths_out, "html": html, "transcripts": transcripts, "rows": rows}
    tell = partial(announce_run, output=output, store=kept, informational=informational)
    code = show_run(
        lambda on_event: run_suite(
            suite,
            **terms,
            store=kept,
            resume=resume,
            transcripts=wants_page(transcripts, output, html=html),
            on_event=on_event,
            interface=files,
            executor=executor,
            workers=workers,
        ),
        output,
        html=html,
        by_run=rows == "runs",
        resumed=resume,
        store=kept,
        tell_reviewers=tell if wanted(github) else None,
    )
    context.exit(0 if informational and code in (ExitCode.FAIL, ExitCode.UNDECIDED) else code)
