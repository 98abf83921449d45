"""`passhat run`: run a suite, keep every trial, and end with a report, a verdict and a code."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.options import output_options
from passhat.cli.output import Output
from passhat.cli.run_options import FORMATS, OptionalValues, RunOptions, run_options
from passhat.cli.store_option import StoreType

if TYPE_CHECKING:
    from passhat.records import Suite

STORE = Path(".passhat/history.db")
FAULTS_OFF = "the suite's faults are off: --faults runs it with and without them"


@click.command(cls=OptionalValues)
@click.argument("suite", type=click.Path(path_type=Path), required=False)
@run_options
@click.option("--dry-run", is_flag=True, help="Say what would be run and what it may cost.")
@click.option("--resume", is_flag=True, help="Go on with the newest run of the same request.")
@click.option(
    "--store",
    type=StoreType(),
    default=STORE,
    show_default=True,
    help="Where trials are kept.",
)
@click.option("--no-store", is_flag=True, help="Keep nothing; what breaks off is lost.")
@click.option("--html", metavar="FILE", help="Also write the report as a page.")
@click.option("--transcripts", is_flag=True, help="Show on the page what was said.")
@output_options(FORMATS)
@click.pass_context
def run(
    context: click.Context,
    suite: Path | None,
    options: RunOptions,
    dry_run: bool,
    resume: bool,
    store: Path | str,
    no_store: bool,
    html: str | None,
    transcripts: bool,
    output: Output,
) -> None:
    """Run SUITE (passhat.yml here, where none is named) and say how reliable its agents are.

    \b
      passhat run
      passhat run suite.yml --runs 20 --require 'pass^3 >= 0.8' --until-settled
      passhat run --record                 then, without a key: passhat run --replay
      passhat run --html report.html -o report.json --max-cost 5

    Every trial is kept in the store as soon as it ends; `passhat resume` goes on where a run
    broke off and pays for nothing twice.

    Exit codes: 0 passed; 1 a gate, a floor or (in a suite without gates) an expectation failed;
    2 usage or configuration; 3 the run could not be completed; 4 undecided; 130/143 stopped by a
    signal.
    """
    from passhat.cli.chosen_suite import apply_options
    from passhat.cli.run_demands import refuse_pointless
    from passhat.cli.run_journey import Job, conduct
    from passhat.suite import find_suite, load_suite
    from passhat.suite.fault_variants import has_faults

    options = replace(
        options,
        suite=os.path.relpath(suite or find_suite(Path())),
        outputs=output.paths_out,
        html=html,
        transcripts=transcripts,
    )
    loaded = load_suite(options.suite, models_asked=False)
    refuse_pointless(loaded, options.require)
    chosen = apply_options(loaded, options)
    job = Job(
        suite=chosen,
        options=options,
        store=None if no_store else store,
        resumed=_resumed(store, chosen, options) if resume and not no_store else None,
        remark=FAULTS_OFF if options.faults is None and has_faults(loaded) else None,
    )
    if dry_run:
        from passhat.cli.dry_run import tell_plan

        tell_plan(job, as_json=output.as_json)
        return
    context.exit(conduct(job, output))


def _resumed(store: Path | str, suite: Suite, options: RunOptions) -> str | None:
    from passhat.cli.run_ledger import same_run

    found = same_run(store, suite, options)
    return None if found is None else found.key
