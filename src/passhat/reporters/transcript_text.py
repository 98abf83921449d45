"""What was said in a trial, as a person reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from passhat.reporters.safe_text import safe_text

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

# What the runner keeps of a trial; anything else is shown as it is.
_KNOWN = {"stop_reason", "messages", "answer", "stderr", "exit_code", "checks", "faults", "error"}


def readable(kept: str) -> str:
    """A transcript turn by turn, then why it was graded as it was, safe to show.

    Of turns, only lines of ours begin at the margin: what others wrote is indented.

    >>> print(readable('{"messages": [{"role": "user", "text": "Hi"}], "stop_reason": "done"}'))
    user
      Hi
    stopped: done
    """
    parts = _parsed(kept)
    if parts is None:
        return safe_passage(kept)
    return safe_passage("\n".join(line for part in _parts(parts) for line in part))


def is_in_turns(kept: str) -> bool:
    """Whether the parts of a transcript are known, so that it can be shown as cards."""
    return _parsed(kept) is not None


def safe_passage(text: str) -> str:
    r"""Words of several lines, safe to show; tabs stay.

    >>> safe_passage("two\n\x1b[31mlines\u202e")
    'two\nlines\\u202e'
    """
    return "\n".join(map(_safe_line, text.split("\n")))


def _parsed(kept: str) -> dict[str, Any] | None:
    try:
        parts = json.loads(kept)
    except (ValueError, RecursionError):
        return None
    known = isinstance(parts, dict) and bool(parts) and set(parts) <= _KNOWN
    return parts if known else None


def _safe_line(line: str) -> str:
    """A line without colours of a terminal; characters that steer or reorder are written out."""
    if line.isprintable():
        return line
    return "\t".join(safe_text(part) for part in _COLOURS.sub("", line).rstrip("\r").split("\t"))


def _parts(parts: Mapping[str, Any]) -> Iterator[list[str]]:
    for message in _dicts(parts.get("messages")):
        yield _message(message)
    for name in ("answer", "stderr", "error"):
        if parts.get(name):
            yield [name, *_indented(parts[name])]
    ends = [("stopped", "stop_reason"), ("exit code", "exit_code"), ("faults", "faults")]
    for title, name in ends:
        if parts.get(name) not in (None, []):
            yield [f"{title}: {_beside(parts[name])}"]
    checks = [_check(check) for check in _dicts(parts.get("checks"))]
    if checks:
        yield ["checks", *checks]


def _message(message: Mapping[str, Any]) -> list[str]:
    failed = " (error)" if message.get("is_error") else ""
    name = f" {_beside(message['name'])}" if message.get("name") else ""
    role, calls = _beside(message.get("role") or "somebody"), _dicts(message.get("calls"))
    lines = [f"{role}{name}{failed}"] if message.get("text") or not calls else []
    if message.get("text"):
        lines += _indented(message["text"])
    return lines + [
        f"{role} calls {_beside(call.get('name'))} {_beside(call.get('arguments'))}"
        for call in calls
    ]


def _check(check: Mapping[str, Any]) -> str:
    score = check.get("score")
    word = "held" if score == 1 else "broke" if score == 0 else f"scored {score}"
    word = word if isinstance(score, int | float) else "said"
    what = " ".join(_beside(check[name]) for name in ("target", "matcher") if check.get(name))
    texts = _beside(check.get("message") or "")
    return f"  {word}: {what}" + (f": {texts}" if texts else "")


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _indented(value: Any) -> list[str]:
    return ["  " + line for line in _inline(value).split("\n")]


def _beside(value: Any) -> str:
    """A value behind a word of ours; a line of its own in it must not pass for one of ours."""
    return _inline(value).replace("\n", "\n    ")


def _inline(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
