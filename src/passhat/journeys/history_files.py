"""A stored run as a dataset: Parquet files, in a folder or an object store, for any engine."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passhat.defaults import STORE
from passhat.errors import ArgumentError, MissingExtra
from passhat.history import History
from passhat.journeys.results import Results, ResultsLike, as_results, renamed
from passhat.records import Transcripts, Trials

if TYPE_CHECKING:
    from passhat.history import Run

ROWS_OF_A_FILE = 250_000
"""Trials in one file: some megabytes, so that memory stays small and engines share the work."""


def is_url(place: Path | str) -> bool:
    """Whether a place is the address of a store of files rather than a path of this machine.

    >>> is_url("s3://evals/trials"), is_url("exports/trials")
    (True, False)
    """
    return "://" in str(place)


def export_dataset(
    history: History, run: Run, folder: Path | str, *, rows: int = ROWS_OF_A_FILE
) -> list[str]:
    """Write a run to `folder/suite=NAME/run=KEY/part-00000.parquet` and so on; returns the files.

    `folder` may be any address that fsspec knows: s3://, gs://, abfs://, sftp://. Trials that were
    added since the last time are written by exporting again: the files of a run are replaced.
    """
    inner = f"suite={_plain(run.suite)}/run={run.key}"
    tables = enumerate(_tables(history, run, rows))
    if not is_url(folder):
        home = Path(folder) / inner
        home.mkdir(parents=True, exist_ok=True)
        for old in home.glob("part-*.parquet"):
            old.unlink()
        return [_write(table, home / f"part-{number:05}.parquet") for number, table in tables]
    files, base = _file_system(str(folder))
    target = f"{base.rstrip('/')}/{inner}"
    files.makedirs(target, exist_ok=True)
    for known in files.glob(f"{target}/part-*.parquet"):
        files.rm_file(known)
    return [_put(files, table, f"{target}/part-{number:05}.parquet") for number, table in tables]


def _tables(history: History, run: Run, rows: int) -> Iterator[Trials]:
    """The trials of a run, some at a time."""
    from passhat.history.lookups import read_trials_from
    from passhat.records import Trials

    number = 0
    while found := read_trials_from(history, run, number, limit=rows):
        number = found[-1][0] + 1
        yield Trials.from_records([trial for _, trial in found], duplicates=None)


def _write(table: Trials, file: Path) -> str:
    from passhat.ingest import write_trials

    write_trials(table, file)
    return str(file)


def _put(files: Any, table: Trials, target: str) -> str:
    with tempfile.TemporaryDirectory(prefix="passhat-export-") as folder:
        made = _write(table, Path(folder) / "part.parquet")
        files.put_file(made, target)
    return str(files.unstrip_protocol(target))


def _file_system(folder: str) -> tuple[Any, str]:
    """The file system of a place, and the path in it."""
    try:
        import fsspec  # type: ignore[import-untyped,unused-ignore]  # an extra
    except ImportError:
        raise MissingExtra(f"exporting to {folder.partition('://')[0]}://", "cloud") from None
    try:
        files, base = fsspec.core.url_to_fs(folder)
    except (ImportError, ValueError) as error:
        raise ArgumentError("folder", f"cannot be reached ({error})", folder) from None
    return files, str(base)


def _plain(name: str) -> str:
    """A suite's name as part of a path: whatever else it holds becomes a dash."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "suite"


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
        run=run,
        trials=len(trials),
        transcripts=len(said),
        systems=trials.systems,
        why_named=why,
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
