"""TraceLens trials: `trials.json`, a list of trials with their scenario and verdict."""

from __future__ import annotations

from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.reader import Reader, Reading, TrialTable, first_line
from passhat.records import Outcome
from passhat.records.column_names import ColumnMap


class _Trial(msgspec.Struct):
    trial_index: int | None = None
    scenario_id: str | None = None
    scenario: str | None = None
    task_id: str | None = None
    agent: str | None = None
    model: str | None = None
    passed: bool | None = None
    success: bool | None = None
    score: float | None = None
    error: str | None = None


def recognises(document: Document) -> bool:
    """Whether trials of scenarios are numbered, with a trace each."""
    numbered = document.kind in ("array", "lines") and document.has("trial_index", "trace_id")
    return numbered and (document.has("scenario_id") or document.has("scenario"))


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial an entry."""
    if document.kind == "array":
        trials = document.decode(list[_Trial])
    else:
        trials = [trial for _, trial in document.lines(_Trial)]
    return TrialTable.of_rows(map(_row, trials), entry="trial")


READER = Reader(
    name="tracelens",
    recognises=recognises,
    read=read,
    reading=Reading(
        format="TraceLens trials",
        versions="trials.json",
        system="agent, model, or file name",
        task="scenario",
        run="trial_index",
        outcome="passed, or success",
        score="score",
    ),
)


def _row(trial: _Trial) -> dict[str, Any]:
    passed = trial.passed if trial.passed is not None else trial.success
    missing = passed is None
    row: dict[str, Any] = {
        "task": trial.scenario_id or trial.scenario or trial.task_id,
        "outcome": Outcome.ERRORED if missing else Outcome(bool(passed)),
        "score": trial.score,
        "error": first_line(trial.error) or ("no verdict" if missing else None),
    }
    if trial.trial_index is not None:
        row["trial"] = trial.trial_index
    system = trial.agent or trial.model
    return row | ({"system": system} if system else {})
