"""ragas results as a table: an input, a response, and a column for each metric."""

from __future__ import annotations

from collections.abc import Iterable

from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable
from passhat.ingest.rows import column_names, table_of
from passhat.ingest.scored_rows import ScoredRow, scored_table
from passhat.messages import short
from passhat.records.columns import ColumnMap

READING = Reading(
    format="ragas results",
    versions="to_pandas() of 0.1 to 0.3, as CSV, JSON or Parquet",
    system="file name",
    task="user_input",
    run="order of rows",
    outcome="the first metric (or `scorer`) of 1 passes",
    score="the same metric",
)

_TASKS = ("user_input", "question")
_SAMPLE = frozenset(
    (
        *("user_input", "question", "retrieved_contexts", "contexts", "reference_contexts"),
        *("response", "answer", "reference", "ground_truth", "ground_truths", "rubrics"),
        *("multi_responses", "reference_tool_calls", "retrieved_context_ids", "persona_name"),
        *("reference_context_ids", "synthesizer_name", "query_style", "query_length"),
    )
)
"""The columns of a sample; all others are metrics."""


def recognises(document: Document) -> bool:
    """Whether rows have an input, a response or contexts, and metrics beside them."""
    names = column_names(document)
    asked = any(name in names for name in _TASKS)
    answered = bool({"retrieved_contexts", "contexts"} & set(names)) and bool(
        {"response", "answer"} & set(names)
    )
    return asked and answered and bool(_metrics(names))


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a sample; samples of one input are runs of one task."""
    sheet = table_of(document)
    task = mapping.task or next(name for name in _TASKS if name in sheet.columns)
    metrics = _metrics(sheet.columns)
    rows = [
        ScoredRow(task=row[task], scores={name: row[name] for name in metrics})
        for row in sheet.rows(task, *metrics)
    ]
    facts = {"task": f'column "{short(task)}"'}
    return scored_table(
        document.name, rows, mapping, entry="row", numbers=sheet.numbers, read_as=facts
    )


def _metrics(names: Iterable[str]) -> list[str]:
    unnamed = ("", "index")  # the index of a data frame
    return [
        name
        for name in names
        if name not in _SAMPLE and name not in unnamed and not name.startswith("Unnamed:")
    ]
