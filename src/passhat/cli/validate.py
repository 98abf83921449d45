"""`passhat validate`: everything that is wrong with suites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.exit_codes import ExitCode
from passhat.cli.options import SectionedCommand, file_option
from passhat.cli.output import Output, usual_endings

if TYPE_CHECKING:
    from passhat.records.suite import SuiteCheck

_ENDINGS = " ".join(usual_endings("validation"))


@click.command(cls=SectionedCommand)
@click.argument("suites", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@file_option(f"Also write to a file; its ending chooses the format: {_ENDINGS}. May be repeated.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a suite file, and exit.")
@click.pass_context
def validate(
    context: click.Context,
    suites: tuple[Path, ...],
    as_json: bool,
    paths_out: tuple[str, ...],
    schema: bool,
) -> None:
    """Check SUITES for errors (default: passhat.yml).

    \b
      passhat validate suites/*.yml -o faults.sarif

    Exit codes: 0 every suite is valid; 2 one is not.
    """
    if schema:
        from passhat.suite.reference import json_schema_text

        click.echo(json_schema_text(), nl=False)
        return
    from passhat.journeys import check_suites

    checks = check_suites(suites)
    if as_json:
        Output(format="json", paths_out=(), quiet=False).write(checks)
    else:
        for check in checks:
            _print_check(check)
    if paths_out:
        Output(format=None, paths_out=paths_out, quiet=False).write(checks)
    if not all(check.valid for check in checks):
        context.exit(ExitCode.USAGE)


def _print_check(check: SuiteCheck) -> None:
    from passhat.cli.error_messages import with_options
    from passhat.reporters.formatting import safe_text

    for fault in check.faults:
        click.echo(safe_text(check.line(fault)))
    if check.valid:
        click.echo(safe_text(f"{check.file}: valid: {check.size}"))
    for note in check.notes:
        said = with_options(note, {"runs": "--runs"})  # an option of `passhat run`
        click.echo(safe_text(f"{check.file}: {said}"), err=True)
