"""tau-bench results: a JSON array with a task, a trial and a reward each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.readers import Named, Reading, TrialTable, first_line, has_keys
from passhat.ingest.transcripts import turns_of
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Transcript

READING = Reading(
    format="tau-bench results",
    system="file name",
    task="task_id",
    run="trial",
    outcome="a reward of 1 passes",
    score="reward",
)

recognises = has_keys("task_id reward traj")

SUCCESS = 1 - 1e-6
"""The reward from which tau-bench counts a success."""


class _ToolCall(msgspec.Struct):
    function: Named = msgspec.field(default_factory=Named)


class _Message(msgspec.Struct):
    role: str = ""
    tool_calls: list[_ToolCall] | None = None


class _Info(msgspec.Struct):
    error: str | None = None


class _Run(msgspec.Struct):
    task_id: int | str
    reward: float
    trial: int = 0
    info: _Info | None = None
    traj: list[_Message] | None = None


class _Spoken(msgspec.Struct):
    traj: list[Any] | None = None
    info: _Info | None = None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial an entry; a run that broke has an error in place of a conversation."""
    runs = document.decode(list[_Run])
    return TrialTable.of_rows(_rows(runs))


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript]:
    """The trajectory of each entry."""
    for run in document.entries(_Spoken):
        error = run.info.error if run.info else None
        yield Transcript(messages=turns_of(run.traj), error=error or "")


def _rows(runs: list[_Run]) -> Iterator[dict[str, Any]]:
    for run in runs:
        messages = run.traj or []
        calls = [call.function.name for message in messages for call in message.tool_calls or ()]
        error = first_line(run.info.error if run.info else None)
        yield {
            "task": run.task_id,
            "trial": run.trial,
            "outcome": Outcome.ERRORED if error else Outcome(run.reward >= SUCCESS),
            "score": run.reward,
            "turns": sum(message.role == "assistant" for message in messages),
            "tool_calls": len(calls),
            "tools": tuple(dict.fromkeys(calls)),
            "error": error,
        }
