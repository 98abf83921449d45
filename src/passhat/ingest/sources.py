"""From what the user names (files, folders, globs, `-`, bytes) to opened documents, and back.

What each file held, what to call systems that no file names, and where trials came from.
"""

from __future__ import annotations

import csv
import glob
import hashlib
import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, MissingExtra, PasshatError, ReadError, UnknownFile
from passhat.ingest.document import COMPRESSED_SUFFIXES, Document, Limits, listing_names, read_all
from passhat.ingest.readers import COMPANIONS, HIDDEN_RESULTS, RUN_WORDS, Reader, TrialTable
from passhat.ingest.remote import ARTEFACTS, is_url, local_copy
from passhat.ingest.remote import FOLDER as TRANSCRIPTS
from passhat.messages import few_paths, listed, plural, short, short_path
from passhat.records import Source, Trials
from passhat.records.columns import ColumnMap
from passhat.records.data_frames import refuse_frame
from passhat.records.trial import LEFT_OUT, Facts, first_ended

Input = str | os.PathLike[str] | bytes


class Recognise(Protocol):
    """Finds the reader of a document; a guess by the cells of its columns only if it is allowed."""

    def __call__(self, document: Document, *, guess: bool) -> Reader: ...


Known = tuple[Document, Reader]
STDIN = "-"

RESULT_SUFFIXES = (
    *(".eval", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".xml", ".trx", ".xlsx"),
)
"""The files that are looked at in a folder; a file that is given itself may be called anything."""


def as_inputs(given: Input | Sequence[Input]) -> list[Input]:
    """One input or several, as a list; what an address names is copied to this machine first."""
    rule = "must be paths, patterns or bytes"
    refuse_frame("source", rule, given)
    single = isinstance(given, (str, bytes, os.PathLike))
    several: list[Any] = list(given) if isinstance(given, Iterable) and not single else [given]
    if not several:
        raise ArgumentError("source", "must name at least one file", several)
    for item in several:
        if not isinstance(item, (str, bytes, os.PathLike)):
            refuse_frame("source", rule, item)
            raise ArgumentError("source", rule, item)
    return [local_copy(item) if is_url(item) else item for item in several]


def open_input(
    given: Input, recognise: Recognise, limits: Limits, skipped: dict[str, ReadError]
) -> Iterator[Known]:
    """Each document that one input names, with its reader.

    Files in a folder that no reader recognises are left out; `skipped` gets them, with the reason.
    """
    if isinstance(given, bytes) or given == STDIN:
        yield _open_bytes(given, recognise, limits)
        return
    for path in find_paths(given):
        if path.is_dir():
            yield from _open_folder(path, recognise, limits, skipped)
        else:
            document = Document(str(path), path=path, data=None, limits=limits)
            if is_archive(document):
                yield from _open_archive(document, recognise, skipped)
            elif is_spreadsheet(document.name):
                known = _open_sheets(document, partial(recognise, guess=True), skipped)
                if not known:
                    raise _nothing_readable(path, skipped)
                yield from known
            else:
                yield document, recognise(document, guess=True)


def is_archive(document: Document) -> bool:
    """Whether it is a zip or tar archive of files, and not a log or a spreadsheet in one."""
    if document.kind == "zip":
        with document.stream() as stream:
            own = ("header.json", "_journal/start.json", "xl/workbook", "content.xml", "word/")
            return not listing_names(document.name, stream, document.limits, *own)
    return document.is_tar()


def _open_archive(
    archive: Document, recognise: Recognise, skipped: dict[str, ReadError]
) -> Iterator[Known]:
    """Each result in an archive, read as in a folder, without unpacking it."""
    count = 0
    for member, data in archive.members():
        name = f"{archive.name}/{member}"
        if not _looks_like_results(member) or os.path.basename(member).startswith("."):  # noqa: PTH119
            continue
        try:
            document = Document(name, path=name, data=data, limits=archive.limits)
            reader = recognise(document, guess=False)
            if reader.reading.derived:
                raise ReadError(
                    f"{name}: was made by passhat from other results; unpack it to read it"
                )
        except ReadError as error:
            skipped[name] = error
            continue
        count += 1
        yield document, reader
    if not count:
        raise _nothing_readable(Path(archive.name), skipped)


def is_spreadsheet(name: str) -> bool:
    """Whether a file is one by its name."""
    return name.lower().endswith((".xlsx", ".xlsm"))


def _open_sheets(
    book: Document, recognise: Callable[[Document], Reader], skipped: dict[str, ReadError]
) -> list[Known]:
    """The sheets of a spreadsheet that are results, as if they were files of a folder.

    The only one of them is named as its file is.
    """
    known: list[Known] = []
    tables = _tables_in_sheets(book)
    for title, data in tables.items():
        name = f"{book.name}/{title}" if len(tables) > 1 else book.name
        sheet = Document(name, path=name, data=data, limits=book.limits)
        try:
            known.append((sheet, recognise(sheet)))
        except ReadError as error:
            skipped[name] = error
    if len(known) == 1 and len(tables) > 1:
        ((sheet, reader),) = known
        alone = Document(book.name, path=book.path, data=sheet.data, limits=book.limits)
        return [(alone, reader)]
    return known


def _tables_in_sheets(document: Document) -> dict[str, bytes]:
    """The tables in the sheets of a spreadsheet, as CSV, by the titles of the sheets."""
    name = document.name
    for _ in document.members():  # each is checked against the limits before a library opens it
        pass
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise ReadError(f"{name}: {MissingExtra('reading a spreadsheet', 'sheets')}") from None
    tables: dict[str, bytes] = {}
    try:
        with document.stream() as stream, warnings.catch_warnings(action="ignore"):
            book = load_workbook(stream, read_only=True, data_only=True)
            for sheet in book.worksheets:
                sheet.reset_dimensions()  # a file may state any
                if data := _sheet_as_csv(name, sheet.iter_rows(values_only=True), document.limits):
                    tables[sheet.title] = data
    except PasshatError:
        raise
    except Exception as error:  # it raises whatever broke in it
        why = " ".join(str(error.args[0] if error.args else error).split())[:100]
        raise ReadError(f"{name}: not a valid spreadsheet ({why})") from error
    if not tables:
        raise ReadError(f"{name}: no sheet of it holds a table")
    return tables


def _sheet_as_csv(name: str, rows: Iterable[Sequence[object]], limits: Limits) -> bytes:
    """The table of a sheet as CSV, each row on the line of its number; nothing if there is none.

    It begins with the first row of two cells: what stands above is a title.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    width = 0
    for row in rows:
        cells = [_cell_text(cell) for cell in row]
        while cells and not cells[-1]:
            cells.pop()
        width = width or (len(cells) if len(cells) > 1 else 0)
        if width and cells:
            writer.writerow([*cells, *[""] * (width - len(cells))])
        else:
            text.write("\n")
        limits.check_size(name, text.tell())
    return text.getvalue().rstrip("\n").encode() if width else b""


def _cell_text(cell: object) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))  # spreadsheets have no whole numbers
    return cell.isoformat() if isinstance(cell, date) else str(cell)


def find_paths(given: str | os.PathLike[str]) -> list[Path]:
    """The path itself where it exists; else what it matches as a glob, sorted."""
    if not os.fspath(given):
        raise ReadError("the name of a file is empty; is the variable that should hold it set?")
    path = Path(given)
    try:
        if path.exists():
            return [path]
        matches = sorted(glob.iglob(os.fspath(given), recursive=True))  # noqa: PTH207 # absolute too
    except (OSError, ValueError) as error:  # too long for a name, not permitted, or with a NUL
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise ReadError(f"{short_path(given)}: cannot be looked up ({why})") from error
    if not matches:
        is_pattern = glob.has_magic(os.fspath(given))
        why = "no file or folder matches this pattern" if is_pattern else "no such file or folder"
        raise ReadError(f"{short_path(given)}: {why}")
    return [Path(match) for match in matches]


def _open_bytes(given: Input, recognise: Recognise, limits: Limits) -> Known:
    """The document in bytes, or on standard input."""
    if isinstance(given, bytes):
        name, data = "input", given
    else:
        name, data = "stdin", read_all("standard input", sys.stdin.buffer, limits)
    document = Document(name, path=None, data=data, limits=limits)
    return document, recognise(document, guess=True)


def _open_folder(
    folder: Path, recognise: Recognise, limits: Limits, skipped: dict[str, ReadError]
) -> Iterator[Known]:
    count = 0
    name = str(folder)
    for guess in (False, True):  # beside known results, what may be some is a companion of them
        for document, reader in _walk(
            name, partial(recognise, guess=guess), limits, skipped, frozenset(), depth=1
        ):
            count += 1
            skipped.pop(document.name, None)
            limits.check_members(name, count + len(skipped))
            yield document, reader
        if count or not any(isinstance(fault, UnknownFile) for fault in skipped.values()):
            break
    if not count:
        raise _nothing_readable(folder, skipped)


def _nothing_readable(folder: Path, skipped: Mapping[str, ReadError]) -> ReadError:
    if not skipped:
        kinds = ", ".join(RESULT_SUFFIXES)
        return ReadError(f"{folder}: holds no result file that passhat can read ({kinds})")
    first = next(iter(skipped.values()))
    if len(skipped) == 1:
        return first
    return ReadError(
        f"{folder}: holds no result file that passhat can read; looked at {few_paths(skipped)}. "
        f"{first}"
    )


def _walk(
    folder: str,  # making a Path for each file takes as long as reading it
    recognise: Callable[[Document], Reader],
    limits: Limits,
    skipped: dict[str, ReadError],
    companions: frozenset[str],
    depth: int,
) -> Iterator[Known]:
    """The results in a folder and below; `companions` are names of files that belong to results."""
    limits.check_depth(folder, depth)
    files, folders = _entries(folder, limits)
    inside = "" if folder == os.curdir else os.path.join(folder, "")  # noqa: PTH118
    covered = False
    for name in files:
        if name in companions:  # belongs to a result, and is read when transcripts are wanted
            continue
        path = inside + name
        try:
            document = Document(path, path=path, data=None, limits=limits)
            if is_spreadsheet(name):
                yield from _open_sheets(document, recognise, skipped)
                continue
            reader = recognise(document)
            if reader.reading.derived:
                raise ReadError(
                    f"{path}: was made by passhat from other results; name the file to read it"
                )
        except ReadError as error:
            skipped[path] = error
            continue
        if reader.reading.companions:
            companions |= set(reader.reading.companions)
        covers = reader.reading.covers_subfolders
        covered = covered or (document.has(covers) if isinstance(covers, str) else covers)
        yield document, reader
    for name in companions.intersection(files):
        skipped.pop(inside + name, None)
    for name in [] if covered else folders:
        yield from _walk(inside + name, recognise, limits, skipped, companions, depth + 1)


def _entries(folder: str, limits: Limits) -> tuple[list[str], list[str]]:
    """The files that may be results, possible companions of results last; and the folders."""
    files: list[str] = []
    folders: list[str] = []
    try:
        listing = os.scandir(folder)
    except OSError as error:
        raise ReadError(f"{folder}: cannot be opened ({error.strerror or error})") from error
    with listing as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(".") and name not in HIDDEN_RESULTS:
                continue
            try:
                if entry.is_dir():
                    beside = name in (TRANSCRIPTS, ARTEFACTS)
                    followed = not entry.is_symlink() and not beside
                    folders += [name] if followed else []
                elif _looks_like_results(name) and entry.is_file():
                    files.append(name)
            except OSError:  # a link that leads to itself
                continue
            limits.check_members(folder, max(len(files), len(folders)))
    files.sort(key=lambda name: (name in COMPANIONS, name))
    return files, sorted(folders)


def _looks_like_results(name: str) -> bool:
    name = name.lower()
    for suffix in COMPRESSED_SUFFIXES:
        name = name.removesuffix(suffix)
    return name.endswith(RESULT_SUFFIXES)


FEWEST_ALIKE = 3
"""Files of at least this many trials that hold the same trials are copies, whatever their bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputPart:
    """What a reader found in one file, not checked yet; the file's content is not kept.

    `stem` names its system if nothing else does; `folder` is the folder of the file, `given` the
    place of the input that named it. `said` has the kept text of each trial's transcript, where
    transcripts were wanted.
    """

    name: str
    stem: str
    folder: str | None
    sha256: str
    reader: Reader
    table: TrialTable
    given: int
    texts: Sequence[str | None] = ()

    def noted(self, note: str) -> InputPart:
        """The same file with one more note."""
        return replace(self, table=replace(self.table, notes=(*self.table.notes, note)))

    @property
    def numbered(self) -> bool:
        """Whether the file itself numbers its trials."""
        return "trial" in self.table.columns

    @property
    def content(self) -> str:
        """The same for copies of a file, whatever their names; empty for a file of few trials.

        A log whose scores are conditions is there once for each of them.
        """
        if len(self.table) < FEWEST_ALIKE:
            return ""
        return f"{self.sha256} {self.table.columns.get('at', ('',))[0]}"

    @property
    def is_snapshot(self) -> bool:
        """Whether it is the tool's copy of its latest run."""
        return os.path.basename(self.name) in self.reader.reading.snapshots  # noqa: PTH119

    def fingerprint(self) -> str:
        """The same for files that hold the same trials of the same run and system.

        Runs of one or two trials often end alike, so such files must have the same bytes too.
        """
        table = self.table
        system = "" if table.columns.get("system") else self.stem
        own = self.sha256 if len(table) < FEWEST_ALIKE else ""
        digest = hashlib.sha256(f"{table.submission}/{table.run}/{system}/{own}".encode())
        for name, values in table.columns.items():
            digest.update(f"{name}={list(values)!r}".encode(errors="surrogatepass"))
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckedPart:
    """The checked trials of one file; `numbered` where the file itself numbers them.

    `trials` may include those of the files after it, whose parts then have none.
    """

    file: InputPart
    trials: Trials | None
    source: Source
    numbered: bool


# What to call systems that no file names: by the folders that the files are in.

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
    "folder name: {files} hold no trial twice (`name` renames it; named one by one, each is an "
    "agent)"
)
NOT_SURE = (
    "no trial occurs twice in these files: `name` reads them as one agent in pieces, if that is "
    "what they are"
)


def name_by_folder(pieces: Sequence[InputPart], folders: Mapping[int, str]) -> list[InputPart]:
    """The same files, their systems called by folder where their own names say nothing.

    `gpt.csv` and `claude.csv` are two systems. `0001.json` to `5000.json`, in which no run occurs
    twice, are one system in pieces, named after its folder. `baseline/results.csv` and
    `new/results.csv` are two systems again, and `run-1/results.csv` and `run-2/results.csv` two
    runs.

    `folders` has the inputs that are folders, by their place: files that were given one by one
    stay systems of their own, unless they have the same name.
    """
    return _join_pieces(_tell_folders_apart(_join_tasks(pieces, folders)), folders)


def _join_tasks(pieces: Sequence[InputPart], folders: Mapping[int, str]) -> list[InputPart]:
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
            "each file holds another task, so the folder is read as the agent (`name` renames it)"
        )
        for places in joined:
            system = _telling_folder(Path(pieces[places[0]].folder or ""))
            for place in places:
                named[place] = _renamed(pieces[place], system)
            named[places[0]] = named[places[0]].noted(note)
    return named


def _hold_a_task_each(pieces: Sequence[InputPart], places: Sequence[int]) -> bool:
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


def _tell_folders_apart(pieces: Sequence[InputPart]) -> list[InputPart]:
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
            "folder is read as the agent (`name` makes them one)"
        )
        for place, folder in zip(places, folders, strict=True):
            if folder:  # else it is above the others
                named[place] = _renamed(pieces[place], folder).noted(note)
    return named


def _join_pieces(pieces: list[InputPart], folders: Mapping[int, str]) -> list[InputPart]:
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
    pieces: Sequence[InputPart], group: Sequence[int], given: str
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


def _hold_no_run_twice(files: Sequence[InputPart]) -> bool:
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


def _name_no_system(files: Sequence[InputPart]) -> bool:
    """Whether the names of files are numbers, or those of tasks, or each holds but one trial."""
    for piece in files:
        name = piece.stem.removeprefix(_TEST_REPORT)
        tasks = {str(task) for task in piece.table.columns["task"]}
        called_by_task = all(name in task or task in name for task in tasks)
        if len(piece.table) > 1 and not called_by_task and not _PIECE_FILE.fullmatch(piece.stem):
            return False
    return True


def _are_runs(files: Sequence[InputPart]) -> bool:
    """Whether files that number no trials are called run-1, run-2, or 1, 2."""
    return not any(piece.numbered for piece in files) and all(
        _RUN_FILE.fullmatch(piece.stem) for piece in files
    )


def _called_by_file(piece: InputPart) -> bool:
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


def _share_tasks(
    pieces: Sequence[InputPart], places: Sequence[int], folders: Sequence[str]
) -> bool:
    """Whether a task occurs in more than one folder."""
    home: dict[str, str] = {}
    return any(
        home.setdefault(str(task), folder) != folder
        for place, folder in zip(places, folders, strict=True)
        for task in pieces[place].table.columns.get("task", ())
    )


def _renamed(piece: InputPart, folder: str, fact: str = _FOLDER_NAME) -> InputPart:
    table = piece.table
    columns = dict(table.columns)
    if "system" in columns:
        columns["system"] = [folder] * len(table)
    # Runs of a trial or two, each in a file with its number, may be the same to the byte.
    few = len(table) < FEWEST_ALIKE and _RUN_FILE.fullmatch(piece.stem)
    run = table.run or (piece.stem if few else None)
    table = replace(table, columns=columns, read_as={**table.read_as, "system": fact}, run=run)
    return replace(piece, stem=folder, table=table)


def keep_submissions_apart(parts: Sequence[CheckedPart]) -> list[CheckedPart]:
    """Add the submission to the name of a system that several submissions have."""
    submissions: dict[str, set[str]] = {}
    for part in parts:
        submission = part.file.table.submission
        for system in part.trials.systems if part.trials and submission else ():
            submissions.setdefault(system, set()).add(submission or "")
    shared = {system for system, folders in submissions.items() if len(folders) > 1}
    apart = []
    for part in parts:
        submission = part.file.table.submission
        if part.trials and submission and not shared.isdisjoint(part.trials.systems):
            labels, folder = part.trials.system, Path(submission).name
            names = tuple(f"{name} ({folder})" if name in shared else name for name in labels.names)
            trials = replace(part.trials, system=replace(labels, names=names))
            part = replace(part, trials=trials)
        apart.append(part)
    return apart


# Where trials came from: one source for each input and format.

MOST_REASONS = 3
MOST_NAMES = 3
NO_TRANSCRIPTS = "this file holds no transcripts"


def describe_sources(
    parts: Sequence[CheckedPart],
    inputs: Sequence[Input],
    skipped: Mapping[int, Mapping[str, ReadError]],
    mapping: ColumnMap,
) -> tuple[Source, ...]:
    """One source for each input and format: the files of a folder count as one.

    A file that was given by itself keeps its name; what was found in a folder is called by the
    folder, and each note says which of its files it is about.
    """
    groups: dict[tuple[int, str], list[CheckedPart]] = {}
    for part in parts:
        groups.setdefault((part.file.given, part.source.format), []).append(part)
    seen: set[int] = set()
    sources = []
    for (given, _), group in groups.items():
        left_out = {} if given in seen else skipped.get(given, {})
        seen.add(given)
        sources.append(_one_source(group, inputs[given], left_out, mapping))
    return tuple(sources)


def _one_source(
    group: Sequence[CheckedPart], given: Input, skipped: Mapping[str, ReadError], mapping: ColumnMap
) -> Source:
    own = [part.source for part in group]
    silent = _silent_note([part.file.texts for part in group if part.file.texts])
    last = [silent] if silent else []
    if len(own) == 1 and not skipped:
        return replace(own[0], notes=(*own[0].notes, *last))
    hashes = "\n".join(source.sha256 for source in own)
    return Source(
        name=f"{_shown(given)} ({plural(len(own), 'file')})",
        format=own[0].format,
        sha256=hashes if len(own) == 1 else hashlib.sha256(hashes.encode()).hexdigest(),
        notes=(*_notes_by_file(own, given), *last, *_left_out(skipped, given, mapping)),
        read_as=_joint_facts(own),
        scores=own[0].scores,
        ended=first_ended(source.ended for source in own),
    )


def _joint_facts(sources: Sequence[Source]) -> Facts:
    """How several files of one format were read; up to three ways where they differ."""
    ways: dict[str, dict[str, None]] = {}
    for facts in dict.fromkeys(source.read_as for source in sources):
        for part, words in facts:
            ways.setdefault(part, {})[words] = None
    joined = {part: listed(words, MOST_NAMES) for part, words in ways.items()}
    left_out = joined.pop(LEFT_OUT, None)
    return (*joined.items(), *([(LEFT_OUT, left_out)] if left_out else []))


def _notes_by_file(sources: Sequence[Source], given: Input) -> list[str]:
    """The notes on all files; a note that only some files have names them."""
    files_of: dict[str, list[str]] = {}
    for source in sources:
        for note in dict.fromkeys(source.notes):
            files_of.setdefault(note, []).append(_inside(source.name, given))
    everybody = len(sources) if len(sources) > 1 else 0
    return [
        note if len(names) == everybody else f"{listed(names, MOST_NAMES)}: {note}"
        for note, names in files_of.items()
    ]


def _left_out(skipped: Mapping[str, ReadError], given: Input, mapping: ColumnMap) -> Iterable[str]:
    """The files left out: those of unknown format together, the others with their reasons."""
    unknown: list[str] = []
    reasons: dict[str, list[str]] = {}
    for path, error in skipped.items():
        if isinstance(error, UnknownFile):
            unknown.append(_inside(path, given))
        else:
            reason = str(error).removeprefix(path).lstrip(":, ")
            reasons.setdefault(reason, []).append(_inside(path, given))
    if unknown:
        what = "that passhat cannot read" + (" or without the columns" if mapping.chosen() else "")
        yield f"{plural(len(unknown), 'file')} {what}, left out: {listed(unknown, MOST_NAMES)}"
    by_reason = list(reasons.items())
    for reason, names in by_reason[:MOST_REASONS]:
        yield f"left out: {listed(names, MOST_NAMES)}: {reason}"
    if more := [name for _, names in by_reason[MOST_REASONS:] for name in names]:
        yield f"left out, for other reasons: {listed(more, MOST_NAMES)}"


def _shown(given: Input) -> str:
    return "input" if isinstance(given, bytes) else os.fspath(given)


def _inside(path: str, given: Input) -> str:
    """A file's name within the folder that was given; the whole name of any other file."""
    folder = os.path.join(_shown(given), "")  # noqa: PTH118 # keeps the folder as it was written
    return path.removeprefix(folder)


def _silent_note(files: Sequence[Sequence[str | None]]) -> str | None:
    """A note on files without transcripts, where transcripts were wanted.

    >>> _silent_note([["hello"], [None], [None, None]])
    '2 of 3 files hold no transcripts'
    """
    silent = sum(not any(texts) for texts in files)
    if silent and len(files) > 1:
        return f"{silent} of {len(files)} files hold no transcripts"
    return NO_TRANSCRIPTS if silent else None
