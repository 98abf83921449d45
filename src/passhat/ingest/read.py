"""Result files of any tool, read into one table of trials."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from passhat.errors import ArgumentError, ReadError
from passhat.ingest.alike_tables import KnownShapes, read_each
from passhat.ingest.document import Document
from passhat.ingest.folder_names import name_by_folder
from passhat.ingest.formats import tables
from passhat.ingest.inputs import Input, Recognise, as_inputs, open_input
from passhat.ingest.limits import Limits
from passhat.ingest.reader import Reader
from passhat.ingest.readers import KINDS_OF_TABLES, READERS, readers_of
from passhat.ingest.remote import called_by_address, sources_by_address
from passhat.ingest.rows import is_own_file
from passhat.ingest.small_files import checked_parts
from passhat.ingest.sources import CheckedPiece, Piece, describe_sources, keep_submissions_apart
from passhat.ingest.unknown_files import own_answer, unknown_file
from passhat.messages import few, few_paths, one_of_rule, plural, short
from passhat.records import Duplicates, Trials
from passhat.records.columns import USUAL, ColumnMap
from passhat.records.transcript import CleanTexts, TranscriptKey, Transcripts
from passhat.records.trials import check_duplicates

_TABULAR = ("text", "lines", "array", "json", "parquet")


def read_trials(
    source: Input | Sequence[Input],
    *,
    format: str | None = None,  # noqa: A002 # the word users know
    mapping: ColumnMap | None = None,
    duplicates: Duplicates = "error",
    limits: Limits | None = None,
) -> Trials:
    r"""The trials in files, folders, globs, bytes or standard input (`-`), of any tool.

    >>> trials = read_trials(b"task,trial,passed\nrefund,1,yes\nrefund,2,no\n")
    >>> trials.tally().passed.tolist(), trials.tally().failed.tolist()
    ([1], [1])
    """
    trials, _ = _read(source, format, mapping, duplicates, limits, transcripts=False)
    return trials


def read_with_transcripts(
    source: Input | Sequence[Input],
    *,
    format: str | None = None,  # noqa: A002 # the word users know
    mapping: ColumnMap | None = None,
    duplicates: Duplicates = "error",
    limits: Limits | None = None,
) -> tuple[Trials, Transcripts]:
    r"""The same trials, and their transcripts by system, task and trial.

    A source that holds no transcripts says so in its notes.

    >>> _, said = read_with_transcripts(b"task,passed,output\nrefund,yes,Done.\n")
    >>> said
    {('input', 'refund', 0): '{"answer": "Done."}'}
    """
    return _read(source, format, mapping, duplicates, limits, transcripts=True)


def recognise(document: Document, mapping: ColumnMap) -> Reader:
    """The first reader that recognises a document; that of tables if the user names columns."""
    if document.kind == "empty":
        raise ReadError(f"{document.name}: is empty")
    if mapping.chosen() and document.kind in _TABULAR:
        return _chosen_columns(document, mapping)
    if is_own_file(document):
        return READERS["table"]
    if answer := own_answer(document):
        raise answer
    for reader in readers_of(document):
        if reader.recognises(document):
            return reader
    if mapping.pass_if and document.kind in _TABULAR:
        return _chosen_columns(document, mapping)
    raise unknown_file(document)


@called_by_address()
def _read(
    source: Input | Sequence[Input],
    format_name: str | None,
    mapping: ColumnMap | None,
    duplicates: Duplicates,
    limits: Limits | None,
    *,
    transcripts: bool,
) -> tuple[Trials, Transcripts]:
    check_duplicates(duplicates)
    for name, given_one, kind in (("mapping", mapping, ColumnMap), ("limits", limits, Limits)):
        if given_one is not None and not isinstance(given_one, kind):
            raise ArgumentError(name, f"must be {kind.__name__}(...)", given_one)
    mapping, limits, inputs = mapping or USUAL, limits or Limits(), as_inputs(source)
    chosen = _recogniser(format_name, mapping)
    unknown: dict[int, dict[str, ReadError]] = {}
    pieces: list[Piece] = []
    empty: list[str] = []
    reasons: list[str] = []
    for given, one in enumerate(inputs):
        known = open_input(one, chosen, limits, unknown.setdefault(given, {}))
        for document, reader, table in read_each(known, mapping):
            if size := len(table):
                said = _kept_texts(document, reader, mapping, size) if transcripts else ()
                piece = Piece(
                    name=document.name,
                    stem=document.stem,
                    folder=document.folder,
                    sha256=document.sha256,
                    reader=reader,
                    table=table,
                    given=given,
                    said=said,
                )
                pieces.append(piece)
            else:
                empty.append(document.name)
                reasons += table.notes
    if not pieces:
        shown = ["input" if isinstance(one, bytes) else str(one) for one in inputs]
        why = f" ({few(dict.fromkeys(reasons), 3)})" if reasons else ""
        looked = f"; looked at {few_paths(empty)}" if _folders(inputs) else ""
        raise ReadError(f"{few_paths(shown)}: holds no trial{looked}{why}")
    pieces = _without_parts(pieces)
    if mapping.name is None:
        pieces = name_by_folder(pieces, _folders(inputs))
    if duplicates == "error":
        _check_derived(pieces)
    parts = keep_submissions_apart(checked_parts(_without_copies(pieces, duplicates), mapping))
    tables = [part.trials for part in parts if part.trials is not None]
    trials = _number(Trials.concat(tables, duplicates=None), parts)
    sources = describe_sources(parts, inputs, unknown, mapping)
    trials = replace(trials, sources=sources_by_address(sources))
    said = [text for part in parts for text in part.said]
    if twice := trials.duplicates():
        if duplicates == "error":
            raise _occur_twice(parts, twice)
        trials, said = _settle_duplicates(trials, said, duplicates)
    return trials, _by_trial(trials, said)


def _folders(inputs: Sequence[Input]) -> dict[int, str]:
    """The inputs that are folders, by their place."""
    return {
        place: os.fspath(one)
        for place, one in enumerate(inputs)
        if not isinstance(one, bytes) and os.path.isdir(one)  # noqa: PTH112 # it may be any text
    }


def _recogniser(format_name: str | None, mapping: ColumnMap) -> Recognise:
    shapes = KnownShapes(mapping)

    def chosen(document: Document) -> Reader:
        if format_name is not None:
            return _named(format_name)
        if document in shapes:
            return READERS["table"]
        reader = recognise(document, mapping)
        if reader is READERS["table"]:
            shapes.add(document)
        return reader

    return chosen


def _named(name: str) -> Reader:
    if name in READERS:
        return READERS[name]
    rule = one_of_rule(name, list(READERS), len(READERS))
    if name.lower() in KINDS_OF_TABLES:
        rule = f"must be a tool that writes results; to read a {name} file, leave it out"
    raise ArgumentError("format", rule, name)


def _chosen_columns(document: Document, mapping: ColumnMap) -> Reader:
    """The reader where the user named columns: that of spans for spans, else that of tables."""
    if document.first and (spans := READERS["otel"]).recognises(document):
        return spans
    tables.check_columns(document, mapping)
    return READERS["table"]


def _without_parts(pieces: list[Piece]) -> list[Piece]:
    """Leave out files on parts of a run where a report on the whole run is there too."""
    if not any(piece.table.part for piece in pieces):
        return pieces
    wholes = {_run_of(piece): place for place, piece in enumerate(pieces) if not piece.table.part}
    left_out = Counter(wholes.get(_run_of(piece)) for piece in pieces if piece.table.part)
    kept = []
    for place, piece in enumerate(pieces):
        if piece.table.part and _run_of(piece) in wholes:
            continue
        if files := left_out.get(place):
            one, more = "report on one task of this run is", "reports on tasks of this run are"
            piece = piece.noted(f"{plural(files, one, more)} left out")
        kept.append(piece)
    return kept


def _run_of(piece: Piece) -> tuple[str, str | None, str]:
    systems = piece.table.columns.get("system") or [piece.stem]
    return piece.reader.name, piece.table.run, str(systems[0])


def _without_copies(pieces: list[Piece], duplicates: Duplicates) -> list[Piece]:
    """Refuse or leave out files that hold exactly the same trials: likely one run, given twice.

    Files that number their trials are left alone here: their trials are compared by number.
    """
    if len(pieces) == 1 or duplicates == "keep":
        return pieces
    kept: dict[str | int, Piece] = {}
    for place, piece in enumerate(pieces):
        key = place if piece.numbered else piece.fingerprint()
        if key in kept and (piece.is_snapshot or kept[key].is_snapshot):
            kept[key] = _without_snapshot(kept[key], piece)
            continue
        if key in kept and duplicates == "error":
            raise ReadError(
                f"{piece.name}: {_same(kept[key], piece)}, trial for trial; leave one out, "
                "or pass `duplicates='keep'` if two runs really ended alike"
            )
        kept[key] = piece
    return list(kept.values())


def _without_snapshot(earlier: Piece, piece: Piece) -> Piece:
    """The file of the run, with a note that the tool's copy of its latest run is left out."""
    run, copy = (piece, earlier) if earlier.is_snapshot else (earlier, piece)
    name = os.path.basename(copy.name)  # noqa: PTH119
    return run.noted(f"{name} holds the same run and is left out")


def _check_derived(pieces: Sequence[Piece]) -> None:
    """Refuse a saved report beside files on the same system: its runs are likely theirs."""
    if len(pieces) == 1 or not any(piece.reader.reading.derived for piece in pieces):
        return
    first: dict[str, Piece] = {}
    for piece in sorted(pieces, key=lambda piece: piece.reader.reading.derived):
        for system in dict.fromkeys(piece.table.columns.get("system") or [piece.stem]):
            held = first.setdefault(str(system), piece)
            if piece.reader.reading.derived and held is not piece:
                raise ReadError(
                    f'{piece.name}: is a saved report on "{short(str(system))}", and '
                    f"{held.name} has runs of it too; leave one out, or pass `names` for each file "
                    "to keep them apart, or `duplicates='keep'` if they are different runs"
                )


def _same(earlier: Piece, piece: Piece) -> str:
    """How a file repeats an earlier one; inputs given as bytes share one name."""
    name = earlier.name
    return "is given twice" if name == piece.name else f"says the same as {name}"


def _number(trials: Trials, parts: Sequence[CheckedPiece]) -> Trials:
    """Number the trials of files that do not number them, continuing from file to file."""
    if len(parts) == 1 or all(part.numbered for part in parts):
        return trials
    unnumbered = np.concatenate([np.full(part.size, not part.numbered) for part in parts])
    return trials.renumbered(unnumbered)


def _settle_duplicates(
    trials: Trials,
    said: list[str | None],
    duplicates: Duplicates,
) -> tuple[Trials, list[str | None]]:
    if duplicates == "keep":
        return trials.renumbered(), said
    rows = trials.last_of_each()
    return trials.take(rows), [said[row] for row in rows.tolist()] if said else said


def _occur_twice(parts: Sequence[CheckedPiece], twice: Sequence[TranscriptKey]) -> ReadError:
    """The error for trials that occur twice; it names a file that was given twice."""
    shown = [
        f"{short(system)} / {short(task)} / trial {trial}" for system, task, trial in twice[:5]
    ]
    more = f" and {len(twice) - 5:,} more" if len(twice) > 5 else ""
    occur = plural(len(twice), "trial occurs", "trials occur")
    files = few_paths(dict.fromkeys(part.source.name for part in parts), 3)
    apart = ", or `names` for each file to keep them apart" if len(parts) > 1 else ""
    return ReadError(
        f"{files}: {occur} more than once: "
        f"{', '.join(shown)}{more}.{_given_twice(parts)} Pass `duplicates='last'` to keep the last "
        f"of each, or `duplicates='keep'` if they are different runs{apart}"
    )


def _given_twice(parts: Sequence[CheckedPiece]) -> str:
    """Which file was given twice, under the same or another name; empty if none was."""
    first: dict[str, str] = {}
    for part in parts:
        name, held = part.source.name, first.get(part.source.sha256)
        if held is not None:
            again = "is given twice" if held == name else f"holds the same bytes as {held}"
            return f" {name} {again}: leave one out."
        first[part.source.sha256] = name
    return ""


def _kept_texts(
    document: Document, reader: Reader, mapping: ColumnMap, trials: int
) -> list[str | None]:
    """The transcript of each trial as JSON text, cut to the limit; None if there is none."""
    longest = document.limits.max_transcript
    found = reader.transcripts(document, mapping) if reader.transcripts else ()
    try:
        texts = [one.cut(longest).to_json() if one else None for one in found]
    except RecursionError as error:
        raise ReadError(f"{document.name}: nested too deeply to be a result file") from error
    if texts and len(texts) != trials:  # a transcript beside the wrong trial is worse than none
        raise ReadError(f"{document.name}: has {len(texts)} transcripts for {trials} trials")
    return texts or [None] * trials


def _by_trial(trials: Trials, said: Sequence[str | None]) -> Transcripts:
    """The texts by system, task and trial, if there is one; keys in them are masked."""
    if not said:
        return {}
    keys = zip(trials.system.texts(), trials.task.texts(), trials.trial.tolist(), strict=True)
    texts = {
        (system or "", task or "", trial): text
        for (system, task, trial), text in zip(keys, said, strict=True)
        if text is not None
    }
    return CleanTexts(texts)
