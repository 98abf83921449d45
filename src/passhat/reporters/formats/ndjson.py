"""The rows of an answer as NDJSON: one JSON object a line, numbers unrounded."""

from __future__ import annotations

import json
from typing import Any

from passhat.reporters.answer_kind import AnswerKind, DisplayOptions


def render(kind: AnswerKind, answer: Any, options: DisplayOptions) -> str:
    """A line a row. A run writes its events instead, while they happen."""
    assert kind.rows is not None, "the table of formats says so"
    return "".join(json.dumps(dict(row), allow_nan=False) + "\n" for row in kind.rows(answer))
