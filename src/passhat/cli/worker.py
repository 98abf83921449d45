"""`passhat worker`: run trials of runs that were started elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from passhat.cli.option_types import StoreType, WholeNumber
from passhat.errors import ArgumentError


@click.command()
@click.option("--store", type=StoreType(), required=True, help="The PostgreSQL store of the run.")
@click.option("--run", metavar="KEY", help="Only this run.  [default: any run that needs workers]")
@click.option("--concurrency", type=WholeNumber(min=1), help="Trials at a time.")
@click.option("--until-idle", is_flag=True, help="Stop when no run has work for 10 seconds.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def worker(
    store: Path | str, run: str | None, concurrency: int | None, until_idle: bool, quiet: bool
) -> None:
    """Run trials of runs that were started with `passhat run --executor workers`.

    Start as many as you like, on any machine that reaches the store and has the suite's folder. If
    a worker dies, the others run its trials again, and no stored answer is paid for twice.

    \b
      passhat worker --store postgresql://passhat@db.example/evals --concurrency 50
    """
    from passhat.history.database import is_postgres
    from passhat.journeys.workers import work
    from passhat.reporters.formatting import safe_text

    if not is_postgres(store):
        raise ArgumentError("--store", "must be a postgresql:// address", str(store))
    work(
        store,
        run=run,
        concurrency=concurrency,
        until_idle=until_idle,
        say=(lambda text: None) if quiet else (lambda text: click.echo(safe_text(text), err=True)),
    )
