"""What failed as a GitLab code quality report."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from passhat.reporters.answer_kind import AnswerKind, DisplayOptions

_SEVERITIES = {"failure": "critical", "error": "major", "skipped": "info"}


def render(kind: AnswerKind, answer: Any, options: DisplayOptions) -> str:
    """An entry for each test case that did not pass."""
    entries = [
        {
            "description": f"{suite.name}: {case.name}: {case.mark.message}",
            "check_name": f"passhat/{case.mark.kind}",
            "fingerprint": _fingerprint(suite.name, case.name, case.file),
            "severity": _SEVERITIES[case.mark.kind],
            "location": {"path": case.file, "lines": {"begin": case.line}},
        }
        for suite, case in kind.test_cases(answer)
        if case.mark is not None
    ]
    return json.dumps(entries, indent=2) + "\n"


def _fingerprint(*names: str) -> str:
    return hashlib.sha256("\0".join(names).encode("utf-8", "backslashreplace")).hexdigest()
