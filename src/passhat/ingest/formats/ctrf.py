"""CTRF reports (Common Test Report Format): one entry a test, with its retries.

Some reporters list each attempt of a retried test, others only count them: what was retried before
the last attempt had failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from passhat.ingest.document import Document
from passhat.ingest.readers import Named, Reading, TrialTable, first_line, time_of
from passhat.ingest.repeated_tests import skipped_note, tests_of
from passhat.messages import plural
from passhat.records import Outcome
from passhat.records.columns import ColumnMap

READING = Reading(
    format="CTRF report",
    versions="0.0 and 1.0, of Jest, Playwright, pytest and others",
    system="tool name",
    task="suite and test name",
    run="retries, repeat marks in names, order of tests",
    outcome="status",
    started="start",
)

_ENDINGS = {"passed": Outcome.PASSED, "failed": Outcome.FAILED}
_NOT_RUN = ("skipped", "pending")
_MOST_RETRIES = 1000
_SECONDS_BELOW = 1e11
"""Times in milliseconds exceed this number since 1973; some reporters write seconds."""


class _Attempt(msgspec.Struct):
    status: str = "failed"
    duration: float | None = None
    message: str | None = None
    start: float | None = None


class _Test(_Attempt, rename="camel", kw_only=True):
    name: str
    status: str
    suite: str | list[str] | None = None
    file_path: str | None = None
    raw_status: str | None = None
    retries: int | None = None
    retry_attempts: list[_Attempt] | None = None
    tags: list[str] | None = None


class _Results(msgspec.Struct):
    tests: list[_Test]
    tool: Named = msgspec.field(default_factory=Named)


class _Report(msgspec.Struct):
    results: _Results


def recognises(document: Document) -> bool:
    """Whether it says that it is one, or has a tool, a summary and tests."""
    if not document.has("results"):
        return False
    results = bytes(document.first["results"]).lstrip()
    if bytes(document.first.get("reportFormat", b"")) == b'"CTRF"':
        return True
    return results.startswith(b"{") and all(
        key in results for key in (b'"tool"', b'"summary"', b'"tests"')
    )


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial an attempt at a test; skipped and pending tests are no trials."""
    results = document.decode(_Report).results
    names = _names(results.tests)
    notes: list[str] = []
    if mapping.task != "name":
        ran = [test.status in _ENDINGS for test in results.tests]
        names, notes = tests_of(names, ran)
    system = results.tool.name or document.stem
    tests = zip(results.tests, names, strict=True)
    rows = [row for test, name in tests for row in _rows(test, name)]
    if retried := sum(_retries(test) for test in results.tests if test.status in _ENDINGS):
        counted = plural(retried, "attempt was", "attempts were")
        notes.append(
            f"{counted} followed by a retry, and each counts as a trial; retries end at the first "
            "pass, which favours the tests that were retried"
        )
    notes += skipped_note(sum(test.status in _NOT_RUN for test in results.tests))
    return TrialTable.of_rows(rows, system=system, notes=notes, entry="attempt")


def _names(tests: Sequence[_Test]) -> list[str]:
    """The name of each test; with its file where others have tests of that name too."""
    names = [_name(test) for test in tests]
    files: dict[str, set[str | None]] = {}
    for name, test in zip(names, tests, strict=True):
        files.setdefault(name, set()).add(test.file_path)
    return [
        f"{test.file_path} > {name}" if test.file_path and len(files[name]) > 1 else name
        for name, test in zip(names, tests, strict=True)
    ]


def _name(test: _Test) -> str:
    parts = test.suite if isinstance(test.suite, list) else [test.suite or ""]
    # pytest's reporter begins the name with the file, which is the first suite too.
    if not any(parts) or test.name.startswith(parts[0]):
        return test.name
    return " > ".join((*parts, test.name))


def _retries(test: _Test) -> int:
    """How often a test was tried before its last attempt."""
    return max(len(test.retry_attempts or ()), min(test.retries or 0, _MOST_RETRIES))


def _rows(test: _Test, name: str) -> Iterator[dict[str, Any]]:
    if test.status in _NOT_RUN:
        return
    listed = test.retry_attempts or []
    unlisted = [_Attempt(message="retried")] * (_retries(test) - len(listed))
    # A test that was expected to fail, and did, is one that failed.
    status = "failed" if test.raw_status == "failed" else test.status
    for attempt in (*unlisted, *listed, msgspec.structs.replace(test, status=status)):
        message = None if attempt.status == "passed" else first_line(attempt.message)
        odd = None if attempt.status in _ENDINGS else f"status {attempt.status}"
        start = attempt.start or 0
        yield {
            "task": name,
            "outcome": _ENDINGS.get(attempt.status, Outcome.ERRORED),
            "seconds": None if attempt.duration is None else attempt.duration / 1000,
            "error": message or odd,
            "started": time_of(start if start < _SECONDS_BELOW else start / 1000),
            "tags": tuple(test.tags or ()),
        }
