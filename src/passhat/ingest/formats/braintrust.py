"""Braintrust experiments exported as JSON, JSON Lines or CSV: `scores` of each trace."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.reader import Reading, TrialTable
from passhat.ingest.rows import Sheet, column_names, sheet_of
from passhat.ingest.scored_rows import ScoredRow, scored_table
from passhat.records.column_names import ColumnMap
from passhat.records.given_columns import LARGEST
from passhat.records.outcome_words import is_missing

READING = Reading(
    format="Braintrust experiment",
    versions="JSON, JSON Lines and CSV exports",
    system="file name",
    task="input",
    run="order of traces",
    outcome="the first of scores (or `scorer`) of 1 passes",
    score="the same score",
    started="created",
)

_SCORE = "scores."


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
    sheet = sheet_of(document)
    roots = [place for place in range(len(sheet)) if _is_root(sheet, place)]
    scores = _scores_by_trace(sheet, set(roots))
    rows = [_row(sheet, place, mapping.task or "input", scores) for place in roots]
    return scored_table(
        document.name,
        rows,
        mapping,
        entry="row",
        numbers=[sheet.numbers[place] for place in roots],
    )


def _is_root(sheet: Sheet, place: int) -> bool:
    marked = sheet.cells("is_root")[place]
    if isinstance(marked, str):
        return marked.strip().lower() in ("true", "1", "")
    if marked is not None:
        return bool(marked)
    if "span_parents" in sheet.columns:
        return sheet.cells("span_parents")[place] in (None, "", [], "[]", "null")
    root = sheet.cells("root_span_id")[place]
    return is_missing(root) or root == sheet.cells("span_id")[place]


def _scores_by_trace(sheet: Sheet, roots: Set[int]) -> dict[str, dict[str, Any]]:
    """The scores that the spans within a trace hold: those of its scorers."""
    found: dict[str, dict[str, Any]] = {}
    for place, trace in enumerate(sheet.cells("root_span_id")):
        if place not in roots and (scores := _scores(sheet, place)):
            found.setdefault(str(trace), {}).update(scores)
    return found


def _row(sheet: Sheet, place: int, task: str, scores: Mapping[str, Mapping[str, Any]]) -> ScoredRow:
    metrics = _object(sheet.cells("metrics")[place])
    return ScoredRow(
        task=sheet.cells(task)[place],
        scores={**scores.get(str(sheet.cells("root_span_id")[place]), {}), **_scores(sheet, place)},
        error=sheet.cells("error")[place],
        more={
            "tokens": metrics.get("tokens"),
            "tokens_in": metrics.get("prompt_tokens"),
            "tokens_out": metrics.get("completion_tokens"),
            "seconds": _duration(metrics.get("start"), metrics.get("end")),
            "started": sheet.cells("created")[place] or None,
        },
    )


def _duration(start: Any, end: Any) -> float | None:
    """The seconds between two times, where both are numbers that a clock can show."""
    timed = all(isinstance(time, (int, float)) and abs(time) < LARGEST for time in (start, end))
    return float(end - start) if timed and end >= start else None


def _scores(sheet: Sheet, place: int) -> dict[str, Any]:
    nested = _object(sheet.cells("scores")[place]) if "scores" in sheet.columns else {}
    flat = [name for name in sheet.columns if name.startswith(_SCORE)]
    found = {
        **{str(name): value for name, value in nested.items()},
        **{name.removeprefix(_SCORE): sheet.cells(name)[place] for name in flat},
    }
    return {name: value for name, value in found.items() if not is_missing(value)}


def _object(cell: Any) -> Mapping[str, Any]:
    """An object, or the JSON of one in a cell of CSV."""
    if isinstance(cell, str) and cell.lstrip().startswith("{"):
        try:
            cell = msgspec.json.decode(cell)
        except (msgspec.DecodeError, RecursionError):
            return {}
    return cell if isinstance(cell, Mapping) else {}
