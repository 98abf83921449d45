"""What each file holds, and where trials came from: one source for each input and format."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path

from passhat.dataclass import dataclass
from passhat.errors import ReadError, UnknownFile
from passhat.ingest.inputs import Input
from passhat.ingest.reader import Reader, TrialTable
from passhat.messages import listed, plural
from passhat.records import Source, Trials
from passhat.records.columns import ColumnMap
from passhat.records.trial import LEFT_OUT, Facts

MOST_REASONS = 3
MOST_NAMES = 3

NO_TRANSCRIPTS = "this file holds no transcripts"

FEWEST_ALIKE = 3
"""Files of at least this many trials that hold the same trials are copies, whatever their bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """What a reader found in one file, not checked yet; the file's content is not kept.

    `stem` names its system if nothing else does; `folder` is the folder of the file.
    """

    name: str
    stem: str
    folder: str | None
    sha256: str
    reader: Reader
    table: TrialTable
    given: int
    said: Sequence[str | None] = ()

    def noted(self, note: str) -> Piece:
        """The same file with one more note."""
        return replace(self, table=replace(self.table, notes=(*self.table.notes, note)))

    @property
    def numbered(self) -> bool:
        """Whether the file itself numbers its trials."""
        return "trial" in self.table.columns

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
class CheckedPiece:
    """The checked trials of one file; `numbered` where the file itself numbers them.

    `trials` may include those of the files after it, whose pieces then have none; `size` is how
    many are its own. `given` is the place of the input that named it; `said` has the kept text of
    each trial's transcript, where transcripts were wanted. `submission` is the folder that holds
    all runs of one system, in formats that have such folders.
    """

    trials: Trials | None
    source: Source
    size: int
    given: int
    numbered: bool
    said: Sequence[str | None] = ()
    submission: str | None = None


def keep_submissions_apart(parts: Sequence[CheckedPiece]) -> list[CheckedPiece]:
    """Add the submission to the name of a system that several submissions have."""
    submissions: dict[str, set[str]] = {}
    for part in parts:
        for system in part.trials.systems if part.trials and part.submission else ():
            submissions.setdefault(system, set()).add(part.submission or "")
    shared = {system for system, folders in submissions.items() if len(folders) > 1}
    return [_called_by_submission(part, shared) for part in parts]


def _called_by_submission(part: CheckedPiece, shared: Set[str]) -> CheckedPiece:
    if part.trials is None or part.submission is None:
        return part
    system = part.trials.system
    if shared.isdisjoint(system.names):
        return part
    folder = Path(part.submission).name
    names = tuple(f"{name} ({folder})" if name in shared else name for name in system.names)
    return replace(part, trials=replace(part.trials, system=replace(system, names=names)))


def describe_sources(
    parts: Sequence[CheckedPiece],
    inputs: Sequence[Input],
    skipped: Mapping[int, Mapping[str, ReadError]],
    mapping: ColumnMap,
) -> tuple[Source, ...]:
    """One source for each input and format: the files of a folder count as one.

    A file that was given by itself keeps its name; what was found in a folder is called by the
    folder, and each note says which of its files it is about.
    """
    groups: dict[tuple[int, str], list[CheckedPiece]] = {}
    for part in parts:
        groups.setdefault((part.given, part.source.format), []).append(part)
    seen: set[int] = set()
    sources = []
    for (given, _), group in groups.items():
        left_out = {} if given in seen else skipped.get(given, {})
        seen.add(given)
        sources.append(_one_source(group, inputs[given], left_out, mapping))
    return tuple(sources)


def _one_source(
    group: Sequence[CheckedPiece],
    given: Input,
    skipped: Mapping[str, ReadError],
    mapping: ColumnMap,
) -> Source:
    own = [part.source for part in group]
    silent = _silent_note([part.said for part in group if part.said])
    last = [silent] if silent else []
    if len(own) == 1 and not skipped:
        return replace(own[0], notes=(*own[0].notes, *last))
    return Source(
        name=f"{_shown(given)} ({plural(len(own), 'file')})",
        format=own[0].format,
        sha256=own[0].sha256 if len(own) == 1 else _joint_hash(own),
        notes=(*_notes_by_file(own, given), *last, *_left_out(skipped, given, mapping)),
        read_as=_joint_facts(own),
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


def _joint_hash(sources: Iterable[Source]) -> str:
    return hashlib.sha256("\n".join(source.sha256 for source in sources).encode()).hexdigest()


def _notes_by_file(sources: Sequence[Source], given: Input) -> list[str]:
    """The notes on all files; a note that only some files have names them."""
    said: dict[str, list[str]] = {}
    for source in sources:
        for note in dict.fromkeys(source.notes):
            said.setdefault(note, []).append(_inside(source.name, given))
    everybody = len(sources) if len(sources) > 1 else 0
    return [
        note if len(names) == everybody else f"{listed(names, MOST_NAMES)}: {note}"
        for note, names in said.items()
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
    silent = sum(not any(said) for said in files)
    if not silent:
        return None
    several = len(files) > 1
    return f"{silent} of {len(files)} files hold no transcripts" if several else NO_TRANSCRIPTS
