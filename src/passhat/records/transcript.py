"""The transcript of a trial: turns and calls, the answer, and why it was graded as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeVar

from passhat.dataclass import dataclass
from passhat.messages import plural
from passhat.records.key_shapes import beginning

TranscriptKey = tuple[str, str, int]
"""System, task and trial."""

Transcripts = Mapping[TranscriptKey, str]
"""Transcripts by trial, as the text that is kept: `Transcript.to_json`, or plain words."""

CUT = "[cut here: "
"""The beginning of the mark where a text was cut."""

UNKNOWN_ROLE = "unknown"
"""The role of a message that states none."""

_PARTS = {"messages", "answer", "error", "stop_reason", "checks", "stderr"}
_ITEM_COST = 16  # of an empty turn, call or check: many of nothing are not free either

Item = TypeVar("Item", bound="Turn | Call | Check")
LARGEST_PICTURE = 400_000
"""Characters of a picture that is kept: 300 kB, a screenshot; larger ones are only named."""
# Formats that cannot hold a script or load anything; SVG can do both.
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool that was called; `arguments` as text, mostly JSON.

    `id` ties the call to the turn that answers it; two calls that differ in it alone are equal.
    """

    name: str
    arguments: str = ""
    id: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message; where a tool answered, `name` is the tool's and `call_id` the call's.

    `images` are data URIs that `safe_picture` let through.
    """

    role: str
    name: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    is_error: bool = False
    call_id: str = field(default="", compare=False)
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one grader; `matcher` is how it compared, if that is known."""

    target: str
    score: float | None = None
    message: str = ""
    matcher: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """A trial as a conversation; `answer` and `error` are set if no turn holds them.

    `stderr` and `exit_code` are a command's; `faults` are those that were injected on purpose;
    `expected_tool` is the one that the suite says is right.

    >>> Transcript(messages=(Turn(role="user", text="Hi"),), stop_reason="done").to_json()
    '{"messages": [{"role": "user", "text": "Hi"}], "stop_reason": "done"}'
    """

    messages: tuple[Turn, ...] = ()
    answer: str = ""
    error: str = ""
    stop_reason: str = ""
    checks: tuple[Check, ...] = ()
    stderr: str = ""
    exit_code: int | None = None
    faults: tuple[str, ...] = ()
    expected_tool: str = ""

    @classmethod
    def from_json(cls, kept: str) -> Transcript:
        """The transcript in a text that is kept; a text that holds none is the answer.

        >>> Transcript.from_json('{"messages": [{"role": "user", "text": "Hi"}]}').messages[0].text
        'Hi'
        >>> Transcript.from_json("just words").answer
        'just words'
        """
        try:
            parts = json.loads(kept)
        except (ValueError, RecursionError):
            return cls(answer=kept)
        if not isinstance(parts, dict) or not _PARTS & set(parts):
            return cls(answer=kept)
        code, faults = parts.get("exit_code"), parts.get("faults")
        return cls(
            messages=tuple(_kept_turn(turn) for turn in _objects(parts.get("messages"))),
            answer=_text(parts.get("answer")),
            error=_text(parts.get("error")),
            stop_reason=_text(parts.get("stop_reason")),
            checks=tuple(_kept_check(check) for check in _objects(parts.get("checks"))),
            stderr=_text(parts.get("stderr")),
            exit_code=code if isinstance(code, int) else None,
            faults=tuple(map(_text, faults)) if isinstance(faults, list) else (),
            expected_tool=_text(parts.get("expected_tool")),
        )

    def __bool__(self) -> bool:
        """Whether there is a conversation; a bare reason to stop, or a bare check, is none."""
        return bool(self.messages or self.answer or self.error)

    def to_json(self) -> str:
        """The text that is kept: the same parts as of a trial that passhat ran."""
        parts = {
            "messages": [_turn(turn) for turn in self.messages],
            "answer": self.answer,
            "error": self.error,
            "stop_reason": self.stop_reason,
            "checks": [_check(check) for check in self.checks],
            "stderr": self.stderr,
            "exit_code": self.exit_code,
            "faults": list(self.faults),
            "expected_tool": self.expected_tool,
        }
        kept = {name: part for name, part in parts.items() if part or part == 0}
        return json.dumps(kept, ensure_ascii=False)

    def cut(self, limit: int) -> Transcript:
        """The same, at most about `limit` characters of it, with a mark where it ends.

        Every field counts, because the agent under test may have written any of them. A quarter
        of the room is kept for how the trial ended, which is what a reader looks for.

        >>> long = Transcript(messages=(Turn(role="user", text="Hello there"),))
        >>> long.cut(25).messages[0].text
        'Hello [cut here: 6 more characters]'
        """
        if self.size() <= limit:
            return self
        words = self._without_images()
        if words is not self:  # words come first: pictures get the room that is left
            return _with_images(words, self, limit) if words.size() <= limit else words.cut(limit)
        spoken = sum(map(turn_size, self.messages))
        end = _Room(given := max(limit - spoken_room(limit), limit - spoken))
        ends = self.error, self.answer, self.stop_reason, self.stderr
        error, answer, stop, stderr = map(end.take, ends)
        checks = tuple(_fit(self.checks, end, _more_checks))
        room = _Room(limit - (given - end.left))
        messages = tuple(_fit(self.messages, room, _more_messages))
        return replace(
            self,
            messages=messages,
            answer=answer,
            error=error,
            stop_reason=stop,
            stderr=stderr,
            checks=checks,
        )

    def _without_images(self) -> Transcript:
        if not any(turn.images for turn in self.messages):
            return self
        return replace(self, messages=tuple(replace(turn, images=()) for turn in self.messages))

    def size(self) -> int:
        """How many characters it shows, in whatever field; a turn, call or check costs some too."""
        ends = len(self.answer) + len(self.error) + len(self.stop_reason) + len(self.stderr)
        return ends + sum(map(turn_size, self.messages)) + sum(map(_check_size, self.checks))


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


def cut_text(text: str, limit: int) -> str:
    """At most `limit` characters of a text, and how many more there were.

    >>> cut_text("abcdef", 4)
    'abcd [cut here: 2 more characters]'
    """
    more = len(text) - limit
    return text if more <= 0 else f"{beginning(text, limit).rstrip()} {cut_mark(more, 'character')}"


def cut_mark(more: int, noun: str) -> str:
    """The mark where something was cut.

    >>> cut_mark(1200, "byte")
    '[cut here: 1,200 more bytes]'
    """
    return f"{CUT}{plural(more, f'more {noun}')}]"


def turn_size(turn: Turn) -> int:
    """How many characters a turn counts, whatever field they are in.

    >>> turn_size(Turn(role="user", text="Hi"))
    22
    """
    named = len(turn.role) + len(turn.name) + len(turn.call_id) + len(turn.text)
    return _ITEM_COST + named + sum(map(_call_size, turn.calls)) + sum(map(len, turn.images))


def spoken_room(limit: int) -> int:
    """How many characters of turns are never cut by `Transcript.cut(limit)`."""
    return limit - limit // 4


def safe_picture(text: object) -> str | None:
    """A picture as a data URI, if it is of a plain format, complete, and not too large.

    >>> safe_picture("data:image/png;base64,iVBORw0KGgo=")
    'data:image/png;base64,iVBORw0KGgo='
    >>> safe_picture("data:image/svg+xml,<svg/>"), safe_picture("https://example.com/a.png")
    (None, None)
    """
    if not isinstance(text, str) or len(text) > LARGEST_PICTURE:
        return None
    return text if _PICTURE.fullmatch(text) else None


def as_score(value: object) -> float | None:
    """A number as the score of a check; None for anything else, and for one beyond all floats."""
    try:
        return float(value) if isinstance(value, (int, float)) else None
    except OverflowError:
        return None


def _with_images(words: Transcript, whole: Transcript, limit: int) -> Transcript:
    """The words with the pictures of the whole that fit beside them, the first ones first."""
    left = limit - words.size()
    turns = []
    for turn, full in zip(words.messages, whole.messages, strict=True):
        kept = []
        for image in full.images:
            if len(image) <= left:
                left -= len(image)
                kept.append(image)
        turns.append(replace(turn, images=tuple(kept)))
    return replace(words, messages=tuple(turns))


# The texts of a value, in the order in which they get room if it is cut.
_TEXTS: Mapping[type, Sequence[str]] = {
    Turn: ("role", "name", "text", "call_id"),
    Call: ("name", "arguments", "id"),
    Check: ("target", "matcher", "message"),
}


def _fit(items: Sequence[Item], room: _Room, more: Callable[[int], Item]) -> Iterator[Item]:
    """The items that fit, the next one cut short, and a mark for the rest."""
    sizes: dict[type, Callable[[Any], int]]
    sizes = {Turn: turn_size, Call: _call_size, Check: _check_size}
    for place, item in enumerate(items):
        if (cost := sizes[type(item)](item)) <= room.left:
            room.left -= cost
            yield item
            continue
        rest = len(items) - place
        if room.left > _ITEM_COST:
            room.left -= _ITEM_COST
            yield _cut(item, room)
            rest -= 1
        room.left = 0
        if rest:
            yield more(rest)
        return


def _call_size(call: Call) -> int:
    return _ITEM_COST + len(call.id) + len(call.name) + len(call.arguments)


def _check_size(check: Check) -> int:
    return _ITEM_COST + len(check.target) + len(check.matcher) + len(check.message)


def _cut(item: Item, room: _Room) -> Item:
    cut: dict[str, Any] = {name: room.take(getattr(item, name)) for name in _TEXTS[type(item)]}
    if isinstance(item, Turn):
        cut["calls"] = tuple(_fit(item.calls, room, _more_calls))
    return replace(item, **cut)


def _more_messages(more: int) -> Turn:
    return Turn(role="passhat", text=cut_mark(more, "message"))


def _more_calls(more: int) -> Call:
    return Call(name=cut_mark(more, "call"))


def _more_checks(more: int) -> Check:
    return Check(target="passhat", message=cut_mark(more, "check"))


def _turn(turn: Turn) -> dict[str, object]:
    parts: dict[str, object] = {
        "name": turn.name,
        "text": turn.text,
        "calls": [_call(call) for call in turn.calls],
        "is_error": turn.is_error,
        "call_id": turn.call_id,
        "images": list(turn.images),
    }
    return {"role": turn.role} | {name: part for name, part in parts.items() if part}


def _call(call: Call) -> dict[str, object]:
    kept: dict[str, object] = {"name": call.name, "arguments": call.arguments}
    return kept | {"id": call.id} if call.id else kept


def _check(check: Check) -> dict[str, object]:
    kept: dict[str, object] = {
        "target": check.target,
        "score": check.score,
        "message": check.message,
    }
    return kept | {"matcher": check.matcher} if check.matcher else kept


def _kept_turn(turn: Mapping[str, Any]) -> Turn:
    return Turn(
        role=_text(turn.get("role")) or UNKNOWN_ROLE,
        text=_text(turn.get("text")),
        calls=tuple(_kept_call(call) for call in _objects(turn.get("calls"))),
        name=_text(turn.get("name")),
        is_error=bool(turn.get("is_error")),
        call_id=_text(turn.get("call_id")),
        images=_kept_images(turn.get("images")),
    )


def _kept_images(images: object) -> tuple[str, ...]:
    found = map(safe_picture, images) if isinstance(images, list) else ()
    return tuple(image for image in found if image is not None)


def _kept_call(call: Mapping[str, Any]) -> Call:
    name, arguments, own_id = (_text(call.get(key)) for key in ("name", "arguments", "id"))
    return Call(name=name or "a tool", arguments=arguments, id=own_id)


def _kept_check(check: Mapping[str, Any]) -> Check:
    return Check(
        target=_text(check.get("target")),
        score=as_score(check.get("score")),
        message=_text(check.get("message")),
        matcher=_text(check.get("matcher")),
    )


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: object) -> str:
    """Words as they are, nothing for nothing, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
