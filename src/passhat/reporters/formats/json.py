"""Answers as JSON, numbers unrounded: the same bytes for the same input and seed."""

from __future__ import annotations

import json
from typing import Any

from passhat.reporters.answer_kind import AnswerKind, DisplayOptions


def render(kind: AnswerKind, answer: Any, options: DisplayOptions) -> str:
    """The data of an answer; its first key names the schema."""
    assert kind.data is not None, "the table of formats says so"
    return to_json(kind.data(answer))


def to_json(value: Any) -> str:
    """Stable text: key order as built, ASCII only, so that it is also safe to print."""
    return json.dumps(value, indent=2, allow_nan=False) + "\n"
