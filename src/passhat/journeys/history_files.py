"""Results in files of any tool, stored as runs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from passhat.arguments import STORE
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError
from passhat.history import History
from passhat.journeys.results import Results, ResultsLike, as_results, renamed, renamed_transcripts
from passhat.messages import plural, quoted, short_repr
from passhat.records import Trials

if TYPE_CHECKING:
    from passhat.history import Run
    from passhat.records import Transcripts


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResults:
    """The stored run, what it holds, and why its agent has its name."""

    run: Run
    trials: int
    transcripts: int
    systems: tuple[str, ...]
    why_named: str = ""

    def __repr__(self) -> str:
        said = plural(self.transcripts, "transcript")
        head = f"KeptResults {self.run.key} of suite {quoted(self.run.suite)}"
        return short_repr(head, plural(self.trials, "trial"), said, see=".run, .systems")


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
    """Store results as a run of `suite` (by default the file's name), with their transcripts.

    Trials that were made in Python have no file: name their suite. `started` is a time such as
    "2026-11-16T09:30:00+00:00"; by default it is now.

    An agent that the log does not name would get the name of the file, and nightly logs a new agent
    each night. So it gets the name of the agent in the suite's newest run, if that has just one,
    else the name of the suite.
    """
    from passhat.history import Checkout

    _check_time(started)
    read, trials, said = _read(results, transcripts=transcripts)
    kept_as = suite or _name_of_file(read)
    with History.open(store) as history:
        name, why = (None, "") if read is None else _agent_name(history, suite, trials, read)
        if name is not None:
            trials, said = renamed(trials, name), renamed_transcripts(said, name)
        run = history.start_run(
            kept_as,
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


def _check_time(started: str | None) -> None:
    """Refuse a time that would put the run in the wrong place of a trend."""
    try:
        if started is not None:
            datetime.fromisoformat(started)
    except (TypeError, ValueError):
        rule = "must be a time such as 2026-11-16T09:30:00+00:00"
        raise ArgumentError("started", rule, started) from None


def _read(results: ResultsLike, *, transcripts: bool) -> tuple[Results | None, Trials, Transcripts]:
    """Where the trials are from (None if they were handed in), the trials, and what was said."""
    if isinstance(results, Trials):
        return None, results, {}
    read = as_results(results)
    return read, *read.with_transcripts(wanted=transcripts)


def _name_of_file(results: Results | None) -> str:
    if results is None:
        raise ArgumentError("suite", "must name the suite of trials that come from no file", None)
    path = results.paths[0]
    return "standard input" if path == "-" else Path(path).stem


def _agent_name(
    history: History, suite: str | None, trials: Trials, results: Results
) -> tuple[str | None, str]:
    """What to call an agent that its log does not name, and why; None if the log names it."""
    files = {Path(path).name.partition(".")[0] for path in results.paths}
    unnamed = len(trials.systems) == 1 and trials.systems[0] in files
    if suite is None or results.names or not unnamed:
        return None, ""
    earlier = {
        tally.system for run in history.runs(suite=suite, limit=1) for tally in history.tallies(run)
    }
    if len(earlier) == 1:
        return earlier.pop(), "as in earlier runs of the suite"
    return suite, "the log names none"
