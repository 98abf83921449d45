"""A stored run as a dataset: a folder of Parquet files that any engine reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passhat.history import History, Run

ROWS_OF_A_FILE = 250_000
"""Trials in one file: some megabytes, so that memory stays small and engines share the work."""


def export_dataset(
    history: History, run: Run, folder: Path, *, rows: int = ROWS_OF_A_FILE
) -> list[Path]:
    """Write a run to `folder/suite=NAME/run=KEY/part-00000.parquet` and so on.

    Trials that were added since the last time are written by exporting again: the files of a run
    are replaced.
    """
    from passhat.history.lookups import read_trials_from
    from passhat.ingest import write_trials
    from passhat.records import Trials

    home = folder / f"suite={_plain(run.suite)}" / f"run={run.key}"
    home.mkdir(parents=True, exist_ok=True)
    for old in home.glob("part-*.parquet"):
        old.unlink()
    files: list[Path] = []
    number = 0
    while found := read_trials_from(history, run, number, limit=rows):
        number = found[-1][0] + 1
        files.append(home / f"part-{len(files):05}.parquet")
        table = Trials.from_records([trial for _, trial in found], duplicates=None)
        write_trials(table, files[-1])
    return files


def _plain(name: str) -> str:
    """A suite's name as part of a path: whatever else it holds becomes a dash."""
    return re.sub(r"[^\w.-]+", "-", name).strip(".-") or "suite"
