"""Some failures of a big dataset with their transcripts: the only transcripts that are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from passhat.dataclass import dataclass
from passhat.ingest.inputs import Input, as_inputs
from passhat.ingest.query_engines import dataset_files, duckdb_database, duckdb_names, has_duckdb
from passhat.ingest.remote import transcripts_beside
from passhat.ingest.transcript_shards import ROW_COLUMN, read_rows
from passhat.records.transcript import (
    MOST_OF_A_TASK,
    CleanTexts,
    Transcript,
    TranscriptKey,
    Transcripts,
)
from passhat.records.trial import first_number

_OWN_COLUMNS = {"system", "task", "trial", "outcome", ROW_COLUMN}

# For each task its first failures, with the file of trials and the row of the transcript. The
# engine holds a few rows a task, however many trials there are.
_CHOOSE = f"""
SELECT system, task, min_by({{'file': filename, 'trial': trial, 'row': {ROW_COLUMN}}}, trial, ?)
FROM read_parquet(?, filename = true)
WHERE outcome <> 'passed' AND {ROW_COLUMN} IS NOT NULL GROUP BY system, task ORDER BY system, task
"""  # noqa: S608  constants


@dataclass(frozen=True, slots=True, kw_only=True)
class SomeFailures:
    """Transcripts of some failures, and the number of a first trial: 0 or 1."""

    said: Transcripts
    first_trial: int


def failures_of_dataset(source: Input, *, most: int = MOST_OF_A_TASK) -> SomeFailures | None:
    """The first failures of each task; None of anything but a dataset with transcripts."""
    (given,) = as_inputs(source)
    if isinstance(given, bytes) or not (folder := Path(given)).is_dir() or not has_duckdb():
        return None
    files = duckdb_names(dataset_files(folder))
    cursor = duckdb_database().cursor()
    described = cursor.execute("DESCRIBE SELECT * FROM read_parquet(?)", [files]).fetchall()
    if not {name for name, *_ in described} >= _OWN_COLUMNS:
        return None
    places: dict[str, dict[TranscriptKey, int]] = {}
    for system, task, chosen in cursor.execute(_CHOOSE, [most, files]).fetchall():
        for one in chosen:
            places.setdefault(one["file"], {})[system, task, int(one["trial"])] = int(one["row"])
    first = cursor.execute("SELECT min(trial) FROM read_parquet(?)", [files]).fetchone()
    return SomeFailures(said=_read(places), first_trial=first_number(first or ()))


def _read(places: Mapping[str, Mapping[TranscriptKey, int]]) -> Transcripts:
    said: dict[TranscriptKey, str] = {}
    for file, rows in places.items():
        if (shard := transcripts_beside(Path(file))) is None:
            continue
        keys = sorted(rows, key=rows.__getitem__)
        texts = read_rows(shard, str(shard), [rows[key] for key in keys])
        found = zip(keys, texts, strict=True)
        said |= {key: Transcript.from_json(text).to_json() for key, text in found if text}
    return CleanTexts(said)
