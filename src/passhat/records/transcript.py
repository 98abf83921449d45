"""What was said in a trial: turns and calls, the answer, and why it was graded as it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from passhat.messages import plural

TranscriptKey = tuple[str, str, int]
"""System, task and trial."""

Transcripts = Mapping[TranscriptKey, str]
"""What was said, by trial, as the text that is kept: `Transcript.to_json`, or plain words."""

CUT = "[cut here: "
"""How the mark begins that stands where a text was cut."""

_ITEM_COST = 16  # of an empty turn, call or check: many of nothing are not free either

Item = TypeVar("Item")


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

        Every field counts, for any of them may have been written by whoever is under test. How a
        trial ended is what a reader looks for: a quarter of the room is its own.

        >>> long = Transcript(messages=(Turn(role="user", text="Hello there"),))
        >>> long.cut(25).messages[0].text
        'Hello [cut here: 6 more characters]'
        """
        if self.size() <= limit:
            return self
        spoken = sum(map(turn_size, self.messages))
        end = _Room(given := max(limit - spoken_room(limit), limit - spoken))
        error, answer, stop = map(end.take, (self.error, self.answer, self.stop_reason))
        checks = tuple(_fit(self.checks, end, _check_size, _cut_check, _more_checks))
        room = _Room(limit - (given - end.left))
        messages = tuple(_fit(self.messages, room, turn_size, _cut_turn, _more_messages))
        return Transcript(
            messages=messages, answer=answer, error=error, stop_reason=stop, checks=checks
        )

    def size(self) -> int:
        """How many characters it shows, in whatever field; a turn, call or check costs some too."""
        ends = len(self.answer) + len(self.error) + len(self.stop_reason)
        said = sum(map(turn_size, self.messages))
        return ends + said + sum(map(_check_size, self.checks))


def cut_text(text: str, limit: int) -> str:
    """At most `limit` characters of a text, and how many more there were.

    >>> cut_text("abcdef", 4)
    'abcd [cut here: 2 more characters]'
    """
    more = len(text) - limit
    return text if more <= 0 else f"{text[:limit].rstrip()} {cut_mark(more, 'character')}"


def cut_mark(more: int, noun: str) -> str:
    """The mark that stands where something was cut.

    >>> cut_mark(1200, "byte")
    '[cut here: 1,200 more bytes]'
    """
    return f"{CUT}{plural(more, f'more {noun}')}]"


def turn_size(turn: Turn) -> int:
    """How many characters a turn counts, whatever field they are in.

    >>> turn_size(Turn(role="user", text="Hi"))
    22
    """
    named = len(turn.role) + len(turn.name) + len(turn.text)
    return _ITEM_COST + named + sum(map(_call_size, turn.calls))


def spoken_room(limit: int) -> int:
    """How many characters of turns are never cut by `Transcript.cut(limit)`."""
    return limit - limit // 4


class _Room:
    """How many characters are left, as texts take theirs."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, text: str) -> str:
        """The text, as far as there is room for it."""
        kept = cut_text(text, self.left)
        self.left = max(0, self.left - len(text))
        return kept


def _fit(
    items: Sequence[Item],
    room: _Room,
    size: Callable[[Item], int],
    cut: Callable[[Item, _Room], Item],
    more: Callable[[int], Item],
) -> Iterator[Item]:
    """The items that fit, the one that no longer does cut short, and word of the rest."""
    for place, item in enumerate(items):
        if (cost := size(item)) <= room.left:
            room.left -= cost
            yield item
            continue
        rest = len(items) - place
        if room.left > _ITEM_COST:
            room.left -= _ITEM_COST
            yield cut(item, room)
            rest -= 1
        room.left = 0
        if rest:
            yield more(rest)
        return


def _call_size(call: Call) -> int:
    return _ITEM_COST + len(call.name) + len(call.arguments)


def _check_size(check: Check) -> int:
    return _ITEM_COST + len(check.target) + len(check.message)


def _cut_turn(turn: Turn, room: _Room) -> Turn:
    role, name, text = map(room.take, (turn.role, turn.name, turn.text))
    calls = tuple(_fit(turn.calls, room, _call_size, _cut_call, _more_calls))
    return replace(turn, role=role, name=name, text=text, calls=calls)


def _cut_call(call: Call, room: _Room) -> Call:
    return Call(name=room.take(call.name), arguments=room.take(call.arguments))


def _cut_check(check: Check, room: _Room) -> Check:
    return replace(check, target=room.take(check.target), message=room.take(check.message))


def _more_messages(more: int) -> Turn:
    return Turn(role="passhat", text=cut_mark(more, "message"))


def _more_calls(more: int) -> Call:
    return Call(name=cut_mark(more, "call"))


def _more_checks(more: int) -> Check:
    return Check(target="passhat", message=cut_mark(more, "check"))


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
