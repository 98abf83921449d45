"""What failed as a GitLab code quality report."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from passhat.reporters.answer_kind import AnswerKind, DisplayOptions

_SEVERITIES = {"failure": "critical", "error": "major", "skipped": "info"}


def render(kind: AnswerKind, answer: Any, options: DisplayOptions) -> str:
    """An entry for each test case that did not pass."""
    assert kind.cases is not None, "the table of formats says so"
    entries = [
        {
            "description": f"{suite.name}: {case.name}: {case.mark.message}",
            "check_name": f"passhat/{case.mark.kind}",
            "fingerprint": _fingerprint(suite.name, case.name),
            "severity": _SEVERITIES[case.mark.kind],
            "location": {"path": "passhat.yml", "lines": {"begin": 1}},
        }
        for suite in kind.cases(answer)
        for case in suite.cases
        if case.mark is not None
    ]
    return json.dumps(entries, indent=2) + "\n"


def _fingerprint(*names: str) -> str:
    return hashlib.sha256("\0".join(names).encode("utf-8", "backslashreplace")).hexdigest()
