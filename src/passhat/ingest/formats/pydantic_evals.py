"""pydantic-evals reports: repeats share a source case; runs that raised are in `failures`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, choose_score, first_line, has_keys
from passhat.ingest.transcripts import as_text, asked_and_answered
from passhat.messages import few, short
from passhat.records import Outcome
from passhat.records.columns import ColumnMap
from passhat.records.transcript import Check, Transcript, as_score

READING = Reading(
    format="pydantic-evals report",
    system="report name",
    task="case name",
    run="repeat number in the case name",
    outcome="assertions, or a score of 1",
    score="the only score, or that of `scorer`",
)

recognises = has_keys("name cases failures")

_REPEAT = re.compile(r"(.*) \[(\d+)/\d+\]")


class _Evaluation(msgspec.Struct):
    value: bool | float | int | str | None = None


class _EvaluatorFailure(msgspec.Struct):
    name: str = ""
    error_message: str = ""


class _Case(msgspec.Struct):
    name: str
    source_case_name: str | None = None
    assertions: dict[str, _Evaluation] = {}
    scores: dict[str, _Evaluation] = {}
    metrics: dict[str, float] = {}
    task_duration: float | None = None
    evaluator_failures: list[_EvaluatorFailure] = []


class _Failure(msgspec.Struct):
    name: str
    source_case_name: str | None = None
    error_message: str = ""


class _Report(msgspec.Struct):
    name: str
    cases: list[_Case]
    failures: list[_Failure] = []


class _SpokenEvaluation(_Evaluation):
    reason: Any = None


class _SpokenCase(msgspec.Struct):
    inputs: Any = None
    output: Any = None
    assertions: dict[str, _SpokenEvaluation] = {}
    scores: dict[str, _SpokenEvaluation] = {}
    error_message: Any = None
    error_stacktrace: Any = None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a case that ran or broke; it passed when every assertion holds."""
    report = document.decode(_Report)
    scores = list(dict.fromkeys(name for case in report.cases for name in case.scores))
    asserted = any(case.assertions for case in report.cases)
    # One score for all cases: the first of a case may be another than that of the next.
    chosen = mapping.scorer or (None if asserted else next(iter(scores), None))
    rows = [_case(document.name, case, mapping.scorer, chosen) for case in report.cases]
    rows += [
        {
            **_key(failure.name, failure.source_case_name),
            "outcome": Outcome.ERRORED,
            "error": first_line(failure.error_message) or "failed to run",
        }
        for failure in report.failures
    ]
    return TrialTable.of_rows(
        rows,
        system=report.name,
        notes=_notes(report, mapping.scorer),
        entry="case",
        graded=chosen or "score",
        scores=() if mapping.scorer or asserted else scores,
    )


def transcripts(document: Document, mapping: ColumnMap) -> Iterator[Transcript]:
    """What went in and came out of each case, and what its evaluators said."""
    lists = (document.entries(_SpokenCase, name) for name in ("cases", "failures"))
    for case in itertools.chain(*lists):
        judged = {**case.assertions, **case.scores}
        yield Transcript(
            messages=asked_and_answered(case.inputs, case.output),
            error=as_text(case.error_stacktrace or case.error_message),
            checks=tuple(_check(name, verdict) for name, verdict in judged.items()),
        )


def _key(name: str, source: str | None) -> dict[str, Any]:
    repeat = _REPEAT.fullmatch(name)
    task = source or (repeat[1] if repeat else name)
    return {"task": task, "trial": repeat[2] if repeat else 1}


def _case(file: str, case: _Case, scorer: str | None, chosen: str | None) -> dict[str, Any]:
    row = _key(case.name, case.source_case_name) | {
        "tokens_in": case.metrics.get("input_tokens"),
        "tokens_out": case.metrics.get("output_tokens"),
        "cost": case.metrics.get("cost"),
        "turns": case.metrics.get("requests"),
        "seconds": case.task_duration,
    }
    if scorer is None and case.evaluator_failures:
        failure = case.evaluator_failures[0]
        reason = first_line(failure.error_message) or failure.name
        return row | {"outcome": Outcome.ERRORED, "error": reason}
    return row | _ending(file, case, scorer, chosen)


def _ending(file: str, case: _Case, scorer: str | None, chosen: str | None) -> dict[str, Any]:
    if scorer is None and case.assertions:
        return {"outcome": Outcome(all(assertion.value for assertion in case.assertions.values()))}
    judged: Mapping[str, _Evaluation] = {**case.scores, **case.assertions}
    name = chosen or next(iter(case.scores), None)
    if name is None or name not in judged:
        known = few(judged) or "none"
        asked = f'"{short(chosen)}"' if chosen else "that says whether it passed"
        raise ReadError(f'{file}, case "{short(case.name)}": no evaluator {asked}; it has {known}')
    value = judged[name].value
    if not isinstance(value, (int, float)):
        return {"outcome": Outcome.ERRORED, "error": f"{name} gave no number"}
    return {"outcome": Outcome(value >= 1), "score": value}


def _check(name: str, verdict: _SpokenEvaluation) -> Check:
    score = as_score(verdict.value)
    message = as_text(verdict.reason) or ("" if score is not None else str(verdict.value))
    return Check(target=name, score=score, message=message)


def _notes(report: _Report, scorer: str | None) -> list[str]:
    names = dict.fromkeys(name for case in report.cases for name in case.assertions)
    scores = dict.fromkeys(name for case in report.cases for name in case.scores)
    if scorer is None and len(names) > 1:
        return [f"a case passes when all its assertions hold: {few(names)}"]
    return [] if scorer or names else choose_score(report.name, "score", list(scores), None)[1]
