"""From what the user names (files, folders, globs, `-`, bytes) to opened documents."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

from passhat.errors import ArgumentError, ReadError
from passhat.ingest.compressed import read_all
from passhat.ingest.document import COMPRESSED_SUFFIXES, Document
from passhat.ingest.limits import Limits
from passhat.ingest.reader import Reader
from passhat.ingest.readers import COMPANIONS, HIDDEN_RESULTS
from passhat.ingest.remote import is_url, local_copy
from passhat.ingest.transcript_shards import FOLDER as TRANSCRIPTS
from passhat.messages import few_paths, short_path
from passhat.records.data_frames import refuse_frame

Input = str | os.PathLike[str] | bytes
Recognise = Callable[[Document], Reader]
Known = tuple[Document, Reader]
Item = TypeVar("Item")

STDIN = "-"
RESULT_SUFFIXES = (".eval", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".xml")
"""The files that are looked at in a folder; a file that is given itself may be called anything."""


def as_inputs(given: Input | Sequence[Input]) -> list[Input]:
    """One input or several, as a list; what an address names is copied to this machine first."""
    rule = "must be paths, patterns or bytes"
    refuse_frame("source", rule, given)
    single = isinstance(given, (str, bytes, os.PathLike))
    several: list[Any] = list(given) if isinstance(given, Iterable) and not single else [given]
    if not several:
        raise ArgumentError("source", "must name at least one file", several)
    for one in several:
        if not isinstance(one, (str, bytes, os.PathLike)):
            refuse_frame("source", rule, one)
            raise ArgumentError("source", rule, one)
    return [local_copy(one) if is_url(one) else one for one in several]


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
            yield document, recognise(document)


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
    return document, recognise(document)


def _open_folder(
    folder: Path, recognise: Recognise, limits: Limits, skipped: dict[str, ReadError]
) -> Iterator[Known]:
    count = 0
    name = str(folder)
    for document, reader in _walk(name, recognise, limits, skipped, frozenset(), depth=1):
        count += 1
        limits.check_members(name, count + len(skipped))
        yield document, reader
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
    recognise: Recognise,
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
    with _listing(folder) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(".") and name not in HIDDEN_RESULTS:
                continue
            try:
                if entry.is_dir():
                    followed = not entry.is_symlink() and name != TRANSCRIPTS
                    folders += [name] if followed else []
                elif _looks_like_results(name) and entry.is_file():
                    files.append(name)
            except OSError:  # a link that leads to itself
                continue
            if max(len(files), len(folders)) > limits.max_members:
                limits.check_members(folder, max(len(files), len(folders)))
    files.sort(key=lambda name: (name in COMPANIONS, name))
    return files, sorted(folders)


def _listing(folder: str) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    try:
        return os.scandir(folder)
    except OSError as error:
        raise ReadError(f"{folder}: cannot be opened ({error.strerror or error})") from error


def _looks_like_results(name: str) -> bool:
    name = name.lower()
    for suffix in COMPRESSED_SUFFIXES:
        name = name.removesuffix(suffix)
    return name.endswith(RESULT_SUFFIXES)
