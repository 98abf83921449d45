"""What to call systems that nothing but their files names: by the file, or by the folder.

`gpt.csv` and `claude.csv` are two systems. `0001.json` to `5000.json`, in which no run occurs
twice, are one system in pieces, called by its folder. `baseline/results.csv` and
`new/results.csv` are two systems again, and `run-1/results.csv` and `run-2/results.csv` two runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from passhat.ingest.small_files import FEWEST_ALIKE, Piece
from passhat.messages import plural, short

_FILE_NAME = "file name"
"""What a reader says of a system that it calls by the file."""

_RUN_WORDS = r"run|trial|seed|rep|repeat|repetition|epoch|attempt|iter|iteration|try|round"

# Folders of runs: run-3, seed_1, 0004, 2026-11-16T00-12-00. A model's name may end in a number too.
_RUN_FOLDER = re.compile(
    rf"(?:{_RUN_WORDS})?[ _-]?\d{{1,6}}|.*\d{{4}}-?\d\d-?\d\d.*", re.IGNORECASE
)
# Files of runs; a date in the name of a file may well be that of a model's release.
_RUN_FILE = re.compile(rf"(?:(?:{_RUN_WORDS})[ ._-]?)?\d{{1,9}}", re.IGNORECASE)
_PIECE_WORDS = (
    r"part|piece|shard|chunk|batch|split|slice|worker|rank|results?|outputs?|logs?|evals?|"
    r"rows?|records?|rollouts?|episodes?|samples?|tasks?|cases?|instances?|examples?|items?"
)
# Names that no system has: shard-00003, 17, 2026-11-16T00-12-00, 3f9c01b2, a UUID.
_PIECE_FILE = re.compile(
    rf"(?:(?:{_RUN_WORDS}|{_PIECE_WORDS})[ ._-]?)*"
    r"(?:\d[\dTZ:_.+-]*|[0-9a-f]{8,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
    re.IGNORECASE,
)
_TEST_REPORT = "TEST-"
"""How Surefire and others begin the name of a report on one class of tests."""

IN_PIECES = "folder name: {files} hold no run twice (named one by one, each is a system)"
NOT_SURE = (
    "no run occurs twice in these files: `name` reads them as one system in pieces, if that is "
    "what they are"
)


def name_systems(pieces: Sequence[Piece], folders: Mapping[int, str]) -> list[Piece]:
    """Call systems by a folder where their files alone do not tell them apart.

    `folders` has the inputs that are folders, by their place: files that were given one by one
    stay systems of their own, unless they have the same name.
    """
    return _name_pieces(_name_by_folder(pieces), folders)


def _name_by_folder(pieces: Sequence[Piece]) -> list[Piece]:
    """Call systems by folder where files of one name lie in several folders that are not runs.

    Folders that share no task are those of tasks. A copy of a file keeps its name, so that it is
    found out to be one.
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
        for place, folder in zip(places, folders, strict=True):
            if folder:  # one without lies above the others
                note = (
                    f'files called "{short(pieces[place].stem)}" lie in several folders: the '
                    "folder is taken for the system (`name` makes them one)"
                )
                named[place] = _renamed(pieces[place], folder, "folder name", note)
    return named


def _name_pieces(pieces: list[Piece], folders: Mapping[int, str]) -> list[Piece]:
    """Call the files of a folder by the folder where they are one system in pieces."""
    groups: dict[tuple[int, str], list[int]] = {}
    for place, piece in enumerate(pieces):
        if piece.given in folders and _called_by_file(piece):
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
                    pieces[place] = _with_note(pieces[place], NOT_SURE)
    return pieces


def _by_system(
    pieces: Sequence[Piece], group: Sequence[int], given: str
) -> Iterable[tuple[str, list[int]]]:
    """The files of a folder, apart by the folders in it if those are systems; with its name."""
    parts = _first_difference([Path(pieces[place].folder or "") for place in group])
    runs = all(map(_RUN_FOLDER.fullmatch, parts))
    if not parts or "" in parts or runs or not _share_tasks(pieces, group, parts):
        return [(Path(given).resolve().name or given, list(group))]
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
    """The first part of each path in which they are not all the same; empty if there is none."""
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


def _renamed(piece: Piece, folder: str, fact: str, note: str = "") -> Piece:
    table = piece.table
    columns = dict(table.columns)
    if "system" in columns:
        columns["system"] = [folder] * len(table)
    facts = {**table.read_as, "system": fact}
    notes = (*table.notes, note) if note else table.notes
    # Runs of a trial or two, each in a file with its number, may be the same to the byte.
    few = len(table) < FEWEST_ALIKE and _RUN_FILE.fullmatch(piece.stem)
    run = table.run or (piece.stem if few else None)
    table = replace(table, columns=columns, notes=notes, read_as=facts, run=run)
    return replace(piece, stem=folder, table=table)


def _with_note(piece: Piece, note: str) -> Piece:
    return replace(piece, table=replace(piece.table, notes=(*piece.table.notes, note)))
