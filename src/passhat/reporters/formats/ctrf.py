"""Test cases as CTRF, the Common Test Report Format (specification 0.0)."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from passhat._version import __version__
from passhat.reporters.answer_kind import AnswerKind, DisplayOptions
from passhat.reporters.test_cases import ReportedCase, TestSuite

_STATUS = {"failure": "failed", "error": "other", "skipped": "skipped"}
_STATUSES = ("passed", "failed", "skipped", "pending", "other")
_NAMELESS = "(without a name)"


def render(kind: AnswerKind, answer: Any, options: DisplayOptions) -> str:
    """The test cases of an answer; the duration of single runs in ms, else 0: it is not known."""
    tests = [_test(suite, case) for suite, case in kind.test_cases(answer)]
    counts = Counter(test["status"] for test in tests)
    summary = {"tests": len(tests), **{status: counts[status] for status in _STATUSES}}
    results = {
        "tool": {"name": "passhat", "version": __version__},
        "summary": {**summary, "start": 0, "stop": 0},
        "tests": tests,
    }
    report = {"reportFormat": "CTRF", "specVersion": "0.0.0", "results": results}
    return json.dumps(report, indent=2) + "\n"


def _test(suite: TestSuite, case: ReportedCase) -> dict[str, Any]:
    test: dict[str, Any] = {
        "name": case.name or _NAMELESS,
        "status": "passed" if case.mark is None else _STATUS[case.mark.kind],
        "duration": round(1000 * float(str(case.values.get("seconds", 0)))),
        "suite": [suite.name],
    }
    if "passed" in case.values and "runs" in case.values:
        passed, runs = (int(str(case.values[name])) for name in ("passed", "runs"))
        test["flaky"] = 0 < passed < runs
    if case.mark is not None:
        test["message"] = case.mark.message
        test["trace"] = case.mark.detail
    if case.values:
        test["extra"] = {name: str(value) for name, value in case.values.items()}
    return test
