"""Result files as a store of their own, for as long as somebody looks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from passhat.history import History
from passhat.records import Transcripts, Trials


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What was read from one path, what was said in it, and when it was written (ISO 8601)."""

    name: str
    written: str | None
    trials: Trials
    transcripts: Transcripts = field(default_factory=dict)


def keep_logs(logs: Iterable[Log], path: Path) -> None:
    """Each log becomes a finished run in a new store."""
    with History.open(path) as history:
        for log in logs:
            run = history.start_run(log.name, sources=log.trials.sources, started=log.written)
            history.add_trials(run, log.trials)
            history.add_transcripts(run, log.transcripts)
            history.finish_run(run)
