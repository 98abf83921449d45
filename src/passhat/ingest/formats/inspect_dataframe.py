"""Inspect's data frames (`samples_df`) as CSV or Parquet: a row a sample, `score_*` columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable
from passhat.ingest.rows import column_names, table_of
from passhat.ingest.scored_rows import ScoredRow, scored_table, scores_in
from passhat.records.columns import ColumnMap, is_missing

READING = Reading(
    format="Inspect data frame",
    versions="samples_df() as CSV, JSON or Parquet",
    system="model, or eval_id if there is none",
    task="task_name/id",
    run="epoch",
    outcome="the first score_NAME (or `scorer`) of 1 (C) passes",
    score="the same column",
    started="started_at",
)

_SCORE = "score_"
_COLUMNS = (
    *("task_name", "task", "id", "model", "eval_id", "epoch", "error", "total_tokens"),
    *("working_time", "total_time", "turn_count", "started_at"),
)


def recognises(document: Document) -> bool:
    """Whether rows are samples of evaluations, by id and epoch."""
    names = column_names(document)
    return {"sample_id", "eval_id", "id", "epoch"} <= set(names)


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a sample and epoch; `sample_id` is another one in every epoch, so `id` is taken."""
    sheet = table_of(document)
    scorers = [name for name in sheet.columns if name.startswith(_SCORE)]
    if not scorers:
        raise ReadError(
            f"{document.name}: holds samples of Inspect without scores; score the log with "
            "`inspect score`, or give the log itself"
        )
    rows = [_row(row) for row in sheet.rows(*_COLUMNS, *scorers)]
    return scored_table(document.name, rows, mapping, entry="row", numbers=sheet.numbers)


def _row(row: Mapping[str, Any]) -> ScoredRow:
    def cell(*names: str) -> Any:
        return next((row[name] for name in names if not is_missing(row[name])), None)

    name, sample = cell("task_name", "task"), cell("id")
    return ScoredRow(
        task=f"{name}/{sample}" if name is not None else sample,
        system=str(cell("model", "eval_id") or "inspect"),
        trial=cell("epoch"),
        scores=scores_in(row, _SCORE),
        error=cell("error"),
        more={
            "tokens": cell("total_tokens"),
            "seconds": cell("working_time", "total_time"),
            "turns": cell("turn_count"),
            "started": cell("started_at"),
        },
    )
