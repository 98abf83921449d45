"""Langfuse scores, exported as CSV or JSON or as its API gives them: one row a score of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from passhat.ingest.document import Document
from passhat.ingest.reader import Reading, TrialTable
from passhat.ingest.rows import Sheet, column_names, sheet_of
from passhat.ingest.scored_rows import ScoredRow, scored_table
from passhat.messages import plural
from passhat.records.column_names import ColumnMap
from passhat.records.outcome_words import is_missing

READING = Reading(
    format="Langfuse scores",
    versions="CSV and JSON exports of scores, versions 2 and 3 of the scores API",
    system="file name",
    task="datasetItemId, or traceName",
    run="traceId, in order",
    outcome="the first score by name (or `scorer`) of 1 passes",
    score="the same score",
    started="timestamp",
)

_TASKS = ("datasetItemId", "dataset_item_id", "traceName", "trace_name")
_TRACES = ("traceId", "trace_id")
_SUBJECT = "subject"
"""What a score is about in version 3 of the API: {"kind": "trace", "id": ...}, or an observation,
a session or a whole experiment."""


def recognises(document: Document) -> bool:
    """Whether rows are scores of traces, by name and type."""
    names = set(column_names(document))
    typed = bool(names & {"dataType", "data_type"})
    return typed and {"name", "value"} <= names and bool(names & {*_TRACES, _SUBJECT})


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a trace, with all its scores; the task is the data set's item, or the name."""
    sheet = sheet_of(document)
    tasks = [name for name in (mapping.task, *_TASKS) if name and name in sheet.columns]
    by_trace: dict[str, list[int]] = {}
    for place, trace in enumerate(_traces(sheet)):
        if trace is not None:
            by_trace.setdefault(trace, []).append(place)
    rows = [_row(sheet, places, tasks, trace) for trace, places in by_trace.items()]
    facts = {"task": f'column "{tasks[0]}"' if tasks else "trace"}
    about = len(sheet) - sum(map(len, by_trace.values()))
    left_out = [plural(about, "score of a whole experiment", "scores of whole experiments")]
    table = scored_table(
        document.name,
        rows,
        mapping,
        entry="trace",
        read_as=facts,
        left_out=left_out if about else (),
    )
    return replace(table, notes=(*table.notes, *_notes(sheet, by_trace, tasks)))


def _traces(sheet: Sheet) -> list[str | None]:
    """The trace that each score is about; None where it is about a whole experiment.

    A session without traces counts as one run, and so does an observation without its trace.
    """
    column = next((name for name in _TRACES if name in sheet.columns), None)
    if column is not None:
        return [str(cell) for cell in sheet.cells(column)]
    return [_subject(cell) for cell in sheet.cells(_SUBJECT)]


def _subject(cell: Any) -> str | None:
    if not isinstance(cell, Mapping) or cell.get("kind") == "experiment":
        return None
    found = cell.get("traceId") or cell.get("trace_id") or cell.get("id")
    return None if found is None else str(found)


def _notes(sheet: Sheet, by_trace: Mapping[str, list[int]], tasks: Sequence[str]) -> Iterator[str]:
    names = sheet.cells("name")
    twice = sum(
        len(places) - len({str(names[one]) for one in places}) for places in by_trace.values()
    )
    if twice:
        again = plural(twice, "score has", "scores have")
        yield f"{again} the name of an earlier one of the same trace: the last one counts"
    if not tasks:
        yield (
            "nothing names the item of a data set, so each trace is a task of its own; add a "
            "column datasetItemId, or name the task's column with `task`"
        )


def _row(sheet: Sheet, places: list[int], tasks: list[str], trace: str) -> ScoredRow:
    first = places[0]
    filled = (sheet.cells(name)[first] for name in tasks)
    task = next((cell for cell in filled if not is_missing(cell)), trace)
    started = sheet.cells("timestamp")[first]
    return ScoredRow(
        task=task,
        scores={str(sheet.cells("name")[place]): _value(sheet, place) for place in places},
        more={"started": None if is_missing(started) else str(started)},
    )


def _value(sheet: Sheet, place: int) -> Any:
    """The number of a score, or its word where it is categorical."""
    value = sheet.cells("value")[place]
    words = sheet.cells("stringValue" if "stringValue" in sheet.columns else "string_value")
    kind = sheet.cells("dataType" if "dataType" in sheet.columns else "data_type")[place]
    return words[place] if kind == "CATEGORICAL" or is_missing(value) else value
