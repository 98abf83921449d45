"""MCPMark results: `meta.json` of each run of a task, or all runs of a task in one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, first_line, has_keys
from passhat.ingest.transcripts import sibling_decoded, turns_of
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Transcript

READING = Reading(
    format="MCPMark results",
    versions="meta.json of each run, and one file with all runs of a task",
    system="model",
    task="task",
    run="run-N",
    outcome="success",
    family="MCP service",
    started="time.start",
    companions=("messages.json",),
)

recognises = has_keys("model service task runs", "task_name model_name execution_result")

_RUN = re.compile(r"run-(\d{1,18})")


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None


class _Verdict(msgspec.Struct):
    success: bool
    error_message: str | None = None


class _Run(_Verdict):
    execution_time: float | None = None
    token_usage: _Usage | None = None
    turn_count: int | None = None


class _Task(msgspec.Struct):
    model: str
    service: str
    task: str
    runs: dict[str, _Run]


class _Times(msgspec.Struct):
    start: str | None = None


class _Meta(msgspec.Struct):
    task_name: str
    model_name: str
    execution_result: _Verdict
    mcp: str = ""
    agent_execution_time: float | None = None
    token_usage: _Usage | None = None
    turn_count: int | None = None
    time: _Times | None = None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a run; an agent that stopped on an error is errored unless the check passed."""
    if document.has("runs"):
        task = document.decode(_Task)
        rows = [
            {
                "system": task.model,
                "task": task.task,
                "trial": name,
                "tags": (task.service,),
                "family": task.service,
                **_ending(run, run, run.execution_time),
            }
            for name, run in task.runs.items()
        ]
        return TrialTable.of_rows(rows, entry="run")
    meta = document.decode(_Meta)
    row = {
        "system": meta.model_name,
        "task": meta.task_name,
        "tags": (meta.mcp,) if meta.mcp else (),
        "family": meta.mcp or None,
        "started": meta.time.start if meta.time else None,
        **_ending(meta.execution_result, meta, meta.agent_execution_time),
    }
    # By the innermost folder named like a run: folders above it may be named so too.
    folders = Path(document.folder or "").parts[::-1]
    if run := next(filter(None, map(_RUN.fullmatch, folders)), None):
        row["trial"] = int(run[1])
    return TrialTable.of_rows([row], entry="run")


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript | None]:
    """The `messages.json` beside a run's meta.json; a file of all runs of a task holds none."""
    if document.has("runs"):
        yield from [None] * len(document.decode(_Task).runs)
        return
    messages, broken = sibling_decoded(document, list[Any], "messages.json")
    yield Transcript(messages=turns_of(messages), error=broken)


def _ending(verdict: _Verdict, took: _Run | _Meta, seconds: float | None) -> dict[str, Any]:
    error = first_line(verdict.error_message)
    broke = error is not None and not verdict.success
    usage = took.token_usage or _Usage()
    return {
        "outcome": Outcome.ERRORED if broke else Outcome(verdict.success),
        "error": error,
        "seconds": seconds,
        "tokens_in": usage.input_tokens,
        "tokens_out": usage.output_tokens,
        "turns": took.turn_count,
    }
