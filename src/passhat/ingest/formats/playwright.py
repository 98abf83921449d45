"""Playwright's JSON report: suites, specs, and the results of each test, one for each attempt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from passhat.errors import ReadError
from passhat.ingest.document import Document
from passhat.ingest.readers import Reading, TrialTable, first_line
from passhat.ingest.repeated_tests import skipped_note
from passhat.messages import plural
from passhat.records import Outcome
from passhat.records.columns import ColumnMap

READING = Reading(
    format="Playwright report",
    versions="JSON reporter",
    system="project, or file name",
    task="file, describe blocks and title",
    run="repeats and retries",
    outcome="status",
    started="startTime",
)

_ENDINGS = {"passed": Outcome.PASSED, "failed": Outcome.FAILED, "timedOut": Outcome.FAILED}
_DEEPEST = 64


class _Error(msgspec.Struct):
    message: str | None = None


class _Result(msgspec.Struct, rename="camel"):
    status: str | None = None
    retry: int = 0
    duration: float | None = None
    start_time: str | None = None
    error: _Error | None = None


class _Test(msgspec.Struct, rename="camel"):
    results: list[_Result]
    project_name: str = ""


class _Spec(msgspec.Struct):
    title: str
    tests: list[_Test]
    file: str = ""
    tags: list[str] = []


class _Suite(msgspec.Struct):
    title: str = ""
    specs: list[_Spec] = []
    suites: list[_Suite] = []


class _Config(msgspec.Struct):
    version: str = ""


class _Report(msgspec.Struct):
    suites: list[_Suite]
    config: _Config = msgspec.field(default_factory=_Config)


def recognises(document: Document) -> bool:
    """Whether it has suites and counts of what was expected and flaky."""
    return document.has("suites", "stats") and b'"flaky"' in bytes(document.first["stats"])


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a result; a test that was expected to fail is a trial by what it did."""
    report = document.decode(_Report)
    tests = [test for suite in report.suites for test in _tests(document, suite, (), 1)]
    rows = [row for name, spec, test in tests for row in _rows(document, name, spec, test)]
    retried = sum(bool(row.pop("retry")) for row in rows)
    notes = []
    if retried:
        notes.append(
            f"{plural(retried, 'trial is a retry', 'trials are retries')} of a test that had "
            "failed; retries end at the first pass, which favours the tests that were retried"
        )
    notes += skipped_note(
        sum(all(result.status == "skipped" for result in test.results) for *_, test in tests)
    )
    version = f" ({report.config.version})" if report.config.version else ""
    facts = {"format": f"Playwright report{version}"}
    return TrialTable.of_rows(rows, notes=notes, entry="result", read_as=facts)


def _tests(
    document: Document, suite: _Suite, above: tuple[str, ...], depth: int
) -> Iterator[tuple[str, _Spec, _Test]]:
    """Each test in a suite and the suites inside, with its full name and its spec."""
    if depth > _DEEPEST:
        raise ReadError(f"{document.name}: suites are nested too deeply for a Playwright report")
    path = (*above, suite.title) if suite.title else above
    for spec in suite.specs:
        yield from ((" > ".join((*path, spec.title)), spec, test) for test in spec.tests)
    for inner in suite.suites:
        yield from _tests(document, inner, path, depth + 1)


def _rows(document: Document, name: str, spec: _Spec, test: _Test) -> Iterator[dict[str, Any]]:
    for result in test.results:
        if result.status == "skipped":
            continue
        outcome = _ENDINGS.get(result.status or "", Outcome.ERRORED)
        message = first_line(result.error.message) if result.error else None
        yield {
            "system": test.project_name or document.stem,
            "task": name,
            "outcome": outcome,
            "seconds": None if result.duration is None else result.duration / 1000,
            "error": None if outcome is Outcome.PASSED else message or result.status,
            "started": result.start_time,
            "tags": tuple(spec.tags),
            "retry": result.retry,
        }
