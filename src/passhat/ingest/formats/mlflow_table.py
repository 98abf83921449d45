"""MLflow evaluation tables: `eval_results_table.json`, columns `NAME/score` and rows of cells."""

from __future__ import annotations

from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable
from passhat.ingest.scored_rows import ScoredRow, scored_table
from passhat.messages import few, plural, short
from passhat.records.columns import ColumnMap

READING = Reading(
    format="MLflow evaluation table",
    versions="eval_results_table.json of 2 and 3",
    system="file name",
    task="column inputs, request_id, ...",
    run="order of rows",
    outcome="the first NAME/score or NAME/value (or `scorer`) of 1 passes",
    score="the same column",
)

_ENDINGS = ("/score", "/value")
_GRADED = "/justification"
"""A judge's score has this column beside it: MLflow's judges grade from 1, the worst, to 5."""
_TASKS = ("request_id", "task", "task_id", "inputs", "question", "request", "input", "prompt")


class _Split(msgspec.Struct):
    columns: list[str]
    data: list[list[Any]]


def recognises(document: Document) -> bool:
    """Whether it lists the names of columns and the rows of their cells."""
    if not document.has("columns", "data"):
        return False
    columns = bytes(document.first["columns"]).replace(rb"\/", b"/")
    return any(ending.encode() + b'"' in columns for ending in _ENDINGS)


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a row; rows of the same input are runs of one task."""
    split = document.decode(_Split)
    width = len(split.columns)
    task = mapping.task or next((name for name in _TASKS if name in split.columns), None)
    if task not in split.columns:
        raise ReadError(
            f"{document.name}: no column says which task a row is about; say `task=COLUMN`. It has "
            f"the columns {few(split.columns)}"
        )
    for place, cells in enumerate(split.data):
        if len(cells) != width:
            raise ReadError(
                f"{document.name}, row {place}: has {plural(len(cells), 'cell')} where the header "
                f"has {width}"
            )
    rows = [_row(dict(zip(split.columns, cells, strict=True)), task) for cells in split.data]
    facts = {"task": f'column "{short(task)}"'}
    graded = {name.removesuffix(_GRADED) for name in split.columns if name.endswith(_GRADED)}
    unclear = dict.fromkeys(graded, "is a judge's grade, in MLflow from 1 (the worst) to 5")
    return scored_table(document.name, rows, mapping, entry="row", read_as=facts, unclear=unclear)


def _row(cells: dict[str, Any], task: str) -> ScoredRow:
    return ScoredRow(
        task=cells[task],
        scores={
            name.removesuffix(ending): value
            for name, value in cells.items()
            for ending in _ENDINGS
            if name.endswith(ending)
        },
        error=cells.get("error"),
    )
