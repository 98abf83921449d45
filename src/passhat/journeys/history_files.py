"""Results in files of any tool, kept as runs of a store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from passhat.defaults import STORE
from passhat.fast_dataclass import dataclass
from passhat.history import History
from passhat.journeys.results import Results, ResultsLike, as_results, renamed
from passhat.records import Transcripts, Trials

if TYPE_CHECKING:
    from passhat.history import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResults:
    """The run that was kept, what it holds, and why its agent is called so."""

    run: Run
    trials: int
    transcripts: int
    systems: tuple[str, ...]
    why_named: str = ""


def keep_results(
    results: ResultsLike,
    *,
    suite: str | None = None,
    store: str | Path = STORE,
    commit: str | None = None,
    branch: str | None = None,
    started: str | None = None,
    transcripts: bool = True,
) -> KeptResults:
    """Keep results as a run of `suite` (else the file's name), with what was said in each trial.

    A log that does not name its agent is read under the name of its file; nightly logs would then
    be a new agent each night. So such a log gets the agent of the suite's earlier runs, if there is
    just one, else the name of the suite.
    """
    from passhat.history import Checkout, History

    read = as_results(results)
    trials, said = read.with_transcripts() if transcripts else (read.trials(), {})
    with History.open(store) as history:
        name, why = _agent_name(history, suite, trials, read)
        if name is not None:
            trials = renamed(trials, name)
            said = {(name, task, trial): text for (_, task, trial), text in said.items()}
        run = history.start_run(
            suite or Path(read.paths[0]).stem,
            checkout=Checkout(commit=commit, branch=branch),
            sources=trials.sources,
            started=started,
        )
        history.add_trials(run, trials)
        history.add_transcripts(run, said)
        run = history.finish_run(run)
    return KeptResults(
        run=run, trials=len(trials), transcripts=len(said), systems=trials.systems, why_named=why
    )


def _agent_name(
    history: History, suite: str | None, trials: Trials, results: Results
) -> tuple[str | None, str]:
    """What to call an agent that its log does not name, and why; None where the log does."""
    files = {Path(path).name.partition(".")[0] for path in results.paths}
    unnamed = len(trials.systems) == 1 and trials.systems[0] in files
    if suite is None or results.names or not unnamed:
        return None, ""
    earlier = {
        tally.system for run in history.runs(suite=suite, limit=1) for tally in history.tallies(run)
    }
    if len(earlier) == 1:
        return earlier.pop(), " (as in earlier runs of the suite; --name says otherwise)"
    return suite, " (the log names none; --name says otherwise)"


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
