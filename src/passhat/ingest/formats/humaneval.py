"""HumanEval results: the JSON Lines that `evaluate_functional_correctness` writes."""

from __future__ import annotations

import msgspec

from passhat.ingest.columns import ColumnMap
from passhat.ingest.document import Document
from passhat.ingest.reader import Reader, Table
from passhat.records import Outcome


class _Sample(msgspec.Struct):
    task_id: str
    passed: bool


def recognises(document: Document) -> bool:
    """Whether each line has a completion and its verdict."""
    return document.kind in ("lines", "json") and document.has(
        "task_id", "completion", "result", "passed"
    )


def read(document: Document, mapping: ColumnMap) -> Table:
    """One trial a sample, numbered as they come."""
    samples = list(document.lines(_Sample))
    system = document.stem.removesuffix(".jsonl_results").removesuffix("_results")
    rows = [
        {"system": system, "task": sample.task_id, "outcome": Outcome(sample.passed)}
        for _, sample in samples
    ]
    return Table.of_rows(rows, entry="line", numbers=[line for line, _ in samples])


READER = Reader(
    name="humaneval", recognises=recognises, read=read, describes="HumanEval result lines"
)
