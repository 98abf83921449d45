"""A transcript as cards: who said what, which tool was called with what, and what came back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from passhat.dataclass import dataclass
from passhat.messages import plural
from passhat.records.transcript import (
    TOOL_ROLES,
    Call,
    Check,
    Transcript,
    Turn,
    answered_calls,
    cut_text,
)
from passhat.reporters.numbers import amount
from passhat.reporters.template_cache import page_templates
from passhat.reporters.transcript_text import is_in_turns, safe_passage

if TYPE_CHECKING:
    from jinja2 import Template

Kind = Literal["user", "agent", "call", "result", "system", "other"]

LONGEST_OPEN = 400
"""Characters up to which a result, or the words of a system, are shown without being asked for."""

MOST_GLANCED = 4
"""Fields of a folded JSON object that are seen without opening it."""

_LONGEST_GLANCE = 40
_MOST_FIELDS = 200
_ROLES: Mapping[str, tuple[Kind, str]] = {
    "user": ("user", "User"),
    "assistant": ("agent", "Agent"),
    "system": ("system", "System"),
    "developer": ("system", "System"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card; every text in it is safe to show, and still to be escaped.

    `number` is the message's, from 1; `place` is the call's among the calls of the run, from 0, on
    the card of a call and of its result. `fields` are the arguments of a call, or a glance at a
    result; `body` is what a fold holds, and `size` says how much that is. `differs` says how a call
    differs from that of the run beside it. `images` are data URIs of plain formats.
    """

    kind: Kind
    title: str
    number: int
    tool: str = ""
    text: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    body: str = ""
    size: str = ""
    is_error: bool = False
    place: int | None = None
    differs: str = ""
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCard:
    """What one grader said, failed ones first."""

    name: str
    failed: bool
    text: str


def transcript_cards(transcript: Transcript) -> tuple[Card, ...]:
    """The messages of a transcript, each call and each result on a card of its own."""
    calls = answered_calls(transcript)
    answered = {call.answered_in: i for i, call in enumerate(calls) if call.answered_in is not None}
    found: list[Card] = []
    made = 0
    for number, turn in enumerate(transcript.messages, 1):
        if turn.role in TOOL_ROLES and not turn.calls:
            place = answered.get(number - 1)
            name = turn.name or (calls[place].name if place is not None else "")
            found.append(_result(turn, number, name, place))
            continue
        if turn.text or turn.images or not turn.calls:
            found.append(_said(turn, number))
        for call in turn.calls:
            found.append(_called(call, number, made))
            made += 1
    return (*found, *_ends(transcript, len(transcript.messages)))


def transcript_page(kept: str, longest: int) -> str:
    """A kept text as HTML: cards where it came as turns, else its words as they are.

    At most `longest` characters of it are shown, with a mark if it was cut.
    """
    shown = _cards_template().module.transcript  # type: ignore[attr-defined]
    if not is_in_turns(kept):
        return str(shown((), "", (), cut_text(safe_passage(kept), longest))).strip()
    said = Transcript.from_json(kept).cut(longest)
    parts = check_cards(said.checks), ending_words(said), transcript_cards(said)
    return str(shown(*parts, None)).strip()


def ending_words(transcript: Transcript) -> str:
    """How it ended: the reason to stop, the exit code, the faults that were injected."""
    parts = []
    if transcript.stop_reason:
        parts.append(f"stopped with {safe_passage(transcript.stop_reason)}")
    if transcript.exit_code is not None:
        parts.append(f"exit code {transcript.exit_code}")
    if transcript.faults:
        parts.append(f"faults: {safe_passage(', '.join(transcript.faults))}")
    return ", ".join(parts)


def check_cards(checks: tuple[Check, ...]) -> tuple[CheckCard, ...]:
    """The checks, those that failed first."""
    cards = [
        CheckCard(
            name=safe_passage(" ".join(part for part in (one.target, one.matcher) if part)),
            failed=one.score is not None and one.score < 1,
            text=safe_passage(one.message),
        )
        for one in checks
    ]
    return tuple(sorted(cards, key=lambda card: not card.failed))


@cache
def _cards_template() -> Template:
    return page_templates().get_template("cards.html")


def _said(turn: Turn, number: int) -> Card:
    kind, title = _ROLES.get(turn.role, ("other", turn.role))
    text = safe_passage(turn.text)
    # What a system says is long, and the same in every run.
    fold = kind == "system" and len(text) > LONGEST_OPEN
    return Card(
        kind=kind,
        title=safe_passage(title),
        number=number,
        text="" if fold else text,
        body=text if fold else "",
        size=_size(text) if fold else "",
        is_error=turn.is_error,
        images=turn.images,
    )


def _called(call: Call, number: int, place: int) -> Card:
    arguments = _parsed(call.arguments)
    named = isinstance(arguments, dict)
    return Card(
        kind="call",
        title="Agent calls",
        number=number,
        tool=safe_passage(call.name),
        text="" if named else safe_passage(call.arguments),
        fields=tuple(
            (safe_passage(str(name)), safe_passage(_pretty(value)))
            for name, value in islice(arguments.items() if named else (), _MOST_FIELDS)
        ),
        place=place,
    )


def _result(turn: Turn, number: int, name: str, place: int | None) -> Card:
    parsed = _parsed(turn.text)
    structured = isinstance(parsed, dict | list)
    text = safe_passage(_pretty(parsed) if structured else turn.text)
    fold = structured or len(text) > LONGEST_OPEN
    return Card(
        kind="result",
        title="Result of" if name else "Result",
        number=number,
        tool=safe_passage(name),
        text="" if fold else text or "(empty)",
        fields=tuple(_glance(parsed)) if fold else (),
        body=text if fold else "",
        size=_size(turn.text, parsed) if fold else "",
        is_error=turn.is_error,
        place=place,
        images=turn.images,
    )


def _ends(transcript: Transcript, messages: int) -> Iterator[Card]:
    """The answer and the errors that no message holds."""
    number, error = messages + 1, safe_passage(transcript.error)
    if transcript.answer:
        text = safe_passage(transcript.answer)
        yield Card(kind="agent", title="Answer", number=number, text=text)
    if transcript.stderr:
        text = safe_passage(transcript.stderr)
        yield Card(kind="other", title="Standard error", number=number, text=text)
    if error:
        yield Card(kind="other", title="Error", number=number, text=error, is_error=True)


def _parsed(text: str) -> Any:
    """What JSON says, if it is an object or a list; else the text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _pretty(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, indent=2, ensure_ascii=False)
    except RecursionError:
        return str(value)


def _glance(parsed: Any) -> Iterator[tuple[str, str]]:
    """The first plain fields of an object, short enough to be read in passing."""
    if not isinstance(parsed, dict):
        return
    plain = [
        (name, value)
        for name, value in parsed.items()
        if not isinstance(value, dict | list) and len(str(value)) <= _LONGEST_GLANCE
    ]
    for name, value in plain[:MOST_GLANCED]:
        yield safe_passage(str(name)[:_LONGEST_GLANCE]), safe_passage(_pretty(value))


def _size(text: str, parsed: Any = None) -> str:
    weight = f"{amount(len(text.encode('utf-8', 'replace')) / 1000)} kB"
    if isinstance(parsed, dict):
        return f"JSON, {plural(len(parsed), 'field')}, {weight}"
    if isinstance(parsed, list):
        return f"JSON, {plural(len(parsed), 'entry', 'entries')}, {weight}"
    return f"{plural(text.count(chr(10)) + 1, 'line')}, {weight}"
