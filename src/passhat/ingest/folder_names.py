"""What to call systems that no file names: by the folders that the files lie in."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from passhat.ingest.small_files import Piece
from passhat.messages import short

_FILE_NAME = "file name"
"""How a reader says that it named a system after the file."""

# Folders of runs: run-3, seed_1, 0004, 2026-11-16T00-12-00. A model's name may end in a number too.
_RUN_FOLDER = re.compile(
    r"(?:run|trial|seed|rep|repeat|repetition|epoch|attempt|iter|iteration|try|round)?[ _-]?\d{1,6}"
    r"|.*\d{4}-?\d\d-?\d\d.*",
    re.IGNORECASE,
)

_PLAIN_FOLDERS = frozenset(
    ("tasks", "cases", "instances", "results", "runs", "trials", "outputs", "logs", "data", "json")
)
"""Folders whose names say what lies in them, not what was run."""


def name_by_folder(pieces: Sequence[Piece]) -> list[Piece]:
    """The same files, their systems called by folder where their own names say nothing."""
    return _tell_folders_apart(_join_tasks(pieces))


def _join_tasks(pieces: Sequence[Piece]) -> list[Piece]:
    """Call files of one folder that hold one task each, and each another one, by their folder.

    `modelA/task-1.json` and `modelA/task-2.json` are two tasks of modelA, not two systems.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for place, piece in enumerate(pieces):
        if piece.folder is not None and _called_by_file(piece):
            groups.setdefault((piece.reader.name, piece.folder), []).append(place)
    named = list(pieces)
    joined = [places for places in groups.values() if _hold_a_task_each(pieces, places)]
    if any(len(places) > 1 for places in joined):
        note = (
            "each file holds another task: the folder is taken for the system (`name` renames it)"
        )
        for places in joined:
            system = _telling_folder(Path(pieces[places[0]].folder or ""))
            for place in places:
                named[place] = _renamed(pieces[place], system)
            named[places[0]] = _noted(named[places[0]], note)
    return named


def _hold_a_task_each(pieces: Sequence[Piece], places: Sequence[int]) -> bool:
    """Whether each file holds one task, and each another one; a single file is called like it."""
    tasks = [{str(task) for task in pieces[place].table.columns["task"]} for place in places]
    if any(len(own) > 1 for own in tasks):
        return False
    if len(places) == 1:
        return pieces[places[0]].stem in tasks[0]
    return len(set().union(*tasks)) == len(places)


def _telling_folder(folder: Path) -> str:
    """The name of the nearest folder that says more than "tasks" or "run-3"."""
    names = [name for name in folder.absolute().parts[::-1] if name.strip("/")]
    telling = (n for n in names if n.lower() not in _PLAIN_FOLDERS and not _RUN_FOLDER.fullmatch(n))
    return next(telling, names[0] if names else "files")


def _tell_folders_apart(pieces: Sequence[Piece]) -> list[Piece]:
    """Name systems after folders where several folders that are not runs have a file of one name.

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
        if all(map(_RUN_FOLDER.fullmatch, folders)) or not _share_tasks(pieces, places, folders):
            continue
        note = (
            f'files called "{short(pieces[places[0]].stem)}" lie in several folders: the folder is '
            "taken for the system (`name` makes them one)"
        )
        for place, folder in zip(places, folders, strict=True):
            if folder:  # else it lies above the others
                named[place] = _noted(_renamed(pieces[place], folder), note)
    return named


def _called_by_file(piece: Piece) -> bool:
    named = piece.table.read_as.get("system", piece.reader.reading.system)
    return "system" not in piece.table.columns or named == _FILE_NAME


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
    table = piece.table
    columns = dict(table.columns)
    if "system" in columns:
        columns["system"] = [folder] * len(table)
    table = replace(table, columns=columns, read_as={**table.read_as, "system": "folder name"})
    return replace(piece, stem=folder, table=table)


def _noted(piece: Piece, note: str) -> Piece:
    return replace(piece, table=replace(piece.table, notes=(*piece.table.notes, note)))
