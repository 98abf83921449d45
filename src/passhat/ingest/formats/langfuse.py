"""Langfuse scores, exported as CSV or JSON or as its API gives them: one row a score of a trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable
from passhat.ingest.rows import Table, column_names, table_of
from passhat.ingest.scored_rows import PersonScore, ScoredRow, scored_table
from passhat.messages import plural
from passhat.records.columns import ColumnMap, is_missing

READING = Reading(
    format="Langfuse scores",
    versions="CSV and JSON exports of scores, versions 2 and 3 of the scores API",
    system="file name",
    task="datasetItemId, or traceName",
    run="traceId, in order",
    outcome="the first score by name (or `scorer`) of 1 passes",
    score="the same score",
    started="timestamp",
    label="scores of source ANNOTATION",
)

_TASKS = ("datasetItemId", "dataset_item_id", "traceName", "trace_name")
_SUBJECT = "subject"
"""What a score is about in version 3 of the API: {"kind": "trace", "id": ...}, or an observation,
a session or a whole experiment."""
_TRACES = ("traceId", "trace_id", _SUBJECT)
_SESSIONS = ("sessionId", "session_id")
_KINDS = ("dataType", "data_type")
_WORDS = ("stringValue", "string_value")
_AUTHORS = ("authorUserId", "author_user_id")

Score = dict[str, Any]


def recognises(document: Document) -> bool:
    """Whether rows are scores of traces, by name and type."""
    names = set(column_names(document))
    typed = bool(names.intersection(_KINDS))
    return typed and {"name", "value"} <= names and bool(names.intersection(_TRACES))


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a trace, with all its scores; the task is the data set's item, or the name."""
    sheet = table_of(document)
    tasks = [name for name in (mapping.task, *_TASKS) if name and name in sheet.columns]
    by_trace = _scores_by_trace(sheet, tasks)
    rows = [_row(scores, tasks, trace) for trace, scores in by_trace.items()]
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
    return replace(table, notes=(*table.notes, *_notes(by_trace.values(), tasks)))


def _scores_by_trace(sheet: Table, tasks: Sequence[str]) -> dict[str, list[Score]]:
    """The scores of each trace; the `value` of a categorical score is its word.

    A session without traces counts as one run, and so does an observation without its trace.
    """
    trace, session, kind, word, author = (
        next((name for name in names if name in sheet.columns), names[-1])
        for names in (_TRACES, _SESSIONS, _KINDS, _WORDS, _AUTHORS)
    )
    by_trace: dict[str, list[Score]] = {}
    wanted = (*tasks, "name", "value", "timestamp", "source", "comment")
    for score in sheet.rows(*wanted, trace, session, kind, word, author):
        score["by"] = score[author]
        about = score[session] if is_missing(score[trace]) else score[trace]
        trace_id = None if is_missing(about) else str(about)
        if trace == _SUBJECT:
            trace_id = _subject(score[trace])
        if score[kind] == "CATEGORICAL" or is_missing(score["value"]):
            score["value"] = score[word]
        if trace_id is not None:
            by_trace.setdefault(trace_id, []).append(score)
    return by_trace


def _subject(cell: Any) -> str | None:
    """What a score is about; None for a whole experiment."""
    if not isinstance(cell, Mapping) or cell.get("kind") == "experiment":
        return None
    trace_id = cell.get("traceId") or cell.get("trace_id") or cell.get("id")
    return None if trace_id is None else str(trace_id)


def _notes(traces: Iterable[Sequence[Score]], tasks: Sequence[str]) -> Iterator[str]:
    named = [[str(score["name"]) for score in trace if not _by_a_person(score)] for trace in traces]
    if twice := sum(len(names) - len(set(names)) for names in named):
        again = plural(twice, "score has", "scores have")
        yield f"{again} the name of an earlier one of the same trace: the last one counts"
    if not tasks:
        yield (
            "nothing names the item of a data set, so each trace is a task of its own; add a "
            "column datasetItemId, or name the task's column with `task`"
        )


def _by_a_person(score: Score) -> bool:
    """Whether somebody gave a score in Langfuse's own pages; others come from programs."""
    return bool(score["source"] == "ANNOTATION")


def _row(scores: Sequence[Score], tasks: Sequence[str], trace: str) -> ScoredRow:
    first = scores[0]
    started = first["timestamp"]
    people: dict[str, list[PersonScore]] = {}
    for score in filter(_by_a_person, scores):
        by, at, note = ("" if is_missing(score[key]) else str(score[key])
                        for key in ("by", "timestamp", "comment"))  # fmt: skip
        given = PersonScore(value=score["value"], by=by, at=at, note=note)
        people.setdefault(str(score["name"]), []).append(given)
    return ScoredRow(
        task=next((first[name] for name in tasks if not is_missing(first[name])), trace),
        scores={str(score["name"]): score["value"] for score in scores if not _by_a_person(score)},
        people=people,
        more={"started": None if is_missing(started) else str(started)},
    )
