"""What to call systems that no file names: by the folders that the files are in.

`gpt.csv` and `claude.csv` are two systems. `0001.json` to `5000.json`, in which no run occurs
twice, are one system in pieces, named after its folder. `baseline/results.csv` and
`new/results.csv` are two systems again, and `run-1/results.csv` and `run-2/results.csv` two runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from passhat.ingest.reader import RUN_WORDS
from passhat.ingest.sources import FEWEST_ALIKE, Piece
from passhat.messages import plural, short

_FILE_NAME = "file name"
"""What a reader states as the system where it named it after the file."""

_FOLDER_NAME = "folder name"

# Folders of runs: run-3, seed_1, 0004, 2026-11-16T00-12-00. A model's name may end in a number too.
_RUN_FOLDER = re.compile(rf"(?:{RUN_WORDS})?[ _-]?\d{{1,6}}|.*\d{{4}}-?\d\d-?\d\d.*", re.IGNORECASE)
# Files of runs; a date in a file's name may be the date of a model's release.
_RUN_FILE = re.compile(rf"(?:(?:{RUN_WORDS})[ ._-]?)?\d{{1,9}}", re.IGNORECASE)
_PIECE_WORDS = (
    r"part|piece|shard|chunk|batch|split|slice|worker|rank|results?|outputs?|logs?|evals?|"
    r"rows?|records?|rollouts?|episodes?|samples?|tasks?|cases?|instances?|examples?|items?"
)
# Names that no system has: shard-00003, 17, 2026-11-16T00-12-00, 3f9c01b2, a UUID.
_PIECE_FILE = re.compile(
    rf"(?:(?:{RUN_WORDS}|{_PIECE_WORDS})[ ._-]?)*"
    r"(?:\d[\dTZ:_.+-]*|[0-9a-f]{8,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
    re.IGNORECASE,
)
_TEST_REPORT = "TEST-"
"""How Surefire and others begin the name of a report on one class of tests."""

_PLAIN_FOLDERS = frozenset(
    ("tasks", "cases", "instances", "results", "runs", "trials", "outputs", "logs", "data", "json")
)
"""Folders whose names say what is in them, not what was run."""


IN_PIECES = (
    "folder name: {files} hold no run twice (`name` renames it; named one by one, each is a system)"
)
NOT_SURE = (
    "no run occurs twice in these files: `name` reads them as one system in pieces, if that is "
    "what they are"
)


def name_by_folder(pieces: Sequence[Piece], folders: Mapping[int, str]) -> list[Piece]:
    """The same files, their systems called by folder where their own names say nothing.

    `folders` has the inputs that are folders, by their place: files that were given one by one
    stay systems of their own, unless they have the same name.
    """
    return _join_pieces(_tell_folders_apart(_join_tasks(pieces, folders)), folders)


def _join_tasks(pieces: Sequence[Piece], folders: Mapping[int, str]) -> list[Piece]:
    """Call files of one folder that hold one task each, and each another one, by their folder.

    `modelA/task-1.json` and `modelA/task-2.json` are two tasks of modelA, not two systems.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for place, piece in enumerate(pieces):
        if piece.given in folders and piece.folder is not None and _called_by_file(piece):
            groups.setdefault((piece.reader.name, piece.folder), []).append(place)
    named = list(pieces)
    joined = [places for places in groups.values() if _hold_a_task_each(pieces, places)]
    if any(len(places) > 1 for places in joined):
        note = (
            "each file holds another task, so the folder is read as the system (`name` renames it)"
        )
        for places in joined:
            system = _telling_folder(Path(pieces[places[0]].folder or ""))
            for place in places:
                named[place] = _renamed(pieces[place], system)
            named[places[0]] = named[places[0]].noted(note)
    return named


def _hold_a_task_each(pieces: Sequence[Piece], places: Sequence[int]) -> bool:
    """Whether each file holds one task, all different; a single file must have its task's name."""
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
    """Name systems after folders where files of one name are in several folders that are not runs.

    `baseline/results.csv` and `new/results.csv` are two systems, `run-1/results.csv` and
    `run-2/results.csv` two runs of one. Folders that share no task are folders of tasks. A copy
    of a file keeps its name, so that it is recognised as a copy.
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
            f'files called "{short(pieces[places[0]].stem)}" are in several folders, so the '
            "folder is read as the system (`name` makes them one)"
        )
        for place, folder in zip(places, folders, strict=True):
            if folder:  # else it is above the others
                named[place] = _renamed(pieces[place], folder).noted(note)
    return named


def _join_pieces(pieces: list[Piece], folders: Mapping[int, str]) -> list[Piece]:
    """Call the files of a folder by the folder if they are one system in pieces."""
    groups: dict[tuple[int, str], list[int]] = {}
    for place, piece in enumerate(pieces):
        renamed = piece.table.read_as.get("system") == _FOLDER_NAME
        if piece.given in folders and _called_by_file(piece) and not renamed:
            groups.setdefault((piece.given, piece.reader.name), []).append(place)
    for (given, _), group in groups.items():
        for folder, places in _by_system(pieces, group, folders[given]):
            files = [pieces[place] for place in places]
            if len({piece.stem for piece in files}) == 1:
                continue
            unique = _hold_no_run_twice(files)
            if (unique and _name_no_system(files)) or _are_runs(files):
                fact = IN_PIECES.format(files=plural(len(files), "file"))
                for place in places:
                    pieces[place] = _renamed(pieces[place], folder, fact)
            elif unique:
                for place in places:
                    pieces[place] = pieces[place].noted(NOT_SURE)
    return pieces


def _by_system(
    pieces: Sequence[Piece], group: Sequence[int], given: str
) -> Iterable[tuple[str, list[int]]]:
    """The files of each system: one for each folder inside if those are systems, else all."""
    parts = _first_difference([Path(pieces[place].folder or "") for place in group])
    runs = all(map(_RUN_FOLDER.fullmatch, parts))
    if not parts or "" in parts or runs or not _share_tasks(pieces, group, parts):
        return [(_telling_folder(Path(given).resolve()), list(group))]
    by_folder: dict[str, list[int]] = {}
    for place, part in zip(group, parts, strict=True):
        by_folder.setdefault(part, []).append(place)
    return by_folder.items()


def _hold_no_run_twice(files: Sequence[Piece]) -> bool:
    """Whether no task and run occurs in two files; without numbers, no task."""
    if len({piece.numbered for piece in files}) > 1:
        return False
    seen: set[tuple[str, str]] = set()
    for piece in files:
        columns = piece.table.columns
        tasks = [str(task) for task in columns["task"]]
        runs = map(str, columns["trial"]) if piece.numbered else [""] * len(tasks)
        own = set(zip(tasks, runs, strict=True))
        if not seen.isdisjoint(own):
            return False
        seen |= own
    return True


def _name_no_system(files: Sequence[Piece]) -> bool:
    """Whether the names of files are numbers, or those of tasks, or each holds but one trial."""
    return all(
        len(piece.table) == 1 or _PIECE_FILE.fullmatch(piece.stem) or _is_called_by_task(piece)
        for piece in files
    )


def _is_called_by_task(piece: Piece) -> bool:
    name = piece.stem.removeprefix(_TEST_REPORT)
    tasks = {str(task) for task in piece.table.columns["task"]}
    return all(name in task or task in name for task in tasks)


def _are_runs(files: Sequence[Piece]) -> bool:
    """Whether files that number no trials are called run-1, run-2, or 1, 2."""
    return not any(piece.numbered for piece in files) and all(
        _RUN_FILE.fullmatch(piece.stem) for piece in files
    )


def _called_by_file(piece: Piece) -> bool:
    named = piece.table.read_as.get("system", piece.reader.reading.system)
    return "system" not in piece.table.columns or named == _FILE_NAME


def _first_difference(folders: Sequence[Path]) -> list[str]:
    """The first part of each path where the paths differ; empty if they do not."""
    if len(set(folders)) < 2:
        return []
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


def _renamed(piece: Piece, folder: str, fact: str = _FOLDER_NAME) -> Piece:
    table = piece.table
    columns = dict(table.columns)
    if "system" in columns:
        columns["system"] = [folder] * len(table)
    # Runs of a trial or two, each in a file with its number, may be the same to the byte.
    few = len(table) < FEWEST_ALIKE and _RUN_FILE.fullmatch(piece.stem)
    run = table.run or (piece.stem if few else None)
    table = replace(table, columns=columns, read_as={**table.read_as, "system": fact}, run=run)
    return replace(piece, stem=folder, table=table)
