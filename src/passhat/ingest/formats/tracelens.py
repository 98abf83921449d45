"""TraceLens trials: the `trials.json` that `tracelens run --save-trials` writes."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.readers import (
    Reading,
    TrialTable,
    first_line,
    has_keys,
    seconds_between,
    sum_of,
)
from passhat.ingest.transcripts import as_text
from passhat.messages import plural
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Call, Check, Transcript, Turn
from passhat.records.trial import path_of

READING = Reading(
    format="TraceLens trials",
    versions="trials.json of 0.7",
    system="agent_name, the adapter's name and version, or file name",
    task="task_id",
    run="run_index",
    outcome="passed of all graders; infra_error and grader_error are errored",
    score="mean of the graders' scores",
    started="started_at",
)

recognises = has_keys("batch_id trials")

_NOT_RUN = ("pending", "running", "skipped")
_BROKEN = "infra_error"
_ROLES = {"user_input": "user", "tool_call": "tool", "error": "error"}


class _Graded(msgspec.Struct):
    passed: bool
    score: float | None = None
    grader_id: str = ""
    grader_error: bool = False
    feedback: str | None = None


class _Step(msgspec.Struct):
    step_type: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None


class _ToolCall(msgspec.Struct):
    tool_name: str = ""
    arguments: Any = None
    result: Any = None
    error: str | None = None


class _Log(msgspec.Struct):
    agent_name: str | None = None
    steps: list[_Step] = []
    tool_calls: list[_ToolCall] = []


class _Trial(msgspec.Struct):
    task_id: str
    status: str
    run_index: int = 0
    outcomes: list[_Graded] = []
    transcript: _Log | None = None
    error_message: str | None = None
    started_at: str | None = None
    completed_at: str | None = None


class _Batch(msgspec.Struct):
    trials: list[_Trial]
    provenance: Any = None


class _SpokenStep(msgspec.Struct):
    step_type: str = ""
    content: Any = None
    tool_call: _ToolCall | None = None
    error: str | None = None


class _SpokenLog(msgspec.Struct):
    steps: list[_SpokenStep] = []
    final_output: Any = None


class _SpokenTrial(msgspec.Struct):
    status: str
    transcript: _SpokenLog | None = None
    outcomes: list[_Graded] = []
    error_message: str | None = None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a run of a task; it passes if all its graders pass it, as TraceLens counts it."""
    batch = document.decode(_Batch)
    named = _candidate(batch.provenance)
    ran = [trial for trial in batch.trials if trial.status not in _NOT_RUN]
    left = len(batch.trials) - len(ran)
    notes = [f"{plural(left, 'trial was', 'trials were')} not run to the end"] if left else []
    rows = [_row(trial, named) for trial in ran]
    return TrialTable.of_rows(rows, notes=notes, entry="trial")


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript | None]:
    """The steps of each trial, and what its graders said."""
    for trial in document.entries(_SpokenTrial, "trials"):
        if trial.status not in _NOT_RUN:
            yield _transcript(trial)


def _candidate(provenance: Any) -> str | None:
    """The adapter that was run, by its own name or its class, and its version."""
    for key in ("candidate", "adapter"):
        provenance = provenance.get(key) if isinstance(provenance, dict) else None
    if not isinstance(provenance, dict):
        return None
    name = provenance.get("name") or str(provenance.get("class_path") or "").rpartition(".")[2]
    version = provenance.get("version")
    return f"{name} {version}" if name and version else str(name) or None


def _row(trial: _Trial, named: str | None) -> dict[str, Any]:
    log = trial.transcript or _Log()
    scores = [outcome.score for outcome in trial.outcomes if outcome.score is not None]
    calls = [call.tool_name for call in log.tool_calls]
    broke = trial.status == _BROKEN or any(outcome.grader_error for outcome in trial.outcomes)
    passed = bool(trial.outcomes) and all(outcome.passed for outcome in trial.outcomes)
    row = {
        "task": trial.task_id,
        "trial": trial.run_index,
        "outcome": Outcome.ERRORED if broke else Outcome(passed),
        "score": fmean(scores) if scores and not broke else None,
        # Agents that count nothing are logged with 0 tokens.
        "tokens_in": sum_of(step.tokens_in for step in log.steps) or None,
        "tokens_out": sum_of(step.tokens_out for step in log.steps) or None,
        "seconds": seconds_between(trial.started_at, trial.completed_at),
        "tool_calls": len(calls),
        "tools": path_of(calls),
        "started": trial.started_at,
        "error": first_line(trial.error_message) or ("grader error" if broke else None),
    }
    system = log.agent_name or named
    return row | ({"system": system} if system else {})


def _transcript(trial: _SpokenTrial) -> Transcript:
    steps = trial.transcript.steps if trial.transcript else []
    checks = (
        Check(target=outcome.grader_id, score=outcome.score, message=outcome.feedback or "")
        for outcome in trial.outcomes
    )
    return Transcript(
        messages=tuple(map(_turn, steps)),
        answer=as_text(trial.transcript.final_output) if trial.transcript and not steps else "",
        error=trial.error_message or "",
        checks=tuple(checks),
    )


def _turn(step: _SpokenStep) -> Turn:
    call = step.tool_call
    role = _ROLES.get(step.step_type, "assistant")
    if call is None:
        return Turn(role=role, text=as_text(step.content) or step.error or "")
    made = Call(name=call.tool_name, arguments=as_text(call.arguments))
    return Turn(role=role, text=as_text(call.result) or call.error or "", calls=(made,))
