"""Transcripts of other tools' logs: keys and tokens are taken out where a text is taken out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from passhat.records.key_shapes import MARK, shapes_near
from passhat.records.transcript import TranscriptKey


class CleanTexts(Mapping[TranscriptKey, str]):
    """Kept texts by trial; what has the shape of a key is replaced in each that is asked for.

    Looking for keys takes longer than reading a log, and most texts are never shown. `kept` gives
    a text as it is, to those who show a part of it and clean that.

    >>> texts = CleanTexts({("agent", "task", 0): '{"answer": "sk-ant-api03-0123456789abcdef"}'})
    >>> texts
    {('agent', 'task', 0): '{"answer":"[redacted]"}'}
    """

    __slots__ = ("_cleaned", "_texts")

    def __init__(self, texts: Mapping[TranscriptKey, str]) -> None:
        self._texts = dict(texts)
        self._cleaned: set[TranscriptKey] = set()

    def __getitem__(self, key: TranscriptKey) -> str:
        text = self._texts[key]
        if key in self._cleaned:
            return text
        if shapes_near(text):
            text = self._texts[key] = clean_strings(text, clean_text)
        self._cleaned.add(key)
        return text

    def __iter__(self) -> Iterator[TranscriptKey]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return repr(dict(self))

    def kept(self, key: TranscriptKey) -> str:
        """A text as the log has it, unless it was asked for before and is clean."""
        return self._texts[key]


def clean_text(text: str) -> str:
    """A text without what has the shape of a key."""
    for shape in shapes_near(text):
        text = shape.pattern.sub(MARK, text)
    return text


def clean_errors(errors: Iterable[str | None]) -> list[str | None]:
    """Texts of errors without keys; those of a log are few, and repeated.

    >>> clean_errors(["no such key: sk-ant-api03-0123456789abcdef", None])
    ['no such key: [redacted]', None]
    """
    errors = list(errors)
    cleaned = {error: clean_text(error) for error in errors if isinstance(error, str)}
    return [cleaned[error] if isinstance(error, str) else error for error in errors]


def clean_strings(text: str, clean: Callable[[str], str]) -> str:
    """JSON text in which each string was cleaned by itself: escapes hide where a key begins."""

    def cleaned(value: Any) -> Any:
        if isinstance(value, str):
            return clean(value)
        if isinstance(value, dict):
            return {clean(key): cleaned(inner) for key, inner in value.items()}
        return list(map(cleaned, value)) if isinstance(value, list) else value

    return msgspec.json.encode(cleaned(msgspec.json.decode(text))).decode()
