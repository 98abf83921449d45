"""The transcript of a sample of an Inspect AI log, with what its scorers explained."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from passhat.ingest.transcripts.inspect_scores import Score, score_value
from passhat.ingest.transcripts.messages import as_text, turns_of
from passhat.records.transcript import Check, Transcript, Turn

# Inspect keeps long texts once, beside the messages, and leaves a reference in their place.
_REFERENCE = re.compile(r"attachment://([0-9a-f]{32})")

Find = Callable[[re.Match[str]], str]


class _Explained(Score):
    explanation: str | None = None


class _Failure(msgspec.Struct):
    message: str = ""
    traceback: str = ""


class _Choice(msgspec.Struct):
    stop_reason: str = ""


class _Output(msgspec.Struct):
    completion: str = ""
    choices: list[_Choice] = msgspec.field(default_factory=list)


class _Limit(msgspec.Struct):
    type: str = ""


class SpokenSample(msgspec.Struct):
    """The parts of a sample that hold words; its events, which repeat them, stay unread."""

    messages: list[Any] = msgspec.field(default_factory=list)
    output: _Output = msgspec.field(default_factory=_Output)
    scores: dict[str, _Explained] | None = None
    error: str | _Failure | None = None
    limit: _Limit | None = None
    attachments: dict[str, str] = msgspec.field(default_factory=dict)


def sample_transcript(sample: SpokenSample, longest: int) -> Transcript | None:
    """The conversation of a sample; a completion that no message holds is its answer."""
    turns = turns_of(sample.messages)
    if sample.attachments:
        find = _finder(sample.attachments, longest)
        turns = tuple(_with_attachments(turn, find) for turn in turns)
    answer = _REFERENCE.sub(_finder(sample.attachments, longest), sample.output.completion)
    spoken = {turn.text.strip() for turn in turns[-3:]}
    stops = [choice.stop_reason for choice in sample.output.choices]
    failure = sample.error
    error = failure.traceback or failure.message if isinstance(failure, _Failure) else failure
    found = Transcript(
        messages=turns,
        answer="" if answer.strip() in spoken else answer,
        error=error or "",
        stop_reason=f"{sample.limit.type} limit" if sample.limit else next(iter(stops), ""),
        checks=tuple(_check(name, score) for name, score in (sample.scores or {}).items()),
    )
    return found or None


def _finder(attachments: Mapping[str, str], longest: int) -> Find:
    """The texts that references point to; a text that is referenced often is cut to what fits."""
    room = longest

    def find(found: re.Match[str]) -> str:
        nonlocal room
        text = attachments.get(found[1], found[0])[:room] or found[0]
        room = max(0, room - len(text))
        return text

    return find


def _with_attachments(turn: Turn, find: Find) -> Turn:
    calls = tuple(
        replace(call, arguments=_REFERENCE.sub(find, call.arguments)) for call in turn.calls
    )
    return replace(turn, text=_REFERENCE.sub(find, turn.text), calls=calls)


def _check(name: str, score: _Explained) -> Check:
    value = score_value(score)
    said = score.explanation or ("" if value is not None else as_text(score.value))
    return Check(target=name, score=value, message=said)
