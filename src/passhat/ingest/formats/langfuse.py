"""Langfuse scores exported as CSV or JSON Lines: one row a score of a trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from passhat.ingest.document import Document
from passhat.ingest.reader import Reader, Reading, TrialTable
from passhat.ingest.rows import Sheet, column_names, sheet_of
from passhat.ingest.scored_rows import ScoredRow, scored_table
from passhat.records.column_names import ColumnMap
from passhat.records.outcome_words import is_missing

_KINDS = ("text", "lines", "array")
_TASKS = ("datasetItemId", "dataset_item_id", "traceName", "trace_name")
_TRACES = ("traceId", "trace_id")


def recognises(document: Document) -> bool:
    """Whether rows are scores of traces, by name and type."""
    if document.kind not in _KINDS:
        return False
    names = set(column_names(document))
    typed = bool(names & {"dataType", "data_type"})
    return typed and {"name", "value"} <= names and bool(names & set(_TRACES))


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a trace, with all its scores; the task is the data set's item, or the name."""
    sheet = sheet_of(document)
    trace = next(name for name in _TRACES if name in sheet.columns)
    tasks = [name for name in (mapping.task, *_TASKS) if name and name in sheet.columns]
    by_trace: dict[str, list[int]] = {}
    for place, one in enumerate(sheet.cells(trace)):
        by_trace.setdefault(str(one), []).append(place)
    rows = [_row(sheet, places, tasks, trace) for places in by_trace.values()]
    facts = {"task": f'column "{tasks[0] if tasks else trace}"'}
    table = scored_table(document.name, rows, mapping, entry="trace", read_as=facts)
    if tasks:
        return table
    alone = (
        "nothing names the item of a data set, so each trace is a task of its own; add a column "
        "datasetItemId, or name the task's column with `task`"
    )
    return replace(table, notes=(*table.notes, alone))


READER = Reader(
    name="langfuse",
    recognises=recognises,
    read=read,
    reading=Reading(
        format="Langfuse scores",
        versions="CSV and JSON exports of scores",
        system="file name",
        task="datasetItemId, or traceName",
        run="traceId, in order",
        outcome="the first score by name (or `scorer`) of 1 passes",
        score="the same score",
        started="timestamp",
    ),
)


def _row(sheet: Sheet, places: list[int], tasks: list[str], trace: str) -> ScoredRow:
    first = places[0]
    filled = (sheet.cells(name)[first] for name in tasks)
    task = next((cell for cell in filled if not is_missing(cell)), sheet.cells(trace)[first])
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
