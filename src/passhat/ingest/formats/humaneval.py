"""HumanEval results: the JSON Lines that `evaluate_functional_correctness` writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, has_keys
from passhat.ingest.transcripts import as_text
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Check, Transcript

READING = Reading(
    format="HumanEval results",
    system="file name",
    task="task_id",
    run="order of samples",
    outcome="passed",
)

recognises = has_keys("task_id completion result passed")


class _Sample(msgspec.Struct):
    task_id: str
    passed: bool


class _Spoken(msgspec.Struct):
    passed: bool
    completion: Any = None
    result: Any = None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a sample, numbered as they come."""
    system = document.stem.removesuffix(".jsonl_results").removesuffix("_results")
    rows = [
        {"line": line, "task": sample.task_id, "outcome": Outcome(sample.passed)}
        for line, sample in document.lines(_Sample)
    ]
    return TrialTable.of_rows(rows, system=system)


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript]:
    """The completion of each sample, and what came of running it."""
    for _, sample in document.lines(_Spoken):
        message = as_text(sample.result)
        check = Check(target="tests", score=float(sample.passed), message=message)
        yield Transcript(answer=as_text(sample.completion), checks=(check,))
