"""NeMo Evaluator results: a list of samples with the reward of each."""

from __future__ import annotations

from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, has_keys
from passhat.records import Outcome
from passhat.records.columns import ColumnMap

READING = Reading(
    format="NeMo Evaluator results",
    system="file name",
    task="benchmark/idx",
    run="repeat, or order of samples",
    outcome="a reward of 1 passes",
    score="reward",
    family="benchmark",
)

recognises = has_keys("idx reward model_response scoring_details")


class _Sample(msgspec.Struct):
    idx: int | str
    reward: float | None = None
    metadata: Any = None
    error: str | None = None
    repeat: int | None = None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a sample; its `system` is the system prompt, and no agent."""
    rows = map(_row, document.each(_Sample))
    return TrialTable.of_rows(rows, entry="sample", graded="reward")


def _row(sample: _Sample) -> dict[str, Any]:
    metadata = sample.metadata if isinstance(sample.metadata, dict) else {}
    benchmark = metadata.get("benchmark")
    return {
        "task": f"{benchmark}/{sample.idx}" if benchmark else sample.idx,
        "family": str(benchmark) if benchmark else None,
        "outcome": Outcome.ERRORED if sample.reward is None else Outcome(sample.reward >= 1),
        "score": sample.reward,
        "error": sample.error or ("no reward" if sample.reward is None else None),
        **({} if sample.repeat is None else {"trial": sample.repeat}),
    }
