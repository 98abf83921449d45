"""Stored runs: `passhat history` and its commands, and `trend`."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from passhat.arguments import STORE
from passhat.cli import options
from passhat.cli.machines import merge_stores, stores_argument
from passhat.cli.output import Output, fitted_transcripts, unwritable, wants_page
from passhat.cli.reading import ReadingOptions, reading_options, say_note
from passhat.journeys.analyses import FLAKY_LAST, LAST
from passhat.messages import listed, plural

if TYPE_CHECKING:
    from passhat.history import History, Run
    from passhat.history.runs import RunAction
    from passhat.journeys.history import OutcomeWord


def _of_store(command: Callable[..., None]) -> Callable[..., None]:
    """--store after a subcommand too, where people expect it; passed on as `path`."""

    @click.option("--store", type=options.StoreType(), help=f"The store.  [default: {STORE}]")
    @click.pass_obj
    @functools.wraps(command)
    def with_path(before: Path | str, /, *, store: Path | str | None, **values: Any) -> None:
        command(store or before, **values)

    return with_path


_limit = click.option(
    "--limit", type=options.WholeNumber(min=1), default=20, help="At most this many."
)


def _typed_limit() -> int | None:
    """How many rows were asked for by number: a screen shows as many."""
    context = click.get_current_context()
    typed = context.get_parameter_source("limit") is click.core.ParameterSource.COMMANDLINE
    return context.params["limit"] if typed else None


_list_options = options.in_order(
    click.option("--suite", metavar="NAME", help="Runs of this suite only."),
    click.option("--branch", metavar="NAME", help="Runs of this branch only."),
    _limit,
    options.output_options("run list"),
)


@click.group(
    cls=options.SectionedGroup,
    invoke_without_command=True,
    formerly={"list": "history", "show": "report RUN", "export": "convert RUN -o FILE"},
    brief=[
        "passhat history                    list the newest runs",
        "passhat history tag RUN NAME       name a run, for example baseline",
        "passhat history note RUN TEXT      keep a note about a run",
        "passhat history add RESULTS...     store the results of any tool as a run",
        "passhat history search TEXT        find trials by what was said in them",
        "passhat history artefacts RUN      the files that are kept of its trials",
        "passhat history rename RUN SUITE   put a run under another suite",
        "passhat history delete RUN         delete a run; --older-than 90: old ones",
        "passhat history log                who changed what",
        "passhat history merge STORES...    put the shards of a run together",
        "",
        "--suite NAME         runs of this suite only",
        "--branch NAME        runs of this branch only",
        "--limit N            show so many of the newest runs (10; 20 with -v)",
        "--store URL          the store (.passhat/history.db)",
        "--sql QUERY          print the rows of a SELECT query",
        options.JSON,
        "See one: passhat report RUN (a key, tag, commit, branch, latest or latest~1).",
    ],
)
@options.store_option("The store.")
@click.option("--sql", metavar="QUERY", help="Print the rows of a SELECT query, tab-separated.")
@_list_options
@click.pass_context
def history(
    ctx: click.Context,
    /,
    store: Path | str,
    sql: str | None,
    suite: str | None,
    branch: str | None,
    limit: int,
    output: Output,
) -> None:
    """Stored runs: list them, name them, search them, add to them.

    RUN is a key, a tag, a commit, a branch (its newest run), or `latest`. The first 4 characters
    of a key or a commit are enough if no other begins with them.
    """
    ctx.obj = store
    if sql is not None:
        _print_query(ctx.obj, sql)
    elif ctx.invoked_subcommand is None:
        _list(store, suite, branch, limit, output)


def _open(path: Path | str, *, read_only: bool = False) -> History:
    """An existing store; only `add` creates one."""
    from passhat.history import History

    if not read_only:
        History.open(path, read_only=True).close()
    return History.open(path, read_only=read_only)


def _print_query(path: Path | str, sql: str) -> None:
    from passhat.reporters.formatting import safe_text

    with _open(path, read_only=True) as store:
        header, rows = store.query(sql)
    for row in [header, *rows]:
        shown = [json.dumps(cell) if isinstance(cell, bytes) else str(cell) for cell in row]
        click.echo("\t".join(safe_text(cell) for cell in shown))


@history.command("list", cls=options.SectionedCommand, brief=["It is now: passhat history"])
@_list_options
@_of_store
def list_runs(
    path: Path | str, suite: str | None, branch: str | None, limit: int, output: Output
) -> None:
    """List the newest stored runs."""
    _list(path, suite, branch, limit, output)


def _list(
    path: Path | str, suite: str | None, branch: str | None, limit: int, output: Output
) -> None:
    from passhat.history.database import store_words
    from passhat.journeys import list_runs as listed_runs

    runs = listed_runs(suite=suite, branch=branch, limit=limit, store=path)
    output.write(runs, store=store_words(path), most_rows=_typed_limit())


@history.command(cls=options.SectionedCommand, brief=["It is now: passhat report RUN"])
@click.argument("run")
@click.option("--transcripts", is_flag=True, help="Put transcripts on the page.")
@options.output_options("report")
@_of_store
def show(path: Path | str, run: str, transcripts: bool, output: Output) -> None:
    """Report on one stored run."""
    from passhat import journeys
    from passhat.history.database import store_words
    from passhat.journeys import Results
    from passhat.journeys.stored_runs import verdict_of_results

    _open(path, read_only=True).close()  # says so if there is no store; Results would read a file
    results = Results(paths=(str(path),), run=run, on_note=say_note)
    trials, texts = results.with_transcripts() if wants_page(transcripts, output) else (None, {})
    answer = journeys.report(results if trials is None else trials)
    page = fitted_transcripts(answer, trials, texts, output) if texts else {}
    again = f"{shlex.quote(run)}{store_words(path)}"
    output.write(answer, results=again, verdict=verdict_of_results(results), **page)


@history.command(cls=options.SectionedCommand)
@click.argument("run")
@click.argument("name")
@click.option("--remove", is_flag=True, help="Take the name away.")
@_of_store
def tag(path: Path | str, run: str, name: str, remove: bool) -> None:
    """Name a run, for example baseline; the name moves if another run had it."""
    _change(path, run, "untag" if remove else "tag", name)


@history.command(cls=options.SectionedCommand)
@click.argument("run")
@click.argument("text")
@_of_store
def note(path: Path | str, run: str, text: str) -> None:
    """Keep a note about a run; its page and `passhat history log` show it."""
    _change(path, run, "note", text)


@history.command(cls=options.SectionedCommand)
@click.argument("run")
@click.argument("suite")
@_of_store
def rename(path: Path | str, run: str, suite: str) -> None:
    """Put a run under another SUITE: its trend, verdict and baseline are that suite's."""
    _change(path, run, "rename", suite)


@history.command(cls=options.SectionedCommand)
@click.argument("run", required=False)
@_limit
@options.output_options("run log")
@_of_store
def log(path: Path | str, run: str | None, limit: int, output: Output) -> None:
    """Who tagged, noted, renamed, deleted or labelled what; the newest first.

    RUN may also be the whole key of a run that was deleted.
    """
    from passhat.errors import HistoryError
    from passhat.records.ledger import RunLog

    with _open(path, read_only=True) as store:
        try:
            about: Run | str | None = None if run is None else _run_named(store, run)
        except HistoryError:
            if not store.changes(run):
                raise
            about = run
        changes = store.changes(about, limit=limit)
    output.write(RunLog(changes=tuple(changes)), most_rows=_typed_limit())


@history.command(cls=options.SectionedCommand)
@click.argument("run", required=False)
@click.option(
    "--older-than",
    metavar="DAYS",
    type=options.WholeNumber(min=1),
    help="Delete every run that has ended and is older, but none that has a tag.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@_of_store
def delete(path: Path | str, run: str | None, older_than: int | None, yes: bool) -> None:
    """Delete a run with its trials and transcripts, or all old runs that have no tag.

    \b
      passhat history delete 4f1c
      passhat history delete --older-than 90 --yes

    Exit codes: 0 it is deleted; 1 it was not confirmed; 2 there is no such run.
    """
    if (run is None) == (older_than is None):
        raise click.UsageError("name the RUN to delete, or give --older-than DAYS")
    if older_than is not None:
        _delete_older(path, older_than, yes=yes)
        return
    with _open(path, read_only=True) as store:
        named = _run_named(store, run or "")
    if not yes:
        size = plural(named.trials, "trial")
        tagged = f", tagged {', '.join(named.tags)}," if named.tags else ""
        click.confirm(f"Delete run {named.key}{tagged} with {size}?", abort=True)
    _change(path, named.key, "delete")


def _delete_older(path: Path | str, days: int, *, yes: bool) -> None:
    from passhat.journeys import change_run
    from passhat.journeys.history import old_runs

    old = old_runs(days, store=path)
    runs = plural(len(old), "run")
    size = f"{runs} with {plural(sum(run.trials for run in old), 'trial')}"
    if old and not yes:
        click.confirm(f"Delete {size}, all older than {plural(days, 'day')}?", abort=True)
    for run in old:
        change_run(run.key, "delete", store=path)
    click.echo(f"deleted {size}" if old else "no run is that old and has no tag", err=True)


@history.command(cls=options.SectionedCommand, brief=["It is now: passhat convert RUN -o FILE"])
@click.argument("run")
@click.argument("file")
@click.option("--transcripts", is_flag=True, help="Export the transcripts too, to a folder.")
@_of_store
def export(path: Path | str, run: str, file: str, transcripts: bool) -> None:
    """Write the trials of a run to a .jsonl, .csv or .parquet file, or to a folder.

    A folder becomes a dataset of Parquet files, `FILE/suite=NAME/run=KEY/part-00000.parquet`, that
    `passhat report` and any query engine read as one table. It may be in an object store: s3://,
    gs:// or any other address that fsspec knows. Transcripts go to `FILE/_transcripts`. `passhat
    report FILE --transcripts -o report.html` shows them, and `passhat history search TEXT FILE`
    searches them. The artefacts of trials go to `FILE/_artefacts`.
    """
    export_to(file, run, store=path, transcripts=transcripts)


def export_to(file: str, run: str, *, store: Path | str, transcripts: bool) -> None:
    """Write a stored run to a file, a folder or an address, and say so."""
    from passhat.journeys import export_run

    try:
        parts = export_run(run, file, store=store, transcripts=transcripts, on_note=say_note)
    except OSError as error:
        raise unwritable(Path(file), error) from error
    if parts == [file]:
        click.echo(f"wrote {file}", err=True)
        return
    where = parts[0].rpartition("/")[0] if parts else file
    click.echo(f"wrote {plural(len(parts), 'file')} to {where}", err=True)


@history.command(
    cls=options.SectionedCommand,
    brief=[
        "--run RUN            search this run only",
        options.ONLY,
        "--task TASK          this task only",
        "--outcome passed|failed|errored",
        "--limit N            at most this many (20)",
        options.JSON,
    ],
)
@click.argument("text")
@click.argument("dataset", required=False)
@click.option("--run", metavar="RUN", help="Search this run only.")
@click.option("--only", metavar="AGENT", help="Search this agent only.")
@click.option("--task", metavar="TASK", help="Search this task only.")
@click.option(
    "--outcome",
    type=click.Choice(["passed", "failed", "errored"]),
    help="Search trials with this outcome only.",
)
@_limit
@options.output_options("transcript matches")
@_of_store
def search(
    path: Path | str,
    text: str,
    dataset: str | None,
    run: str | None,
    only: str | None,
    task: str | None,
    outcome: OutcomeWord | None,
    limit: int,
    output: Output,
) -> None:
    """Find the trials whose transcript contains TEXT, in upper or lower case.

    Messages, tool calls, answers, errors and what graders said are searched, those of the newest
    run first. DATASET is a folder or an address that `passhat convert RUN -o DATASET --transcripts`
    wrote; it is searched instead of the store.

    \b
      passhat history search "out of stock" --outcome failed
      passhat history search refund --run baseline --task cancel-order
      passhat history search refund s3://evals/trials
    """
    from passhat.journeys import search_transcripts

    matches = search_transcripts(
        text,
        store=path,
        dataset=dataset,
        run=run,
        only=only,
        task=task,
        outcome=outcome,
        limit=limit,
    )
    output.write(matches, most_rows=_typed_limit())


@history.command(
    cls=options.SectionedCommand,
    brief=[
        "-o FOLDER            write them there, which must be new or empty",
        options.ONLY,
        "--task TASK          this task only",
        "--trial N            this trial of each task only",
        options.JSON,
    ],
)
@click.argument("run")
@click.option("-o", "--output", "folder", metavar="FOLDER", help="Write them to a new folder.")
@click.option("--only", metavar="AGENT", help="Those of this agent only.")
@click.option("--task", metavar="TASK", help="Those of this task only.")
@click.option(
    "--trial", type=options.WholeNumber(min=1), help="Those of this trial of each task only."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-v", "--verbose", is_flag=True, help="List every file.")
@_of_store
def artefacts(
    path: Path | str,
    run: str,
    folder: str | None,
    only: str | None,
    task: str | None,
    trial: int | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """The files that are kept of trials in workspaces: diffs, logs, test reports, and `keep:`.

    \b
      passhat history artefacts latest
      passhat history artefacts latest --task add --trial 3 -o files

    They are in the store, equal ones once, without secrets, and deleted with their run. Binary
    files are kept as they are. -o writes them as FOLDER/AGENT/TASK/TRIAL/NAME.
    """
    from passhat.history.database import store_words
    from passhat.journeys import list_artefacts

    try:
        listing = list_artefacts(
            run, only=only, task=task, trial=trial, folder=folder, store=path, on_note=say_note
        )
    except OSError as error:
        raise unwritable(Path(folder or "."), error) from error
    if folder is not None:
        click.echo(f"wrote {plural(len(listing.files), 'file')} to {folder}", err=True)
    if folder is None or as_json:
        output = Output(
            format="json" if as_json else None, paths_out=(), quiet=False, verbose=verbose
        )
        output.write(listing, store=store_words(path))


@history.command(cls=options.SectionedCommand)
@_of_store
def verify(path: Path | str) -> None:
    """Check that every stored run, with its artefacts, is what was stored when it ended.

    Runs that have not ended, and those of passhat before 0.2, have no checksum: of them only the
    file is checked.

    Exit codes: 0 every run is whole; 2 one is not, or the store cannot be read.
    """
    from passhat.errors import HistoryError
    from passhat.reporters.formatting import safe_text

    runs, broken = 0, []
    with _open(path, read_only=True) as store:
        for run, error in store.verify_all():
            runs += 1
            if error is not None:
                broken.append(run.key)
                click.echo(safe_text(str(error)), err=True)
    if broken:
        raise HistoryError(f"{path}: damaged: {plural(len(broken), 'run')}: {listed(broken, 10)}")
    click.echo(f"{plural(runs, 'run')}: all whole")


@history.command(cls=options.SectionedCommand)
@_of_store
def vacuum(path: Path | str) -> None:
    """Free the disk space of deleted runs."""
    file = path if isinstance(path, Path) and path.is_file() else None  # else on a server
    before = file.stat().st_size if file else 0
    with _open(path) as store:
        store.vacuum()
    freed = f"{max(0, before - file.stat().st_size):,} bytes" if file else "what deleted runs took"
    click.echo(f"freed {freed}", err=True)


@history.command(
    cls=options.SectionedCommand,
    brief=[
        "--suite NAME         its suite (the name of the file)",
        "--commit HASH        the commit it ran at",
        "--branch NAME        the branch it ran on",
        "--started TIME       when it ran, as ISO 8601 (now)",
        options.WHICH_COLUMNS,
        options.CRITERION,
    ],
)
@reading_options(stores=False)
@click.option("--suite", metavar="NAME", help="Its suite.  [default: the name of the file]")
@click.option("--commit", metavar="HASH", help="The commit it ran at.")
@click.option("--branch", metavar="NAME", help="The branch it ran on.")
@click.option("--started", metavar="TIME", help="When it ran (ISO 8601).  [default: now]")
@click.option("--no-transcripts", is_flag=True, help="Do not store transcripts.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@_of_store
def add(
    path: Path | str,
    reading: ReadingOptions,
    suite: str | None,
    commit: str | None,
    branch: str | None,
    started: str | None,
    no_transcripts: bool,
    quiet: bool,
) -> None:
    """Store the results of any tool as a run, with the transcripts if there are any.

    \b
      passhat history add monday.eval --suite support
      passhat history add tuesday.eval --suite support
      passhat trend support

    A trend is made of the runs of one suite: name the suite if every log has another name.
    """
    from passhat.journeys.history import store_results
    from passhat.journeys.stored_runs import keep_explanation
    from passhat.reporters.formatting import safe_lines

    stored = store_results(
        reading.results(),
        suite=suite,
        commit=commit,
        branch=branch,
        started=started,
        store=path,
        transcripts=not no_transcripts,
    )
    run = stored.run
    lines = [f"stored {plural(stored.trials, 'trial')} as run {run.key} of suite {run.suite}"]
    if not no_transcripts:
        lines[0] += f", with {plural(stored.transcripts, 'transcript')}"
    why = f" ({stored.why_named}; --name says otherwise)" if stored.why_named else ""
    lines.append(f"agent: {listed(stored.systems)}{why}")
    if not suite:
        lines.append("the suite is named after the file; --suite NAME puts several logs under one")
    if stored.verdict is not None and stored.verdict.sentence:
        lines.append(stored.verdict.sentence)
    if not quiet:
        click.echo(safe_lines("\n".join(lines)), err=True)
    keep_explanation(run.key, path)


@history.command("merge", cls=options.SectionedCommand)
@stores_argument
@_of_store
def merge_runs(path: Path | str, stores: tuple[Path | str, ...]) -> None:
    """Put the shards in STORES together as one run.

    Each machine runs a part with `passhat run --shard 3/10 --store part3.db`. Shards of different
    suites, seeds or options are refused, and so is a trial that occurs in two of them.

    \b
      passhat history merge part*.db
      passhat gate latest --require 'pass^3 >= 0.8'
    """
    merge_stores(stores, path)


def _change(path: Path | str, run: str, action: RunAction, text: str = "") -> None:
    """Do what a person asks with a run, and say so."""
    from passhat.journeys import change_run
    from passhat.reporters.formatting import safe_text

    sentence = change_run(run, action, text, store=path, on_note=say_note)
    click.echo(safe_text(sentence), err=True)


def _run_named(history: History, reference: str) -> Run:
    """The run of that name; a note says which one was taken of several."""
    from passhat.journeys.run_store import named_run_here

    named = named_run_here(history, reference)
    if named.note:
        say_note(named.note)
    return named.run


@click.command(cls=options.SectionedCommand, brief=["It is now: passhat trend [SUITE] --tasks"])
@options.stored_runs_options(last=FLAKY_LAST)
@options.output_options("flaky")
def flaky(
    suite: str | None, last: int, output: Output, **chosen: Unpack[options.StoredRunsOptions]
) -> None:
    """Which tasks passed and failed over the newest stored runs of a suite?"""
    from passhat.journeys import flaky_tasks

    output.write(flaky_tasks(suite, last=last, on_note=say_note, **chosen))


@click.command(
    cls=options.SectionedCommand,
    brief=[
        options.ONLY,
        "--k K                the k of pass^k and pass@k",
        f"--last N             how many of the newest runs ({LAST})",
        "--branch NAME        runs of this branch only",
        "--tasks              which tasks passed and failed instead",
        options.WRITE,
        options.JSON,
    ],
)
@options.stored_runs_options(last=LAST)
@click.option("--k", type=options.WholeNumber(min=1), help="The k of pass^k and pass@k.")
@click.option(
    "--tasks",
    "by_task",
    is_flag=True,
    help=f"Which tasks passed and failed over the newest runs ({FLAKY_LAST}, unless --last says "
    "otherwise)?",
)
@options.output_options("trend")
@click.pass_context
def trend(
    context: click.Context,
    /,
    suite: str | None,
    last: int,
    k: int | None,
    by_task: bool,
    output: Output,
    **chosen: Unpack[options.StoredRunsOptions],
) -> None:
    """What changed over time? The stored runs of a suite.

    \b
      passhat trend
      passhat trend support-suite --branch main -o trend.svg
      passhat trend --tasks

    Change points have a stated false-alarm rate. The trend says where pass@k rises while pass^k
    falls. With --tasks: the flaky tasks, which passed and failed over the runs; -v labels them.
    """
    from passhat import journeys
    from passhat.history.database import store_words
    from passhat.journeys import Results, flaky_tasks
    from passhat.journeys.stored_runs import verdict_of_results

    if by_task:
        if k is not None:
            raise click.UsageError("--tasks counts the trials of each task: leave out --k")
        if context.get_parameter_source("last") is click.core.ParameterSource.DEFAULT:
            last = FLAKY_LAST
        output.write(flaky_tasks(suite, last=last, on_note=say_note, **chosen))
        return
    if last < 2:
        raise click.BadParameter("must be at least 2, got 1", param_hint="'--last'")
    trends = journeys.trend(suite, last=last, k=k, on_note=say_note, **chosen)
    newest = Results(paths=(trends[0].points[-1].key,), store=chosen["store"])
    verdict = verdict_of_results(newest)
    if verdict is not None:
        verdict = verdict.about([trend.name for trend in trends], k=k)
    output.write(
        trends, store=store_words(chosen["store"]), narrowed=bool(chosen["only"]), verdict=verdict
    )
