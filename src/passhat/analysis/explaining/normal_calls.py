"""Calls of tools made comparable: arguments in one order, free text and ids masked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from passhat.dataclass import dataclass
from passhat.records.transcript import AnsweredCall, Transcript, answered_calls

FREE_TEXT = "<text>"
"""Replaces words that a model made up: no two runs phrase them alike."""

LONGEST_VALUE = 60
"""Characters from which a value counts as free text; so do four blanks or more."""

_MOST_BLANKS = 3
_LONGEST_ERROR = 120
# How tools begin what they return in place of a result, where they set no flag: none of the 73
# errors in a published tau-bench log is marked as one.
_ERROR = re.compile(
    r'\s*(error|exception|traceback|failed|\w*error:|http [45]\d\d|\{\s*"error)', re.IGNORECASE
)
_EMPTY = frozenset({"", "{}", "[]", '""', "null", "None"})
_MASKS = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`"), "<s>"),
    (re.compile(r"\b\d+([.,]\d+)*\b"), "<n>"),
    (re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z_])[\w-]+\b"), "<id>"),
)

Arguments = Mapping[str, str]
"""Each argument as text: JSON, with free text masked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalCall:
    """One call in a form that can be compared between runs.

    `key` is equal for two calls that ask for the same; `error` is the masked text of a call that
    failed, None for one that worked. `empty` says that the tool answered without an error and
    returned nothing. `place` counts the calls of the run from 0, and `said_in` its messages.
    """

    tool: str
    arguments: Arguments
    key: str
    error: str | None
    place: int
    said_in: int
    empty: bool = False

    @property
    def worked(self) -> bool:
        return self.error is None


def normal_calls(transcript: Transcript) -> tuple[NormalCall, ...]:
    """The calls of a transcript, in the order they were made."""
    return tuple(_normal(call, i) for i, call in enumerate(answered_calls(transcript)))


def masked_text(text: str) -> str:
    """An error text without what differs from run to run: ids, numbers, quoted words.

    >>> masked_text('Error: order "A-17" not found after 30.5 s (request req_8f2a)')
    'Error: order <s> not found after <n> s (request <id>)'
    """
    line = text.strip().partition("\n")[0][: 2 * _LONGEST_ERROR]
    for pattern, mask in _MASKS:
        line = pattern.sub(mask, line)
    return line[:_LONGEST_ERROR]


def is_free_text(value: str) -> bool:
    """Whether a value is a sentence or longer, rather than a name or a number."""
    return len(value) > LONGEST_VALUE or value.count(" ") > _MOST_BLANKS


def list_lengths(arguments: Arguments) -> Iterator[tuple[str, int]]:
    """The arguments that are lists, and how long each is."""
    for name, value in arguments.items():
        if value.startswith("["):
            try:
                parsed = json.loads(value)
            except ValueError:
                continue
            if isinstance(parsed, list):
                yield name, len(parsed)


def _normal(call: AnsweredCall, place: int) -> NormalCall:
    arguments = _arguments(call.arguments)
    return NormalCall(
        tool=call.name,
        arguments=arguments,
        key=f"{call.name} {json.dumps(arguments, ensure_ascii=False)}",
        error=_error(call),
        place=place,
        said_in=call.said_in,
        empty=_is_empty(call),
    )


def _error(call: AnsweredCall) -> str | None:
    if call.answer is None:
        return None
    text = call.answer.text
    if call.answer.is_error:
        return masked_text(text) or "error"
    return masked_text(text) if _ERROR.match(text) else None


def _is_empty(call: AnsweredCall) -> bool:
    answer = call.answer
    return answer is not None and not answer.is_error and answer.text.strip() in _EMPTY


# Runs of one task make the same calls again and again.
@lru_cache(maxsize=65_536)
def _arguments(text: str) -> Arguments:
    try:
        given = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        given = text
    if not isinstance(given, dict):
        given = {"": given}
    masked = {name: _masked(given[name]) for name in sorted(given)}
    return {
        name: one if isinstance(one, str) else json.dumps(one, sort_keys=True, ensure_ascii=False)
        for name, one in masked.items()
    }


def _masked(value: Any) -> Any:
    """A value with its free text masked, at any depth that JSON allowed."""
    if isinstance(value, str):
        return FREE_TEXT if is_free_text(value) else value
    if isinstance(value, list):
        return [_masked(one) for one in value]
    if isinstance(value, dict):
        return {name: _masked(one) for name, one in value.items()}
    if isinstance(value, float) and value.is_integer():
        return int(value)  # 250.0 and 250 ask for the same
    return value
