"""`passhat history`: every run that was kept, and what can be done with one."""

from __future__ import annotations

import functools
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passhat.cli.baseline_change import change_of_named_run
from passhat.cli.options import SectionedCommand, StoreType, WholeNumber, output_options
from passhat.cli.output import Output, fitted_transcripts, ink_for, wants_page, writes_page
from passhat.cli.reading import ReadingOptions, reading_options, say_note
from passhat.defaults import STORE
from passhat.messages import listed, plural

if TYPE_CHECKING:
    from passhat.history import History, Run
    from passhat.reporters.answers.run_list import Row


_STORE = click.option("--store", type=StoreType(), help=f"The store.  [default: {STORE}]")


def _of_store(command: Callable[..., None]) -> Callable[..., None]:
    """--store behind a subcommand too, where people look for it; handed over as `path`."""

    @_STORE
    @click.pass_obj
    @functools.wraps(command)
    def with_path(before: Path | str, /, *, store: Path | str | None, **values: Any) -> None:
        command(store or before, **values)

    return with_path


@click.group(invoke_without_command=True)
@_STORE
@click.option("--sql", metavar="QUERY", help="Print the rows of a reading query, tab-separated.")
@click.pass_context
def history(ctx: click.Context, store: Path | str | None, sql: str | None) -> None:
    """Every run that was kept.

    RUN is a key, a tag, a commit, a branch (its newest run), or `latest`; of a key or a commit, the
    first 4 characters or more will do where no other begins so.

    \b
      passhat history
      passhat history tag latest baseline
      passhat history add results.csv --commit 1f2e3d4 --branch main
      passhat history search "out of stock" --outcome failed
      passhat history --sql "SELECT suite, count(*) FROM runs GROUP BY suite"
    """
    from passhat.history import DEFAULT_PATH

    ctx.obj = store or DEFAULT_PATH
    if sql is not None:
        _print_query(ctx.obj, sql)
    elif ctx.invoked_subcommand is None:
        ctx.invoke(list_runs)


@history.command("list")
@click.option("--suite", help="Runs of this suite only.")
@click.option("--branch", help="Runs of this branch only.")
@click.option(
    "--limit", type=WholeNumber(min=1), default=20, show_default=True, help="At most so many."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_of_store
def list_runs(
    path: Path | str, suite: str | None, branch: str | None, limit: int, as_json: bool
) -> None:
    """List the newest runs."""
    from passhat.journeys.run_store import resume_newest
    from passhat.reporters.answers.run_list import RunList
    from passhat.reporters.grid import render_json, render_terminal

    with _open(path, read_only=True) as store:
        runs = store.runs(suite=suite, branch=branch, limit=limit)
        rows = [_row(run, store.pass_rates(run)) for run in runs]
    found = RunList(tuple(rows), resume=resume_newest(runs, str(path)))
    text = render_json(found) if as_json else render_terminal(found, ink_for(sys.stdout))
    click.echo(text, nl=False, color=True)


@history.command()
@click.argument("run")
@click.option("--transcripts", is_flag=True, help="Show transcripts on the page.")
@output_options("report", verbose=True)
@_of_store
def show(path: Path | str, run: str, transcripts: bool, output: Output) -> None:
    """Report on one run.

    \b
      passhat history show latest
      passhat history show baseline -o report.html --transcripts
    """
    from passhat.journeys import Results, report_results
    from passhat.journeys.results import LATEST

    results = Results(paths=(str(path),), run=run, on_note=say_note)
    trials, said = results.with_transcripts() if wants_page(transcripts, output) else (None, {})
    answer = report_results(results if trials is None else trials)
    page = fitted_transcripts(answer, trials, said, output) if said else {}
    if writes_page(output) and len(answer.systems) == 1:
        page["change"] = change_of_named_run(results, answer.systems[0].name)
    again = shlex.join([str(path), *(["--run", run] if run != LATEST else [])])
    output.write(answer, results=again, **page)


@history.command()
@click.argument("run")
@click.argument("name")
@_of_store
def tag(path: Path | str, run: str, name: str) -> None:
    """Name a run, for example as a baseline; a name moves when it is given again."""
    with _open(path) as store:
        found = _run_named(store, run)
        store.tag(found, name)
    click.echo(f"{found.key} is now {name}", err=True)


@history.command()
@click.argument("run")
@click.option("--yes", is_flag=True, help="Do not ask.")
@_of_store
def delete(path: Path | str, run: str, yes: bool) -> None:
    """Delete a run with its trials and transcripts.

    Exit codes: 0 it is forgotten; 1 it was not confirmed; 2 there is no such run.
    """
    with _open(path) as store:
        found = _run_named(store, run)
        if not yes:
            size = plural(found.trials, "trial")
            click.confirm(f"Forget run {found.key} with {size}?", abort=True)
        store.delete(found)
    click.echo(f"forgot {found.key}", err=True)


@history.command()
@click.argument("run")
@click.argument("file")
@click.option("--transcripts", is_flag=True, help="Export to a folder what was said, too.")
@_of_store
def export(path: Path | str, run: str, file: str, transcripts: bool) -> None:
    """Write the trials of a run to a .jsonl, .csv or .parquet file, or to a folder.

    A folder becomes a dataset of Parquet files, `FILE/suite=NAME/run=KEY/part-00000.parquet`, that
    `passhat report` and any engine read as one table. It may be in an object store: s3://, gs://
    or any other address that fsspec knows. Transcripts go to `FILE/_transcripts`;
    `passhat report FILE --transcripts -o report.html` shows them, and `passhat history search TEXT
    FILE` searches them.
    """
    from passhat.ingest import write_trials
    from passhat.ingest.remote import is_url
    from passhat.journeys.exporting import export_dataset

    dataset = is_url(file) or not Path(file).suffix
    if transcripts and not dataset:
        raise click.BadParameter("transcripts are exported to a folder", param_hint="--transcripts")
    with _open(path, read_only=True) as store:
        found = _run_named(store, run)
        if dataset:
            parts = export_dataset(store, found, file, transcripts=transcripts)
            where = parts[0].rpartition("/")[0] if parts else file
            click.echo(f"wrote {plural(len(parts), 'file')} to {where}", err=True)
            return
        trials = store.trials(found)
    write_trials(trials, Path(file))
    click.echo(f"wrote {file}", err=True)


@history.command()
@click.argument("text")
@click.argument("dataset", required=False)
@click.option("--run", help="Look at this run only.")
@click.option("--only", metavar="AGENT", help="Look at this agent only.")
@click.option("--task", help="Look at this task only.")
@click.option(
    "--outcome",
    type=click.Choice(["passed", "failed", "errored"]),
    help="Look at trials that ended so only.",
)
@click.option(
    "--limit", type=WholeNumber(min=1), default=20, show_default=True, help="At most so many."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_of_store
def search(
    path: Path | str,
    text: str,
    dataset: str | None,
    run: str | None,
    only: str | None,
    task: str | None,
    outcome: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Find the trials in which anyone said TEXT, in upper or lower case.

    Looks at messages, calls of tools, answers, errors and what graders said. Of a store the newest
    run comes first. DATASET is a folder or an address that `passhat history export RUN DATASET
    --transcripts` wrote, and takes the place of the store.

    \b
      passhat history search "out of stock" --outcome failed
      passhat history search refund --run baseline --task cancel-order
      passhat history search refund s3://evals/trials
    """
    from passhat.journeys.searching import SearchedTrials, search_transcripts
    from passhat.records.trial import Outcome
    from passhat.reporters.grid import render_json, render_terminal

    ended = None if outcome is None else Outcome[outcome.upper()]
    trials = SearchedTrials(run=run, system=only, task=task, outcome=ended)
    found = search_transcripts(text, store=path, dataset=dataset, trials=trials, limit=limit)
    shown = render_json(found) if as_json else render_terminal(found, ink_for(sys.stdout))
    click.echo(shown, nl=False, color=True)


@history.command()
@_of_store
def vacuum(path: Path) -> None:
    """Free the disk space of deleted runs."""
    with _open(path) as store:
        store.vacuum()


@history.command(cls=SectionedCommand)
@reading_options(transcripts=True, stores=False)
@click.option("--suite", default=None, help="The suite it belongs to; else the file's name.")
@click.option("--commit", help="The commit it ran at.")
@click.option("--branch", help="The branch it ran on.")
@click.option("--started", help="When it ran (ISO 8601); else now.")
@click.option("--no-transcripts", is_flag=True, help="Do not keep what was said.")
@_of_store
def add(
    path: Path | str,
    reading: ReadingOptions,
    suite: str | None,
    no_transcripts: bool,
    **checkout: str | None,
) -> None:
    """Keep the results in a log of any tool as a run, with its transcripts if it has any.

    Runs of one suite make a trend: name it where logs have names of their own.

    \b
      passhat history add monday.eval --suite support
      passhat history add tuesday.eval --suite support
      passhat trend support
    """
    from passhat.journeys.history_files import keep_results
    from passhat.reporters.safe_text import safe_lines

    kept = keep_results(
        reading.results(),
        suite=suite,
        store=path,
        transcripts=not no_transcripts,
        **checkout,
    )
    run = kept.run
    lines = [f"kept {plural(kept.trials, 'trial')} as run {run.key} of suite {run.suite}"]
    if not no_transcripts:
        lines[0] += f", with {plural(kept.transcripts, 'transcript')}"
    lines.append(f"agent: {listed(kept.systems)}{kept.why_named}")
    if not suite:  # logs have names of their own, and a trend is of one suite
        lines.append("the suite is named after the file; --suite NAME puts logs under one")
    click.echo(safe_lines("\n".join(lines)), err=True)


def _run_named(history: History, reference: str) -> Run:
    """The run of that name; where several fit, says which was taken."""
    from passhat.history.references import look_up

    found = look_up(history, reference)
    if found.note:
        say_note(found.note)
    return found.run


def _open(path: Path | str, *, read_only: bool = False) -> History:
    """A store that is there; only `add` begins one."""
    from passhat.history import History

    if not read_only:
        History.open(path, read_only=True).close()
    return History.open(path, read_only=read_only)


def _row(run: Run, rates: dict[str, float]) -> Row:
    return {
        "run": run.key,
        "suite": run.suite,
        "status": run.status,
        "owner": run.owner,
        "started": run.started,
        "commit": run.checkout.commit,
        "branch": run.checkout.branch,
        "dirty": run.checkout.dirty,
        "tags": list(run.tags),
        "systems": run.systems,
        "tasks": run.tasks,
        "trials": run.trials,
        "passed": run.passed,
        "errored": run.errored,
        "pass_rate": run.pass_rate,
        "pass_rates": rates,
    }


def _print_query(path: Path | str, sql: str) -> None:
    from passhat.reporters.safe_text import safe_text

    with _open(path, read_only=True) as store:
        header, rows = store.query(sql)
    for row in [header, *rows]:
        shown = [json.dumps(cell) if isinstance(cell, bytes) else str(cell) for cell in row]
        click.echo("\t".join(safe_text(cell) for cell in shown))
