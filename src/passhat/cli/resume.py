"""`passhat resume`: go on with a run that broke off, paying for nothing twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passhat.cli.options import output_options
from passhat.cli.output import Output
from passhat.cli.run import STORE
from passhat.cli.run_options import FORMATS, Command, RunOptions, limits
from passhat.cli.store_option import StoreType
from passhat.errors import HistoryError

if TYPE_CHECKING:
    from passhat.history import Run
    from passhat.records import Suite


def _limit_options(command: Command) -> Command:
    for option in reversed(limits()):
        command = option(command)
    return command


@click.command()
@click.argument("run", required=False)
@_limit_options
@click.option("--retry-errors", is_flag=True, help="Run errored trials again.")
@click.option("--changed", is_flag=True, help="Go on although the suite file has changed.")
@click.option(
    "--store",
    type=StoreType(),
    default=STORE,
    show_default=True,
    help="Where the run is kept.",
)
@click.option("--html", metavar="FILE", help="Also write the report as a page.")
@click.option("--transcripts", is_flag=True, help="Show on the page what was said.")
@output_options(FORMATS)
@click.pass_context
def resume(
    context: click.Context,
    /,
    run: str | None,
    retry_errors: bool,
    changed: bool,
    store: Path | str,
    output: Output,
    **given: Any,
) -> None:
    """Go on with RUN (the newest unfinished one, where none is named).

    What was asked for is what the run was started with, its -o and --html too; limits and files may
    be given anew. Finished trials are not run again, and no answered model call is paid for again.

    Exit codes: those of `passhat run`; 2 also where there is nothing to resume.
    """
    from passhat.cli.chosen_suite import apply_options
    from passhat.cli.run_journey import Job, conduct
    from passhat.cli.run_ledger import unfinished_run
    from passhat.suite import load_suite

    found = unfinished_run(store, run)
    if not found.options.get("suite"):
        raise HistoryError(f"{store}: run {found.key} was not made by `passhat run`")
    options = RunOptions.from_json(found.options).freed(outputs=output.paths_out, **given)
    suite = apply_options(load_suite(options.suite, models_asked=False), options)
    if not changed:
        _refuse_changed(found, suite, options)
    job = Job(
        suite=suite,
        options=options,
        store=store,
        resumed=found.key,
        retry_errored=retry_errors,
    )
    context.exit(conduct(job, replace(output, paths_out=options.outputs)))


def _refuse_changed(run: Run, suite: Suite, options: RunOptions) -> None:
    if run.suite_hash != suite.digest:
        raise HistoryError(
            f"{options.suite} has changed since run {run.key} was started: old and new trials "
            "would be mixed. `passhat run` starts anew; --changed goes on all the same"
        )
