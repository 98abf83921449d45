"""Phoenix experiments (Arize): JSON with `annotations`, CSV with `annotation_NAME_score`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, seconds_between
from passhat.ingest.rows import column_names, table_of
from passhat.ingest.scored_rows import PersonScore, ScoredRow, scored_table
from passhat.records.columns import ColumnMap, is_missing

READING = Reading(
    format="Phoenix experiment",
    versions="JSON and CSV downloads",
    system="file name",
    task="example_id",
    run="repetition_number",
    outcome="the first annotation (or `scorer`) of 1 passes",
    score="the same annotation",
    started="start_time",
    label="annotations of annotator_kind HUMAN, in JSON",
)

_COLUMNS = (
    *("start_time", "end_time", "repetition_number", "annotations", "error"),
    *("prompt_token_count", "completion_token_count"),
)
_EVALUATION = re.compile(r"annotation_(.+)_score|eval\.(.+)\.score")


def recognises(document: Document) -> bool:
    """Whether runs of examples have annotations, or columns of evaluations."""
    names = column_names(document)
    return "example_id" in names and ("annotations" in names or bool(_evaluations(names)))


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a run of an example; repetitions are its trials."""
    sheet = table_of(document)
    evaluations = _evaluations(sheet.columns)
    labels = [_label(column) for column in evaluations.values() if _label(column) in sheet.columns]
    task = mapping.task or "example_id"
    cells = sheet.rows(task, *_COLUMNS, *evaluations.values(), *labels)
    rows = [_row(row, task, evaluations) for row in cells]
    return scored_table(document.name, rows, mapping, entry="row", numbers=sheet.numbers)


def _evaluations(names: Iterable[str]) -> dict[str, str]:
    """Columns `annotation_NAME_score`, or `eval.NAME.score` of data frames, by NAME."""
    matches = ((name, _EVALUATION.fullmatch(name)) for name in names)
    return {match[1] or match[2]: name for name, match in matches if match}


def _label(column: str) -> str:
    """The column with the label of an evaluation, beside that of its score."""
    return f"{column.removesuffix('score')}label"


def _row(row: Mapping[str, Any], task: str, evaluations: Mapping[str, str]) -> ScoredRow:
    scores = {
        name: row.get(_label(column), row[column]) if is_missing(row[column]) else row[column]
        for name, column in evaluations.items()
    }
    start, end, repetition = row["start_time"], row["end_time"], row["repetition_number"]
    people: dict[str, list[PersonScore]] = {}
    for name, score, by_a_person in _annotations(row["annotations"]):
        if by_a_person:
            people.setdefault(name, []).append(score)
        else:
            scores[name] = score.value
    return ScoredRow(
        task=row[task],
        trial=None if is_missing(repetition) else repetition,
        scores=scores,
        people=people,
        error=row["error"],
        more={
            "seconds": seconds_between(start, end),
            "started": start if isinstance(start, str) and start else None,
            "tokens_in": row["prompt_token_count"],
            "tokens_out": row["completion_token_count"],
        },
    )


def _annotations(cell: Any) -> Iterator[tuple[str, PersonScore, bool]]:
    """The score of each annotation, its label if it has none, and whether a person gave it."""
    for entry in cell if isinstance(cell, list) else ():
        if isinstance(entry, Mapping) and entry.get("name"):
            score, note = entry.get("score"), entry.get("explanation")
            value = entry.get("label") if score is None else score
            given = PersonScore(value=value, note=note if isinstance(note, str) else "")
            yield str(entry["name"]), given, entry.get("annotator_kind") == "HUMAN"
