"""What was said in a trial, as a person reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

# What the runner keeps of a trial; anything else is shown as it is.
_KNOWN = {
    "stop_reason",
    "messages",
    "answer",
    "stderr",
    "exit_code",
    "checks",
    "faults",
    "error",
}


def readable(kept: str) -> str:
    """A transcript turn by turn, then why it was graded as it was.

    >>> print(readable('{"messages": [{"role": "user", "text": "Hi"}], "stop_reason": "done"}'))
    user
      Hi
    stopped: done
    """
    parts = _parsed(kept)
    if parts is None:
        return kept
    return "\n".join(line for part in _parts(parts) for line in part)


def _parsed(kept: str) -> dict[str, Any] | None:
    try:
        parts = json.loads(kept)
    except (ValueError, RecursionError):
        return None
    known = isinstance(parts, dict) and bool(parts) and set(parts) <= _KNOWN
    return parts if known else None


def _parts(parts: Mapping[str, Any]) -> Iterator[list[str]]:
    for message in _dicts(parts.get("messages")):
        yield _message(message)
    for name in ("answer", "stderr", "error"):
        if parts.get(name):
            yield [name, *_indented(parts[name])]
    ends = [("stopped", "stop_reason"), ("exit code", "exit_code"), ("faults", "faults")]
    for title, name in ends:
        if parts.get(name) not in (None, []):
            yield [f"{title}: {_inline(parts[name])}"]
    checks = [_check(check) for check in _dicts(parts.get("checks"))]
    if checks:
        yield ["checks", *checks]


def _message(message: Mapping[str, Any]) -> list[str]:
    failed = " (error)" if message.get("is_error") else ""
    lines = [f"{message.get('role', 'somebody')}{failed}"]
    if message.get("text"):
        lines += _indented(message["text"])
    for call in _dicts(message.get("calls")):
        lines.append(f"  calls {call.get('name')} {_inline(call.get('arguments'))}")
    return lines


def _check(check: Mapping[str, Any]) -> str:
    score = check.get("score")
    word = "held" if score == 1 else "broke" if score == 0 else f"scored {score}"
    return f"  {word}: {check.get('target')} {check.get('matcher')}: {check.get('message')}"


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _indented(value: Any) -> list[str]:
    return ["  " + line for line in _inline(value).split("\n")]


def _inline(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
