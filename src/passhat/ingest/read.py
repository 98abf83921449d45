"""Result files of any tool, read into one table of trials."""

from __future__ import annotations

import contextlib
import gc
import os
import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from shlex import quote
from typing import Any

import msgspec
import numpy as np

from passhat.dataclass import dataclass
from passhat.errors import ArgumentError, ReadError, UnknownFile
from passhat.ingest.assemble import checked_parts
from passhat.ingest.document import MARKDOWN_SUFFIXES, YAML_SUFFIXES, Document, Limits, is_suite
from passhat.ingest.formats import tables
from passhat.ingest.readers import (
    KINDS_OF_TABLES,
    READERS,
    Reader,
    TrialTable,
    formats_of,
    readers_of,
)
from passhat.ingest.remote import called_by_address, sources_by_address
from passhat.ingest.reshape import PASSES, RUNS, may_reshape, two_levels
from passhat.ingest.rows import (
    SEPARATORS,
    TOTALS,
    WITHIN_A_RUN,
    Table,
    column_names,
    compared_ranges,
    csv_lines,
    is_message,
    is_own_file,
    lists_inside,
    never_holds,
    never_met,
    number_columns,
    rows_under,
    separator_of,
    table_of,
)
from passhat.ingest.sources import (
    CheckedPart,
    Input,
    InputPart,
    Known,
    Recognise,
    as_inputs,
    describe_sources,
    keep_submissions_apart,
    name_by_folder,
    open_input,
)
from passhat.messages import few, few_paths, listed, one_of_rule, plural, short, typo_hint
from passhat.records import Duplicates, Source, Trials
from passhat.records.columns import (
    CONFIGURATIONS,
    LETTER_GRADES,
    RATES,
    TASK_IDS,
    USUAL,
    VERDICTS,
    ColumnMap,
    are_rates,
    as_number,
    find_columns,
    infer_columns,
    is_missing,
    likely_columns,
    may_aggregate,
    parse_pass_if,
    rate_column,
    unmatched_word,
    usual_name,
    verdict_columns,
)
from passhat.records.transcript import (
    CleanTexts,
    TranscriptKey,
    Transcripts,
    trials_to_compare,
)
from passhat.records.trial import (
    COPIED_ROWS,
    Outcome,
    alike_names,
    read_by_different_scores,
)
from passhat.records.trials import check_duplicates

_TABULAR = ("text", "lines", "array", "json", "parquet")


def read_trials(
    source: Input | Sequence[Input],
    *,
    format: str | None = None,  # noqa: A002 # the word users know
    mapping: ColumnMap | None = None,
    duplicates: Duplicates = "error",
    limits: Limits | None = None,
    **columns: Any,
) -> Trials:
    r"""The trials in files, folders, globs, bytes or standard input (`-`), of any tool.

    `task="case"` names a column of your own, `pass_if="score>=0.8"` says what passes: the fields of
    `ColumnMap`, in the place of those in `mapping`.

    >>> trials = read_trials(b"task,trial,passed\nrefund,1,yes\nrefund,2,no\n")
    >>> trials.tally().passed.tolist(), trials.tally().failed.tolist()
    ([1], [1])
    """
    if columns:
        known = [field.name for field in fields(ColumnMap)]
        if unknown := sorted(set(columns) - set(known)):
            rule = f"must be among {', '.join(known)}{typo_hint(unknown[0], known)}"
            raise ArgumentError("columns", rule, unknown[0])
        mapping = replace(mapping or ColumnMap(), **columns)
    trials, _ = _read(source, format, mapping, duplicates, limits, transcripts=None)
    return trials


def read_with_transcripts(
    source: Input | Sequence[Input],
    *,
    format: str | None = None,  # noqa: A002 # the word users know
    mapping: ColumnMap | None = None,
    duplicates: Duplicates = "error",
    limits: Limits | None = None,
    task: str | None = None,
    most: int | None = None,
) -> tuple[Trials, Transcripts]:
    r"""The same trials, and their transcripts by system, task and trial.

    A source that holds no transcripts says so in its notes. With `task` only the transcripts of
    that task are read, if there is one. Of a file of more than `most` bytes those of some trials
    are: passing and failing ones of the same tasks, the tasks that fail most often first.

    >>> _, transcripts = read_with_transcripts(b"task,passed,output\nrefund,yes,Done.\n")
    >>> transcripts
    {('input', 'refund', 0): '{"answer": "Done."}'}
    """
    asked = _AskedTranscripts(task=task, most=most)
    return _read(source, format, mapping, duplicates, limits, transcripts=asked)


def recognise(document: Document, mapping: ColumnMap, *, guess: bool = True) -> Reader:
    """The first reader that recognises a document; that of tables if the user names columns.

    Columns of less usual names are taken by what they hold if `guess` allows it.
    """
    if mapping.chosen() and document.kind in _TABULAR:
        return _with_named_score(document, mapping) or _chosen_columns(document, mapping)
    if is_own_file(document):
        return READERS["table"]
    if answer := _own_answer(document):
        raise answer
    for reader in readers_of(document):
        if reader.recognises(document):
            return reader
    if mapping.pass_if and document.kind in _TABULAR:
        return _chosen_columns(document, mapping)
    fault = _unknown_file(document)
    if guess and isinstance(fault, UnknownFile) and tables.may_be_guessed(document):
        return READERS["table"]
    raise fault


@called_by_address()
def _read(
    source: Input | Sequence[Input],
    format_name: str | None,
    mapping: ColumnMap | None,
    duplicates: Duplicates,
    limits: Limits | None,
    *,
    transcripts: _AskedTranscripts | None,
) -> tuple[Trials, Transcripts]:
    check_duplicates(duplicates)
    for name, given_one, kind in (("mapping", mapping, ColumnMap), ("limits", limits, Limits)):
        if given_one is not None and not isinstance(given_one, kind):
            raise ArgumentError(name, f"must be {kind.__name__}(...)", given_one)
    mapping, limits, inputs = mapping or USUAL, limits or Limits(), as_inputs(source)
    chosen = _recogniser(format_name, mapping)
    unknown: dict[int, dict[str, ReadError]] = {}
    pieces: list[InputPart] = []
    empty: list[str] = []
    reasons: list[str] = []
    first = inputs[0] if len(inputs) == 1 else ""  # no other file can repeat the only one
    only = "input" if isinstance(first, bytes) else os.fspath(first)
    for given, file in enumerate(inputs):
        known = open_input(file, chosen, limits, unknown.setdefault(given, {}))
        for document, reader, table in _read_each(known, mapping, only):
            if len(table):
                texts = transcripts.read(document, reader, mapping, table) if transcripts else ()
                piece = InputPart(
                    name=document.name,
                    stem=document.stem,
                    folder=document.folder,
                    sha256=document.sha256,
                    reader=reader,
                    table=table,
                    given=given,
                    texts=texts,
                )
                pieces.append(piece)
            else:
                empty.append(document.name)
                reasons += table.notes
    if not pieces:
        shown = ["input" if isinstance(file, bytes) else str(file) for file in inputs]
        why = f" ({few(dict.fromkeys(reasons), 3)})" if reasons else ""
        looked = f"; looked at {few_paths(empty)}" if _folders(inputs) else ""
        raise ReadError(f"{few_paths(shown)}: holds no trial{looked}{why}")
    words = _check_words(pieces, mapping)
    pieces = _without_parts(pieces)
    if mapping.name is None:
        pieces = name_by_folder(pieces, _folders(inputs))
    pieces = _without_repeats(pieces, duplicates)
    parts = keep_submissions_apart(checked_parts(pieces, mapping))
    if fault := read_by_different_scores(part.source for part in parts):
        raise ReadError(fault)
    sources, trials = describe_sources(parts, inputs, unknown, mapping), _as_one(parts)
    trials = replace(trials, sources=sources_by_address(_noted_cases(trials, sources)))
    trials = trials.with_reference(mapping.reference_level)
    trials = _noted_never_met(trials, pieces, mapping, words)
    trials, texts = _without_duplicates(trials, parts, duplicates)
    return trials, _by_trial(trials, texts)


def _without_duplicates(
    trials: Trials, parts: Sequence[CheckedPart], duplicates: Duplicates
) -> tuple[Trials, list[str | None]]:
    """The trials and what each said, those that occur twice refused, renumbered or left out."""
    texts = [text for part in parts for text in part.file.texts]
    twice = trials.duplicates()
    if not twice:
        tables = all(part.file.reader.name == "table" and not part.numbered for part in parts)
        looked = any(part.file.table.fine for part in parts)
        if duplicates == "last" and tables and not looked:
            first, *others = trials.sources
            note = "no column numbers the trials, so no row is known to be a copy; name it with "
            noted = (*first.notes, f"{note}`trial=COLUMN` (`duplicates`)")
            trials = replace(trials, sources=(replace(first, notes=noted), *others))
        return trials, texts
    if duplicates == "error":
        if len(parts) == 1 and (apart := trials.numbered_on()) is not trials:
            return apart, texts
        raise _occur_twice(trials, parts, twice)
    if differ := next((part.file.table.apart for part in parts if part.file.table.apart), ""):
        occur = plural(len(twice), "trial occurs", "trials occur")
        first, *others = trials.sources
        noted = (*first.notes, f"{occur} more than once.{differ.removesuffix('.')}")
        trials = replace(trials, sources=(replace(first, notes=noted), *others))
    if duplicates == "keep":
        return trials.renumbered(), texts
    rows = trials.last_of_each()
    first, *others = trials.sources
    copies = plural(len(trials) - len(rows), "earlier copy of a trial is", "earlier copies are")
    noted = (*first.notes, f"{copies} left out (`duplicates`)")
    trials = replace(trials, sources=(replace(first, notes=noted), *others))
    return trials.take(rows), [texts[row] for row in rows.tolist()] if texts else texts


def _check_words(pieces: Sequence[InputPart], mapping: ColumnMap) -> dict[str, set[str]]:
    """The words that are compared; one that no file has there is refused: nothing would pass."""
    tests = parse_pass_if(mapping.pass_if) if mapping.pass_if else ()
    seen_words: dict[str, set[str]] = {}
    for piece in pieces:
        for column, words in piece.table.words.items():
            seen_words.setdefault(column, set()).update(words)
    if odd := unmatched_word(tests, seen_words):
        names = few_paths([piece.name for piece in pieces], 3)
        raise never_holds(names, odd, seen_words[odd.column])
    return seen_words


def _noted_never_met(
    trials: Trials,
    pieces: Sequence[InputPart],
    mapping: ColumnMap,
    words: Mapping[str, Collection[str]],
) -> Trials:
    """The trials with a note where none of all files meets what the user says passes."""
    if not mapping.pass_if or set(trials.outcome.tolist()) - {Outcome.ERRORED} != {Outcome.FAILED}:
        return trials
    tests = parse_pass_if(mapping.pass_if)
    ends: dict[str, list[float]] = {}
    for table in (piece.table for piece in pieces):
        own = table.ranges if table.judged else compared_ranges(tests, table.columns.__getitem__)
        for column, low_and_high in own.items():
            ends.setdefault(column, []).extend(low_and_high)
    ranges = {column: (min(both), max(both)) for column, both in ends.items()}
    first, *others = trials.sources
    noted = (*first.notes, never_met(mapping.pass_if, words, ranges))
    return replace(trials, sources=(replace(first, notes=noted), *others))


_ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst")


def _folders(inputs: Sequence[Input]) -> dict[int, str]:
    """The inputs that are folders, or archives of them, by their place."""
    return {
        place: os.fspath(source)
        for place, source in enumerate(inputs)
        if not isinstance(source, bytes)
        and (os.path.isdir(source) or os.fspath(source).lower().endswith(_ARCHIVES))  # noqa: PTH112 # any text
    }


def _recogniser(format_name: str | None, mapping: ColumnMap) -> Recognise:
    shapes = _KnownShapes(mapping)

    def chosen(document: Document, *, guess: bool) -> Reader:
        if document.kind == "empty":
            raise ReadError(f"{document.name}: is empty")
        if format_name is not None:
            return _named(format_name)
        if document in shapes:
            return READERS["table"]
        reader = recognise(document, mapping, guess=guess)
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


def _with_named_score(document: Document, mapping: ColumnMap) -> Reader | None:
    """The reader of a tool's log, where all that the user named are scores: people's, judges'."""
    chosen = mapping.chosen()
    if not chosen.keys() <= {"human_labels", "at"} or not {chosen.get("at")} <= {None, *_JUDGES}:
        return None
    if not {*chosen.values()}.isdisjoint(column_names(document)):
        return None
    reader = next((known for known in readers_of(document) if known.recognises(document)), None)
    return None if reader is READERS["table"] else reader


def _chosen_columns(document: Document, mapping: ColumnMap) -> Reader:
    """The reader where the user named columns: that of spans for spans, else that of tables."""
    if document.first and (spans := READERS["otel"]).recognises(document):
        return spans
    tables.check_columns(document, mapping)
    return READERS["table"]


def _without_parts(pieces: list[InputPart]) -> list[InputPart]:
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
            single, more = "report on one task of this run is", "reports on tasks of this run are"
            piece = piece.noted(f"{plural(files, single, more)} left out")
        kept.append(piece)
    return kept


def _run_of(piece: InputPart) -> tuple[str, str | None, str]:
    systems = piece.table.columns.get("system") or [piece.stem]
    return piece.reader.name, piece.table.run, str(systems[0])


def _without_repeats(pieces: list[InputPart], duplicates: Duplicates) -> list[InputPart]:
    """Refuse or leave out what was given twice: saved reports on runs, copies, repeated rows."""
    if duplicates == "keep":
        return pieces
    pieces = [_without_copied_rows(piece, duplicates) for piece in pieces]
    if len(pieces) == 1:
        return pieces
    if duplicates == "error":
        _check_derived(pieces)
    return _without_repeated_rows(_without_copies(pieces, duplicates))


def _without_copied_rows(piece: InputPart, duplicates: Duplicates) -> InputPart:
    """A table without numbers of trials, with a note on rows that are copies of earlier ones.

    Two rounded times may be the same, so copies are left out only if the user says so; a table
    that is there several times, row for row, is refused.
    """
    marks = list(piece.table.measured)
    if piece.numbered or not piece.table.fine:
        return piece
    first = {mark: row for row, mark in reversed([*enumerate(marks)])}
    rows = [row for row, mark in enumerate(marks) if mark is None or first[mark] == row]
    if not (copies := len(marks) - len(rows)):
        return piece
    equal = plural(copies, "row is", "rows are")
    if duplicates == "last":
        texts = [piece.texts[row] for row in rows] if piece.texts else piece.texts
        kept = replace(piece, table=piece.table.take(rows), texts=texts)
        return kept.noted(f"{equal} {COPIED_ROWS}, and left out (`duplicates`)")
    ways = "`duplicates='last'` leaves copies out, `duplicates='keep'` counts them as trials"
    several = (times for times in range(2, 6) if marks == marks[: len(marks) // times] * times)
    if marks[::2] == marks[1::2] or any(several):
        raise ReadError(f"{piece.name}: {equal} {COPIED_ROWS}: was it pasted twice? {ways}")
    if copies > len(rows):  # times that are rounded, of few tasks
        return piece
    return piece.noted(f"{equal} {COPIED_ROWS}, and counted: {ways} (`duplicates`)")


def _without_copies(pieces: list[InputPart], duplicates: Duplicates) -> list[InputPart]:
    """Refuse or leave out files that hold exactly the same trials: likely one run, given twice.

    Files that number their trials are left alone here: their trials are compared by number.
    """
    kept: dict[str | int, InputPart] = {}
    for place, piece in enumerate(pieces):
        key = piece.fingerprint() if not piece.numbered else piece.content or place
        if key in kept and (piece.is_snapshot or kept[key].is_snapshot):
            # The tool's copy of its latest run.
            run, copy = (piece, kept[key]) if kept[key].is_snapshot else (kept[key], piece)
            name = os.path.basename(copy.name)  # noqa: PTH119
            kept[key] = run.noted(f"{name} holds the same run and is left out")
            continue
        if key in kept and duplicates == "error":
            earlier = kept[key].name  # inputs given as bytes share one name
            same = "is given twice" if earlier == piece.name else f"says the same as {earlier}"
            raise ReadError(
                f"{piece.name}: {same}, trial for trial; leave one out, or pass "
                "`duplicates='keep'` if two trials really ended alike"
            )
        kept[key] = piece
    return list(kept.values())


def _without_repeated_rows(pieces: list[InputPart]) -> list[InputPart]:
    """Count a run once that two files list, equal in every field: one file a run, and one of all.

    Only rows with a time or an id count as equal: others may be two runs that ended alike.
    """
    measured = [mark for piece in pieces for mark in piece.table.measured if mark is not None]
    if len(seen := set(measured)) == len(measured):
        return pieces
    seen.clear()
    rows: dict[int, list[int]] = {}
    for place in sorted(range(len(pieces)), key=lambda place: len(pieces[place].table)):
        own = pieces[place].table.measured
        marks = own or [None] * len(pieces[place].table)
        rows[place] = [row for row, mark in enumerate(marks) if mark is None or mark not in seen]
        seen.update(mark for mark in own if mark is not None)
    kept: dict[int, InputPart] = {place: piece for place, piece in enumerate(pieces) if rows[place]}
    for place, piece in enumerate(pieces):
        repeated = len(piece.table) - len(rows[place])
        if not repeated:
            continue
        runs = plural(repeated, "trial of it is", "trials of it are")
        name = os.path.basename(piece.name)  # noqa: PTH119
        note = f"{name}: {runs} in other files too, equal in every field, and counted once"
        if rows[place]:
            texts = [piece.texts[row] for row in rows[place]] if piece.texts else piece.texts
            piece = replace(piece, table=piece.table.take(rows[place]), texts=texts)
        noted = place if rows[place] else next(iter(kept))
        kept[noted] = (piece if rows[place] else kept[noted]).noted(note)
    return list(kept.values())


def _check_derived(pieces: Sequence[InputPart]) -> None:
    """Refuse a saved report beside files on the same system: its runs are likely theirs."""
    if not any(piece.reader.reading.derived for piece in pieces):
        return
    first: dict[str, InputPart] = {}
    for piece in sorted(pieces, key=lambda piece: piece.reader.reading.derived):
        for system in dict.fromkeys(piece.table.columns.get("system") or [piece.stem]):
            held = first.setdefault(str(system), piece)
            if piece.reader.reading.derived and held is not piece:
                raise ReadError(
                    f'{piece.name}: is a saved report on "{short(str(system))}", and '
                    f"{held.name} has trials of it too; leave one out, or pass `names` for each "
                    "file to keep them apart, or `duplicates='keep'` if they are different trials"
                )


def _as_one(parts: Sequence[CheckedPart]) -> Trials:
    """All trials; those of files that do not number them are numbered on from file to file."""
    tables = [part.trials for part in parts if part.trials is not None]
    trials = Trials.concat(tables, duplicates=None).crossed()
    if len(parts) == 1 or all(part.numbered for part in parts):
        return trials
    unnumbered = [np.full(len(part.file.table), not part.numbered) for part in parts]
    return trials.renumbered(np.concatenate(unnumbered))


def _noted_cases(trials: Trials, sources: Sequence[Source]) -> tuple[Source, ...]:
    """The sources, the first with a note on names that differ only in case or spaces."""
    notes = [*alike_names(trials.systems), *alike_names(trials.tasks, "tasks")]
    first, *others = sources
    return (replace(first, notes=(*first.notes, *notes)) if notes else first, *others)


def _occur_twice(
    trials: Trials, parts: Sequence[CheckedPart], twice: Sequence[TranscriptKey]
) -> ReadError:
    """The error for trials that occur twice, with their rows; it names a file given twice."""
    table = parts[0].file.table
    alone = len(parts) == 1 and len(table) == len(trials)
    shown = []
    for system, task, trial in twice[:5]:
        which = f"trial {trial}"
        if alone:
            rows = np.flatnonzero(
                (trials.system.codes == trials.system.code(system))
                & (trials.task.codes == trials.task.code(task))
                & (trials.trial == trial)
            )
            which = listed(map(table.where, rows.tolist()), 3)
        shown.append(f"{short(system)} / {short(task)} / {which}")
    more = f" and {len(twice) - 5:,} more" if len(twice) > 5 else ""
    occur = plural(len(twice), "trial occurs", "trials occur")
    holding = [part for part in parts if _holds(part, twice[0])] or parts
    files = few_paths(dict.fromkeys(part.source.name for part in holding), 3)
    apart = ", or `names` for each file to keep them apart" if len(parts) > 1 else ""
    differ = next((part.file.table.apart for part in parts if part.file.table.apart), "")
    return ReadError(
        f"{files}: {occur} more than once: "
        f"{', '.join(shown)}{more}.{_given_twice(parts) or differ} Pass `duplicates='last'` to "
        f"keep the last of each, or `duplicates='keep'` if they are different trials{apart}"
    )


def _holds(part: CheckedPart, key: TranscriptKey) -> bool:
    """Whether a file has a trial of this agent, task and number."""
    system, task, number = key
    trials = part.trials
    if trials is None or system not in trials.systems or task not in trials.tasks:
        return False
    rows = trials.system.codes == trials.system.code(system)
    rows &= trials.task.codes == trials.task.code(task)
    return bool((trials.trial[rows] == number).any())


def _given_twice(parts: Sequence[CheckedPart]) -> str:
    """Which file was given twice, under the same or another name; empty if none was."""
    first: dict[str, str] = {}
    for number, part in enumerate(parts, start=1):
        name = part.source.name
        held = first.setdefault(part.source.sha256, name)
        if len(first) < number:
            again = "is given twice" if held == name else f"holds the same bytes as {held}"
            return f" {name} {again}: leave one out."
    return ""


UNREAD = ""
"""In the place of a transcript that was not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _AskedTranscripts:
    """Which transcripts are read: those of one task, or those of `most` bytes of a file."""

    task: str | None
    most: int | None

    def read(
        self, document: Document, reader: Reader, mapping: ColumnMap, table: TrialTable
    ) -> list[str | None]:
        """The transcript of each trial as JSON text, cut to the limit; None if there is none."""
        document.wanted = self._rows(document, table)
        longest = document.limits.max_transcript
        transcripts = reader.transcripts(document, mapping) if reader.transcripts else ()
        wanted = document.wanted
        try:
            texts = [
                UNREAD
                if wanted is not None and row not in wanted
                else words.cut(longest).to_json()
                if words
                else None
                for row, words in enumerate(transcripts)
            ]
        except RecursionError as error:
            raise ReadError(f"{document.name}: nested too deeply to be a result file") from error
        if texts and len(texts) != len(table):  # beside the wrong trial it is worse than none
            raise ReadError(
                f"{document.name}: has {len(texts)} transcripts for {len(table)} trials"
            )
        return texts or [None] * len(table)

    def _rows(self, document: Document, table: TrialTable) -> Container[int] | None:
        tasks = list(map(str, table.columns["task"]))
        if self.task is not None and self.task in tasks:
            return frozenset(row for row, task in enumerate(tasks) if task == self.task)
        if self.most is None or document.size <= self.most:
            return None
        systems = table.columns.get("system") or [""] * len(tasks)
        ended = table.columns.get("outcome") or table.columns.get("passed") or [None] * len(tasks)
        return trials_to_compare(
            list(zip(map(str, systems), tasks, strict=True)),
            [end in (Outcome.PASSED, True) for end in ended],
            room=self.most * len(tasks) // document.size,
        )


def _by_trial(trials: Trials, spoken: Sequence[str | None]) -> Transcripts:
    """The texts by system, task and trial, if there is one; keys in them are masked."""
    if not spoken:
        return {}
    keys = zip(trials.system.texts(), trials.task.texts(), trials.trial.tolist(), strict=True)
    texts, unread = {}, set()
    for (system, task, trial), text in zip(keys, spoken, strict=True):
        key = (system or "", task or "", trial)
        if text == UNREAD:
            unread.add(key)
        elif text is not None:
            texts[key] = text
    return CleanTexts(texts, unread=frozenset(unread))


# Small tables with the same columns, read as one: a folder may hold thousands of them.
Shape = tuple[Any, ...]
Rows = tuple[Sequence[Any], Sequence[int]]

MOST_BYTES = 2**16
"""A bigger file is read by itself: there is little to save."""

MOST_HELD = 2**22
MOST_FILES = 2_000
"""How much of a folder is kept in memory, so that files of one shape are read together."""

FEWEST_FILES = 4

# Readers of these look only at the keys of a file, which are part of its shape.
_BY_KEYS = frozenset(("swe-bench", "score-array", "table"))

_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ROW = msgspec.json.Decoder(dict[str, Any])
_ROWS = msgspec.json.Decoder(list[dict[str, Any]])


class _KnownShapes:
    """The shapes of tables seen so far: a file of such a shape is a table too."""

    def __init__(self, mapping: ColumnMap) -> None:
        self._mapping = mapping
        self._tables: set[Shape] = set()

    def __contains__(self, document: Document) -> bool:
        return bool(self._tables) and shape_of(document, self._mapping) in self._tables

    def add(self, document: Document) -> None:
        """Remember the shape of a table, if the shape alone decides that it is one."""
        shape = shape_of(document, self._mapping)
        if shape is None or not _BY_KEYS.issuperset(formats_of(document)):
            return
        names = column_names(document, self._mapping)
        if (
            may_aggregate(tuple(names))
            or may_reshape(names)
            or tables.lacking(document.name, names, self._mapping)
        ):
            return
        self._tables.add(shape)


def _read_each(
    known: Iterable[Known], mapping: ColumnMap, only: str
) -> Iterator[tuple[Document, Reader, TrialTable]]:
    """The table of each document, in order; small tables of one shape are read together."""
    held: list[Known] = []
    size = 0
    for document, reader in known:
        document.alone = document.name == only
        held.append((document, reader))
        size += document.size
        if size > MOST_HELD or len(held) >= MOST_FILES:
            yield from _read_held(held, mapping)
            held, size = [], 0
    yield from _read_held(held, mapping)


def shape_of(document: Document, mapping: ColumnMap) -> Shape | None:
    """What decides how the columns of a small table are read; None if that is not enough."""
    if document.shape is None:
        document.shape = _shape(document, mapping) or ()
    return document.shape or None


def _shape(document: Document, mapping: ColumnMap) -> Shape | None:
    if document.size > MOST_BYTES:
        return None
    data = document.data
    if document.kind == "text":
        header, end, _ = data.partition(b"\n")
        whole = end and header.strip() and header.count(b'"') % 2 == 0
        odd = b"\0" in header or b"\r" in header[:-1]
        return ("text", header) if whole and not odd else None
    first = document.first
    if len(first) < 2 or "schema" in first or all(name.startswith("instance_") for name in first):
        return None
    if document.kind in ("lines", "array"):
        return document.kind, *first
    return _object_shape(first, mapping) if document.kind == "json" else None


def _object_shape(first: Mapping[str, msgspec.Raw], mapping: ColumnMap) -> Shape | None:
    """The keys of one run, and of what it has lists of; None if such a list may be the runs."""
    openers = [_opener(raw) for raw in first.values()]
    lists: list[tuple[str, tuple[str, ...]]] = []
    for key, opener in zip(first, openers, strict=True) if "[{" in openers else ():
        if opener == "[{" and usual_name(key) not in WITHIN_A_RUN:
            try:
                entries = _LIST.decode(first[key])
                lists.append((key, tuple(_KEYS.decode(entries[0]))))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return None
    shape = "json", *first, *openers, *lists
    return shape if _is_one_run(tuple(first), tuple(lists), mapping) else None


@lru_cache(maxsize=64)
def _is_one_run(
    names: tuple[str, ...], lists: tuple[tuple[str, tuple[str, ...]], ...], mapping: ColumnMap
) -> bool:
    """Whether an object is one run itself, whatever its lists hold."""
    runs = {key: entry for key, entry in lists if not is_message(entry, mapping)}
    return rows_under(names, runs, mapping) is None


def _opener(raw: msgspec.Raw) -> str:
    view = memoryview(raw)
    start = view[0] if view.nbytes else None
    if start != ord("["):
        return "{" if start == ord("{") else ""
    return "[{" if bytes(view[1:64]).lstrip().startswith(b"{") else "["


_JUDGES = ("judge", "scorer")
"""What a factor is called whose levels are the scores that a log has of each trial."""


def _read_held(
    held: Sequence[Known], mapping: ColumnMap
) -> Iterator[tuple[Document, Reader, TrialTable]]:
    places: dict[Shape, list[int]] = {}
    for place, (document, reader) in enumerate(held):
        if reader is READERS["table"] and (shape := shape_of(document, mapping)) is not None:
            places.setdefault(shape, []).append(place)
    read: dict[int, TrialTable | None] = {}
    for alike in places.values():
        if len(alike) >= FEWEST_FILES:
            documents = [held[place][0] for place in alike]
            read |= zip(alike, read_same_schema(documents, mapping), strict=True)
    for place, (document, reader) in enumerate(held):
        with _without_collecting():
            table = read.get(place) or reader.read(document, mapping)
        notes = []
        if document.encoding:
            guess = f"is not UTF-8 and was read as {document.encoding}"
            notes.append(f"{guess}; if wrong, save it as UTF-8")
        if document.torn:
            torn = "its last line ends in the middle and is left out: it is being written, or was "
            notes.append(f"{torn}cut off")
        for part in _by_judge(document, reader, table, mapping):
            yield document, reader, replace(part, notes=(*part.notes, *notes)) if notes else part


@contextlib.contextmanager
def _without_collecting() -> Iterator[None]:
    """Rows hold no circles: the collector would visit all of them time and again, to free none."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _by_judge(
    document: Document, reader: Reader, table: TrialTable, mapping: ColumnMap
) -> Iterator[TrialTable]:
    """The table; one for each score where the factor is the judge and the log has several."""
    if mapping.factor not in _JUDGES or len(table.scores) < 2:
        yield table
        return
    for name in table.scores:
        part = reader.read(document, replace(mapping, scorer=name))
        yield replace(
            part,
            columns={**part.columns, "at": [(f"{mapping.factor}={name}",)] * len(part)},
            read_as={**part.read_as, "factor": f"each of its scores {few(table.scores)}"},
            left_out=(),
            # The same rows once for each judge are no file that was given twice.
            measured=(),
        )


def read_same_schema(documents: Sequence[Document], mapping: ColumnMap) -> list[TrialTable | None]:
    """Tables of one shape as `tables.read` reads each; None for one that must be read by itself."""
    names = [name.strip() for name in column_names(documents[0], mapping)]
    parsed = [_rows_of(document, names) for document in documents]
    rows = [row for part in parsed if part for row in part[0]]
    whole = _read_whole(documents[0], names, rows, mapping) if rows else None
    if whole is None:
        return [None] * len(documents)
    read: list[TrialTable | None] = []
    start = 0
    for part in parsed:
        end = start + (len(part[0]) if part else 0)
        read.append(_piece(whole, start, end, part[1]) if part else None)
        start = end
    return read


def _rows_of(document: Document, names: Sequence[str]) -> Rows | None:
    """The rows of a document with their numbers; None if one needs an error or a note."""
    try:
        if document.kind == "text":
            _, *below = csv_lines(document)
            return [cells for _, cells in below], [number for number, _ in below]
        if document.kind == "json":
            return [_ROW.decode(document.data)], [0]
        if document.kind == "array":
            rows = _ROWS.decode(document.data)
            numbers: Sequence[int] = range(len(rows))
        else:
            lines = enumerate(document.data.split(b"\n"), start=1)
            written = [(number, line) for number, line in lines if line.strip()]
            rows, numbers = [_ROW.decode(line) for _, line in written], [n for n, _ in written]
    except (ReadError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    known = set(names)
    return (rows, numbers) if all(row.keys() == known for row in rows) else None


def _read_whole(
    document: Document, names: Sequence[str], rows: Sequence[Any], mapping: ColumnMap
) -> TrialTable | None:
    """All rows as one table; None if an error or a note is about some of them only."""
    if len(set(names)) < len(names) or may_reshape(names) or mapping.missing == "exclude":
        return None
    separator, columns = None, dict[str, Sequence[Any]]()
    if document.kind == "text":
        separator = separator_of(document.data)
        columns.update(zip(names, zip(*rows, strict=True), strict=True))
    else:
        columns.update((name, [row[name] for row in rows]) for name in names)
    sheet = Table(columns=columns, numbers=range(len(rows)), separator=separator)
    try:
        table = tables.read_table(document, sheet, mapping, repeats=lambda columns: False)
        by_meaning, _ = infer_columns(sheet.columns, mapping, sheet.cells)
    except ReadError:
        return None
    notes = tables.notes_on(sheet.columns, by_meaning, mapping, own=False, repeats=lambda: False)
    return table if table.notes == notes and _row_by_row(sheet, by_meaning, mapping) else None


def _row_by_row(sheet: Table, by_meaning: Mapping[str, str], mapping: ColumnMap) -> bool:
    """Whether what a cell means does not depend on the other cells of its file.

    Every rule of `tables.read_table` that looks at a whole column is named here, unless it raises
    an error or gives a note wherever it applies to some rows.
    """
    names = tuple(sheet.columns)
    others = [name for name in names if name not in by_meaning.values()]
    for name in others:
        cells = sheet.cells(name) if usual_name(name) in CONFIGURATIONS else ()
        if any(cell != cells[0] for cell in cells):
            return False
    if "trial" not in by_meaning and any(usual_name(name) in TASK_IDS for name in others):
        return False
    # A task may be the run of another, or a row that sums up those before it.
    for task in sheet.cells(by_meaning["task"]) if sheet.has(by_meaning["task"]) else ():
        if isinstance(task, str) and ("#" in task or task.strip().lower() in TOTALS):
            return False
    numbers = number_columns(by_meaning)
    if any(isinstance(cell, (Mapping, list)) for name in numbers for cell in sheet.cells(name)):
        return False
    judging = {
        *verdict_columns(names),
        *(by_meaning[verdict] for verdict in VERDICTS if verdict in by_meaning),
    }
    words = {str(cell).strip().lower() for name in judging for cell in sheet.cells(name)}
    if not words.isdisjoint(LETTER_GRADES):
        return False
    if sheet.separator not in SEPARATORS:
        return True
    commas = any("," in cell for name in numbers for cell in sheet.cells(name))
    return not commas and mapping.pass_if is None


def _piece(whole: TrialTable, start: int, end: int, numbers: Sequence[int]) -> TrialTable | None:
    """The rows of one file; None if only their order tells them apart, which has a note."""
    columns = {name: values[start:end] for name, values in whole.columns.items()}
    measured = whole.measured[start:end]
    if whole.left_out and end - start > 1 and tables.only_ordered(columns):
        return None
    return replace(whole, columns=columns, numbers=numbers, measured=measured)


# The error for a file of unknown format: what it seems to be, and which file to give instead.
SUMMARIES: Mapping[tuple[str, ...], str] = {
    ("results", "configs", "versions", "n-shot"): (
        "holds the means of an lm-evaluation-harness run, not its trials; run it with "
        "--log_samples and give the samples_*.jsonl"
    ),
    ("method", "llm", "test_normal"): (
        "is the leaderboard of AppWorld, with the means of each method; give the "
        "evaluations/*.json of an experiment"
    ),
    ("instance_id", "model_patch"): (
        "holds predictions for SWE-bench without verdicts; evaluate them and give the report of "
        "the run, or its folder logs/run_evaluation"
    ),
    ("task_id", "completion"): (
        "holds completions without verdicts; run evaluate_functional_correctness and give the "
        "*_results.jsonl that it writes"
    ),
    ("task_id", "solution"): (
        "holds solutions without verdicts; run evalplus.evaluate and give the "
        "*_eval_results.json that it writes"
    ),
    ("resolved", "resolved_per_project"): (
        "lists what a run of SWE-bench resolved, but not what it tried; give the report of the run "
        "or its folder logs/run_evaluation"
    ),
    ("submission_date", "results", "submitting_organization"): (
        "is a submission to the leaderboard of tau2-bench, with the means of each domain; give the "
        "trajectory files that it names"
    ),
    ("instance_id", "test_result"): (
        "is what OpenHands writes of SWE-bench; say where its verdicts are, with "
        "`passed='test_result.report.resolved'`"
    ),
    ("pass@1", "detail"): (
        "holds the means of a LiveCodeBench run; give the *_eval_all.json beside it"
    ),
    ("metric", "score"): (
        "holds one mean for each metric, not trials; give the table with a row for each trial"
    ),
    ("date", "config", "summary", "eval"): (
        "holds the speed of solutions that EvalPerf measured, not whether they passed; give the "
        "*_eval_results.json that evalplus.evaluate writes"
    ),
    ("question_id", "output_list"): (
        "holds answers to LiveCodeBench without grades; evaluate them and give the *_eval_all.json"
    ),
    ("_resultsLoaded", "results"): (
        "was written by promptfoo's Node package before its results were loaded, and holds none; "
        "write the evaluation with `promptfoo eval -o out.json`"
    ),
    ("competition_reports",): (
        "is a grading report of MLE-bench; say what passes, such as `task='competition_id'` and "
        "`passed='any_medal'`"
    ),
    ("task_id", "prompt", "entry_point"): (
        "holds problems, not results; give what the evaluation of their solutions wrote"
    ),
    ("testRunLink",): (
        "links to a test run on Confident AI and holds no results; give the test run that "
        "`deepeval test run` leaves in .deepeval without a login"
    ),
    ("Action", "Package"): (
        "is what `go test -json` prints; write JUnit XML with `gotestsum --junitfile` and give that"
    ),
    ("stats", "tests", "passes", "failures"): (
        "is Mocha's JSON report; write JUnit XML with mocha-junit-reporter, or CTRF, and give that"
    ),
    ("numTotalTests", "testResults"): (
        "is the JSON report of Jest or Vitest; write JUnit XML or CTRF with a reporter, and give "
        "that"
    ),
    ("examples", "summary_line"): (
        "is RSpec's JSON report; write JUnit XML with rspec_junit_formatter and give that"
    ),
    ("passhat", "sum", "system"): (
        "is a cassette with recorded answers of a model, not results; run its suite to use it"
    ),
    ("scenario_spec", "adapter_spec"): (
        "holds the settings of a HELM run; give per_instance_stats.json from the same folder"
    ),
}
"""Files of known tools that hold no trial, by their keys, and which file does."""

_LFS_POINTER = b"version https://git-lfs.github.com/spec/"

_SQLITE = b"SQLite format 3\0"

_SPREADSHEETS = (".xlsb", ".xls", ".ods", ".numbers")
_DOCUMENTS = (".pdf", ".docx", ".doc", ".odt", ".pptx", ".png", ".jpg", ".jpeg", ".svg")

OWN = "passhat."
"""How the schema of what passhat writes begins."""

WITH_RUNS = ("passhat.report/1", "passhat.run/1", "passhat.events/1")
"""Answers that say how each run of a task ended: these can be read back."""


def _own_answer(document: Document) -> ReadError | None:
    """The error of an answer that passhat wrote as JSON and that holds rates, not trials."""
    schema = document.first.get("schema") if document.kind in ("json", "lines") else None
    if schema is None or not bytes(schema).startswith(f'"{OWN}'.encode()):
        return None
    written = bytes(schema).decode(errors="replace").strip('"')
    if written in WITH_RUNS:
        return None
    return ReadError(
        f"{document.name}: is an answer that passhat wrote ({short(written)}), and holds rates, "
        "not trials; give what the answer was made from"
    )


_MUST_SAY = ("task", "passed")
"""What no table can lack."""


def _unknown_file(document: Document) -> ReadError:
    """The error of a file that no reader knows."""
    names = column_names(document)
    known = document.first.keys() | set(names)
    summary = next((what for keys, what in SUMMARIES.items() if known.issuperset(keys)), None)
    if nature := summary or _nature(document, names):
        return ReadError(f"{document.name}: {nature}")
    columns = find_columns(names, USUAL)
    sheet = None
    if document.kind in _TABULAR and len(names) > 1:
        with contextlib.suppress(ReadError):  # its columns are named, whatever its rows are
            sheet = table_of(document)
    if sheet is not None:  # rows of JSON may have other columns than the first
        names = list(dict.fromkeys((*names, *sheet.columns)))
    likely = likely_columns(names, USUAL, sheet.cells) if sheet is not None else {}
    if sheet is not None and "task" not in columns and (rate := rate_column(names, sheet.cells)):
        return ReadError(
            f'{document.name}: "{short(rate)}" holds rates of several trials; give the table or '
            "log with a row for each trial"
        )
    # With numbered trials and no text beside them, each of several verdicts may be of a task.
    grid = "trial" in columns and "task" not in likely and "passed" in likely
    half = not columns.keys().isdisjoint(("task", "passed", "score"))
    if document.kind != "json" and (half or grid):
        fault = tables.lacking(document.name, names, USUAL, sheet)
        if fault is not None:
            return fault
    if document.kind == "json" and (counted := _counts_of_agents(document)):
        return ReadError(
            f"{document.name}: holds sums over all tasks ({few(counted, 3)}), not trials; give the "
            "table or log with a row for each trial, or the passes and trials of each task"
        )
    if document.kind == "json" and (levels := two_levels(document.decode(dict[str, Any]))):
        return ReadError(
            f"{document.name}: maps {few(levels[0], 3)} to {few(levels[1], 3)}, and those to "
            "trials: which are the agents? Put all of it under a key that says what its outer keys "
            'are, {"agents": {...}} or {"tasks": {...}}'
        )
    if document.kind == "json" and names == list(document.first):
        inside = next(lists_inside(document), None)
        lists = f', and a list "{short(inside[0])}" of {few(inside[1])}' if inside else ""
        way_out = (
            f"It is one JSON object with the keys {few(names)}{lists}. If it is one trial, name "
            f"its "
            "keys with `task`, `passed` or `score`, `trial` and `system` (a key inside another as "
            "outer.inner); otherwise give the tool's own log (`format` names the tool, passhat "
            f"knows {len(READERS)}), or a table with a row for each run"
        )
    elif len(names) > 1:
        if sheet is not None and "passed" not in likely and (share := _shares(sheet)):
            task = repr(likely.get("task", "COLUMN"))
            return UnknownFile(
                f'{document.name}: which columns? It has {few(names)}. No "{short(share)}" is 1: '
                "are they means of several trials? Then give the table or log with a row for each "
                f"trial. If each row is one trial, say `task={task}` and what passes, such as "
                f"`pass_if='{share}>=0.8'`"
            )
        ways = {what: repr(likely[what]) if what in likely else "COLUMN" for what in _MUST_SAY}
        example = " and ".join(f"`{what}={column}`" for what, column in ways.items())
        return UnknownFile(
            f"{document.name}: which columns? It has {few(names)}. Say {example}, or name the tool "
            f"with `format` (passhat knows {len(READERS)})"
        )
    else:
        has = f"It has the columns {few(names)}. " if names else ""
        way_out = (
            f"{has}Name the columns of a table with `task`, `passed` or `score`, `trial` and "
            f"`system`, or the tool with `format` (passhat knows {len(READERS)})"
        )
    return UnknownFile(f"{document.name}: not a file that passhat can read. {way_out}")


def _shares(sheet: Table) -> str | None:
    """The first column of shares that are all below 1."""
    for name in sheet.columns:
        cells = [cell for cell in sheet.cells(name) if not is_missing(cell)]
        if are_rates(cells) and all(0 <= as_number(cell) < 1 for cell in cells):
            return name
    return None


def _counts_of_agents(document: Document) -> list[str]:
    """The counts and rates that every object under the keys of a document has; none of others."""
    entries = document.decode(dict[str, Any])
    objects = [entry for entry in entries.values() if isinstance(entry, dict)]
    if len(objects) < 2 or len(objects) < len(entries):
        return []
    summing = RUNS | RATES | PASSES
    shared = set(objects[0]).intersection(*objects)
    return [name for name in objects[0] if name in shared and usual_name(name) in summing]


def _nature(document: Document, names: list[str]) -> str | None:
    """What kind of file it is, where it cannot be a result file whatever its columns are called."""
    if (named := _nature_by_ending(document)) or document.kind == "lines":
        return named
    if document.data.startswith(_SQLITE):
        return (
            "is an SQLite database, but no history of passhat; export its results as CSV or JSON "
            "with the tool that wrote it, or with `sqlite3 -csv -header`"
        )
    if document.kind == "binary":
        return "is a binary file that passhat cannot read"
    if document.kind == "zip":
        return "is a ZIP archive that passhat cannot read; unpack it, and give the results in it"
    if re.search(rb"<!doctype html|<html", document.data[:1024], re.IGNORECASE):
        return "is a web page; give the JSON, CSV or XML that the tool writes"
    if document.kind == "xml":
        root = re.search(rb"<([A-Za-z_][\w:.-]{0,60})", document.data[:4096])
        instead = f", not <{short(root[1].decode())}>" if root else ""
        return (
            "is XML, but no report of JUnit, NUnit or .trx: its root must be <testsuites>, "
            f"<testsuite>, <test-run>, <test-results> or <TestRun>{instead}"
        )
    if document.kind == "array" and not document.first:
        return "is a list without objects; each trial must be one, with its task and outcome"
    if document.kind == "json" and not document.first:
        return "is an empty JSON object: it holds no trial"
    return _nature_of_text(document, names) if document.kind == "text" else None


def _nature_of_text(document: Document, names: list[str]) -> str | None:
    if document.data.startswith(_LFS_POINTER):
        return "is a pointer of Git LFS, not the file itself; fetch that with `git lfs pull`"
    if len(names) > 1:
        return None
    first = names[0] if names else ""
    if document.name.lower().endswith(MARKDOWN_SUFFIXES):
        return "is Markdown without a table; give the table or log with a row for each trial"
    if first.startswith(("//", "/*")):
        return "is JSON with comments; take them out, since JSON has none"
    if not first or len(first.split()) > 2:
        return "is text, not a table: its first line has no columns"
    return None


def _nature_by_ending(document: Document) -> str | None:
    """What the ending of its name says about a file that no reader knows."""
    name = document.name.lower()
    if name.endswith(_SPREADSHEETS):
        return (
            "is a spreadsheet that passhat cannot read; save it as .xlsx, or the sheet as CSV, and "
            "give that"
        )
    if name.endswith(_DOCUMENTS):
        return "is a document or a picture; give the table or log with a row for each trial"
    if name.endswith(".py"):
        return (
            "is a Python program, not its results; give the file that it writes, or let `passhat "
            "init --python module:function` make a suite that runs a function of it"
        )
    if not name.endswith(YAML_SUFFIXES):
        return None
    if is_suite(document):
        return f"is a suite, not results; run it with `passhat run {quote(document.name)}`"
    if document.kind == "array" or any(lists_inside(document)):
        return None
    return "is YAML, which holds settings or means; give the table or log with a row for each trial"
