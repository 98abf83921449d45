"""AgentDojo's runs: a file for each user task, by itself and under each injection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, has_keys
from passhat.ingest.transcripts import turns_of
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Transcript

READING = Reading(
    format="AgentDojo run",
    versions="0.1.35",
    system="pipeline_name",
    task="suite, user task, and the attack with its injection task if there is one",
    run="order of files",
    outcome="utility; with `scorer='security'`, an attack that did not succeed passes",
    family="suite_name",
    started="evaluation_timestamp",
)

recognises = has_keys("suite_name pipeline_name user_task_id utility security")

_SECURITY = "security"


class _Run(msgspec.Struct):
    suite_name: str
    pipeline_name: str
    user_task_id: str
    utility: bool
    security: bool
    injection_task_id: str | None = None
    attack_type: str | None = None
    duration: float | None = None
    evaluation_timestamp: str | None = None


class _SpokenRun(msgspec.Struct):
    messages: Any = None
    error: str | None = None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a file; what prepares an attack, or cannot say how one ended, is none."""
    run = document.decode(_Run)
    by_security = mapping.scorer == _SECURITY
    if run.user_task_id.startswith("injection_task"):
        return _no_trial(run, "tries the task of an injection by itself, which prepares an attack")
    if by_security and run.injection_task_id is None:
        return _no_trial(run, "has no injection, so that no attack could succeed")
    attack = (run.attack_type or "attack", run.injection_task_id) if run.injection_task_id else ()
    row = {
        "task": "/".join((run.suite_name, run.user_task_id, *attack)),
        "family": run.suite_name,
        # `security` says whether the injection did what it was after.
        "outcome": Outcome(not run.security if by_security else run.utility),
        "seconds": run.duration,
        "started": run.evaluation_timestamp,
    }
    facts = {"outcome": "an attack that did not succeed passes" if by_security else "utility"}
    other = () if by_security else ("security (choose with `scorer`)",)
    return TrialTable.of_rows(
        [row], system=run.pipeline_name, entry="run", read_as=facts, left_out=other
    )


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript]:
    """The messages of the run."""
    run = document.decode(_SpokenRun)
    yield Transcript(messages=turns_of(run.messages), error=run.error or "")


def _no_trial(run: _Run, why: str) -> TrialTable:
    return TrialTable.of_rows([], system=run.pipeline_name, notes=[f"{run.user_task_id} {why}"])
