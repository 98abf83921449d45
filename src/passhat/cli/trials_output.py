"""Trials as the answer: JSON Lines on standard output, or files by their endings."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import click

from passhat.cli.options import Command

if TYPE_CHECKING:
    from passhat.records import Trials


def trials_output_options(command: Command) -> Command:
    """--json, --csv, -o FILE and --quiet, handed over as `write`, which takes the trials."""

    @functools.wraps(command)
    def with_write(**values: Any) -> Any:
        chosen = {name: values.pop(name) for name in ("as_csv", "paths_out", "quiet")}
        values.pop("as_json")  # JSON Lines are what is written anyway
        return command(write=functools.partial(write_everywhere, **chosen), **values)

    options = [
        click.option("--json", "as_json", is_flag=True, help="Print JSON Lines (the default)."),
        click.option("--csv", "as_csv", is_flag=True, help="Print CSV."),
        click.option(
            "-o",
            "--output",
            "paths_out",
            metavar="FILE",
            multiple=True,
            help="Write to a file: .jsonl .csv .tsv .parquet. May be repeated.",
        ),
        click.option("-q", "--quiet", is_flag=True, help="Say nothing on standard error."),
    ]
    decorated: Command = with_write
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


def write_everywhere(
    trials: Trials, *, as_csv: bool, paths_out: tuple[str, ...], quiet: bool
) -> None:
    """Put the trials where they were asked for, and say so on standard error."""
    from passhat.ingest.write import render_csv, render_jsonl, write_trials
    from passhat.reporters.numbers import plural
    from passhat.reporters.safe_text import safe_text

    for name in paths_out:
        try:
            write_trials(trials, name)
        except OSError as error:
            raise click.UsageError(f"-o {name}: {error.strerror or error}") from error
        if not quiet:
            click.echo(safe_text(f"wrote {plural(len(trials), 'trial')} to {name}"), err=True)
    if not paths_out:
        click.echo(render_csv(trials) if as_csv else render_jsonl(trials).decode(), nl=False)
