"""What was said in a trial, as a person reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields

from passhat.messages import safe_text
from passhat.records.transcript import Check, Transcript, Turn

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

_PARTS = frozenset(part.name for part in fields(Transcript))
"""What is kept of a trial; a text with other parts is shown as it is."""


def readable(kept: str) -> str:
    """A transcript turn by turn, then why it was graded as it was, safe to show.

    Of turns, only lines of ours begin at the margin: what others wrote is indented.

    >>> print(readable('{"messages": [{"role": "user", "text": "Hi"}], "stop_reason": "done"}'))
    user
      Hi
    stopped: done
    """
    if not is_in_turns(kept):
        return safe_passage(kept)
    return safe_passage("\n".join(_lines(Transcript.from_json(kept))))


def is_in_turns(kept: str) -> bool:
    """Whether the parts of a transcript are known, so that it can be shown as cards."""
    try:
        parts = json.loads(kept)
    except (ValueError, RecursionError):
        return False
    return isinstance(parts, dict) and bool(parts) and set(parts) <= _PARTS


def safe_passage(text: str) -> str:
    r"""Words of several lines, safe to show; tabs stay.

    >>> safe_passage("two\n\x1b[31mlines\u202e")
    'two\nlines\\u202e'
    """
    return "\n".join(map(_safe_line, text.split("\n")))


def _safe_line(line: str) -> str:
    """A line without colours of a terminal; characters that steer or reorder are written out."""
    if line.isprintable():
        return line
    return "\t".join(safe_text(part) for part in _COLOURS.sub("", line).rstrip("\r").split("\t"))


def _lines(said: Transcript) -> Iterator[str]:
    for turn in said.messages:
        yield from _turn_lines(turn)
    for name in ("answer", "stderr", "error"):
        if text := getattr(said, name):
            yield from (name, _indented(text))
    if said.stop_reason:
        yield f"stopped: {_beside(said.stop_reason)}"
    if said.exit_code is not None:
        yield f"exit code: {said.exit_code}"
    if said.faults:
        yield f"faults: {_beside(', '.join(said.faults))}"
    if said.checks:
        yield from ("checks", *map(_check_line, said.checks))


def _turn_lines(turn: Turn) -> Iterator[str]:
    role, name = _beside(turn.role), f" {_beside(turn.name)}" if turn.name else ""
    if turn.text or not turn.calls:
        yield f"{role}{name}{' (error)' if turn.is_error else ''}"
    if turn.text:
        yield _indented(turn.text)
    for call in turn.calls:
        yield f"{role} calls {_beside(call.name)} {_beside(call.arguments)}"


def _check_line(check: Check) -> str:
    words = {None: "said", 1.0: "held", 0.0: "broke"}
    what = " ".join(_beside(part) for part in (check.target, check.matcher) if part)
    message = check.message and f": {_beside(check.message)}"
    return f"  {words.get(check.score, f'scored {check.score}')}: {what}{message}"


def _indented(text: str) -> str:
    return "  " + text.replace("\n", "\n  ")


def _beside(text: str) -> str:
    """A value after a word of ours; its further lines are indented, not to look like ours."""
    return text.replace("\n", "\n    ")
