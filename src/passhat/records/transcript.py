"""What was said in a trial: turns and calls, the answer, and why it was graded as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from passhat.errors import plural

TranscriptKey = tuple[str, str, int]
"""System, task and trial."""

Transcripts = Mapping[TranscriptKey, str]
"""What was said, by trial, as the text that is kept: `Transcript.to_json`, or plain words."""

CUT = "[cut here: "
"""How the mark begins that stands where a text was cut."""

_TURN_COST = 16  # of an empty turn, in characters: many of nothing are not free either


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool that was called; `arguments` as text, mostly JSON."""

    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message; `name` is the tool's, where a tool answered."""

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    name: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What one grader said of a trial."""

    target: str
    score: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A trial as a conversation; `answer` and `error` stand alone where no turn holds them.

    >>> Transcript(messages=(Turn(role="user", text="Hi"),), stop_reason="done").to_json()
    '{"messages": [{"role": "user", "text": "Hi"}], "stop_reason": "done"}'
    """

    messages: tuple[Turn, ...] = ()
    answer: str = ""
    error: str = ""
    stop_reason: str = ""
    checks: tuple[Check, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything was said; a bare reason to stop, or a bare check, is not."""
        return bool(self.messages or self.answer or self.error)

    def to_json(self) -> str:
        """The text that is kept: the same parts as of a trial that passhat ran."""
        parts = {
            "messages": [_turn(turn) for turn in self.messages],
            "answer": self.answer,
            "error": self.error,
            "stop_reason": self.stop_reason,
            "checks": [_check(check) for check in self.checks],
        }
        return json.dumps({name: part for name, part in parts.items() if part}, ensure_ascii=False)

    def cut(self, limit: int) -> Transcript:
        """The same, at most about `limit` characters of it, with a mark where it ends.

        >>> long = Transcript(messages=(Turn(role="user", text="Hello there"),))
        >>> long.cut(21).messages[0].text
        'Hello [cut here: 6 more characters]'
        """
        if self._size() <= limit:
            return self
        turns = tuple(_fit(self.messages, limit))
        room = max(0, limit - sum(map(_turn_size, turns)))
        return replace(
            self,
            messages=turns,
            answer=cut_text(self.answer, room),
            error=cut_text(self.error, room),
            checks=tuple(replace(c, message=cut_text(c.message, 2000)) for c in self.checks[:100]),
        )

    def _size(self) -> int:
        said = len(self.answer) + len(self.error) + sum(map(_turn_size, self.messages))
        return said + sum(_TURN_COST + len(check.message) for check in self.checks)


def cut_text(text: str, limit: int) -> str:
    """At most `limit` characters of a text, and how many more there were.

    >>> cut_text("abcdef", 4)
    'abcd [cut here: 2 more characters]'
    """
    more = len(text) - limit
    return text if more <= 0 else f"{text[:limit].rstrip()} {_mark(more, 'character')}"


def _mark(more: int, noun: str) -> str:
    return f"{CUT}{plural(more, f'more {noun}')}]"


def _turn_size(turn: Turn) -> int:
    calls = sum(_TURN_COST + len(call.name) + len(call.arguments) for call in turn.calls)
    return _TURN_COST + len(turn.text) + calls


def _fit(turns: tuple[Turn, ...], limit: int) -> Iterator[Turn]:
    """The turns that fit, the one that no longer does cut short, and word of the rest."""
    room = limit
    for place, turn in enumerate(turns):
        room -= (size := _turn_size(turn))
        if room >= 0:
            yield turn
            continue
        left = max(0, room + size - _TURN_COST)
        calls = tuple(replace(c, arguments=cut_text(c.arguments, left)) for c in turn.calls[:20])
        yield replace(turn, text=cut_text(turn.text, left), calls=calls)
        if more := len(turns) - place - 1:
            yield Turn(role="passhat", text=_mark(more, "message"))
        return


def _turn(turn: Turn) -> dict[str, object]:
    kept: dict[str, object] = {"role": turn.role}
    if turn.name:
        kept["name"] = turn.name
    if turn.text:
        kept["text"] = turn.text
    if turn.calls:
        kept["calls"] = [{"name": c.name, "arguments": c.arguments} for c in turn.calls]
    if turn.is_error:
        kept["is_error"] = True
    return kept


def _check(check: Check) -> dict[str, object]:
    return {"target": check.target, "score": check.score, "message": check.message}
