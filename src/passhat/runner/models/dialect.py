"""The form of a wire format: how a request is written and how an answer is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from passhat.errors import ModelBusy
from passhat.runner.models.exchange import Reply, Request

Body = Mapping[str, Any]

EFFORTS = ((0, "none"), (4_096, "low"), (16_384, "medium"), (float("inf"), "high"))
"""How many tokens of thinking each word stands for, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A wire format, as pure functions.

    `assemble` turns the events of a stream into the body that a request without streaming would
    have brought, and refuses a stream that ended before the model did. Where `streams` is False
    answers are always asked for whole. In `path`, `{model}` is the model's name.
    """

    name: str
    path: str
    list_path: str
    headers: Callable[[str], dict[str, str]]
    encode: Callable[[str, Request, bool], dict[str, Any]]
    decode: Callable[[Body], Reply]
    assemble: Callable[[Iterable[Body]], Body]
    streams: bool = True


def cut_off(what: str) -> ModelBusy:
    """The error for an answer that stops in the middle: asking again may bring all of it."""
    return ModelBusy(f"the stream ended before {what}: the connection was cut or the server died")


def effort(reasoning: str | int) -> str:
    """A number of tokens as one of OpenAI's words.

    >>> effort("high"), effort(2000), effort(0)
    ('high', 'low', 'none')
    """
    if isinstance(reasoning, str):
        return reasoning
    return next(word for most, word in EFFORTS if reasoning <= most)
