"""Test cases as TAP, the Test Anything Protocol (version 14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from passhat.reporters.answer_kind import AnswerKind, DisplayOptions
from passhat.reporters.safe_text import safe_text
from passhat.reporters.test_cases import ReportedCase


def render(kind: AnswerKind, answer: Any, options: DisplayOptions) -> str:
    """A line for each test case; numbers and reasons follow in a YAML block."""
    cases = kind.test_cases(answer)
    lines = ["TAP version 14", f"1..{len(cases)}"]
    for number, (suite, case) in enumerate(cases, 1):
        lines += _lines(number, suite.name, case)
    return "\n".join(lines) + "\n"


def _lines(number: int, suite: str, case: ReportedCase) -> Iterator[str]:
    mark = case.mark
    bad = mark is not None and mark.kind != "skipped"
    skip = f" # SKIP {_escaped(mark.message)}" if mark and mark.kind == "skipped" else ""
    name = _escaped(f"{suite}: {case.name}")
    yield f"{'not ok' if bad else 'ok'} {number} - {name}{skip}"
    facts = dict(case.values) | ({"message": mark.message} if mark and bad else {})
    if facts:
        yield "  ---"
        yield from (f"  {key}: {_quoted(str(value))}" for key, value in facts.items())
        yield "  ..."


def _escaped(text: str) -> str:
    """A description on one line, whose # is no directive."""
    return safe_text(text).replace("\\", "\\\\").replace("#", "\\#")


def _quoted(text: str) -> str:
    """A YAML scalar between single quotes, which knows no escapes but its own quote."""
    return "'" + safe_text(text).replace("'", "''") + "'"
