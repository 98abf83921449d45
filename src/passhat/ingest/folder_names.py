"""Systems that nothing in their files names: told apart by folder where files share a name."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from passhat.ingest.small_files import Piece
from passhat.messages import short

FILE_NAME = "file name"
"""What a reader says of a system that it calls after the file."""

# Folders of runs: run-3, seed_1, 0004, 2026-11-16T00-12-00. A model's name may end in a number too.
_RUN = re.compile(
    r"(?:run|trial|seed|rep|repeat|repetition|epoch|attempt|iter|iteration|try|round)?[ _-]?\d{1,6}"
    r"|.*\d{4}-?\d\d-?\d\d.*",
    re.IGNORECASE,
)


def name_by_folder(pieces: Sequence[Piece]) -> list[Piece]:
    """Call systems by folder where files of one name lie in several folders that are not runs.

    `baseline/results.csv` and `new/results.csv` are two systems, `run-1/results.csv` and
    `run-2/results.csv` two runs of one. Folders that share no task are those of tasks. A copy of a
    file keeps its name, so that it is found out to be one.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for place, piece in enumerate(pieces):
        if piece.folder is not None and _called_by_file(piece):
            groups.setdefault((piece.reader.name, piece.stem), []).append(place)
    named = list(pieces)
    for places in groups.values():
        if len(places) == 1 or len({pieces[place].sha256 for place in places}) < len(places):
            continue
        folders = _first_difference([Path(pieces[place].folder or "") for place in places])
        if all(map(_RUN.fullmatch, folders)) or not _share_tasks(pieces, places, folders):
            continue
        for place, folder in zip(places, folders, strict=True):
            named[place] = _renamed(pieces[place], folder)
    return named


def _called_by_file(piece: Piece) -> bool:
    told = piece.table.read_as.get("system", piece.reader.reading.system)
    return "system" not in piece.table.columns or told == FILE_NAME


def _first_difference(folders: Sequence[Path]) -> list[str]:
    """The first part of each path in which they are not all the same; empty if there is none."""
    whole = [folder.absolute().parts for folder in folders]
    if len(set(whole)) < 2:
        return []
    shared = len(Path(os.path.commonpath([folder.absolute() for folder in folders])).parts)
    return [parts[shared] if len(parts) > shared else "" for parts in whole]


def _share_tasks(pieces: Sequence[Piece], places: Sequence[int], folders: Sequence[str]) -> bool:
    """Whether a task occurs in more than one folder."""
    home: dict[str, str] = {}
    return any(
        home.setdefault(str(task), folder) != folder
        for place, folder in zip(places, folders, strict=True)
        for task in pieces[place].table.columns.get("task", ())
    )


def _renamed(piece: Piece, folder: str) -> Piece:
    if not folder:  # it lies above the others
        return piece
    table = piece.table
    columns = dict(table.columns)
    if "system" in columns:
        columns["system"] = [folder] * len(table)
    note = (
        f'files called "{short(piece.stem)}" lie in several folders: the folder is taken for the '
        "system (`name` makes them one)"
    )
    facts = {**table.read_as, "system": "folder name"}
    table = replace(table, columns=columns, notes=(*table.notes, note), read_as=facts)
    return replace(piece, stem=folder, table=table)
