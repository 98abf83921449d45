"""What a system reports about its own work, as an observation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from passhat.errors import RunError
from passhat.records import Observation, TokenUsage
from passhat.runner.agents.frameworks import report_of
from passhat.runner.agents.messages import (
    calls_in,
    fields_of,
    is_amount,
    last_words,
    plain_calls,
    plain_messages,
    token_usage,
    usage_in,
)

ANSWERS = ("answer", "output", "text", "result", "response")
SCORES = ("score", "passed", "success")
COSTS = ("cost", "cost_usd", "total_cost_usd")
TURNS = ("turns", "num_turns")

TELLING = frozenset({*SCORES, "error", "is_error", "messages", "choices", *ANSWERS})
"""Keys of which one must be there for a JSON object to be a result."""


def observe_value(value: object, *, about: str) -> Observation:
    """The observation in the value that a function returned.

    >>> observe_value(True, about="mine:run").score
    1.0
    >>> observe_value({"answer": "42", "tool_calls": ["add"]}, about="mine:run").tool_calls[0].name
    'add'
    """
    if isinstance(value, Observation):
        return value
    if isinstance(value, Mapping):
        return observe_report(value, about=about)
    if isinstance(value, str):
        return Observation(answer=value, reported={"answer": value})
    if isinstance(value, (bool, int, float)):
        return Observation(score=_score(value, about), reported={"score": float(value)})
    if (report := report_of(value)) is not None:
        return observe_report(report, about=about)
    raise RunError(
        f"{about} returned {_kind(value)}; return a bool, a score in [0, 1], a text or a dict"
    )


def observe_report(report: Mapping[str, Any], *, about: str) -> Observation:
    """The observation in a report such as `{"passed": true, "tokens_in": 120, "cost": 0.01}`.

    OpenAI's `choices`, `messages` of any of the usual shapes and `usage` are understood too.
    """
    said = report.get("messages") or _choices(report)
    messages = plain_messages(said)
    calls = plain_calls(report.get("tool_calls")) or calls_in(messages)
    duration = _first_number(report, ("duration_ms",), about)
    seconds = _first_number(report, ("seconds",), about)
    return Observation(
        answer=_answer(report) or last_words(messages),
        score=_reported_score(report, about),
        tool_calls=calls,
        usage=_usage(report, about) or usage_in(said),
        cost=_first_number(report, COSTS, about),
        seconds=duration / 1000 if seconds is None and duration is not None else seconds,
        turns=int(_first_number(report, TURNS, about) or 0),
        stop_reason=str(report.get("stop_reason") or "done"),
        reported=report,
        messages=messages,
        error=_error(report, about),
    )


def _error(report: Mapping[str, Any], about: str) -> str | None:
    error = report.get("error")
    if not error and report.get("is_error") is True:
        error = _answer(report) or report.get("subtype") or "is_error is true"
    if not error:
        return None
    said = fields_of(error).get("message", error) if isinstance(error, Mapping) else error
    return f"{about} reports an error: {said}"


def _answer(report: Mapping[str, Any]) -> str:
    found = next((report[key] for key in ANSWERS if report.get(key) is not None), "")
    return found if isinstance(found, str) else str(found)


def _choices(report: Mapping[str, Any]) -> list[Any]:
    """The messages in an answer of OpenAI's chat endpoint."""
    choices = report.get("choices")
    if not isinstance(choices, list):
        return []
    return [fields_of(choice).get("message") or {} for choice in choices[:1]]


def _reported_score(report: Mapping[str, Any], about: str) -> float | None:
    for key in SCORES:
        if report.get(key) is not None:
            return _score(report[key], about)
    return None


def _score(value: object, about: str) -> float:
    if isinstance(value, (bool, int, float)) and 0 <= value <= 1:
        return float(value)
    raise RunError(f"{about} gives the score {value!r}; it must be a bool or a number in [0, 1]")


def _usage(report: Mapping[str, Any], about: str) -> TokenUsage | None:
    if (used := token_usage(report.get("usage") or {})) is not None:
        return used
    tokens = report.get("tokens")
    nested = tokens if isinstance(tokens, Mapping) else report
    spent_in = _first_number(nested, ("tokens_in", "input"), about)
    spent_out = _number(nested, "tokens_out", about) or _number(nested, "output", about, skip=True)
    if spent_in is None and spent_out is None:
        total = _number(report, "tokens", about, skip=True)
        return None if total is None else TokenUsage(tokens_in=int(total))
    return TokenUsage(tokens_in=int(spent_in or 0), tokens_out=int(spent_out or 0))


def _first_number(report: Mapping[str, Any], keys: tuple[str, ...], about: str) -> float | None:
    found = (_number(report, key, about) for key in keys)
    return next((number for number in found if number is not None), None)


def _number(report: Mapping[str, Any], key: str, about: str, *, skip: bool = False) -> float | None:
    value = report.get(key)
    if value is None or is_amount(value):
        return None if value is None else float(value)
    if skip:
        return None
    raise RunError(f"{about} gives {key} as {value!r}; it must be a number >= 0")


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
