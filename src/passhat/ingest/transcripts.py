"""Transcripts of trials, read from the logs of other tools.

First the files beside a result file that belong to it: nothing outside its folder is opened, and
nothing once the transcript has no room left. Then messages as tools write them, into turns.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import msgspec

from passhat.dataclass import dataclass
from passhat.errors import ReadError
from passhat.ingest.document import Document, Value, decode, read_file
from passhat.records.secrets import beginning
from passhat.records.transcript import (
    UNKNOWN_ROLE,
    Call,
    Transcript,
    Turn,
    cut_mark,
    cut_text,
    safe_picture,
    spoken_room,
    turn_size,
)

_MARKS = 150  # characters that names and marks of a cut take, at most


def sibling_bytes(document: Document, *names: str) -> bytes | None:
    """The content of a file below the folder of a result file, if it is there.

    `names` may come from the result file itself, and a link may lead anywhere: what resolves to
    a place outside the folder is treated as absent.
    """
    path = sibling_file(document, *names)
    return None if path is None else read_file(path, document.limits)


def sibling_decoded(
    document: Document, shape: type[Value], *names: str
) -> tuple[Value | None, str]:
    """The same as JSON, and what is wrong with it: a run that was killed leaves it half written.

    The results do not depend on it, so an error in it is returned instead of raised.
    """
    content = sibling_bytes(document, *names)
    if content is None:
        return None, ""
    try:
        return decode(f"{document.name}, {'/'.join(names)}", content, shape), ""
    except ReadError as error:
        return None, str(error)


def sibling_text(document: Document, *names: str, most: int) -> str:
    """The first `most` characters as text, with word of the rest; nothing if there is no file.

    The rest stays unread: a terminal may have filled a disk.
    """
    path = sibling_file(document, *names)
    if path is None:
        return ""
    document.limits.check_size(str(path), size := path.stat().st_size)
    with path.open("rb") as stream:
        read = stream.read(4 * most)  # no character of UTF-8 is longer than four bytes
    text = read.decode("utf-8", errors="replace").strip()
    if size <= len(read):
        return cut_text(text, most)
    kept = beginning(text, most).rstrip()
    return f"{kept} {cut_mark(max(1, size - len(kept.encode())), 'byte')}"


def sibling_names(document: Document, *names: str, keep: Callable[[str], bool]) -> list[str]:
    """The names in a folder below that of a result file, refused if there are too many.

    They are in no order: sort them by what they mean.
    """
    folder = sibling_path(document, *names)
    if folder is None or not folder.is_dir():
        return []
    kept: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if keep(entry.name):
                kept.append(entry.name)
                document.limits.check_members(str(folder), len(kept))
    return kept


def sibling_file(document: Document, *names: str) -> Path | None:
    """A file below the folder of a result file, if there is one."""
    path = sibling_path(document, *names)
    return path if path is not None and path.is_file() else None


def sibling_path(document: Document, *names: str) -> Path | None:
    """A place below the folder of a result file; None if it would be anywhere else."""
    if document.path is None or any("\0" in name for name in names):
        return None
    folder = document.path.parent.resolve()
    try:
        path = folder.joinpath(*names).resolve()
    except (OSError, RuntimeError):  # a loop of links, or a name too long to be one
        return None
    return path if path.is_relative_to(folder) and os.access(path, os.R_OK) else None


def end_room(limit: int) -> int:
    """How many characters one check or answer may have beside any number of turns."""
    return max(1, limit - spoken_room(limit) - _MARKS)


class FileTurns:
    """What files say after an opening turn, one turn a file.

    Files that no longer fit are counted and not opened. The whole is never cut again, so the
    counts in the marks stay true.
    """

    def __init__(self, document: Document, opening: Turn) -> None:
        room = spoken_room(document.limits.max_transcript) - _MARKS
        self._document = document
        self._opening = replace(opening, text=cut_text(opening.text, max(1, room // 2)))
        self._room = room - turn_size(self._opening)
        self._turns: list[Turn] = []
        self._closed = 0

    def add(self, role: str, *names: str) -> None:
        """A turn of what this file says, if it is there and says anything."""
        room = self._room - turn_size(Turn(role=role))
        if room <= 0:
            self._closed += sibling_file(self._document, *names) is not None
        elif text := sibling_text(self._document, *names, most=room):
            turn = Turn(role=role, text=text)
            self._turns.append(turn)
            self._room -= turn_size(turn)

    def turns(self) -> tuple[Turn, ...]:
        """The opening and all that fitted; nothing if no file says anything."""
        if not self._turns and not self._closed:
            return ()
        rest = Turn(role="passhat", text=cut_mark(self._closed, "message"))
        return (self._opening, *self._turns, *([rest] if self._closed else []))


# Messages as tools write them (OpenAI, Anthropic, Responses, OpenTelemetry, ...), into turns.
TEXT_PARTS = ("text", "input_text", "output_text", "refusal")
THOUGHT_PARTS = ("reasoning", "thinking", "summary_text")
CALL_PARTS = ("tool_call", "tool_use", "function_call", "tool-call", "server_tool_use")
RESULT_PARTS = (
    *("tool_call_response", "tool_result", "tool-result", "tool-return"),
    *("function_call_output", "server_tool_result"),
)

_ARGUMENTS = ("arguments", "input", "args", "kwargs", "parameters")
_RESULTS = ("result", "response", "output", "content")
# In the Responses API an item has its own `id` beside the `call_id` that results name.
_CALL_IDS = ("call_id", "tool_call_id", "toolCallId", "id")
_ANSWERED_IDS = ("tool_call_id", "tool_use_id", "call_id", "toolCallId", "source_call_id", "id")
# Items of a flat list that have a type in the place of a role.
_PLAIN_TYPES = ("message", "text", "output_text")
_ROLES = {"human": "user", "ai": "assistant", "agent": "assistant", "model": "assistant"}


def turns_of(messages: object) -> tuple[Turn, ...]:
    """The turns of a list of messages of any tool; what is no message is left out.

    >>> called = {"role": "assistant", "tool_calls": [{"function": {"name": "refund"}}]}
    >>> turns_of([{"role": "user", "content": "Hi"}, called])[1].calls[0].name
    'refund'
    """
    return tuple(turn for message in mappings(messages) for turn in _turns(message))


def transcript_of(value: object) -> Transcript | None:
    """A transcript out of a cell or field: messages, JSON text of messages, or plain words.

    >>> transcript_of('[{"role": "user", "content": "Hi"}]').messages[0].text
    'Hi'
    >>> transcript_of("just words").answer
    'just words'
    """
    value = _parsed(value) if isinstance(value, str) else value
    if isinstance(value, dict):
        held = next((value[key] for key in ("messages", "turns", "history") if key in value), value)
        value = held if isinstance(held, list) else [value] if "role" in value else value
    turns = turns_of(value) if isinstance(value, list) and _are_messages(value) else ()
    transcript = Transcript(messages=turns) if turns else Transcript(answer=as_text(value))
    return transcript or None


def asked_and_answered(asked: object, answered: object) -> tuple[Turn, ...]:
    """What was put to a system and what it gave back, either as words or as messages."""
    turns: list[Turn] = []
    for role, words in (("user", asked), ("assistant", answered)):
        spoken = transcript_of(words)
        if spoken is not None:
            turns += spoken.messages or (Turn(role=role, text=spoken.answer),)
    return tuple(turns)


def as_text(value: object) -> str:
    """Words as they are, anything else as JSON; nothing for nothing."""
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value, enc_hook=str).decode()


def mappings(value: object) -> list[Mapping[str, Any]]:
    """The objects among the entries of a list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def answered_id(message: Mapping[str, Any]) -> str:
    """The id of the call that a tool's message or part answers; "" if it names none.

    >>> answered_id({"type": "tool_result", "tool_use_id": "toolu_01"})
    'toolu_01'
    """
    return as_text(_first(message, _ANSWERED_IDS))


@dataclass(slots=True, kw_only=True)
class _Said:
    """What one message says, collected part by part."""

    texts: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    results: list[Turn] = field(default_factory=list)
    images: list[str] = field(default_factory=list)


def _turns(message: Mapping[str, Any]) -> Iterator[Turn]:
    parts = _Said()
    kind = str(message.get("type", ""))
    if "role" not in message and kind in (*CALL_PARTS, *RESULT_PARTS):
        _add_part(message, parts)  # an item of the Responses API is a message by itself
    else:
        if thought := message.get("reasoning_content"):
            parts.texts.append(_thought(thought))
        content = message.get("content")
        if content is None:
            content = message.get("parts", message.get("text"))
        if isinstance(content, list):
            for part in content:
                _add_part(part, parts)
        elif content is not None and content != "":
            parts.texts.append(as_text(content))
    parts.calls += [_call(call) for call in mappings(message.get("tool_calls"))]
    if isinstance(legacy := message.get("function_call"), dict):
        parts.calls.append(_call(legacy))
    spoken = UNKNOWN_ROLE if kind in _PLAIN_TYPES else kind
    role = as_text(message.get("role")) or ("assistant" if parts.calls else spoken or UNKNOWN_ROLE)
    error = message.get("error")
    if isinstance(error, dict) and error.get("message"):
        parts.texts.append(as_text(error["message"]))
    if parts.texts or parts.calls or not parts.results:
        yield Turn(
            role=_ROLES.get(role, role),
            text="\n".join(parts.texts),
            calls=tuple(parts.calls),
            name=_tool_name(message) if role == "tool" else "",
            is_error=bool(error) or message.get("is_error") is True,
            call_id=answered_id(message) if role == "tool" else "",
            images=tuple(parts.images),
        )
    yield from parts.results


def _add_part(part: object, parts: _Said) -> None:
    if not isinstance(part, dict):
        parts.texts.append(as_text(part))
        return
    kind = str(part.get("type", "text"))
    if kind in CALL_PARTS:
        parts.calls.append(_call(part))
    elif kind in RESULT_PARTS:
        parts.results.append(_result(part))
    elif kind in TEXT_PARTS or kind in THOUGHT_PARTS:
        text = as_text(_first(part, ("text", "content", "thinking", "reasoning", "summary")))
        parts.texts.append(_thought(text) if kind in THOUGHT_PARTS else text)
    else:
        parts.texts.append(f"[{kind}]")  # a picture, a sound, a file: named
        if (image := _picture(part)) is not None:
            parts.images.append(image)


def _result(part: Mapping[str, Any]) -> Turn:
    content = _first(part, _RESULTS)
    inner = _Said()
    for piece in content if isinstance(content, list) else [content]:
        if piece is not None:
            _add_part(piece, inner)
    failed = bool(part.get("is_error") or part.get("error"))
    return Turn(
        role="tool",
        name=_tool_name(part),
        text="\n".join(inner.texts),
        is_error=failed,
        call_id=answered_id(part),
        images=tuple(inner.images),
    )


def _picture(part: Mapping[str, Any]) -> str | None:
    """A picture inside the log; one that is only named by its address stays away.

    OpenAI and Inspect write data URIs; Anthropic (`source`) and MCP write the bytes and the type.
    """
    address = _first(part, ("image_url", "image", "url"))
    if isinstance(address, dict):
        address = address.get("url")
    inner = part.get("source")
    source: Mapping[str, Any] = inner if isinstance(inner, dict) else part
    kind = _first(source, ("media_type", "mimeType", "mime_type"))
    if address is None and isinstance(source.get("data"), str) and isinstance(kind, str):
        address = f"data:{kind};base64,{source['data']}"
    return safe_picture(address)


def _call(call: Mapping[str, Any]) -> Call:
    """A call by its parts; Inspect has the name where OpenAI has a function with its name."""
    function = call.get("function")
    inner = function if isinstance(function, dict) else call
    name = (
        function
        if isinstance(function, str)
        else _first(inner, ("name", "function_name", "tool_name", "tool"))
    )
    return Call(
        name=as_text(name) or "a tool",
        arguments=as_text(_first(inner, _ARGUMENTS)),
        id=as_text(_first(call, _CALL_IDS)),
    )


def _tool_name(message: Mapping[str, Any]) -> str:
    name = _first(message, ("name", "function", "tool_name"))
    return name if isinstance(name, str) else ""


def _thought(text: object) -> str:
    return f"(thinking) {as_text(text)}"


def _first(mapping: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((mapping[name] for name in names if mapping.get(name) is not None), None)


def _are_messages(entries: Sequence[object]) -> bool:
    """Whether all entries are messages or items with a type, and one of them is of a known kind."""
    known = (*CALL_PARTS, *RESULT_PARTS, *_PLAIN_TYPES)
    items = mappings(entries)
    return len(items) == len(entries) and (
        all("role" in item or isinstance(item.get("type"), str) for item in items)
        and any("role" in item or item["type"] in known for item in items)
    )


def _parsed(text: str) -> object:
    """What a text says as JSON, if it is an object or a list; else the text itself."""
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
