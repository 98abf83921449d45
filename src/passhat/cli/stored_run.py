"""One run of a history store, where a command may read a log or a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passhat.cli.command_suggestions import is_there
from passhat.cli.store_option import POSTGRES

if TYPE_CHECKING:
    from passhat.analysis.reports.report import Report
    from passhat.cli.output import Output
    from passhat.history import History, Run
    from passhat.history.references import Found
    from passhat.records import Transcripts, Trials

_SQLITE = b"SQLite format 3\0"


def named_store(paths: tuple[str, ...]) -> Path | str | None:
    """The history store that was named instead of logs, if it was."""
    if len(paths) == 1 and paths[0].startswith(POSTGRES):
        return paths[0]
    if len(paths) != 1 or not is_there(paths[0]) or not (path := Path(paths[0])).is_file():
        return None
    with path.open("rb") as file:
        return path if file.read(len(_SQLITE)) == _SQLITE else None


def read_run(
    store: Path | str, run: str, *, transcripts: bool
) -> tuple[Trials, Transcripts | None]:
    """The trials of a run, and what was said in them if that is wanted."""
    from passhat.history import History
    from passhat.history.lookups import all_transcripts

    with History.open(store, read_only=True) as history:
        found = run_named(history, run)
        return history.trials(found), all_transcripts(history, found) if transcripts else None


def run_named(history: History, reference: str) -> Run:
    """The run of that name; where there were several to choose from, the choice is told."""
    from passhat.history.references import look_up

    return told(look_up(history, reference))


def told(found: Found) -> Run:
    """The run that was found, its note on standard error unless the command is to be quiet."""
    context = click.get_current_context(silent=True)
    if found.note and not (context and context.params.get("quiet")):
        from passhat.reporters.safe_text import safe_lines

        click.echo(safe_lines(found.note), err=True)
    return found.run


def page_format(
    trials: Trials, transcripts: Transcripts | None, output: Output
) -> dict[str, Callable[..., str]]:
    """How a report becomes a page that also shows what was said; tells what did not fit."""
    if not transcripts:
        return {}

    def render(report: Report, **advice: Any) -> str:
        from passhat.reporters.grid import render_html
        from passhat.reporters.page_transcripts import fit_transcripts

        fitted = fit_transcripts(report, transcripts, trials=trials)
        if fitted.left_out_note:
            output.say(fitted.left_out_note)
        first = min(1, int(trials.trial.min()))  # logs count from 0 or from 1
        return render_html(report, transcripts=fitted, first_trial=first, **advice)

    return {"html": render}


def wants_page(transcripts: bool, output: Output) -> bool:
    """Whether transcripts were asked for and there is a page to show them; says so if not."""
    page = any(name.lower().endswith((".html", ".htm")) for name in output.paths_out)
    if transcripts and not page:
        output.say("transcripts are shown on a page: add -o report.html")
    return transcripts and page
