"""A stored run as a dataset: Parquet files, in a folder or an object store, for any engine."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passhat.arguments import STORE
from passhat.errors import ArgumentError
from passhat.ingest.remote import FOLDER, ROW_COLUMN, file_system, is_url, shard_of, write_shard
from passhat.journeys.results import open_store

if TYPE_CHECKING:
    from passhat.history import History, Run
    from passhat.records import Trial

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
    Only a dataset can hold `transcripts`. Returns the files with trials. `on_note` is called with
    which run was taken if a name fits several.
    """
    from passhat.history.runs import look_up
    from passhat.ingest.write import write_trials

    dataset = is_url(place) or not Path(place).suffix
    if transcripts and not dataset:
        raise ArgumentError("transcripts", "are exported to a folder, not to a file", str(place))
    with open_store(store) as history:
        found = look_up(history, run)
        if found.note and on_note is not None:
            on_note(found.note)
        if dataset:
            return export_dataset(history, found.run, place, transcripts=transcripts)
        trials = history.trials(found.run)
    write_trials(trials, place)
    return [str(place)]


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
    the column `transcript_row` of a trial is its row there.
    """
    inner = f"suite={_plain(run.suite)}/run={run.key}"
    target = _target(folder)
    target.clear(inner)
    target.clear(f"{FOLDER}/{inner}")
    written = []
    with tempfile.TemporaryDirectory(prefix="passhat-export-") as scratch:
        for number, trials in enumerate(_chunks(history, run, rows)):
            file = Path(scratch) / inner / f"part-{number:05}.parquet"
            made = _write_part(history, run, trials, file, transcripts)
            written += [target.put(file, str(file.relative_to(scratch))) for file in made]
    return [name for name in written if f"/{FOLDER}/" not in name]


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

    def __init__(self, files: Any, folder: str) -> None:
        self._files, self._folder = files, folder

    def clear(self, inner: str) -> None:
        for old in self._files.glob(f"{self._folder}/{inner}/part-*.parquet"):
            self._files.rm_file(old)

    def put(self, made: Path, name: str) -> str:
        target = f"{self._folder}/{name}"
        self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
        self._files.put_file(str(made), target)
        made.unlink()
        return str(self._files.unstrip_protocol(target))


def _target(folder: Path | str) -> _LocalFolder | _RemoteFolder:
    if not is_url(folder):
        return _LocalFolder(Path(folder))
    files, base = file_system(folder)
    return _RemoteFolder(files, base.rstrip("/"))


def _chunks(history: History, run: Run, rows: int) -> Iterator[list[Trial]]:
    """The trials of a run, some at a time."""
    from passhat.history.queries import read_trials_from

    number = 0
    while found := read_trials_from(history, run, number, limit=rows):
        number = found[-1][0] + 1
        yield [trial for _, trial in found]


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
    shard = Path(shard_of(file))
    places = _write_transcripts(history, run, trials, shard)
    write_parquet(table, file, {ROW_COLUMN: places})
    return [file, shard] if shard.exists() else [file]


def _write_transcripts(
    history: History, run: Run, trials: Sequence[Trial], shard: Path
) -> list[int | None]:
    """Write the transcripts of these trials; returns the row of each that has one."""
    from passhat.history.queries import transcripts_of
    from passhat.records.transcript import KeptTranscript

    outcomes = {(one.system, one.task, one.trial): one.outcome for one in trials}
    rows: dict[tuple[str, str, int], int] = {}

    def kept() -> Iterator[KeptTranscript]:
        for key, text in transcripts_of(history, run, list(outcomes)):
            rows[key] = len(rows)
            yield KeptTranscript(key=key, outcome=outcomes[key], text=text)

    write_shard(kept(), shard)
    return [rows.get(key) for key in outcomes]


def _plain(name: str) -> str:
    """A suite's name as part of a path: other characters become a dash."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "suite"
