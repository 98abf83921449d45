"""Phoenix experiments (Arize): runs as JSON with `annotations`, or as CSV with `eval.*` columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from passhat.ingest.document import Document
from passhat.ingest.reader import Reader, Reading, TrialTable, seconds_between
from passhat.ingest.rows import Sheet, column_names, sheet_of
from passhat.ingest.scored_rows import ScoredRow, scored_table
from passhat.records.column_names import ColumnMap
from passhat.records.outcome_words import is_missing

_KINDS = ("text", "lines", "array")
_SCORE, _LABEL = ".score", ".label"


def recognises(document: Document) -> bool:
    """Whether runs of examples have annotations, or columns of evaluations."""
    if document.kind not in _KINDS:
        return False
    names = column_names(document)
    return "example_id" in names and ("annotations" in names or bool(_evaluations(names)))


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a run of an example; repetitions are its trials."""
    sheet = sheet_of(document)
    evaluations = _evaluations(sheet.columns)
    rows = [_row(sheet, place, evaluations, mapping) for place in range(len(sheet))]
    return scored_table(document.name, rows, mapping, entry="row", numbers=sheet.numbers)


READER = Reader(
    name="phoenix",
    recognises=recognises,
    read=read,
    reading=Reading(
        format="Phoenix experiment",
        versions="JSON and CSV downloads",
        system="file name",
        task="example_id",
        run="repetition_number",
        outcome="the first annotation (or `scorer`) of 1 passes",
        score="the same annotation",
        started="start_time",
    ),
)


def _evaluations(names: Any) -> dict[str, str]:
    """Columns `eval.NAME.score` by NAME."""
    return {
        name.removeprefix("eval.").removesuffix(_SCORE): name
        for name in names
        if name.startswith("eval.") and name.endswith(_SCORE)
    }


def _row(sheet: Sheet, place: int, evaluations: Mapping[str, str], mapping: ColumnMap) -> ScoredRow:
    scores = {name: sheet.cells(column)[place] for name, column in evaluations.items()}
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
        },
    )


def _annotations(cell: Any) -> Iterator[tuple[str, Any]]:
    """The score of each annotation, its label where it has none."""
    for one in cell if isinstance(cell, list) else ():
        if isinstance(one, Mapping) and one.get("name"):
            score = one.get("score")
            yield str(one["name"]), one.get("label") if score is None else score
