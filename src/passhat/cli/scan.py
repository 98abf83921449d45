"""`passhat scan`: are there secrets in these files?"""

from __future__ import annotations

import json
from pathlib import Path

import click

from passhat.cli.exit_codes import ExitCode
from passhat.messages import plural


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def scan(context: click.Context, paths: tuple[Path, ...], as_json: bool) -> None:
    """Search PATHS (default: what passhat wrote here) for secrets.

    It finds the values of variables with names such as MY_KEY or DB_PASSWORD, the secrets that the
    suite in this folder refers to, and everything that looks like a known kind of key, also in
    compressed files, archives and SQLite stores. No secret is printed.

    \b
      passhat scan
      passhat scan cassettes .passhat report.html

    Exit codes: 0 nothing was found; 1 something was; 2 a path cannot be read.
    """
    from passhat.journeys import find_secrets
    from passhat.reporters.formatting import safe_text

    searched = find_secrets(paths)
    found, places = searched.secrets, searched.places
    if as_json:
        rows = [{"path": str(f.path), "place": f.place, "what": f.what} for f in found]
        click.echo(json.dumps(rows, indent=2))
    else:
        for one in found:
            click.echo(safe_text(str(one)))
    count = plural(len(found), "secret") if found else "no secrets"
    where = ", ".join(map(str, places)) or "this folder: passhat has written nothing here"
    click.echo(f"{count} in {where}", err=True)
    if found:
        context.exit(ExitCode.FAIL)
