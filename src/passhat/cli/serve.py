"""Results for a browser and for a coding agent: `passhat view` and `passhat mcp`."""

from __future__ import annotations

import os
import select
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Thread

import click

from passhat.cli.options import Number, SectionedCommand, WholeNumber, store_option
from passhat.cli.reading import ReadingOptions, reading_options
from passhat.errors import MissingExtra


@click.command(cls=SectionedCommand)
@store_option("The history to read.")
@click.option("--allow-runs", is_flag=True, help="Let the coding agent start runs.")
@click.option(
    "--max-cost",
    type=Number(min=0),
    default=1.0,
    metavar="DOLLARS",
    help="What a run that the coding agent starts may cost.",
)
@click.option(
    "--max-runs",
    type=WholeNumber(min=1),
    default=20,
    show_default=True,
    help="How many runs the coding agent may start.",
)
def mcp(store: Path | str, allow_runs: bool, max_cost: float, max_runs: int) -> None:
    """Serve results to a coding agent, as an MCP server over standard input and output.

    It reads the history and result files of this folder: reports, causes of failure, two trials
    side by side, comparisons, plans, verdicts. It runs nothing without --allow-runs.

    \b
      passhat mcp
      claude mcp add passhat -- passhat mcp
    """
    from passhat.mcp_server import PasshatTools, build_server

    tools = PasshatTools(
        store=store,
        folder=Path.cwd(),
        may_run=allow_runs,
        max_cost=max_cost,
        max_runs=max_runs,
    )
    build_server(tools).run()


_BACKGROUND_SECONDS = 1.0
"""Seconds between looks at whether the program is in the foreground again."""


@click.command(
    cls=SectionedCommand,
    brief=[
        "--port N             the port (a free one)",
        "--no-browser         only print the address",
        "--expose             let others in who have the token; needs --host",
    ],
)
@click.option("--host", default="127.0.0.1", help="The interface to listen on.")
@click.option("--port", type=WholeNumber(0, 65535), default=0, help="The port; 0 picks a free one.")
@click.option("--expose", is_flag=True, help="Let others in who have the token; needs --host.")
@click.option(
    "--token", envvar="PASSHAT_TOKEN", show_envvar=True, help="Your own token, for --expose."
)
@click.option(
    "--person-header",
    metavar="NAME",
    help="The header in which your proxy names the person; requests without it are refused.",
)
@click.option("--no-transcripts", is_flag=True, help="Do not read transcripts; opens faster.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@reading_options(required=False, stores=False)
def view(
    reading: ReadingOptions,
    host: str,
    port: int,
    expose: bool,
    token: str | None,
    person_header: str | None,
    no_transcripts: bool,
    no_browser: bool,
) -> None:
    """Look at everything that ran: overview, runs, tasks, transcripts, comparisons, trends.

    RESULTS is a history store, or logs of any tool, which are only read. Without RESULTS it is the
    history of this folder, .passhat/history.db. The printed address opens once, in one browser;
    Enter prints another. No other machine can reach it unless you --expose it.

    \b
      passhat view
      passhat view logs/airline.eval logs/retail.eval
      passhat view .passhat/history.db --port 8000
    """
    with ExitStack() as stack:
        store, title = _store(reading, stack, transcripts=not no_transcripts)
        try:
            from passhat.dashboard.server import serve
            from passhat.journeys.overview import ReportCache
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in ("starlette", "uvicorn"):
                raise MissingExtra("passhat view", "web") from error
            raise
        serve(
            ReportCache(store, title=title),
            host=host,
            port=port,
            exposed=expose,
            token=token,
            person_header=person_header,
            started=partial(_show_address, title, browser=not no_browser),
        )


def _store(
    reading: ReadingOptions, stack: ExitStack, *, transcripts: bool
) -> tuple[Path | str, str]:
    """The store to show, and its title; logs are read into a temporary store."""
    from passhat.history import DEFAULT_PATH, History
    from passhat.journeys import store_results
    from passhat.journeys.results import is_store

    named = len(reading.paths) == 1 and is_store(reading.paths[0])
    if named or not reading.paths:
        place = reading.paths[0] if named else DEFAULT_PATH
        with History.open(place, read_only=True) as history:
            return place, history.name
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="passhat-view-"))
    store = Path(folder) / "logs.db"
    for path in reading.paths:
        results, started = reading.results(path), _time_written(Path(path))
        store_results(results, store=store, started=started, transcripts=transcripts)
    return store, ", ".join(reading.paths)


def _time_written(file: Path) -> str | None:
    if not file.exists():
        return None
    written = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return written.isoformat(timespec="milliseconds")


def _show_address(
    title: str, address: str, renew: Callable[[], str] | None, *, browser: bool
) -> None:
    """Print the address to open, open it in the browser, and offer another one at Enter."""
    renewable = renew is not None and sys.stdin.isatty() and hasattr(os, "tcgetpgrp")
    keys = "Enter prints a new address, Ctrl-C ends it" if renewable else "Ctrl-C ends it"
    click.echo(f"Looking at {title}. Open this once ({keys}):\n  {address}", err=True)
    if renewable:
        Thread(target=_renew_at_enter, args=(renew,), daemon=True).start()
    if browser:
        click.launch(address)


def _renew_at_enter(renew: Callable[[], str]) -> None:
    """Print a new address whenever Enter is pressed, while this is the foreground program."""
    terminal = sys.stdin.fileno()
    while True:
        select.select([terminal], [], [])
        # Reading a terminal from the background would stop the whole process.
        if os.tcgetpgrp(terminal) != os.getpgrp():
            time.sleep(_BACKGROUND_SECONDS)
        elif os.read(terminal, 1024):
            click.echo(f"Open this once:\n  {renew()}", err=True)
        else:
            return  # Ctrl-D
