"""One run of a history store, where a command may read a log or a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passhat.records import Trials

_SQLITE = b"SQLite format 3\0"

Transcripts = Mapping[tuple[str, str, int], str]


def named_store(paths: tuple[str, ...]) -> Path | None:
    """The history store that was named instead of logs, if it was."""
    if len(paths) != 1 or not (path := Path(paths[0])).is_file():
        return None
    with path.open("rb") as file:
        return path if file.read(len(_SQLITE)) == _SQLITE else None


def read_run(store: Path, run: str, *, transcripts: bool) -> tuple[Trials, Transcripts | None]:
    """The trials of a run, and what was said in them if that is wanted."""
    from passhat.history import History
    from passhat.history.lookups import all_transcripts

    with History.open(store, read_only=True) as history:
        found = history.find_run(run)
        return history.trials(found), all_transcripts(history, found) if transcripts else None


def page_format(transcripts: Transcripts | None) -> dict[str, Callable[..., str]]:
    """How a report becomes a page that also shows what was said."""
    if not transcripts:
        return {}
    from passhat.reporters.html_page import render_html

    return {"html": partial(render_html, transcripts=transcripts)}
