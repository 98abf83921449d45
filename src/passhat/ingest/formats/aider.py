"""Aider's benchmark: the `.aider.results.json` in the folder of each exercise."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.readers import RUN_WORDS, Reading, TrialTable, has_keys
from passhat.records import Outcome
from passhat.records.columns import ColumnMap

READING = Reading(
    format="Aider benchmark result",
    versions=".aider.results.json of each exercise",
    system="model (and edit format)",
    task="language/testcase",
    run="folder of the benchmark run",
    outcome="last of tests_outcomes",
    family="language",
)

recognises = has_keys("testcase tests_outcomes")

# 2024-12-21-18-41-18--gpt-4o-diff, with or without the number of a repeat after it.
_RUN = re.compile(
    rf"\d{{4}}-?\d\d-?\d\d[-\d]*-(.*?)(?:[-_]?(?:{RUN_WORDS})[-_]?\d+)?", re.IGNORECASE
)


class _Result(msgspec.Struct):
    testcase: str
    tests_outcomes: list[bool]
    model: str = "aider"
    edit_format: str | None = None
    cost: float | None = None
    duration: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial an exercise: passed if its last try did, as in aider's pass_rate_2."""
    result = document.decode(_Result)
    language, run, setup = _places(document)
    tries = result.tests_outcomes
    row: dict[str, Any] = {
        "system": f"{result.model} ({result.edit_format})" if result.edit_format else result.model,
        "task": f"{language}/{result.testcase}" if language else result.testcase,
        "family": language,
        "outcome": Outcome(tries[-1]) if tries else Outcome.ERRORED,
        "error": None if tries else "no test was run",
        "cost": result.cost,
        "seconds": result.duration,
        "tokens_in": result.prompt_tokens,
        "tokens_out": result.completion_tokens,
        "turns": len(tries) or None,
    }
    note = "a second try that saw the failed tests counts as the same trial"
    notes = [note] if len(tries) > 1 else []
    return TrialTable.of_rows([row], notes=notes, entry="result", run=run, submission=setup)


def _places(document: Document) -> tuple[str | None, str | None, str | None]:
    """The language, the run and its setup, by RUN/LANGUAGE/exercises/practice/TESTCASE.

    aider calls a run by its date and by what its user calls the setup.
    """
    folders = document.path.resolve().parts[:-1] if document.path else ()
    dated = next((match for name in folders[::-1] if (match := _RUN.fullmatch(name))), None)
    setup = dated[1] or None if dated else None
    if len(folders) > 5 and folders[-3:-1] == ("exercises", "practice"):
        return folders[-4], folders[-5], setup
    return None, folders[-2] if len(folders) > 2 else None, setup
