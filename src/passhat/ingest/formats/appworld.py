"""AppWorld evaluations: `individual` results of each task, beside the aggregate."""

from __future__ import annotations

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, has_keys
from passhat.messages import short
from passhat.records import Outcome
from passhat.records.columns import ColumnMap

READING = Reading(
    format="AppWorld evaluation",
    versions="evaluations/*.json of an experiment",
    system="folder of the experiment, or file name",
    task="task id",
    run="one for each file",
    outcome="success",
    family="scenario (the task id before its number)",
)

recognises = has_keys("aggregate individual")


class _Task(msgspec.Struct):
    success: bool | None = None
    passes_fully: bool | None = None  # the name of `success` in evaluations of 2024
    difficulty: int | str | None = None


class _Evaluation(msgspec.Struct):
    individual: dict[str, _Task]


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a task; tasks of one scenario are a family."""
    rows = []
    for name, task in document.decode(_Evaluation).individual.items():
        success = task.passes_fully if task.success is None else task.success
        if success is None:
            raise ReadError(f'{document.name}, task "{short(name)}": has no "success"')
        rows.append(
            {
                "task": name,
                "outcome": Outcome(success),
                "level": None if task.difficulty is None else str(task.difficulty),
                "family": name.rpartition("_")[0] or None,
            }
        )
    return TrialTable.of_rows(rows, system=_system(document), entry="task")


def _system(document: Document) -> str:
    """EXPERIMENT/evaluations/SPLIT.json is called by the experiment."""
    if document.path is not None:
        folders = document.path.resolve().parents
        if folders[0].name == "evaluations":
            return folders[1].name
    return document.stem
