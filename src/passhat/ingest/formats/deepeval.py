"""DeepEval test runs: `test_run_*.json` and the latest run, which wraps the same thing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, first_line, has_keys
from passhat.ingest.transcripts import as_text, asked_and_answered, turns_of
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Check, Transcript
from passhat.records.trial import GRADED_BY_JUDGE

READING = Reading(
    format="DeepEval test run",
    system="identifier, or hyperparameter model",
    task="test case name",
    run="order of test cases",
    outcome="success",
    score="score of the only metric, or of `scorer`",
    companions=(".latest_test_run.json",),
    snapshots=(".latest_run_full.json", ".latest_test_run.json", "latest_test_run.json"),
)

recognises = has_keys("testRunData", "testCases testPassed")


class _Metric(msgspec.Struct):
    name: str = ""
    success: bool | None = None
    score: float | None = None
    error: str | None = None
    evaluation_model: str | None = msgspec.field(name="evaluationModel", default=None)


class _Case(msgspec.Struct, rename="camel"):
    name: str
    success: bool | None = None
    metrics_data: list[_Metric] | None = None
    run_duration: float | None = None
    evaluation_cost: float | None = None
    tags: list[str] | None = None


class _Run(msgspec.Struct, rename="camel"):
    test_cases: list[_Case] = []
    conversational_test_cases: list[_Case] = []
    identifier: str | None = None
    hyperparameters: dict[str, Any] | None = None


class _SpokenMetric(_Metric):
    reason: Any = None


class _SpokenCase(msgspec.Struct, rename="camel"):
    input: Any = None
    actual_output: Any = None
    turns: Any = None
    metrics_data: list[_SpokenMetric] | None = None


class _Latest(msgspec.Struct, rename="camel"):
    test_run_data: _Run


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a test case; cases of one name are repeats."""
    wrapped = document.has("testRunData")
    run = document.decode(_Latest).test_run_data if wrapped else document.decode(_Run)
    system = str(run.identifier or (run.hyperparameters or {}).get("model") or "system")
    cases = [*run.test_cases, *run.conversational_test_cases]
    rows = [_row(case, mapping) for case in cases]
    notes = [GRADED_BY_JUDGE] if any(_graded_by(case, mapping) for case in cases) else []
    return TrialTable.of_rows(rows, system=system, entry="test case", notes=notes)


def _graded_by(case: _Case, mapping: ColumnMap) -> bool:
    """Whether a model gave one of the metrics that are read."""
    every = case.metrics_data or ()
    return any(metric.evaluation_model for metric in every if mapping.scorer in (None, metric.name))


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript]:
    """What went in and came out of each test case, and the reasons that its metrics gave."""
    home = ("testRunData",) if document.has("testRunData") else ()
    lists = [(*home, "testCases"), (*home, "conversationalTestCases")]
    for case in itertools.chain(*(document.entries(_SpokenCase, *keys) for keys in lists)):
        turns = turns_of(case.turns) or asked_and_answered(case.input, case.actual_output)
        checks = (
            Check(
                target=metric.name,
                score=metric.score,
                message=metric.error or as_text(metric.reason),
            )
            for metric in case.metrics_data or ()
        )
        yield Transcript(messages=turns, checks=tuple(checks))


def _row(case: _Case, mapping: ColumnMap) -> dict[str, Any]:
    metrics = case.metrics_data or []
    if mapping.scorer is not None:
        metrics = [metric for metric in metrics if metric.name == mapping.scorer]
    error = next((metric.error for metric in metrics if metric.error), None)
    passed = case.success if mapping.scorer is None else all(bool(m.success) for m in metrics)
    broke = error is not None or passed is None or (mapping.scorer is not None and not metrics)
    return {
        "task": case.name,
        "outcome": Outcome.ERRORED if broke else Outcome(bool(passed)),
        "score": metrics[0].score if len(metrics) == 1 else None,
        "seconds": case.run_duration,
        "tags": tuple(case.tags or ()),
        "error": (first_line(error) or "not scored") if broke else None,
    }
