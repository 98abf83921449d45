"""Phoenix experiments (Arize): JSON with `annotations`, CSV with `annotation_NAME_score`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from passhat.ingest.document import Document
from passhat.ingest.reader import Reading, TrialTable, seconds_between
from passhat.ingest.rows import Sheet, column_names, sheet_of
from passhat.ingest.scored_rows import ScoredRow, scored_table
from passhat.records.column_names import ColumnMap
from passhat.records.outcome_words import is_missing

READING = Reading(
    format="Phoenix experiment",
    versions="JSON and CSV downloads",
    system="file name",
    task="example_id",
    run="repetition_number",
    outcome="the first annotation (or `scorer`) of 1 passes",
    score="the same annotation",
    started="start_time",
)

_EVALUATION = re.compile(r"annotation_(.+)_score|eval\.(.+)\.score")


def recognises(document: Document) -> bool:
    """Whether runs of examples have annotations, or columns of evaluations."""
    names = column_names(document)
    return "example_id" in names and ("annotations" in names or bool(_evaluations(names)))


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a run of an example; repetitions are its trials."""
    sheet = sheet_of(document)
    evaluations = _evaluations(sheet.columns)
    rows = [_row(sheet, place, evaluations, mapping) for place in range(len(sheet))]
    return scored_table(document.name, rows, mapping, entry="row", numbers=sheet.numbers)


def _evaluations(names: Iterable[str]) -> dict[str, str]:
    """Columns `annotation_NAME_score`, or `eval.NAME.score` of data frames, by NAME."""
    found = ((name, _EVALUATION.fullmatch(name)) for name in names)
    return {match[1] or match[2]: name for name, match in found if match}


def _row(sheet: Sheet, place: int, evaluations: Mapping[str, str], mapping: ColumnMap) -> ScoredRow:
    scores = {name: _score(sheet, place, column) for name, column in evaluations.items()}
    start, end = sheet.cells("start_time")[place], sheet.cells("end_time")[place]
    timed = isinstance(start, str) and isinstance(end, str)
    repetition = sheet.cells("repetition_number")[place]
    return ScoredRow(
        task=sheet.cells(mapping.task or "example_id")[place],
        trial=None if is_missing(repetition) else repetition,
        scores=scores | dict(_annotations(sheet.cells("annotations")[place])),
        error=sheet.cells("error")[place],
        more={
            "seconds": seconds_between(start, end) if timed else None,
            "started": start if isinstance(start, str) and start else None,
            "tokens_in": sheet.cells("prompt_token_count")[place],
            "tokens_out": sheet.cells("completion_token_count")[place],
        },
    )


def _score(sheet: Sheet, place: int, column: str) -> Any:
    """A score, or the label beside it where there is none."""
    score = sheet.cells(column)[place]
    label = f"{column.removesuffix('score')}label"
    return sheet.cells(label)[place] if is_missing(score) and label in sheet.columns else score


def _annotations(cell: Any) -> Iterator[tuple[str, Any]]:
    """The score of each annotation, its label where it has none."""
    for one in cell if isinstance(cell, list) else ():
        if isinstance(one, Mapping) and one.get("name"):
            score = one.get("score")
            yield str(one["name"]), one.get("label") if score is None else score
