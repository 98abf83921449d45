"""`passhat resume`: continue an interrupted run, paying for nothing twice."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

import click

from passhat.cli.option_types import WholeNumber
from passhat.cli.options import SectionedCommand, output_options
from passhat.cli.output import Output, wants_page
from passhat.cli.reading import say_note
from passhat.cli.run_options import budget_options, execution_options, page_options
from passhat.cli.run_output import show_run

if TYPE_CHECKING:
    from pathlib import Path

    from passhat.journeys.run_request import ResumeTerms


@click.command(cls=SectionedCommand)
@click.argument("run", required=False)
@click.option(
    "--runs",
    type=WholeNumber(min=1),
    help="Total number of runs of each task; more than before extends a finished run.",
)
@click.option("--retry-errors", is_flag=True, help="Run errored trials again.")
@click.option("--changed", is_flag=True, help="Continue although the suite file has changed.")
@page_options
@budget_options
@execution_options
@output_options("run", verbose=True)
@click.pass_context
def resume(
    context: click.Context,
    /,
    run: str | None,
    runs: int | None,
    store: Path | str,
    html: str | None,
    rows: str | None,
    transcripts: bool,
    output: Output,
    **given: Unpack[ResumeTerms],
) -> None:
    """Resume an interrupted RUN, or add trials to a finished one.

    RUN is the newest unfinished run unless you name another. It continues with the options it was
    started with, including -o and --html; you may give new budgets and files. Finished trials are
    not run again, and no model call that was answered is paid for again.

    \b
      passhat resume                     the newest unfinished run
      passhat resume latest --runs 30    30 runs of every task in all

    Exit codes: those of `passhat run`; 2 also if there is nothing to resume.
    """
    from passhat.journeys import resume_run
    from passhat.journeys.run_store import run_to_resume

    looked_up = run_to_resume(store, run, runs=runs)
    if looked_up.note:
        say_note(looked_up.note)
    found, kept = looked_up.run, looked_up.run.options
    outputs = output.paths_out or tuple(kept.get("outputs") or ())
    page, said = html or kept.get("html"), transcripts or bool(kept.get("transcripts"))
    rows = rows or kept.get("rows")
    output = replace(output, paths_out=outputs)
    context.exit(
        show_run(
            lambda on_event: resume_run(
                found.key,
                store=store,
                runs=runs,
                transcripts=wants_page(said, output, html=page),
                on_event=on_event,
                interface={"outputs": outputs, "html": page, "transcripts": said, "rows": rows},
                **given,
            ),
            output,
            html=page,
            resumed=True,
            store=store,
            by_run=rows == "runs",
        )
    )
