"""Terminal-Bench results: the `results.json` of a run or of a single trial, and submissions.

A submission to the leaderboard is a folder with several runs of one system, each in a folder of its
own or in a file whose name begins with its date.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from passhat.ingest.document import Document, decode
from passhat.ingest.readers import Reading, TrialTable, has_keys, seconds_between
from passhat.ingest.transcripts import FileTurns, as_text, sibling_names
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Check, Transcript, Turn

METADATA = "run_metadata.json"
"""What a run was made with: the agent and its model."""

READING = Reading(
    format="Terminal-Bench results",
    versions="results.json of runs and of single trials, dated files, submissions",
    system="agent/model of run_metadata.json, or the submission's folder",
    task="task_id",
    run="order of trials, run after run",
    outcome="is_resolved",
    started="trial_started_at",
    companions=(METADATA,),
    covers_subfolders=True,
)

recognises = has_keys("results pass_at_k n_resolved", "task_id trial_name is_resolved")

LOGS = "agent-logs"
"""The folder of a trial with its episodes: what the agent was shown, and what it answered."""

_TRIAL = re.compile(r".*\.(\d{1,9})-of-(\d{1,9})(?:\..*)?")
_SUBMISSION = re.compile(r"\d{8}_(.+)")
_RUN = re.compile(r"(?:run)?[_-]?\d.*|.*\d{4}-?\d\d-?\d\d.*|.*[_-]\d{1,3}")
_CONTAINERS = ("", "runs", "results", "logs", "output", "outputs", "tmp")
_EPISODE = re.compile(r"episode-(\d{1,9})")
_NO_FAILURE = ("unset", "none", "")


class _Trial(msgspec.Struct):
    task_id: str
    trial_name: str = ""
    is_resolved: bool | None = None
    failure_mode: str | None = None
    total_input_tokens: int | None = None
    total_output_tokens: int | None = None
    trial_started_at: str | None = None
    agent_started_at: str | None = None
    agent_ended_at: str | None = None


class _Results(msgspec.Struct):
    results: list[_Trial]


class _Spoken(msgspec.Struct):
    task_id: str
    trial_name: str = ""
    instruction: Any = None
    parser_results: Any = None
    failure_mode: str | None = None


class _Metadata(msgspec.Struct):
    agent_name: str | None = None
    model_name: str | None = None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a result; Terminal-Bench counts what it could not resolve as a failure."""
    whole = document.has("results")
    trials = document.decode(_Results).results if whole else [document.decode(_Trial)]
    system, submission, source = _system(document)
    attempts = [_TRIAL.fullmatch(trial.trial_name) for trial in trials]
    # 1-of-1 in every run does not number the runs.
    numbered = all(attempt and int(attempt[2]) > 1 for attempt in attempts)
    rows = [
        _row(trial) | ({"trial": int(attempt[1])} if numbered and attempt else {})
        for trial, attempt in zip(trials, attempts, strict=True)
    ]
    facts = {"system": source, "run": "n-of-m in trial_name" if numbered else "one for each run"}
    return TrialTable.of_rows(
        rows, system=system, entry="result", read_as=facts, submission=submission
    )


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript | None]:
    """What the folder of each trial keeps: the agent's episodes, and its terminal at the end."""
    if not document.has("results"):
        yield _transcript(document, (), document.decode(_Spoken))
        return
    for trial in document.entries(_Spoken, "results"):
        yield _transcript(document, (trial.task_id, trial.trial_name), trial)


def _row(trial: _Trial) -> dict[str, Any]:
    counted = bool(trial.total_input_tokens or trial.total_output_tokens)
    failure = trial.failure_mode or ""
    return {
        "task": trial.task_id,
        "outcome": Outcome(bool(trial.is_resolved)),
        # Agents that report no usage are logged with 0 tokens.
        "tokens_in": trial.total_input_tokens if counted else None,
        "tokens_out": trial.total_output_tokens if counted else None,
        "seconds": seconds_between(trial.agent_started_at, trial.agent_ended_at),
        "started": trial.trial_started_at,
        "error": None if failure in _NO_FAILURE else failure,
    }


def _transcript(document: Document, folder: tuple[str, ...], trial: _Spoken) -> Transcript | None:
    files = FileTurns(document, Turn(role="user", text=as_text(trial.instruction)))
    episodes = sibling_names(
        document, *folder, LOGS, keep=lambda name: _EPISODE.fullmatch(name) is not None
    )
    for episode in sorted(episodes, key=lambda name: int(name.partition("-")[2])):
        files.add("terminal", *folder, LOGS, episode, "prompt.txt")
        files.add("assistant", *folder, LOGS, episode, "response.txt")
    files.add("terminal", *folder, "panes", "post-agent.txt")
    files.add("tests", *folder, "panes", "post-test.txt")
    turns = files.turns()
    tests = trial.parser_results if isinstance(trial.parser_results, dict) else {}
    checks = [_check(name, as_text(word)) for name, word in tests.items()]
    failure = trial.failure_mode or ""
    if not tests and failure not in _NO_FAILURE:
        checks = [Check(target="tests", score=0.0, message=failure.replace("_", " "))]
    if not turns and not checks:
        return None
    # A submission keeps no logs, but says which tests failed, or why none of them is known.
    asked = (Turn(role="user", text=as_text(trial.instruction)),) if trial.instruction else ()
    return Transcript(messages=turns or asked, checks=tuple(checks))


def _check(test: str, word: str) -> Check:
    """One test; it says "passed" or "failed" and no more."""
    passed = word == "passed"
    return Check(
        target=test,
        score=float(passed),
        message="" if passed else word,
        expected="" if passed else "the test passes",
        found="" if passed else f"the test {word}",
    )


def _system(document: Document) -> tuple[str, str | None, str]:
    """The system's name, the folder of its submission, and where the name was found."""
    if document.path is None:
        return document.stem, None, "file name"
    path = document.path.resolve()
    folders = list(path.parents)[:3]
    for folder in folders:
        if named := _SUBMISSION.fullmatch(folder.name):
            return named[1], str(folder), "submission's folder"
    home, metadata = _metadata(document, folders)
    if metadata.agent_name and metadata.model_name:
        name = f"{metadata.agent_name}/{metadata.model_name}"
        return name, str(home.parent), "agent and model of run_metadata.json"
    if Path(document.stem).stem != "results":  # a dated file: its folder holds all runs
        dated = _RUN.fullmatch(path.name) and path.parent.name not in _CONTAINERS
        name = path.parent.name if dated else document.stem
        return name, str(path.parent), "folder name" if dated else "file name"
    if _RUN.fullmatch(home.name) and home.parent.name not in _CONTAINERS:
        return home.parent.name, str(home.parent), "folder name"
    if metadata.agent_name:
        return metadata.agent_name, str(home.parent), "agent of run_metadata.json"
    return home.name, str(home.parent), "folder name"


def _metadata(document: Document, folders: Sequence[Path]) -> tuple[Path, _Metadata]:
    """The folder of the run, and what its metadata say."""
    for folder in folders:
        metadata = folder / METADATA
        if not os.access(metadata, os.R_OK):  # it is not there, or not for us
            continue
        if metadata.is_file() and metadata.stat().st_size <= document.limits.max_bytes:
            return folder, decode(str(metadata), metadata.read_bytes(), _Metadata)
    return folders[0], _Metadata()
