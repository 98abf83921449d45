"""Many small files of one format: checked as one table, five times as fast as one by one."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any

from passhat.errors import ReadError
from passhat.fast_dataclass import dataclass
from passhat.ingest.assemble import assemble, source_of
from passhat.ingest.document import Document
from passhat.ingest.reader import Reader, TrialTable
from passhat.ingest.sources import Part
from passhat.records.column_names import ColumnMap

MOST_ROWS = 64
"""A file with more trials is checked by itself: there is little to save."""

FEWEST_FILES = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Piece:
    """What one file says, before it is checked; the file's content is not kept.

    `stem` is what to call its system where nothing else names it, `folder` where the file lies.
    """

    name: str
    stem: str
    folder: str | None
    sha256: str
    reader: Reader
    table: TrialTable
    given: int
    said: Sequence[str | None] = ()

    @classmethod
    def of(
        cls,
        document: Document,
        reader: Reader,
        table: TrialTable,
        given: int,
        said: Sequence[str | None] = (),
    ) -> Piece:
        return cls(
            name=document.name,
            stem=document.stem,
            folder=os.path.dirname(document.path) if document.path else None,  # noqa: PTH120 # of 5,000 files
            sha256=document.sha256,
            reader=reader,
            table=table,
            given=given,
            said=said,
        )

    @property
    def numbered(self) -> bool:
        """Whether the file itself numbers its trials."""
        return "trial" in self.table.columns

    def fingerprint(self) -> str:
        """The same for files that say the same of the same run and system."""
        table = self.table
        system = "" if table.columns.get("system") else self.stem
        digest = hashlib.sha256(f"{table.submission}/{table.run}/{system}".encode())
        for name, values in table.columns.items():
            digest.update(f"{name}={list(values)!r}".encode(errors="surrogatepass"))
        return digest.hexdigest()


def checked_parts(pieces: Sequence[Piece], mapping: ColumnMap) -> list[Part]:
    """The trials of all files, in their order; neighbours of one kind are checked together."""
    parts: list[Part] = []
    for _, group in itertools.groupby(pieces, key=_kind):
        parts += _together(list(group), mapping)
    return parts


def _kind(piece: Piece) -> tuple[Any, ...]:
    """What must be the same in files that are checked together."""
    table = piece.table
    alone = piece.sha256 if len(table) > MOST_ROWS else ""
    columns = frozenset(table.columns)
    return piece.reader.name, table.judged, table.graded, table.submission, columns, alone


def _together(pieces: list[Piece], mapping: ColumnMap) -> list[Part]:
    joined = None
    if len(pieces) >= FEWEST_FILES and _is_plain(mapping) and all(map(_counts_trials, pieces)):
        joined = _joined(pieces, mapping)
    if joined is None:  # one by one, so that an error or a note names its own file
        return [_alone(piece, mapping) for piece in pieces]
    return joined


def _alone(piece: Piece, mapping: ColumnMap) -> Part:
    trials = assemble(piece, piece.reader, piece.table, mapping)
    return Part(
        trials=trials,
        source=trials.sources[0],
        size=len(trials),
        given=piece.given,
        numbered=piece.numbered and "trial" not in mapping.left_out(),
        said=piece.said,
        submission=piece.table.submission,
    )


def _joined(pieces: list[Piece], mapping: ColumnMap) -> list[Part] | None:
    """All files as one table, held by the first part; None where something must be said of one."""
    first = pieces[0]
    columns = {name: list(_values(pieces, name)) for name in first.table.columns}
    columns["system"] = list(_systems(pieces))
    table = TrialTable(columns=columns, judged=first.table.judged, graded=first.table.graded)
    try:
        trials = assemble(first, first.reader, table, mapping)
    except ReadError:
        return None
    if trials.sources[0].notes:
        return None
    return [
        Part(
            trials=None if place else trials,
            source=source_of(piece, piece.reader, piece.table, mapping),
            size=len(piece.table),
            given=piece.given,
            numbered=piece.numbered,
            said=piece.said,
            submission=piece.table.submission,
        )
        for place, piece in enumerate(pieces)
    ]


def _is_plain(mapping: ColumnMap) -> bool:
    return mapping.name is None and mapping.pass_if is None and not mapping.left_out()


def _counts_trials(piece: Piece) -> bool:
    """Whether trials that are numbered have numbers alone: names mean more within one file."""
    return all(
        type(trial) is int or (isinstance(trial, str) and trial.isdecimal() and len(trial) < 18)
        for trial in piece.table.columns.get("trial", ())
    )


def _values(pieces: Sequence[Piece], name: str) -> Iterator[Any]:
    return itertools.chain.from_iterable(piece.table.columns[name] for piece in pieces)


def _systems(pieces: Sequence[Piece]) -> Iterator[Any]:
    for piece in pieces:
        yield from piece.table.columns.get("system") or [piece.stem] * len(piece.table)
