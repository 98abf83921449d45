"""What goes on: `passhat view` in a browser, `mcp` for a coding agent, `watch` for alarms."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import click

from passhat.cli.options import (
    WHICH_COLUMNS,
    Number,
    SectionedCommand,
    Share,
    WholeNumber,
    refuse_typed,
    store_option,
)
from passhat.cli.output import write_whole
from passhat.cli.reading import ReadingOptions, reading_options
from passhat.errors import ExitCode, MissingExtra


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
        store=store, folder=Path.cwd(), may_run=allow_runs, max_cost=max_cost, max_runs=max_runs
    )
    build_server(tools).run()


_BACKGROUND_SECONDS = 1.0
"""Seconds between looks at whether the program is in the foreground again."""


@click.command(
    cls=SectionedCommand,
    brief=[
        "--store STORE        another history than that of this folder",
        "--port N             the port (a free one)",
        "--no-browser         only print the address",
        "--expose             let others in who have the token; needs --host",
    ],
)
@store_option("The history to show.")
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
@click.option(
    "--public-url",
    metavar="URL",
    help="Where people reach your proxy, such as https://evals.example/passhat.",
)
@click.option("--read-only", is_flag=True, help="Let nobody tag, note, label, rename or delete.")
@click.option("--no-transcripts", is_flag=True, help="Do not read transcripts; opens faster.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@reading_options(required=False, stores=False)
def view(
    reading: ReadingOptions,
    store: Path | str,
    host: str,
    port: int,
    expose: bool,
    token: str | None,
    person_header: str | None,
    public_url: str | None,
    read_only: bool,
    no_transcripts: bool,
    no_browser: bool,
) -> None:
    """Look at everything that ran: overview, runs, tasks, transcripts, comparisons, trends.

    RESULTS is a history store, or logs of any tool, which are only read. Without RESULTS it is the
    --store. The printed address opens once, in one browser; Enter prints another. No other machine
    can reach it unless you --expose it.

    \b
      passhat view
      passhat view logs/airline.eval logs/retail.eval
      passhat view .passhat/history.db --port 8000
    """
    if reading.paths:
        refuse_typed(click.get_current_context(), ["store"], "RESULTS is what is shown")
    with ExitStack() as stack:
        store, title = _store(reading, stack, default=store, transcripts=not no_transcripts)
        try:
            from passhat.dashboard.server import serve
            from passhat.journeys.overview import ReportCache
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in ("starlette", "uvicorn"):
                raise MissingExtra("passhat view", "web") from error
            raise
        serve(
            ReportCache(store, title=title, writable=not (read_only or _is_temporary(store))),
            host=host,
            port=port,
            exposed=expose,
            token=token,
            person_header=person_header,
            public_url=public_url,
            started=partial(_show_address, title, public_url, browser=not no_browser),
        )


_LOGS = "logs-to-view.db"


def _store(
    reading: ReadingOptions, stack: ExitStack, *, default: Path | str, transcripts: bool
) -> tuple[Path | str, str]:
    """The store to show, and its title; logs are read into a temporary store."""
    from passhat.history import History
    from passhat.journeys import store_results
    from passhat.journeys.results import is_store

    named = len(reading.paths) == 1 and is_store(reading.paths[0])
    if named or not reading.paths:
        place = reading.paths[0] if named else default
        with History.open(place, read_only=True) as history:
            return place, history.name
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="passhat-view-"))
    store = Path(folder) / _LOGS
    for path in reading.paths:
        results, started = reading.results(path), _time_written(Path(path))
        store_results(results, store=store, started=started, transcripts=transcripts)
    return store, ", ".join(reading.paths)


def _is_temporary(store: Path | str) -> bool:
    """Whether a store was made of logs: what is written into it would be lost."""
    return isinstance(store, Path) and store.name == _LOGS


def _time_written(file: Path) -> str | None:
    if not file.exists():
        return None
    written = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return written.isoformat(timespec="milliseconds")


def _show_address(
    title: str,
    public_url: str | None,
    address: str,
    renew: Callable[[], str] | None,
    *,
    browser: bool,
) -> None:
    """Print the address to open, open it in the browser, and offer another one at Enter.

    Through a proxy people need no token, and the log of a service is no place for one.
    """
    if public_url is not None:
        where = urlsplit(address)
        click.echo(
            f"Looking at {title}, for the proxy at {public_url} (Ctrl-C ends it):\n"
            f"  {where.scheme}://{where.netloc}",
            err=True,
        )
        if browser:
            click.launch(public_url)
        return
    renewable = renew is not None and sys.stdin.isatty() and hasattr(os, "tcgetpgrp")
    keys = "Enter prints a new address, Ctrl-C ends it" if renewable else "Ctrl-C ends it"
    once = "" if renew is None else " once"
    click.echo(f"Looking at {title}. Open this{once} ({keys}):\n  {address}", err=True)
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


class ReferenceType(click.ParamType[tuple[int | None, float | None]]):
    """So many trials, or a time such as 7d or 12h."""

    name = "N|TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value).strip()
        match = re.fullmatch(r"(\d{1,9})|(\d{1,4}(?:\.\d+)?)([hdw])", text)
        if match is None or not float(match[1] or match[2]):
            rule = "must be a number of trials, or a time such as 7d or 12h"
            self.fail(f"{rule}, got {text!r}", param, ctx)
        if match[1]:
            return int(match[1]), None
        return None, float(match[2]) * {"h": 1 / 24, "d": 1.0, "w": 7.0}[match[3]]


@click.command(
    cls=SectionedCommand,
    brief=[
        "--reference N|TIME   what is usual: the first N trials, or so long (7d)",
        "--false-alarms N     how many in 1,000 trials, at most (0.1)",
        "--margin SHARE       how much worse is no news (0)",
        "--grader FUNCTION    module:name that says of each trace whether it passed",
        "--webhook URL        post each alarm there",
        "--metrics FILE       write OpenMetrics there",
        "--once               judge what is there and end: exit code 1 at an alarm",
        WHICH_COLUMNS,
    ],
)
@click.option(
    "--reference",
    type=ReferenceType(),
    help="What is usual: the first N trials, or those of a time such as 7d, 12h.  "
    "[default: 1000 trials, over 7 days where they have times]",
)
@click.option(
    "--false-alarms",
    type=Number(min=0.0001, max=100),
    default=0.1,
    show_default=True,
    help="How many false alarms there may be in 1,000 trials.",
)
@click.option("--margin", type=Share(), help="How much worse an agent may get.")
@click.option(
    "--grader",
    metavar="MODULE:NAME",
    help="A function that says of each trace whether it passed, as `python:` in a suite does.",
)
@click.option(
    "--webhook",
    metavar="URL",
    envvar="PASSHAT_WEBHOOK",
    show_envvar=True,
    help="Post each alarm, and its end, there as JSON.",
)
@click.option(
    "--metrics", type=click.Path(dir_okay=False, path_type=Path), help="Write OpenMetrics there."
)
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What is known between starts.  [default: a file in .passhat]",
)
@click.option(
    "--every", type=Number(min=0.1), default=5.0, metavar="SECONDS", help="How often to look."
)
@click.option("--once", is_flag=True, help="Judge what is there and end; exit code 1 at an alarm.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@reading_options(stores=False, metavar="SOURCE")
def watch(
    reading: ReadingOptions,
    reference: tuple[int | None, float | None] | None,
    false_alarms: float,
    margin: float | None,
    grader: str | None,
    webhook: str | None,
    metrics: Path | None,
    state: Path | None,
    every: float,
    once: bool,
    as_json: bool,
) -> None:
    """Follow trials that keep coming, and say when an agent gets worse.

    SOURCE is a file that grows (JSONL, CSV, OpenTelemetry spans), a folder of logs, or a history
    store. The first trials are what is usual, hour by hour of the week where they last that long:
    daily and weekly cycles are no news. A start goes on where the last one ended. With --once the
    exit code is 1 as long as an alarm stands.

    \b
      passhat watch traces.jsonl --columns task=case,pass=ok --webhook URL
      passhat watch logs/ --reference 2000 --once
      passhat watch .passhat/history.db --metrics /var/lib/node_exporter/agent.prom
    """
    from passhat.cli.error_messages import in_options_of
    from passhat.forges import Webhook
    from passhat.journeys import watching
    from passhat.records.columns import ColumnMap
    from passhat.reporters.formats.ci import gauges
    from passhat.reporters.formatting import safe_text

    if len(reading.paths) != 1:
        raise click.UsageError("give one SOURCE: a file, a folder or a store")

    hook = None if webhook is None else Webhook(webhook)
    # A job that looks again and again is read only when there is something to tell.
    begun = Path(state or watching.state_path(reading.paths[0])).exists()
    tells_state = not (once and begun) or sys.stderr.isatty()

    alarmed = False  # now, or at some time of this look: a job must learn of both

    def on_status(watched: watching.Watch) -> None:
        nonlocal tells_state, alarmed
        if hook is not None:
            hook.post()
        if tells_state or (once and watched.alarmed and not alarmed):
            tells_state = False
            for line in watching.watch_summary(watched) or ["no trials yet"]:
                click.echo(safe_text(line), err=True)
        alarmed = alarmed or watched.alarmed
        if metrics is not None:
            samples = gauges(watching.watch_samples(watched), watching.GAUGES)
            write_whole(metrics, samples.encode())

    trials, days = reference or (None, None)
    command = click.get_current_context().command
    for event in watching.watch(
        reading.paths[0],
        mapping=ColumnMap(**reading.columns),
        format=reading.format,
        grader=grader,
        reference=trials,
        days=days,
        false_alarms=false_alarms,
        margin=margin or 0.0,
        state=state,
        seconds=every,
        once=once,
        on_status=on_status,
    ):
        tells_state = False  # the event says it
        event = replace(event, sentence=in_options_of(event.sentence, command))
        fields = {key: value for key, value in asdict(event).items() if value not in (None, "", ())}
        if as_json:
            click.echo(json.dumps(fields))
        else:
            mark = {"alarm": "ALARM  ", "recovered": "OK     "}.get(event.kind, "       ")
            sentence = safe_text(event.sentence)
            # A log has one line an event; on a terminal it is as wide as that.
            width = shutil.get_terminal_size((len(mark) + len(sentence), 0)).columns
            click.echo(
                textwrap.fill(
                    sentence, width, initial_indent=mark, subsequent_indent=" " * len(mark)
                )
            )
        if event.kind in ("alarm", "recovered"):
            alarmed = alarmed or event.kind == "alarm"
            if hook is not None and (problem := hook.post(fields)) is not None:
                click.echo(f"note: {problem}", err=True)
    if alarmed:
        raise click.exceptions.Exit(ExitCode.FAIL)
