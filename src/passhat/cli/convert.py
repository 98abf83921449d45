"""`passhat convert`: any result file as passhat's own JSON Lines, CSV or Parquet."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passhat.cli.options import (
    OUTPUT,
    Command,
    SectionedCommand,
    file_option,
    in_order,
    quiet_option,
    shared,
)
from passhat.cli.output import unwritable
from passhat.cli.reading import ReadingOptions, reading_options

if TYPE_CHECKING:
    from passhat.records import Trials

_PRINTED = ("as_json", "as_csv", "as_markdown")
_SUMMARIES = (".md", ".markdown")


def trials_output_options(command: Command) -> Command:
    """--json, --csv, --markdown, -o FILE and --quiet, passed on as `write(trials)`."""

    @functools.wraps(command)
    def with_write(**values: Any) -> Any:
        chosen = {name: values.pop(name) for name in (*_PRINTED, "paths_out", "quiet")}
        if sum(chosen[name] for name in _PRINTED) > 1:
            raise click.UsageError(
                "--json, --csv and --markdown cannot be used together; -o may name several files"
            )
        return command(write=functools.partial(write_everywhere, **chosen), **values)

    options = in_order(
        shared(OUTPUT, "--json", "as_json", is_flag=True, help="Print JSON Lines (the default)."),
        shared(OUTPUT, "--csv", "as_csv", is_flag=True, help="Print CSV."),
        shared(
            OUTPUT, "--markdown", "as_markdown", is_flag=True, help="Print a summary of the trials."
        ),
        file_option("Write to a file: .jsonl .csv .tsv .parquet, or .md for a summary."),
        quiet_option,
    )
    return options(with_write)


def write_everywhere(
    trials: Trials,
    *,
    as_json: bool,
    as_csv: bool,
    as_markdown: bool,
    paths_out: tuple[str, ...],
    quiet: bool,
) -> None:
    """Write the trials to files or standard output, and say so on standard error."""
    for name in paths_out:
        _save(trials, Path(name), quiet=quiet)
    if not paths_out or as_json or as_csv or as_markdown:
        form = "csv" if as_csv else "markdown" if as_markdown else "jsonl"
        click.echo(_rendered(trials, form), nl=False)


def _save(trials: Trials, path: Path, *, quiet: bool) -> None:
    from passhat.ingest.write import write_trials
    from passhat.messages import plural
    from passhat.reporters.formatting import safe_text

    what = plural(len(trials), "trial")
    try:
        if path.suffix.lower() in _SUMMARIES:
            path.write_text(_rendered(trials, "markdown"), encoding="utf-8", newline="\n")
            what = f"a summary of {what}"
        else:
            write_trials(trials, path)
    except OSError as error:
        raise unwritable(path, error, "-o") from error
    if not quiet:
        click.echo(safe_text(f"wrote {what} to {path}"), err=True)


def _rendered(trials: Trials, form: str) -> str:
    if form == "markdown":
        from passhat.reporters.rendering import render_markdown

        return render_markdown(trials)
    from passhat.ingest.write import render_csv, render_jsonl

    return render_csv(trials) if form == "csv" else render_jsonl(trials).decode()


@click.command(cls=SectionedCommand)
@click.option("--only", metavar="AGENT", multiple=True, help="Convert this agent's trials only.")
@trials_output_options
@reading_options()
def convert(
    reading: ReadingOptions, only: tuple[str, ...], write: Callable[[Trials], None]
) -> None:
    """Rewrite any result file as JSON Lines, CSV or Parquet.

    Reading the new file gives the same trials again.

    \b
      passhat convert logs/airline.eval -o airline.parquet
      passhat convert results.json --task id --pass ok --csv
    """
    from passhat.journeys.results import trials_of

    write(trials_of(reading.results(), only))
