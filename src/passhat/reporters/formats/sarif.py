"""What failed as SARIF 2.1.0, which code hosts show beside a change."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from passhat._version import __version__
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions
from passhat.reporters.test_cases import ReportedCase, TestSuite

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {"failure": "error", "error": "warning", "skipped": "note"}
_RULES = {
    "failure": "A demand is not met",
    "error": "It could not be judged",
    "skipped": "Undecided, or not judged on purpose",
}


def render(kind: AnswerKind, answer: Any, options: DisplayOptions) -> str:
    """A result for each test case that did not pass."""
    cases = kind.test_cases(answer)
    found = [_result(suite, case) for suite, case in cases if case.mark is not None]
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in _RULES.items()]
    driver = {"name": "passhat", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "results": found}
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2) + "\n"


def _result(suite: TestSuite, case: ReportedCase) -> dict[str, Any]:
    assert case.mark is not None, "the caller looked"
    return {
        "ruleId": case.mark.kind,
        "level": _LEVELS[case.mark.kind],
        "message": {"text": f"{suite.name}: {case.name}: {case.mark.message}"},
        "locations": [{"physicalLocation": _place(case)}],
        "partialFingerprints": {"case/v1": f"{suite.name}/{case.name}"},
    }


def _place(case: ReportedCase) -> dict[str, Any]:
    """Code hosts want a file, and show the result beside its line."""
    place = {"artifactLocation": {"uri": quote(case.file)}}
    return {**place, "region": {"startLine": case.line}}
