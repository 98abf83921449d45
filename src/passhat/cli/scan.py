"""`passhat scan`: are there secrets in these files?"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passhat.cli.exit_codes import ExitCode
from passhat.errors import PasshatError
from passhat.messages import plural

if TYPE_CHECKING:
    from passhat.records.redaction import Redactor

USUAL = (Path("cassettes"), Path("snapshots"), Path(".passhat"))
"""Where passhat writes, when no path is named."""


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def scan(context: click.Context, paths: tuple[Path, ...], as_json: bool) -> None:
    """Search PATHS (default: what passhat wrote here) for secrets.

    Found are the values of variables whose names end like MY_KEY or DB_PASSWORD, what the suite
    here refers to as a secret, and everything with the shape of a known kind of key. Compressed
    files, archives and SQLite stores are looked into. No secret is printed.

    \b
      passhat scan
      passhat scan cassettes .passhat report.html

    Exit codes: 0 nothing was found; 1 something was; 2 a path cannot be read.
    """
    from passhat.runner.leak_scan import scan_paths

    places = paths or tuple(path for path in USUAL if path.exists())
    found = list(dict.fromkeys(scan_paths(places, _redactor())))
    if as_json:
        rows = [{"path": str(f.path), "place": f.place, "what": f.what} for f in found]
        click.echo(json.dumps(rows, indent=2))
    else:
        for line in _lines(map(str, found)):
            click.echo(line)
    where = ", ".join(map(str, places)) or "nothing: passhat has written nothing here"
    click.echo(f"{plural(len(found), 'secret') if found else 'no secrets'} in {where}", err=True)
    if found:
        context.exit(ExitCode.FAIL)


def _redactor() -> Redactor:
    """The redactor of the suite here, where there is one; else of the environment."""
    from passhat.records.redaction import environment_redactor, suite_redactor
    from passhat.suite import find_suite, load_suite

    try:
        suite = load_suite(find_suite(Path()), models_asked=False)
    except PasshatError:
        return environment_redactor(os.environ)
    return suite_redactor(suite, os.environ)


def _lines(found: Iterator[str]) -> Iterator[str]:
    from passhat.reporters.safe_text import safe_text

    yield from map(safe_text, found)
