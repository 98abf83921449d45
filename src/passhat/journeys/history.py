"""The history store: list, change, export its runs, add results, search transcripts."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from passhat import arguments
from passhat.arguments import STORE, whole_number
from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, PasshatError, ReadError
from passhat.history import History
from passhat.history.runs import RunAction, tagged_run
from passhat.ingest import remote
from passhat.journeys.results import (
    Results,
    ResultsLike,
    open_store,
    renamed,
    renamed_transcripts,
    trials_or_results,
)
from passhat.journeys.run_store import named_run_here, resume_newest
from passhat.messages import plural, quoted, short_repr
from passhat.records import Trials
from passhat.records.ledger import Row, RunList
from passhat.records.transcript import (
    KeptTranscript,
    TextSearch,
    TranscriptMatch,
    TranscriptMatches,
)
from passhat.records.trial import Outcome

if TYPE_CHECKING:
    from passhat.analysis.comparing.trends import RunVerdict
    from passhat.history import Run
    from passhat.records import Transcripts, Trial
    from passhat.records.ledger import ArtefactList

ROWS_OF_A_FILE = 250_000
"""Trials in one file: some megabytes, so that memory stays small and engines share the work."""


def export_run(
    run: str,
    place: Path | str,
    *,
    store: str | Path = STORE,
    transcripts: bool = False,
    on_note: Callable[[str], None] | None = None,
) -> list[str]:
    """Write the trials of a stored run to a .jsonl, .csv or .parquet file, or as a dataset.

    A dataset is a folder, or any address that fsspec knows: `export_dataset` says what is in it.
    Only a dataset can hold `transcripts`, and artefacts with them. Returns the files with trials.
    `on_note` is called with which run was taken if a name fits several.
    """
    from passhat.ingest.write import write_trials

    dataset = is_dataset(place)
    if transcripts and not dataset:
        raise ArgumentError("transcripts", "are exported to a folder, not to a file", str(place))
    with open_store(store) as history:
        named = named_run_here(history, run)
        if named.note and on_note is not None:
            on_note(named.note)
        if dataset:
            return export_dataset(history, named.run, place, transcripts=transcripts)
        trials = history.trials(named.run)
    write_trials(trials, place)
    return [str(place)]


def is_dataset(place: Path | str) -> bool:
    """Whether a run is written there as a dataset: to a folder or an address, not to a file.

    >>> is_dataset("s3://evals/trials"), is_dataset("trials.csv")
    (True, False)
    """
    return remote.is_url(place) or not Path(place).suffix


def export_dataset(
    history: History,
    run: Run,
    folder: Path | str,
    *,
    rows: int = ROWS_OF_A_FILE,
    transcripts: bool = False,
) -> list[str]:
    """Write a run to `folder/suite=NAME/run=KEY/part-00000.parquet` and so on; returns the files.

    `folder` may be any address that fsspec knows: s3://, gs://, abfs://, sftp://. Trials that were
    added since the last time are written by exporting again: the files of a run are replaced.
    With `transcripts`, `folder/_transcripts` has the transcripts, in files of the same names, and
    the column `transcript_row` of a trial is its row there; `folder/_artefacts` has the artefacts.
    """
    from passhat.history.artefacts import each_artefact

    inner = f"suite={_plain(run.suite)}/run={run.key}"
    target = _RemoteFolder(str(folder)) if remote.is_url(folder) else _LocalFolder(Path(folder))
    target.clear(inner)
    target.clear(f"{remote.FOLDER}/{inner}")
    target.clear(f"{remote.ARTEFACTS}/{inner}")
    written = []
    with tempfile.TemporaryDirectory(prefix="passhat-export-") as scratch:
        for number, trials in enumerate(_chunks(history, run, rows)):
            file = Path(scratch) / inner / f"part-{number:05}.parquet"
            made = _write_part(history, run, trials, file, transcripts)
            written += [target.put(file, str(file.relative_to(scratch))) for file in made]
        beside = Path(scratch) / remote.ARTEFACTS / inner / "part-00000.parquet"
        if transcripts and remote.write_artefacts(each_artefact(history.database, run), beside):
            target.put(beside, str(beside.relative_to(scratch)))
    return [name for name in written if f"/{remote.FOLDER}/" not in name]


class _LocalFolder:
    """A folder of this machine that a dataset is written to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def clear(self, inner: str) -> None:
        """Remove what an earlier export wrote to a folder."""
        home = self._folder / inner
        for old in home.glob("part-*.parquet"):
            old.unlink()
        with suppress(OSError):  # it was not there, or holds other files
            for empty in (home, *list(home.parents)[: len(Path(inner).parts) - 1]):
                empty.rmdir()

    def put(self, made: Path, name: str) -> str:
        """Move a file there, and return what it is called."""
        target = self._folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, target)
        return str(target)


class _RemoteFolder:
    """The same in an object store, by fsspec."""

    def __init__(self, folder: str) -> None:
        self._files, base = remote.file_system(folder)
        self._folder = base.rstrip("/")

    def clear(self, inner: str) -> None:
        for old in self._files.glob(f"{self._folder}/{inner}/part-*.parquet"):
            self._files.rm_file(old)

    def put(self, made: Path, name: str) -> str:
        target = f"{self._folder}/{name}"
        self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
        self._files.put_file(str(made), target)
        made.unlink()
        return str(self._files.unstrip_protocol(target))


def _chunks(history: History, run: Run, rows: int) -> Iterator[list[Trial]]:
    """The trials of a run, some at a time."""
    from passhat.history.queries import read_trials_from

    number = 0
    while numbered := read_trials_from(history, run, number, limit=rows):
        number = numbered[-1][0] + 1
        yield [trial for _, trial in numbered]


def _write_part(
    history: History, run: Run, trials: Sequence[Trial], file: Path, transcripts: bool
) -> list[Path]:
    """The files that one part of a run becomes: its trials, and its transcripts if it has any.

    Every part has the column of references, so that all have the same columns.
    """
    from passhat.ingest.write import write_parquet
    from passhat.records import Trials

    file.parent.mkdir(parents=True, exist_ok=True)
    table = Trials.from_records(trials, duplicates=None)
    if not transcripts:
        write_parquet(table, file)
        return [file]
    shard = Path(remote.shard_of(file))
    places = _write_transcripts(history, run, trials, shard)
    write_parquet(table, file, {remote.ROW_COLUMN: places})
    return [file, shard] if shard.exists() else [file]


def _write_transcripts(
    history: History, run: Run, trials: Sequence[Trial], shard: Path
) -> list[int | None]:
    """Write the transcripts of these trials; returns the row of each that has one."""
    from passhat.history.queries import transcripts_of
    from passhat.records.transcript import KeptTranscript

    outcomes = {trial.key: trial.outcome for trial in trials}
    rows: dict[tuple[str, str, int], int] = {}

    def kept() -> Iterator[KeptTranscript]:
        for key, text in transcripts_of(history, run, list(outcomes)):
            rows[key] = len(rows)
            yield KeptTranscript(key=key, outcome=outcomes[key], text=text)

    remote.write_shard(kept(), shard)
    return [rows.get(key) for key in outcomes]


def _plain(name: str) -> str:
    """A suite's name as part of a path: other characters become a dash."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "suite"


# The files that are kept of trials.


def list_artefacts(
    run: str,
    *,
    only: str | None = None,
    task: str | None = None,
    trial: int | None = None,
    folder: Path | str | None = None,
    store: str | Path = STORE,
    on_note: Callable[[str], None] | None = None,
) -> ArtefactList:
    """The files that are kept of a run's trials: diffs, logs, test reports, and those of `keep:`.

    `only` (an agent), `task` and `trial` narrow them; trials are counted from 1, as on pages. With
    a `folder`, which must be new or empty, they are written there, as `AGENT/TASK/TRIAL/NAME`.
    """
    from passhat.history import artefacts
    from passhat.history.queries import first_trial
    from passhat.records.ledger import ArtefactList

    home = None if folder is None else Path(folder)
    if home is not None and home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise ArgumentError("folder", "must be a new or an empty folder", str(folder))
    with open_store(store) as history:
        named = named_run_here(history, run)
        if named.note and on_note is not None:
            on_note(named.note)
        first = first_trial(history, named.run)
        counted = (
            replace(artefact, key=(*artefact.key[:2], artefact.key[2] - first + 1))
            for artefact in artefacts.list_artefacts(history.database, named.run)
        )
        wanted = (only, task, trial)
        chosen = [
            artefact
            for artefact in counted
            if all(w is None or w == k for w, k in zip(wanted, artefact.key, strict=True))
        ]
        names = {text: _plain(text) for artefact in chosen for text in artefact.key[:2]}
        for text in [text for text in names if [*names.values()].count(names[text]) > 1]:
            names[text] += f"-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        for file in chosen if home is not None else ():
            assert home is not None
            system, of, number = file.key
            parts = [part for part in file.name.split("/") if part not in ("", ".", "..")]
            place = Path(home, names[system], names[of], str(number), *parts)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(artefacts.read_artefact(history.database, file))
    return ArtefactList(run=named.run.key, files=tuple(chosen))


# Results in files of any tool, stored as runs.


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResults:
    """The stored run, what it holds, why its agent has its name, and what is said of the run."""

    run: Run
    trials: int
    transcripts: int
    systems: tuple[str, ...]
    why_named: str = ""
    verdict: RunVerdict | None = None

    def __repr__(self) -> str:
        transcripts = plural(self.transcripts, "transcript")
        head = f"StoredResults {self.run.key} of suite {quoted(self.run.suite)}"
        return short_repr(head, plural(self.trials, "trial"), transcripts, see=".run, .systems")


def store_results(
    results: ResultsLike,
    *,
    suite: str | None = None,
    store: str | Path = STORE,
    commit: str | None = None,
    branch: str | None = None,
    started: str | None = None,
    transcripts: bool = True,
) -> StoredResults:
    """Store results as a run of `suite` (by default the file's name), with their transcripts.

    Trials that were made in Python have no file: name their suite. `started` is a time such as
    "2026-11-16T09:30:00+00:00"; by default it is now.

    An agent that the log does not name would get the name of the file, and nightly logs a new agent
    each night. So it gets the name of the agent in the suite's newest run, if that has just one,
    else the name of the suite.
    """
    from passhat.history import Checkout
    from passhat.journeys.stored_runs import verdict_on

    _check_time(started)
    read, trials, texts = _read(results, transcripts=transcripts)
    kept_as = suite or _name_of_file(read)
    with History.open(store) as history:
        name, why = (None, "") if read is None else _agent_name(history, suite, trials, read)
        if name is not None:
            trials, texts = renamed(trials, name), renamed_transcripts(texts, name)
        run = history.start_run(
            kept_as,
            checkout=Checkout(commit=commit, branch=branch),
            sources=trials.sources,
            started=started,
        )
        try:
            history.add_trials(run, trials)
            history.add_transcripts(run, texts)
            history.add_labels(run, trials.labels())
            if read is not None and transcripts:
                _copy_artefacts(history, run, read, trials)
            run = history.finish_run(run)
        except BaseException:
            with suppress(PasshatError):  # half a run would be the newest one
                history.delete(run)
            raise
        verdict = None
        with suppress(PasshatError):  # it is stored, whatever is wrong with the runs before it
            verdict = verdict_on(history, run)
    return StoredResults(
        run=run,
        trials=len(trials),
        transcripts=len(texts),
        systems=trials.systems,
        why_named=why,
        verdict=verdict,
    )


def _copy_artefacts(history: History, run: Run, results: Results, trials: Trials) -> None:
    """Keep the artefacts of a dataset, which one run was exported to, with the run it becomes."""
    import os

    from passhat.history.artefacts import copy_artefacts
    from passhat.records.redaction import environment_redactor

    datasets = [path for path in results.paths if remote.is_url(path) or Path(path).is_dir()]
    name = trials.systems[0] if len(trials.systems) == 1 else None
    for number, (_, rows) in enumerate(
        row for path in datasets for row in remote.read_artefacts(path)
    ):
        if number and results.duplicates != "error":
            # The trials of several runs may have new numbers: which of them has a file is unknown.
            if results.on_note is not None:
                results.on_note(
                    "Only the artefacts of the first run are stored, because the trials of several "
                    "runs were put together: add one run at a time."
                )
            return
        own = ((replace(a, key=(name or a.key[0], *a.key[1:])), c) for a, c in rows)
        copy_artefacts(history.database, run, own, environment_redactor(os.environ).clean_file)


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
    read = trials_or_results(results)
    if not isinstance(read, Results):
        return None, read, {}
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


# The stored runs of a history store as a list.


NEWEST = 20
"""How many runs are listed by default."""


def list_runs(
    *,
    suite: str | None = None,
    branch: str | None = None,
    limit: int = NEWEST,
    store: str | Path = STORE,
) -> RunList:
    """The newest stored runs: which suite and commit they are of, and how often they passed."""
    from passhat.history.queries import RunFilter, count_runs

    with open_store(store) as history:
        runs = history.runs(suite=suite, branch=branch, limit=whole_number("limit", limit))
        rows = tuple(_row(run, history.pass_rates(run)) for run in runs)
        kept = count_runs(history, RunFilter(suite=suite, branch=branch))
    return RunList(rows, resume=resume_newest(runs, str(store)), kept=kept)


def _row(run: Run, rates: dict[str, float]) -> Row:
    return {
        "run": run.key,
        "suite": run.suite,
        "status": run.status,
        "stopped_early": run.stopped_early,
        "decided": run.options.get("decided", {}).get("word"),
        "owner": run.owner,
        "started": run.started,
        "commit": run.checkout.commit,
        "branch": run.checkout.branch,
        "dirty": run.checkout.dirty,
        "tags": list(run.tags),
        "systems": run.systems,
        "tasks": run.tasks,
        "trials": run.trials,
        "passed": run.passed,
        "errored": run.errored,
        "pass_rate": run.pass_rate,
        "pass_rates": rates,
    }


# What people do to a stored run, on the command line and on its page.


def change_run(
    run: str,
    action: RunAction,
    text: str = "",
    *,
    store: str | Path = STORE,
    by: str | None = None,
    was: str | None = None,
    on_note: Callable[[str], None] | None = None,
) -> str:
    """Tag, untag, note, rename or delete a stored run; returns a sentence that says so.

    `text` is the tag, the note, or the new name of its suite, and `was` the name that a person saw:
    if somebody else has changed it since, nothing is renamed. `by` is who asks, by default the user
    of this machine; `History.changes` tells it afterwards.
    """
    from passhat.history.runs import this_person

    arguments.word("action", action, get_args(RunAction))
    open_store(store).close()  # a store that is not there is an error, not a new store
    with History.open(store) as history:
        named = named_run_here(history, run)
        if named.note and on_note is not None:
            on_note(named.note)
        seen = named.run if was is None else replace(named.run, suite=was)
        return _change(history, seen, action, text, by or this_person())


def old_runs(days: int, *, store: str | Path = STORE) -> list[Run]:
    """The runs that have ended and began more than so many days ago, but none that has a tag."""
    limit = (datetime.now(UTC) - timedelta(days=days)).isoformat()
    with open_store(store) as history:
        runs = history.runs()
    return [r for r in runs if r.status != "running" and not r.tags and r.started < limit]


def _change(history: History, run: Run, action: RunAction, text: str, by: str) -> str:
    match action:
        case "tag":
            before = tagged_run(history, text, run.suite)
            history.tag(run, text, by=by)
            moved = "" if before is None or before.id == run.id else f", which was {before.key}"
            return f"{run.key} is now {text} of {run.suite}{moved}"
        case "untag":
            history.untag(run, text, by=by)
            return f"{run.key} is no longer {text}"
        case "note":
            history.note(run, text, by=by)
            return f"noted about {run.key}"
        case "rename":
            history.rename(run, text, by=by)
            return f"{run.key} is now a run of {text}"
        case "delete":
            history.delete(run, by=by)
            return f"deleted {run.key}" + (f", tagged {', '.join(run.tags)}" if run.tags else "")


# Search in what was said: the transcripts of a history store, or of an exported dataset.


MOST_MATCHES = 20
"""Matches after which a search ends, unless more are asked for."""

_RUN = re.compile(r"run=([^/\\]+)")

OutcomeWord = Literal["passed", "failed", "errored"]

_Found = tuple[str, int | None, KeptTranscript]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SearchedTrials:
    """Which trials to look at; what is None narrows nothing."""

    run: str | None
    system: str | None
    task: str | None
    outcome: Outcome | None

    def has(self, kept: KeptTranscript) -> bool:
        """Whether a transcript is of a trial to look at."""
        system, task, _ = kept.key
        pairs = ((self.system, system), (self.task, task), (self.outcome, kept.outcome))
        return all(wanted is None or wanted == actual for wanted, actual in pairs)


def search_transcripts(
    text: str,
    *,
    store: Path | str = STORE,
    dataset: Path | str | None = None,
    run: str | None = None,
    only: str | None = None,
    task: str | None = None,
    outcome: OutcomeWord | Outcome | None = None,
    limit: int = MOST_MATCHES,
) -> TranscriptMatches:
    """The first trials in which a text was said, in upper or lower case.

    `run`, `only` (an agent), `task` and `outcome` narrow the search. Of a store the newest run
    comes first. `dataset` is the folder or address that `export_run` wrote transcripts to, and
    takes the place of the store. One transcript after another is read: memory does not grow with
    their number.
    """
    wanted = _SearchedTrials(run=run, system=only, task=task, outcome=_outcome(outcome))
    limit = arguments.whole_number("limit", limit)
    search = TextSearch(text)
    source = _of_store(store, wanted) if dataset is None else _of_dataset(str(dataset), wanted)
    matches: list[TranscriptMatch] = []
    read = 0
    for run, first, kept in source:
        read += 1
        if excerpt := search.find(kept.text):
            if len(matches) == limit:
                return TranscriptMatches(wanted=text, matches=tuple(matches), read=read, more=True)
            system, task, trial = kept.key
            matches.append(
                TranscriptMatch(
                    run=run, system=system, task=task, trial=trial, outcome=kept.outcome,
                    number=None if first is None else trial - first + 1, excerpt=excerpt,
                )
            )  # fmt: skip
    return TranscriptMatches(wanted=text, matches=tuple(matches), read=read)


def _outcome(given: OutcomeWord | Outcome | None) -> Outcome | None:
    if given is None or isinstance(given, Outcome):
        return given
    return Outcome[arguments.word("outcome", given, get_args(OutcomeWord)).upper()]


def _of_store(store: Path | str, wanted: _SearchedTrials) -> Iterator[_Found]:
    """Each transcript with its run, and the number that its first trial has."""
    from passhat.history.queries import each_run, each_transcript, first_trial

    with open_store(store) as history:
        runs = (
            each_run(history) if wanted.run is None else [named_run_here(history, wanted.run).run]
        )
        for run in runs:
            first = first_trial(history, run)
            for kept in each_transcript(history, run, system=wanted.system, task=wanted.task):
                if wanted.has(kept):
                    yield run.key, first, kept


def _of_dataset(place: str, wanted: _SearchedTrials) -> Iterator[_Found]:
    if not remote.is_url(place) and not Path(place).is_dir():
        raise ArgumentError("dataset", "must be a folder or an address", place)
    any_hit = False
    for name, stream in remote.transcript_files(place):
        any_hit = True
        run = match[1] if (match := _RUN.search(name)) else ""
        if wanted.run is None or run.startswith(wanted.run):
            for kept in remote.scan_shard(stream, name, wanted.has):
                yield run, None, kept
    if not any_hit:
        raise ReadError(
            f"{place}: holds no transcripts; `passhat convert RUN -o {place} --transcripts` "
            "writes them"
        )
