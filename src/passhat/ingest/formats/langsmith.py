"""LangSmith experiments exported as CSV: columns `inputs.*`, `outputs.*` and `feedback.*`."""

from __future__ import annotations

from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable
from passhat.ingest.rows import column_names, table_of
from passhat.ingest.scored_rows import ScoredRow, scored_table, scores_in
from passhat.messages import short
from passhat.records.columns import ColumnMap

READING = Reading(
    format="LangSmith experiment",
    versions="CSV export",
    system="file name",
    task="example_id, or the first input",
    run="order of rows",
    outcome="the first feedback.NAME (or `scorer`) of 1 passes",
    score="the same column",
    started="start_time",
)

_FEEDBACK = "feedback."
_INPUTS = "inputs."


def recognises(document: Document) -> bool:
    """Whether columns hold feedback, and inputs or the example that they belong to."""
    names = column_names(document)
    fed = any(name.startswith(_FEEDBACK) for name in names)
    return fed and ("example_id" in names or any(name.startswith(_INPUTS) for name in names))


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a run of an example; runs of one example are its trials."""
    sheet = table_of(document)
    inputs = [name for name in sheet.columns if name.startswith(_INPUTS)]
    tasks = ["example_id"] if "example_id" in sheet.columns else inputs[:1]
    task = mapping.task or tasks[0]
    scorers = [name for name in sheet.columns if name.startswith(_FEEDBACK)]
    rows = [
        ScoredRow(
            task=row[task],
            scores=scores_in(row, _FEEDBACK),
            error=row["error"],
            more={"seconds": row["execution_time"], "started": row["start_time"] or None},
        )
        for row in sheet.rows(task, *scorers, "error", "execution_time", "start_time")
    ]
    facts = {"task": f'column "{short(task)}"'}
    return scored_table(
        document.name, rows, mapping, entry="row", numbers=sheet.numbers, read_as=facts
    )
