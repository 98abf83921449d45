"""What a system says of itself, turned into an observation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passhat.errors import RunError
from passhat.records import Observation, TokenUsage, ToolCall

ANSWERS = ("answer", "output", "text", "result")
TELLING = frozenset({"score", "passed", "success", "error", *ANSWERS})
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
    raise RunError(
        f"{about} returned {_kind(value)}; a bool, a score in [0, 1], a text or a dict is wanted"
    )


def observe_report(report: Mapping[str, Any], *, about: str) -> Observation:
    """The observation in a report such as `{"passed": true, "tokens_in": 120, "cost": 0.01}`."""
    if report.get("error"):
        raise RunError(f"{about} reports an error: {report['error']}")
    return Observation(
        answer=_answer(report),
        score=_reported_score(report, about),
        tool_calls=_tool_calls(report.get("tool_calls")),
        usage=_usage(report, about),
        cost=_number(report, "cost", about),
        seconds=_number(report, "seconds", about),
        turns=int(_number(report, "turns", about) or 0),
        stop_reason=str(report.get("stop_reason") or "done"),
        reported=report,
    )


def _answer(report: Mapping[str, Any]) -> str:
    found = next((report[key] for key in ANSWERS if report.get(key) is not None), "")
    return found if isinstance(found, str) else str(found)


def _reported_score(report: Mapping[str, Any], about: str) -> float | None:
    for key in ("score", "passed", "success"):
        if report.get(key) is not None:
            return _score(report[key], about)
    return None


def _score(value: object, about: str) -> float:
    if isinstance(value, (bool, int, float)) and 0 <= value <= 1:
        return float(value)
    raise RunError(f"{about} gives the score {value!r}; a bool or a number in [0, 1] is wanted")


def _usage(report: Mapping[str, Any], about: str) -> TokenUsage | None:
    tokens = report.get("tokens")
    nested = tokens if isinstance(tokens, Mapping) else report
    spent_in = _number(nested, "tokens_in", about) or _number(nested, "input", about)
    spent_out = _number(nested, "tokens_out", about) or _number(nested, "output", about, skip=True)
    if spent_in is None and spent_out is None:
        total = _number(report, "tokens", about, skip=True)
        return None if total is None else TokenUsage(tokens_in=int(total))
    return TokenUsage(tokens_in=int(spent_in or 0), tokens_out=int(spent_out or 0))


def _number(report: Mapping[str, Any], key: str, about: str, *, skip: bool = False) -> float | None:
    value = report.get(key)
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e18:
        return float(value)
    if skip:
        return None
    raise RunError(f"{about} gives {key} as {value!r}; a number >= 0 is wanted")


def _tool_calls(value: object) -> tuple[ToolCall, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return ()
    return tuple(call for each in value if (call := _tool_call(each)) is not None)


def _tool_call(value: object) -> ToolCall | None:
    if isinstance(value, str):
        return ToolCall(name=value)
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        return ToolCall(
            name=value["name"],
            arguments=value.get("arguments", {}),
            result=value.get("result"),
            error=value.get("error"),
        )
    return None


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"
