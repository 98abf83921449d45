"""Reports of .NET tests: NUnit's XML (2 and 3) and the .trx of Visual Studio and `dotnet test`."""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat

from passhat.errors import ReadError
from passhat.ingest.document import Document, parse_xml
from passhat.ingest.readers import Reading, TrialTable, first_line
from passhat.ingest.repeated_tests import skipped_note
from passhat.messages import few
from passhat.records import Outcome
from passhat.records.columns import ColumnMap

READING = Reading(
    format="NUnit XML or .trx",
    versions="NUnit 2 and 3, Visual Studio, `dotnet test --logger trx`",
    system="file name",
    task="full name of the test",
    run="order of the tests of one name",
    outcome="result or outcome: Failed fails; Error, Timeout and Aborted are errored",
    started="start-time or startTime",
)

_ROOTS = re.compile(rb"<(?:test-run|test-results|TestRun)[\s>]")
_DEEPEST = 1_000
_OUTCOMES = {
    **dict.fromkeys(("Passed", "Success", "Warning", "PassedButRunAborted"), Outcome.PASSED),
    **dict.fromkeys(("Failed", "Failure"), Outcome.FAILED),
    **dict.fromkeys(("Error", "Timeout", "Aborted", "Cancelled", "Disconnected"), Outcome.ERRORED),
}
_NOT_RUN = frozenset(
    (
        *("Skipped", "Ignored", "NotExecuted", "NotRunnable", "Inconclusive", "Explicit"),
        *("NotRun", "Pending", "InProgress", "Invalid"),
    )
)
_CLOCK = re.compile(r"(\d+):(\d\d):(\d\d(?:\.\d+)?)")


def recognises(document: Document) -> bool:
    """Whether the root is a test run of NUnit or of Visual Studio."""
    return _ROOTS.search(document.data[:4096]) is not None


def read(document: Document, mapping: ColumnMap) -> TrialTable:
    """One trial a test that ran; tests that were skipped or could not be judged are no trials."""
    listed = _Results(document).rows
    ran = [row for row in listed if row["outcome"] is not None]
    notes = skipped_note(len(listed) - len(ran))
    return TrialTable.of_rows(ran, system=document.stem, notes=notes)


class _Results:
    """The events of expat, collected test by test."""

    def __init__(self, document: Document) -> None:
        self.rows: list[dict[str, Any]] = []
        self._name, self._open, self._text = document.name, list[str](), list[str]()
        self._parser = parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._add_text
        parse_xml(document, parser, "a report of tests")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._open.append(tag)
        if len(self._open) > _DEEPEST:
            raise ReadError(f"{self._name}: nested too deeply to be a report of tests")
        if tag == "InnerResults" and self.rows:
            self.rows.pop()  # it sums up the rows of data in it
        elif tag in ("test-case", "UnitTestResult"):
            self.rows.append(self._row(attributes))
        elif tag.lower() == "message":
            self._text = []

    def _end(self, tag: str) -> None:
        self._open.pop()
        around = {"failure", "ErrorInfo"}.intersection(self._open)
        if tag.lower() == "message" and around and self.rows:
            self.rows[-1]["error"] = first_line("".join(self._text))

    def _add_text(self, text: str) -> None:
        if self._open[-1].lower() == "message":
            self._text.append(text)

    def _row(self, attributes: dict[str, str]) -> dict[str, Any]:
        line = self._parser.CurrentLineNumber
        ended = attributes.get("outcome") or attributes.get("result") or ""
        if attributes.get("label") in _OUTCOMES or attributes.get("label") in _NOT_RUN:
            ended = attributes["label"]  # of NUnit 3: why a test failed or was skipped
        if not ended and attributes.get("success"):  # of NUnit before 2.5
            ended = "Passed" if attributes["success"] == "True" else "Failed"
        if attributes.get("executed") == "False":
            ended = "NotExecuted"
        if ended not in _OUTCOMES and ended not in _NOT_RUN:
            known = few([*_OUTCOMES, *sorted(_NOT_RUN)], 20)
            raise ReadError(
                f'{self._name}, line {line}: "{ended[:40]}" does not say how a test ended; known '
                f"are {known}"
            )
        names = ("fullname", "testName", "name")
        return {
            "task": next((attributes[name] for name in names if attributes.get(name)), ""),
            "outcome": _OUTCOMES.get(ended),
            "error": None,
            "seconds": _seconds(attributes.get("duration") or attributes.get("time")),
            "started": attributes.get("start-time") or attributes.get("startTime"),
            "line": line,
        }


def _seconds(text: str | None) -> float | None:
    """The seconds in 0.25, or in 00:00:00.2500000; None of anything else.

    >>> _seconds("0.25"), _seconds("00:01:00.5"), _seconds("soon")
    (0.25, 60.5, None)
    """
    if clock := _CLOCK.fullmatch(text or ""):
        return int(clock[1]) * 3600 + int(clock[2]) * 60 + float(clock[3])
    return float(text) if text and re.fullmatch(r"\d{1,9}(?:\.\d+)?", text) else None
