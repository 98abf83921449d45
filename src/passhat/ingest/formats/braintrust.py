"""Braintrust experiments exported as JSON, JSON Lines or CSV: `scores` of each trace."""

from __future__ import annotations

import itertools
from collections.abc import Container, Mapping, Sequence
from typing import Any

from passhat.ingest import scored_rows
from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable
from passhat.ingest.rows import column_names, table_of
from passhat.records.columns import ColumnMap, is_missing
from passhat.records.trials import LARGEST

READING = Reading(
    format="Braintrust experiment",
    versions="JSON, JSON Lines and CSV exports",
    system="file name",
    task="input",
    run="order of traces",
    outcome="the first of scores (or `scorer`) of 1 passes",
    score="the same score",
    started="created",
    label="scores of the spans of reviewers",
)

Span = Mapping[str, Any]

_SCORE = "scores."
_REVIEW = "review"
"""The type of a span that holds what one reviewer says of the trace."""
_COLUMNS = (
    *("is_root", "span_parents", "root_span_id", "span_id", "scores", "metrics", "error"),
    *("created", "span_attributes"),
)


def recognises(document: Document) -> bool:
    """Whether rows have an input, scores and the span that they are."""
    names = column_names(document)
    scored = "scores" in names or any(name.startswith(_SCORE) for name in names)
    spans = "span_id" in names or "root_span_id" in names
    # The first span of an experiment may be without scores: scorers are spans of their own.
    return (
        spans and "input" in names and (scored or {"experiment_id", "span_parents"} <= set(names))
    )


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a trace, by the scores of all its spans; traces of one input are runs of a task."""
    sheet = table_of(document)
    task = mapping.task or "input"
    scorers = [name for name in sheet.columns if name.startswith(_SCORE)]
    spans = list(sheet.rows(task, *_COLUMNS, *scorers))
    roots = [_is_root(span, sheet.columns) for span in spans]
    by_trace: dict[str, dict[str, Any]] = {}
    people: dict[str, dict[str, list[scored_rows.PersonScore]]] = {}
    for span, root in zip(spans, roots, strict=True):
        if root or not (scores := _scores(span)):
            continue
        trace = str(span["root_span_id"])
        if scored_rows.object_in(span["span_attributes"]).get("type") == _REVIEW:
            for name, score in scores.items():
                given = scored_rows.PersonScore(value=score, at=str(span["created"] or ""))
                people.setdefault(trace, {}).setdefault(name, []).append(given)
        else:  # those of scorers within the trace
            by_trace.setdefault(trace, {}).update(scores)
    return scored_rows.scored_table(
        document.name,
        [_row(span, task, by_trace, people) for span in itertools.compress(spans, roots)],
        mapping,
        entry="row",
        numbers=list(itertools.compress(sheet.numbers, roots)),
    )


def _is_root(span: Span, columns: Container[str]) -> bool:
    marked = span["is_root"]
    if isinstance(marked, str):
        return marked.strip().lower() in ("true", "1", "")
    if marked is not None:
        return bool(marked)
    if "span_parents" in columns:
        return span["span_parents"] in (None, "", [], "[]", "null")
    return is_missing(span["root_span_id"]) or span["root_span_id"] == span["span_id"]


def _row(
    span: Span,
    task: str,
    by_trace: Mapping[str, Mapping[str, Any]],
    people: Mapping[str, Mapping[str, Sequence[scored_rows.PersonScore]]],
) -> scored_rows.ScoredRow:
    metrics, trace = scored_rows.object_in(span["metrics"]), str(span["root_span_id"])
    reviewed = people.get(trace, {})
    # Braintrust writes the mean of what reviewers say into the span that they reviewed.
    own = {name: score for name, score in _scores(span).items() if name not in reviewed}
    return scored_rows.ScoredRow(
        task=span[task],
        scores={**by_trace.get(trace, {}), **own},
        people=reviewed,
        error=span["error"],
        more={
            "tokens": metrics.get("tokens"),
            "tokens_in": metrics.get("prompt_tokens"),
            "tokens_out": metrics.get("completion_tokens"),
            "seconds": _duration(metrics.get("start"), metrics.get("end")),
            "started": span["created"] or None,
        },
    )


def _duration(start: Any, end: Any) -> float | None:
    """The seconds between two times, where both are numbers that a clock can show."""
    timed = all(isinstance(time, (int, float)) and abs(time) < LARGEST for time in (start, end))
    return float(end - start) if timed and end >= start else None


def _scores(span: Span) -> dict[str, Any]:
    nested = {str(name): value for name, value in scored_rows.object_in(span["scores"]).items()}
    scores = nested | scored_rows.scores_in(span, _SCORE)
    return {name: value for name, value in scores.items() if not is_missing(value)}
