"""Many small files of one format: checked as one table, five times as fast as one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from passhat.errors import ReadError
from passhat.ingest.assemble import assemble, source_of
from passhat.ingest.reader import TrialTable
from passhat.ingest.sources import CheckedPiece, Piece
from passhat.records import Source, Trials
from passhat.records.columns import ColumnMap
from passhat.records.tally import Labels

MOST_ROWS = 64
"""A file with more trials is checked by itself: there is little to save."""

FEWEST_FILES = 8

_DECISIVE = ("trial", "score", "passed", "outcome")
"""Files that do not agree in having these are read in different ways; others may be missing."""


def checked_parts(pieces: Sequence[Piece], mapping: ColumnMap) -> list[CheckedPiece]:
    """The trials of all files, in their order; neighbours of one kind are checked together."""
    parts: list[CheckedPiece] = []
    for _, group in itertools.groupby(pieces, key=_kind):
        parts += _together(list(group), mapping)
    return parts


def _kind(piece: Piece) -> tuple[Any, ...]:
    """What must be the same in files that are checked together."""
    table = piece.table
    alone = piece.sha256 if len(table) > MOST_ROWS else ""
    columns = [name in table.columns for name in _DECISIVE]
    return piece.reader.name, table.judged, table.graded, table.submission, *columns, alone


def _together(pieces: list[Piece], mapping: ColumnMap) -> list[CheckedPiece]:
    several = len(pieces) >= FEWEST_FILES and _may_join(pieces, mapping)
    joined = _joined(pieces, mapping) if several else None
    # Else one by one, so that an error or a note names its file.
    return joined or [_alone(piece, mapping) for piece in pieces]


def _alone(piece: Piece, mapping: ColumnMap) -> CheckedPiece:
    trials = assemble(piece, mapping)
    return _part(piece, mapping, trials, trials.sources[0])


def _part(piece: Piece, mapping: ColumnMap, trials: Trials | None, source: Source) -> CheckedPiece:
    return CheckedPiece(
        trials=trials,
        source=source,
        size=len(piece.table),
        given=piece.given,
        numbered=piece.numbered and "trial" not in mapping.left_out(),
        said=piece.said,
        submission=piece.table.submission,
    )


def _joined(pieces: list[Piece], mapping: ColumnMap) -> list[CheckedPiece] | None:
    """All files as one table, on the first part; None if one of them needs a note."""
    first = pieces[0]
    names = dict.fromkeys(name for piece in pieces for name in piece.table.columns)
    columns = {name: list(_values(pieces, name)) for name in names}
    columns["system"] = [name for piece in pieces for name in _systems(piece, mapping)]
    table = TrialTable(columns=columns, judged=first.table.judged, graded=first.table.graded)
    try:
        trials = assemble(replace(first, table=table), replace(mapping, name=None, system=None))
    except ReadError:
        return None
    if trials.sources[0].notes:
        return None
    if mapping.name is not None:
        codes = np.zeros(len(trials), dtype=np.int32)
        trials = replace(trials, system=Labels((mapping.name,), codes))
    sources = (source_of(piece, mapping) for piece in pieces)
    return [
        _part(piece, mapping, trials if piece is first else None, source)
        for piece, source in zip(pieces, sources, strict=True)
    ]


def _may_join(pieces: Sequence[Piece], mapping: ColumnMap) -> bool:
    """Whether no rule looks at all trials of a file together."""
    if mapping.family_pattern is not None:
        return False
    if mapping.pass_if is not None and not all(piece.table.judged for piece in pieces):
        return False
    if mapping.name is not None and any(_has_several(piece, mapping) for piece in pieces):
        return False
    return all(map(_counts_trials, pieces))


def _has_several(piece: Piece, mapping: ColumnMap) -> bool:
    return len({str(name).strip() for name in _systems(piece, mapping)}) > 1


def _counts_trials(piece: Piece) -> bool:
    """Whether trials have plain numbers: what other names mean depends on the whole file."""
    return all(
        type(trial) is int or (isinstance(trial, str) and trial.isdecimal() and len(trial) < 18)
        for trial in piece.table.columns.get("trial", ())
    )


def _values(pieces: Sequence[Piece], name: str) -> Iterator[Any]:
    nothing = () if name in ("tags", "tools") else None
    for piece in pieces:
        columns = piece.table.columns
        yield from columns[name] if name in columns else [nothing] * len(piece.table)


def _systems(piece: Piece, mapping: ColumnMap) -> Sequence[Any]:
    given = () if "system" in mapping.left_out() else piece.table.columns.get("system")
    return given or [piece.stem] * len(piece.table)
