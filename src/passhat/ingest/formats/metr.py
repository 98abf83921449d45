"""METR's `runs.jsonl`: all runs from which it computes time horizons, one a line."""

from __future__ import annotations

from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, first_line, has_keys, time_of
from passhat.records import Outcome
from passhat.records.columns import ColumnMap

READING = Reading(
    format="METR runs",
    versions="runs.jsonl of eval-analysis-public",
    system="alias, or model",
    task="task_id",
    run="order of lines",
    outcome="score_binarized",
    score="score_cont",
    family="task_family",
    started="started_at",
)

recognises = has_keys("task_id score_binarized")


class _Run(msgspec.Struct):
    task_id: str
    score_binarized: float | None
    alias: str | None = None
    model: str | None = None
    task_family: str | None = None
    score_cont: float | None = None
    fatal_error_from: str | None = None
    generation_cost: float | None = None
    started_at: float | None = None
    completed_at: float | None = None
    invsqrt_task_weight: float | None = None
    equal_task_weight: float | None = None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a run; a run that broke for another reason than the agent is errored."""
    return TrialTable.of_rows({"line": line, **_row(run)} for line, run in document.lines(_Run))


def _row(run: _Run) -> dict[str, Any]:
    # A run that the agent breaks has failed; one that broke around it says nothing of the agent.
    outside = run.fatal_error_from not in (None, "", "agent")
    broke = run.score_binarized is None or outside
    weight = run.invsqrt_task_weight
    took = (run.completed_at or 0) - (run.started_at or 0)
    known = run.completed_at is not None and run.started_at is not None and took >= 0
    return {
        "system": run.alias or run.model or "agent",
        "task": run.task_id,
        "family": run.task_family,
        "weight": run.equal_task_weight if weight is None else weight,
        "outcome": Outcome.ERRORED if broke else Outcome((run.score_binarized or 0) >= 1),
        "score": None if broke else run.score_cont,
        "cost": run.generation_cost,
        "seconds": took / 1000 if known else None,
        "started": time_of((run.started_at or 0) / 1000),
        "error": first_line(run.fatal_error_from) or ("no score" if broke else None),
    }
